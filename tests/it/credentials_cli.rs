//! `lapidary credentials` and what the doctor says of the file: values go in by stdin and never come out.

use crate::shell::Shell;
use serde_json::json;

const FILE: &str = "config/lapidary/credentials.json";
const VALUE: &str = "s3cret-value-xyz";

#[test]
fn what_is_set_is_listed_without_its_value_used_by_a_tool_and_deleted() {
    let sh = Shell::new();
    sh.run(&["credentials", "list"]).ends(0).says("Nothing is stored");
    let set =
        sh.run_with(&["credentials", "set", "weather", "--host", "api.example.org"], b"s3cret-value-xyz\n").ends(0);
    assert_eq!(set.out, "stored weather in the file; it goes to api.example.org\n");
    let kept: serde_json::Value = serde_json::from_str(&sh.read(FILE)).unwrap();
    assert_eq!(kept["credentials"]["weather"], json!({"value": VALUE, "hosts": ["api.example.org"]}));
    let listed = sh.run(&["credentials", "list"]).ends(0).says("weather").says("api.example.org");
    let json = sh.run(&["credentials", "list", "--json"]).ends(0);
    assert_eq!(json.json()["credentials"][0]["name"], "weather");
    assert_eq!(json.json()["credentials"][0]["from"], "file");
    assert!(!(listed.out + json.out.as_str()).contains("s3cret"));
    sh.write(
        "user/tools/probe.rhai",
        "const PERMISSIONS = [#{USE_SECRETS: [\"weather\"]}];\n/// Try it. Use it in tests.\n/// @local\nfn probe() { `${credentials::get(\"weather\")}` }\n",
    );
    sh.run(&["call", "probe"]).ends(1).complains("lapidary grant probe USE_SECRETS");
    sh.run(&["grant", "probe", "USE_SECRETS=weather"]).ends(0);
    sh.run(&["call", "probe"]).ends(0).says("Secret");
    sh.run(&["credentials", "delete", "weather", "--json"]).ends(0).says("\"deleted\":true");
    sh.run(&["credentials", "delete", "weather"]).ends(1).complains("there is no credential `weather`");
    sh.run(&["call", "probe"]).ends(1).complains("lapidary credentials set weather --host HOST");
}

#[test]
fn a_value_can_be_kept_while_its_hosts_change_and_one_without_hosts_goes_nowhere() {
    let sh = Shell::new();
    sh.run_with(&["credentials", "set", "key"], VALUE.as_bytes()).ends(0).complains("--keep --host HOST");
    sh.run(&["credentials", "set", "key", "--keep", "--host", "a.example", "--host", "*.b.example"])
        .ends(0)
        .says("changed key in the file; it goes to a.example *.b.example");
    assert!(sh.read(FILE).contains(VALUE));
    sh.run(&["credentials", "set", "other", "--keep"]).ends(1).complains("to keep");
    sh.run_with(&["credentials", "set", "pin"], b"123").ends(0).complains("fewer than 4 bytes");
    let mut with = sh.command(&["credentials", "list"]);
    with.env("LAPIDARY_CREDENTIAL_ELSEWHERE", VALUE);
    sh.run(&["credentials", "set", "elsewhere", "--keep", "--host", "c.example"]).ends(0);
    let listed = crate::shell::ran(with, b"").ends(0).says("LAPIDARY_CREDENTIAL_ELSEWHERE");
    assert!(!listed.out.contains(VALUE));
}

#[test]
fn the_fields_of_an_account_come_a_line_each() {
    let sh = Shell::new();
    let words =
        ["credentials", "set", "email/work", "--field", "address", "--field", "password", "--public", "address"];
    sh.run_with(&words, b"one line\n").ends(2).complains("1 line, for 2 fields");
    sh.run_with(&words, b"ann@example.org\nthe password\n").ends(0);
    let kept: serde_json::Value = serde_json::from_str(&sh.read(FILE)).unwrap();
    let account = &kept["credentials"]["email/work"];
    assert_eq!(account["fields"], json!({"address": "ann@example.org", "password": "the password"}));
    let listed = sh.run(&["credentials", "list"]).ends(0).says("address (public) password");
    assert!(!listed.out.contains("the password"));
}

#[test]
fn a_value_is_no_word_of_a_command_and_nonsense_stores_nothing() {
    let sh = Shell::new();
    sh.run(&["credentials", "set", "weather", VALUE]).ends(2);
    for (words, stdin) in [
        (&["credentials", "set", "a b"][..], VALUE.as_bytes()),
        (&["credentials", "set", "a", "--host", "https://x.example"], VALUE.as_bytes()),
        (&["credentials", "set", "a"], b""),
        (&["credentials", "set", "a"], b"\n"),
        (&["credentials", "set", "a"], b"\xff\xfes3cret-value-xyz"),
    ] {
        let ran = sh.run_with(words, stdin).ends(1);
        assert!(!(ran.out + ran.err.as_str()).contains(VALUE), "{words:?}");
    }
    sh.run(&["credentials", "list"]).ends(0).says("Nothing is stored");
}

#[cfg(unix)]
#[test]
fn the_doctor_says_where_the_file_is_open_and_how_to_close_it() {
    use std::os::unix::fs::PermissionsExt;
    let sh = Shell::new();
    sh.run(&["doctor"]).ends(0).says("none are stored");
    sh.run_with(&["credentials", "set", "key", "--host", "a.example"], VALUE.as_bytes()).ends(0);
    let mode = |mode| std::fs::set_permissions(sh.path(FILE), std::fs::Permissions::from_mode(mode)).unwrap();
    assert_eq!(std::fs::metadata(sh.path(FILE)).unwrap().permissions().mode() & 0o777, 0o600);
    sh.run(&["doctor"]).ends(0).says("closed to other users");
    mode(0o644);
    let told = sh.run(&["doctor"]).ends(1).says("mode 644").says("chmod 600");
    assert!(!told.out.contains(VALUE));
    sh.run_with(&["credentials", "set", "key"], b"another").ends(1).complains("chmod 600");
    sh.run(&["credentials", "list"]).ends(1).complains("chmod 600");
    mode(0o600);
    sh.run(&["credentials", "list"]).ends(0).says("a.example");
}
