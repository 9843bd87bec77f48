//! What the script API promises beyond one call: private chats, permissions at every hop, stops, memory, many calls at once.

use crate::host_api::{Bench, Given, tool};
use crate::world::{World, until};
use lapidary::base::clock::Clock;
use lapidary::tool::dispatch::{Call, CallHandle, Outcome, Who};
use serde_json::json;
use std::sync::Arc;

fn one(name: &str, statements: &str) -> Bench {
    Bench::start(Given::Files, &[(name.to_owned(), tool(name, statements))])
}

#[test]
fn while_loading_a_setting_is_what_is_stored_else_the_file_s_own_default_above() {
    let w = World::new();
    let text = r#"
const BEFORE = settings::get("sides");
const SETTINGS = #{ sides: 20, name: "die" };
const AFTER = settings::get("sides");
const ALL = settings::all();
/// Tell. Use it in tests.
/// @local
fn tell() { [BEFORE, AFTER, ALL, settings::get("sides"), settings::all()] }
"#;
    w.tool("tell", text);
    let all = json!({"name": "die", "sides": 20});
    assert_eq!(w.text("tell", json!({})), json!([null, 20, all, 20, all]).to_string());
    w.write("user/webui/plugins/tell.json", r#"{"sides": 6}"#);
    w.tool("tell", &format!("// once more\n{text}"));
    let all = json!({"name": "die", "sides": 6});
    assert_eq!(w.text("tell", json!({})), json!([6, 6, all, 6, all]).to_string());
}

#[test]
fn a_private_chat_leaves_nothing_on_disk() {
    let statements = r#"
for work in [
    || files::write_text("a", "x"), || files::write_blob("a", blob(1)), || files::delete("kept.txt"),
    || files::root("music").write_text("a", "x"), || files::root("music").write_blob("a", blob(1)),
    || files::root("music").delete("song.txt"),
] { caught(work, "disabled"); }
assert_eq(files::read_text("kept.txt"), "kept");
assert_eq(files::root("music").read_text("song.txt"), "la la");
assert_eq(files::list().len(), 1);
assert_eq(scopes::is_private(), true);
assert_eq(scopes::chat(), "diary");
"#;
    let bench = one("probe", statements);
    let who = Who { private: true, ..Who::owner("test").in_chat("diary") };
    let outcome = bench.0.host.call_now(Call::new("probe", serde_json::Map::new(), who));
    assert!(outcome.ok, "{}", outcome.text);
}

#[test]
fn a_granted_folder_is_read_and_written_and_a_revoked_one_is_closed_at_once() {
    let statements = r#"
let music = files::root("music");
music.write_text("new/b.txt", "two");
assert_eq(music.list().map(|e| e.name), ["new", "song.txt"]);
assert_eq(music.list("new")[0].size, 3);
assert_eq(music.read_blob("new/b.txt").len(), 3);
assert_eq(music.stat("none"), ());
assert_eq(music.delete("new/b.txt"), true);
caught(|| music.read_text("../user/tools/probe.rhai"), "permission_denied");
"#;
    let bench = one("probe", statements);
    bench.call("probe").unwrap();
    let folder = lapidary::service::permissions::Grant::Folder { name: "music".into(), path: "/".into() };
    bench.0.host.services().grants.revoke("probe", &folder).unwrap();
    bench.0.host.plugins().grants_changed();
    let why = bench.call("probe").unwrap_err();
    assert!(why.starts_with("permission_denied"), "{why}");
}

#[test]
fn answers_are_read_as_text_json_and_bytes_whatever_their_status() {
    let statements = r#"
let echo = net::post("http://localhost:8080/echo?a=1", #{params: #{b: [2, 3]}, headers: #{"X-Note": "n"}, json: #{z: 1}});
assert_eq(echo.status, 200);
assert_eq(echo.ok, true);
assert_eq(echo.headers["x-two"], "1, 2");
assert_eq(echo.json().body, `{"z":1}`);
assert_eq(echo.json.note, "n");
assert(echo.url.ends_with("/echo?a=1&b=2&b=3"), echo.url);
assert_eq(echo.bytes.as_string(), echo.text());
let gone = net::get("http://localhost:8080/none");
assert_eq(gone.status, 404);
assert_eq(gone.ok, false);
assert_eq(gone.text, "no such page");
caught(|| gone.json, "invalid_arguments");
caught(|| net::get("http://localhost:8080/big", #{max_bytes: 99999}), "too_large");
assert_eq(net::get("http://localhost:8080/big", #{max_bytes: 100000}).text.len(), 100000);
caught(|| net::get("http://localhost:8080/slow", #{timeout: 0.05}), "timeout");
"#;
    one("probe", statements).call("probe").unwrap();
}

#[test]
fn redirects_of_the_local_network_are_followed_only_where_asked_and_each_hop_is_permitted() {
    let statements = r#"
let moved = net::get("http://localhost:8080/moved");
assert_eq(moved.status, 302);
let followed = net::get("http://localhost:8080/moved", #{allow_redirects: true});
assert_eq(followed.json.hello, "moved");
assert(followed.url.ends_with("/greeting?name=moved"), followed.url);
caught(|| net::get("http://localhost:8080/away", #{allow_redirects: true}), "permission_denied");
"#;
    one("probe", statements).call("probe").unwrap();
}

#[test]
fn without_the_permission_no_request_leaves() {
    let plain =
        "/// Try. Use it in tests.\n/// @local\nfn probe() { net::get(\"http://localhost:8080/echo\").status }\n";
    let bench = Bench::start(Given::Nothing, &[("probe".to_owned(), plain.to_owned())]);
    let why = bench.call("probe").unwrap_err();
    assert!(
        why.starts_with("permission_denied") && why.contains("lapidary grant probe EXTERNAL_HTTP=localhost"),
        "{why}"
    );
}

/// Calls, and cancels once the call has said that it began.
fn cancelled(bench: &Bench, name: &str) -> Outcome {
    struct Began(std::sync::Mutex<bool>);
    impl lapidary::script::ctx::Sink for Began {
        fn status(&self, _: &str) {
            *self.0.lock().unwrap() = true;
        }
    }
    let (began, handle) = (Arc::new(Began(false.into())), Arc::new(CallHandle::default()));
    let mut call = Call::new(name, serde_json::Map::new(), Who::owner("test"));
    call.sink = began.clone();
    call.handle = Some(handle.clone());
    let host = bench.0.host.clone();
    let running = std::thread::spawn(move || host.call_now(call));
    until("the call began", || *began.0.lock().unwrap());
    handle.cancel();
    running.join().unwrap()
}

#[test]
fn whatever_waits_ends_when_the_call_is_cancelled() {
    let waits = [
        ("request", r#"net::get("http://localhost:8080/slow")"#),
        ("sleep", "time::sleep(1000)"),
        (
            "rows",
            r#"db::open("a").query("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(x) FROM n")"#,
        ),
        ("inside", r#"db::open("a").transaction(|tx| { loop { tx.query("SELECT 1"); } })"#),
        ("searches", r#"{ let t = ""; t.pad(200000, 'a'); loop { regex::find_all("a.*b|a", t); } }"#),
        ("cached", r#"cache::get_or("k", 60, || { loop { } })"#),
        ("nested", r#"tools::run("sleep", #{})"#),
    ];
    let plugins: Vec<_> = waits
        .iter()
        .map(|(name, code)| ((*name).to_owned(), tool(name, &format!("progress::status(\"begun\");\ntry {{ {code}; }} catch (e) {{ state::save(\"caught\", e.code); }}\nloop {{ }}"))))
        .collect();
    let bench = Bench::start(Given::Nothing, &plugins);
    for (name, _) in &plugins {
        let outcome = cancelled(&bench, name);
        assert_eq!(outcome.error.as_ref().map(|e| e.code()), Some("cancelled"), "{name}: {}", outcome.text);
    }
}

#[test]
fn natives_that_make_much_of_little_stay_within_the_memory_of_the_call() {
    let bombs = [
        ("join", "let s = big(); let a = many(s); text::join(a, s)"),
        ("builder", "let s = big(); let b = text::builder(); loop { b.push(s); }"),
        ("encode", "let s = big(); let a = many(s); json::encode(a)"),
        ("pretty", "let a = []; for n in 0..100 { a = [a, a, a]; if n > 20 { json::encode(a, #{pretty: true}); } }"),
        ("decode", r#"let s = "["; s.pad(8000000, "[],"); s += "[]]"; json::decode(s)"#),
        ("save", r#"let s = big(); let a = many(s); state::save("k", a)"#),
        ("update", r#"let s = big(); state::update("k", 0, |v| { let a = []; a.pad(1000, s); a })"#),
        ("put", r#"let s = big(); let a = many(s); cache::put("k", a, 60)"#),
        ("logs", r#"let s = big(); let a = many(s); log::info("x", #{a: a})"#),
        ("calls", r#"let s = big(); let a = many(s); tools::run("other", #{a: a})"#),
        ("replace", r#"let s = big(); let r = ""; r.pad(1000000, "$0"); regex::replace("x+", s, r)"#),
        ("split", r#"let s = big(); for n in 0..6 { s += s; } base64::decode(base64::encode(base64::encode(s)))"#),
        (
            "cells",
            r#"let s = big(); let a = many(s); let q = "SELECT ?"; q.pad(8 + 999 * 3, ", ?"); db::open("a").query(q, a)"#,
        ),
        (
            "rows",
            r#"db::open("a").query("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 99999) SELECT x, x AS a, x AS b FROM n")"#,
        ),
        ("form", r#"let s = big(); let a = many(s); net::post("http://localhost:8080/echo", #{data: #{a: a}})"#),
        ("tags", r#"let s = ""; s.pad(4000000, "<a>"); html::select(s, "a")"#),
        ("wraps", "let s = big(); for n in 0..6 { s += s; } text::wrap(s, 1)"),
        ("lines", r#"let s = ""; s.pad(10000000, "\n"); text::lines(s)"#),
        ("interpolated", "let s = big(); let a = many(s); `${a}`"),
        ("appended", r#"let s = big(); let a = many(s); "" + a"#),
        ("printed", "let s = big(); let a = many(s); print(a)"),
        ("returned", "let s = big(); let a = many(s); return a;"),
    ];
    // Pushed one by one: a thousand times the same text, which is there once.
    let head = "fn big() { let s = \"\"; s.pad(1000000, 'x'); s }\nfn many(s) { let a = []; for n in 0..1000 { a.push(s); } a }\n";
    let plugins: Vec<_> = bombs
        .iter()
        .map(|(name, code)| ((*name).to_owned(), format!("{head}{}", tool(name, &format!("{{ {code} }};")))))
        .collect();
    let bench = Bench::start(Given::Nothing, &plugins);
    let mut wrong = Vec::new();
    for (name, _) in &plugins {
        let outcome = bench.0.call(name, json!({}));
        let code = outcome.error.as_ref().map_or("ok", |e| e.code());
        let mib = outcome.memory >> 20;
        if !matches!(code, "quota" | "too_large") || mib > 160 {
            wrong.push(format!("{name}: {code}, {mib} MiB, {:.200}", outcome.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_the_cache_keeps_is_charged_to_no_call_and_paid_back_to_none() {
    let w = World::new();
    let text = r#"
fn big(n) { let s = `${n}`; s.pad(4000000, 'x'); s }
/// Keep. Use it in tests.
/// @local
fn keep() { for n in 0..40 { cache::put(`k${n}`, big(n), 60); } "kept" }
/// Make. Use it in tests.
/// @local
fn make() { for n in 0..40 { cache::get_or(`m${n}`, 60, || big(n)); } "made" }
/// Fail to make. Use it in tests.
/// @local
fn make_badly() { for n in 0..40 { try { cache::get_or("bad", 60, || { big(n); throw "no" }); } catch { } } "tried" }
/// Drop. Use it in tests.
/// @local
fn spoil() { for n in 0..40 { cache::invalidate(`k${n}`); cache::invalidate(`m${n}`); } let a = []; for n in 0..17 { a.push(big(n)); } a.len() }
/// Read. Use it in tests.
/// @local
fn read() { let n = 0; for i in 0..400 { if cache::get(`m${i % 40}`) != () { n += 1; } } n }
"#;
    w.tool("probe", text);
    assert_eq!(w.text("keep", json!({})), "kept");
    assert_eq!(w.text("make", json!({})), "made");
    assert_eq!(w.text("make_badly", json!({})), "tried");
    assert_ne!(w.text("read", json!({})), "0");
    assert_eq!(w.fails("spoil", json!({})).0, "quota");
}

#[test]
fn fifty_updates_at_once_lose_nothing_and_one_of_many_callers_computes() {
    let plugins = [
        ("count".to_owned(), tool("count", "state::update(\"n\", 0, |n| n + 1);")),
        (
            "total".to_owned(),
            tool("total", "return state::get(\"n\");").replace("fn total", "fn unused() { }\nfn total"),
        ),
        (
            "page".to_owned(),
            tool("page", "return cache::get_or(\"page\", 60, || state::update(\"computed\", 0, |n| n + 1));"),
        ),
    ];
    let bench = Bench::start(Given::Nothing, &plugins);
    std::thread::scope(|scope| {
        for _ in 0..10 {
            let bench = &bench;
            scope.spawn(move || {
                for _ in 0..5 {
                    bench.call("count").unwrap();
                    assert_eq!(bench.call("page").unwrap(), "1");
                }
            });
        }
    });
    let state = &bench.0.host.services().state;
    assert_eq!(state.get("count", "n").unwrap(), Some(json!(50)));
    assert_eq!(state.get("page", "computed").unwrap(), Some(json!(1)));
}

#[test]
fn a_nested_tool_gives_its_text_or_its_structure_and_throws_its_failure() {
    let helper = r#"
/// Give a number. Use it in tests.
/// @local
/// @returns {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
fn give() { #{n: 9007199254740993} }
/// Fail. Use it in tests.
/// @local
fn fail() { throw failure(#{code: "rate_limited", message: "too fast", hint: "wait"}) }
/// Call oneself. Use it in tests.
/// @local
fn again() { tools::run("again", #{}) }
"#;
    let statements = r#"
assert_eq(tools::run("other", #{}), "called");
assert_eq(tools::run("give", #{}).n, 9007199254740993);
let seen = ();
try { tools::run("fail", #{}); } catch (e) { seen = e; }
assert_eq(seen.code, "rate_limited");
assert_eq(seen.message, "too fast");
caught(|| tools::run("other", #{surplus: 1}), "invalid_arguments");
caught(|| tools::run("again", #{}), "quota");
"#;
    let plugins = [("helper".to_owned(), helper.to_owned()), ("probe".to_owned(), tool("probe", statements))];
    Bench::start(Given::Nothing, &plugins).call("probe").unwrap();
}

#[test]
fn a_plugin_is_loaded_again_at_its_own_wish_but_not_in_a_rush() {
    let clock = Clock::manual(1_700_000_000_000);
    let w = World::with(|b| b.watching(lapidary::app::Watching::Off).clock(clock.clone()));
    w.tool("probe", "/// Reload. Use it in tests.\n/// @local\nfn probe() { tools::reload_self(); \"asked\" }\n");
    let generation = || w.host.dispatcher().snapshot().get("probe").unwrap().generation();
    assert_eq!(generation(), 1);
    w.text("probe", json!({}));
    until("generation 2 is live", || generation() == 2);
    w.text("probe", json!({}));
    clock.advance(5_000);
    w.text("probe", json!({}));
    until("generation 3 is live", || generation() == 3);
}

#[test]
fn a_host_error_points_at_the_call_in_the_script() {
    let w = World::new();
    w.tool(
        "probe",
        "/// Fail. Use it in tests.\n/// @local\nfn probe() {\n    let x = 1;\n    json::decode(\"[1,\")\n}\n",
    );
    let outcome = w.call("probe", json!({}));
    let shown = outcome.diagnostic.unwrap().render();
    assert!(
        shown.contains("user/tools/probe.rhai:5:11") && shown.contains("json::decode(\"[1,\")") && shown.contains('^'),
        "{shown}"
    );
}
