//! Every function of the script API, called from a script inside a live host: each has a row, each row runs, in both phases;
//! and every example of the documentation runs as it stands there.

use crate::world::World;
use lapidary::app::Watching;
use lapidary::docs::Module;
use lapidary::service::credentials::Source;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;

/// Overloads and a call of each that works alone in a fresh plugin. `module::function/parameters`, `Type.method/parameters`,
/// `Type.property`.
const ROWS: &[(&str, &str)] = &[
    ("attachments::marker/2", r#"attachments::marker("t", [])"#),
    ("base64::decode/1", r#"base64::decode("bGlnaHQ=")"#),
    ("base64::encode/1", r#"base64::encode("light")"#),
    ("cache::get/1", r#"cache::get("k")"#),
    ("cache::get/2", r#"cache::get("k", #{scope: "work"})"#),
    ("cache::get_or/3", r#"cache::get_or("k", 60, || 1)"#),
    ("cache::get_or/4", r#"cache::get_or("k", 60, || 1, #{scope: "work"})"#),
    ("cache::invalidate/1", r#"cache::invalidate("k")"#),
    ("cache::invalidate/2", r#"cache::invalidate("k", #{scope: "work"})"#),
    ("cache::put/3", r#"cache::put("k", 1, 60)"#),
    ("cache::put/4", r#"cache::put("k", 1, 0.5, #{scope: "work"})"#),
    ("chat_state::append/3", r#"caught(|| chat_state::append("none", "k", 1), "not_found")"#),
    ("chat_state::append_many/3", r#"caught(|| chat_state::append_many("none", "k", [1]), "not_found")"#),
    ("chat_state::delete/1", r#"caught(|| chat_state::delete("none"), "not_found")"#),
    ("chat_state::delete/2", r#"caught(|| chat_state::delete("none", "k"), "not_found")"#),
    ("chat_state::get/2", r#"chat_state::get("none", "k")"#),
    ("chat_state::get/3", r#"chat_state::get("none", "k", 1)"#),
    ("chat_state::get_all_chats/1", r#"chat_state::get_all_chats("k")"#),
    ("chat_state::keys/1", r#"chat_state::keys("none")"#),
    ("chat_state::meta/2", r#"chat_state::meta("none", "k")"#),
    ("chat_state::put/3", r#"caught(|| chat_state::put("none", "k", 1), "not_found")"#),
    ("chat_state::read_all/2", r#"chat_state::read_all("none", "k")"#),
    ("chat_state::replace/3", r#"caught(|| chat_state::replace("none", "k", [1]), "not_found")"#),
    ("command::run/2", r#"command::run("true", [])"#),
    ("command::run/3", r#"command::run("true", [], #{timeout: 5})"#),
    ("credentials::account/2", r#"credentials::account("email", "work")"#),
    ("credentials::accounts/1", r#"credentials::accounts("email")"#),
    ("credentials::get/1", r#"credentials::get("weather")"#),
    ("Credentials.account/2", ""),
    ("Credentials.accounts/1", ""),
    ("Credentials.get/1", ""),
    ("db::open/1", r#"db::open("a")"#),
    ("Database.exec/1", r#"db::open("a").exec("CREATE TABLE t (x)")"#),
    ("Database.exec/2", r#"db::open("a").exec("CREATE TABLE t AS SELECT 1 AS x WHERE 0", [])"#),
    ("Database.query/1", r#"db::open("a").query("SELECT 1 AS x")"#),
    ("Database.query/2", r#"db::open("a").query("SELECT ? AS x", [1])"#),
    ("Database.transaction/1", r#"db::open("a").transaction(|tx| 1)"#),
    ("Transaction.exec/1", r#"db::open("a").transaction(|tx| tx.exec("CREATE TABLE t (x)"))"#),
    ("Transaction.exec/2", r#"db::open("a").transaction(|tx| tx.exec("CREATE TABLE t (x)", []))"#),
    ("Transaction.query/1", r#"db::open("a").transaction(|tx| tx.query("SELECT 1 AS x"))"#),
    ("Transaction.query/2", r#"db::open("a").transaction(|tx| tx.query("SELECT ? AS x", [1]))"#),
    ("files::asset/1", r#"files::asset("card.txt")"#),
    ("files::delete/1", r#"files::delete("a.txt")"#),
    ("files::list/0", "files::list()"),
    ("files::list/1", r#"files::list("")"#),
    ("files::read_blob/1", r#"files::read_blob("kept.txt")"#),
    ("files::read_text/1", r#"files::read_text("kept.txt")"#),
    ("files::root/1", r#"files::root("music")"#),
    ("files::stat/1", r#"files::stat("kept.txt")"#),
    ("files::write_blob/2", r#"files::write_blob("a.bin", blob(3))"#),
    ("files::write_text/2", r#"files::write_text("a.txt", "hi")"#),
    ("Folder.delete/1", r#"files::root("music").delete("none")"#),
    ("Folder.list/0", r#"files::root("music").list()"#),
    ("Folder.list/1", r#"files::root("music").list("")"#),
    ("Folder.read_blob/1", r#"files::root("music").read_blob("song.txt")"#),
    ("Folder.read_text/1", r#"files::root("music").read_text("song.txt")"#),
    ("Folder.stat/1", r#"files::root("music").stat("song.txt")"#),
    ("Folder.write_blob/2", r#"files::root("music").write_blob("a.bin", blob(3))"#),
    ("Folder.write_text/2", r#"files::root("music").write_text("a.txt", "hi")"#),
    ("hash::hmac_sha256/2", r#"hash::hmac_sha256("key", "text")"#),
    ("hash::md5/1", r#"hash::md5("text")"#),
    ("hash::sha1/1", r#"hash::sha1("text")"#),
    ("hash::sha256/1", r#"hash::sha256(blob(3))"#),
    ("html::article/1", r#"html::article("<p>x</p>")"#),
    ("html::article/2", r#"html::article("<p>x</p>", #{base: "https://example.org"})"#),
    ("html::links/1", r#"html::links("<a href='/x'>x</a>")"#),
    ("html::links/2", r#"html::links("<a href='/x'>x</a>", "https://example.org")"#),
    ("html::select/2", r#"html::select("<p>x</p>", "p")"#),
    ("html::text/1", r#"html::text("<p>x</p>")"#),
    ("html::to_markdown/1", r#"html::to_markdown("<p>x</p>")"#),
    ("html::to_markdown/2", r#"html::to_markdown("<p>x</p>", #{max_chars: 10})"#),
    ("GalleryBuilder.add/1", r#"images::builder("t").add(#{title: "a"})"#),
    ("GalleryBuilder.finish/0", r#"images::builder("t").finish()"#),
    ("GalleryBuilder.finish/1", r#"images::builder("t").finish(false)"#),
    ("GalleryBuilder.marker/0", r#"images::builder("t").marker()"#),
    ("images::builder/1", r#"images::builder("t")"#),
    ("images::contact_sheet/1", r#"images::contact_sheet([dot()])"#),
    ("images::contact_sheet/2", r#"images::contact_sheet([dot(), dot()], #{cell: 50})"#),
    ("images::for_chat/1", r#"images::for_chat(dot())"#),
    ("images::for_chat/2", r#"images::for_chat(dot(), #{quality: 50})"#),
    ("images::gallery/2", r#"images::gallery("t", [#{raw: dot()}])"#),
    ("images::gallery/3", r#"images::gallery("t", [#{raw: dot()}], false)"#),
    ("images::gallery_marker/2", r#"images::gallery_marker("t", [])"#),
    ("images::proxied/1", r#"images::proxied("https://example.org/a.png")"#),
    ("images::resolve/1", r#"caught(|| images::resolve("img:ab.png"), "not_found")"#),
    ("images::result/1", r#"images::result("t")"#),
    ("images::result/2", r#"images::result("t", [dot()])"#),
    ("images::result/3", r#"images::result("t", dot(), true)"#),
    ("images::stash/1", r#"caught(|| images::stash(dot()), "invalid_arguments")"#),
    ("images::stash/2", r#"caught(|| images::stash(dot(), #{visible: true}), "invalid_arguments")"#),
    ("json::decode/1", r#"json::decode("[1]")"#),
    ("json::encode/1", "json::encode([1])"),
    ("json::encode/2", "json::encode([1], #{pretty: true})"),
    ("log::error/1", r#"log::error("x")"#),
    ("log::error/2", r#"log::error("x", #{n: 1})"#),
    ("log::info/1", r#"log::info("x")"#),
    ("log::info/2", r#"log::info("x", #{n: 1})"#),
    ("log::trace/1", r#"log::trace("x")"#),
    ("log::trace/2", r#"log::trace("x", #{n: 1})"#),
    ("log::warn/1", r#"log::warn("x")"#),
    ("log::warn/2", r#"log::warn("x", #{n: 1})"#),
    ("math::convert/2", r#"math::convert("5 km", "m")"#),
    ("math::convert/3", r#"math::convert("5 km", "miles", #{precision: 3})"#),
    ("math::evaluate/1", r#"math::evaluate("1/3")"#),
    ("math::evaluate/2", r#"math::evaluate("1/3", #{precision: 5})"#),
    ("net::classify/1", r#"net::classify("printer.lan")"#),
    ("net::delete/1", r#"net::delete("http://localhost:8080/echo")"#),
    ("net::delete/2", r#"net::delete("http://localhost:8080/echo", #{timeout: 5})"#),
    ("net::get/1", r#"net::get("http://localhost:8080/echo")"#),
    ("net::get/2", r#"net::get("http://localhost:8080/echo", #{max_bytes: 1000})"#),
    ("net::get_all/1", r#"net::get_all(["http://localhost:8080/echo"])"#),
    ("net::get_all/2", r#"net::get_all(["http://localhost:8080/echo"], #{timeout: 5})"#),
    ("net::head/1", r#"net::head("http://localhost:8080/echo")"#),
    ("net::head/2", r#"net::head("http://localhost:8080/echo", #{headers: #{"X-A": 1}})"#),
    ("net::parse/1", r#"net::parse("https://example.org/x")"#),
    ("net::parse/2", r#"net::parse("y", "https://example.org/x")"#),
    ("net::patch/1", r#"net::patch("http://localhost:8080/echo")"#),
    ("net::patch/2", r#"net::patch("http://localhost:8080/echo", #{data: blob(3)})"#),
    ("net::post/1", r#"net::post("http://localhost:8080/echo")"#),
    ("net::post/2", r#"net::post("http://localhost:8080/echo", #{json: [1]})"#),
    ("net::put/1", r#"net::put("http://localhost:8080/echo")"#),
    ("net::put/2", r#"net::put("http://localhost:8080/echo", #{data: "x"})"#),
    ("net::register_direct_hosts/1", r#"net::register_direct_hosts(["a.example.net"])"#),
    ("net::request/2", r#"net::request("GET", "http://localhost:8080/echo")"#),
    ("net::request/3", r#"net::request("OPTIONS", "http://localhost:8080/echo", #{allow_redirects: true})"#),
    (
        "pdf::text/1",
        r#"pdf::text("%PDF-1.4 1 0 obj<</Pages 2 0 R>>endobj 2 0 obj<</Kids[3 0 R]>>endobj 3 0 obj<</Type/Page>>endobj trailer<</Root 1 0 R>>".to_blob())"#,
    ),
    (
        "pdf::text/2",
        r#"pdf::text("%PDF-1.4 1 0 obj<</Pages 2 0 R>>endobj 2 0 obj<</Kids[3 0 R]>>endobj 3 0 obj<</Type/Page>>endobj trailer<</Root 1 0 R>>".to_blob(), #{pages: 1})"#,
    ),
    ("Response.bytes", r#"net::get("http://localhost:8080/echo").bytes"#),
    ("Response.headers", r#"net::get("http://localhost:8080/echo").headers"#),
    ("Response.json", r#"net::get("http://localhost:8080/echo").json"#),
    ("Response.json/0", r#"net::get("http://localhost:8080/echo").json()"#),
    ("Response.ok", r#"net::get("http://localhost:8080/echo").ok"#),
    ("Response.status", r#"net::get("http://localhost:8080/echo").status"#),
    ("Response.text", r#"net::get("http://localhost:8080/echo").text"#),
    ("Response.text/0", r#"net::get("http://localhost:8080/echo").text()"#),
    ("Response.url", r#"net::get("http://localhost:8080/echo").url"#),
    ("net::session_for/1", r#"net::session_for("http://localhost:8080/")"#),
    ("net::wan_session/0", "net::wan_session()"),
    ("net::with_params/2", r#"net::with_params("https://example.org/x", #{a: 1})"#),
    ("Session.delete/1", r#"net::session_for("http://localhost:8080/").delete("http://localhost:8080/echo")"#),
    ("Session.delete/2", r#"net::session_for("http://localhost:8080/").delete("http://localhost:8080/echo", #{})"#),
    ("Session.get/1", r#"net::session_for("http://localhost:8080/").get("http://localhost:8080/echo")"#),
    ("Session.get/2", r#"net::session_for("http://localhost:8080/").get("http://localhost:8080/echo", #{})"#),
    ("Session.head/1", r#"net::session_for("http://localhost:8080/").head("http://localhost:8080/echo")"#),
    ("Session.head/2", r#"net::session_for("http://localhost:8080/").head("http://localhost:8080/echo", #{})"#),
    ("Session.lane", r#"net::session_for("http://localhost:8080/").lane"#),
    ("Session.patch/1", r#"net::session_for("http://localhost:8080/").patch("http://localhost:8080/echo")"#),
    ("Session.patch/2", r#"net::session_for("http://localhost:8080/").patch("http://localhost:8080/echo", #{})"#),
    ("Session.post/1", r#"net::session_for("http://localhost:8080/").post("http://localhost:8080/echo")"#),
    ("Session.post/2", r#"net::session_for("http://localhost:8080/").post("http://localhost:8080/echo", #{})"#),
    ("Session.profile", "net::wan_session().profile"),
    ("Session.put/1", r#"net::session_for("http://localhost:8080/").put("http://localhost:8080/echo")"#),
    ("Session.put/2", r#"net::session_for("http://localhost:8080/").put("http://localhost:8080/echo", #{})"#),
    ("Session.request/2", r#"net::session_for("http://localhost:8080/").request("GET", "http://localhost:8080/echo")"#),
    (
        "Session.request/3",
        r#"net::session_for("http://localhost:8080/").request("GET", "http://localhost:8080/echo", #{})"#,
    ),
    ("progress::status/1", r#"progress::status("reading")"#),
    ("progress::step/2", "progress::step(1, 3)"),
    ("random::bytes/1", "random::bytes(8)"),
    ("random::float/0", "random::float()"),
    ("random::integer/2", "random::integer(1, 6)"),
    ("random::pick/1", "random::pick([1, 2])"),
    ("random::shuffle/1", "random::shuffle([1, 2])"),
    ("regex::captures/2", r#"regex::captures("(a)", "a")"#),
    ("regex::find/2", r#"regex::find("a", "a")"#),
    ("regex::find_all/2", r#"regex::find_all("a", "a")"#),
    ("regex::is_match/2", r#"regex::is_match("a", "a")"#),
    ("regex::replace/3", r#"regex::replace("a", "a", "b")"#),
    ("regex::split/2", r#"regex::split("a", "bab")"#),
    ("routes::file/1", r#"routes::file("kept.txt")"#),
    ("routes::file/2", r#"routes::file("kept.txt", #{attachment: "a.txt"})"#),
    ("routes::html/1", r#"routes::html("<p>hi")"#),
    ("routes::html/2", r#"routes::html("<p>no", 404)"#),
    ("routes::json/1", "routes::json([1])"),
    ("routes::json/2", "routes::json(#{a: 1}, 201)"),
    ("routes::redirect/1", r#"routes::redirect("/a")"#),
    ("routes::redirect/2", r#"routes::redirect("/a", 302)"#),
    ("routes::text/1", r#"routes::text("hi")"#),
    ("routes::text/2", r#"routes::text("no", 404)"#),
    ("scopes::caller/0", "scopes::caller()"),
    ("scopes::chat/0", "scopes::chat()"),
    ("scopes::get/1", r#"scopes::get("rag")"#),
    ("scopes::is_private/0", "scopes::is_private()"),
    ("scopes::room/0", "scopes::room()"),
    ("settings::all/0", "settings::all()"),
    ("settings::get/1", r#"settings::get("sides")"#),
    ("state::all/0", "state::all()"),
    ("state::clear/0", "state::clear()"),
    ("state::delete/1", r#"state::delete("k")"#),
    ("state::get/1", r#"state::get("k")"#),
    ("state::get/2", r#"state::get("k", 1)"#),
    ("state::save/2", r#"state::save("k", 1)"#),
    ("state::update/3", r#"state::update("k", 0, |n| n + 1)"#),
    ("text::builder/0", "text::builder()"),
    ("text::fuzzy/2", r#"text::fuzzy("a", "b")"#),
    ("text::join/2", r#"text::join(["a", 1], ", ")"#),
    ("text::lines/1", r#"text::lines("a\nb")"#),
    ("text::slug/1", r#"text::slug("A b")"#),
    ("text::truncate/2", r#"text::truncate("abc", 2)"#),
    ("text::words/1", r#"text::words("a b")"#),
    ("text::wrap/2", r#"text::wrap("a b", 1)"#),
    ("TextBuilder.push/1", r#"text::builder().push("a")"#),
    ("TextBuilder.to_string/0", "text::builder().to_string()"),
    ("time::add/2", r#"time::add("2026-01-31", "1 month")"#),
    ("time::convert/2", r#"time::convert("2026-01-31", "Asia/Tokyo")"#),
    ("time::diff/2", r#"time::diff("2026-01-31", "2026-02-01")"#),
    ("time::format/2", r#"time::format("2026-01-31", "%Y")"#),
    ("time::now/0", "time::now()"),
    ("time::now/1", r#"time::now("Asia/Tokyo")"#),
    ("time::parse/1", r#"time::parse("2026-01-31")"#),
    ("time::parse/2", r#"time::parse("2026-01-31", "Asia/Tokyo")"#),
    ("time::sleep/1", "time::sleep(0.001)"),
    ("time::zones/0", "time::zones()"),
    ("tools::categories/0", "tools::categories()"),
    ("tools::in_category/1", r#"tools::in_category("web")"#),
    ("tools::in_category/2", r#"tools::in_category("web", true)"#),
    ("tools::list/0", "tools::list()"),
    ("tools::meta/1", r#"tools::meta("other")"#),
    ("tools::reload_self/0", "tools::reload_self()"),
    ("tools::run/2", r#"tools::run("other", #{})"#),
    ("tools::scope/1", r#"tools::scope("other")"#),
    ("uuid::v4/0", "uuid::v4()"),
    ("uuid::v7/0", "uuid::v7()"),
];

/// What works while a file loads.
const AT_LOAD: &[&str] = &[
    "settings::",
    "log::",
    "json::",
    "base64::",
    "text::",
    "TextBuilder.",
    "regex::",
    "routes::html/",
    "routes::json/",
    "routes::redirect/",
    "routes::text/",
    "html::",
    "net::parse/",
    "net::with_params/",
    "time::add/",
    "time::convert/",
    "time::diff/",
    "time::format/",
    "time::now/",
    "time::parse/",
    "time::zones/",
    "hash::",
    "state::get/",
    "state::all/",
    "cache::get/",
    "chat_state::get/",
    "chat_state::get_all_chats/",
    "chat_state::keys/",
    "chat_state::meta/",
    "chat_state::read_all/",
    "files::list/",
    "files::stat/",
    "files::read_text/",
    "files::asset/",
    "files::root/",
    "Folder.list/",
    "Folder.stat/",
    "Folder.read_text/",
];

/// Asserts as tests have them, a server's permission, and a way to see an expected failure inside an expression.
const PRELUDE: &str = r#"
const PERMISSIONS = ["RUN_COMMANDS", #{EXTERNAL_HTTP: ["localhost"]}, #{USE_SECRETS: ["weather", "email/work"]}];
fn dot() { base64::decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==") }
fn assert(holds, message) { if !holds { throw message; } }
fn assert_eq(got, expected) { if got != expected { throw `expected ${expected}, got ${got}`; } }
fn caught(work, code) { try { work.call(); } catch (e) { if e.code == code { return code; } throw e; } throw "nothing was thrown"; }
"#;

/// A server on this machine: `/greeting?name=..`, `/echo`, `/slow` (which never answers), `/moved` and `/big`.
pub fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut first = String::new();
            reader.read_line(&mut first).unwrap();
            let (mut length, mut note) = (0, String::new());
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap() < 3 {
                    break;
                }
                let (name, value) = line.split_once(':').unwrap();
                match name.to_ascii_lowercase().as_str() {
                    "content-length" => length = value.trim().parse().unwrap(),
                    "x-note" => note = value.trim().to_owned(),
                    _ => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let (method, path) = first.split_once(' ').unwrap();
            let path = path.split(' ').next().unwrap();
            let query = path.split_once("name=").map_or("", |(_, name)| name);
            let body = String::from_utf8_lossy(&body);
            let (status, extra, answer) = match path.split('?').next().unwrap() {
                "/greeting" => ("200 OK", "", json!({"hello": query}).to_string()),
                "/echo" => (
                    "200 OK",
                    "x-two: 1\r\nx-two: 2\r\n",
                    json!({"method": method, "body": body, "note": note}).to_string(),
                ),
                "/moved" => ("302 Found", "location: /greeting?name=moved\r\n", String::new()),
                "/away" => ("302 Found", "location: http://127.0.0.1:9/\r\n", String::new()),
                "/big" => ("200 OK", "", "x".repeat(100_000)),
                "/slow" => {
                    kept.push(stream);
                    continue;
                }
                _ => ("404 Not Found", "", "no such page".to_owned()),
            };
            let kind = "content-type: application/json\r\nconnection: close\r\n";
            let head = format!("HTTP/1.1 {status}\r\n{kind}{extra}content-length: {}\r\n\r\n", answer.len());
            let sent = if method == "HEAD" { head } else { head + answer.as_str() };
            let _ = stream.write_all(sent.as_bytes());
        }
    });
    port
}

/// A host that was started over many small plugins.
pub struct Bench(pub World, #[expect(dead_code, reason = "the credentials go with it")] tempfile::TempDir);

/// What a plugin finds when it is called.
#[derive(Clone, Copy, PartialEq)]
pub enum Given {
    /// The credentials that its rows name, and neither a file nor a folder.
    Nothing,
    /// These, and the files and the granted folder that the rows use.
    Files,
}

impl Bench {
    /// Starts a host over single-file plugins, names and texts, beside a tool `other`. In the texts `localhost:8080` becomes
    /// a server of this test.
    pub fn start(given: Given, plugins: &[(String, String)]) -> Bench {
        let port = server();
        let prepare = |root: &Path| {
            let write = |path: String, text: &str| {
                let path = root.join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            };
            write("music/song.txt".into(), "la la");
            write("user/tools/card.txt".into(), "a card");
            let other = "/// Say that it was called. Use it in tests.\n/// @local\nfn other() { \"called\" }\n";
            write("user/tools/other.rhai".into(), other);
            let mut granted = serde_json::Map::new();
            for (name, text) in plugins {
                write(format!("user/tools/{name}.rhai"), &text.replace("localhost:8080", &format!("localhost:{port}")));
                let mut folders = json!({});
                if given == Given::Files {
                    write(format!("user/plugin_state/{name}_files/kept.txt"), "kept");
                    folders = json!({"music": root.join("music")});
                }
                granted.insert(name.clone(), json!({"granted": ["USE_SECRETS", "RUN_COMMANDS"], "folders": folders}));
            }
            let paths = lapidary::base::paths::Paths::at(root);
            paths.ensure().unwrap();
            std::fs::write(paths.grants_file(), serde_json::Value::from(granted).to_string()).unwrap();
        };
        let kept = json!({ "credentials": {
            "weather": { "value": "weather-key-1234", "hosts": ["localhost"] },
            "email/work": { "fields": { "label": "Work", "password": "pass-5678" }, "public": ["label"] },
        } });
        let store = tempfile::tempdir().unwrap();
        let file = store.path().join("credentials.json");
        lapidary::base::file::write_atomic_private(&file, kept.to_string().as_bytes()).unwrap();
        let world = World::prepared(prepare, |b| b.watching(Watching::Off).credentials(Source::file(file)));
        Bench(world, store)
    }

    /// Calls the tool of that name: its text, or everything that is known about why it failed.
    pub fn call(&self, name: &str) -> Result<String, String> {
        let outcome = self.0.call(name, json!({}));
        if outcome.ok {
            return Ok(outcome.text);
        }
        let status = self.0.host.plugins().status(name);
        let load: String = status.iter().flat_map(|s| &s.diagnostics).map(|d| d.render()).collect();
        let run = outcome.diagnostic.map(|d| d.render()).unwrap_or_default();
        Err(format!("{}\n{run}\n{load}", outcome.text))
    }
}

/// A file whose one tool runs these statements. The helpers of the prelude are no tools: they have no comment.
pub fn tool(name: &str, statements: &str) -> String {
    format!(
        "{PRELUDE}\n/// Run a test. Use it in tests.\n/// @local\n/// @writes\nfn {name}() {{\n{statements}\n\"done\"\n}}\n"
    )
}

/// The rows that can be called, each with the name of a plugin.
fn rows(prefix: &str) -> impl Iterator<Item = (String, &'static str, &'static str)> {
    ROWS.iter()
        .enumerate()
        .filter(|(_, (_, code))| !code.is_empty())
        .map(move |(at, (key, code))| (format!("{prefix}_{at}"), *key, *code))
}

fn keys(modules: &[Module]) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    for module in modules {
        for function in &module.functions {
            keys.extend(
                function.signatures.iter().map(|s| format!("{}::{}/{}", module.name, function.name, s.params.len())),
            );
        }
        for kind in &module.types {
            keys.extend(kind.properties.iter().map(|p| format!("{}.{}", kind.name, p.name)));
            for method in &kind.methods {
                keys.extend(
                    method.signatures.iter().map(|s| format!("{}.{}/{}", kind.name, method.name, s.params.len())),
                );
            }
        }
    }
    keys
}

fn modules() -> Vec<Module> {
    lapidary::host::all().iter().map(Module::of).collect()
}

#[test]
fn every_registered_function_has_a_row() {
    let rows: BTreeSet<String> = ROWS.iter().map(|(key, _)| (*key).to_owned()).collect();
    let there = keys(&modules());
    let missing: Vec<_> = there.difference(&rows).collect();
    let gone: Vec<_> = rows.difference(&there).collect();
    assert!(
        missing.is_empty() && gone.is_empty(),
        "functions without a row: {missing:#?}\nrows without a function: {gone:#?}"
    );
}

#[test]
fn every_function_works_inside_a_tool() {
    let plugins: Vec<_> = rows("row").map(|(name, _, code)| (name.clone(), tool(&name, &format!("{code};")))).collect();
    let bench = Bench::start(Given::Files, &plugins);
    let wrong: Vec<_> =
        rows("row").filter_map(|(name, key, _)| bench.call(&name).err().map(|why| format!("{key}: {why}"))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn while_loading_only_what_reads_works() {
    let text = |name: &str, code: &str| {
        format!(
            "{PRELUDE}\nlet outcome = \"fine\";\ntry {{ {code}; }} catch (e) {{ outcome = `${{e.code}}: ${{e.message}}`; }}\n\
             const OUTCOME = outcome;\n/// Tell. Use it in tests.\n/// @local\nfn {name}() {{ OUTCOME }}\n"
        )
    };
    let plugins: Vec<_> = rows("load").map(|(name, _, code)| (name.clone(), text(&name, code))).collect();
    let bench = Bench::start(Given::Files, &plugins);
    let mut wrong = Vec::new();
    for (name, key, _) in rows("load") {
        let told = bench.call(&name).unwrap_or_else(|why| why);
        let expected = if AT_LOAD.iter().any(|prefix| key.starts_with(prefix)) { "fine" } else { "disabled" };
        let refused = told.contains("is not available while loading");
        if told.split(':').next() != Some(expected) || refused != (expected == "disabled") {
            wrong.push(format!("{key}: {told}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_example_of_the_documentation_runs() {
    let mut plugins = Vec::new();
    for module in modules() {
        for function in module.every_function() {
            let owner = function.receiver.as_deref().unwrap_or(&module.name).to_lowercase();
            for (at, example) in function.examples().iter().enumerate() {
                let name = format!("{owner}_{}_{at}", function.name);
                plugins.push((name.clone(), tool(&name, example)));
            }
        }
    }
    let bench = Bench::start(Given::Nothing, &plugins);
    let wrong: Vec<_> = plugins.iter().filter_map(|(name, _)| bench.call(name).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
