//! The command line as people and programs use it: every command, its exit codes, its JSON.

use crate::shell::{Ran, Shell, names, program, ran};
use serde_json::{Value, json};

const DICE: &str = r#"//! Dice for the table.

const SETTINGS = #{ sides: 6, label: "rolled", loud: false, faces: ["a"] };
const SETTINGS_HELP = #{ label: "What stands before the number." };

/// Roll a die with a certain outcome. Use it whenever someone asks for a roll.
///
/// @param {integer 2..1000} sides=6 - Sides on each die.
/// @param {string} [note] - What it is for.
/// @param {string[]} [tags] - Words about it.
/// @local
/// @example {"sides": 20} => /rolled 20/
fn roll_dice(sides, note, tags) {
    let label = settings::get("label");
    `${label} ${sides} ${note ?? "-"} ${tags ?? "-"}`
}
"#;

const PAINTER: &str = r#"const SETTINGS = #{ NAME: "" };
fn get_tools() {
    let name = settings::get("NAME");
    if name == "boom" { throw "no such painter"; }
    let d = "Paint a picture. Use it when someone asks for one.";
    if name != "" { d += ` Sign it '${name}'.`; }
    [#{ type: "function", is_local: true, function: #{ name: "paint", description: d, parameters: #{ type: "object", properties: #{}, required: [] } } }]
}
const TOOLS = get_tools();
fn execute(function_name, arguments, config, plugin_settings) { [`signed ${plugin_settings.NAME} in ${config.chat}`, true] }
"#;

const TROUBLE: &str = r#"fn inner(x) { throw "broken at " + x; }
/// Fail on purpose. Use it when something must fail.
///
/// @param {integer} x=1 - Where.
/// @local
/// @fallback roll_dice - when you want a number
fn fail(x) { inner(x) }
/// Fail with a code. Use it when a failure must be structured.
/// @local
fn fail_well() { throw failure(#{ code: "rate_limited", message: "too fast", user_action: "wait", fallbacks: [#{ tool: "fail", when: "never" }] }); }
/// Say no. Use it when a pair is wanted.
/// @local
fn say_no() { ["not today", false] }
/// Loop for ever. Use it when a deadline must hold.
/// @local
/// @timeout 1
fn hang() { loop { } }
/// Fetch something. Use it when a page is wanted.
fn fetch() { "fetched" }
/// Give a map. Use it when something structured is wanted.
/// @local
/// @returns {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
fn structured() { #{ a: 7 } }
/// Say where it is called from. Use it to look around.
/// @local
fn whereabouts() { `${scopes::chat()} ${scopes::is_private()} ${scopes::caller()}` }
/// Big numbers. Use it when exactness matters.
///
/// @param {integer} n - A number.
/// @local
fn exact(n) { n }
"#;

fn bench() -> Shell {
    let sh = Shell::new();
    sh.write("user/tools/dice.rhai", DICE);
    sh.write("user/tools/painter.rhai", PAINTER);
    sh.write("user/tools/trouble.rhai", TROUBLE);
    sh
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn version_and_help_need_no_root() {
    for words in
        [&["--version"][..], &["--help"], &["call", "--help"], &["help", "call"], &["settings", "set", "--help"]]
    {
        let mut command = program();
        command.args(words).env("LAPIDARY_ROOT", "/dev/null/nowhere");
        let done = ran(command, b"").ends(0);
        assert!(!done.out.is_empty() && done.err.is_empty(), "{done:?}");
    }
    assert_eq!(Shell::new().run(&["--version"]).out, format!("lapidary {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn wrong_usage_is_two_and_says_what_is_wrong() {
    let sh = bench();
    let rows: [(&[&str], &str); 21] = [
        (&["roll"], "roll"),
        (&["call"], "<TOOL>"),
        (&["call", "roll_dice", "--sides", "2"], "--sides"),
        (&["call", "roll_dice", "sides"], "not key=value"),
        (&["call", "roll_dice", "=2"], "not key=value"),
        (&["call", "roll_dice", "sides=2", "sides=3"], "given twice"),
        (&["call", "roll_dice", "sides=2", "--args", "{}"], "cannot be used with"),
        (&["call", "roll_dice", "--chat", " "], "chat"),
        (&["call", "roll_dice", "--as", "Ann"], "not built yet"),
        (&["call", "roll_dice", "--yes"], "not built yet"),
        (&["new", "x", "--agent"], "not built yet"),
        (&["new", "x", "--form", "poem"], "poem"),
        (&["tools", "--provider", "klingon"], "klingon"),
        (&["preview", "roll_dice", "--dialect", "klingon"], "klingon"),
        (&["preview", "roll_dice", "--set", "sides"], "not key=value"),
        (&["preview", "roll_dice", "--set", "sides=2", "--set", "sides=3"], "set twice"),
        (&["chat"], "not built yet"),
        (&["rooms", "list"], "not built yet"),
        (&["grant", "dice", "FLY"], "FLY"),
        (&["--log", "loud", "tools"], "loud"),
        (&["dev", "--json"], "--json"),
    ];
    for (words, part) in rows {
        let done = sh.run(words).ends(2);
        assert!(done.err.contains(part), "{words:?}: {done:?}");
        assert!(!done.err.contains("panicked"), "{words:?}");
        if words != ["dev", "--json"] {
            let shown = sh.run(&[words, &["--json"]].concat()).ends(2).json();
            assert_eq!((&shown["ok"], shown["error"]["message"].is_string()), (&json!(false), true), "{words:?}");
        }
    }
}

#[test]
fn no_root_is_three() {
    let sh = Shell::new();
    sh.write("file", "not a folder");
    for words in [&["tools"][..], &["call", "x"], &["info"], &["serve"], &["mcp"], &["new", "x"], &["settings", "list"]]
    {
        let mut command = program();
        command.arg("--root").arg(sh.path("file")).args(words);
        let done = ran(command, b"").ends(3);
        assert!(done.err.starts_with("error: ") && done.out.is_empty(), "{words:?}: {done:?}");
    }
    let mut command = program();
    command.arg("--root").arg(sh.path("file")).args(["call", "x", "--json"]);
    let shown = ran(command, b"").ends(3).json();
    assert_eq!(shown["ok"], false);
    assert!(shown["error"]["message"].as_str().unwrap().contains("file"), "{shown}");
}

#[test]
fn a_mistyped_root_is_an_error_and_makes_no_workshop() {
    let sh = Shell::new();
    let typo = sh.path("typo");
    let reading: [&[&str]; 17] = [
        &["tools"],
        &["call", "x"],
        &["info"],
        &["check"],
        &["test"],
        &["settings", "list"],
        &["enable", "x"],
        &["disable", "x"],
        &["reload", "x"],
        &["grant", "x", "SPEND"],
        &["revoke", "x", "SPEND"],
        &["history", "x"],
        &["rollback", "x"],
        &["mcp"],
        &["definitions"],
        &["info", "x"],
        &["settings", "get", "x", "y"],
    ];
    for words in reading {
        for by_environment in [false, true] {
            let mut command = program();
            if by_environment {
                command.env("LAPIDARY_ROOT", &typo).args(words);
            } else {
                command.arg("--root").arg(&typo).args(words);
            }
            ran(command, b"").ends(3).complains("there is no folder").complains("lapidary new");
            assert!(!typo.exists(), "{words:?}");
        }
    }
    let mut doctor = program();
    doctor.arg("--root").arg(&typo).arg("doctor");
    ran(doctor, b"").ends(1).says("there is no folder");
    assert!(!typo.exists());
    let mut new = program();
    new.arg("--root").arg(&typo).args(["new", "greet"]);
    ran(new, b"").ends(0);
    let mut tools = program();
    tools.arg("--root").arg(&typo).arg("tools");
    ran(tools, b"").ends(0).says("greet");
}

#[test]
fn wrong_usage_for_programs_is_told_whole() {
    let sh = Shell::new();
    let rows: [(&[&str], &str); 4] = [
        (&["settings", "set", "q", "--json"], "<KEY> <VALUE>"),
        (&["tools", "--nope", "--json"], "--nope"),
        (&["new", "x", "--form", "round", "--json"], "documented"),
        (&["tols", "--json"], "tols"),
    ];
    for (words, part) in rows {
        let shown = sh.run(words).ends(2).json();
        let message = shown["error"]["message"].as_str().unwrap();
        assert!(message.contains(part) && !message.contains('\n') && !message.ends_with(':'), "{message:?}");
    }
    let shown = sh.run(&["tols", "--json"]).ends(2).json();
    assert!(shown["error"]["hint"].as_str().unwrap().contains("tools"), "{shown}");
}

#[test]
fn the_root_comes_from_the_option_then_the_environment_then_the_folders_above() {
    let sh = bench();
    let deep = sh.path("user/tools");
    let mut above = program();
    above.args(["call", "roll_dice"]).current_dir(&deep);
    ran(above, b"").ends(0).says("rolled 6");
    let empty = Shell::new();
    let mut env = program();
    env.args(["call", "roll_dice"]).env("LAPIDARY_ROOT", sh.dir.path()).current_dir(empty.dir.path());
    ran(env, b"").ends(0).says("rolled 6");
    let mut option = empty.command(&["call", "roll_dice"]);
    option.env("LAPIDARY_ROOT", sh.dir.path());
    ran(option, b"").ends(1);
}

#[test]
fn a_call_takes_words_json_and_stdin() {
    let sh = bench();
    assert_eq!(sh.run(&["call", "roll_dice"]).ends(0).out, "rolled 6 - -\n");
    assert_eq!(sh.run(&["call", "roll_dice", "sides=20", "note=7"]).ends(0).out, "rolled 20 7 -\n");
    assert_eq!(sh.run(&["call", "roll_dice", "tags=a", "tags=b c"]).ends(0).out, "rolled 6 - [\"a\", \"b c\"]\n");
    assert_eq!(sh.run(&["call", "roll_dice", "--args", r#"{"sides": 9}"#]).ends(0).out, "rolled 9 - -\n");
    for words in [&["call", "roll_dice", "-"][..], &["call", "roll_dice", "--args", "-"]] {
        assert_eq!(sh.run_with(words, br#"{"sides": 8, "note": "x"}"#).ends(0).out, "rolled 8 x -\n");
        assert_eq!(sh.run_with(words, b"").ends(0).out, "rolled 6 - -\n");
    }
    assert_eq!(sh.run(&["--json", "call", "roll_dice"]).ends(0).json()["text"], "rolled 6 - -");
}

#[test]
fn a_result_for_programs_has_exactly_these_keys() {
    let sh = bench();
    let good = sh.call("roll_dice", "{}").ends(0).json();
    let common = ["images", "files", "duration_ms", "operations", "generation"];
    assert_eq!(keys(&good), [&["ok", "text"], &common[..]].concat());
    assert_eq!(
        (&good["ok"], &good["images"], &good["files"], &good["generation"]),
        (&json!(true), &json!([]), &json!([]), &json!(1))
    );
    assert!(good["duration_ms"].is_number() && good["operations"].as_u64().unwrap() > 0, "{good}");

    let structured = sh.call("structured", "{}").ends(0).json();
    assert_eq!(structured["structured"], json!({ "a": 7 }));

    let failed = sh.call("fail", r#"{"x": 3}"#).ends(1).json();
    assert_eq!(keys(&failed), [&["ok", "text", "error", "fallbacks"], &common[..]].concat());
    assert_eq!((&failed["ok"], &failed["error"]["code"]), (&json!(false), &json!("internal")));
    assert_eq!(failed["fallbacks"], json!([{ "tool": "roll_dice", "when": "when you want a number" }]));
    let at = &failed["error"]["diagnostic"];
    assert_eq!((&at["file"], &at["line"]), (&json!("user/tools/trouble.rhai"), &json!(1)));

    let coded = sh.call("fail_well", "{}").ends(1).json();
    assert_eq!(coded["error"]["code"], "rate_limited");
    assert_eq!(coded["error"]["retryable"], true);
    assert_eq!(coded["error"]["user_action"], "wait");

    let no = sh.call("say_no", "{}").ends(1).json();
    assert_eq!((&no["ok"], &no["text"]), (&json!(false), &json!("not today")));
    let unknown = sh.call("roll_dise", "{}").ends(1).json();
    assert_eq!(unknown["error"]["code"], "not_found");
    assert!(unknown["error"]["hint"].as_str().unwrap().contains("roll_dice"), "{unknown}");
    let late = sh.call("hang", "{}").ends(1).json();
    assert_eq!(late["error"]["code"], "timeout");
}

#[test]
fn a_failure_for_people_shows_the_line_the_caret_and_the_calls() {
    let sh = bench();
    let done = sh.run(&["call", "fail", "x=3"]).ends(1);
    assert!(done.out.is_empty(), "{done:?}");
    for part in
        ["error: broken at 3", "--> user/tools/trouble.rhai:1:", "^", "in inner() called at user/tools/trouble.rhai:7:"]
    {
        assert!(done.err.contains(part), "{part}: {done:?}");
    }
    sh.run(&["call", "roll_dice", "sides=1"]).ends(1).complains("sides").complains("2").complains("help:");
    sh.run(&["call", "nothing_like_it"]).ends(1).complains("no tool `nothing_like_it`");
}

#[test]
fn arguments_that_make_no_sense_are_refused_exactly_and_nothing_runs() {
    let sh = bench();
    let deep = format!("{{\"note\": {}1{}}}", "[".repeat(5000), "]".repeat(5000));
    let rows = [
        ("{bad", "byte 1"),
        ("{\"sides\": 20", "truncated"),
        ("{\"sides\": 20} trailing", "byte 14"),
        ("[1, 2]", "a list"),
        ("\"text\"", "object"),
        ("7", "object"),
        ("-1", "object"),
        ("{\"sides\": 20, \"sides\": 2.5e400}", "sides"),
        ("{\"note\": \"\\ud800\"}", "surrogate"),
        (deep.as_str(), "nest"),
        ("{\"sides\": \"many\"}", "sides"),
        ("{\"sides\": 1.5}", "sides"),
        ("{\"sides\": 20, \"sides\": 6}", "byte 14"),
        ("{\"faces\": 6}", "faces"),
    ];
    for (text, part) in rows {
        let done = sh.call("roll_dice", text).ends(1);
        let shown = done.json();
        assert_eq!(
            (&shown["ok"], &shown["error"]["code"]),
            (&json!(false), &json!("invalid_arguments")),
            "{text:.80}: {shown}"
        );
        assert!(shown["text"].as_str().unwrap().contains(part), "{part}: {shown}");
        assert_eq!(shown["operations"], 0);
    }
    for n in ["9223372036854775808", "-9223372036854775809", "18446744073709551615", "1e19"] {
        let shown = sh.call("exact", &format!("{{\"n\": {n}}}")).ends(1).json();
        assert_eq!(shown["error"]["code"], "invalid_arguments", "{n}: {shown}");
    }
    for n in ["9223372036854775807", "-9223372036854775808", "9007199254740993"] {
        assert_eq!(sh.call("exact", &format!("{{\"n\": {n}}}")).ends(0).json()["text"], n);
        assert_eq!(sh.run(&["call", "exact", &format!("n={n}")]).ends(0).out.trim(), n);
    }
    let not_utf8 = sh.run_with(&["call", "roll_dice", "-", "--json"], b"{\"note\": \"\xff\"}").ends(1).json();
    assert!(not_utf8["text"].as_str().unwrap().contains("UTF-8"), "{not_utf8}");
    let nul = sh.run_with(&["call", "roll_dice", "-", "--json"], b"{\"note\": \"a\0b\"}").ends(1).json();
    assert_eq!(nul["error"]["code"], "invalid_arguments", "{nul}");
    let escaped = sh.run_with(&["call", "roll_dice", "-", "--json"], b"{\"note\": \"a\\u0000b\"}").ends(0).json();
    assert_eq!(escaped["text"], "rolled 6 a␀b -", "a control character is shown, not sent to a terminal");
}

#[test]
fn chats_are_names_and_private_ones_keep_to_this_machine() {
    let sh = bench();
    sh.run(&["call", "whereabouts"]).ends(0).says("cli false owner");
    sh.run(&["call", "whereabouts", "--chat", "kitchen"]).ends(0).says("kitchen false owner");
    sh.run(&["call", "whereabouts", "--private"]).ends(0).says("cli true owner");
    sh.run(&["call", "paint", "--chat", "attic"]).ends(0).says("in attic");
    sh.run(&["call", "fetch"]).ends(0).says("fetched");
    let refused = sh.run(&["call", "fetch", "--private", "--json"]).ends(1).json();
    assert_ne!(refused["text"], "fetched");
}

#[test]
fn tools_are_listed_as_a_model_sees_them() {
    let sh = bench();
    sh.write("user/tools/shy.rhai", "const SETTINGS = #{ on: false };\nconst SETTINGS_GATED = #{ gated: \"on\" };\n/// Hide. Use it when hiding.\n/// @hidden\n/// @local\nfn shy() { 1 }\n/// Wait for a setting. Use it when it is on.\n/// @local\nfn gated() { 1 }\n/// Write something. Use it when writing.\n/// @writes\n/// @network\nfn writer() { 1 }\n");
    let text = sh.run(&["tools"]).ends(0).out;
    assert!(text.contains("roll_dice") && text.contains("Roll a die") && text.contains("local"), "{text}");
    assert!(text.contains("network,writes") && !text.contains("\nshy") && !text.contains("\ngated"), "{text}");
    assert!(text.contains("2 more with --all"), "{text}");
    let all = sh.run(&["tools", "--all", "--chat", "kitchen"]).ends(0).out;
    assert!(all.contains("\nshy") && all.contains("hidden") && all.contains("\ngated") && all.contains("off"), "{all}");
    let wire = sh.run(&["tools", "--json", "--provider", "openai"]).ends(0).json();
    let dice = wire.as_array().unwrap().iter().find(|t| t["function"]["name"] == "roll_dice").unwrap();
    assert_eq!(
        (keys(dice), keys(&dice["function"])),
        (vec!["type", "function"], vec!["name", "description", "parameters"])
    );
    assert_eq!(dice["function"]["parameters"]["properties"]["sides"]["minimum"], 2);
    assert!(!wire.to_string().contains("\"shy\""));
}

#[test]
fn a_password_among_settings_may_come_from_stdin_and_is_not_shown() {
    let sh = bench();
    let fields = r#"[{"key": "pass", "type": "string", "widget": "password"}, {"key": "sign", "type": "string"}]"#;
    let manifest = format!(
        r#"{{"name": "mail", "version": "1.0.0", "description": "For tests.", "capabilities": {{"settings": {fields}}}}}"#
    );
    sh.write("user/plugins/mail/plugin.json", manifest);
    sh.write("user/plugins/mail/tools/mail.rhai", "/// Send. Use it when testing.\n/// @local\nfn send_mail() { 1 }\n");
    let set = sh.run_with(&["settings", "set", "mail", "pass", "-"], b"hunter2hunter2\n").ends(0).says("pass = ");
    assert!(!set.out.contains("hunter2") && !set.err.contains("hunter2"), "{} {}", set.out, set.err);
    let stored: Value = serde_json::from_str(&sh.read("user/webui/plugins/mail.json")).unwrap();
    assert_eq!(stored["pass"], "hunter2hunter2");
    sh.run(&["settings", "set", "mail", "sign", "-"]).ends(0).says("sign = - (saved)");
}

#[test]
fn settings_go_through_the_transaction() {
    let sh = bench();
    sh.run(&["settings", "list"]).ends(0).says("dice").says("painter");
    sh.run(&["settings", "list", "dice"]).ends(0).says("label").says("What stands before the number.").says("default");
    assert_eq!(sh.run(&["settings", "get", "dice", "sides"]).ends(0).out, "6\n");
    sh.run(&["settings", "set", "dice", "label", "fell on"]).ends(0).says("label = fell on (saved)");
    sh.run(&["settings", "set", "dice", "sides", "-3"]).ends(0);
    sh.run(&["settings", "set", "dice", "loud", "true"]).ends(0);
    sh.run(&["settings", "set", "dice", "faces", r#"["x", "y"]"#]).ends(0);
    let stored: Value = serde_json::from_str(&sh.read("user/webui/plugins/dice.json")).unwrap();
    assert_eq!(stored, json!({ "label": "fell on", "sides": -3, "loud": true, "faces": ["x", "y"] }));
    sh.run(&["call", "roll_dice"]).ends(0).says("fell on 6");
    assert_eq!(sh.run(&["settings", "get", "dice", "faces", "--json"]).ends(0).json(), json!(["x", "y"]));
    let before = sh.read("user/webui/plugins/dice.json");
    for (key, value, part) in [("sides", "many", "number"), ("loud", "perhaps", "true"), ("lable", "x", "label")] {
        sh.run(&["settings", "set", "dice", key, value]).ends(1).complains(part);
    }
    sh.run(&["settings", "set", "dise", "sides", "1"]).ends(1).complains("did you mean dice");
    sh.run(&["settings", "get", "dice", "side"]).ends(1).complains("did you mean sides");
    assert_eq!(sh.read("user/webui/plugins/dice.json"), before);
    sh.run(&["settings", "reset", "dice", "label"]).ends(0).says("label = rolled, the default");
    sh.run(&["settings", "reset", "dice", "lable"]).ends(1);
    sh.run(&["settings", "reset", "dice"]).ends(0);
    assert_eq!(sh.run(&["settings", "list", "dice", "--json"]).ends(0).json()["stored"], json!([]));
}

#[test]
fn settings_get_without_a_key_tells_them_all() {
    let sh = bench();
    let all = sh.run(&["settings", "get", "painter"]).ends(0);
    assert_eq!(all.out, sh.run(&["settings", "list", "painter"]).ends(0).out);
    sh.run(&["settings", "get", "nobody"]).ends(1);
}

#[test]
fn where_no_tool_is_live_what_is_broken_is_told() {
    let sh = Shell::new();
    sh.write("user/tools/dice.rhai", "fn roll(");
    sh.run(&["tools"]).ends(0).says("No tools").complains("1 plugin has errors: lapidary info");
}

#[test]
fn a_preview_shows_what_a_model_would_read_and_changes_nothing() {
    let sh = bench();
    let shown = sh.run(&["settings", "set", "painter", "NAME", "Ruby", "--preview"]).ends(0);
    assert!(
        shown.out.contains("nothing is saved")
            && shown.out.contains("+Paint a picture.")
            && shown.out.contains("Sign it 'Ruby'."),
        "{shown:?}"
    );
    assert!(shown.out.contains("more"), "{shown:?}");
    assert_eq!(sh.run(&["settings", "get", "painter", "NAME"]).out, "\n");
    let tuned = sh.run(&["settings", "set", "painter", "NAME", "Ruby", "--json"]).ends(0).json();
    assert_eq!((&tuned["committed"], &tuned["tools"][0]["tool"]), (&json!(true), &json!("paint")));
    assert!(tuned["tools"][0]["tokens_after"].as_u64() > tuned["tools"][0]["tokens_before"].as_u64());
    sh.run(&["tools", "--json"]).ends(0).says("Sign it 'Ruby'.");
    sh.run(&["call", "paint"]).ends(0).says("signed Ruby");
    sh.run(&["settings", "set", "painter", "NAME", "boom"])
        .ends(1)
        .complains("no such painter")
        .complains("nothing was changed");
    assert_eq!(sh.run(&["settings", "get", "painter", "NAME"]).out, "Ruby\n");
    sh.run(&["settings", "reset", "painter", "--preview"]).ends(0).says("-Paint a picture.");
    assert_eq!(sh.run(&["settings", "get", "painter", "NAME"]).out, "Ruby\n");
}

#[test]
fn a_plugin_holds_what_was_granted() {
    let sh = bench();
    sh.write("user/tools/runner.rhai", "const PERMISSIONS = [\"RUN_COMMANDS\", #{ EXTERNAL_HTTP: [\"api.example.org\"] }];\n/// Run. Use it when something must run.\n/// @local\nfn run_it() { \"ran\" }\n");
    sh.run(&["call", "run_it"]).ends(1).complains("RUN_COMMANDS").complains("lapidary grant runner RUN_COMMANDS");
    sh.run(&["grant", "runner"]).ends(0).says("needs: lapidary grant runner RUN_COMMANDS").says("EXTERNAL_HTTP");
    sh.run(&["info", "runner"]).ends(0).says("lapidary grant runner RUN_COMMANDS");
    sh.run(&["grant", "runner", "RUN_COMMANDS"]).ends(0).says("granted");
    sh.run(&["call", "run_it"]).ends(0).says("ran");
    let shown = sh.run(&["grant", "runner", "--json"]).ends(0).json();
    assert_eq!(shown["missing"], json!([]));
    sh.run(&["revoke", "runner", "RUN_COMMANDS"]).ends(0).says("needs:");
    sh.run(&["call", "run_it"]).ends(1);
    sh.run(&["grant", "dice", "SPEND"]).ends(0).complains("does not declare SPEND");
    // A host or a credential that is not declared is no grant either.
    let other = sh.run(&["grant", "runner", "EXTERNAL_HTTP=127.0.0.1"]).ends(0);
    other.complains("does not declare EXTERNAL_HTTP=127.0.0.1").complains("does nothing");
    sh.run(&["grant", "runner", "USE_SECRETS=key"]).ends(0).complains("does not declare USE_SECRETS=key");
    sh.run(&["grant", "dice", "EXTERNAL_HTTP=a.example"]).ends(0).complains("does not declare EXTERNAL_HTTP=a.example");
    let declared = sh.run(&["grant", "runner", "EXTERNAL_HTTP=api.example.org"]).ends(0);
    assert!(!declared.err.contains("api.example.org"), "{}", declared.err);
    // A folder needs no declaration.
    std::fs::create_dir_all(sh.path("music")).unwrap();
    let root = format!("folder:music={}", sh.path("music").display());
    let folder = sh.run(&["grant", "dice", &root]).ends(0).says("folder music: ");
    assert!(!folder.out.contains("declares no permission"), "{}", folder.out);
    let gone = sh.run(&["revoke", "dice", "folder:music"]).ends(0).says("folder music: taken back");
    assert!(!gone.out.contains("declares no permission"), "{}", gone.out);
    sh.run(&["grant", "nobody", "SPEND"]).ends(1);
    sh.run(&["revoke", "dice"]).ends(2);
    let before = sh.read("user/webui/grants.json");
    sh.run(&["grant", "runner", "RUN_COMMANDS", "FLY"]).ends(2).complains("FLY");
    assert_eq!(sh.read("user/webui/grants.json"), before, "no half of a wrong line counts");
}

#[test]
fn plugins_are_switched_looked_at_and_reloaded() {
    let sh = bench();
    sh.run(&["info"]).ends(0).says("dice").says("live 1").says("user/tools/dice.rhai");
    sh.run(&["info", "dice"]).ends(0).says("roll_dice").says("Dice for the table.");
    let one = sh.run(&["info", "dice", "--json"]).ends(0).json();
    assert_eq!((&one["status"], &one["tools"], &one["history"]), (&json!("live 1"), &json!(["roll_dice"]), &json!([])));
    assert_eq!(sh.run(&["info", "--json"]).ends(0).json().as_array().unwrap().len(), 3);
    sh.run(&["disable", "dice"]).ends(0).says("off");
    sh.run(&["call", "roll_dice"]).ends(1).complains("dice");
    sh.run(&["info"]).ends(0).says("off");
    sh.run(&["reload", "dice"]).ends(1).complains("lapidary enable dice");
    sh.run(&["enable", "dice"]).ends(0).says("live 1");
    sh.run(&["call", "roll_dice"]).ends(0);
    sh.run(&["reload", "dice"]).ends(0).says("loads, 1 tool");
    sh.write("user/tools/dice.rhai", "fn roll_dice(sides { oops");
    sh.run(&["reload", "dice"]).ends(1).says("user/tools/dice.rhai:1:").says("^");
    sh.run(&["info"]).ends(0).says("failed");
    sh.run(&["info", "dice"]).ends(0).says("user/tools/dice.rhai:1:");
    for command in ["info", "enable", "disable", "reload", "history", "rollback"] {
        sh.run(&[command, "dize"]).ends(1).complains("dice");
    }
}

#[test]
fn what_later_versions_do_is_named_and_a_bad_tool_is_quarantined() {
    let sh = Shell::new();
    sh.write("user/plugins/tea/plugin.json", r#"{"name": "tea", "description": "Tea.", "version": "1.2.0", "capabilities": {"tools": ["tools/tea.rhai"], "schedule": [{"name": "brew", "cron": "0 7 * * *", "handler": "brew.rhai"}]}}"#);
    sh.write("user/plugins/tea/tools/tea.rhai", r##"const TOOLS = [
    #{ type: "function", function: #{ name: "steep", description: "Steep tea. Use it when someone is thirsty.", parameters: #{ type: "object", properties: #{}, required: [] } } },
    #{ type: "function", function: #{ name: "spoil", description: "Spoil it.", parameters: #{ type: "object", properties: #{ x: #{ type: "strin" } } } } },
];
fn execute(function_name, arguments, config) { function_name }"##);
    let shown = sh.run(&["info", "tea"]).ends(0);
    for part in ["not active yet", "schedule", "quarantined: tool spoil", "1.2.0", "plugin folder"] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    sh.run(&["call", "steep"]).ends(0).says("steep");
    sh.run(&["check", "tea"]).ends(1).says("spoil");
}

#[test]
fn an_earlier_version_comes_back_and_nothing_is_lost() {
    let sh = bench();
    {
        let host = lapidary::Host::builder()
            .root(sh.dir.path())
            .watching(lapidary::app::Watching::Off)
            .keep_history()
            .start()
            .unwrap();
        sh.write("user/tools/dice.rhai", DICE.replace("Roll a die", "Throw a die"));
        host.plugins().reload("dice").unwrap();
        host.stop();
    }
    sh.run(&["history", "dice"]).ends(0).says("in the files now");
    let kept = sh.run(&["history", "dice", "--json"]).ends(0).json();
    assert_eq!(kept.as_array().unwrap().len(), 2, "{kept}");
    sh.write("user/tools/dice.rhai", "fn broken(");
    let behind = sh.run(&["call", "roll_dice"]).ends(0);
    assert!(behind.out == "rolled 6 - -\n" && behind.err.contains("version 2 of dice answered"), "{behind:?}");
    sh.run(&["info", "dice"]).ends(0).says("live 2, disk 3 failed").says("user/tools/dice.rhai:1:");
    sh.run(&["history", "dice"]).ends(0).says("answers now; the files do not load");
    sh.run(&["rollback", "dice"]).ends(0).says("version 2 is back").says("kept as version 3");
    sh.run(&["tools"]).ends(0).says("Throw a die");
    sh.run(&["rollback", "dice", "--to", "1"]).ends(0).says("version 1 is back");
    sh.run(&["tools"]).ends(0).says("Roll a die");
    // The broken one can be had back too, and says that it is broken.
    let broken = sh.run(&["rollback", "dice", "--to", "3", "--json"]).ends(1).json();
    assert_eq!(broken["to"], 3);
    assert_eq!(sh.read("user/tools/dice.rhai"), "fn broken(");
    sh.run(&["rollback", "dice", "--to", "99"]).ends(1).complains("99");
    sh.run(&["rollback", "painter"]).ends(1);
}

#[test]
fn a_new_tool_works_as_it_stands() {
    let forms: [&[&str]; 4] = [&[], &["--form", "explicit"], &["--plugin"], &["--plugin", "--form", "explicit"]];
    for (n, options) in forms.into_iter().enumerate() {
        let sh = Shell::new();
        let name = format!("first-{n}");
        let made = sh.run(&[&["new", name.as_str()], options].concat()).ends(0);
        let call =
            made.out.lines().find_map(|l| l.trim().strip_prefix("lapidary call ")).unwrap().split("  ").next().unwrap();
        let words: Vec<&str> = call.split(' ').collect();
        sh.run(&[&["call"], &words[..]].concat()).ends(0);
        sh.run(&["test", &name]).ends(0).says(" passed, 0 failed");
        assert_eq!(sh.run(&["check", &name, "--json"]).ends(0).json(), json!([]), "{name}");
        let again = sh.run(&["new", &name]).ends(1);
        assert!(again.err.contains("there already"), "{again:?}");
    }
    let sh = Shell::new();
    let made = sh.run(&["new", "dice", "--json"]).ends(0).json();
    assert_eq!((&made["plugin"], &made["tool"]), (&json!("dice"), &json!("dice")));
    for name in ["../x", "", "a b", "con", "web", "a/b", "ä"] {
        let done: Ran = sh.run(&["new", name]).ends(1);
        assert!(done.err.starts_with("error: "), "{name}: {done:?}");
    }
    assert_eq!(names(&sh.path("user/tools")), ["dice.rhai", "tests"]);
}

#[test]
fn a_new_tool_takes_nothing_from_those_that_are_there() {
    let sh = Shell::new();
    sh.write("user/tools/hello.rhai", "/// Greet somebody. Use it to greet.\nfn greet() { \"hi\" }\n");
    sh.write("user/tools/Other.rhai", "/// Something else. Use it else.\nfn other_one() { 1 }\n");
    let rows = [
        ("greet", "the tool `greet` belongs to the plugin `hello` (user/tools/hello.rhai) already"),
        ("Greet", "the tool `greet` belongs to the plugin `hello`"),
        ("other-one", "the tool `other_one` belongs to the plugin `Other`"),
        ("other", "`user/tools/Other.rhai` is there already"),
    ];
    for (name, why) in rows {
        for form in ["documented", "explicit"] {
            sh.run(&["new", name, "--form", form]).ends(1).complains(why).complains("nothing was written");
            sh.run(&["new", name, "--plugin", "--form", form]).ends(1).complains(why);
        }
    }
    assert_eq!(names(&sh.path("user/tools")), ["Other.rhai", "hello.rhai"]);
    sh.run(&["call", "greet"]).ends(0).says("hi");
}

#[test]
fn of_two_files_that_differ_in_case_the_second_is_refused_wherever_one_looks() {
    let sh = Shell::new();
    sh.write("user/tools/ship.rhai", "/// Ship it. Use it to ship.\nfn ship() { \"first\" }\n");
    sh.write("user/tools/Ship.rhai", "/// Board it. Use it to board.\nfn board() { \"second\" }\n");
    if names(&sh.path("user/tools")).len() < 2 {
        return; // The file system takes both names for one file.
    }
    let why = "user/tools/Ship.rhai is not loaded: its name differs from that of user/tools/ship.rhai in case only";
    sh.run(&["call", "ship"]).ends(0).says("first");
    sh.run(&["call", "board"]).ends(1);
    sh.run(&["check"]).ends(1).says("ok      user/tools/ship.rhai").says("FAILED  user/tools/Ship.rhai").says(why);
    for path in ["user/tools/Ship.rhai", "user/tools"] {
        let file = sh.path(path);
        sh.run(&["check", file.to_str().unwrap()]).ends(1).says(why);
    }
    sh.run(&["check", "ship"]).ends(0);
    let json = sh.run(&["check", "--json"]).ends(1).json();
    assert_eq!((&json[0]["file"], &json[0]["code"]), (&json!("user/tools/Ship.rhai"), &json!("conflict")), "{json}");
    sh.run(&["info"]).ends(0).complains(why);
    sh.run(&["info", "ship"]).ends(0).says(why);
    sh.run(&["tools"]).ends(0).complains(why);
}

#[test]
fn settings_that_were_set_aside_are_told_with_the_reason() {
    let sh = Shell::new();
    sh.write(
        "user/tools/w.rhai",
        "const SETTINGS = #{ city: \"Oslo\" };\n/// Tell. Use it to tell.\nfn tell() { 1 }\n",
    );
    sh.write("user/webui/plugins/w.json", "{\"city\": \"Ber");
    let listed =
        sh.run(&["settings", "list", "w"]).ends(0).complains("line 1 column 14 (byte 13): the text ends too early");
    listed.complains("user/webui/plugins/w.json.bad-");
    sh.write("user/plugin_state/w.json", "[1]");
    let known = sh.run(&["info", "w"]).ends(0).says("user/webui/plugins/w.json.bad-").says("the text ends too early");
    assert!(!known.out.contains("Ber"), "{known:?}");
    let json = sh.run(&["info", "w", "--json"]).ends(0).json();
    assert_eq!(json["set_aside"].as_array().map(Vec::len), Some(1), "{json}");
}

#[test]
fn a_file_of_far_too_many_tools_has_one_error() {
    let sh = Shell::new();
    let many: String = (0..2000).map(|n| format!("/// Number {n}. Use it for {n}.\nfn t{n}() {{ {n} }}\n")).collect();
    sh.write("user/tools/many.rhai", &many);
    let found = sh.run(&["check", "many", "--json"]).ends(1).json();
    assert_eq!(found.as_array().map(Vec::len), Some(1), "{found}");
    let message = found[0]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("the file has 2000 tools; at most 512 are taken"), "{message}");
}

#[test]
fn a_list_of_numbers_is_typed_with_commas_as_a_model_may_send_it() {
    let sh = Shell::new();
    sh.write(
        "user/tools/sum.rhai",
        "/// Give back a list. Use it for lists.\n/// @param {integer[]} a - Whole numbers.\n/// @param {number[]} [b] - Numbers.\nfn same(a, b) { [a, b] }\n",
    );
    let rows: [(&[&str], &str); 5] = [
        (&["a=1,2"], "[[1,2],null]"),
        (&["a=1, 2", "b=0.5,2"], "[[1,2],[0.5,2.0]]"),
        (&["a=1", "a=2,3"], "[[1,2,3],null]"),
        (&["a=[4, 5]"], "[[4,5],null]"),
        (&["a="], "[[],null]"),
    ];
    for (words, expected) in rows {
        sh.run(&[&["call", "same"], words].concat()).ends(0).says(expected);
    }
    sh.run(&["call", "same", "a=1,x"]).ends(1).complains("a list of integers, such as [1, 2, 3]");
}

#[test]
fn the_reference_can_be_read_written_and_compared() {
    let sh = bench();
    sh.run(&["docs"]).ends(0).says("state").says("commands");
    sh.run(&["docs", "state"]).ends(0).says("### `state::get`");
    sh.run(&["docs", "state::save"]).ends(0).says("state::save(");
    sh.run(&["docs", "stat"]).ends(1).complains("state");
    sh.run(&["docs", "state::nothing"]).ends(1).complains("lapidary docs state");
    sh.run(&["docs", "--check"]).ends(1).complains("no docs/ref");
    sh.run(&["docs", "--out", "docs/ref"]).ends(0).says("changed");
    sh.run(&["docs", "--check"]).ends(0).says("fresh");
    sh.write("docs/ref/state.md", "old");
    sh.write("docs/ref/gone.md", "old");
    let stale = sh.run(&["docs", "--check", "--json"]).ends(1).json();
    assert_eq!(stale["stale"], json!(["state.md", "gone.md"]));
    sh.run(&["docs", "--check"]).ends(1).says("state.md").says("gone.md");
    sh.run(&["definitions"]).ends(0).says("user/definitions");
    assert!(names(&sh.path("user/definitions")).contains(&"state.d.rhai".to_owned()));
    sh.run(&["definitions", "--out", "defs", "--json"]).ends(0);
    assert!(sh.read("defs/state.d.rhai").contains("module state"));
}

#[test]
fn the_doctor_names_what_is_wrong_and_how_to_mend_it() {
    let sh = bench();
    sh.run(&["doctor"]).ends(0).says("All is well").says("no host runs");
    sh.write("user/lapidary.toml", "[privacy\n");
    sh.run(&["doctor"]).ends(1).says("user/lapidary.toml:1");
    sh.write("user/lapidary.toml", "");
    sh.write("user/tools/broken.rhai", "fn broken(");
    sh.write("user/webui/plugins/dice.json", "{\"label\":");
    sh.write(
        "user/tools/runner.rhai",
        "const PERMISSIONS = [\"RUN_COMMANDS\"];\n/// Run. Use it when something must run.\nfn run_it() { \"ran\" }\n",
    );
    let sick = sh.run(&["doctor"]).ends(1);
    for part in [
        "broken does not load",
        "lapidary info broken",
        "dice.json",
        "lapidary grant runner RUN_COMMANDS",
        "1 thing to mend",
    ] {
        assert!(sick.out.contains(part), "{part}: {sick:?}");
    }
    let found = sh.run(&["doctor", "--json"]).ends(1).json();
    assert!(found.as_array().unwrap().iter().all(|f| f["weight"].is_string() && f["text"].is_string()), "{found}");
    assert!(found.to_string().contains("set aside"), "{found}");
}

#[test]
fn a_log_tells_ids_and_counts_and_no_content() {
    let sh = bench();
    let words = ["--log", "debug,json", "call", "roll_dice", "note=hunter2"];
    let done = sh.run(&words).ends(0);
    assert!(!done.err.contains("hunter2"), "{}", done.err);
    let lines: Vec<Value> = done.err.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert!(lines.iter().any(|l| l["fields"]["tool"] == "roll_dice"), "{lines:?}");
    let mut env = sh.command(&["call", "roll_dice", "note=hunter2"]);
    env.env("LAPIDARY_LOG", "debug");
    let plain = ran(env, b"").ends(0);
    assert!(plain.err.contains("roll_dice") && !plain.err.contains("hunter2"), "{}", plain.err);
    assert_eq!(sh.run(&["call", "roll_dice"]).ends(0).err, "");
}

#[test]
fn many_processes_on_one_root_lose_no_write() {
    let sh = Shell::new();
    sh.write(
        "user/tools/count.rhai",
        "/// Count up. Use it when counting.\n/// @local\nfn count() { state::update(\"n\", 0, |n| n + 1) }\n",
    );
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| sh.run(&["call", "count"]).ends(0));
        }
    });
    assert_eq!(sh.run(&["call", "count"]).ends(0).out, "9\n");
}

#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let sh = bench();
    let mut child = sh
        .command(&["docs", "commands"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let done = child.wait_with_output().unwrap();
    assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
}
