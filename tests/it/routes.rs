//! Routes of plugins, with the real program, real files and real sockets.

use super::http::Server;
use super::mcp::{PATIENCE, folder, save};
use super::own::Reply;
use super::proxied::{ask, plain};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;

const MANIFEST: &str = r#"{
  "name": "songs",
  "capabilities": {
    "settings": [{ "key": "greeting", "default": "hello" }],
    "routes": [
      { "path": "list", "handler": "routes/songs.rhai:list" },
      { "path": "song/{id}", "handler": "routes/songs.rhai:serve", "media": true },
      { "path": "song/latest", "handler": "routes/songs.rhai:latest" },
      { "path": "save/{id}", "handler": "routes/songs.rhai:download" },
      { "path": "asset/{name}", "handler": "routes/songs.rhai:beside" },
      { "method": "POST", "path": "songs", "handler": "routes/songs.rhai:make" },
      { "method": "DELETE", "path": "song/{id}", "handler": "routes/songs.rhai:drop_it" },
      { "path": "go", "handler": "routes/songs.rhai:leave" },
      { "path": "page", "handler": "routes/songs.rhai:page" },
      { "path": "plain", "handler": "routes/songs.rhai:say" },
      { "path": "nothing", "handler": "routes/songs.rhai:nothing" },
      { "path": "fail/{how}", "handler": "routes/songs.rhai:fail" },
      { "path": "seen", "handler": "routes/songs.rhai:seen" },
      { "path": "default", "handler": "routes/default.rhai" }
    ]
  }
}"#;

const SONGS: &str = r#"//! Songs.
fn list(query, settings) { #{ query: query, greeting: settings.greeting } }
fn serve(id) { routes::file(`songs/${id}`) }
fn latest() { "the latest" }
fn download(id, query) { routes::file(`songs/${id}`, #{ attachment: query.name ?? true }) }
fn beside(name) { routes::file(name, #{ asset: true }) }
fn make(body, request) { [#{ got: body, bytes: request.data.len, method: request.method }, 201] }
fn drop_it(id) { routes::json(#{ dropped: id }) }
fn leave(query) { routes::redirect(query.to ?? "/api/plugin/songs/list") }
fn page() { routes::html("<script>alert(1)</script>", 404) }
fn say() { routes::text("hi") }
fn nothing() { }
fn fail(how) {
    switch how {
        "missing" => throw failure(#{ code: "not_found", message: "no such song" }),
        "conflict" => throw failure(#{ code: "conflict", message: "line one\r\nSet-Cookie: a=b" }),
        "text" => throw "it broke",
        "forever" => { loop {} }
        "memory" => { let all = []; loop { all.push(blob(1000000)); } }
        "write" => files::write_text("../outside.txt", "x"),
        "blob" => blob(3),
        "request" => net::get("https://example.org/"),
        _ => { let none = []; none[5] }
    }
}
fn seen(request) { request.headers }
"#;

fn install(root: &Path) {
    save(root, "user/plugins/songs/plugin.json", MANIFEST);
    save(root, "user/plugins/songs/routes/songs.rhai", SONGS);
    save(root, "user/plugins/songs/routes/default.rhai", "fn handle() { `default` }\n");
    save(root, "user/plugins/songs/cover.svg", "<svg xmlns='http://www.w3.org/2000/svg'/>");
    save(root, "user/plugins/songs/.secret", "s");
    save(root, "user/plugin_state/songs_files/songs/a.mp3", "0123456789");
    save(root, "user/plugin_state/songs_files/songs/empty.wav", "");
    save(root, "user/plugin_state/secret.txt", "s");
}

fn start() -> (tempfile::TempDir, Server) {
    let dir = folder(&[]);
    install(dir.path());
    let server = Server::start(dir.path());
    (dir, server)
}

fn get(server: &Server, path: &str) -> Reply {
    ask(server, "GET", &format!("/api/plugin/songs/{path}"), &[], "")
}

#[track_caller]
fn body(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_else(|e| panic!("{e}: {reply:?}"))
}

#[test]
fn a_handler_is_given_what_its_parameters_name_and_its_value_is_the_answer() {
    let (_dir, server) = start();
    let list = get(&server, "list?a=1&b=x%20y&a=2");
    assert_eq!((list.status, list.header("content-type")), (200, Some("application/json")));
    assert_eq!(body(&list), json!({ "query": { "a": "2", "b": "x y" }, "greeting": "hello" }));
    assert_eq!(list.header("cache-control"), Some("no-store"));
    let made = ask(&server, "POST", "/api/plugin/songs/songs", &[], r#"{"title": "ž", "n": 1}"#);
    assert_eq!(made.status, 201);
    assert_eq!(body(&made), json!({ "got": { "title": "ž", "n": 1 }, "bytes": 23, "method": "POST" }));
    for other in ["", "[1]", "{", "text"] {
        assert_eq!(body(&ask(&server, "POST", "/api/plugin/songs/songs", &[], other))["got"], json!({}), "{other}");
    }
    assert_eq!(get(&server, "song/latest").text(), "the latest", "what is written out comes before a parameter");
    assert_eq!(
        body(&ask(&server, "DELETE", "/api/plugin/songs/song/%C5%BE%20x", &[], "")),
        json!({ "dropped": "ž x" })
    );
    assert_eq!((get(&server, "nothing").status, get(&server, "nothing").body.len()), (204, 0));
    assert_eq!(get(&server, "default").text(), "default");
    let text = get(&server, "plain");
    assert_eq!((text.text().as_str(), text.header("content-type")), ("hi", Some("text/plain; charset=utf-8")));
    let page = get(&server, "page");
    assert_eq!((page.status, page.header("content-type")), (404, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("default-src 'none'") && policy.contains("sandbox") && !policy.contains("script"),
        "{policy}"
    );
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    let go = get(&server, "go");
    assert_eq!((go.status, go.header("location")), (303, Some("/api/plugin/songs/list")));
    for to in ["https://evil.example/", "//evil.example", "/%0d%0aset-cookie:a=b", "%5C%5Cevil.example"] {
        let refused = get(&server, &format!("go?to={to}"));
        assert_eq!(
            (refused.status, refused.header("location"), refused.header("set-cookie")),
            (400, None, None),
            "{to}"
        );
    }
    let seen = body(&ask(&server, "GET", "/api/plugin/songs/seen", &[("X-Mine", "1"), ("Cookie", "a=b")], ""));
    assert_eq!(seen["x-mine"], "1");
    assert!(seen.get("authorization").is_none() && seen.get("cookie").is_none(), "{seen}");
}

#[test]
fn a_file_is_sent_whole_in_parts_or_not_at_all() {
    let (_dir, server) = start();
    let at = |method: &str, path: &str, headers: &[(&str, &str)]| {
        ask(&server, method, &format!("/api/plugin/songs/song/{path}"), headers, "")
    };
    let whole = at("GET", "a.mp3", &[]);
    assert_eq!((whole.status, whole.text().as_str()), (200, "0123456789"));
    assert_eq!(whole.header("content-type"), Some("audio/mpeg"));
    assert_eq!(whole.header("accept-ranges"), Some("bytes"));
    assert_eq!(whole.header("cache-control"), Some("private, no-cache"));
    assert_eq!(whole.header("x-content-type-options"), Some("nosniff"));
    let (etag, modified) = (whole.header("etag").unwrap(), whole.header("last-modified").unwrap());
    assert!(modified.ends_with(" GMT"), "{modified}");
    for (range, status, text, place) in [
        ("bytes=0-3", 206, "0123", Some("bytes 0-3/10")),
        ("bytes=7-", 206, "789", Some("bytes 7-9/10")),
        ("bytes=-2", 206, "89", Some("bytes 8-9/10")),
        ("bytes=4-400", 206, "456789", Some("bytes 4-9/10")),
        ("bytes=10-", 416, "", Some("bytes */10")),
        ("bytes=0-1,3-4", 200, "0123456789", None),
        ("bytes=nonsense", 200, "0123456789", None),
    ] {
        let part = at("GET", "a.mp3", &[("Range", range)]);
        assert_eq!((part.status, part.text().as_str(), part.header("content-range")), (status, text, place), "{range}");
    }
    let head = at("HEAD", "a.mp3", &[("Range", "bytes=0-3")]);
    assert_eq!((head.status, head.body.len(), head.header("content-length")), (200, 0, Some("10")));
    for headers in [[("If-None-Match", etag)], [("If-Modified-Since", modified)]] {
        let same = at("GET", "a.mp3", &headers);
        assert_eq!((same.status, same.body.len(), same.header("etag")), (304, 0, Some(etag)), "{headers:?}");
    }
    assert_eq!(at("GET", "a.mp3", &[("Range", "bytes=0-0"), ("If-Range", etag)]).status, 206);
    assert_eq!(at("GET", "a.mp3", &[("Range", "bytes=0-0"), ("If-Range", "\"old\"")]).status, 200);
    assert_eq!((at("GET", "empty.wav", &[]).status, at("GET", "empty.wav", &[]).body.len()), (200, 0));
    assert_eq!(at("GET", "empty.wav", &[("Range", "bytes=0-")]).status, 416);
    let saved = get(&server, "save/a.mp3?name=%C5%BElut%C3%BD.mp3");
    let disposition = saved.header("content-disposition").unwrap();
    assert_eq!(disposition, "attachment; filename=\"_lut_.mp3\"; filename*=UTF-8''%C5%BElut%C3%BD.mp3");
    assert!(get(&server, "save/a.mp3").header("content-disposition").unwrap().contains("filename=\"a.mp3\""));
    let hostile = get(&server, "save/a.mp3?name=a%22%0d%0aSet-Cookie:%20a=b");
    assert_eq!((hostile.status, hostile.header("set-cookie")), (400, None));
    let cover = get(&server, "asset/cover.svg");
    assert_eq!((cover.status, cover.header("content-type")), (200, Some("image/svg+xml")));
    assert!(cover.header("content-security-policy").unwrap().contains("sandbox"));
    assert_eq!(get(&server, "asset/.secret").status, 403);
}

#[test]
fn a_large_file_arrives_whole_and_from_any_place() {
    let (dir, server) = start();
    let large: String = (0..200_000).map(|n| format!("{n:07}")).collect();
    save(dir.path(), "user/plugin_state/songs_files/songs/large.flac", &large);
    let whole = get(&server, "song/large.flac");
    assert!(whole.text() == large, "{} bytes of {}", whole.body.len(), large.len());
    let part = ask(&server, "GET", "/api/plugin/songs/song/large.flac", &[("Range", "bytes=262100-1000000")], "");
    assert!(part.text() == large[262_100..=1_000_000]);
}

#[test]
fn nothing_else_is_at_a_path_that_no_route_has() {
    let (_dir, server) = start();
    for path in [
        "songs/none",
        "songs/list/",
        "songs/",
        "songs",
        "songs//list",
        "songs/song",
        "songs/song/a/b",
        "songs/song/..",
        "songs/song/%2e%2e",
        "songs/song/..%2fa.mp3",
        "songs/song/%2e%2e%2f%2e%2e%2fsecret.txt",
        "songs/song/a%00",
        "songs/song/%0d%0aSet-Cookie:a=b",
        "songs/song/%ff",
        "songs/../songs/list",
        "other/list",
        "Songs/list",
        "native/list",
        "..%2fsongs/list",
    ] {
        let answer = ask(&server, "GET", &format!("/api/plugin/{path}"), &[], "");
        assert_eq!(answer.status, 404, "{path} {answer:?}");
        assert!(answer.header("set-cookie").is_none());
    }
    assert_eq!(get(&server, "song/none.mp3").status, 404);
    for (method, path, allow) in [
        ("POST", "list", "GET, HEAD"),
        ("PUT", "song/a.mp3", "GET, DELETE, HEAD"),
        ("PATCH", "list", "GET, HEAD"),
        ("OPTIONS", "list", "GET, HEAD"),
        ("GET", "songs", "POST"),
        ("HEAD", "songs", "POST"),
        ("TRACE", "list", "GET, HEAD"),
    ] {
        let answer = ask(&server, method, &format!("/api/plugin/songs/{path}"), &[], "");
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{method} {path}");
    }
    for headers in [vec![], vec![("Authorization", "Bearer wrong")]] {
        assert_eq!(plain(&server, "GET", "/api/plugin/songs/list", &headers, "").status, 401);
    }
    let evil = [("Origin", "https://evil.example")];
    assert_eq!(ask(&server, "POST", "/api/plugin/songs/songs", &evil, "{}").status, 403);
}

#[test]
fn a_handler_that_fails_answers_by_its_code_is_counted_and_has_the_limits_of_a_call() {
    let dir = folder(&[]);
    install(dir.path());
    let small = MANIFEST.replacen(
        "\"capabilities\"",
        "\"limits\": { \"operations\": 200000, \"memory_mb\": 8 }, \"capabilities\"",
        1,
    );
    save(dir.path(), "user/plugins/songs/plugin.json", &small);
    let server = Server::start(dir.path());
    let rows = [
        ("missing", 404, "not_found"),
        ("conflict", 409, "conflict"),
        ("text", 500, "internal"),
        ("forever", 500, "quota"),
        ("memory", 500, "quota"),
        ("write", 403, "permission_denied"),
        ("request", 403, "permission_denied"),
        ("blob", 500, "internal"),
        ("other", 500, "internal"),
    ];
    for (how, status, code) in rows {
        let failed = get(&server, &format!("fail/{how}"));
        assert_eq!((failed.status, body(&failed)["error"]["code"].as_str()), (status, Some(code)), "{how} {failed:?}");
        assert!(failed.header("set-cookie").is_none() && !failed.text().contains(&*dir.path().to_string_lossy()));
    }
    assert_eq!(server.metric("lapidary_calls_total"), 9.0);
    assert_eq!(server.metric("lapidary_call_failures_total{code=\"quota\"}"), 2.0);
    assert!(!dir.path().join("user/plugin_state/outside.txt").exists());
    let head = ask(&server, "HEAD", "/api/plugin/songs/fail/missing", &[], "");
    assert_eq!((head.status, head.body.len()), (404, 0));
    assert_eq!(get(&server, "plain").status, 200, "the next request is served");
}

#[test]
fn routes_come_and_go_with_their_generation() {
    let (dir, server) = start();
    let until = |path: &str, fits: &dyn Fn(&Reply) -> bool| {
        let start = Instant::now();
        loop {
            let reply = get(&server, path);
            if fits(&reply) {
                break;
            }
            assert!(start.elapsed() < PATIENCE, "{path}: {reply:?}");
        }
    };
    let file = "user/plugins/songs/routes/default.rhai";
    save(dir.path(), file, "fn handle() { `edited` }\n");
    until("default", &|reply| reply.text() == "edited");
    for broken in ["fn handle( {", "fn other() { 1 }\n", "private fn handle() { 1 }\n", "fn handle(song) { 1 }\n", ""] {
        save(dir.path(), file, broken);
        server.wait_for("lapidary_plugins{state=\"failed\"}", 1.0);
        assert_eq!(get(&server, "default").text(), "edited", "the last good version goes on after {broken:?}");
        save(dir.path(), file, "fn handle() { `edited` }\n");
        server.wait_for("lapidary_plugins{state=\"failed\"}", 0.0);
    }
    save(
        dir.path(),
        "user/plugins/songs/plugin.json",
        &MANIFEST.replace("\"path\": \"default\"", "\"path\": \"renamed\""),
    );
    until("renamed", &|reply| reply.status == 200);
    assert_eq!(get(&server, "default").status, 404);
    save(dir.path(), "user/webui/plugins/songs.json", r#"{"greeting": "ahoy"}"#);
    until("list", &|reply| body(reply)["greeting"] == "ahoy");
    save(dir.path(), "user/webui/plugins.json", r#"{"disabled": ["songs"]}"#);
    until("list", &|reply| reply.status == 404);
    save(dir.path(), "user/webui/plugins.json", r#"{"disabled": []}"#);
    until("list", &|reply| reply.status == 200);
}
