//! The journal as its owner has it: every door's calls, none of a private chat, no secret in the file, another process's calls,
//! and running one again on what is live now.

use crate::servers::{Server, answer};
use crate::shell::Shell;
use crate::world::World;
use lapidary::app::{HostBuilder, Watching};
use lapidary::base::file::write_atomic_private;
use lapidary::base::paths::Paths;
use lapidary::service::credentials::Source;
use lapidary::service::journal::{Entry, Filter, Piece};
use lapidary::tool::dispatch::{Arguments, Call, Outcome, Who};
use serde_json::{Value, json};
use std::path::Path;

const TOOLS: &str = r#"const SETTINGS = #{ greeting: "hello" };
/// Greet somebody. Use it in tests.
///
/// @param {string} name - Who.
/// @local
fn greet(name) { log::info(`greeting ${name}`, #{n: 1}); progress::status("thinking"); progress::step(1, 2); `v1 hello, ${name}` }
/// Fail. Use it in tests.
/// @local
fn fail() { throw failure(#{ code: "rate_limited", message: "too fast", hint: "wait" }); }
/// Break. Use it in tests.
/// @local
fn broken() { let x = 1; x.nope() }
/// Call greet. Use it in tests.
/// @local
fn outer() { tools::run("greet", #{name: "inner"}) }
/// Give something structured. Use it in tests.
/// @local
/// @returns {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
fn structured() { #{ a: 7 } }
/// Take a password. Use it in tests.
///
/// @param {string} password - It.
/// @local
fn login(password) { log::info(`with ${password}`); `logged in with ${password}` }
"#;

fn keeping(set: impl FnOnce(HostBuilder) -> HostBuilder) -> World {
    let w = World::with(|b| set(b.watching(Watching::Off).keep_journal()));
    w.tool("greeter", TOOLS);
    w
}

impl World {
    fn entry(&self, outcome: &Outcome) -> Entry {
        self.host.kept(&outcome.call).unwrap()
    }

    fn tools_called(&self) -> Vec<String> {
        self.host.journal().list(&Filter::default()).unwrap().calls.into_iter().map(|call| call.tool).collect()
    }
}

/// Every byte of the database and of what lies beside it.
fn raw(root: &Path) -> Vec<u8> {
    let mut all = Vec::new();
    for end in ["", "-wal", "-shm"] {
        all.extend(std::fs::read(root.join(format!("user/lapidary.db{end}"))).unwrap_or_default());
    }
    assert!(!all.is_empty());
    all
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn every_call_is_kept_with_what_it_was_given_gave_and_said() {
    let w = keeping(|b| b);
    let outcome = w.call("greet", json!({ "name": "Ada" }));
    let entry = w.entry(&outcome);
    let listed = &entry.listed;
    assert_eq!((listed.tool.as_str(), listed.plugin.as_str(), listed.generation), ("greet", "greeter", 1));
    assert_eq!((listed.door.as_str(), listed.caller.as_str(), listed.ok), ("test", "owner", true));
    assert_eq!(
        (entry.text.as_str(), &entry.arguments, entry.live_generation),
        ("v1 hello, Ada", &json!({ "name": "Ada" }), Some(1))
    );
    assert_eq!(entry.logs.len(), 1);
    assert_eq!((entry.logs[0].level.as_str(), entry.logs[0].text.as_str()), ("info", "greeting Ada {\"n\":1}"));
    assert_eq!(entry.progress.len(), 2);
    assert!(entry.operations > 0 && entry.memory > 0 && listed.duration_ms > 0.0);

    let entry = w.entry(&w.call("fail", json!({})));
    let error = entry.error.unwrap();
    assert_eq!(
        (error.code.as_str(), error.message.as_str(), error.hint.as_deref(), error.retryable),
        ("rate_limited", "too fast", Some("wait"), true)
    );
    let entry = w.entry(&w.call("broken", json!({})));
    let diagnostic = entry.diagnostic.unwrap();
    assert_eq!(diagnostic["file"], "user/tools/greeter.rhai");
    assert!(diagnostic["line"].as_i64().unwrap() > 0, "{diagnostic}");
    let entry = w.entry(&w.call("structured", json!({})));
    assert_eq!(entry.structured, Some(json!({ "a": 7 })));
}

#[test]
fn a_call_that_was_refused_or_made_by_a_tool_is_kept_too() {
    let w = keeping(|b| b);
    let unknown = w.entry(&w.call("nope", json!({ "a": 1 })));
    assert_eq!((unknown.listed.plugin.as_str(), unknown.listed.code.as_deref()), ("", Some("not_found")));
    assert_eq!((unknown.arguments, unknown.live_generation), (json!({ "a": 1 }), None));
    let misfit = w.entry(&w.call("greet", json!({ "name": 7.5, "x": 1 })));
    assert_eq!(misfit.listed.code.as_deref(), Some("invalid_arguments"));
    let text = Call {
        arguments: Arguments::Text("{\"name\": ".into()),
        ..Call::new("greet", Default::default(), Who::anyone())
    };
    assert_eq!(w.entry(&w.host.call_now(text)).arguments, json!("{\"name\": "));
    assert_eq!(w.text("outer", json!({})), "v1 hello, inner");
    let page = w.host.journal().list(&Filter { door: Some("tool".into()), ..Filter::default() }).unwrap();
    assert_eq!((page.calls.len(), page.calls[0].caller.as_str(), page.calls[0].tool.as_str()), (1, "outer", "greet"));
    assert_eq!(w.tools_called(), ["outer", "greet", "greet", "greet", "nope"]);
}

#[test]
fn of_a_private_chat_nothing_is_kept_not_even_that_there_was_a_call() {
    let w = keeping(|b| b);
    let mut who = Who::owner("test").in_chat("diary");
    who.private = true;
    let name: serde_json::Map<String, Value> = [("name".to_owned(), json!("confidential-name"))].into_iter().collect();
    for tool in ["greet", "outer", "nope"] {
        w.host.call_now(Call::new(tool, name.clone(), who.clone()));
    }
    // One whose chat is private by its row, whatever the call says.
    w.host.services().store.ensure_chat("vault", true, 1).unwrap();
    w.host.call_now(Call::new("greet", name, Who::owner("test").in_chat("vault")));
    w.text("greet", json!({ "name": "open" }));
    assert_eq!(w.tools_called(), ["greet"]);
    let raw = raw(w.dir.path());
    assert!(holds(&raw, "hello, open") && !holds(&raw, "confidential-name"));
}

#[test]
fn no_journal_is_kept_where_nobody_asks_or_the_owner_says_no() {
    let w = World::with(|b| b.watching(Watching::Off));
    w.tool("greeter", TOOLS);
    w.text("greet", json!({ "name": "Ada" }));
    assert!(w.tools_called().is_empty() && !w.path("user/lapidary.db").exists());
    let no = |root: &Path| {
        Paths::at(root).ensure().unwrap();
        std::fs::write(root.join("user/lapidary.toml"), "[journal]\nkeep = false\n").unwrap();
    };
    let w = World::prepared(no, |b| b.watching(Watching::Off).keep_journal());
    w.tool("greeter", TOOLS);
    w.text("greet", json!({ "name": "Ada" }));
    assert!(w.tools_called().is_empty() && !w.path("user/lapidary.db").exists());
}

#[test]
fn the_file_holds_the_value_of_no_credential_no_password_of_settings_and_no_argument_that_is_one() {
    let (stored, told_before, setting, typed) = ("pa ss/w0rd+xyz", "4711081512", "s3tting-p4ss", "typ3d-by-hand");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials.json");
    let book = json!({ "credentials": {
        "key": { "value": stored, "hosts": ["127.0.0.1"] },
        "other": { "value": told_before },
    } });
    write_atomic_private(&file, book.to_string().as_bytes()).unwrap();
    let server = Server::http(move |_| answer("200 OK", "", stored.as_bytes()));
    let w = World::prepared(
        |root| {
            let paths = Paths::at(root);
            paths.ensure().unwrap();
            let grants = json!({ "probe": { "granted": ["USE_SECRETS", "EXTERNAL_HTTP"] } });
            std::fs::write(paths.grants_file(), grants.to_string()).unwrap();
            std::fs::create_dir_all(root.join("user/webui/plugins")).unwrap();
            std::fs::write(root.join("user/webui/plugins/mail.json"), json!({ "key": setting }).to_string()).unwrap();
        },
        |b| b.watching(Watching::Off).credentials(Source::file(&file)).keep_journal(),
    );
    w.tool("greeter", TOOLS);
    let probe = format!(
        "const PERMISSIONS = [\"USE_SECRETS\", \"EXTERNAL_HTTP\"];\n\
         /// Ask. Use it in tests.\n///\n/// @param {{string}} [x] - Anything.\n/// @local\n/// @writes\n\
         fn probe(x) {{ let k = credentials::get(\"key\"); let a = net::get(\"{}\", #{{headers: #{{\"x-key\": k}}}}).text; \
         log::info(a); progress::status(a); `${{k}} ${{a}} ${{x}}` }}\n",
        server.url("/")
    );
    w.tool("probe", &probe);
    let manifest = json!({ "name": "mail", "version": "1.0.0", "description": "Mail.", "capabilities": {
        "settings": [{ "key": "key", "type": "text", "label": "Key", "widget": "password", "default": "" }] } });
    w.write("user/plugins/mail/plugin.json", &manifest.to_string());
    w.write(
        "user/plugins/mail/tools/mail.rhai",
        "/// Tell the setting. Use it in tests.\n/// @local\nfn tell() { log::warn(settings::get(\"key\")); `it is ${settings::get(\"key\")}` }\n",
    );
    w.host.plugins().rescan();
    w.host.plugins().switch("mail", lapidary::plugin::set::Switch::On).unwrap();

    let first = w.call("probe", json!({}));
    assert!(first.text.contains("Secret"), "{first:?}");
    // What a person or a model says of secrets of others.
    let outcome = w.call("greet", json!({ "name": format!("the key is {stored}, or {told_before}") }));
    assert!(outcome.text.contains(told_before), "the call itself works: {outcome:?}");
    let told = w.call("tell", json!({}));
    assert_eq!(told.text, format!("it is {setting}"));
    w.call("login", json!({ "password": typed }));
    w.call("login", json!({ "password": [typed] }));
    w.call("nope", json!({ "api_key": typed, "text": typed, stored: 1 }));
    w.call(stored, json!({}));
    w.call(&format!("x{setting}"), json!({}));

    let page = w.host.journal().list(&Filter::default()).unwrap();
    assert_eq!((page.calls.len(), page.dropped), (8, 0));
    let entry = w.entry(&told);
    assert_eq!((entry.text.as_str(), entry.logs[0].text.as_str()), ("it is ***", "***"));
    let check = || {
        let raw = raw(w.dir.path());
        for secret in [stored, told_before, setting, typed, "w0rd+xyz", "pa%20ss", "cGEgc3M"] {
            assert!(!holds(&raw, secret), "{secret} is in the file");
        }
    };
    check();
    w.host.stop();
    check();
}

#[test]
fn a_picture_is_kept_by_its_id_and_size_and_never_its_bytes() {
    let w = keeping(|b| b);
    let png = [&b"\x89PNG\r\n\x1a\n"[..], b"bytes-of-the-picture"].concat();
    w.write("user/tools/painter/x", "");
    std::fs::write(w.path("user/tools/picture.png"), &png).unwrap();
    w.tool(
        "painter",
        "/// Paint. Use it in tests.\n/// @local\nfn paint() { images::result(\"painted\", [files::asset(\"picture.png\")]) }\n",
    );
    let outcome = w.call("paint", json!({}));
    let entry = w.entry(&outcome);
    assert!(
        matches!(&entry.parts[..], [Piece::Image { id: None, bytes, .. }] if *bytes == png.len() as u64),
        "{outcome:?} {entry:?}"
    );
    assert!(!holds(&raw(w.dir.path()), "bytes-of-the-picture"));
}

#[test]
fn a_call_runs_again_on_what_is_live_now_and_shows_what_differs() {
    let w = keeping(|b| b);
    let first = w.call("greet", json!({ "name": "Ada" }));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let who = Who::owner("http");
    let same = runtime.block_on(w.host.replay(&first.call, &who)).unwrap();
    assert_eq!((same.diff.as_str(), same.changes.len(), same.now.ok), ("", 0, true));
    assert_ne!(same.now.call, first.call);
    assert_eq!(w.entry(&same.now).listed.door, "http", "it is a call of its own");

    w.tool("greeter", &TOOLS.replace("v1 hello", "v2 good day"));
    let changed = runtime.block_on(w.host.replay(&first.call, &who)).unwrap();
    assert!(changed.diff.contains("-v1 hello, Ada\n+v2 good day, Ada"), "{}", changed.diff);
    assert_eq!(changed.changes.iter().map(|c| c.what).collect::<Vec<_>>(), ["generation"]);
    assert_eq!((changed.then.listed.generation, changed.then.live_generation, changed.now.generation), (1, Some(2), 2));

    w.tool("greeter", &TOOLS.replace("`v1 hello, ${name}`", "throw \"no\""));
    let failed = runtime.block_on(w.host.replay(&first.call, &who)).unwrap();
    assert_eq!(failed.changes.iter().map(|c| c.what).collect::<Vec<_>>(), ["ok", "code", "generation"]);
    // A tool that is gone is an answer too.
    std::fs::remove_file(w.path("user/tools/greeter.rhai")).unwrap();
    w.host.plugins().rescan();
    let gone = runtime.block_on(w.host.replay(&first.call, &who)).unwrap();
    assert_eq!((gone.now.error.unwrap().code(), gone.then.live_generation), ("not_found", None));
}

#[test]
fn the_same_picture_given_again_is_no_difference() {
    let w = keeping(|b| b);
    w.tool(
        "painter",
        r#"/// Paint. Use it in tests.
/// @local
fn paint() { images::result("painted", [base64::decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==")]) }
"#,
    );
    let first = w.host.call_now(Call::new("paint", Default::default(), Who::owner("cli").in_chat("kitchen")));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let again = runtime.block_on(w.host.replay(&first.call, &Who::owner("http"))).unwrap();
    assert!(first.text.contains("img:") && first.text != again.now.text, "{}", first.text);
    assert_eq!((again.diff.as_str(), again.changes.len()), ("", 0));
}

#[test]
fn a_call_runs_again_in_its_chat_and_under_the_rules_for_who_asks() {
    let w = keeping(|b| b);
    w.tool(
        "where",
        "/// Say where. Use it in tests.\n/// @local\nfn whereabouts() { `${scopes::chat()} ${scopes::caller()}` }\n",
    );
    let call = Call::new("whereabouts", Default::default(), Who::owner("cli").in_chat("kitchen"));
    let id = w.host.call_now(call).call;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut who = Who::owner("http");
    who.caller = "ann".into();
    let replay = runtime.block_on(w.host.replay(&id, &who)).unwrap();
    assert_eq!(replay.now.text, "kitchen ann");
    let replay = runtime.block_on(w.host.replay(&id, &who.clone().in_chat("hall"))).unwrap();
    assert_eq!(replay.now.text, "hall ann");
    who.allowed = Some(Default::default());
    let replay = runtime.block_on(w.host.replay(&id, &who)).unwrap();
    assert_eq!(replay.now.error.unwrap().code(), "disabled");
}

#[test]
fn a_call_whose_arguments_are_not_whole_any_more_is_refused_with_what_to_do() {
    let w = keeping(|b| b);
    let who = Who::owner("test");
    let refused = |outcome: Outcome| w.host.again(&outcome.call, &who).err().unwrap();
    let e = refused(w.call("login", json!({ "password": "hunter2" })));
    assert_eq!((e.code(), e.hint_text()), ("disabled", Some("call it with its arguments: lapidary call login ..")));
    let e = refused(w.call("greet", json!({ "name": "x".repeat(300 << 10) })));
    assert_eq!(e.code(), "too_large");
    assert_eq!(w.host.again("c_nope", &who).err().unwrap().code(), "not_found");
    // What was no JSON fails again as it did.
    let call = Call { arguments: Arguments::Text("[1]".into()), ..Call::new("greet", Default::default(), who.clone()) };
    let first = w.host.call_now(call);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let replay = runtime.block_on(w.host.replay(&first.call, &who)).unwrap();
    assert_eq!((replay.now.error.unwrap().code(), replay.changes.len()), ("invalid_arguments", 0));
}

#[test]
fn nested_calls_cost_the_outer_one_none_of_what_the_journal_takes() {
    let w = keeping(|b| b);
    w.tool(
        "many",
        "/// Take. Use it in tests.\n///\n/// @param {string} text - It.\n/// @local\nfn take(text) { log::info(text.sub_string(0, 100)); \"taken\" }\n\
         /// Give. Use it in tests.\n/// @local\nfn give() { let t = \"\"; t.pad(1000000, 'x'); for i in 0..200 { tools::run(\"take\", #{text: t}); } \"given\" }\n",
    );
    // 200 MB of arguments in all, under a budget of 64.
    assert_eq!(w.text("give", json!({})), "given");
}

#[test]
fn what_one_process_called_another_one_lists_shows_and_replays() {
    let sh = Shell::new();
    sh.write("user/tools/greeter.rhai", TOOLS);
    sh.run(&["journal"]).ends(0).says("No call is kept yet");
    sh.run(&["journal", "show", "last"]).ends(1).complains("the journal is empty");
    assert!(!sh.path("user/lapidary.db").exists(), "reading makes nothing");
    sh.run(&["call", "greet", "name=Ada"]).ends(0);
    sh.run(&["call", "fail"]).ends(1);
    sh.run(&["call", "login", "password=hunter2"]).ends(0);

    let page = sh.run(&["journal", "--json"]).ends(0).json();
    let tools: Vec<&str> = page["calls"].as_array().unwrap().iter().map(|c| c["tool"].as_str().unwrap()).collect();
    assert_eq!((tools, &page["dropped"], page.get("next")), (vec!["login", "fail", "greet"], &json!(0), None));
    let listed = sh.run(&["journal", "list"]).ends(0).says("rate_limited").says("too fast").says("v1 hello, Ada");
    assert!(!listed.out.contains("hunter2"), "{}", listed.out);
    assert_eq!(sh.run(&["journal", "--failed", "--json"]).ends(0).json()["calls"].as_array().unwrap().len(), 1);
    let one = sh.run(&["journal", "list", "--limit", "1", "--json"]).ends(0).json();
    let older = sh.run(&["journal", "--before", one["next"].as_str().unwrap(), "--json"]).ends(0).json();
    assert_eq!(older["calls"].as_array().unwrap().len(), 2);
    for (words, calls) in [(["--tool", "greet"], 1), (["--plugin", "greeter"], 3), (["--door", "mcp"], 0)] {
        let page = sh.run(&[&["journal", "--json"][..], &words[..]].concat()).ends(0).json();
        assert_eq!(page["calls"].as_array().unwrap().len(), calls, "{words:?}");
    }

    sh.run(&["journal", "show", "greet"]).ends(0).says("\"name\": \"Ada\"").says("greeting Ada").says("1 of 2");
    let shown = sh.run(&["journal", "show", "last", "--json"]).ends(0).json();
    assert_eq!(
        (&shown["tool"], &shown["masked"], &shown["arguments"]),
        (&json!("login"), &json!(true), &json!({ "password": "***" }))
    );
    sh.run(&["journal", "show", "nope"]).ends(1).complains("the journal has no call `nope`");
    sh.run(&["journal", "--limit", "0"]).ends(2);

    sh.run(&["replay", "greet"]).ends(0).says("the same text:\nv1 hello, Ada");
    sh.write("user/tools/greeter.rhai", TOOLS.replace("v1", "v2"));
    sh.run(&["replay"]).ends(0).says("-v1 hello, Ada\n+v2 hello, Ada");
    let replay = sh.run(&["replay", "last", "--json"]).ends(0).json();
    assert_eq!((&replay["then"]["text"], &replay["now"]["text"]), (&json!("v2 hello, Ada"), &json!("v2 hello, Ada")));
    assert_eq!((&replay["diff"], &replay["changes"]), (&json!(""), &json!([])));
    sh.run(&["replay", "fail"]).ends(1).says("rate_limited").complains("too fast");
    sh.run(&["replay", "login"]).ends(1).complains("a secret was taken out of its arguments");
    sh.run(&["replay", "nope"]).ends(1).complains("the journal has no call `nope`");

    assert!(!holds(&raw(sh.dir.path()), "hunter2"));
    sh.run(&["journal", "clear"]).ends(0).says("deleted 7 calls");
    sh.run(&["journal"]).ends(0).says("No call is kept yet");
    assert!(!holds(&raw(sh.dir.path()), "hello, Ada"));
}

#[test]
fn a_chat_that_is_private_on_the_command_line_leaves_nothing() {
    let sh = Shell::new();
    sh.write("user/tools/greeter.rhai", TOOLS);
    sh.run(&["call", "greet", "name=Ada", "--private"]).ends(0);
    assert!(!sh.path("user/lapidary.db").exists());
}

#[test]
fn two_processes_that_call_at_once_lose_no_call() {
    let sh = Shell::new();
    sh.write("user/tools/greeter.rhai", TOOLS);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let sh = &sh;
            scope.spawn(move || sh.run(&["call", "greet", &format!("name=n{n}")]).ends(0));
        }
    });
    let page = sh.run(&["journal", "--json"]).ends(0).json();
    let mut ids: Vec<&str> = page["calls"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((ids.len(), &page["dropped"]), (8, &json!(0)));
}

#[cfg(unix)]
#[test]
fn a_host_that_is_killed_leaves_a_database_that_works() {
    let sh = Shell::new();
    sh.write("user/tools/greeter.rhai", TOOLS);
    let script = "/// Die. Use it in tests.\n/// @local\nfn die() { for i in 0..40 { tools::run(\"greet\", #{name: `n${i}`}); } log::info(\"ready\"); loop { } }\n";
    sh.write("user/tools/die.rhai", script);
    for _ in 0..3 {
        let dev = sh.start(&["dev", "--replay", "die"]);
        dev.complains("info: ready");
        assert_eq!(dev.signal("KILL"), -1);
        sh.run(&["call", "greet", "name=after"]).ends(0);
        sh.run(&["journal", "--tool", "greet"]).ends(0).says("hello, after");
    }
    sh.run(&["doctor"]);
}

#[cfg(unix)]
#[test]
fn dev_takes_up_the_newest_call_of_a_tool_that_has_no_example() {
    let sh = Shell::new();
    sh.write("user/tools/greeter.rhai", TOOLS);
    sh.run(&["call", "greet", "name=Ada"]).ends(0);
    let dev = sh.start(&["dev", "--replay", "greet"]);
    dev.until("v1 hello, Ada");
    sh.write("user/tools/greeter.rhai", TOOLS.replace("v1", "v2"));
    dev.until("v2 hello, Ada");
    assert_eq!(dev.signal("INT"), 0);
    sh.run(&["journal", "--tool", "greet"]).ends(0).says("v2 hello, Ada");
}
