//! `command::run` as scripts have it: who may, what a program is told, that it ends with its call, and what never reaches it.

use crate::world::{World, until};
use lapidary::app::Watching;
use lapidary::base::file::write_atomic_private;
use lapidary::base::paths::Paths;
use lapidary::service::credentials::Source;
use lapidary::tool::dispatch::{Call, CallHandle, Who};
use serde_json::{Value, json};
use std::sync::Arc;

struct Shop(World, #[expect(dead_code, reason = "the credentials go with it")] tempfile::TempDir);

fn shop(granted: &[&str], settings: &str) -> Shop {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials.json");
    write_atomic_private(&file, br#"{"credentials": {"key": {"value": "pass word 77", "hosts": ["a.example"]}}}"#)
        .unwrap();
    let world = World::prepared(
        |root| {
            let paths = Paths::at(root);
            paths.ensure().unwrap();
            std::fs::write(paths.grants_file(), json!({ "probe": { "granted": granted } }).to_string()).unwrap();
            std::fs::write(paths.lapidary_toml(), settings).unwrap();
        },
        |b| b.watching(Watching::Off).credentials(Source::file(file)),
    );
    Shop(world, dir)
}

impl Shop {
    fn load(&self, statements: &str) {
        let text = format!(
            "const PERMISSIONS = [\"RUN_COMMANDS\", \"USE_SECRETS\"];\n/// Try it. Use it in tests.\n/// @local\n/// @writes\nfn probe() {{\n{statements}\n}}\n"
        );
        self.0.tool("probe", &text);
    }

    #[track_caller]
    fn gives(&self, statements: &str) -> Value {
        self.load(statements);
        serde_json::from_str(&self.0.text("probe", json!({}))).unwrap()
    }

    #[track_caller]
    fn throws(&self, statements: &str) -> &'static str {
        self.load(statements);
        self.0.fails("probe", json!({})).0
    }
}

const BOTH: &[&str] = &["RUN_COMMANDS", "USE_SECRETS"];

#[test]
fn a_program_is_run_where_the_owner_allows_it_and_nowhere_else() {
    let open = shop(BOTH, "");
    assert_eq!(
        open.gives("command::run(\"sh\", [\"-c\", \"cat; echo $A $1 >&2; exit 4\", \"sh\", 7], #{stdin: \"in\", env: #{A: true}})"),
        json!({"code": 4, "stdout": "in", "stderr": "true 7\n"})
    );
    assert_eq!(open.gives("[command::run(\"printf\", [\"a\\\\377b\"]).stdout]"), json!(["a\u{fffd}b"]));
    let who = Who { private: true, ..Who::owner("test").in_chat("diary") };
    open.load("command::run(\"touch\", [\"x\"])");
    let outcome = open.0.host.call_now(Call::new("probe", serde_json::Map::new(), who));
    assert_eq!(outcome.error.unwrap().code(), "disabled");
    assert!(!open.0.path("user/plugin_state/probe_files/x").exists());
    let closed = shop(&["USE_SECRETS"], "");
    assert_eq!(closed.throws("command::run(\"true\", [])"), "permission_denied");
    // Not declared, though granted.
    open.0.tool("probe", "/// Try it. Use it in tests.\n/// @local\nfn probe() { command::run(\"true\", []) }\n");
    assert_eq!(open.0.fails("probe", json!({})).0, "permission_denied");
}

#[test]
fn what_makes_no_sense_is_thrown_with_its_code() {
    let shop = shop(BOTH, "");
    for (call, code) in [
        ("\"no-such-program-here\", []", "not_found"),
        ("\"ls -l\", []", "invalid_arguments"),
        ("\"ls\", [[]]", "invalid_arguments"),
        ("\"ls\", [()]", "invalid_arguments"),
        ("\"ls\", [], #{shell: true}", "invalid_arguments"),
        ("\"ls\", [], #{env: #{PATH: \"x\"}}", "invalid_arguments"),
        ("\"ls\", [], #{env: #{http_proxy: \"\"}}", "invalid_arguments"),
        ("\"ls\", [], #{max_bytes: 99999999999}", "invalid_arguments"),
        ("\"yes\", [], #{max_bytes: 1000}", "too_large"),
        ("\"sleep\", [1000], #{timeout: 0.2}", "timeout"),
    ] {
        assert_eq!(shop.throws(&format!("command::run({call})")), code, "{call}");
    }
}

#[test]
fn a_secret_never_reaches_a_program() {
    let shop = shop(BOTH, "");
    for call in
        ["\"echo\", [k]", "k, []", "\"cat\", [], #{stdin: k}", "\"env\", [], #{env: #{K: k}}", "\"echo\", [[k]]"]
    {
        shop.load(&format!("let k = credentials::get(\"key\"); command::run({call})"));
        let outcome = shop.0.call("probe", json!({}));
        assert!(!outcome.ok && !format!("{outcome:?}").contains("pass word"), "{call}: {outcome:?}");
    }
    // What a program finds out by itself is taken out of what it says.
    let said = shop
        .gives("credentials::get(\"key\"); [command::run(\"printf\", [\"a pass\\\\040word\\\\04077\"]).stdout.len()]");
    assert_eq!(said, json!([5]));
}

#[test]
fn programs_are_pointed_to_the_proxy_whose_password_is_not_shown() {
    let ask_lines = |settings: &str| -> Vec<String> {
        let told = shop(BOTH, settings).gives("[command::run(\"env\", []).stdout]");
        let lines = told[0].as_str().unwrap().lines().map(str::to_owned);
        lines.filter(|l| l.to_lowercase().contains("_proxy=") && !l.to_lowercase().starts_with("no_")).collect()
    };
    assert_eq!(ask_lines(""), Vec::<String>::new());
    let told = ask_lines(
        "[net]\nproxy = \"http://proxy.lan:3128\"\nproxy_user = \"ann\"\nproxy_password = \"pass phrase 9\"\n",
    );
    assert!(told.iter().all(|line| line.ends_with("=http://ann:***@proxy.lan:3128")), "{told:?}");
    let broken = ask_lines("[net]\nproxy = \"ftp://x\"\n");
    assert!(!broken.is_empty() && broken.iter().all(|line| line.ends_with("=http://closed.invalid:9")), "{broken:?}");
}

/// The number of the process that a program wrote down.
#[cfg(target_os = "linux")]
fn grandchild(shop: &Shop) -> String {
    let file = shop.0.path("user/plugin_state/probe_files/id");
    until("the program has started", || std::fs::read_to_string(&file).is_ok_and(|id| id.ends_with('\n')));
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

#[cfg(target_os = "linux")]
fn is_gone(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(['Z', 'X']))
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_and_its_children_end_at_the_deadline_and_at_a_cancel() {
    let shop = shop(BOTH, "");
    let run = "command::run(\"sh\", [\"-c\", \"sleep 1000 & echo $! > id; wait\"])";
    shop.0.tool(
        "probe",
        &format!("const PERMISSIONS = [\"RUN_COMMANDS\"];\n/// Try it. Use it in tests.\n/// @local\n/// @timeout 1\nfn probe() {{ {run} }}\n"),
    );
    assert_eq!(shop.0.fails("probe", json!({})).0, "timeout");
    let id = grandchild(&shop);
    until("the deadline ended it", || is_gone(&id));
    std::fs::remove_file(shop.0.path("user/plugin_state/probe_files/id")).unwrap();
    shop.load(run);
    let handle = Arc::new(CallHandle::default());
    let mut call = Call::new("probe", serde_json::Map::new(), Who::owner("test"));
    call.handle = Some(handle.clone());
    let host = shop.0.host.clone();
    let calling = std::thread::spawn(move || host.call_now(call));
    let id = grandchild(&shop);
    handle.cancel();
    assert_eq!(calling.join().unwrap().error.unwrap().code(), "cancelled");
    until("the cancel ended it", || is_gone(&id));
}
