//! Bad input gets a clear error and loses nothing: one bad file, tool, call or native never takes another down.

use crate::world::World;
use lapidary::HostModule;
use lapidary::app::Watching;
use lapidary::base::event::Event;
use rhai::plugin::*;
use serde_json::json;
use std::fs;

const GOOD: &str = "/// Answers. Use it in tests.\n/// @local\nfn good() { \"fine\" }\n";

fn explicit(tools: &str, body: &str) -> String {
    format!("const TOOLS = [{tools}];\nfn execute(function_name, arguments, config) {{ {body} }}\n")
}

fn entry(name: &str, parameters: &str) -> String {
    format!(
        "#{{ type: \"function\", function: #{{ name: \"{name}\", description: \"Does it. Use it in tests.\", parameters: {parameters} }} }}"
    )
}

/// What is wrong with `bad`, while `good` goes on answering.
#[track_caller]
fn wrong(w: &World, bad: &[u8]) -> String {
    w.tool("good", GOOD);
    fs::write(w.path("user/tools/bad.rhai"), bad).unwrap();
    w.host.plugins().rescan();
    w.host.plugins().refresh(&["bad".into()]);
    assert_eq!(w.text("good", json!({})), "fine");
    let status = w.host.plugins().status("bad").unwrap();
    assert!(status.live.is_none(), "it loaded: {}", status.status);
    status.diagnostics.iter().map(|d| d.render()).collect()
}

#[test]
fn a_file_that_cannot_be_read_says_why() {
    let w = World::new();
    let rows: &[(&[u8], &str)] = &[
        (b"/// x\nfn a() { \"\xff\xfe\" }", "bad.rhai:2 is not UTF-8"),
        (b"", "the file is empty"),
        (b"\xef\xbb\xbf", "the file is empty"),
        (b"let x = 1;", "the file has no tools"),
        (b"#!/usr/bin/env rhai\nfn a() { 1 }", "a script has no such first line"),
        (b"return 1;", "`return` outside a function"),
        (b"/// A. Use it.\nfn a() { nope() }", "nope"),
        (b"/// A. Use it.\nfn a(x) { x }", "x"),
        (b"import \"../../etc/passwd\" as p;", "cannot be imported"),
        (b"let n = \"std/words\"; import n as w;", "literal path"),
        (b"/// A. Use it.\nfn a() { eval(\"1\") }", "eval"),
    ];
    for (bytes, wanted) in rows {
        let got = wrong(&w, bytes);
        assert!(got.contains(wanted), "{:?} should say {wanted:?}:\n{got}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_twenty_mebibyte_script_is_refused_by_its_size() {
    let w = World::new();
    let got = wrong(&w, &vec![b'x'; 20 << 20]);
    assert!(got.contains("20971520") || got.contains("20.0 MiB") || got.contains("20 MiB"), "{got}");
}

#[test]
fn deep_nesting_is_an_error_with_a_place() {
    let w = World::new();
    let text = format!("/// A. Use it.\nfn a() {{ {}1{} }}", "(".repeat(100_000), ")".repeat(100_000));
    let got = wrong(&w, text.as_bytes());
    assert!(got.contains("bad.rhai:2:"), "{}", &got[..got.len().min(600)]);
}

#[test]
fn an_endless_top_level_ends_at_a_limit() {
    let w = World::new();
    let got = wrong(&w, b"loop {}\n/// A. Use it.\nfn a() { 1 }");
    // Whichever comes first on this machine.
    assert!(got.contains("deadline of 2 s") || got.contains("50000000 operations"), "{got}");
}

#[test]
fn a_get_tools_that_hangs_falls_back_to_tools() {
    let w = World::new();
    w.tool(
        "t",
        &format!("{}\nfn get_tools() {{ loop {{}} }}\n", explicit(&entry("a", "#{ type: \"object\" }"), "\"ran\"")),
    );
    assert_eq!(w.text("a", json!({})), "ran");
    let status = w.host.plugins().status("t").unwrap();
    // Whichever comes first on this machine: the deadline or the operations.
    let is_limit = |text: &str| text.contains("deadline of 2 s") || text.contains("50000000 operations");
    assert!(status.warnings.iter().any(|d| d.message.contains("get_tools()") && is_limit(&d.message)));
}

#[test]
fn one_bad_schema_is_quarantined_and_its_neighbours_work() {
    let w = World::new();
    let tools = [
        entry("ok", "#{ type: \"object\", properties: #{} }"),
        entry("text_top", "#{ type: \"string\" }"),
        entry("bad name", "#{ type: \"object\" }"),
        entry("nested", "#{ type: \"object\", properties: #{ a: #{ type: \"string\" }, required: [\"a\"] } }"),
        entry("remote", "#{ type: \"object\", properties: #{ a: #{ \"$ref\": \"http://x/y\" } } }"),
        entry("kind", "#{ type: \"object\", properties: #{ a: #{ type: \"strnig\" } } }"),
        entry("any", "#{ anyOf: [#{ type: \"object\" }] }"),
        "42".to_owned(),
        entry("ok", "#{ type: \"object\" }"),
    ];
    w.tool("t", &explicit(&tools.join(",\n"), "\"ran\""));
    assert_eq!(w.text("ok", json!({})), "ran");
    let status = w.host.plugins().status("t").unwrap();
    assert_eq!(status.tools, ["ok"]);
    assert_eq!(status.quarantined.len(), tools.len() - 1, "{:#?}", status.quarantined);
    assert!(status.quarantined.iter().all(|q| q.reason.contains("user/tools/t.rhai")), "{:#?}", status.quarantined);
    assert!(status.status.contains("quarantined: tool text_top"), "{}", status.status);
}

#[test]
fn ten_thousand_tools_load_up_to_the_cap_of_each_file() {
    let w = World::new();
    for file in 0..20 {
        let tools: Vec<String> = (0..500).map(|i| entry(&format!("f{file}x{i}"), "#{ type: \"object\" }")).collect();
        // A literal list that long is one expression per line; it comes from a function as well.
        fs::write(w.path(&format!("user/tools/many{file}.rhai")), explicit(&tools.join(",\n"), "function_name"))
            .unwrap();
    }
    w.host.plugins().rescan();
    assert_eq!(w.host.dispatcher().snapshot().len(), 10_000);
    assert_eq!(w.text("f19x499", json!({})), "f19x499");
    let tools: Vec<String> = (0..600).map(|i| entry(&format!("x{i}"), "#{ type: \"object\" }")).collect();
    w.tool("over", &explicit(&tools.join(",\n"), "1"));
    let status = w.host.plugins().status("over").unwrap();
    assert_eq!(status.tools.len(), 512);
    assert!(status.quarantined[0].reason.contains("512"), "{:?}", status.quarantined);
    let documented: String = (0..600).map(|i| format!("/// X. Use it in tests.\nfn y{i}() {{ 1 }}\n")).collect();
    w.tool("spelled", &documented);
    let status = w.host.plugins().status("spelled").unwrap();
    assert_eq!((status.tools.len(), status.quarantined.len()), (512, 1), "{:?}", status.quarantined);
    assert!(status.quarantined[0].tool.contains("y512"), "{:?}", status.quarantined);
}

#[test]
fn a_bad_manifest_names_the_place() {
    let w = World::new();
    w.tool("good", GOOD);
    let rows = [
        ("{\"name\": \"p\", \"name\": \"q\"}", "name"),
        ("{", "plugin.json"),
        ("[]", "plugin.json"),
        ("{\"version\": \"1\"}", "name"),
        ("{\"name\": \"other\"}", "other"),
        ("\u{feff}{\"name\": \"p\", \"api_version\": 9}", "api_version"),
    ];
    for (text, wanted) in rows {
        w.write("user/plugins/p/plugin.json", text);
        w.write("user/plugins/p/tools/a.rhai", "/// A. Use it.\nfn a() { 1 }");
        w.host.plugins().rescan();
        w.host.plugins().refresh(&["p".into()]);
        let status = w.host.plugins().status("p").unwrap();
        assert!(status.live.is_none(), "{text} loaded");
        assert!(status.diagnostics.iter().any(|d| d.render().contains(wanted)), "{text}: {:?}", status.diagnostics);
        assert_eq!(w.text("good", json!({})), "fine");
    }
    w.write(
        "user/plugins/p/plugin.json",
        "\u{feff}{\"name\": \"p\", \"capabilities\": {\"tools\": [\"../../tools/good.rhai\", \"tools/a.rhai\"]}}",
    );
    w.host.plugins().refresh(&["p".into()]);
    let status = w.host.plugins().status("p").unwrap();
    assert_eq!(status.tools, ["a"], "{status:?}");
    assert!(status.warnings.iter().any(|d| d.message.contains("../../tools/good.rhai")), "{:?}", status.warnings);
}

#[export_module]
mod shaky {
    /// Panics.
    pub fn boom() -> i64 {
        panic!("boom")
    }
}

#[test]
fn a_panicking_native_is_a_failure_and_quarantines_the_plugin_after_three() {
    let w = World::with(|b| {
        b.watching(Watching::Off).module(HostModule::new("shaky", "Panics.", || rhai::exported_module!(shaky)))
    });
    w.tool("good", GOOD);
    let text =
        "/// Panics. Use it in tests.\nfn shake() { shaky::boom() }\n/// Answers. Use it in tests.\nfn calm() { 1 }\n";
    w.tool("t", text);
    for _ in 0..3 {
        assert_eq!(w.text("calm", json!({})), "1");
        assert_eq!(w.fails("shake", json!({})).0, "internal");
    }
    let (code, said) = w.fails("calm", json!({}));
    assert_eq!(code, "disabled", "{said}");
    assert_eq!(w.text("good", json!({})), "fine");
    w.tool("t", &text.replace("fn calm() { 1 }", "fn calm() { 2 }"));
    assert_eq!(w.text("calm", json!({})), "2");
}

#[test]
fn budgets_end_a_call_and_the_next_one_works() {
    let w = World::new();
    w.write(
        "user/plugins/p/plugin.json",
        r#"{"name": "p", "limits": {"timeout_s": 1, "operations": 100000, "memory_mb": 8}}"#,
    );
    w.write(
        "user/plugins/p/tools/a.rhai",
        "/// A. Use it in tests.\nfn spin() { loop {} }\n/// B. Use it in tests.\nfn grow() { let s = \"x\"; loop { s += s; } }\n\
         /// C. Use it in tests.\nfn nap() { time::sleep(20) }\n/// D. Use it in tests.\nfn deep() { deep() }\n/// E. Use it in tests.\nfn calm() { 1 }\n",
    );
    w.host.plugins().rescan();
    for (tool, code, word) in [
        ("spin", "quota", "operations"),
        ("grow", "quota", "memory"),
        ("nap", "timeout", "deadline"),
        ("deep", "quota", "nest"),
    ] {
        let (got, text) = w.fails(tool, json!({}));
        assert_eq!((got, text.contains(word)), (code, true), "{tool}: {text}");
        let line = 2 * ["spin", "grow", "nap", "deep"].iter().position(|t| *t == tool).unwrap() + 2;
        assert!(text.contains(&format!("[user/plugins/p/tools/a.rhai:{line}]")), "{tool}: {text}");
        assert_eq!(w.text("calm", json!({})), "1");
    }
}

#[test]
fn whatever_stops_a_call_is_shown_at_a_line() {
    let w = World::new();
    w.write(
        "user/plugins/p/plugin.json",
        r#"{ "name": "p", "tools": ["tools/t.rhai"], "limits": { "operations": 100000, "memory_mb": 1 } }"#,
    );
    w.write(
        "user/plugins/p/tools/t.rhai",
        "fn below() { loop {} }\n/// A. Use it in tests.\nfn spin() { loop {} }\n/// B. Use it in tests.\nfn grow() { let s = \"x\"; loop { s += s; } }\n\
         /// C. Use it in tests.\nfn deep() { below() }\n/// D. Use it in tests.\nfn wide() { let s = \"\"; s.pad(9000000, \"x\"); s }\n\
         /// E. Use it in tests.\n/// @timeout 1\nfn nap() { time::sleep(20) }\n",
    );
    w.host.plugins().rescan();
    w.host.plugins().refresh(&["p".into()]);
    for (tool, line) in [("spin", 3), ("grow", 5), ("deep", 7), ("wide", 9), ("nap", 12)] {
        let outcome = w.call(tool, json!({}));
        let at = outcome.diagnostic.unwrap_or_else(|| panic!("{tool}: {}", outcome.text));
        assert_eq!((at.file.as_str(), at.line), ("user/plugins/p/tools/t.rhai", line), "{}", at.render());
    }
}

#[test]
fn a_tool_that_calls_itself_ends_at_the_nesting_limit() {
    let w = World::new();
    w.tool("t", "/// A. Use it in tests.\nfn again() { tools::run(\"again\", #{}) }\n");
    let (code, text) = w.fails("again", json!({}));
    assert_eq!(code, "quota", "{text}");
}

#[test]
fn a_permission_that_is_not_granted_refuses_the_call_and_a_grant_lets_it_through() {
    let w = World::new();
    w.tool("t", "const PERMISSIONS = [\"RUN_COMMANDS\"];\n/// A. Use it in tests.\nfn risky() { \"ran\" }\n");
    let (code, text) = w.fails("risky", json!({}));
    assert_eq!(code, "permission_denied");
    assert!(text.contains("lapidary grant t RUN_COMMANDS"), "{text}");
    let grants = lapidary::service::grants::Grant::parse("RUN_COMMANDS").unwrap();
    for grant in &grants {
        w.host.services().grants.grant("t", grant).unwrap();
    }
    w.host.plugins().grants_changed();
    assert_eq!(w.text("risky", json!({})), "ran");
}

#[test]
fn a_version_that_asks_for_more_waits_for_its_grant_while_the_last_one_answers() {
    let w = World::new();
    let version = |asks: &str, says: &str| format!("{asks}/// A. Use it in tests.\nfn risky() {{ \"{says}\" }}\n");
    w.tool("t", &version("", "one"));
    let mut events = w.host.events();
    w.tool("t", &version("const PERMISSIONS = [\"RUN_COMMANDS\"];\n", "two"));
    assert_eq!(w.text("risky", json!({})), "one");
    let status = w.host.plugins().status("t").unwrap();
    assert!(status.status.starts_with("live 1, disk 2 waits for a yes"), "{}", status.status);
    let told = status.diagnostics[0].render();
    for part in [
        "warning: this version asks for `RUN_COMMANDS`, which version 1 does without",
        "user/tools/t.rhai:1:23",
        "1 | const PERMISSIONS",
        "lapidary grant t RUN_COMMANDS",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert!(status.waiting && status.live == Some(1) && status.disk == Some(2), "{status:?}");
    let waits = std::iter::from_fn(|| events.try_recv().ok())
        .find(|e| matches!(e, Event::PluginWaits { live: Some(1), disk: 2, .. }));
    assert!(waits.is_some_and(|e| serde_json::to_string(&e).unwrap().contains("plugin_waits")));
    // What is wrong with a version that also asks is told as wrong.
    w.tool("t", &version("const PERMISSIONS = [\"RUN_COMMANDS\"];\n", "two\" +"));
    let status = w.host.plugins().status("t").unwrap();
    assert!(!status.waiting && status.status.contains("failed"), "{}", status.status);
    // A text alone passes, and what waits may be taken back.
    w.tool("t", &version("", "three"));
    assert_eq!(w.text("risky", json!({})), "three");
    w.tool("t", &version("const PERMISSIONS = [\"RUN_COMMANDS\"];\n", "four"));
    assert_eq!(w.text("risky", json!({})), "three");
    for grant in &lapidary::service::grants::Grant::parse("RUN_COMMANDS").unwrap() {
        w.host.services().grants.grant("t", grant).unwrap();
    }
    w.host.plugins().grants_changed();
    assert_eq!(w.text("risky", json!({})), "four");
    // What was granted is asked for no second time.
    w.tool("t", &version("const PERMISSIONS = [\"RUN_COMMANDS\"];\n", "five"));
    assert_eq!(w.text("risky", json!({})), "five");
}

#[test]
fn a_version_that_wants_another_host_waits_for_its_grant() {
    let w = World::new();
    let version = |hosts: &str, says: &str| {
        format!(
            "const PERMISSIONS = [#{{ EXTERNAL_HTTP: [{hosts}] }}];\n/// A. Use it in tests.\nfn risky() {{ \"{says}\" }}\n"
        )
    };
    // A plugin that is new is let in with the hosts that it lists.
    w.tool("t", &version("\"localhost\"", "one"));
    assert_eq!(w.text("risky", json!({})), "one");
    w.tool("t", &version("\"localhost\", \"evil.example\"", "two"));
    assert_eq!(w.text("risky", json!({})), "one");
    let status = w.host.plugins().status("t").unwrap();
    let told = status.diagnostics[0].render();
    assert!(told.contains("lapidary grant t EXTERNAL_HTTP=evil.example"), "{told}");
    for grant in &lapidary::service::grants::Grant::parse("EXTERNAL_HTTP=evil.example").unwrap() {
        w.host.services().grants.grant("t", grant).unwrap();
    }
    w.host.plugins().grants_changed();
    assert_eq!(w.text("risky", json!({})), "two");
    // Fewer hosts, or others among those that it held, need no word.
    w.tool("t", &version("\"evil.example\"", "three"));
    assert_eq!(w.text("risky", json!({})), "three");
}

#[test]
fn a_version_that_waits_for_its_grant_waits_across_a_restart_too() {
    let w = World::with(|b| b.watching(Watching::Off).keep_history());
    let version = |asks: &str, says: &str| format!("{asks}/// A. Use it in tests.\nfn risky() {{ \"{says}\" }}\n");
    w.tool("t", &version("", "one"));
    w.write("user/tools/t.rhai", &version("const PERMISSIONS = [\"RUN_COMMANDS\"];\n", "two"));
    // A plugin that is new asks for nothing more than it did: it is there, and its tools say what they lack.
    w.write(
        "user/tools/new.rhai",
        "const PERMISSIONS = [\"RUN_COMMANDS\"];\n/// N. Use it in tests.\nfn fresh() { 1 }\n",
    );
    let again = w.again();
    assert_eq!(again.text("risky", json!({})), "one");
    let status = again.host.plugins().status("t").unwrap();
    assert!(status.status.starts_with("live 1, disk 2 waits for a yes"), "{}", status.status);
    assert!(status.diagnostics[0].render().contains("lapidary grant t RUN_COMMANDS"), "{:?}", status.diagnostics);
    assert_eq!(again.fails("fresh", json!({})).0, "permission_denied");
    for grant in &lapidary::service::grants::Grant::parse("RUN_COMMANDS").unwrap() {
        again.host.services().grants.grant("t", grant).unwrap();
    }
    again.host.plugins().grants_changed();
    assert_eq!(again.text("risky", json!({})), "two");
}

#[test]
fn two_hosts_on_one_root_lose_no_write() {
    let w = World::new();
    w.tool("t", "/// Counts. Use it in tests.\nfn count() { state::update(\"n\", 0, |v| v + 1) }\n");
    let other = lapidary::app::Host::builder()
        .root(w.dir.path())
        .shipped(lapidary::app::Shipped::LibraryOnly)
        .watching(Watching::Off)
        .start()
        .unwrap();
    std::thread::scope(|scope| {
        for host in [&w.host, &other] {
            scope.spawn(|| {
                for _ in 0..50 {
                    let call = lapidary::tool::dispatch::Call::new(
                        "count",
                        serde_json::Map::new(),
                        lapidary::tool::dispatch::Who::owner("test"),
                    );
                    assert!(host.call_now(call).ok);
                }
            });
        }
    });
    assert_eq!(w.host.services().state.get("t", "n").unwrap(), Some(json!(100)));
}
