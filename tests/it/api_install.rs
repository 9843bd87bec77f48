//! Plugins that come and go over HTTP: looked at, installed, replaced, copied, given away, removed and brought back.

use super::api::ECHO;
use super::api_client::{Answer, Served};
use super::world::{World, until};
use lapidary::app::{Shipped, Watching};
use lapidary::plugin::package::packed;
use lapidary::plugin::set::Live;
use lapidary::service::permissions::Permission;
use lapidary::store::chat_data::Owner;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const RUN: &str = "const PERMISSIONS = [\"RUN_COMMANDS\", #{ EXTERNAL_HTTP: [\"api.example.org\"] }];\n";

fn kit(version: &str, body: &str) -> Vec<(String, Vec<u8>)> {
    let manifest = json!({ "name": "kit", "version": version, "description": "For tests.",
        "capabilities": { "settings": [{ "key": "who", "type": "string", "default": "world" }] } });
    let tool = format!(
        "/// Give the kit's word. For tests.\n///\n/// @writes\nfn kit() {{\n    state::save(\"used\", true);\n    {body}\n}}\n"
    );
    [("plugin.json", manifest.to_string()), ("tools/kit.rhai", tool), ("README.md", "# Kit".to_owned())]
        .map(|(path, text)| (path.to_owned(), text.into_bytes()))
        .to_vec()
}

fn upload(served: &Served, query: &str, bytes: &[u8]) -> Answer {
    served.request("POST", &format!("/api/install?{query}"), &[], bytes)
}

fn call(served: &Served, tool: &str) -> Value {
    served.post("/api/call", &json!({ "tool": tool })).json()["text"].clone()
}

fn names_in(folder: &std::path::Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|n| !n.ends_with(".lock"))
        .collect();
    names.sort();
    names
}

#[test]
fn a_look_tells_what_would_come_and_leaves_nothing_behind() {
    let served = Served::new();
    let text = format!("{RUN}{ECHO}");
    let look = upload(&served, "file=echo.rhai&look=true", text.as_bytes());
    assert_eq!(look.status, 200);
    let look = look.json();
    assert_eq!((&look["name"], &look["kind"], &look["version"]), (&json!("echo"), &json!("tool"), &Value::Null));
    assert_eq!(look["files"], json!([{ "path": "echo.rhai", "bytes": text.len() }]));
    assert_eq!(look["tools"][0]["name"], "echo");
    let power = |word: &str| -> Value {
        look["permissions"].as_array().unwrap().iter().find(|p| p["permission"] == word).cloned().unwrap_or_default()
    };
    assert_eq!(
        (&power("RUN_COMMANDS")["says"], &power("RUN_COMMANDS")["granted"]),
        (&json!("run programs on this machine"), &json!(false))
    );
    assert_eq!((&look["hosts"], &power("EXTERNAL_HTTP")["granted"]), (&json!(["api.example.org"]), &json!(true)));
    assert_eq!((&look["replaces"], &look["diagnostics"]), (&Value::Null, &json!([])));
    let broken = upload(&served, "file=bad.rhai&look=true", b"fn bad( {").good();
    assert_eq!(
        (&broken["diagnostics"][0]["severity"], &broken["diagnostics"][0]["file"]),
        (&json!("error"), &json!("bad.rhai")),
        "{broken}"
    );
    assert!(
        names_in(&served.world.path("user/tools")).is_empty()
            && names_in(&served.world.path("user/plugins")).is_empty()
    );
    assert_eq!(served.get("/api/plugins").good()["plugins"], json!([]));
}

#[test]
fn what_is_installed_runs_at_once_with_no_permission_beyond_the_harmless_and_remembers_where_it_is_from() {
    let served = Served::new();
    let zip = packed("kit", &kit("1.0.0", "\"one\"")).unwrap();
    let answer = upload(&served, "file=kit-1.0.zip", &zip);
    assert_eq!((answer.status, &answer.json()["status"]), (201, &json!("live 1")));
    assert_eq!(call(&served, "kit"), "one");
    let installed = served.get("/api/plugins/kit/files").good()["installed"].clone();
    assert_eq!(
        (&installed["from"], &installed["method"], &installed["version"]),
        (&json!("kit-1.0.zip"), &json!("upload"), &json!("1.0.0"))
    );
    assert_eq!(installed["edited"], json!([]));
    served.world.write("user/plugins/kit/README.md", "# Mine");
    served.world.write("user/plugins/kit/lib/more.rhai", "fn x() { 1 }");
    assert_eq!(
        served.get("/api/plugins/kit/files").good()["installed"]["edited"],
        json!(["README.md", "lib/more.rhai"])
    );

    let answer = upload(&served, "file=runner.rhai", format!("{RUN}{}", ECHO.replace("echo", "runner")).as_bytes());
    assert_eq!((answer.status, &answer.json()["missing_permissions"]), (201, &json!(["RUN_COMMANDS"])));
    let said = served.post("/api/call", &json!({ "tool": "runner", "arguments": { "text": "x" } })).good();
    assert_eq!(said["error"]["code"], "permission_denied", "{said}");
    assert_eq!(names_in(&served.world.path("user/plugins")), ["kit"], "nothing is left beside it");
}

/// Asks for what it would hold at once, and for what needs a yes.
const ASKS: &str = "const PERMISSIONS = [\"READ_NOTES\", \"SPEND\", #{ EXTERNAL_HTTP: [\"api.example.org\"] }];\n";

/// What a plugin holds of what it asks for, and what was taken away, by name.
fn powers(served: &Served, plugin: &str) -> (Vec<String>, Vec<String>) {
    let consent = served.get(&format!("/api/plugins/{plugin}/grants")).good();
    let named = |field: &str| -> Vec<String> {
        let all = consent["permissions"].as_array().unwrap().iter();
        all.filter(|p| p[field] == true).map(|p| p["permission"].as_str().unwrap().to_owned()).collect()
    };
    (named("granted"), named("denied"))
}

#[test]
fn what_is_denied_with_an_installation_is_off_from_the_first_moment() {
    let served = Served::of(World::watching());
    let plugins = served.world.host.plugins();
    let (held, set) = (Arc::new(Mutex::new(Vec::new())), Arc::downgrade(plugins));
    let seen = held.clone();
    plugins.on_live(Arc::new(move |live: Live| {
        let now = set.upgrade().and_then(|set| set.live(&live.plugin)).unwrap().plugin.grants.load_full();
        let holds = [Permission::ReadNotes, Permission::ExternalHttp].map(|p| now.allows(&p));
        seen.lock().unwrap().push((live.plugin.to_string(), holds));
    }));
    let script = |name: &str| format!("{ASKS}{}", ECHO.replace("echo", name)).into_bytes();
    upload(&served, "file=free.rhai", &script("free")).good();
    upload(&served, "file=half.rhai&deny=EXTERNAL_HTTP", &script("half")).good();
    let answer = upload(&served, "file=bound.rhai&deny=READ_NOTES,%20EXTERNAL_HTTP", &script("bound"));
    assert_eq!((answer.status, &answer.json()["status"]), (201, &json!("live 1")));
    let told = |name: &str, holds: [bool; 2]| (name.to_owned(), holds);
    assert_eq!(
        *held.lock().unwrap(),
        [told("free", [true, true]), told("half", [true, false]), told("bound", [false, false])]
    );
    let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    assert_eq!(powers(&served, "free"), (names(&["READ_NOTES", "EXTERNAL_HTTP"]), names(&[])));
    assert_eq!(powers(&served, "bound"), (names(&[]), names(&["READ_NOTES", "EXTERNAL_HTTP"])));
    // And as everywhere, a yes gives it back.
    served.post("/api/plugins/bound/grants", &json!({ "grant": "READ_NOTES" })).good();
    assert_eq!(powers(&served, "bound"), (names(&["READ_NOTES"]), names(&["EXTERNAL_HTTP"])));
}

#[test]
fn an_installation_that_comes_to_nothing_denies_nothing() {
    let served = Served::new();
    served.world.tool("echo", &format!("{ASKS}{ECHO}"));
    let before = powers(&served, "echo");
    for (query, script, status, part) in [
        ("file=new.rhai&deny=FLY", ECHO.replace("echo", "new"), 400, "there is no permission `FLY`"),
        ("file=new.rhai&deny=EXTERNAL_HTTP=a.example", ECHO.replace("echo", "new"), 400, "no permission"),
        ("file=new.rhai&deny=READ_NOTES", "fn bad( {".to_owned(), 400, "would not load"),
        ("file=echo.rhai&deny=READ_NOTES", ECHO.to_owned(), 409, "is there already"),
    ] {
        let (_, told) = upload(&served, query, script.as_bytes()).refused(status);
        assert!(told.contains(part), "{query}: {told}");
    }
    assert_eq!(powers(&served, "echo"), before);
    assert!(
        !served.world.path("user/tools/new.rhai").exists() && !served.world.path("user/webui/grants.json").exists()
    );
}

#[test]
fn one_that_takes_anothers_place_does_without_what_is_denied_and_does_not_wait_for_it() {
    let served = Served::new();
    upload(&served, "file=echo.rhai", ECHO.as_bytes()).good();
    let asks = "const PERMISSIONS = [#{ EXTERNAL_HTTP: [\"api.example.org\"] }];\n";
    let script = format!("{asks}{ECHO}");
    let waits = upload(&served, "file=echo.rhai&force=true", script.as_bytes()).good();
    assert_eq!((&waits["waiting"], &waits["live"]), (&json!(true), &json!(1)), "{waits}");
    let script = format!("// Another.\n{script}");
    let live = upload(&served, "file=echo.rhai&force=true&deny=EXTERNAL_HTTP", script.as_bytes()).good();
    assert_eq!(
        (&live["waiting"], live["status"].as_str().unwrap().starts_with("live ")),
        (&json!(false), true),
        "{live}"
    );
    assert_eq!(powers(&served, "echo"), (vec![], vec!["EXTERNAL_HTTP".to_owned()]));
}

#[test]
fn a_plugin_that_is_there_is_replaced_only_where_that_is_asked_for_and_keeps_its_settings() {
    let served = Served::new();
    upload(&served, "file=kit.zip", &packed("kit", &kit("1.0.0", "settings::get(\"who\")")).unwrap()).good();
    served.put("/api/plugins/kit/settings", &json!({ "who": "moon" })).good();
    served.world.write("user/plugins/kit/README.md", "# Mine");
    let second = packed("kit", &kit("2.0.0", "\"two \" + settings::get(\"who\")")).unwrap();
    let (code, told) = upload(&served, "file=kit.zip", &second).refused(409);
    assert!(
        code == "conflict" && told.contains("1.0.0") && told.contains("2.0.0") && told.contains("changes of your own"),
        "{told}"
    );
    assert_eq!(call(&served, "kit"), "moon");
    let look = upload(&served, "file=kit.zip&look=true", &second).good();
    assert_eq!(look["replaces"], json!({ "version": "1.0.0", "is_edited": true, "place": "user/plugins/kit" }));
    let answer = upload(&served, "file=kit.zip&force=true", &second);
    assert_eq!((answer.status, &answer.json()["version"]), (201, &json!("2.0.0")));
    assert_eq!(call(&served, "kit"), "two moon");
    assert_eq!(std::fs::read_to_string(served.world.path("user/plugins/kit/README.md")).unwrap(), "# Kit");
    // What was replaced is kept, with what its owner had changed.
    let kept = names_in(&served.world.path("user/history/kit"));
    let kept = served.world.path(&format!(
        "user/history/kit/{}/plugin/kit/README.md",
        kept.iter().find(|n| n.starts_with("removed-")).unwrap()
    ));
    assert_eq!(std::fs::read_to_string(kept).unwrap(), "# Mine");
    assert_eq!(served.get("/api/removed").good()["removed"], json!([]), "a plugin that is there is not gone");
}

#[test]
fn what_cannot_be_installed_changes_nothing() {
    let served = Served::of(World::with(|b| b.watching(Watching::Off).shipped(Shipped::All)));
    served.world.tool("echo", ECHO);
    std::fs::create_dir_all(served.world.path("user/plugins/stray")).unwrap();
    let named = |name: &str, tool: &str| {
        let manifest = json!({ "name": name, "version": "1.0.0", "description": "For tests." }).to_string();
        let script = format!("/// Do it. For tests.\nfn {tool}() {{ 1 }}\n");
        packed(
            name,
            &[("plugin.json".to_owned(), manifest.into_bytes()), ("tools/a.rhai".to_owned(), script.into_bytes())],
        )
        .unwrap()
    };
    let before = names_in(&served.world.path("user/plugins"));
    for (query, bytes, status, part) in [
        ("file=clock.rhai", ECHO.replace("echo", "other").into_bytes(), 409, "shipped"),
        ("file=clock.rhai&force=true", ECHO.replace("echo", "other").into_bytes(), 409, "shipped"),
        ("file=Echo.rhai&force=true", ECHO.replace("echo", "other").into_bytes(), 409, "same name"),
        ("file=thief.zip", named("thief", "echo"), 409, "belongs to the plugin `echo`"),
        ("file=stray.zip", named("stray", "stray"), 409, "no plugin"),
        ("file=bad.rhai", b"fn bad( {".to_vec(), 400, "bad.rhai:1"),
        ("file=x.exe", b"MZ".to_vec(), 400, "no plugin"),
        ("file=..%2F..%2Fx.rhai", b"fn (".to_vec(), 400, "x"),
        ("file=x.zip", b"PK".to_vec(), 400, "zip"),
        ("fil=x.zip", b"PK".to_vec(), 400, "file"),
        ("file=x.rhai&force=maybe", b"x".to_vec(), 400, "force"),
        ("file=x.zip", vec![0; (50 << 20) + 1], 413, "50 MiB"),
    ] {
        let (_, told) = upload(&served, query, &bytes).refused(status);
        assert!(told.contains(part), "{query}: {told}");
    }
    assert_eq!(names_in(&served.world.path("user/plugins")), before);
    assert_eq!(names_in(&served.world.path("user/tools")), ["echo.rhai"]);
    let look = upload(&served, "file=clock.rhai&look=true", ECHO.replace("echo", "other").as_bytes()).good();
    assert_eq!(look["diagnostics"][0]["code"], "conflict", "a look says so too");
}

#[test]
fn a_removed_plugin_is_gone_with_all_it_had_and_comes_back_with_it() {
    let served = Served::new();
    upload(&served, "file=kit.zip", &packed("kit", &kit("1.0.0", "settings::get(\"who\")")).unwrap()).good();
    served.put("/api/plugins/kit/settings", &json!({ "who": "moon" })).good();
    served.post("/api/plugins/kit/grants", &json!({ "grant": "SPEND" })).good();
    assert_eq!(call(&served, "kit"), "moon");
    let state = served.world.path("user/plugin_state/kit.json");
    assert!(state.exists());
    let removed = served.delete("/api/plugins/kit").good();
    assert!(removed["undo_until"].as_str().unwrap() > removed["removed_at"].as_str().unwrap());
    assert_eq!(served.get("/api/plugins/kit").status, 404);
    assert_eq!(served.post("/api/call", &json!({ "tool": "kit" })).status, 404);
    assert!(!state.exists() && !served.world.path("user/plugins/kit").exists());
    assert!(!served.world.path("user/webui/plugins/kit.json").exists());
    for file in ["grants.json", "installed.json"] {
        let text = std::fs::read_to_string(served.world.path(&format!("user/webui/{file}"))).unwrap();
        assert!(!text.contains("kit"), "{file}: {text}");
    }
    assert_eq!(served.get("/api/removed").good()["removed"][0]["name"], "kit");
    assert_eq!(served.delete("/api/plugins/kit").refused(404).0, "not_found");

    let back = served.post("/api/plugins/kit/rollback", &json!({})).good();
    assert!(back["status"].as_str().unwrap().starts_with("live "), "{back}");
    assert_eq!(call(&served, "kit"), "moon");
    assert!(state.exists() && served.get("/api/removed").good()["removed"] == json!([]));
    let installed = served.get("/api/plugins/kit/files").good()["installed"].clone();
    assert_eq!((&installed["from"], &installed["edited"]), (&json!("kit.zip"), &json!([])));
    let grants = served.get("/api/plugins/kit/grants").good();
    assert!(grants["permissions"].as_array().unwrap().iter().any(|p| p["permission"] == "SPEND"), "{grants}");
}

#[test]
fn what_a_plugin_keeps_in_chats_goes_and_comes_back_with_it_and_stays_where_data_stays() {
    use lapidary::base::clock::Clock;
    let clock = Clock::manual(1_796_031_295_000);
    let hand = clock.clone();
    let served = Served::of(World::with(move |b| b.watching(Watching::Off).clock(clock)));
    let body = "chat_state::append(scopes::chat(), \"log\", 1)";
    upload(&served, "file=kit.zip", &packed("kit", &kit("1.0.0", body)).unwrap()).good();
    let store = &served.world.host.services().store;
    let kept = || store.values(Owner { plugin: "kit", chat: "http" }, "log", &|_| Ok(())).unwrap().len();
    assert_eq!((call(&served, "kit"), call(&served, "kit"), kept()), (json!("1"), json!("2"), 2));
    served.delete("/api/plugins/kit?keep_data=true").good();
    assert_eq!(kept(), 2);
    served.post("/api/plugins/kit/rollback", &json!({})).good();
    assert_eq!((call(&served, "kit"), kept()), (json!("3"), 3));
    served.delete("/api/plugins/kit").good();
    assert_eq!(kept(), 0);
    served.post("/api/plugins/kit/rollback", &json!({})).good();
    assert_eq!((kept(), call(&served, "kit")), (3, json!("4")));
    // What is not brought back in time is gone from the database too.
    let home = |name: &str| format!("kit/{name}");
    served.delete("/api/plugins/kit").good();
    let aside =
        names_in(&served.world.path("user/history/kit")).into_iter().find(|n| n.starts_with("removed-")).unwrap();
    let waiting = || store.values(Owner { plugin: &home(&aside), chat: "http" }, "log", &|_| Ok(())).unwrap().len();
    assert_eq!(waiting(), 4);
    hand.advance(30 * 24 * 3_600_000);
    served.world.tool("other", &ECHO.replace("echo", "other"));
    served.delete("/api/plugins/other").good();
    assert_eq!((waiting(), kept()), (0, 0));
}

#[test]
fn data_stays_where_that_is_asked_for_and_a_script_goes_with_its_tests() {
    let served = Served::new();
    upload(&served, "file=kit.zip", &packed("kit", &kit("1.0.0", "1")).unwrap()).good();
    call(&served, "kit");
    assert_eq!(served.delete("/api/plugins/kit?keep_data=true").good()["kept_data"], true);
    assert!(served.world.path("user/plugin_state/kit.json").exists());
    served.world.tool("echo", ECHO);
    served.world.write("user/tools/tests/echo.rhai", "fn test_x() {}");
    served.post("/api/plugins/echo/disable", &json!({})).good();
    served.delete("/api/plugins/echo").good();
    assert!(
        !served.world.path("user/tools/echo.rhai").exists()
            && !served.world.path("user/tools/tests/echo.rhai").exists()
    );
    // Something else took the name meanwhile: nothing of it is touched.
    served.world.write("user/tools/tests/echo.rhai", "fn test_mine() {}");
    let (code, told) = served.post("/api/plugins/echo/rollback", &json!({})).refused(409);
    assert!(code == "conflict" && told.contains("user/tools/tests/echo.rhai"), "{told}");
    std::fs::remove_file(served.world.path("user/tools/tests/echo.rhai")).unwrap();
    let back = served.post("/api/plugins/echo/rollback", &json!({})).good();
    assert_eq!((&back["status"], back["enabled"].as_bool()), (&json!("off"), Some(false)), "it comes back as it was");
    assert!(served.world.path("user/tools/tests/echo.rhai").exists());
    for name in ["nothing", "..%2F..%2Fuser", "%2e%2e"] {
        assert_eq!(served.post(&format!("/api/plugins/{name}/rollback"), &json!({})).status, 404, "{name}");
        assert_eq!(served.get(&format!("/api/plugins/{name}/history")).status, 404, "{name}");
        assert_eq!(served.get(&format!("/api/plugins/{name}/history/1")).status, 404, "{name}");
    }
    assert_eq!(served.delete("/api/plugins/echo?kep_data=true").status, 400);
}

#[test]
fn what_was_removed_is_kept_for_thirty_days_and_no_longer() {
    use lapidary::base::clock::Clock;
    let clock = Clock::manual(1_796_031_295_000);
    let hand = clock.clone();
    let served = Served::of(World::with(move |b| b.watching(Watching::Off).clock(clock)));
    served.world.tool("echo", ECHO);
    served.world.tool("other", &ECHO.replace("echo", "other"));
    let removed = served.delete("/api/plugins/echo").good();
    assert_eq!(
        (&removed["removed_at"], &removed["undo_until"]),
        (&json!("2026-11-30T09:34:55Z"), &json!("2026-12-30T09:34:55Z"))
    );
    hand.advance(30 * 24 * 3_600_000 - 1);
    assert_eq!(served.get("/api/removed").good()["removed"][0]["name"], "echo");
    hand.advance(1);
    assert_eq!(served.get("/api/removed").good()["removed"], json!([]));
    assert_eq!(served.post("/api/plugins/echo/rollback", &json!({})).status, 404);
    served.delete("/api/plugins/other").good();
    assert_eq!(names_in(&served.world.path("user/history/echo")), Vec::<String>::new(), "the next removal sweeps");
}

#[test]
fn shipped_plugins_stay_and_a_copy_of_one_takes_its_place() {
    let served = Served::of(World::with(|b| b.watching(Watching::Off).shipped(Shipped::All)));
    let (code, told) = served.delete("/api/plugins/clock").refused(403);
    assert!(code == "permission_denied" && told.contains("disable"), "{told}");
    let copy = served.post("/api/plugins/clock/copy", &json!({}));
    assert_eq!((copy.status, &copy.json()["origin"]), (201, &json!("plugin folder")));
    let list = served.get("/api/plugins/clock/files").good();
    assert_eq!((&list["editable"], &list["installed"]), (&json!(true), &Value::Null));
    assert!(served.get("/api/tools").good()["tools"].as_array().unwrap().iter().any(|t| t["plugin"] == "clock"));
    assert_eq!(served.post("/api/plugins/clock/copy", &json!({})).refused(409).0, "conflict");
    served.delete("/api/plugins/clock").good();
    assert_eq!(served.get("/api/plugins/clock").good()["origin"], "shipped", "the shipped one is there again");
    served.world.tool("echo", ECHO);
    let other = served.post("/api/plugins/echo/copy", &json!({ "name": "parrot" }));
    assert_eq!(other.status, 201);
    assert!(
        other.json()["status"].as_str().unwrap().starts_with("refused"),
        "its tool is another's: {:?}",
        other.json()
    );
    for (name, body, status) in [
        ("echo", json!({ "name": "echo" }), 409),
        ("echo", json!({ "name": "CLOCK" }), 409),
        ("echo", json!({ "name": "../x" }), 400),
        ("echo", json!({ "nam": "x" }), 400),
        ("ecko", json!({}), 404),
    ] {
        assert_eq!(served.post(&format!("/api/plugins/{name}/copy"), &body).status, status, "{name} {body}");
    }
}

#[test]
fn a_plugin_is_given_away_as_one_file_that_can_be_installed_elsewhere() {
    let served = Served::new();
    let files = kit("1.0.0", "\"one\"");
    upload(&served, "file=kit.zip", &packed("kit", &files).unwrap()).good();
    served.put("/api/plugins/kit/settings", &json!({ "who": "secret place" })).good();
    call(&served, "kit");
    let zip = served.get("/api/plugins/kit/download");
    assert_eq!((zip.status, zip.header("content-type")), (200, Some("application/zip")));
    assert!(zip.header("content-disposition").unwrap().contains("kit.zip"));
    let package = lapidary::plugin::package::Package::of_bytes("kit.zip", zip.body.clone()).unwrap();
    let mut expected = files;
    expected.sort();
    assert_eq!(package.files, expected, "no settings, no state");
    served.world.tool("echo", ECHO);
    let script = served.get("/api/plugins/echo/download");
    assert!(script.body == ECHO.as_bytes() && script.header("content-disposition").unwrap().contains("echo.rhai"));
    let elsewhere = Served::new();
    assert_eq!(upload(&elsewhere, "file=kit.zip", &zip.body).status, 201);
    assert_eq!(call(&elsewhere, "kit"), "one");
    assert_eq!(served.get("/api/plugins/ecko/download").status, 404);
}

#[test]
fn calls_go_on_while_a_plugin_is_replaced_again_and_again() {
    let served = Served::of(World::watching());
    upload(&served, "file=kit.zip", &packed("kit", &kit("1.0.0", "\"v0\"")).unwrap()).good();
    let caller = super::world::Caller::of(&served.world.host, "kit");
    for n in 1..8 {
        let zip = packed("kit", &kit(&format!("1.0.{n}"), &format!("\"v{n}\""))).unwrap();
        assert_eq!(upload(&served, "file=kit.zip&force=true", &zip).status, 201);
        until("the new one answers", || call(&served, "kit") == format!("v{n}"));
    }
    assert_eq!(caller.failed(), 0);
}
