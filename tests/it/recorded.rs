//! Recorded HTTP: recorded once from a real server, replayed without it; nothing secret is written down, and what was not
//! recorded fails by name.

use crate::servers::{Server, answer, path};
use crate::shell::Shell;
use serde_json::{Value, json};

const FILE: &str = "user/tools/tests/recorded/probe.json";
const KEY: &str = "pa ss/w0rd+xyz";
/// What may show none of it: as it is, in a URL, in a form, in base64, in base64 behind a user name.
const TRACES: [&str; 7] = ["pa ss", "w0rd", "pa%20ss", "pa+ss", "cGEgc3M", "YW5uOnBh", "4711081512"];

/// Tells what it was asked, in JSON.
fn echo(request: &str) -> Vec<u8> {
    let (head, body) = request.split_once("\r\n\r\n").unwrap_or((request, ""));
    let method = head.split(' ').next().unwrap();
    match path(request).split('?').next().unwrap() {
        "/moved" => answer("302 Found", "location: /end?x=1\r\nset-cookie: a=session-cookie\r\n", b"over there"),
        "/picture" => answer("200 OK", "content-type: image/png\r\n", b"\x89PNG\x00\xff"),
        "/page" => answer(
            "200 OK",
            "content-type: text/html\r\netag: \"1\"\r\nx-secret: no\r\nset-cookie: a=session-cookie\r\n",
            b"<p>one</p>\n<p>two</p>\n",
        ),
        "/upload" => answer("200 OK", "", if body.contains("hello") { b"taken" } else { b"empty" }),
        "/dead" => answer("500 Oh", "retry-after: 3\r\n", b""),
        _ => {
            let told = json!({"method": method, "path": path(request), "head": head, "body": body});
            answer(
                "200 OK",
                "content-type: application/json\r\nx-ratelimit-remaining: 9\r\n",
                told.to_string().as_bytes(),
            )
        }
    }
}

/// A root with the plugin `probe`, whose one tool does what its tests say.
fn probe(permissions: &str, body: &str, tests: &str) -> Shell {
    let sh = Shell::new();
    write(&sh, permissions, body, tests);
    sh
}

fn write(sh: &Shell, permissions: &str, body: &str, tests: &str) {
    sh.write(
        "user/tools/probe.rhai",
        format!("const PERMISSIONS = {permissions};\n\n/// Probe. Use it in tests.\n/// @param {{integer}} n=0 - Which.\nfn probe(n) {{\n{body}\n}}\n"),
    );
    sh.write("user/tools/tests/probe.rhai", tests);
}

const HERE: &str = r#"[#{ EXTERNAL_HTTP: ["127.0.0.1"] }]"#;

fn exchanges(sh: &Shell) -> Vec<Value> {
    let page: Value = serde_json::from_str(&sh.read(FILE)).unwrap();
    assert_eq!(page["format"], 1);
    page["exchanges"].as_array().unwrap().clone()
}

#[test]
fn what_was_recorded_is_replayed_without_the_server() {
    let server = Server::http(echo);
    let at = |path: &str| server.url(path);
    let body = format!(
        r#"
        let out = [];
        out += net::get("{greeting}", #{{ params: #{{ b: 2, a: "x y" }} }}).json.path;
        out += net::post("{say}", #{{ json: #{{ z: 1, a: [1, "ž"] }} }}).json.method;
        out += net::put("{say}", #{{ data: #{{ q: "1" }} }}).json.body;
        out += net::request("OPTIONS", "{say}").status;
        let sent = net::post("{upload}", #{{ data: #{{ t: "x" }}, files: #{{ f: "hello" }} }});
        out += sent.text == "taken";
        let page = net::get("{page}", #{{ profile: "browser" }});
        out += page.text;
        out.push(page.headers.keys());
        out += net::get("{picture}").bytes.len();
        out += net::get("{moved}", #{{ allow_redirects: true }}).url.contains("/end?x=1");
        out += net::get("{moved}").status;
        out.push(net::get_all(["{one}", "{two}"]).map(|a| a.json.path));
        out += net::session_for("{one}").get("{one}").status;
        out += net::get("{dead}").headers["retry-after"];
        out += try_it(|| net::get("http://127.0.0.1:9/"));
        out"#,
        greeting = at("/greeting"),
        say = at("/say"),
        upload = at("/upload"),
        page = at("/page"),
        picture = at("/picture"),
        moved = at("/moved"),
        one = at("/one"),
        two = at("/two"),
        dead = at("/dead"),
    );
    let body = body.replace(
        "try_it(|| net::get(\"http://127.0.0.1:9/\"))",
        "\"\"; try { net::get(\"http://127.0.0.1:9/\"); } catch (e) { out += e.code; }",
    );
    let test = r#"fn test_all() {
        let all = json::decode(tools::run("probe", #{}));
        log::info(`${all}`);
        assert_eq(all[0], "/greeting?a=x+y&b=2");
        assert_eq(all.len(), 15, `${all}`);
        assert_eq(all[6], ["content-type", "etag"]);
        assert(all.contains("upstream_unavailable"), "a dead server is told");
    }"#;
    let sh = probe(HERE, &body, test);
    sh.run(&["test"]).ends(1).says("is not recorded in user/tools/tests/recorded/probe.json");
    assert_eq!(server.seen().len(), 0, "without --record nothing is sent");
    let report = sh.run(&["test", "--record", "--json"]).ends(0).json();
    assert!(report["notes"][0].as_str().unwrap().contains("written: 14 exchanges"), "{report:#}");
    let asked = server.seen().len();
    assert!(asked > 10);
    sh.run(&["test"]).ends(0).says("1 passed, 0 failed");
    // Not the user's network either.
    sh.write("user/lapidary.toml", "[net]\nproxy = \"nonsense://\"\n");
    sh.run(&["test"]).ends(0);
    assert_eq!(server.seen().len(), asked, "a replay sends nothing");
    let text = sh.read(FILE);
    for gone in ["session-cookie", "x-secret", "Mozilla"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
    for kept in [
        "x-ratelimit-remaining",
        "\"<p>one</p>\",",
        "boundary",
        "\"base64\"",
        "\"location\": \"/end?x=1\"",
        "\"failure\"",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    sh.run(&["test", "--record"]).ends(0);
    assert!(sh.read(FILE) == text, "recording the same again changes nothing");
}

#[test]
fn a_request_that_is_not_recorded_fails_by_name_and_says_what_is_nearly_it() {
    let server = Server::http(echo);
    let url = server.url("/now");
    let body =
        format!(r#"net::get("{url}", #{{ params: #{{ city: if n == 0 {{ "Brno" }} else {{ "Praha" }} }} }}).status"#);
    let sh = probe(HERE, &body, r#"fn test_a() { assert_eq(tools::run("probe", #{}), "200"); }"#);
    sh.run(&["test", "--record", "probe"]).ends(0);
    sh.write("user/tools/tests/probe.rhai", r#"fn test_a() { assert_eq(tools::run("probe", #{ n: 1 }), "200"); }"#);
    sh.run(&["test"])
        .ends(1)
        .says(&format!("GET {url}?city=Praha is not recorded in {FILE}"))
        .says("the parameter `city` is `Brno` there, `Praha` here")
        .says("lapidary test --record probe");
    // A script that swallows the failure does not pass for it.
    sh.write(
        "user/tools/tests/probe.rhai",
        r#"fn test_a() { let e = assert_throws(|| tools::run("probe", #{ n: 1 }), "upstream_unavailable"); assert(!e.retryable, "nothing changes by itself"); }"#,
    );
    let done = sh.run(&["test", "--json"]).ends(1).json();
    assert_eq!(done["tests"][0]["diagnostics"][0]["code"], "not_recorded", "{done:#}");
    assert_eq!(done["tests"][0]["diagnostics"][0]["file"], FILE);
}

#[test]
fn no_value_of_a_credential_is_written_down_and_a_replay_needs_none() {
    let server = Server::http(echo);
    let url = server.url("/say");
    let body = format!(
        r#"
        let key = credentials::get("weather");
        let pin = credentials::get("pin");
        let out = [];
        out += net::get("{url}", #{{ params: #{{ key: key }} }}).json.path;
        out += net::get("{url}", #{{ auth: key }}).json.head.contains("Bearer ***");
        out += net::get("{url}", #{{ auth: ["ann", key] }}).status;
        out += net::get("{url}", #{{ headers: #{{ "X-Key": key }} }}).status;
        out += net::post("{url}", #{{ json: #{{ a: [key], pin: pin }} }}).json.body;
        out += net::post("{url}", #{{ data: #{{ key: key }} }}).json.body;
        out += net::post("{url}", #{{ data: #{{ key: key }}, files: #{{ f: "x" }} }}).status;
        out"#
    );
    let test = r#"fn test_a() {
        let all = json::decode(tools::run("probe", #{}));
        assert_eq(all[0], "/say?key=***");
        assert_eq(all[4], `{"a":["***"],"pin":"***"}`);
        assert_eq(all[5], "key=***");
    }"#;
    let permissions = r#"[#{ EXTERNAL_HTTP: ["127.0.0.1"] }, #{ USE_SECRETS: ["weather", "pin"] }]"#;
    let sh = probe(permissions, &body, test);
    for (name, value) in [("weather", KEY), ("pin", "4711081512")] {
        sh.run_with(&["credentials", "set", name, "--host", "127.0.0.1"], value.as_bytes()).ends(0);
    }
    // Recording uses real keys: the plugin has what its owner granted, and no more.
    sh.run(&["test", "--record"]).ends(1).says("lapidary grant probe USE_SECRETS").says("is not written, since `test_");
    assert!(server.seen().is_empty() && !sh.path(FILE).exists());
    sh.run(&["grant", "probe", "USE_SECRETS=weather,pin"]).ends(0);
    sh.run(&["test", "--record"]).ends(0);
    assert!(server.seen().iter().any(|request| request.contains("w0rd")), "the real one is sent");
    let text = sh.read(FILE);
    for trace in TRACES {
        assert!(!text.contains(trace), "{trace}: {text}");
    }
    assert!(text.contains("key=***") && !text.to_ascii_lowercase().contains("\"authorization\""), "{text}");
    let asked = server.seen().len();
    sh.run(&["test"]).ends(0);
    // Another machine, without keys and without grants.
    let other = probe(permissions, &body, test);
    other.write(FILE, &text);
    other.run(&["test"]).ends(0);
    // A stand-in is bound to the declared hosts as the credential would be.
    let elsewhere = body.replace("127.0.0.1", "localhost");
    write(&other, &permissions.replace("127.0.0.1", "nas.lan"), &elsewhere, test);
    other.run(&["test"]).ends(1).says("may not send requests to `localhost`");
    assert_eq!(server.seen().len(), asked);
}

#[test]
fn a_secret_too_short_to_be_found_is_not_recorded() {
    let server = Server::http(echo);
    let body =
        format!(r#"net::get("{}", #{{ params: #{{ k: credentials::get("weather") }} }}).status"#, server.url("/"));
    let permissions = r#"[#{ EXTERNAL_HTTP: ["127.0.0.1"] }, #{ USE_SECRETS: ["weather"] }]"#;
    let sh = probe(permissions, &body, r#"fn test_a() { tools::run("probe", #{}); }"#);
    sh.run_with(&["credentials", "set", "weather", "--host", "127.0.0.1"], b"abc").ends(0);
    sh.run(&["grant", "probe", "USE_SECRETS=weather"]).ends(0);
    sh.run(&["test", "--record"]).ends(1).says("too short to be told from other text");
    assert!(server.seen().is_empty() && !sh.path(FILE).exists());
}

#[test]
fn permissions_count_in_a_replay_and_hosts_need_their_grant_in_a_recording() {
    let server = Server::http(echo);
    let body = format!(r#"net::get("{}").status"#, server.url("/x"));
    let test = r#"
        fn test_a() { assert_eq(tools::run("probe", #{}), "200"); }
        fn test_b() { revoke("EXTERNAL_HTTP"); assert_throws(|| tools::run("probe", #{}), "permission_denied"); }"#;
    let sh = probe(r#"["EXTERNAL_HTTP"]"#, &body, test);
    sh.run(&["test", "--record"]).ends(1).says("lapidary grant probe EXTERNAL_HTTP");
    sh.run(&["grant", "probe", "EXTERNAL_HTTP=127.0.0.1"]).ends(0);
    sh.run(&["test", "--record"]).ends(0);
    sh.run(&["revoke", "probe", "EXTERNAL_HTTP"]).ends(0);
    sh.run(&["test"]).ends(0);
    write(&sh, "[]", &body, test);
    sh.run(&["test"]).ends(1).says("may not send requests to `127.0.0.1`");
}

#[test]
fn answers_come_in_order_and_for_the_test_they_were_given_to() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let server = Server::http(move |request| {
        let n = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let body = if path(request) == "/same" { "same".to_owned() } else { n.to_string() };
        answer("200 OK", "", body.as_bytes())
    });
    let body = format!(
        r#"let all = [net::get("{same}").text]; for i in 0..n {{ all += net::get("{count}").text; }} text::join(all, " ")"#,
        same = server.url("/same"),
        count = server.url("/count"),
    );
    let sh = probe(
        HERE,
        &body,
        r#"
        fn test_a() { assert_eq(tools::run("probe", #{ n: 2 }), "same 1 2"); }
        fn test_b() { assert_eq(tools::run("probe", #{ n: 1 }), "same 4"); }"#,
    );
    sh.run(&["test", "--record"]).ends(0);
    sh.run(&["test"]).ends(0);
    let tests: Vec<Value> = exchanges(&sh).iter().map(|e| e["test"].clone()).collect();
    assert_eq!(tests, [Value::Null, json!("test_a"), json!("test_a"), json!("test_b")]);
    // The last one repeats.
    sh.write(
        "user/tools/tests/probe.rhai",
        r#"fn test_a() { assert_eq(tools::run("probe", #{ n: 4 }), "same 1 2 2 2"); }"#,
    );
    sh.run(&["test"]).ends(0);
}

#[test]
fn what_is_written_by_hand_is_kept_and_what_nobody_asks_for_goes() {
    let server = Server::http(echo);
    let body = format!(
        r#"if n == 0 {{ return net::get("{}").status; }} if n == 1 {{ return net::get("https://api.example.org/down").status; }} net::get("{}").status"#,
        server.url("/a"),
        server.url("/b"),
    );
    let sh = probe(
        HERE,
        &body,
        r#"
        fn test_a() { assert_eq(tools::run("probe", #{ n: 0 }), "200"); }
        fn test_b() { assert_eq(tools::run("probe", #{ n: 1 }), "503"); }
        fn test_c() { assert_eq(tools::run("probe", #{ n: 2 }), "200"); }"#,
    );
    write(
        &sh,
        r#"[#{ EXTERNAL_HTTP: ["127.0.0.1", "api.example.org"] }]"#,
        &body,
        &sh.read("user/tools/tests/probe.rhai"),
    );
    let by_hand =
        json!({"keep": true, "request": {"url": "https://api.example.org/down"}, "response": {"status": 503}});
    sh.write(FILE, json!({"format": 1, "exchanges": [by_hand]}).to_string());
    sh.run(&["test", "--record"]).ends(0).says("written: 3 exchanges");
    sh.run(&["test"]).ends(0);
    sh.write("user/tools/tests/probe.rhai", r#"fn test_a() { assert_eq(tools::run("probe", #{ n: 0 }), "200"); }"#);
    sh.run(&["test"]).ends(0);
    sh.run(&["test", "--record"]).ends(0).says("dropped GET").says("/b, which no test asks for");
    let left = exchanges(&sh);
    assert_eq!(left.len(), 2, "{left:#?}");
    assert_eq!(left[0]["request"]["url"], "https://api.example.org/down");
    // A test that fails changes nothing.
    let before = sh.read(FILE);
    sh.write("user/tools/tests/probe.rhai", r#"fn test_a() { assert_eq(tools::run("probe", #{ n: 2 }), "404"); }"#);
    sh.run(&["test", "--record"]).ends(1).says("is as it was, since `test_a` failed");
    assert_eq!(sh.read(FILE), before);
}

#[test]
fn a_request_that_is_not_recorded_is_told_once_with_both_places() {
    let body = r#"if n == 0 { net::get("http://127.0.0.1:1/x").text } else { try { net::get("http://127.0.0.1:1/y") } catch { "none" } }"#;
    let test = r#"
fn test_passed_on() { tools::run("probe", #{}); }
fn test_caught() { tools::run("probe", #{ n: 1 }); }
fn test_another_failure_awaited() { assert_throws(|| tools::run("probe", #{}), "timeout"); }"#;
    let sh = probe(HERE, body, test);
    let said = sh.run(&["test", "user/tools/tests/probe.rhai"]).ends(1).out;
    assert_eq!(said.matches("GET http://127.0.0.1:1/x is not recorded").count(), 2, "one each of two tests: {said}");
    assert_eq!(said.matches("GET http://127.0.0.1:1/y is not recorded").count(), 1, "{said}");
    assert_eq!(said.matches("it is asked at user/tools/probe.rhai:6:").count(), 2, "{said}");
    assert_eq!(said.matches("lapidary test --record probe").count(), 3, "{said}");
}

#[test]
fn a_recording_that_cannot_be_read_is_a_failure_with_its_place() {
    let sh = probe(HERE, "1", r#"fn test_a() { tools::run("probe", #{}); }"#);
    for (text, said) in [
        ("{", "user/tools/tests/recorded/probe.json:1:"),
        ("{\"format\": 2,\n \"exchanges\": []}", "format 2"),
        ("{\"format\": 1,\n\"exchanges\": [\n{\"request\": {\"url\": 7}}]}", "user/tools/tests/recorded/probe.json:3:"),
    ] {
        sh.write(FILE, text);
        sh.run(&["test"]).ends(1).says("FAILED  its recordings").says(said);
    }
}

#[test]
fn examples_folders_and_scripts_of_their_own_have_recordings_too() {
    let server = Server::http(|request| {
        if path(request) == "/dot" {
            answer("200 OK", "content-type: image/png\r\n", b"\x89PNG")
        } else {
            answer("200 OK", "", b"hello")
        }
    });
    let sh = Shell::new();
    sh.write("user/plugins/tea/plugin.json", r#"{"name": "tea", "description": "Tea.", "permissions": [{"EXTERNAL_HTTP": ["127.0.0.1"]}], "capabilities": {"tools": ["tools/tea.rhai"]}}"#);
    sh.write("user/plugins/tea/tools/tea.rhai", format!("/// Steep tea. Use it when someone is thirsty.\n/// @example {{}} => /hello/\nfn steep() {{ net::get(\"{}\").text }}\n", server.url("/tea")));
    sh.write("user/plugins/tea/tests/deep/b.rhai", "fn test_b() { assert_eq(tools::run(\"steep\", #{}), \"hello\"); }");
    let alone = format!(
        "const PERMISSIONS = {HERE};\nfn test_alone() {{ assert_eq(net::get(\"{}\").bytes.len(), 4); }}",
        server.url("/dot")
    );
    sh.write("tests/alone.rhai", &alone);
    sh.run(&["test", "--record", "tea", "tests/alone.rhai"]).ends(0);
    for file in [
        "user/plugins/tea/tests/recorded/tea.examples.json",
        "user/plugins/tea/tests/recorded/deep/b.json",
        "tests/recorded/alone.json",
    ] {
        assert!(sh.path(file).is_file(), "{file}");
    }
    let asked = server.seen().len();
    assert_eq!(asked, 3);
    sh.run(&["test", "tea", "tests/alone.rhai"]).ends(0).says("3 passed");
    // A body may be a file beside the recording, and leads no further.
    let page = |file: &str| {
        json!({"format": 1, "exchanges": [{"request": {"url": server.url("/dot")}, "response": {"file": file}}]})
            .to_string()
    };
    sh.write("tests/recorded/dot.bin", [1, 2, 3, 4]);
    sh.write("tests/recorded/alone.json", page("dot.bin"));
    sh.run(&["test", "tests/alone.rhai"]).ends(0);
    sh.write("tests/recorded/alone.json", page("../../../x"));
    sh.run(&["test", "tests/alone.rhai"]).ends(1).says("FAILED  its recordings");
    assert_eq!(server.seen().len(), asked);
}

#[test]
fn a_recording_opens_nothing_that_the_guard_closes() {
    let permissions = r#"[#{ EXTERNAL_HTTP: ["169.254.169.254", "example.org", "localhost", "nas.lan"] }, #{ USE_SECRETS: ["weather"] }]"#;
    let body = r#"
        let out = [];
        let code = |work| { try { return work.call(); } catch (e) { return e.code; } };
        out += code.call(|| net::get("http://169.254.169.254/latest").status);
        out += code.call(|| net::get("https://example.org/in").status);
        out += code.call(|| net::get("https://example.org/out").status);
        out += code.call(|| net::get("http://example.org/open", #{ auth: credentials::get("weather") }).status);
        out += code.call(|| net::get("https://example.org/shut", #{ auth: credentials::get("weather") }).text);
        out += code.call(|| net::get("https://example.org/big", #{ max_bytes: 3 }).text);
        out += code.call(|| net::get("https://other.example/").status);
        out += code.call(|| images::resolve("https://example.org/dot.gif").media_type);
        text::join(out, " ")"#;
    let sh = probe(
        permissions,
        body,
        r#"fn test_a() {
        assert_eq(tools::run("probe", #{}), "permission_denied permission_denied permission_denied permission_denied fine too_large permission_denied image/gif");
    }"#,
    );
    let answer = |url: &str, response: Value| json!({"request": {"url": url}, "response": response});
    let moved = |to: &str| json!({"status": 302, "headers": {"location": to}});
    let dot = "R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=";
    let page = json!({"format": 1, "exchanges": [
        answer("http://169.254.169.254/latest", json!({"text": "keys"})),
        answer("https://example.org/in", moved("http://nas.lan/")),
        answer("http://nas.lan/", json!({"text": "inside"})),
        answer("https://example.org/out", moved("https://elsewhere.example/")),
        answer("https://elsewhere.example/", json!({"text": "outside"})),
        answer("http://example.org/open", json!({"text": "sent in the open"})),
        answer("https://example.org/shut", json!({"text": "fine"})),
        answer("https://example.org/big", json!({"text": "large"})),
        answer("https://other.example/", json!({"text": "not listed"})),
        answer("https://example.org/dot.gif", json!({"headers": {"content-type": "image/gif"}, "base64": dot})),
    ]});
    sh.write(FILE, page.to_string());
    sh.run(&["test"]).ends(0).says("1 passed");
}
