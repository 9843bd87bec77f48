//! The runner of script tests: worlds that share nothing, assertions that say where, and what `lapidary test` prints.

use crate::shell::Shell;
use lapidary::trial;
use serde_json::{Value, json};

const CELLAR: &str = r#"const SETTINGS = #{ unit: "bottle" };
const PERMISSIONS = ["RUN_COMMANDS", "EXTERNAL_HTTP"];

/// Count what lies in the cellar. Use it when someone asks how much is left.
///
/// @param {integer 1..100} add=1 - How many came in.
/// @local
/// @example {"add": 2} => /^2 bottles$/
/// @example {} => /^1 bottle$/
fn cellar(add) {
    let n = state::update("n", 0, |n| n + add);
    cache::put("last", n, 60);
    let unit = settings::get("unit");
    if n == 1 { `${n} ${unit}` } else { `${n} ${unit}s` }
}

/// Say what was counted in the last minute. Use it to look again.
/// @local
fn lately() { cache::get("last") ?? "nothing" }

/// Fetch a page. Use it when a page is wanted.
fn far_away() { net::get("http://192.0.2.1/") }

/// Fail inside. Use it when something must fail.
/// @local
fn inside() { let x = #{}; x.y.z }
"#;

const TESTS: &str = r#"
const KEPT = "kept";

fn helper(n) { tools::run("cellar", #{ add: n }) }

fn test_a_world_is_fresh() { assert_eq(helper(1), "1 bottle"); assert_eq(KEPT, "kept"); }
fn test_a_world_is_fresh_again() { assert_eq(helper(3), "3 bottles"); assert_eq(state::get("n", 0), 3); }
fn test_a_setting_is_stored_as_by_a_person() {
    settings_set("unit", "jar");
    assert_eq(helper(2), "2 jars");
    assert_throws(|| settings_set("unti", "x"), "invalid_arguments");
}
fn test_the_clock_stands_until_it_is_turned() {
    helper(5);
    advance(59);
    assert_eq(tools::run("lately", #{}), "5");
    advance(1.5);
    assert_eq(tools::run("lately", #{}), "nothing");
}
fn test_what_is_thrown_can_be_looked_at() {
    let e = assert_throws(|| tools::run("cellar", #{ add: 1000 }), "invalid_arguments");
    assert(e.message.contains("add"), e.message);
    assert_throws(|| throw failure(#{ code: "conflict", message: "x" }), "conflict");
    assert_ne(assert_throws(|| 1 / 0).message, "");
}
fn test_a_folder_is_granted_and_empty() {
    assert_throws(|| files::root("pictures"), "permission_denied");
    grant_folder("pictures");
    let pictures = files::root("pictures");
    assert_eq(pictures.list(), []);
    pictures.write_text("a/b.txt", "hi");
    assert_eq(pictures.list("a").map(|entry| entry.name), ["b.txt"]);
    assert_throws(|| grant_folder("../pictures"), "invalid_arguments");
}
fn test_what_may_be_taken_away() {
    revoke("EXTERNAL_HTTP");
    assert_throws(|| tools::run("far_away", #{}), "permission_denied");
    assert_throws(|| revoke("EVERYTHING"), "invalid_arguments");
}
"#;

fn run(sh: &Shell, words: &[&str], code: i32) -> Value {
    sh.run(&[&["test", "--json"], words].concat()).ends(code).json()
}

/// Names of the tests of a report, with whether they passed.
fn ended(report: &Value) -> Vec<(String, bool)> {
    let tests = report["tests"].as_array().unwrap();
    tests.iter().map(|t| (t["name"].as_str().unwrap().to_owned(), t["ok"].as_bool().unwrap())).collect()
}

#[test]
fn each_test_and_each_example_has_a_world_of_its_own() {
    let sh = Shell::new();
    sh.write("user/tools/cellar.rhai", CELLAR);
    sh.write("user/tools/tests/cellar.rhai", TESTS);
    let report = run(&sh, &[], 0);
    assert_eq!((&report["passed"], &report["failed"]), (&json!(9), &json!(0)), "{report:#}");
    let first = &report["tests"][0];
    assert_eq!((&first["plugin"], &first["file"]), (&json!("cellar"), &json!("user/tools/cellar.rhai")));
    assert_eq!(report["tests"][2]["file"], "user/tools/tests/cellar.rhai");
    let text = sh.run(&["test"]).ends(0);
    assert!(
        text.out.contains("  ok      test_a_world_is_fresh\n") && text.out.ends_with("\n9 passed, 0 failed\n"),
        "{text:?}"
    );
    assert!(!sh.path("user/plugin_state/cellar.json").exists(), "a test leaves nothing in the root");
    assert!(!sh.path("user/webui/plugins/cellar.json").exists());
}

#[test]
fn a_failure_says_where_and_why() {
    let sh = Shell::new();
    sh.write("user/tools/cellar.rhai", CELLAR.replace("/^1 bottle$/", "/^9/"));
    sh.write(
        "user/tools/tests/cellar.rhai",
        r#"fn test_one() { assert_eq([1, "a"], [1, "b"]); }
fn test_two() {
    log::info("looking", #{});
    print("printed");
    assert(1 > 2, "one is not more");
}
fn test_three() { assert_throws(|| 7, "conflict"); }
fn test_four() { assert_throws(|| tools::run("cellar", #{ add: 0 }), "conflict"); }
fn test_five() { assert_throws(|| throw "x", "confict"); }
fn test_six() { tools::run("inside", #{}); }
fn test_seven() { assert_ne((), ()); }
fn test_eight() { assert_eq(1, 1.0); }
fn test_nine() { nothing_there }
fn test_ten() { advance(-1); }
"#,
    );
    let done = sh.run(&["test"]).ends(1);
    for part in [
        "FAILED  example cellar {}",
        "the result does not match /^9/",
        "it was: 1 bottle",
        "[1,\"a\"] is not [1,\"b\"]",
        "user/tools/tests/cellar.rhai:1:17",
        "one is not more",
        "| info: printed",
        "nothing was thrown; it gave 7",
        "it threw `invalid_arguments`",
        "`confict` is no failure code",
        "user/tools/tests/cellar.rhai:10:",
        "both are ()",
        "1 is not 1.0",
        "no variable `nothing_there`",
        "the clock moves forward",
        "1 passed, 11 failed",
    ] {
        assert!(done.out.contains(part), "{part}\n{}", done.out);
    }
    // Where the tool itself failed is shown behind the test's own line.
    assert!(done.out.contains("user/tools/cellar.rhai:"), "{}", done.out);
}

#[test]
fn what_does_not_load_is_one_failure_and_the_others_run() {
    let sh = Shell::new();
    sh.write("user/tools/cellar.rhai", CELLAR);
    sh.write("user/tools/broken.rhai", "fn broken(");
    let report = run(&sh, &[], 1);
    assert_eq!(
        ended(&report),
        [
            ("loading it".to_owned(), false),
            ("example cellar {\"add\":2}".to_owned(), true),
            ("example cellar {}".to_owned(), true)
        ]
    );
    let rows = [
        ("fn test_it( {", ":1:"),
        ("fn helper() { 1 }", "the file has no tests"),
        ("fn test_it(x) { x }", "a test has none"),
        ("private fn test_it() { 1 }", "is private"),
        ("state::save(\"a\", 1); fn test_it() { }", "not available while loading"),
        ("import \"../x\" as x; fn test_it() { }", "cannot be imported"),
    ];
    for (text, part) in rows {
        sh.write("user/tools/tests/cellar.rhai", text);
        let done = sh.run(&["test", "cellar"]).ends(1);
        assert!(done.out.contains("FAILED  loading it") && done.out.contains(part), "{text}: {}", done.out);
    }
}

#[test]
fn a_plugin_folder_is_tested_with_its_own_modules_and_shared_ones() {
    let sh = Shell::new();
    sh.write("user/plugins/tea/plugin.json", r#"{"name": "tea", "description": "Tea.", "default_enabled": false, "capabilities": {"tools": ["tools/tea.rhai"], "settings": [{"key": "house", "type": "string", "default": "mint"}]}}"#);
    sh.write("user/plugins/tea/tools/tea.rhai", "import \"lib/leaves\" as leaves;\nimport \"std/words\" as words;\n/// Steep tea. Use it when someone is thirsty.\n/// @local\nfn steep() { leaves::say(settings::get(\"house\")) + files::asset(\"card.txt\") }\n");
    sh.write("user/plugins/tea/lib/leaves.rhai", "fn say(x) { `${x} leaves` }");
    sh.write("user/plugins/tea/card.txt", "!");
    sh.write("user/plugins/tea/tests/a.rhai", "import \"lib/leaves\" as leaves;\nfn test_lib() { assert_eq(leaves::say(\"x\"), \"x leaves\"); }\nfn test_tool() { assert_eq(tools::run(\"steep\", #{}), \"mint leaves!\"); assert_eq(settings::get(\"house\"), \"mint\"); }\n");
    sh.write(
        "user/plugins/tea/tests/deep/b.rhai",
        "import \"std/mine\" as mine;\nfn test_shared() { assert_eq(mine::one(), 1); }\n",
    );
    sh.write("stdlib/mine.rhai", "fn one() { 1 }");
    sh.write("stdlib/words.rhai", "fn of() { 1 }");
    for words in [&[][..], &["tea"], &["user/plugins/tea"], &["user/plugins"], &["user"], &["."]] {
        assert_eq!(run(&sh, words, 0)["passed"], 3, "{words:?}");
    }
    assert_eq!(run(&sh, &["user/plugins/tea/tests/a.rhai"], 0)["passed"], 2);
    assert_eq!(run(&sh, &["user/plugins/tea/tests"], 0)["passed"], 3);
}

#[test]
fn a_plugin_that_it_requires_is_there_in_its_tests() {
    let sh = Shell::new();
    for (name, requires) in [("cup", r#"["tea", "nobody"]"#), ("tea", r#"["water", "cup"]"#), ("water", "[]")] {
        sh.write(
            &format!("user/plugins/{name}/plugin.json"),
            format!(r#"{{"name": "{name}", "description": "A drink.", "requires_plugins": {requires}, "capabilities": {{"tools": ["tools/t.rhai"]}}}}"#),
        );
        sh.write(
            &format!("user/plugins/{name}/tools/t.rhai"),
            format!(
                "/// Give {name}. Use it when someone is thirsty.\n/// @local\nfn give_{name}() {{ \"{name}\" }}\n"
            ),
        );
    }
    sh.write(
        "user/plugins/cup/tests/a.rhai",
        "fn test_all() { for name in [\"cup\", \"tea\", \"water\"] { assert_eq(tools::run(`give_${name}`, #{}), name); } }",
    );
    sh.write(
        "user/plugins/water/tests/a.rhai",
        "fn test_alone() { assert_throws(|| tools::run(\"give_tea\", #{}), \"not_found\"); }",
    );
    assert_eq!(run(&sh, &[], 0)["passed"], 2);
}

#[test]
fn a_script_in_a_tests_folder_may_stand_for_itself() {
    let sh = Shell::new();
    let outside = Shell::new();
    outside.write("tests/alone.rhai", "const PERMISSIONS = [\"EXTERNAL_HTTP\"];\nfn test_state() { state::save(\"a\", 1); assert_eq(state::get(\"a\", 0), 1); }\nfn test_shipped() { assert(tools::run(\"roll_dice\", #{}).starts_with(\"rolled\"), \"the shipped plugins are there\"); }\nfn test_settings() { assert_throws(|| settings_set(\"a\", 1), \"not_found\"); assert_throws(|| grant_folder(\"a\"), \"not_found\"); }\n");
    let path = outside.path("tests/alone.rhai");
    let report = run(&sh, &[path.to_str().unwrap()], 0);
    assert_eq!((&report["passed"], &report["tests"][0]["plugin"]), (&json!(3), &json!("")));
    sh.run(&["check", path.to_str().unwrap()]).ends(0).says("3 tests");
}

#[test]
fn a_tool_that_leans_on_what_only_tests_have_fails_in_its_test() {
    let sh = Shell::new();
    sh.write(
        "user/tools/cheat.rhai",
        "/// Cheat. Use it never.\n/// @local\n/// @example {}\nfn cheat() { assert_eq(1, 1); 7 }\n",
    );
    let done = sh.run(&["test"]).ends(1);
    assert!(done.out.contains("assert_eq"), "{done:?}");
}

#[test]
fn no_tests_is_no_failure_and_a_wrong_path_is() {
    let sh = Shell::new();
    sh.run(&["test"]).ends(0).says("No tests").says("0 passed, 0 failed");
    sh.write("user/tools/quiet.rhai", "/// Nothing. Use it when nothing is wanted.\n/// @local\nfn quiet() { }\n");
    sh.run(&["test", "quiet"]).ends(0).says("0 passed, 0 failed");
    sh.run(&["test", "quite"]).ends(1).complains("did you mean quiet");
    sh.run(&["test", "nowhere/x.rhai"]).ends(1).complains("nowhere/x.rhai");
    sh.write("notes.txt", "x");
    sh.run(&["test", "notes.txt"]).ends(1).complains("not a script");
}

#[test]
fn a_test_that_hangs_ends_at_its_budget_and_the_next_one_runs() {
    let report = trial::run_text("t.rhai", "fn test_a() { loop { } }\nfn test_b() { assert(true); }");
    assert_eq!((report.passed, report.failed), (1, 1));
    assert_eq!(report.tests[0].diagnostics[0].code, "quota");
}

#[test]
fn check_looks_at_anything_that_is_a_script() {
    let sh = Shell::new();
    sh.write("user/tools/cellar.rhai", CELLAR);
    sh.write("user/tools/tests/cellar.rhai", TESTS);
    sh.write("stdlib/good.rhai", "fn one() { 1 }");
    sh.write("stdlib/bad.rhai", "fn one( { 1 }");
    sh.write(
        "user/plugins/tea/plugin.json",
        r#"{"name": "tea", "description": "Tea.", "capabilities": {"tools": ["tools/tea.rhai"]}}"#,
    );
    sh.write(
        "user/plugins/tea/tools/tea.rhai",
        "/// Steep tea. Use it when someone is thirsty.\n/// @local\nfn steep() { 1 }\n",
    );
    let elsewhere = Shell::new();
    let outside =
        elsewhere.write("fresh.rhai", "/// Be fresh. Use it when freshness is wanted.\n/// @local\nfn fresh() { 1 }\n");
    let taken =
        elsewhere.write("taken.rhai", "/// Steep tea. Use it when someone is thirsty.\n/// @local\nfn steep() { 1 }\n");
    let rows: [(&str, i32, &str); 16] = [
        ("user/tools/cellar.rhai", 0, "ok      user/tools/cellar.rhai"),
        ("cellar", 0, "ok"),
        ("user/tools", 0, "user/tools/cellar.rhai"),
        ("user/tools/tests/cellar.rhai", 0, "7 tests"),
        ("user/plugins/tea", 0, "1 tool: steep"),
        ("user/plugins/tea/tools/tea.rhai", 0, "user/plugins/tea"),
        ("user/plugins/tea/plugin.json", 0, "user/plugins/tea"),
        ("stdlib/good.rhai", 0, "a module"),
        ("stdlib/bad.rhai", 1, "stdlib/bad.rhai:1:"),
        (outside.to_str().unwrap(), 0, "1 tool: fresh"),
        (taken.to_str().unwrap(), 1, "belongs to the plugin `tea`"),
        (elsewhere.dir.path().to_str().unwrap(), 1, "fresh.rhai"),
        ("nothing", 1, ""),
        ("user/nothing.rhai", 1, ""),
        ("user/webui", 1, ""),
        ("user/webui/plugins", 1, ""),
    ];
    for (path, code, part) in rows {
        let done = sh.run(&["check", path]).ends(code);
        assert!(done.out.contains(part), "{path}: {done:?}");
        assert_eq!(part.is_empty(), done.err.starts_with("error: "), "{path}: {done:?}");
    }
    sh.run(&["check"]).ends(0).says("2 checked, 0 failed");
    assert!(!sh.path("user/plugin_state/cellar.json").exists());
}

#[test]
fn a_bad_script_is_refused_with_its_place_and_the_rest_loads() {
    let sh = Shell::new();
    sh.write("user/tools/good.rhai", "/// Be good. Use it when good is wanted.\n/// @local\nfn good() { 1 }\n");
    let big = vec![b' '; 20 << 20];
    let nested = format!("/// Nest. Use it when nesting.\nfn nest() {{ {}1{} }}", "(".repeat(400), ")".repeat(400));
    let thrower = "fn get_tools() { throw \"no\" }\nfn execute(a, b, c) { 1 }";
    let nonsense = "fn get_tools() { 7 }\nfn execute(a, b, c) { 1 }";
    let rows: [(&[u8], &str); 12] = [
        (b"// \xff\xfe", "UTF-8"),
        (&big, "1048576"),
        (b"", "empty"),
        (b"let x = 1;", "no tools"),
        (nested.as_bytes(), ":2:"),
        (b"loop { }", "2 s"),
        (thrower.as_bytes(), "no tools"),
        (nonsense.as_bytes(), "no tools"),
        (b"return 1;", "return"),
        (b"fn execute(a, b, c) { 1 }", "TOOLS"),
        (b"/// A. Use it when.\n/// @param {integer} y - Y.\nfn a(x) { 1 }", ":2:"),
        (b"import \"std/\" + \"words\" as w;\n/// A. Use it when.\nfn a() { 1 }", "literal"),
    ];
    for (content, part) in rows {
        sh.write("user/tools/bad.rhai", content);
        let done = sh.run(&["check", "user/tools/bad.rhai"]).ends(1);
        assert!(done.out.contains("user/tools/bad.rhai") && done.out.contains(part), "{part}: {}", done.out);
        let listed = sh.run(&["check", "user/tools/bad.rhai", "--json"]).ends(1).json();
        assert!(listed.as_array().unwrap().iter().any(|d| d["severity"] == "error"), "{listed}");
        sh.run(&["call", "good"]).ends(0);
    }
    sh.write(
        "user/tools/bad.rhai",
        b"\xef\xbb\xbf/// Be a file with a mark. Use it when an editor adds one.\n/// @local\nfn marked() { 1 }\n",
    );
    sh.run(&["check", "user/tools/bad.rhai"]).ends(0);
}
