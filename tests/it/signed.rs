//! Signing in and staying signed in, over real sockets: links, passwords, sessions, tokens, and what a session may be used for.

use super::http::Server;
use super::mcp::{ECHO, PATIENCE, folder, program, save};
use super::own::{Browser, MORNING, Own, code};
use lapidary::base::clock::Clock;
use lapidary::http::{Password, Tokens};
use lapidary::paths::Paths;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Output, Stdio};

const DAY: i64 = 24 * 3600 * 1000;
const PASSWORD: &str = "correct horse battery";

/// Runs the program at a root, with `input` on stdin.
fn run(root: &Path, words: &[&str], input: &str) -> Output {
    let mut child =
        program(root).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[track_caller]
fn json_of(root: &Path, words: &[&str], input: &str) -> Value {
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let done = run(root, &words, input);
    assert!(done.status.success(), "{done:?}");
    serde_json::from_slice(&done.stdout).unwrap()
}

#[test]
fn a_link_signs_in_once_and_its_cookie_is_kept_from_scripts_and_other_sites() {
    let dir = folder(&[]);
    let server = Own::start(dir.path());
    let mut browser = server.browser();
    let before = browser.get("/api/session");
    assert_eq!((before.status, before.json()["password_set"].clone()), (401, json!(false)));
    let reply = browser.sign_in("code", server.code());
    let cookie = reply.header("set-cookie").unwrap();
    for part in ["; HttpOnly", "; SameSite=Strict", "; Path=/", "; Max-Age=2592000"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(cookie.starts_with("lapidary-") && !cookie.contains("Secure") && !cookie.contains("Domain"), "{cookie}");
    let body = reply.json();
    assert_eq!((&body["by"], &body["name"], &body["signed_in"]), (&json!("session"), &json!("owner"), &json!(true)));
    let secret = browser.cookie.as_deref().unwrap().split_once('=').unwrap().1;
    assert!(!body.to_string().contains(secret), "the page learns nothing of the cookie");
    let again = browser.get("/api/session").json();
    assert_eq!((&again["csrf"], &again["expires_at"]), (&body["csrf"], &json!("2027-02-14T08:00:00Z")));
    assert_eq!(browser.get("/metrics").status, 200);

    let mut thief = server.browser();
    let refused = thief.sign_in("code", server.code());
    assert_eq!((refused.status, refused.header("set-cookie")), (401, None));
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains("used already"), "{refused:?}");
    for bad in ["", "nonsense", &server.code()[1..]] {
        assert_eq!(thief.sign_in("code", bad).status, 401, "{bad}");
    }
    assert_eq!(thief.get("/metrics").status, 401);
}

#[test]
fn a_link_is_of_use_for_fifteen_minutes() {
    let dir = folder(&[]);
    let server = Own::start(dir.path());
    server.clock.advance(15 * 60 * 1000);
    let reply = server.browser().sign_in("code", server.code());
    assert_eq!(reply.status, 401);
    assert!(reply.json()["error"]["hint"].as_str().unwrap().contains("lapidary sign-in"), "{reply:?}");
}

#[test]
fn what_signs_in_is_one_thing_and_well_formed() {
    let dir = folder(&[]);
    let server = Own::start(dir.path());
    let browser = server.browser();
    let rows = [
        ("{}", "one of them"),
        (r#"{"code": "a", "password": "b"}"#, "one of them"),
        (r#"{"cod": "a"}"#, "unknown field `cod`, expected `code` or `password`"),
        (r#"{"code": 5}"#, "does not fit at `code`"),
        (r#"{"password": ["s3cret"]}"#, "does not fit at `password`"),
        (r#"{"code": "s3cret", "code": "s3cret"}"#, "not valid JSON"),
        ("\"s3cret\"", "no JSON object"),
        ("{oops", "not valid JSON"),
        ("{\"code\": \"s3cret", "not valid JSON"),
        ("", "one of them"),
    ];
    for (body, part) in rows {
        server.clock.advance(60_000);
        let reply = browser.send("POST", "/api/session", &[], body);
        let text = reply.json().to_string();
        assert_eq!(reply.status, 400, "{body}: {text}");
        assert!(text.contains(part) && !text.contains("s3cret"), "{body}: {text}");
    }
    let large = browser.send("POST", "/api/session", &[], &"x".repeat(9000));
    assert_eq!(large.status, 413, "{large:?}");
}

#[test]
fn a_write_of_a_session_needs_the_proof_of_its_own_page() {
    let dir = folder(&[]);
    Password::of(&Paths::at(dir.path()), Clock::system()).set(PASSWORD).unwrap();
    let server = Own::start(dir.path());
    let [one, other] = [0, 1].map(|_| {
        let mut browser = server.browser();
        assert_eq!(browser.sign_in("password", PASSWORD).status, 200);
        browser
    });
    let good = one.csrf.clone().unwrap();
    for (method, path) in [
        ("POST", "/api/tokens"),
        ("DELETE", "/api/tokens/none"),
        ("PUT", "/api/password"),
        ("DELETE", "/api/password"),
        ("DELETE", "/api/session"),
        ("POST", "/api/plugin/none/none"),
        ("PATCH", "/nothing"),
        ("POST", "/metrics"),
    ] {
        for wrong in ["-", "", "wrong", &good[1..], other.csrf.as_deref().unwrap(), &format!("{good}, {good}")] {
            let reply = one.send(method, path, &[("X-CSRF-Token", wrong)], "{}");
            assert_eq!(reply.status, 403, "{method} {path} {wrong}: {reply:?}");
            assert!(reply.json()["error"]["hint"].as_str().unwrap().contains("X-CSRF-Token"), "{reply:?}");
            assert_eq!(reply.json()["needs"], "csrf", "so that a page asks for it again");
        }
    }
    let twice = one.send("POST", "/api/tokens", &[("X-CSRF-Token", &good), ("X-CSRF-Token", &good)], "{}");
    assert_eq!(twice.status, 403);
    assert_eq!(one.get("/api/session").status, 200, "nothing was done");
    assert_eq!(one.write("POST", "/api/tokens", &json!({ "name": "laptop" })).status, 201);
}

#[test]
fn no_other_site_uses_a_session_and_no_other_name_reaches_it() {
    let dir = folder(&[]);
    let server = Own::start(dir.path());
    let person = server.person();
    // Headers that a browser sends for a page of somebody else, and what comes of them.
    type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);
    let rows: [Row; 11] = [
        ("GET", &[("Sec-Fetch-Site", "cross-site")], 403),
        ("GET", &[("Sec-Fetch-Site", "same-site")], 403),
        ("GET", &[("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Site", "none")], 403),
        ("GET", &[("Origin", "http://127.0.0.1:1")], 403),
        ("GET", &[("Origin", "null")], 403),
        ("GET", &[("Origin", "https://evil.example"), ("Sec-Fetch-Site", "-")], 403),
        ("POST", &[("Sec-Fetch-Site", "cross-site")], 403),
        ("POST", &[("Origin", "http://localhost:3000")], 403),
        ("GET", &[("Host", "evil.example")], 421),
        ("POST", &[("Host", "evil.example"), ("Origin", "http://evil.example")], 421),
        ("GET", &[("Sec-Fetch-Site", "-")], 200),
    ];
    for (method, headers, status) in rows {
        let path = if method == "GET" { "/api/tokens" } else { "/api/tokens/none" };
        assert_eq!(person.send(method, path, headers, "").status, status, "{method} {headers:?}");
    }
    assert_eq!(person.send("GET", "/api/session", &[("Sec-Fetch-Site", "cross-site")], "").status, 403);
    let mut stranger = server.browser();
    stranger.csrf = None;
    let reply = stranger.send("POST", "/api/session", &[("Sec-Fetch-Site", "cross-site")], r#"{"code": "x"}"#);
    assert_eq!(reply.status, 403, "nobody is signed in to what somebody else's page chose");
}

#[test]
fn mcp_is_for_tokens_and_never_for_a_session() {
    let dir = folder(&[]);
    let server = Own::start(dir.path());
    let person = server.person();
    for method in ["GET", "POST", "DELETE"] {
        assert_eq!(person.send(method, "/mcp", &[], "").status, 401, "{method}");
    }
    let token = std::fs::read_to_string(dir.path().join("user/webui/token")).unwrap();
    let bearer = format!("Bearer {}", token.trim());
    let reply = server.browser().send("POST", "/mcp", &[("Authorization", &bearer)], "");
    assert_eq!((reply.status, reply.body.as_slice()), (200, b"/mcp".as_slice()));
    let both = person.send("POST", "/mcp", &[("Authorization", &bearer), ("X-CSRF-Token", "-")], "");
    assert_eq!(both.status, 200, "a token counts alone");
    let wrong = person.send("GET", "/metrics", &[("Authorization", "Bearer wrong")], "");
    assert_eq!(wrong.status, 401, "and wrong too");
}

#[test]
fn a_session_lasts_over_a_restart_and_while_it_is_used() {
    let dir = folder(&[]);
    let server = Own::start(dir.path());
    let mut person = server.person();
    drop(server);
    let clock = Clock::manual(MORNING + 29 * DAY);
    let server = Own::at(dir.path(), "127.0.0.1:0", clock.clone()).unwrap();
    person.address = server.address;
    let reply = person.get("/api/session");
    assert_eq!(reply.status, 200);
    // The first request writes down that it was used; the next ones know.
    let fresh = person.get("/api/session");
    assert!(fresh.header("set-cookie").unwrap().contains("; Max-Age=2592000"), "{fresh:?}");
    clock.advance(29 * DAY);
    assert_eq!(person.get("/metrics").status, 200);
    clock.advance(30 * DAY);
    assert_eq!(person.get("/metrics").status, 401);
}

#[test]
fn signing_out_ends_the_session_and_takes_the_cookie() {
    let dir = folder(&[]);
    let server = Own::start(dir.path());
    let person = server.person();
    let reply = person.send("DELETE", "/api/session", &[], "");
    assert_eq!(reply.status, 204);
    assert!(reply.header("set-cookie").unwrap().contains("=; Path=/; Max-Age=0;"), "{reply:?}");
    for path in ["/api/session", "/metrics", "/api/tokens"] {
        assert_eq!(person.get(path).status, 401, "{path}");
    }
    assert_eq!(server.browser().send("DELETE", "/api/session", &[], "").status, 204, "nobody is signed out too");
}

#[test]
fn wrong_passwords_make_the_next_one_wait_longer_and_longer() {
    let dir = folder(&[]);
    Password::of(&Paths::at(dir.path()), Clock::system()).set(PASSWORD).unwrap();
    let server = Own::start(dir.path());
    let mut browser = server.browser();
    for _ in 0..4 {
        let reply = browser.sign_in("password", "a wrong password");
        assert_eq!((reply.status, reply.json()["password_set"].clone()), (401, json!(true)), "{reply:?}");
    }
    let mut waits = Vec::new();
    for _ in 0..5 {
        let waits_for = browser.sign_in("password", PASSWORD);
        assert_eq!(waits_for.status, 429, "the right one has to wait as well: {waits_for:?}");
        waits.push(waits_for.retry_after());
        server.clock.advance(i64::try_from(waits_for.retry_after()).unwrap() * 1000);
        assert_eq!(browser.sign_in("password", "a wrong password").status, 401);
        // What all tries of an address have together.
        server.clock.advance(1);
    }
    assert_eq!(waits, [2, 4, 8, 16, 32]);
    server.clock.advance(64_000);
    assert_eq!(browser.sign_in("password", PASSWORD).status, 200);
    let mut other = server.browser();
    assert_eq!(other.sign_in("password", "a wrong password").status, 401, "and then it begins anew");
}

#[test]
fn signing_in_is_not_tried_without_end() {
    let dir = folder(&[]);
    let server = Own::start(dir.path());
    let mut browser = server.browser();
    let tries: Vec<u16> = (0..12).map(|_| browser.sign_in("code", "nonsense").status).collect();
    assert_eq!(tries, [[401; 10].as_slice(), &[429; 2]].concat());
    server.clock.advance(6000);
    assert_eq!(browser.sign_in("code", server.code()).status, 200);
}

#[test]
fn the_password_is_changed_by_who_knows_it_or_came_by_a_link_just_now() {
    let dir = folder(&[]);
    let server = Own::start(dir.path());
    let person = server.person();
    let set = |browser: &Browser, body: Value| browser.write("PUT", "/api/password", &body);
    assert_eq!(set(&person, json!({ "new": "short" })).status, 400);
    assert_eq!(set(&person, json!({ "new": PASSWORD })).status, 204);
    assert_eq!(set(&person, json!({ "new": "another password" })).status, 204, "a link of a moment ago is enough");
    server.clock.advance(15 * 60 * 1000);
    let reply = set(&person, json!({ "new": PASSWORD }));
    assert_eq!(reply.status, 400);
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("`current`"), "{reply:?}");
    assert_eq!(set(&person, json!({ "new": PASSWORD, "current": PASSWORD })).status, 403);
    let mut other = server.browser();
    assert_eq!(other.sign_in("password", "another password").status, 200);
    assert_eq!(set(&person, json!({ "new": PASSWORD, "current": "another password" })).status, 204);
    assert_eq!((person.get("/metrics").status, other.get("/metrics").status), (200, 401), "all others are signed out");
    assert_eq!(other.sign_in("password", "another password").status, 401);
    assert_eq!(other.sign_in("password", PASSWORD).status, 200);
    assert_eq!(person.send("DELETE", "/api/password", &[], "").status, 400);
    assert_eq!(person.write("DELETE", "/api/password", &json!({ "current": PASSWORD })).status, 204);
    assert_eq!((person.get("/metrics").status, other.get("/metrics").status), (200, 401));
    assert_eq!(other.sign_in("password", PASSWORD).status, 401, "without one nobody signs in by it");
    assert_eq!(person.get("/api/session").json()["password_set"], false);
}

#[test]
fn tokens_are_shown_once_listed_and_revoked() {
    let dir = folder(&[]);
    let server = Own::start(dir.path());
    let person = server.person();
    let made = person.write("POST", "/api/tokens", &json!({ "name": "laptop" }));
    let (made, token) = (made.json(), made.json()["token"].as_str().unwrap().to_owned());
    assert!(token.starts_with("lap_"), "{made}");
    for (body, status) in
        [(json!({ "name": "laptop" }), 409), (json!({ "name": "" }), 400), (json!({ "nam": "x" }), 400)]
    {
        assert_eq!(person.write("POST", "/api/tokens", &body).status, status, "{body}");
    }
    let bearer = format!("Bearer {token}");
    let as_program = |method: &str, path: &str, body: &str| {
        let auth = [("Authorization", bearer.as_str()), ("Sec-Fetch-Site", "-"), ("Origin", "-")];
        server.browser().send(method, path, &auth, body)
    };
    server.clock.advance(1000);
    let seen = as_program("GET", "/api/session", "");
    assert_eq!((&seen.json()["by"], &seen.json()["name"]), (&json!("token"), &json!("laptop")));
    assert_eq!((seen.header("set-cookie"), seen.json().get("csrf").is_some()), (None, false));
    assert_eq!(as_program("POST", "/mcp", "").status, 200);
    for (method, path, body) in [
        ("POST", "/api/tokens", r#"{"name": "child"}"#),
        ("DELETE", "/api/tokens/x", ""),
        ("PUT", "/api/password", r#"{"new": "a long password"}"#),
        ("DELETE", "/api/password", ""),
    ] {
        assert_eq!(as_program(method, path, body).status, 403, "{method} {path}: a token makes no keys");
    }
    let listed = person.get("/api/tokens").json();
    assert_eq!(
        listed,
        json!([{
            "id": made["id"],
            "name": "laptop",
            "created_at": "2027-01-15T08:00:00Z",
            "last_used_at": "2027-01-15T08:00:01Z",
        }])
    );
    let id = made["id"].as_str().unwrap();
    assert_eq!(person.send("DELETE", &format!("/api/tokens/{id}"), &[], "").status, 204);
    assert_eq!(as_program("GET", "/metrics", "").status, 401);
    assert_eq!(person.send("DELETE", &format!("/api/tokens/{id}"), &[], "").status, 404);
}

#[test]
fn a_stream_ends_with_what_let_its_reader_in() {
    let dir = folder(&[("greet", ECHO)]);
    let server = Server::start(dir.path());
    let address = server.connect().peer_addr().unwrap();
    let mut person = Browser::at(address);
    let link = json_of(dir.path(), &["sign-in"], "");
    assert_eq!(person.sign_in("code", code(link["url"].as_str().unwrap())).status, 200);
    let made = json_of(dir.path(), &["tokens", "add", "laptop"], "");
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    let follow = |browser: &Browser, headers: &[(&str, &str)]| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(browser.head("GET", "/api/events", headers, "").as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        while !line.contains("hello") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "the stream ended");
        }
        lines
    };
    let stranger = Browser::at(address);
    let streams = [follow(&person, &[]), follow(&stranger, &[("Authorization", &bearer)])];
    let mut owners = follow(&stranger, &[("Authorization", &server.bearer())]);
    json_of(dir.path(), &["tokens", "revoke", "laptop"], "");
    assert_eq!(person.send("DELETE", "/api/session", &[], "").status, 204);
    save(dir.path(), "user/tools/greet.rhai", &ECHO.replace("For tests", "For more tests"));
    for mut stream in streams {
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("plugin_live"), "{rest}");
    }
    let mut line = String::new();
    while !line.contains("plugin_live") {
        line.clear();
        assert!(owners.read_line(&mut line).unwrap() > 0, "the stream ended");
    }
}

#[test]
fn what_another_process_does_counts_at_once() {
    let dir = folder(&[]);
    let server = Server::start(dir.path());
    let address = server.connect().peer_addr().unwrap();
    let get = |browser: &Browser, path: &str| browser.get(path).status;

    let link = json_of(dir.path(), &["sign-in"], "");
    let url = link["url"].as_str().unwrap();
    assert!(url.starts_with(&format!("http://{address}/#sign-in=")) && link["expires_at"].is_string(), "{link}");
    let mut person = Browser::at(address);
    assert_eq!(person.sign_in("code", code(url)).status, 200);
    assert_eq!(person.sign_in("code", code(url)).status, 401);

    let made = json_of(dir.path(), &["tokens", "add", "laptop"], "");
    let bearer = format!("Bearer {}", made["token"].as_str().unwrap());
    let as_program = || Browser::at(address).send("GET", "/metrics", &[("Authorization", &bearer)], "").status;
    assert_eq!(as_program(), 200);
    let listed = json_of(dir.path(), &["tokens", "list"], "");
    assert!(!listed.to_string().contains("lap_") && listed["tokens"][0]["name"] == "laptop", "{listed}");
    json_of(dir.path(), &["tokens", "revoke", "laptop"], "");
    assert_eq!(as_program(), 401);
    assert_eq!(run(dir.path(), &["tokens", "revoke", "laptop"], "").status.code(), Some(1));

    let done = run(dir.path(), &["password", "set"], &format!("{PASSWORD}\n"));
    assert!(done.status.success(), "{done:?}");
    assert_eq!(get(&person, "/metrics"), 401, "a new password signs everybody out");
    assert_eq!(person.sign_in("password", PASSWORD).status, 200);
    assert_eq!(json_of(dir.path(), &["password", "remove"], ""), json!({ "password_set": false, "removed": true }));
    assert_eq!(get(&person, "/metrics"), 401);
    assert_eq!(person.sign_in("password", PASSWORD).status, 401);
    assert_eq!(run(dir.path(), &["password", "set"], "short").status.code(), Some(1));
}

#[test]
fn without_a_host_there_is_no_link() {
    let dir = folder(&[("greet", "")]);
    let done = run(dir.path(), &["sign-in"], "");
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.contains("no host") && said.contains("lapidary serve"), "{said}");
}

#[test]
fn beyond_this_machine_a_server_wants_a_password_or_a_token_of_the_owners() {
    let everywhere = |root: &Path| Own::at(root, "0.0.0.0:0", Clock::manual(MORNING));
    let dir = folder(&[]);
    let refused = everywhere(dir.path()).err().unwrap();
    assert!(refused.hint_text().unwrap().contains("lapidary password set"), "{refused}");
    assert!(!dir.path().join("user/webui/token").exists(), "nothing is made for a server that does not open");
    Password::of(&Paths::at(dir.path()), Clock::system()).set(PASSWORD).unwrap();
    let server = everywhere(dir.path()).unwrap();
    assert!(server.url.starts_with("http://127.0.0.1:"), "{}", server.url);
    drop(server);
    for (file, text) in [
        ("user/webui/tokens.json", "{\"tokens\": []}"),
        ("user/webui/password.json", "{\"hash\": null}"),
        ("user/webui/password.json", "{oops"),
        ("user/webui/password.json", ""),
    ] {
        let dir = folder(&[]);
        save(dir.path(), file, text);
        assert!(everywhere(dir.path()).is_err(), "{file} {text}");
    }
    let dir = folder(&[]);
    Tokens::of(&Paths::at(dir.path()), Clock::system()).add("laptop").unwrap();
    everywhere(dir.path()).unwrap();
}
