//! A saved script is a live tool: reload, last good, settings refresh, as rows of the behaviour list and as promises.

use crate::world::{World, until};
use lapidary::plugin::tune::{Change, Mode};
use serde_json::json;

const DICE: &str = r#"//! Dice.
/// Roll dice and add them up. Use it when somebody asks for a roll.
///
/// @param {integer 2..1000} sides=6 - Sides on each die.
/// @param {integer 1..100} count=1 - How many dice.
/// @local
fn roll(sides, count) { `v1 ${sides}x${count}` }
"#;

const DYNAMIC: &str = r#"
const SETTINGS = #{ NAME: "" };
const TOOLS = [];
fn get_tools() {
  let d = "Generate an image.";
  let name = settings::get("NAME");
  if name == "throw" { throw "no"; }
  if name != () && name != "" { d += ` Write '${name}' for yourself.`; }
  [#{ type: "function", is_local: true, function: #{ name: "generate", description: d, parameters: #{ type: "object", properties: #{}, required: [] } } }]
}
fn execute(function_name, arguments, config, plugin_settings) { [`settings ${plugin_settings.NAME}`, true] }
"#;

#[test]
fn a_documented_function_is_a_tool_and_an_edit_is_live_at_the_next_call() {
    let w = World::new();
    w.tool("dice", DICE);
    assert_eq!(w.text("roll", json!({"sides": 20})), "v1 20x1");
    assert_eq!(w.status("dice"), "live 1");
    w.tool("dice", &DICE.replace("v1", "v2"));
    assert_eq!(w.text("roll", json!({"sides": "20"})), "v2 20x1");
    assert_eq!(w.call("roll", json!({})).generation, 2);
}

#[test]
fn row_45_a_broken_edit_keeps_the_last_good_and_says_where() {
    let w = World::new();
    w.tool("dice", DICE);
    w.tool("dice", &DICE.replace("`v1", "("));
    assert_eq!(w.text("roll", json!({})), "v1 6x1");
    let status = w.host.plugins().status("dice").unwrap();
    assert!(status.status.starts_with("live 1, disk 2 failed: 7:"), "{}", status.status);
    let shown = status.diagnostics[0].render();
    assert!(shown.contains("user/tools/dice.rhai:7:") && shown.contains('^'), "{shown}");
    w.tool("dice", &DICE.replace("v1", "v3"));
    assert_eq!(w.status("dice"), "live 3");
    assert_eq!(w.text("roll", json!({})), "v3 6x1");
}

#[test]
fn a_saved_file_goes_live_by_itself_and_a_deleted_one_goes() {
    let w = World::watching();
    w.write("user/tools/dice.rhai", DICE);
    until("the new file is live", || w.call("roll", json!({})).ok);
    w.write("user/tools/dice.rhai", &DICE.replace("v1", "v2"));
    until("the edit is live", || w.text("roll", json!({})).starts_with("v2"));
    std::fs::remove_file(w.path("user/tools/dice.rhai")).unwrap();
    until("the tool is gone", || !w.call("roll", json!({})).ok);
}

#[test]
fn row_02_a_settings_save_refreshes_the_description_in_place() {
    let w = World::new();
    w.tool("gen", DYNAMIC);
    assert_eq!(w.description("generate"), "Generate an image.");
    let patch = Change::Patch(json!({"NAME": "Ruby"}).as_object().unwrap().clone());
    let seen = w.host.plugins().tune("gen", &patch, Mode::Preview, None).unwrap();
    assert!(seen.tools[0].description.contains("+Generate an image. Write 'Ruby'"), "{:?}", seen.tools);
    assert_eq!(w.description("generate"), "Generate an image.");
    w.host.plugins().tune("gen", &patch, Mode::Commit, None).unwrap();
    assert!(w.description("generate").contains("Ruby"));
    assert_eq!(w.text("generate", json!({})), "settings Ruby");
    assert_eq!(w.status("gen"), "live 1");
}

#[test]
fn row_03_get_tools_that_throws_refuses_the_save_and_changes_nothing() {
    let w = World::new();
    w.tool("gen", DYNAMIC);
    let patch = Change::Patch(json!({"NAME": "throw"}).as_object().unwrap().clone());
    let e = w.host.plugins().tune("gen", &patch, Mode::Commit, None).unwrap_err();
    assert!(e.message().contains("get_tools() failed"), "{e}");
    assert_eq!(w.text("generate", json!({})), "settings ");
    // By hand, the file is as it is; the old schema stays and the status names the file.
    w.write("user/webui/plugins/gen.json", r#"{"NAME": "throw"}"#);
    w.host.plugins().settings_changed_on_disk("gen");
    assert_eq!(w.description("generate"), "Generate an image.");
    let status = w.host.plugins().status("gen").unwrap();
    assert!(status.warnings.iter().any(|d| d.message.contains("user/webui/plugins/gen.json")), "{:?}", status.warnings);
}

#[test]
fn the_last_good_version_answers_after_a_restart_too() {
    let w = World::with(|b| b.watching(lapidary::Watching::Off).keep_history());
    w.tool("dice", DICE);
    w.host.stop();
    w.write("user/tools/dice.rhai", "fn (");
    let again = || {
        let host = lapidary::Host::builder().root(w.dir.path()).watching(lapidary::Watching::Off);
        host.shipped(lapidary::Shipped::LibraryOnly).start().unwrap()
    };
    let host = again();
    let call = |host: &lapidary::Host| {
        host.call_now(lapidary::Call::new("roll", serde_json::Map::new(), lapidary::Who::owner("test")))
    };
    assert_eq!(call(&host).text, "v1 6x1");
    let status = host.plugins().status("dice").unwrap();
    assert!(status.status.starts_with("live 1, disk 2 failed: 1:"), "{}", status.status);
    // Mended to what it was, it is that version; mended otherwise, it is a new one.
    w.write("user/tools/dice.rhai", DICE);
    host.plugins().refresh(&["dice".into()]);
    assert_eq!(host.plugins().status("dice").unwrap().status, "live 1");
    w.write("user/tools/dice.rhai", &DICE.replace("v1", "v3"));
    host.plugins().refresh(&["dice".into()]);
    assert_eq!(call(&host).text, "v3 6x1");
    // A damaged version is no good one.
    w.write("user/tools/dice.rhai", "fn (");
    std::fs::write(w.path("user/history/dice/1/files/dice.rhai"), "fn roll() { 1 }").unwrap();
    assert!(!call(&again()).ok);
}

#[test]
fn a_save_that_would_leave_no_tool_or_a_bad_one_is_refused() {
    let w = World::new();
    let text = DYNAMIC.replace(
        "if name == \"throw\"",
        "if name == \"empty\" { return []; } if name == \"shape\" { return [#{}]; } if name == \"throw\"",
    );
    w.tool("gen", &text);
    let save = |value: &str| {
        let patch = Change::Patch(json!({ "NAME": value }).as_object().unwrap().clone());
        w.host.plugins().tune("gen", &patch, Mode::Commit, None)
    };
    for value in ["empty", "shape", "throw"] {
        let e = save(value).unwrap_err();
        assert!(e.message().contains("refused"), "{value}: {e}");
    }
    assert!(save("Ruby").is_ok());
    assert_eq!(w.text("generate", json!({})), "settings Ruby");
}

#[test]
fn settings_that_keep_a_plugin_from_loading_can_be_taken_back() {
    let w = World::new();
    w.write("user/webui/plugins/gen.json", r#"{"NAME": "throw"}"#);
    w.tool("gen", DYNAMIC);
    assert!(!w.call("generate", json!({})).ok);
    let tuned = w.host.plugins().tune("gen", &Change::Reset(Vec::new()), Mode::Commit, None).unwrap();
    assert!(tuned.committed);
    assert_eq!(w.text("generate", json!({})), "settings ");
}

#[test]
fn a_permission_that_a_tool_names_is_declared_by_naming_it() {
    let w = World::new();
    w.tool("t", "/// Reads. Use it in tests.\n/// @permission READ_FILES\nfn reads() { 1 }\n");
    assert_eq!(w.text("reads", json!({})), "1");
}

#[test]
fn a_thrown_text_is_shaped_like_a_returned_one() {
    let w = World::new();
    w.tool("t", "/// Throws. Use it in tests.\nfn long() { let s = \"\"; s.pad(1000000, \"x y\"); throw s }\n/// Throws. Use it in tests.\nfn raw() { let s = \"\"; s.pad(66000, \"QUJD\"); throw failure(#{ code: \"conflict\", message: s, hint: s }) }\n");
    for tool in ["long", "raw"] {
        let outcome = w.call(tool, json!({}));
        assert!(!outcome.ok && outcome.text.len() < 10_000, "{tool}: {} characters", outcome.text.len());
        assert!(outcome.error.unwrap().message().len() < 5_000, "{tool}");
        assert!(!outcome.text.contains(&"QUJD".repeat(1025)), "{tool}");
    }
}
