//! What manifests say, what is wrong with bad ones, and that the schema for editors says the same.
#![allow(clippy::unwrap_used)]

use super::{Capabilities, KEYS, LATER, Limits, Manifest, Severity};
use crate::script::control::Budget;
use crate::service::permissions::Permission;
use serde_json::{Value, json};

const FILE: &str = "user/plugins/weather/plugin.json";

fn good(text: &str) -> (Manifest, Vec<String>) {
    let (manifest, notes) = Manifest::parse(text, FILE, "weather").unwrap_or_else(|e| panic!("{text}: {e:#?}"));
    (manifest, notes.iter().map(|d| format!("{:?} {}", d.severity, d.summary())).collect())
}

/// The errors of `text`, one line each, with the hint.
fn bad(text: &str) -> Vec<String> {
    match Manifest::parse(text, FILE, "weather") {
        Ok(_) => panic!("accepted: {text}"),
        Err(found) => found
            .iter()
            .filter(|d| d.severity == Severity::Error)
            .map(|d| {
                assert_eq!((d.code.as_str(), d.file.as_str()), ("manifest", FILE));
                format!("{}:{} {} ({})", d.line, d.column, d.message, d.hint.as_deref().unwrap_or(""))
            })
            .collect(),
    }
}

fn with(rest: Value) -> Value {
    let mut map = json!({ "name": "weather" });
    map.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    map
}

/// A manifest with everything in it, the agent kind as the guide to agents has it.
fn everything() -> Value {
    serde_json::from_str(
        r#"{
        "$schema": "../../../docs/ref/plugin.schema.json",
        "name": "weather",
        "short_display_name": "Weather",
        "display_name": "Weather watcher",
        "short_name": "wx",
        "version": "1.2.0",
        "description": "Forecasts, and a watcher for them.",
        "author": "A. Person",
        "url": "https://example.org/weather",
        "icon": "icon.png",
        "emoji": "⛅",
        "priority": 60,
        "default_enabled": false,
        "privacy_aware": true,
        "requires_plugins": ["clock"],
        "id": "people.weather",
        "aliases": ["wx", "people.forecast"],
        "permissions": ["READ_NOTES", { "EXTERNAL_HTTP": ["api.example.org", "*.example.net"] }, { "USE_SECRETS": ["weather"] }],
        "side_effects": true,
        "injects_context": true,
        "api_version": 1,
        "migrate": "migrate_settings",
        "limits": { "timeout_s": 60, "operations": 1000000, "memory_mb": 32, "result_chars": 5000 },
        "capabilities": {
            "tools": ["tools/forecast.rhai", "tools/more/radar.rhai"],
            "settings": [
                { "key": "city", "type": "string", "label": "City", "default": "Oslo", "help": "Where you are" },
                { "key": "unit", "default": "C", "widget": "select", "options": [{ "label": "Celsius", "value": "C" }, "F"] },
                { "key": "hours", "type": "number", "default": 6 },
                { "key": "wipe", "type": "boolean", "default": false, "confirm": { "values": [true], "warnings": ["All gone"] } },
                { "key": "stations", "type": "list", "options_endpoint": "stations", "data_key": "list", "value_field": "id" }
            ],
            "scopes": [
                { "key": "weather", "label": "Weather account", "endpoint": "/api/plugin/weather/accounts", "data_key": "accounts" },
                { "key": "radar", "default": null },
                { "key": "home", "default": "mine" }
            ],
            "cleanup_paths": ["user/plugin_state/weather-cache", "plugin_state/weather_log.db"],
            "agents": [{
                "kind": "weather_watch", "label": "Weather watcher", "icon": "⛅",
                "description": "watches a forecast and reports when it changes",
                "module": "agent_kind.rhai", "cloud": true, "conversational": false,
                "spawn_schema": [
                    { "key": "city", "type": "string", "label": "City", "help": "the city to watch" },
                    { "key": "hours", "type": "number", "label": "Hours", "default": 6 }
                ],
                "names": ["Cirrus", "Nimbus", "Stratus"]
            }],
            "routes": [{ "path": "accounts", "handler": "routes/accounts.rhai:list" }],
            "hooks": {},
            "voice_commands": [{ "triggers": ["weather"] }]
        }
    }"#,
    )
    .unwrap()
}

#[test]
fn everything_that_a_manifest_can_say_is_read() {
    let (m, notes) = good(&everything().to_string());
    assert!(notes.is_empty(), "{notes:#?}");
    assert_eq!((m.name.as_str(), m.version.as_deref(), m.priority), ("weather", Some("1.2.0"), 60));
    assert!(!m.default_enabled && m.privacy_aware && m.side_effects && m.injects_context);
    assert_eq!(
        (m.id.as_deref(), m.migrate.as_deref(), m.api_version),
        (Some("people.weather"), Some("migrate_settings"), 1)
    );
    assert_eq!(m.aliases, ["wx", "people.forecast"]);
    assert_eq!(m.requires_plugins, ["clock"]);
    assert_eq!(m.permissions.permissions(), [Permission::ReadNotes, Permission::ExternalHttp, Permission::UseSecrets]);
    let c = &m.capabilities;
    assert_eq!(c.tools.as_deref().unwrap(), ["tools/forecast.rhai", "tools/more/radar.rhai"]);
    assert_eq!(c.settings.len(), 5);
    let scopes: Vec<_> = c.scopes.iter().map(|s| (s.key.as_str(), s.label.as_str(), s.default.as_deref())).collect();
    assert_eq!(
        scopes,
        [("weather", "Weather account", Some("default")), ("radar", "radar", None), ("home", "home", Some("mine"))]
    );
    assert_eq!(c.cleanup_paths, ["user/plugin_state/weather-cache", "user/plugin_state/weather_log.db"]);
    assert_eq!(c.inactive, ["agents", "voice_commands"], "what is empty brings nothing");
    assert_eq!(c.later["agents"][0]["names"][2], "Stratus");
    let budget = m.limits.budget();
    assert_eq!((budget.deadline.as_secs(), budget.operations, budget.memory), (60, 1_000_000, 32 << 20));
    assert_eq!(m.limits.result_chars(), 5000);
}

#[test]
fn a_name_is_enough_and_the_rest_has_defaults() {
    let (m, notes) = good("\u{feff}{\"name\": \"weather\"}");
    assert!(notes.is_empty());
    assert_eq!(m, Manifest::single_file("weather"));
    assert!(m.default_enabled && m.permissions.is_empty());
    assert_eq!(m.capabilities, Capabilities::default());
    assert_eq!(m.capabilities.tools, None, "every file in tools/");
    assert_eq!(m.limits.budget(), Budget::CALL);
    assert_eq!(m.limits.result_chars(), 200_000);
    let (m, _) = good(&with(json!({ "capabilities": { "tools": [] } })).to_string());
    assert_eq!(m.capabilities.tools, Some(vec![]), "none at all");
}

#[test]
fn the_title_is_the_first_text_there_is() {
    let long = "A very long title that goes on and on and on and on";
    let rows = [
        (json!({ "short_display_name": "S", "display_name": "D", "short_name": "N" }), "S"),
        (json!({ "short_display_name": " ", "display_name": "D", "short_name": "N" }), "D"),
        (json!({ "short_name": "N", "description": "Text." }), "N"),
        (json!({ "description": "Forecasts for your town, and more." }), "Forecasts for your town"),
        (json!({ "description": "Forecasts — and more" }), "Forecasts"),
        (json!({ "description": " , x" }), "weather"),
        (json!({}), "weather"),
        (json!({ "display_name": long }), "A very long title that goes on and on a…"),
    ];
    for (rest, title) in rows {
        assert_eq!(good(&with(rest.clone()).to_string()).0.title(), title, "{rest}");
    }
}

#[test]
fn doubts_are_warnings_with_their_place() {
    let rows = [
        (
            "{\n \"name\": \"weather\",\n \"priority\": \"high\"}",
            "Warning",
            "3:2: `priority` is not a whole number, but \"high\"; 50 is used",
        ),
        ("{\"name\": \"weather\",\n \"priority\": 1.5}", "Warning", "2:2: `priority` is not a whole number"),
        ("{\"name\": \"weather\",\n \"verson\": \"1\"}", "Warning", "2:2: there is no key `verson`; it is ignored"),
        ("{\"name\": \"weather\", \"surfaces\": [\"chat\"]}", "Warning", "1:21: `surfaces` has no meaning"),
        ("{\"name\": \"weather\", \"capabilities\": {\"tool\": []}}", "Warning", "1:38: there is no capability `tool`"),
        (
            "{\"name\": \"weather\", \"capabilities\": {\"tools\": [\"tools/a.rhai\", \"tools/a.rhai\"]}}",
            "Warning",
            "stands here twice",
        ),
    ];
    for (text, severity, message) in rows {
        let (_, notes) = good(text);
        assert_eq!(notes.len(), 1, "{text}: {notes:?}");
        assert!(notes[0].starts_with(severity) && notes[0].contains(message), "{text}: {notes:?}");
    }
    let (m, notes) = Manifest::parse("{\"name\": \"weather\", \"permisions\": []}", FILE, "weather").unwrap();
    assert_eq!(notes[0].hint.as_deref(), Some("did you mean `permissions`?"));
    assert_eq!(m.priority, 50);
}

#[test]
fn a_wrong_entry_is_named_and_the_others_stay() {
    let tools = [
        "../x.rhai",
        "/etc/x.rhai",
        "tools/../../x.rhai",
        "tools\\x.rhai",
        "C:x.rhai",
        "",
        "tools//x.rhai",
        "./x.rhai",
        "tools/.x.rhai",
        "tools/x.py",
        "tools/x.rhai.txt",
        "tools/x\u{0}.rhai",
        "tools/",
    ];
    for path in tools {
        let text = with(json!({ "capabilities": { "tools": ["tools/a.rhai", path, "tools/b.rhai"] } })).to_string();
        let (m, notes) = good(&text);
        assert_eq!(m.capabilities.tools.unwrap(), ["tools/a.rhai", "tools/b.rhai"], "{path:?}");
        assert!(notes.len() == 1 && notes[0].starts_with("Error"), "{path:?} {notes:?}");
        assert!(notes[0].contains(&Value::from(path).to_string()), "{path:?} {notes:?}");
    }
    let text = with(
        json!({ "capabilities": { "scopes": [{ "key": "a b" }, { "key": "good" }, { "key": "good" }, { "key": "9" }] } }),
    );
    let (m, notes) = good(&text.to_string());
    assert_eq!((m.capabilities.scopes.len(), notes.len()), (1, 3), "{notes:?}");
    let paths = [
        "user/plugin_state/weather2",
        "user/plugin_state/other.json",
        "user/plugins/other/x",
        "user/notes/x",
        "..",
        "user/../src",
        "user/webui/plugins/other.json",
        "user/webui/plugins",
        "user/webui/plugins.json",
        "/tmp/x",
        "user/plugin_state",
        "user",
        "user/plugin_state/weatherman",
        "user/lapidary.db",
        "",
    ];
    for path in paths {
        let (m, notes) = good(&with(json!({ "capabilities": { "cleanup_paths": [path] } })).to_string());
        assert!(m.capabilities.cleanup_paths.is_empty(), "{path}");
        assert!(notes[0].contains("not the plugin's own"), "{path} {notes:?}");
    }
    for path in [
        "user/plugin_state/weather",
        "plugin_state/weather-x/y",
        "user/plugin_state/weather.json",
        "user/plugins/weather/cache/",
        "webui/plugins/weather_old.json",
    ] {
        let (m, notes) = good(&with(json!({ "capabilities": { "cleanup_paths": [path] } })).to_string());
        assert!(m.capabilities.cleanup_paths[0].starts_with("user/") && notes.is_empty(), "{path} {notes:?}");
    }
}

#[test]
fn what_makes_a_manifest_unusable_is_said_with_its_place() {
    let rows = [
        ("", "1:1 not valid JSON: the text is empty"),
        ("[]", "1:1 a manifest is a JSON object"),
        ("{\n \"name\": \"weather\",\n}", "3:1 not valid JSON: a comma before `}`"),
        ("{\"name\": \"weather\",\n  \"name\": \"b\"}", "2:3 not valid JSON: the key \"name\" stands twice"),
        ("\u{feff}{\"name\" \"weather\"}", "1:9 not valid JSON: expected `:`"),
        ("{\"name\": 12345678901234567890}", "an integer outside 64 bits"),
        ("{}", "1:1 the manifest has no `name` (add \"name\": \"weather\")"),
        (
            "{\n  \"name\": \"other\"}",
            "2:3 the name `other` is not that of its folder, `weather` (rename the folder to `other`, or write \"name\": \"weather\")",
        ),
        ("{\"name\": \"we ather\"}", "1:2 `we ather` is not a plugin name"),
        ("{\"name\": 5}", "1:2 `name`: integer `5`, expected a string"),
        ("{\"name\": null}", "1:2 `name`: null, expected a string"),
        ("{\"name\": \"weather\", \"version\": 1.0}", "1:21 `version`: floating point `1.0`, expected a string"),
        (
            "{\"name\": \"weather\", \"default_enabled\": \"yes\"}",
            "`default_enabled`: string \"yes\", expected true or false",
        ),
        (
            "{\"name\": \"weather\", \"requires_plugins\": \"clock\"}",
            "`requires_plugins`: string \"clock\", expected a list",
        ),
        ("{\"name\": \"weather\", \"requires_plugins\": [\"a\", \"../b\"]}", "1:47 `../b` is not a plugin name"),
        ("{\"name\": \"weather\", \"requires_plugins\": [\"weather\"]}", "cannot require itself"),
        ("{\"name\": \"weather\", \"id\": \"weather\"}", "1:21 `id` is not of the form `namespace.name`"),
        ("{\"name\": \"weather\", \"id\": \"a..b\"}", "`id` is not of the form"),
        ("{\"name\": \"weather\", \"aliases\": [\"a b\"]}", "1:33 \"a b\" is neither a name nor an id"),
        ("{\"name\": \"weather\", \"migrate\": \"a-b\"}", "`migrate` is not the name of a function"),
        (
            "{\"name\": \"weather\", \"api_version\": 2}",
            "1:21 the plugin was written for script API 2; this host has 1",
        ),
        ("{\"name\": \"weather\", \"api_version\": \"1\"}", "`api_version`: string \"1\", expected a whole number"),
        (
            "{\"name\": \"weather\", \"permissions\": [\"READ_NOTE\"]}",
            "1:21 `permissions`: there is no permission `READ_NOTE` (did you mean `READ_NOTES`?)",
        ),
        ("{\"name\": \"weather\", \"permissions\": \"READ_NOTES\"}", "`permissions`: permissions are a list of words"),
        (
            "{\"name\": \"weather\", \"limits\": {\"timeout_s\": 601}}",
            "1:32 `limits.timeout_s` is 601; it can be 1 to 600",
        ),
        ("{\"name\": \"weather\", \"limits\": {\"timeout_s\": 0}}", "it can be 1 to 600"),
        (
            "{\"name\": \"weather\", \"limits\": {\"timeout_s\": -1}}",
            "`limits.timeout_s`: integer `-1`, expected a whole number, not below 0",
        ),
        ("{\"name\": \"weather\", \"limits\": {\"operations\": 1000000001}}", "1 to 1000000000"),
        ("{\"name\": \"weather\", \"limits\": {\"memory_mb\": 513}}", "1 to 512"),
        ("{\"name\": \"weather\", \"limits\": {\"result_chars\": 2000001}}", "1 to 2000000"),
        (
            "{\"name\": \"weather\", \"limits\": {\"timeout\": 5}}",
            "unknown field `timeout`, expected one of `timeout_s`",
        ),
        ("{\"name\": \"weather\", \"limits\": 5}", "`limits`: integer `5`, expected an object"),
        ("{\"name\": \"weather\", \"capabilities\": []}", "`capabilities`"),
        (
            "{\"name\": \"weather\", \"capabilities\": {\"tools\": \"a.rhai\"}}",
            "`capabilities.tools`: string \"a.rhai\", expected a list",
        ),
        (
            "{\"name\": \"weather\", \"capabilities\": {\n\"tools\": [\"a.rhai\", 7]}}",
            "2:21 `capabilities.tools[1]`: integer `7`, expected a string",
        ),
        (
            "{\"name\": \"weather\", \"capabilities\": {\"settings\": [{\"type\": \"string\"}]}}",
            "`capabilities.settings[0]`: missing field `key`",
        ),
        (
            "{\"name\": \"weather\", \"capabilities\": {\"settings\": [{\"key\": \"a\", \"type\": \"numbr\"}]}}",
            "`capabilities.settings[0].type`: unknown variant `numbr`",
        ),
        (
            "{\"name\": \"weather\", \"capabilities\": {\"settings\": [{\"key\": \"a\", \"lable\": \"A\"}]}}",
            "unknown field `lable`",
        ),
        (
            "{\"name\": \"weather\", \"capabilities\": {\"settings\": [{\"key\": \"a\"},\n{\"key\": \"a\"}]}}",
            "2:1 the setting `a` is declared twice",
        ),
        (
            "{\"name\": \"weather\", \"capabilities\": {\"settings\": [{\"key\": \"a\", \"type\": \"number\", \"default\": \"x\"}]}}",
            "1:51 the setting `a`: the default",
        ),
        (
            "{\"name\": \"weather\", \"capabilities\": {\"scopes\": [{\"label\": \"x\"}]}}",
            "`capabilities.scopes[0]`: missing field `key`",
        ),
    ];
    for (text, expected) in rows {
        let found = bad(text);
        assert!(found.len() == 1 && found[0].contains(expected), "{text}\n  expected {expected}\n  got {found:#?}");
    }
}

#[test]
fn several_faults_are_said_at_once() {
    let found = bad("{\"permissions\": [\"X\"], \"api_version\": 3, \"limits\": {\"memory_mb\": 9999}}");
    assert_eq!(found.len(), 4, "{found:#?}");
}

#[test]
fn the_fault_shows_its_line_and_a_caret() {
    let errors = Manifest::parse("{\n  \"name\": \"weather\",\n  \"id\": 5\n}", FILE, "weather").unwrap_err();
    assert_eq!(
        errors[0].render(),
        "error: `id`: integer `5`, expected a string\n  --> user/plugins/weather/plugin.json:3:3\n  |\n3 |   \"id\": 5\n  |   ^\n"
    );
}

fn schema() -> jsonschema::Validator {
    jsonschema::options().offline().build(&Manifest::json_schema()).unwrap()
}

#[test]
fn the_schema_accepts_what_is_read_and_refuses_what_is_not() {
    let schema = schema();
    let rows = [
        (everything(), true),
        (json!({ "name": "weather" }), true),
        (
            with(
                json!({ "limits": { "timeout_s": 600, "operations": 1_000_000_000, "memory_mb": 512, "result_chars": 2_000_000 } }),
            ),
            true,
        ),
        (with(json!({ "permissions": ["SPEND", { "EXTERNAL_HTTP": ["a.b"] }] })), true),
        (with(json!({ "capabilities": { "widgets": [1], "agents": [] } })), true),
        (json!({}), false),
        (json!({ "name": "a b" }), false),
        (json!({ "name": 5 }), false),
        (json!([]), false),
        (with(json!({ "version": 1 })), false),
        (with(json!({ "priority": "high" })), false),
        (with(json!({ "id": "weather" })), false),
        (with(json!({ "api_version": 2 })), false),
        (with(json!({ "aliases": ["a b"] })), false),
        (with(json!({ "migrate": "a-b" })), false),
        (with(json!({ "permissions": ["READ_NOTE"] })), false),
        (with(json!({ "limits": { "timeout_s": 601 } })), false),
        (with(json!({ "limits": { "operations": 0 } })), false),
        (with(json!({ "limits": { "memory_mb": 513 } })), false),
        (with(json!({ "limits": { "result_chars": 2_000_001 } })), false),
        (with(json!({ "limits": { "timeout": 5 } })), false),
        (with(json!({ "capabilities": { "tools": ["../x.rhai"] } })), false),
        (with(json!({ "capabilities": { "tools": ["tools/x.py"] } })), false),
        (with(json!({ "capabilities": { "tools": "x.rhai" } })), false),
        (with(json!({ "capabilities": { "settings": [{ "type": "string" }] } })), false),
        (with(json!({ "capabilities": { "settings": [{ "key": "a", "type": "numbr" }] } })), false),
        (with(json!({ "capabilities": { "scopes": [{ "key": "a b" }] } })), false),
        (with(json!({ "capabilities": { "scopes": [{ "key": "a", "default": 5 }] } })), false),
    ];
    for (manifest, fine) in rows {
        let errors: Vec<String> = schema.iter_errors(&manifest).map(|e| format!("{} {e}", e.instance_path())).collect();
        assert_eq!(errors.is_empty(), fine, "{manifest}: {errors:#?}");
    }
}

#[test]
fn the_schema_describes_every_key_and_the_lists_of_keys_are_its_own() {
    let schema = Manifest::json_schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    let keys: Vec<&str> = schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, KEYS);
    assert_eq!(schema["required"], json!(["name"]));
    let shape = &schema["$defs"]["Capabilities"]["properties"];
    let capabilities: Vec<&str> = shape.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(capabilities, [super::ACTIVE.as_slice(), LATER.as_slice()].concat());
    for object in [
        &schema["properties"],
        shape,
        &schema["$defs"]["Limits"]["properties"],
        &schema["$defs"]["Field"]["properties"],
    ] {
        for (key, value) in object.as_object().unwrap() {
            assert!(value["description"].is_string(), "{key} has no description");
        }
    }
    let limits = &schema["$defs"]["Limits"]["properties"];
    for (key, most) in [
        ("timeout_s", Limits::MAX_TIMEOUT_S),
        ("operations", Limits::MAX_OPERATIONS),
        ("memory_mb", Limits::MAX_MEMORY_MB),
        ("result_chars", Limits::MAX_RESULT_CHARS),
    ] {
        assert_eq!(limits[key]["maximum"].as_f64(), Some(most as f64), "{key}");
    }
}

#[test]
fn odd_texts_never_panic() {
    let text = everything().to_string();
    for end in (0..text.len()).filter(|i| text.is_char_boundary(*i)) {
        assert!(Manifest::parse(&text[..end], FILE, "weather").is_err());
    }
    for value in [
        json!(null),
        json!(5),
        json!([]),
        json!({}),
        json!("x"),
        json!(true),
        json!([[]]),
        json!([{}]),
        json!({"a": null}),
    ] {
        for key in KEYS {
            let _ = Manifest::parse(&with(json!({ key: value })).to_string(), FILE, "weather");
        }
        for key in ["tools", "settings", "scopes", "cleanup_paths", "agents"] {
            let _ = Manifest::parse(&with(json!({ "capabilities": { key: value } })).to_string(), FILE, "weather");
        }
    }
}
