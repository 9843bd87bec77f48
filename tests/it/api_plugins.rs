//! Plugins over HTTP: made, switched, loaded again, brought back, granted and set; and the words that stand for several tools.

use super::api::ECHO;
use super::api_client::Served;
use super::world::World;
use lapidary::app::Watching;
use serde_json::{Value, json};

const MANIFEST: &str = r#"{"name": "greeter", "version": "1.0.0", "description": "Greets. For tests.", "capabilities": {"settings": [
    {"key": "who", "type": "string", "default": "world", "label": "Whom"},
    {"key": "loud", "type": "boolean", "default": false},
    {"key": "pass", "type": "string", "widget": "password"}]}}"#;
const GREET: &str = "fn get_tools() {\n    let who = settings::get(\"who\");\n    if who == \"boom\" { throw \"no\"; }\n    [#{ type: \"function\", function: #{ name: \"greet\", description: `Greet ${who}. For tests.` } }]\n}\nconst TOOLS = [#{ type: \"function\", function: #{ name: \"greet\", description: \"Greet. For tests.\" } }];\nfn execute(name, arguments, config, plugin_settings) { `hello ${plugin_settings.who}` }\n";

fn served() -> Served {
    let served = Served::new();
    served.world.write("user/plugins/greeter/plugin.json", MANIFEST);
    served.world.write("user/plugins/greeter/tools/greet.rhai", GREET);
    served.world.tool("echo", ECHO);
    served
}

fn kept() -> Served {
    let served = Served::of(World::with(|b| b.watching(Watching::Off).keep_history()));
    served.world.tool("echo", ECHO);
    served
}

#[test]
fn a_new_plugin_works_at_once_and_takes_nothing_from_others() {
    let served = served();
    let made = served.post("/api/plugins", &json!({ "name": "Dice" }));
    assert_eq!((made.status, &made.json()["status"], &made.json()["tools"]), (201, &json!("live 1"), &json!(["dice"])));
    assert_eq!(served.world.text("dice", json!({ "text": "a" })), "a a");
    let folder = json!({ "name": "unit-price", "kind": "plugin", "form": "explicit" });
    assert_eq!(served.post("/api/plugins", &folder).good()["origin"], "plugin folder");
    for (name, status) in
        [("dice", 409), ("DICE", 409), ("greet", 409), ("web", 409), ("../x", 400), ("", 400), ("a b", 400)]
    {
        assert_eq!(served.post("/api/plugins", &json!({ "name": name })).status, status, "{name}");
    }
    let (_, told) = served.post("/api/plugins", &json!({ "name": "x", "kind": "cat" })).refused(400);
    assert!(told.contains("`kind`") && told.contains("`tool`"), "{told}");
    assert_eq!(served.post("/api/plugins", &json!({ "nmae": "x" })).status, 400);
}

#[test]
fn a_plugin_is_switched_off_and_on_and_loaded_again() {
    let served = served();
    let off = served.post("/api/plugins/echo/disable", &json!({})).good();
    assert_eq!((&off["status"], &off["enabled"]), (&json!("off"), &json!(false)));
    assert_eq!(served.post("/api/call", &json!({ "tool": "echo", "arguments": { "text": "x" } })).status, 404);
    assert_eq!(served.post("/api/plugins/echo/reload", &json!({})).refused(403).0, "disabled");
    assert_eq!(served.request("POST", "/api/plugins/echo/enable", &[], b"").good()["enabled"], true);
    assert_eq!(served.world.text("echo", json!({ "text": "x" })), "x");
    let before = served.get("/api/plugins/echo").good()["live"].as_u64().unwrap();
    let after = served.post("/api/plugins/echo/reload", &json!({})).good()["live"].as_u64().unwrap();
    assert!(after > before, "the top level ran again");
    for what in ["enable", "disable", "reload", "rollback"] {
        assert_eq!(served.post(&format!("/api/plugins/ecko/{what}"), &json!({})).refused(404).0, "not_found", "{what}");
    }
}

#[test]
fn earlier_versions_are_listed_shown_beside_the_files_and_brought_back() {
    let served = kept();
    let second = ECHO.replace("    out\n", "    out + \"?\"\n");
    served.world.tool("echo", &second);
    super::world::until("both are kept", || {
        served.get("/api/plugins/echo/history").good()["entries"].as_array().unwrap().len() == 2
    });
    let history = served.get("/api/plugins/echo/history").good();
    assert_eq!((&history["live"], &history["entries"][0]["generation"]), (&json!(2), &json!(2)));
    let first = served.get("/api/plugins/echo/history/1").good();
    assert_eq!((&first["generation"], &first["files"][0]["text"]), (&json!(1), &json!(ECHO)));
    let diff = first["files"][0]["diff"].as_str().unwrap();
    assert!(diff.contains("-    out + \"?\"") && diff.contains("+    out\n"), "{diff}");
    assert_eq!(served.get("/api/plugins/echo/history/2").good()["files"][0]["diff"], "");
    assert_eq!(served.get("/api/plugins/echo/history/9").refused(404).0, "not_found");
    assert_eq!(served.get("/api/plugins/echo/history/x").status, 400);
    assert_eq!(served.get("/api/plugins/ecko/history").status, 404);

    let back = served.post("/api/plugins/echo/rollback", &json!({})).good();
    assert!(back["status"].as_str().unwrap().starts_with("live "), "{back}");
    assert_eq!(served.world.text("echo", json!({ "text": "x" })), "x");
    assert_eq!(served.post("/api/plugins/echo/rollback", &json!({ "generation": 1 })).refused(409).0, "conflict");
    served.post("/api/plugins/echo/rollback", &json!({ "generation": 2 })).good();
    assert_eq!(served.world.text("echo", json!({ "text": "x" })), "x?");
    assert_eq!(served.post("/api/plugins/echo/rollback", &json!({ "generation": "2" })).status, 400);
    assert_eq!(served.post("/api/plugins/echo/rollback", &json!({ "to": 2 })).status, 400);
}

#[test]
fn settings_are_seen_tried_saved_and_taken_back_under_both_addresses() {
    let served = served();
    for path in ["/api/plugins/greeter/settings", "/api/webui/plugins/greeter/settings"] {
        let view = served.get(path);
        let etag = view.header("etag").unwrap().to_owned();
        let view = view.good();
        assert_eq!((&view["values"]["who"], &view["fields"][0]["label"]), (&json!("world"), &json!("Whom")));
        assert_eq!(etag, format!("\"{}\"", view["etag"].as_str().unwrap()));
        let saved = served.put(path, &json!({ "settings": { "who": "moon", "pass": "s3cret" } }));
        let body = saved.good();
        assert_eq!((&body["committed"], &body["settings"]["who"]), (&json!(true), &json!("moon")));
        assert!(!String::from_utf8_lossy(&saved.body).contains("s3cret"));
        assert!(body["tools"][0]["description"].as_str().unwrap().contains("+Greet moon"), "{body}");
        assert_ne!(saved.header("etag"), Some(etag.as_str()));
        assert_eq!(served.world.description("greet"), "Greet moon. For tests.");
        // A bare object says the same, and what it does not name stays.
        let body = served.put(path, &json!({ "loud": true })).good();
        assert_eq!((&body["settings"]["who"], &body["settings"]["loud"]), (&json!("moon"), &json!(true)));
        let stale = served.request("PUT", path, &[("If-Match", &etag)], json!({ "who": "sun" }).to_string().as_bytes());
        assert_eq!(stale.refused(409).0, "conflict");
        assert_eq!(stale.json()["current"]["values"]["who"], "moon");
        let now = served.get(path).header("etag").unwrap().to_owned();
        for tag in [now.as_str(), "*"] {
            let saved =
                served.request("PUT", path, &[("If-Match", tag)], json!({ "loud": tag == "*" }).to_string().as_bytes());
            assert_eq!(saved.good()["settings"]["loud"], tag == "*", "{tag}");
        }
        let one = served.delete(&format!("{path}?key=who")).good();
        assert_eq!((&one["settings"]["who"], &one["settings"]["loud"]), (&json!("world"), &json!(true)));
        assert_eq!(served.delete(path).good()["settings"]["loud"], false);
        assert_eq!(served.get(path).good()["stored"], json!([]));
        assert!(served.delete(&format!("{path}?kye=who")).refused(400).1.contains("`key`"));
        assert_eq!(served.delete(&format!("{path}?key=nothing")).refused(404).0, "not_found");
    }
}

#[test]
fn a_change_of_settings_that_does_not_fit_changes_nothing() {
    let served = served();
    let path = "/api/plugins/greeter/settings";
    for (body, told) in [
        (json!({ "who": 5 }), "who"),
        (json!({ "hwo": "x" }), "hwo"),
        (json!({ "who": "boom" }), "refused"),
        (json!([1]), "object"),
    ] {
        let (code, said) = served.put(path, &body).refused(400);
        assert!(code == "invalid_arguments" && said.contains(told), "{body}: {said}");
    }
    assert_eq!(served.get(path).good()["stored"], json!([]));
    assert_eq!(served.world.description("greet"), "Greet world. For tests.");
    for name in ["nothing", "..%2fgreeter"] {
        let path = format!("/api/plugins/{name}/settings");
        assert_eq!(
            [served.get(&path).status, served.put(&path, &json!({})).status, served.delete(&path).status],
            [404, 404, 404]
        );
    }
}

#[test]
fn a_preview_shows_what_a_model_would_read_and_saves_nothing() {
    let served = served();
    let path = "/api/plugins/greeter/settings/preview";
    let shown = served.post(path, &json!({ "settings": { "who": "mars" } })).good();
    assert!(shown["tools"][0]["diff"].as_str().unwrap().contains("+Greet mars"), "{shown}");
    assert_eq!((&shown["settings"]["who"], &shown["dialect"]), (&json!("mars"), &json!("openai")));
    assert_eq!(served.post(&format!("{path}?dialect=gemini"), &json!({ "who": "mars" })).good()["dialect"], "gemini");
    assert_eq!(served.post(path, &json!({ "who": 5 })).status, 400);
    assert_eq!(served.post("/api/plugins/greet/settings/preview", &json!({})).status, 404, "a tool is no plugin");
    assert_eq!(served.world.description("greet"), "Greet world. For tests.");
}

#[test]
fn what_a_plugin_may_do_is_told_in_words_and_decided() {
    let served = served();
    let asks = "const PERMISSIONS = [\"RUN_COMMANDS\", #{ EXTERNAL_HTTP: [\"api.example.org\"] }];\n";
    served.world.tool("asker", &format!("{asks}{}", ECHO.replace("echo", "asker")));
    let path = "/api/plugins/asker/grants";
    let power = |body: &Value, word: &str| -> Value {
        body["permissions"].as_array().unwrap().iter().find(|p| p["permission"] == word).cloned().unwrap_or_default()
    };
    let body = served.get(path).good();
    let http = power(&body, "EXTERNAL_HTTP");
    assert_eq!((&http["says"], &http["granted"]), (&json!("talk to api.example.org"), &json!(true)));
    let run = power(&body, "RUN_COMMANDS");
    assert_eq!(
        (&run["granted"], &run["grant"], &run["declared"]),
        (&json!(false), &json!("RUN_COMMANDS"), &json!(true))
    );
    let body = served.post(path, &json!({ "grant": "RUN_COMMANDS" })).good();
    assert_eq!(power(&body, "RUN_COMMANDS")["granted"], true);
    assert_eq!(served.get("/api/plugins/asker").good()["missing_permissions"], json!([]));
    let body = served.post("/api/plugins/asker/revoke", &json!({ "grant": "EXTERNAL_HTTP" })).good();
    let http = power(&body, "EXTERNAL_HTTP");
    assert_eq!((&http["granted"], &http["denied"]), (&json!(false), &json!(true)));
    let folder = tempfile::tempdir().unwrap();
    let grant = format!("folder:music={}", folder.path().display());
    assert!(served.post(path, &json!({ "grant": grant })).good()["folders"]["music"].is_string());
    assert_eq!(
        served.post("/api/plugins/asker/revoke", &json!({ "grant": "folder:music" })).good()["folders"],
        json!({})
    );
    for bad in ["FLY", "", "RUN_COMMANDS=x", "folder:music=relative", "EXTERNAL_HTTP=https://x"] {
        assert_eq!(served.post(path, &json!({ "grant": bad })).refused(400).0, "invalid_arguments", "{bad}");
    }
    assert_eq!(served.post("/api/plugins/asker/revoke", &json!({ "grant": "folder:none" })).status, 404);
    for (method, path) in [
        ("GET", "/api/plugins/nobody/grants"),
        ("POST", "/api/plugins/nobody/grants"),
        ("POST", "/api/plugins/nobody/revoke"),
    ] {
        assert_eq!(served.request(method, path, &[], br#"{"grant": "SPEND"}"#).status, 404, "{method} {path}");
    }
}

#[test]
fn a_version_that_asks_for_more_waits_and_is_live_with_the_yes() {
    let served = kept();
    let more = format!("const PERMISSIONS = [\"RUN_COMMANDS\"];\n{}", ECHO.replace("    out\n", "    out + \"!\"\n"));
    served.world.tool("echo", &more);
    let status = served.get("/api/plugins/echo").good();
    assert_eq!((&status["waiting"], &status["live"]), (&json!(true), &json!(1)), "{status}");
    let body = served.get("/api/plugins/echo/grants").good();
    let wish = json!({ "permission": "RUN_COMMANDS", "says": "run programs on this machine", "grant": "RUN_COMMANDS" });
    assert_eq!((&body["wishes"], &body["permissions"]), (&json!([wish]), &json!([])));
    assert_eq!(served.world.text("echo", json!({ "text": "x" })), "x");
    let body = served.post("/api/plugins/echo/grants", &json!({ "grant": "RUN_COMMANDS" })).good();
    assert_eq!((&body["wishes"], &body["permissions"][0]["granted"]), (&json!([]), &json!(true)));
    assert_eq!(served.world.text("echo", json!({ "text": "x" })), "x!");
}

#[test]
fn toolsets_are_listed_saved_and_deleted() {
    let served = served();
    let list = |served: &Served| served.get("/api/toolsets").good()["toolsets"].as_array().unwrap().clone();
    let find = |all: &[Value], name: &str| all.iter().find(|set| set["name"] == name).cloned();
    let all = find(&list(&served), "all").unwrap();
    assert_eq!((&all["kind"], &all["tools"]), (&json!("builtin"), &json!(["greet", "echo"])));
    assert!(all["tokens"].as_u64().unwrap() > 0);
    let plugin = find(&list(&served), "greeter").unwrap();
    assert_eq!((&plugin["kind"], &plugin["tools"]), (&json!("plugin"), &json!(["greet"])));
    let before = served.get("/api/tools").good()["revision"].as_u64().unwrap();
    let saved = served.put("/api/toolsets/evening%20work", &json!({ "words": ["greeter", "echo", "greet"] })).good();
    assert_eq!(saved["words"], json!(["greet", "echo"]));
    assert_eq!((&saved["kind"], &saved["name"]), (&json!("saved"), &json!("evening work")));
    assert!(served.get("/api/tools").good()["revision"].as_u64().unwrap() > before, "who reads through a set is told");
    assert_eq!(find(&list(&served), "evening work").unwrap()["tools"], json!(["greet", "echo"]));
    for (name, words, status) in [
        ("all", json!(["echo"]), 409),
        ("plugin_echo_echo", json!(["echo"]), 409),
        ("_x", json!(["echo"]), 400),
        ("a%2Cb", json!(["echo"]), 400),
        ("mine", json!(["ecko"]), 404),
        ("mine", json!("echo"), 400),
    ] {
        assert_eq!(
            served.put(&format!("/api/toolsets/{name}"), &json!({ "words": words })).status,
            status,
            "{name} {words}"
        );
    }
    assert_eq!(served.delete("/api/toolsets/evening%20work").status, 204);
    for gone in ["evening%20work", "all", "greeter"] {
        assert_eq!(served.delete(&format!("/api/toolsets/{gone}")).refused(404).0, "not_found", "{gone}");
    }
}
