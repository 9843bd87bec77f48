//! Rows of the behaviour list that need a whole host; each test names its row.

use crate::world::World;
use lapidary::tool::dispatch::{Call, Who};
use serde_json::{Value, json};

/// A form A file with one tool `name`, whose execute is `body`.
fn explicit(name: &str, flags: &str, body: &str) -> String {
    format!(
        r#"const TOOLS = [#{{ type: "function", {flags} function: #{{ name: "{name}", description: "Does a thing. Use it in tests.",
    parameters: #{{ type: "object", properties: #{{ n: #{{ type: "integer" }}, list: #{{ type: "array", items: #{{ type: "integer" }} }}, words: #{{ type: "array", items: #{{ type: "string" }} }}, flag: #{{ type: "boolean" }}, text: #{{ type: "string" }} }} }} }} }}];
fn execute(function_name, arguments, config) {{ {body} }}
"#
    )
}

#[test]
fn row_01_get_tools_that_throws_or_returns_nothing_falls_back_to_tools_and_is_reported() {
    for (name, body) in [("throws", "throw \"no\""), ("empty", "[]")] {
        let w = World::new();
        w.tool(name, &format!("{}\nfn get_tools() {{ {body} }}\n", explicit("thing", "", "\"ran\"")));
        assert_eq!(w.text("thing", json!({})), "ran", "{name}");
        let status = w.host.plugins().status(name).unwrap();
        assert!(
            status.warnings.iter().any(|d| d.message.contains("get_tools()") && d.line > 0),
            "{:?}",
            status.warnings
        );
    }
}

#[test]
fn row_04_a_collision_refuses_the_whole_second_plugin_and_names_the_owner() {
    let w = World::new();
    w.tool("first", &explicit("thing", "", "\"first\""));
    w.write("user/plugins/second/plugin.json", r#"{"name": "second", "version": "1", "description": "x"}"#);
    w.write("user/plugins/second/tools/a.rhai", &explicit("other", "", "1"));
    w.write("user/plugins/second/tools/b.rhai", &explicit("thing", "", "\"second\""));
    w.host.plugins().rescan();
    assert_eq!(w.text("thing", json!({})), "first");
    assert_eq!(w.fails("other", json!({})).0, "not_found");
    let status = w.host.plugins().status("second").unwrap();
    assert!(status.diagnostics[0].message.contains("`first`"), "{:?}", status.diagnostics);
    assert!(status.enabled);
    // When the owner goes, the refused one comes in.
    std::fs::remove_file(w.path("user/tools/first.rhai")).unwrap();
    w.host.plugins().rescan();
    assert_eq!(w.text("thing", json!({})), "second");
}

#[test]
fn row_05_and_07_toolset_words_reach_the_lists() {
    let w = World::new();
    w.tool("web", &format!("const TOOL_CATEGORY = \"web\";\n{}", explicit("fetch", "", "1")));
    w.tool("quiet", &explicit("secret", "hidden: true,", "1"));
    w.write("user/toolsets/toolsets.json", r#"{"mine": {"functions": ["secret", "gone"]}}"#);
    let names = |word: &str| -> Vec<String> { w.host.select(&[word.to_owned()]).unwrap().into_iter().collect() };
    assert_eq!(names("all"), ["fetch"]);
    assert_eq!(names("web"), ["fetch"]);
    assert_eq!(names("mine"), ["secret"]);
    assert!(names("none").is_empty());
    assert!(w.host.select(&["nonsense".to_owned()]).is_err());
    assert_eq!(w.text("secret", json!({})), "1");
}

#[test]
fn row_12_only_type_and_function_reach_the_wire() {
    let w = World::new();
    w.tool("t", &explicit("thing", "is_local: true, network: true, timeout_s: 3, usage: \"x\",", "1"));
    let snapshot = w.host.dispatcher().snapshot();
    let wire = snapshot.get("thing").unwrap().spec.wire();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(keys(&wire), ["function", "type"].map(str::to_owned).into());
    assert_eq!(keys(&wire["function"]), ["description", "name", "parameters"].map(str::to_owned).into());
}

#[test]
fn row_13_arguments_are_coerced_toward_declared_types() {
    let w = World::new();
    w.tool("t", &explicit("thing", "", "json::encode(arguments)"));
    let rows = [
        (json!({"n": "2"}), json!({"n": 2})),
        (json!({"n": "2.0"}), json!({"n": 2})),
        (json!({"list": "1,2,3"}), json!({"list": [1, 2, 3]})),
        (json!({"text": "12"}), json!({"text": "12"})),
        (json!({"flag": "yes"}), json!({"flag": true})),
    ];
    for (given, got) in rows {
        let text = w.text("thing", given.clone());
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), got, "{given}");
    }
    for bad in [json!({"n": "2.5"}), json!({"words": "a,b"}), json!({"flag": "maybe"})] {
        assert_eq!(w.fails("thing", bad.clone()).0, "invalid_arguments", "{bad}");
    }
}

#[test]
fn row_14_only_a_text_and_a_real_boolean_are_unpacked() {
    let rows = [
        ("\"bare\"", true, "bare"),
        ("[\"said\", true]", true, "said"),
        ("[\"said\", false]", false, "said"),
        ("[\"said\", 1]", true, "[\"said\",1]"),
        ("()", true, "(no output)"),
        ("#{ a: 1, b: [true] }", true, "{\"a\":1,\"b\":[true]}"),
        ("42", true, "42"),
        ("#{}", true, "{}"),
        ("[]", true, "[]"),
    ];
    for (body, ok, text) in rows {
        let w = World::new();
        w.tool("t", &explicit("thing", "", body));
        let outcome = w.call("thing", json!({}));
        assert_eq!((outcome.ok, outcome.text.contains(text)), (ok, true), "{body}: {}", outcome.text);
    }
}

#[test]
fn row_15_an_exception_names_the_tool_and_the_host_goes_on() {
    let w = World::new();
    w.tool("t", &explicit("thing", "", "throw \"broken pipe\""));
    let (code, text) = w.fails("thing", json!({}));
    assert_eq!(code, "internal");
    assert!(text.contains("thing") && text.contains("broken pipe"), "{text}");
    assert_eq!(w.fails("thing", json!({})).0, "internal");
}

#[test]
fn row_16_execute_gets_exactly_what_it_declares() {
    let rows = [
        ("fn execute(n, a, c) { `${n} ${a.len()} ${c.version.len() > 0}` }", "thing 0 true"),
        ("const SETTINGS = #{ k: 7 };\nfn execute(n, a, c, s) { `${s.k}` }", "7"),
        ("fn execute(n, a, c, s, cred) { try { cred.get(\"x\") } catch (e) { e.code } }", ""),
    ];
    for (text, wanted) in rows {
        let w = World::new();
        let head = explicit("thing", "", "1");
        let head = head.split("fn execute").next().unwrap();
        w.tool("t", &format!("{head}\n{text}"));
        let got = w.text("thing", json!({}));
        assert!(wanted.is_empty() || got == wanted, "{text}: {got}");
    }
    for count in [2, 6] {
        let w = World::new();
        let head = explicit("thing", "", "1");
        let params = ["a", "b", "c", "d", "e", "f"][..count].join(", ");
        w.tool("t", &format!("{}\nfn execute({params}) {{ 1 }}", head.split("fn execute").next().unwrap()));
        let status = w.host.plugins().status("t").unwrap();
        assert!(status.diagnostics[0].message.contains("takes 3, 4 or 5"), "{:?}", status.diagnostics);
        assert!(status.diagnostics[0].line > 1);
    }
}

#[test]
fn row_17_a_private_chat_runs_only_local_tools() {
    let rows = [
        ("is_local: true,", false, true),
        ("is_local: false,", true, false),
        ("is_local: \"endpoint\",", true, false),
        ("", false, false),
        ("", true, true),
    ];
    for (flags, allow, runs) in rows {
        let toml = format!("[privacy]\nallow_unflagged_tools = {allow}\n");
        let w = World::prepared(
            |root| std::fs::write(root.join("user/lapidary.toml"), toml).unwrap(),
            |b| b.watching(lapidary::app::Watching::Off),
        );
        w.tool("t", &explicit("thing", flags, "1"));
        let mut who = Who::owner("test");
        who.private = true;
        let outcome = w.host.call_now(Call::new("thing", serde_json::Map::new(), who));
        assert_eq!(outcome.ok, runs, "{flags} {allow}: {}", outcome.text);
    }
}

#[test]
fn row_18_a_refusal_for_availability_lists_at_most_ten_alternatives() {
    let w = World::new();
    w.tool("t", &explicit("thing", "", "1"));
    let mut who = Who::owner("test");
    who.allowed = Some(std::sync::Arc::new((0..30).map(|i| format!("tool_{i:02}")).collect()));
    let outcome = w.host.call_now(Call::new("thing", serde_json::Map::new(), who));
    assert_eq!(outcome.error.as_ref().map(|e| e.code()), Some("disabled"), "{}", outcome.text);
    assert_eq!(outcome.text.matches("tool_").count(), 10, "{}", outcome.text);
}

#[test]
fn row_20_a_plugin_that_loads_while_all_is_active_is_callable_at_once() {
    let w = World::new();
    let all = || w.host.select(&["all".to_owned()]).unwrap();
    assert!(all().is_empty());
    w.tool("t", &explicit("thing", "", "1"));
    assert!(all().contains("thing"));
    assert_eq!(w.text("thing", json!({})), "1");
}

#[test]
fn row_23_empty_arguments_are_an_object_and_bad_ones_never_run() {
    use lapidary::tool::dispatch::Arguments;
    let w = World::new();
    w.tool("t", &explicit("thing", "", "state::save(\"ran\", true); json::encode(arguments)"));
    let call = |text: &str| {
        let mut call = Call::new("thing", serde_json::Map::new(), Who::owner("test"));
        call.arguments = Arguments::Text(text.to_owned());
        w.host.call_now(call)
    };
    for bad in [
        "\"foo\"",
        "[1]",
        "7",
        "true",
        "{\"n\": ",
        "{n: 1}",
        "{\"n\": 92233720368547758080}",
        "{\"text\": \"\\ud800\"}",
    ] {
        let outcome = call(bad);
        assert_eq!(outcome.error.as_ref().map(|e| e.code()), Some("invalid_arguments"), "{bad}: {}", outcome.text);
    }
    assert!(!w.path("user/plugin_state/t.json").exists());
    for empty in ["", "  ", "null", "{}"] {
        assert_eq!(call(empty).text, "{}", "{empty:?}");
    }
}

#[test]
fn row_45_settings_merge_a_switch_survives_a_restart_and_one_bad_plugin_never_stops_the_others() {
    use lapidary::plugin::set::Switch;
    let w = World::new();
    w.tool("good", &explicit("thing", "", "1"));
    w.tool("bad", "fn (");
    w.tool("late", &explicit("later", "", "2"));
    assert_eq!((w.text("thing", json!({})), w.text("later", json!({}))), ("1".into(), "2".into()));
    w.host.plugins().switch("good", Switch::Off).unwrap();
    assert!(w.fails("thing", json!({})).1.contains("lapidary enable good") || w.status("good") == "off");
    let again =
        lapidary::app::Host::builder().root(w.dir.path()).watching(lapidary::app::Watching::Off).start().unwrap();
    assert_eq!(again.plugins().status("good").unwrap().status, "off");
    assert_eq!(again.plugins().status("late").unwrap().live, Some(1));
}
