//! What a model would read, before anything is saved: in every dialect, under other settings, with nothing live touched.

use crate::shell::Shell;
use crate::world::World;
use lapidary::Kind;
use lapidary::app::{Shipped, Watching};
use lapidary::plugin::preview::{Look, Preview};
use lapidary::plugin::tune::Change;
use lapidary::tool::dialect::{Dialect, define_all};
use serde_json::{Map, Value, json};

fn shipped() -> World {
    World::with(|b| b.watching(Watching::Off).shipped(Shipped::All))
}

fn change(settings: Value) -> Option<Change> {
    let Value::Object(map) = settings else { panic!("settings are an object") };
    Some(Change::Patch(map))
}

fn look(w: &World, name: &str, dialect: Dialect, settings: Option<Value>) -> Preview {
    w.host.preview(name, &Look { dialect, change: settings.and_then(change) }).unwrap()
}

/// Everything a reader of the live state could notice.
fn live(w: &World, plugin: &str) -> (u64, Vec<String>, Map<String, Value>, String, u64) {
    let snapshot = w.host.dispatcher().snapshot();
    let tools = snapshot.iter().map(|t| t.spec.wire().to_string()).collect();
    let view = w.host.plugins().settings_view(plugin).unwrap();
    let generation = w.host.plugins().status(plugin).unwrap().live.unwrap_or_default();
    (snapshot.revision, tools, view.values, view.etag, generation)
}

#[test]
fn a_preview_of_the_clock_shows_what_its_settings_would_change_and_nothing_live_changes() {
    let w = shipped();
    let before = live(&w, "clock");
    let mut events = w.host.events();
    for dialect in Dialect::ALL {
        let settings = json!({ "home": "Europe/Prague", "places": ["office = America/New_York"] });
        let shown = look(&w, "clock", dialect, Some(settings));
        assert_eq!((shown.plugin.as_str(), shown.tools.len()), ("clock", 3), "{dialect}");
        let now = &shown.tools[0];
        assert_eq!(now.definition.tool, "clock_now");
        for line in ["-Tell the date", "+Tell the date"] {
            let wanted =
                if dialect == Dialect::Plain { line.replace("Tell", "clock_now: Tell") } else { line.to_owned() };
            assert!(now.diff.lines().any(|l| l.starts_with(&wanted)), "{dialect}: {}", now.diff);
        }
        assert!(
            now.diff.contains("home (Europe/Prague)") && now.diff.contains("office (America/New_York)"),
            "{dialect}"
        );
        assert!(now.definition.definition.to_string().contains("Europe/Prague"), "{dialect}");
        assert!(now.definition.tokens > now.tokens_before && shown.tokens > shown.tokens_before, "{dialect}");
        // Its description names no zone.
        assert_eq!((shown.tools[2].definition.tool.as_str(), shown.tools[2].diff.as_str()), ("clock_difference", ""));
        assert_eq!(shown.settings.as_ref().unwrap()["home"], "Europe/Prague");
        assert_eq!(shown.etag.as_deref(), Some(before.3.as_str()));
        assert!(shown.changes_something());
    }
    assert_eq!(live(&w, "clock"), before);
    assert!(!w.path("user/webui/plugins/clock.json").exists(), "something was saved");
    assert!(events.try_recv().is_err(), "somebody was told of a preview");
    assert!(w.text("clock_now", json!({})).contains("in UTC"));
    // What was shown is what a save brings.
    let shown = look(&w, "clock_now", Dialect::Anthropic, Some(json!({ "home": "Asia/Tokyo" })));
    let etag = shown.etag.clone().unwrap();
    let Some(patch) = change(json!({ "home": "Asia/Tokyo" })) else { panic!() };
    w.host.plugins().tune("clock", &patch, lapidary::plugin::tune::Mode::Commit, Some(&etag)).unwrap();
    assert_eq!(look(&w, "clock_now", Dialect::Anthropic, None).tools[0].definition, shown.tools[0].definition);
}

#[test]
fn a_preview_is_refused_as_a_save_would_be_and_then_nothing_changes_either() {
    let w = shipped();
    let before = live(&w, "clock");
    let rows = [
        (json!({ "home": "Mars/Olympus" }), "Mars/Olympus"),
        (json!({ "places": ["nonsense"] }), "nonsense"),
        (json!({ "hoem": "UTC" }), "hoem"),
        (json!({ "home": { "a": 1 } }), "home"),
    ];
    for (settings, word) in rows {
        let look = Look { dialect: Dialect::OpenAi, change: change(settings.clone()) };
        let error = w.host.preview("clock", &look).unwrap_err();
        assert_eq!(error.kind(), Kind::InvalidArguments, "{settings}: {error:?}");
        assert!(error.message().contains(word), "{settings}: {error:?}");
        let Some(patch) = look.change else { panic!() };
        assert!(w.host.plugins().tune("clock", &patch, lapidary::plugin::tune::Mode::Preview, None).is_err());
    }
    assert_eq!(live(&w, "clock"), before);
}

#[test]
fn without_a_change_a_preview_is_what_models_read_now() {
    let w = shipped();
    let shown = look(&w, "clock", Dialect::Gemini, None);
    assert!(!shown.changes_something() && shown.settings.is_none() && shown.etag.is_none());
    assert_eq!(shown.tokens, shown.tokens_before);
    let one = look(&w, "clock_convert", Dialect::Gemini, None);
    assert_eq!(one.tools.len(), 1);
    assert_eq!(one.tools[0].definition, shown.tools[1].definition);
    // A plugin that is called like its tool.
    assert_eq!(look(&w, "web_search", Dialect::Plain, None).tools.len(), 1);
    for (name, hint) in [("clok_now", "clock_now"), ("clok", "clock"), ("zzzzzz", "lapidary tools")] {
        let error = w.host.preview(name, &Look::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::NotFound);
        assert!(error.message().contains(name) && error.hint_text().unwrap_or_default().contains(hint), "{error:?}");
    }
}

#[test]
fn every_shipped_tool_has_a_definition_that_each_provider_takes() {
    let w = shipped();
    let snapshot = w.host.dispatcher().snapshot();
    for dialect in Dialect::ALL {
        let (made, names) = define_all(snapshot.iter().map(|t| &*t.spec), dialect);
        assert_eq!(made.len(), snapshot.iter().count());
        for definition in made {
            assert_eq!(definition.notes, Vec::<String>::new(), "{dialect} {}", definition.tool);
            assert_eq!(names.tool(&definition.name), Some(definition.tool.as_str()));
            assert_eq!(definition.name, definition.tool);
            assert!(definition.tokens > 10, "{dialect} {}", definition.tool);
        }
    }
}

#[test]
fn a_setting_that_switches_a_tool_off_shows_in_a_preview() {
    let w = World::new();
    w.tool(
        "lamp",
        "const SETTINGS = #{ on: true, secret_key: \"\" };\nconst SETTINGS_GATED = #{ shine: \"on\" };\n/// Shine. Use it in the dark.\n/// @local\nfn shine() { 1 }\n/// Hide. Use it never.\n/// @hidden\n/// @local\nfn hide() { 1 }\n",
    );
    let shown = look(&w, "lamp", Dialect::OpenAi, Some(json!({ "on": false })));
    let offered: Vec<(&str, bool, bool)> =
        shown.tools.iter().map(|t| (t.definition.tool.as_str(), t.offered_before, t.offered)).collect();
    assert_eq!(offered, [("shine", true, false), ("hide", false, false)]);
    assert!(shown.changes_something() && shown.tokens == 0 && shown.tokens_before > 0);
    assert!(w.call("shine", json!({})).ok);
    w.host.plugins().switch("lamp", lapidary::plugin::set::Switch::Off).unwrap();
    let error = w.host.preview("lamp", &Look::default()).unwrap_err();
    assert_eq!(error.kind(), Kind::Disabled);
}

const PAINTER: &str = r#"const SETTINGS = #{ name: "" };
fn get_tools() {
    let name = settings::get("name");
    if name == "boom" { throw "no such painter"; }
    let d = "Paint a picture. Use it when someone asks for one.";
    if name != "" { d += "\n" + `Sign it '${name}'.`; }
    [#{ type: "function", is_local: true, function: #{ name: "paint", description: d, parameters: #{ type: "object",
        properties: #{ size: #{ type: "array", prefixItems: [#{ type: "integer" }, #{ type: "integer" }], description: "How large." } }, required: ["size"] } } }]
}
const TOOLS = get_tools();
fn execute(function_name, arguments, config, plugin_settings) { `signed ${plugin_settings.name}` }
"#;

#[test]
fn the_command_line_shows_a_tool_as_its_provider_gets_it() {
    let sh = Shell::new();
    sh.write("user/tools/painter.rhai", PAINTER);
    let shown = sh.run(&["preview", "paint"]).ends(0);
    assert!(shown.out.starts_with("paint of painter as openai: about "), "{shown:?}");
    assert!(
        shown.out.contains("\"type\": \"function\"") && shown.out.contains("strict mode could not hold"),
        "{shown:?}"
    );
    let shown = sh.run(&["preview", "painter", "--dialect", "gemini", "--json"]).ends(0).json();
    assert_eq!(
        shown["tools"][0]["definition"]["parameters"]["properties"]["size"],
        json!({ "type": "ARRAY", "description": "How large (in this order: whole number, then whole number).", "items": { "type": "INTEGER" } })
    );
    assert_eq!((&shown["dialect"], &shown["tools"][0]["name"]), (&json!("gemini"), &json!("paint")));
    sh.run(&["preview", "paint", "--dialect", "plain"])
        .ends(0)
        .says("paint: Paint a picture.")
        .says("- size (list, required): How large");
    let shown = sh
        .run(&["preview", "paint", "--set", "name=Ruby"])
        .ends(0)
        .says("more (preview, nothing is saved)")
        .says("+Sign it 'Ruby'.");
    assert!(!shown.out.contains("size"), "only what changes and what is near it is shown: {shown:?}");
    sh.run(&["preview", "painter", "--set", "name="]).ends(0).says("stays as it is");
    sh.run(&["preview", "painter", "--set", "name=boom"]).ends(1).complains("no such painter");
    sh.run(&["preview", "painter", "--set", "nmae=x"]).ends(1).complains("nmae");
    sh.run(&["preview", "pant"]).ends(1).complains("did you mean paint");
    assert_eq!(sh.run(&["settings", "get", "painter", "name"]).out, "\n");
    let listed = sh.run(&["tools", "--json", "--provider", "anthropic"]).ends(0).json();
    assert_eq!(listed[0]["input_schema"]["properties"]["size"]["prefixItems"][1], json!({ "type": "integer" }));
    let listed = sh.run(&["tools", "--json", "--provider", "plain"]).ends(0).json();
    assert!(listed[0].as_str().unwrap().starts_with("paint: Paint"), "{listed}");
}
