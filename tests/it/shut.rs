//! What keeps a server shut, over real sockets: TLS, proxies, limits, headers, hostile plugins, and logs without secrets.

use super::mcp::{PATIENCE, folder, program, save};
use super::own::{Browser, Own, Reply, code};
use lapidary::base::clock::Clock;
use lapidary::http::Password;
use lapidary::paths::Paths;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

const PASSWORD: &str = "correct horse battery";

fn start(root: &Path, server: &str) -> Own {
    save(root, "user/lapidary.toml", &format!("[server]\n{server}\n"));
    Own::start(root)
}

/// A certificate for `localhost` and its key, as PEM, and the certificate as it is sent.
fn certificate() -> (String, String, Vec<u8>) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem(), made.cert.der().to_vec())
}

/// Sends a request over TLS, trusting one certificate.
fn over_tls(browser: &Browser, trusted: &[u8], method: &str, path: &str, body: &str) -> std::io::Result<Reply> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(trusted.to_vec().into()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    let connection = rustls::ClientConnection::new(config, "localhost".try_into().unwrap()).unwrap();
    let stream = TcpStream::connect(browser.address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut stream = rustls::StreamOwned::new(connection, stream);
    let origin = format!("https://{}", browser.address);
    let headers = [("Origin", if method == "GET" { "-" } else { &origin })];
    stream.write_all(browser.head(method, path, &headers, body).as_bytes())?;
    let mut bytes = Vec::new();
    // A server that closes without a goodbye has said all it had to say.
    let read = stream.read_to_end(&mut bytes);
    if bytes.is_empty() {
        read?;
    }
    Ok(Reply::of(&bytes))
}

#[test]
fn with_a_certificate_everything_is_over_tls_and_the_cookie_too() {
    let dir = folder(&[]);
    let (cert, key, der) = certificate();
    save(dir.path(), "user/cert.pem", &cert);
    save(dir.path(), "user/key.pem", &key);
    let server = start(dir.path(), "tls_cert = \"cert.pem\"\ntls_key = \"key.pem\"");
    assert_eq!(
        (server.url.as_str(), server.link.starts_with("https://")),
        (format!("https://{}", server.address).as_str(), true)
    );
    let mut browser = server.browser();
    assert_eq!(over_tls(&browser, &der, "GET", "/healthz", "").unwrap().status, 200);
    let reply =
        over_tls(&browser, &der, "POST", "/api/session", &json!({ "code": server.code() }).to_string()).unwrap();
    let cookie = reply.header("set-cookie").unwrap().to_owned();
    assert!(cookie.starts_with("__Host-lapidary-") && cookie.ends_with("; Secure"), "{cookie}");
    browser.keep(&reply);
    assert_eq!(over_tls(&browser, &der, "GET", "/metrics", "").unwrap().status, 200);
    // The same secret under the name that plain connections have.
    browser.cookie = browser.cookie.map(|cookie| cookie.replace("__Host-", ""));
    assert_eq!(over_tls(&browser, &der, "GET", "/metrics", "").unwrap().status, 401);

    let mut plain = TcpStream::connect(server.address).unwrap();
    plain.set_read_timeout(Some(PATIENCE)).unwrap();
    plain.write_all(server.browser().head("GET", "/healthz", &[], "").as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let _ = plain.read_to_end(&mut bytes);
    assert!(!bytes.starts_with(b"HTTP"), "{bytes:?}");

    let (cert, key, renewed) = certificate();
    save(dir.path(), "user/cert.pem", &cert);
    save(dir.path(), "user/key.pem", &key);
    assert!(over_tls(&server.browser(), &der, "GET", "/healthz", "").is_err(), "the old one is not used any more");
    assert_eq!(over_tls(&server.browser(), &renewed, "GET", "/healthz", "").unwrap().status, 200);
}

#[test]
fn a_certificate_that_is_none_keeps_the_server_from_opening() {
    let (cert, key, _) = certificate();
    let rows = [
        ("tls_cert = \"cert.pem\"", "go together"),
        ("tls_cert = \"none.pem\"\ntls_key = \"key.pem\"", "none.pem"),
        ("tls_cert = \"key.pem\"\ntls_key = \"key.pem\"", "no certificate"),
        ("tls_cert = \"cert.pem\"\ntls_key = \"cert.pem\"", "no private key"),
        ("tls_cert = \"cert.pem\"\ntls_key = \"other.pem\"", "another certificate"),
    ];
    let dir = folder(&[]);
    save(dir.path(), "user/cert.pem", &cert);
    save(dir.path(), "user/key.pem", &key);
    save(dir.path(), "user/other.pem", &certificate().1);
    for (settings, part) in rows {
        save(dir.path(), "user/lapidary.toml", &format!("[server]\n{settings}\n"));
        let e = Own::at(dir.path(), "127.0.0.1:0", Clock::system()).err().unwrap();
        assert!(e.message().contains(part), "{settings}: {e}");
    }
}

#[test]
fn a_proxy_that_was_named_says_how_a_person_came_and_no_other_does() {
    let dir = folder(&[]);
    let forwarded = [("X-Forwarded-Proto", "https"), ("X-Forwarded-For", "203.0.113.9"), ("Host", "workshop.example")];
    let come = |server: &Own| {
        let headers: Vec<_> = forwarded.iter().copied().chain([("Origin", "https://workshop.example")]).collect();
        server.browser().send("POST", "/api/session", &headers, &json!({ "code": server.code() }).to_string())
    };
    let server = start(dir.path(), "hosts = [\"workshop.example\"]\norigins = [\"https://workshop.example\"]");
    let reply = come(&server);
    assert!(reply.status == 200 && !reply.header("set-cookie").unwrap().contains("Secure"), "not named: {reply:?}");
    drop(server);
    let server = start(dir.path(), "trusted_proxies = [\"127.0.0.1\"]\nhosts = [\"workshop.example\"]");
    let reply = come(&server);
    let cookie = reply.header("set-cookie").unwrap();
    assert!(cookie.starts_with("__Host-") && cookie.contains("Secure"), "{cookie}");
    // A page that came without TLS is not the one that came with it.
    let plain: Vec<_> = forwarded.iter().copied().chain([("Origin", "http://workshop.example")]).collect();
    assert_eq!(server.browser().send("GET", "/healthz", &plain, "").status, 403);
    drop(server);
    let server = start(dir.path(), "url = \"https://workshop.example\"");
    assert!(server.link.starts_with("https://workshop.example/#sign-in="), "{}", server.link);
    let reply = come(&server);
    assert!(reply.header("set-cookie").unwrap().starts_with("__Host-"), "{reply:?}");
}

#[test]
fn who_comes_through_a_proxy_is_told_apart_and_held_to_limits() {
    let dir = folder(&[]);
    let server = start(dir.path(), "trusted_proxies = [\"127.0.0.1\"]");
    let ask = |address: &str, headers: &[(&str, &str)]| {
        let headers: Vec<_> = headers.iter().copied().chain([("X-Forwarded-For", address)]).collect();
        server.browser().send("GET", "/healthz", &headers, "")
    };
    let answered = |address: &str, tries: usize| (0..tries).filter(|_| ask(address, &[]).status == 200).count();
    assert_eq!(answered("203.0.113.9", 110), 100);
    assert_eq!(answered("203.0.113.10", 10), 10, "another has a bucket of its own");
    let slowed = ask("203.0.113.9", &[]);
    assert_eq!((slowed.status, slowed.retry_after()), (429, 1));
    assert_eq!(slowed.json()["error"]["code"], "rate_limited");
    server.clock.advance(1000);
    assert_eq!(ask("203.0.113.9", &[]).status, 200);
    assert_eq!((0..300).filter(|_| server.browser().get("/healthz").status == 200).count(), 300, "nobody else");
    let wrong = [("Authorization", "Bearer wrong")];
    let tried = (0..40).filter(|_| ask("203.0.113.77", &wrong).status == 200).count();
    assert_eq!(tried, 30, "what opens nothing is not shown without end");
}

#[test]
fn the_owner_says_how_often_a_caller_may_ask() {
    let dir = folder(&[]);
    let server = start(dir.path(), "rate = 5");
    let person = server.person();
    let answered = (0..20).filter(|_| person.get("/metrics").status == 200).count();
    assert_eq!(answered, 10);
    let slowed = person.get("/metrics");
    assert_eq!((slowed.status, slowed.retry_after()), (429, 1));
    server.clock.advance(1000);
    assert_eq!((0..20).filter(|_| person.get("/metrics").status == 200).count(), 5);
}

const MANIFEST: &str = r#"{
  "name": "guest",
  "capabilities": { "routes": [
    { "path": "seen", "handler": "routes/guest.rhai:seen" },
    { "path": "page", "handler": "routes/guest.rhai:page" },
    { "path": "file/{name}", "handler": "routes/guest.rhai:file" },
    { "path": "song/{name}", "handler": "routes/guest.rhai:file", "media": true },
    { "method": "POST", "path": "seen", "handler": "routes/guest.rhai:seen" },
    { "method": "POST", "path": "onward", "handler": "routes/guest.rhai:onward" }
  ] }
}"#;
const GUEST: &str = r#"//! A guest.
fn seen(request) { request.headers }
fn page() { routes::html("<script>alert(1)</script><img src=/metrics>") }
fn file(name) { routes::file(name, #{ asset: true }) }
fn onward(query) { routes::redirect(query.to, 307) }
"#;

fn with_guest() -> (tempfile::TempDir, Own) {
    let dir = folder(&[]);
    save(dir.path(), "user/plugins/guest/plugin.json", MANIFEST);
    save(dir.path(), "user/plugins/guest/routes/guest.rhai", GUEST);
    save(dir.path(), "user/plugins/guest/evil.js", "alert(1)");
    save(dir.path(), "user/plugins/guest/evil.css", "* { display: none }");
    let server = Own::start(dir.path());
    (dir, server)
}

#[test]
fn a_plugin_learns_nothing_of_the_session_and_runs_nothing_in_it() {
    let (_dir, server) = with_guest();
    let person = server.person();
    for method in ["GET", "POST"] {
        let seen = person.send(method, "/api/plugin/guest/seen", &[("X-Other", "1")], "");
        assert_eq!((seen.status, seen.json()["x-other"].clone()), (200, json!("1")), "{seen:?}");
        let text = seen.json().to_string();
        let secret = person.cookie.as_deref().unwrap().split_once('=').unwrap().1;
        for hidden in [secret, person.csrf.as_deref().unwrap(), "cookie", "csrf", "authorization"] {
            assert!(!text.contains(hidden), "{hidden}: {text}");
        }
    }
    let page = person.get("/api/plugin/guest/page");
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("sandbox") && !policy.contains("allow-"),
        "{policy}"
    );
    assert_eq!(page.header("x-frame-options"), Some("DENY"));
    // What such a page could still make a browser send: from nowhere, and refused.
    for (method, path) in [("GET", "/api/tokens"), ("GET", "/api/plugin/guest/seen"), ("POST", "/api/tokens")] {
        let from_it = [("Sec-Fetch-Site", "cross-site"), ("Origin", if method == "GET" { "-" } else { "null" })];
        assert_eq!(person.send(method, path, &from_it, "{}").status, 403, "{method} {path}");
    }
    for destination in ["script", "style", "worker", "serviceworker", "iframe", "object"] {
        for file in ["evil.js", "evil.css"] {
            let path = format!("/api/plugin/guest/file/{file}");
            assert_eq!(person.send("GET", &path, &[("Sec-Fetch-Dest", destination)], "").status, 403, "{destination}");
        }
    }
    for (file, bytes) in [("evil.js", b"alert(1)".as_slice()), ("evil.css", b"* { display: none }")] {
        let reply = person.get(&format!("/api/plugin/guest/file/{file}"));
        assert_eq!((reply.status, reply.body.as_slice()), (200, bytes));
        assert_eq!(
            reply.header("content-type"),
            Some("text/plain; charset=utf-8"),
            "text, where a browser says nothing"
        );
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn a_plugin_does_not_send_a_write_on_in_the_name_of_its_caller() {
    let (_dir, server) = with_guest();
    let person = server.person();
    for (to, status) in [
        ("/api/plugin/guest/seen", 307),
        ("/api/tokens", 500),
        ("/api/plugin/other/seen", 500),
        ("/api/plugin/guest/../../tokens", 500),
        ("/api/plugin/guest/%252e%252e/%252e%252e/tokens", 500),
    ] {
        let reply = person.send("POST", &format!("/api/plugin/guest/onward?to={to}"), &[], "{}");
        assert_eq!(reply.status, status, "{to}: {reply:?}");
        assert_eq!(reply.header("location").is_some(), status == 307, "{to}");
    }
}

#[test]
fn a_plugin_is_not_asked_without_end_and_its_media_may_be() {
    let (_dir, server) = with_guest();
    let person = server.person();
    let answered = |method: &str, path: &str, tries: usize| {
        (0..tries).filter(|_| person.send(method, path, &[], "").status == 200).count()
    };
    assert_eq!(answered("GET", "/api/plugin/guest/seen", 130), 120);
    let slowed = person.get("/api/plugin/guest/page");
    assert_eq!((slowed.status, slowed.retry_after()), (429, 1));
    assert_eq!(answered("POST", "/api/plugin/guest/seen", 70), 60);
    assert_eq!(answered("GET", "/api/plugin/guest/song/evil.js", 200), 200);
    assert_eq!(person.get("/metrics").status, 200);
    server.clock.advance(60_000);
    assert_eq!(answered("GET", "/api/plugin/guest/seen", 130), 120);
}

#[test]
fn every_answer_is_closed_to_what_it_is_not_for() {
    let (_dir, server) = with_guest();
    let person = server.person();
    let evil = [("Host", "evil.example")];
    for reply in [
        server.browser().get("/healthz"),
        server.browser().get("/readyz"),
        server.browser().get("/metrics"),
        server.browser().send("GET", "/", &evil, ""),
        person.get("/metrics"),
        person.get("/nothing"),
        person.get("/api/session"),
        person.get("/api/plugin/guest/page"),
    ] {
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(reply.header(name), Some(value), "{name} of {reply:?}");
        }
        assert!(reply.header("content-security-policy").unwrap().starts_with("default-src 'none'"), "{reply:?}");
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    for page in [server.browser().get("/"), person.get("/api/plugin/guest/page")] {
        assert_eq!(page.header("cross-origin-opener-policy"), Some("same-origin"), "{page:?}");
        assert!(page.header("permissions-policy").unwrap().contains("camera=()"), "{page:?}");
    }
    let page = server.browser().get("/");
    assert_eq!((page.status, page.header("referrer-policy")), (200, Some("same-origin")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self';") && !policy.contains("unsafe"), "{policy}");
    let ready = server.browser().get("/readyz");
    assert_eq!((ready.status, ready.body.as_slice()), (200, b"ready\n".as_slice()));
}

/// The real program with everything that it logs.
fn watched(root: &Path, words: &[&str], set: impl FnOnce(&mut Command)) -> (std::process::Child, String) {
    let mut command = program(root);
    command
        .args(["--log", "trace", "serve", "--addr", "127.0.0.1:0"])
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    set(&mut command);
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("stop:") {
        assert!(out.read_line(&mut said).unwrap() > 0, "the program ended: {said}");
    }
    (child, said)
}

#[cfg(unix)]
#[test]
fn no_secret_is_in_any_log() {
    let dir = folder(&[]);
    Password::of(&Paths::at(dir.path()), Clock::system()).set(PASSWORD).unwrap();
    let (child, greeting) = watched(dir.path(), &[], |_| {});
    let link = greeting.split_whitespace().find(|word| word.contains("#sign-in=")).unwrap();
    let kept = std::fs::read_to_string(dir.path().join("user/webui/token")).unwrap().trim().to_owned();
    assert!(!greeting.contains(&kept), "what is read by a program does not hold the token that stays");
    let address = link.strip_prefix("http://").unwrap().split('/').next().unwrap().parse().unwrap();
    let mut person = Browser::at(address);
    assert_eq!(person.sign_in("code", "wrong-code-wrong-code").status, 401);
    assert_eq!(person.sign_in("code", code(link)).status, 200);
    assert_eq!(person.sign_in("password", "a-wrong-password").status, 401);
    assert_eq!(person.sign_in("password", PASSWORD).status, 200);
    let made = person.write("POST", "/api/tokens", &json!({ "name": "laptop" })).json();
    let token = made["token"].as_str().unwrap().to_owned();
    for shown in [&token, &kept, "wrong-token-wrong-token"] {
        person.send("GET", "/metrics", &[("Authorization", &format!("Bearer {shown}"))], "");
    }
    assert_eq!(
        person.write("PUT", "/api/password", &json!({ "new": "a-new-password", "current": PASSWORD })).status,
        204
    );
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let log = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert!(log.contains("somebody signed in") && log.contains("signing in failed"), "{log}");
    let secret = person.cookie.as_deref().unwrap().split_once('=').unwrap().1.to_owned();
    for hidden in [
        code(link),
        &secret,
        person.csrf.as_deref().unwrap(),
        &token,
        &kept,
        PASSWORD,
        "a-new-password",
        "a-wrong-password",
        "wrong-code-wrong-code",
        "wrong-token-wrong-token",
        "argon2id",
    ] {
        assert!(!log.contains(hidden), "{hidden} is in the log");
    }
    let files = ["sessions.json", "tokens.json", "sign-in.json", "password.json", "hosts.json"];
    for file in files {
        let path = dir.path().join("user/webui").join(file);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(![code(link), &secret, &token, PASSWORD].iter().any(|hidden| text.contains(hidden)), "{file}");
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{file}");
    }
}

#[test]
fn what_a_service_manager_writes_down_holds_no_link() {
    let dir = folder(&[]);
    let (mut child, greeting) = watched(dir.path(), &[], |command| {
        command.env("JOURNAL_STREAM", "8:12345").stderr(Stdio::null());
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!greeting.contains("#sign-in=") && greeting.contains("lapidary sign-in"), "{greeting}");
}

#[cfg(target_os = "linux")]
#[test]
fn the_browser_is_opened_with_a_file_that_nobody_else_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let dir = folder(&[]);
    let bin = tempfile::tempdir().unwrap();
    let (script, told) = (bin.path().join("xdg-open"), bin.path().join("told"));
    let text = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}.new\n/bin/cat \"$1\" >> {0}.new\n/bin/mv {0}.new {0}\n",
        told.display()
    );
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (mut child, greeting) = watched(dir.path(), &["--open"], |command| {
        command.env("PATH", bin.path()).stderr(Stdio::null());
    });
    let start = std::time::Instant::now();
    while !told.exists() {
        assert!(start.elapsed() < PATIENCE, "no browser was opened");
        std::thread::yield_now();
    }
    let told = std::fs::read_to_string(&told).unwrap();
    let (argument, page) = told.split_once('\n').unwrap();
    let link = greeting.split_whitespace().find(|word| word.contains("#sign-in=")).unwrap();
    assert!(argument.ends_with("user/webui/open.html") && !argument.contains(code(link)), "{argument}");
    assert!(page.contains(&format!("url={link}\"")), "{page}");
    let file = dir.path().join("user/webui/open.html");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let killed = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(killed.success() && child.wait().unwrap().success());
    assert!(!file.exists(), "it goes with the host");
    let hosts: Value =
        serde_json::from_slice(&std::fs::read(dir.path().join("user/webui/hosts.json")).unwrap()).unwrap();
    assert_eq!(hosts, json!({ "hosts": [] }));
}
