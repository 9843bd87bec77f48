//! The files of plugins over HTTP: read with their versions, checked, saved over the version that was edited and no other.

use super::api::ECHO;
use super::api_client::Served;
use super::world::World;
use lapidary::app::{Shipped, Watching};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn version(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
}

fn served() -> Served {
    let served = Served::new();
    served.world.tool("echo", ECHO);
    served
        .world
        .write("user/plugins/kit/plugin.json", r#"{"name": "kit", "version": "1.0.0", "description": "For tests."}"#);
    served.world.write("user/plugins/kit/tools/a.rhai", "/// Give a. For tests.\nfn kit_a() { \"a\" }\n");
    served.world.write("user/plugins/kit/notes.md", "# Kit\n");
    served.world.write("user/plugins/kit/picture.png", "no text");
    served.world.host.plugins().rescan();
    served
}

#[test]
fn a_save_is_live_when_it_is_answered_and_gives_the_new_version() {
    let served = served();
    let source = served.get("/api/plugins/echo/source");
    assert_eq!(source.header("etag"), Some(format!("\"{}\"", version(ECHO)).as_str()));
    let source = source.good();
    assert_eq!(source, json!({ "path": "echo.rhai", "text": ECHO, "version": version(ECHO), "editable": true }));
    let text = ECHO.replace("    out\n", "    out + \"!\"\n");
    let saved = served.put("/api/plugins/echo/source", &json!({ "text": text, "base": version(ECHO) })).good();
    assert_eq!((&saved["version"], &saved["plugin"]["status"]), (&json!(version(&text)), &json!("live 2")));
    assert_eq!(served.world.text("echo", json!({ "text": "a" })), "a!");
    // The same again is no other version, whatever it was edited from.
    let again = served.put("/api/plugins/echo/source", &json!({ "text": text, "base": version(ECHO) })).good();
    assert_eq!((&again["version"], &again["plugin"]["status"]), (&json!(version(&text)), &json!("live 2")));
}

#[test]
fn a_text_that_does_not_load_is_saved_and_the_last_good_one_goes_on() {
    let served = served();
    let broken = ECHO.replace("fn echo(text, times) {", "fn echo(text, times {");
    let saved = served.put("/api/plugins/echo/source", &json!({ "text": broken, "base": version(ECHO) })).good();
    assert!(saved["plugin"]["status"].as_str().unwrap().starts_with("live 1, disk 2 failed"), "{saved}");
    assert!(saved["plugin"]["diagnostics"][0]["line"].as_u64().unwrap() > 1);
    assert_eq!(std::fs::read_to_string(served.world.path("user/tools/echo.rhai")).unwrap(), broken);
    assert_eq!(served.world.text("echo", json!({ "text": "a" })), "a");
}

#[test]
fn a_save_over_another_version_changes_nothing_and_shows_what_is_there() {
    let served = served();
    let theirs = ECHO.replace("Say a text again", "Say it once more");
    served.world.tool("echo", &theirs);
    let mine = json!({ "text": "mine", "base": version(ECHO) });
    let answer = served.put("/api/plugins/echo/source", &mine);
    assert_eq!(answer.refused(409).0, "conflict");
    assert_eq!(answer.json()["current"], json!({ "path": "echo.rhai", "text": theirs, "version": version(&theirs) }));
    let path = served.world.path("user/tools/echo.rhai");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), theirs);
    for base in [json!(null), json!(""), json!("00"), json!(version("x"))] {
        assert_eq!(served.put("/api/plugins/echo/source", &json!({ "text": "x", "base": base })).status, 409, "{base}");
    }
    std::fs::remove_file(&path).unwrap();
    let gone = served.put("/api/plugins/echo/source", &json!({ "text": "x", "base": version(&theirs) }));
    assert_eq!((gone.status, &gone.json()["current"]), (409, &Value::Null));
    assert!(!path.exists());
}

#[test]
fn of_two_who_save_at_once_one_is_told() {
    let served = served();
    for round in 0..20 {
        let base = served.get("/api/plugins/kit/source?path=notes.md").good()["version"].clone();
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let both: Vec<_> = ["one", "two"]
                .into_iter()
                .map(|who| {
                    let body = json!({ "path": "notes.md", "text": format!("{who} {round}"), "base": base });
                    scope.spawn({
                        let served = &served;
                        move || served.put("/api/plugins/kit/source", &body).status
                    })
                })
                .collect();
            both.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(statuses == [200, 409] || statuses == [409, 200], "{statuses:?}");
    }
}

#[test]
fn files_of_a_folder_are_listed_made_and_named_by_paths_inside_it() {
    let served = served();
    let list = served.get("/api/plugins/kit/files").good();
    assert_eq!(list["editable"], true);
    let paths = |list: &Value| -> Vec<String> {
        list["files"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(&list), ["notes.md", "plugin.json", "tools/a.rhai"]);
    assert_eq!((&list["files"][0]["bytes"], &list["files"][0]["version"]), (&json!(6), &json!(version("# Kit\n"))));
    let b = "/// Give b. For tests.\nfn kit_b() { \"b\" }\n";
    let made =
        served.put("/api/plugins/kit/source", &json!({ "path": "tools/b.rhai", "text": b, "base": null })).good();
    assert_eq!(made["plugin"]["tools"], json!(["kit_a", "kit_b"]));
    served
        .put("/api/plugins/kit/source", &json!({ "path": "lib/deep/x.rhai", "text": "fn x() { 1 }", "base": null }))
        .good();
    assert_eq!(served.get("/api/plugins/kit/source?path=lib/deep/x.rhai").good()["text"], "fn x() { 1 }");
    assert_eq!(paths(&served.get("/api/plugins/kit/files").good()).len(), 5);
    let single = served.get("/api/plugins/echo/files").good();
    assert_eq!(paths(&single), ["echo.rhai"]);
    served
        .put("/api/plugins/echo/source", &json!({ "path": "tests/echo.rhai", "text": "fn test_x() {}", "base": null }))
        .good();
    assert_eq!(paths(&served.get("/api/plugins/echo/files").good()), ["echo.rhai", "tests/echo.rhai"]);
}

#[test]
fn no_path_leads_out_of_a_plugin_and_no_other_file_is_written() {
    let served = served();
    served.world.write("user/plugins/kit/../../../outside.rhai", "secret");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(served.world.path("outside.rhai"), served.world.path("user/plugins/kit/link.rhai"))
            .unwrap();
        std::os::unix::fs::symlink(served.world.path("user"), served.world.path("user/plugins/kit/up")).unwrap();
    }
    let rows = [
        ("kit", "../echo.rhai"),
        ("kit", "../../../outside.rhai"),
        ("kit", "/etc/hosts.txt"),
        ("kit", "tools/../../x.rhai"),
        ("kit", "./plugin.json"),
        ("kit", "tools//a.rhai"),
        ("kit", "tools\\a.rhai"),
        ("kit", "C:/x.rhai"),
        ("kit", "link.rhai"),
        ("kit", "up/tools/echo.rhai"),
        ("kit", ".git/config.txt"),
        ("kit", "a.rhai~"),
        ("kit", ".hidden.rhai"),
        ("kit", "picture.png"),
        ("kit", "run.exe"),
        ("kit", "tools"),
        ("kit", ""),
        ("kit", "a\u{0}b.rhai"),
        ("echo", "wait.rhai"),
        ("echo", "tests/wait.rhai"),
        ("echo", "../echo.rhai"),
        ("echo", "plugin.json"),
    ];
    for (plugin, path) in rows {
        let body = json!({ "path": path, "text": "x", "base": null });
        let saved = served.put(&format!("/api/plugins/{plugin}/source"), &body);
        assert!(matches!(saved.status, 400 | 403 | 404), "{path}: {}", saved.status);
        let encoded: String = path.bytes().map(|b| format!("%{b:02X}")).collect();
        let read = served.get(&format!("/api/plugins/{plugin}/source?path={encoded}"));
        assert!(matches!(read.status, 400 | 403 | 404), "{path}: {}", read.status);
        let checked = served.post(&format!("/api/plugins/{plugin}/check"), &json!({ "path": path, "text": "x" }));
        assert!(matches!(checked.status, 400 | 403 | 404), "{path}: {}", checked.status);
        let root = served.world.dir.path().display().to_string();
        for answer in [saved, read, checked] {
            assert!(!String::from_utf8_lossy(&answer.body).contains(&root), "{path}");
        }
    }
    assert_eq!(std::fs::read_to_string(served.world.path("outside.rhai")).unwrap(), "secret");
    for name in ["..%2fkit", "%2e%2e", "nothing", "a%00b", "kit%2f..%2fecho"] {
        assert_eq!(served.get(&format!("/api/plugins/{name}/source?path=plugin.json")).status, 404, "{name}");
    }
}

#[test]
fn what_is_no_text_or_too_much_is_refused_and_so_is_a_body_that_does_not_fit() {
    let served = served();
    std::fs::write(served.world.path("user/plugins/kit/latin.txt"), b"caf\xe9").unwrap();
    assert!(served.get("/api/plugins/kit/source?path=latin.txt").refused(400).1.contains("byte 3"));
    let large = "x".repeat((1 << 20) + 1);
    for path in ["/api/plugins/echo/source", "/api/plugins/echo/check"] {
        let answer = match path.ends_with("check") {
            true => served.post(path, &json!({ "text": large })),
            false => served.put(path, &json!({ "text": large, "base": version(ECHO) })),
        };
        assert_eq!(answer.refused(413).0, "too_large", "{path}");
    }
    std::fs::write(served.world.path("user/plugins/kit/big.txt"), &large).unwrap();
    assert_eq!(served.get("/api/plugins/kit/source?path=big.txt").status, 413);
    assert!(served.get("/api/plugins/kit/source").refused(400).1.contains("plugin.json"));
    let (_, told) = served.put("/api/plugins/echo/source", &json!({ "txt": "x" })).refused(400);
    assert!(told.contains("`txt`") && told.contains("`text`"), "{told}");
    assert!(served.put("/api/plugins/echo/source", &json!({ "base": null })).refused(400).1.contains("`text`"));
    assert_eq!(served.put("/api/plugins/ecko/source", &json!({ "text": "x" })).refused(404).0, "not_found");
}

#[test]
fn a_check_finds_what_a_save_would_and_writes_nothing() {
    let served = served();
    let check = |plugin: &str, body: Value| -> Value {
        served.post(&format!("/api/plugins/{plugin}/check"), &body).good()["diagnostics"].clone()
    };
    assert_eq!(check("echo", json!({ "text": ECHO })), json!([]));
    let broken = check("echo", json!({ "text": "fn echo( {" }));
    assert_eq!(
        (&broken[0]["severity"], &broken[0]["file"], &broken[0]["line"]),
        (&json!("error"), &json!("user/tools/echo.rhai"), &json!(1))
    );
    let taken = check("echo", json!({ "text": "/// Steal. For tests.\nfn kit_a() { 1 }\n" }));
    assert!(taken[0]["message"].as_str().unwrap().contains("belongs to the plugin `kit`"), "{taken}");
    let more = check("echo", json!({ "text": format!("const PERMISSIONS = [\"RUN_COMMANDS\"];\n{ECHO}") }));
    assert!(more.as_array().unwrap().iter().any(|d| d["code"] == "permission" && d["line"] == 1), "{more}");
    let new =
        check("kit", json!({ "path": "tools/new.rhai", "text": "/// New. For tests.\nfn kit_new() { oops( }\n" }));
    assert_eq!((&new[0]["file"], &new[0]["line"]), (&json!("user/plugins/kit/tools/new.rhai"), &json!(2)), "{new}");
    let manifest = check("kit", json!({ "path": "plugin.json", "text": "{ \"name\": 5 }" }));
    assert!(manifest.as_array().unwrap().iter().any(|d| d["code"] == "manifest"), "{manifest}");
    let test = check("kit", json!({ "path": "tests/a.rhai", "text": "fn test_a() {\n  let = 1;\n}" }));
    assert_eq!((&test[0]["line"], &test[0]["file"]), (&json!(2), &json!("user/plugins/kit/tests/a.rhai")), "{test}");
    assert_eq!(check("kit", json!({ "path": "notes.md", "text": "# anything {" })), json!([]));
    assert_eq!(served.world.text("echo", json!({ "text": "a" })), "a");
    assert_eq!(std::fs::read_to_string(served.world.path("user/tools/echo.rhai")).unwrap(), ECHO);
    assert!(!served.world.path("user/plugins/kit/tools/new.rhai").exists());
    assert_eq!(served.world.status("echo"), "live 1");
}

#[test]
fn a_shipped_plugin_is_read_and_not_written() {
    let served = Served::of(World::with(|b| b.watching(Watching::Off).shipped(Shipped::All)));
    let list = served.get("/api/plugins/clock/files").good();
    assert_eq!(list["editable"], false);
    let path = list["files"][0]["path"].as_str().unwrap();
    let source = served.get(&format!("/api/plugins/clock/source?path={path}")).good();
    assert_eq!(source["editable"], false);
    let body = json!({ "path": path, "text": "x", "base": source["version"] });
    let (code, told) = served.put("/api/plugins/clock/source", &body).refused(403);
    assert!(code == "permission_denied" && told.contains("copy"), "{told}");
}

#[test]
fn a_new_file_has_a_name_that_every_system_takes_for_another() {
    let served = served();
    for (path, status) in [
        ("tools/b.rhai", 200),
        ("PLUGIN.json", 409),
        ("tools/A.rhai", 409),
        ("Tools/a.rhai", 409),
        ("tools/a:b.rhai", 400),
        ("tools/a .md", 200),
        ("tools/ a.md", 400),
    ] {
        let answer = served.put("/api/plugins/kit/source", &json!({ "path": path, "text": "// nothing\n" }));
        assert_eq!(answer.status, status, "{path}: {}", answer.json());
    }
    let names = served.get("/api/plugins/kit/files").good();
    assert!(!names.to_string().contains("PLUGIN.json"), "{names}");
}
