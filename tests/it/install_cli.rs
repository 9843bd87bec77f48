//! `install` and `uninstall` on the command line, and a running host that follows them.

use super::api::ECHO;
use super::mcp::{folder, program, save};
use super::world::{World, until};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

fn run(root: &Path, words: &[&str]) -> Output {
    program(root).args(words).output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_plugin_is_installed_shown_removed_and_brought_back_by_commands() {
    let dir = folder(&[("other", &ECHO.replace("echo", "other"))]);
    let elsewhere = tempfile::tempdir().unwrap();
    let script = elsewhere.path().join("echo.rhai");
    std::fs::write(&script, format!("const PERMISSIONS = [\"RUN_COMMANDS\"];\n{ECHO}")).unwrap();
    let path = script.to_str().unwrap();
    let look = run(dir.path(), &["install", path, "--look"]);
    assert!(look.status.success() && out(&look).contains("it asks to: run programs on this machine"), "{}", out(&look));
    assert!(!dir.path().join("user/tools/echo.rhai").exists());
    let done = run(dir.path(), &["install", path]);
    assert!(done.status.success() && out(&done).contains("lapidary grant echo RUN_COMMANDS"), "{}", out(&done));
    let other = elsewhere.path().join("quiet.rhai");
    let asks = format!("const PERMISSIONS = [\"READ_NOTES\", \"SPEND\"];\n{}", ECHO.replace("echo", "quiet"));
    std::fs::write(&other, asks).unwrap();
    let quiet = run(dir.path(), &["install", other.to_str().unwrap(), "--deny", "READ_NOTES", "--deny", "SPEND"]);
    let told = out(&quiet);
    assert!(quiet.status.success() && told.contains("it may not: read notes; spend money"), "{told}");
    assert!(!told.contains("needs a grant") && !told.contains("it may:"), "{told}");
    let wrong = run(dir.path(), &["install", other.to_str().unwrap(), "--force", "--deny", "READ_NOTE"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("READ_NOTES"));
    let again = run(dir.path(), &["install", path, "--json"]);
    assert_eq!(again.status.code(), Some(1));
    let refused: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(refused["error"]["code"], "conflict");
    let info = run(dir.path(), &["info", "echo"]);
    assert!(out(&info).contains("from echo.rhai on") && out(&info).contains("as it came"), "{}", out(&info));
    let gone = run(dir.path(), &["uninstall", "echo"]);
    assert!(gone.status.success() && out(&gone).contains("lapidary rollback echo"), "{}", out(&gone));
    assert_eq!(run(dir.path(), &["info", "echo"]).status.code(), Some(1));
    let back = run(dir.path(), &["rollback", "echo"]);
    assert!(back.status.success() && out(&back).contains("echo: back again, live"), "{}", out(&back));
    let stays = run(dir.path(), &["uninstall", "clock"]);
    assert_eq!(stays.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&stays.stderr).contains("lapidary disable clock"));
}

#[test]
fn a_folder_is_installed_and_a_running_host_follows() {
    let world = World::watching();
    let elsewhere = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("kit/plugin.json", r#"{"name": "kit", "version": "1.0.0", "description": "For tests."}"#),
        ("kit/tools/a.rhai", "/// Give a. For tests.\nfn kit_a() { \"a\" }\n"),
    ] {
        save(elsewhere.path(), path, text);
    }
    let done = run(world.dir.path(), &["install", elsewhere.path().join("kit").to_str().unwrap()]);
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    until("the host has it", || world.status("kit").starts_with("live"));
    assert_eq!(world.text("kit_a", serde_json::json!({})), "a");
    assert!(run(world.dir.path(), &["uninstall", "kit", "--keep-data"]).status.success());
    until("the host has let it go", || world.status("kit").is_empty());
}
