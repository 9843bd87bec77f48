//! Golden schemas, and tests that run again at each save.

use crate::servers::{Server, answer};
use crate::shell::Shell;
use serde_json::{Value, json};

const TEA: &str = "/// Steep tea. Use it when someone is thirsty.\n///\n/// @param {integer 1..9} minutes=3 - How long.\n/// @local\nfn steep(minutes) { `${minutes} minutes` }\n";

#[test]
fn a_change_that_a_model_would_see_fails_until_it_is_accepted() {
    let sh = Shell::new();
    let golden = "user/tools/tests/golden/tea.json";
    sh.write("user/tools/tea.rhai", TEA);
    sh.run(&["test"]).ends(0).says("0 passed, 0 failed");
    assert!(!sh.path(golden).exists(), "nothing is written unasked");
    sh.run(&["test", "--update"]).ends(0).says("user/tools/tests/golden/tea.json written: 1 tool");
    let page: Value = serde_json::from_str(&sh.read(golden)).unwrap();
    let tool = &page["tools"][0];
    assert_eq!((&page["format"], &tool["name"]), (&json!(1), &json!("steep")), "{page:#}");
    assert_eq!(tool["description"][0], "Steep tea. Use it when someone is thirsty.");
    assert_eq!(tool["input_schema"]["properties"]["minutes"]["maximum"], 9);
    assert_eq!(tool["annotations"], json!({"read_only": true, "destructive": false, "open_world": false}));
    sh.run(&["test"]).ends(0).says("ok      golden schemas").says("1 passed, 0 failed");
    let before = sh.read(golden);
    sh.run(&["test", "--update"]).ends(0);
    assert_eq!(sh.read(golden), before);
    // What a model does not see is free to change.
    sh.write("user/tools/tea.rhai", TEA.replace("`${minutes} minutes`", "\"soon\""));
    sh.run(&["test"]).ends(0);
    sh.write("user/tools/tea.rhai", TEA.replace("1..9", "1..10").replace("@local", "@writes"));
    sh.run(&["test"])
        .ends(1)
        .says("FAILED  golden schemas")
        .says("what a model sees of `steep` has changed")
        .says("\"maximum\": 9")
        .says("\"maximum\": 10")
        .says("\"destructive\": true")
        .says("lapidary test --update tea");
    sh.run(&["test", "--update", "tea"]).ends(0);
    sh.run(&["test"]).ends(0);
    sh.write(golden, "{\n\"format\": 1,\n]");
    sh.run(&["test"]).ends(1).says("user/tools/tests/golden/tea.json:3:");
    sh.write(golden, "{\"format\": 2, \"tools\": []}");
    sh.run(&["test"]).ends(1).says("format 2");
}

#[test]
fn golden_schemas_are_those_of_the_defaults_whatever_a_person_has_set() {
    let sh = Shell::new();
    sh.write("user/plugins/tea/plugin.json", r#"{"name": "tea", "description": "Tea.", "capabilities": {"tools": ["tools/tea.rhai"], "settings": [{"key": "house", "type": "string", "default": "mint"}]}}"#);
    sh.write("user/plugins/tea/tools/tea.rhai", "fn get_tools() { let house = settings::get(\"house\"); [#{ type: \"function\", is_local: true, function: #{ name: \"steep\", description: `Steep ${house} tea. Use it when someone is thirsty.`, parameters: #{ type: \"object\", properties: #{} } } }] }\nfn execute(name, arguments, config) { \"done\" }\n");
    sh.run(&["test", "--update"]).ends(0);
    let golden = sh.read("user/plugins/tea/tests/golden/tea.json");
    assert!(golden.contains("Steep mint tea"), "{golden}");
    sh.run(&["settings", "set", "tea", "house", "sage"]).ends(0);
    sh.run(&["test"]).ends(0).says("1 passed");
    sh.run(&["test", "--update"]).ends(0);
    assert_eq!(sh.read("user/plugins/tea/tests/golden/tea.json"), golden);
}

#[test]
fn watching_excludes_what_writes() {
    let sh = Shell::new();
    sh.run(&["test", "--watch", "--record"]).ends(2);
    sh.run(&["test", "--watch", "--update"]).ends(2);
    sh.run(&["test", "--watch", "--json"]).ends(2);
}

#[cfg(unix)]
#[test]
fn a_save_runs_what_it_concerns_again_and_the_end_tells_the_last_results() {
    let server = Server::http(|_| answer("200 OK", "", b"hello"));
    let sh = Shell::new();
    sh.write("user/tools/tea.rhai", TEA);
    sh.write("user/tools/tests/tea.rhai", "fn test_tea() { assert_eq(tools::run(\"steep\", #{}), \"3 minutes\"); }");
    sh.write("user/tools/cup.rhai", format!("const PERMISSIONS = [#{{ EXTERNAL_HTTP: [\"127.0.0.1\"] }}];\n/// Fill. Use it when a cup is empty.\nfn fill() {{ net::get(\"{}\").text }}\n", server.url("/")));
    sh.write("user/tools/tests/cup.rhai", "fn test_cup() { assert_eq(tools::run(\"fill\", #{}), \"hello\"); }");
    let running = sh.start(&["test", "--watch"]);
    running.until("1 passed, 1 failed");
    running.until("watching");
    // Its recording is what the test waits for.
    let page =
        json!({"format": 1, "exchanges": [{"request": {"url": server.url("/")}, "response": {"text": "hello"}}]});
    sh.write("user/tools/tests/recorded/cup.json", page.to_string());
    running.until("changed: user/tools/tests/recorded");
    let seen = running.until("ok      test_cup");
    assert!(!seen.iter().any(|l| l.contains("test_tea")), "{seen:?}");
    // A tool, its test, and a plugin that was not there.
    sh.write("user/tools/tea.rhai", TEA.replace("minutes=3", "minutes=4"));
    // A folder that is new may be told of twice, so another test may run beside the one that this is about.
    running.until("changed: user/tools/tea.rhai");
    running.until("FAILED  test_tea");
    sh.write("user/tools/tests/tea.rhai", "fn test_tea() { assert_eq(tools::run(\"steep\", #{}), \"4 minutes\"); }");
    running.until("ok      test_tea");
    sh.write(
        "user/plugins/pot/plugin.json",
        r#"{"name": "pot", "description": "A pot.", "capabilities": {"tools": ["tools/pot.rhai"]}}"#,
    );
    sh.write(
        "user/plugins/pot/tools/pot.rhai",
        "/// Heat. Use it when water is cold.\n/// @local\n/// @example {} => /cold/\nfn heat() { \"hot\" }\n",
    );
    running.until("example heat {}");
    running.interrupt();
    assert_eq!(running.end(), 1, "the pot fails still");
    assert!(server.seen().is_empty());
}
