//! The shipped plugins that read and search the web, against real servers.

use crate::servers::{Server, answer, closed_port, path};
use crate::world::World;
use lapidary::service::credentials::Source;
use lapidary::tool::dispatch::{Call, Outcome, Who};
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// One that may read any page, of the local network too.
fn reader() -> World {
    World::shipped(
        &json!({"web": {"granted": ["EXTERNAL_HTTP"]}}),
        &[("web", json!({"local_network": true}))],
        Source::none(),
    )
}

#[track_caller]
fn fails(w: &World, tool: &str, arguments: Value) -> (Outcome, &'static str) {
    let outcome = w.call(tool, arguments);
    assert!(!outcome.ok, "{tool} succeeded: {}", outcome.text);
    let code = outcome.error.as_ref().map_or("", |e| e.code());
    (outcome, code)
}

fn html(body: &str) -> Vec<u8> {
    answer("200 OK", "content-type: text/html; charset=utf-8\r\n", body.as_bytes())
}

fn redirect(to: &str) -> Vec<u8> {
    answer("302 Found", &format!("location: {to}\r\n"), b"")
}

/// A PDF file of two pages, the second packed.
fn pdf() -> Vec<u8> {
    let page = |text: &str| format!("BT /F 12 Tf 72 700 Td ({text}) Tj ET").into_bytes();
    let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&page("Milk, too")).unwrap();
    let packed = packed.finish().unwrap();
    let stream = |entries: &str, bytes: &[u8]| {
        [format!("<< {entries} /Length {} >> stream\n", bytes.len()).as_bytes(), bytes, b"\nendstream"].concat()
    };
    let objects: [Vec<u8>; 8] = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Count 2 /Kids [3 0 R 4 0 R] /Resources << /Font << /F 7 0 R >> >> >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /Contents 5 0 R >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /Contents 6 0 R >>".to_vec(),
        stream("", &page("All about caf\\351s")),
        stream("/Filter /FlateDecode", &packed),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_vec(),
        b"<< /Title (Tea report) >>".to_vec(),
    ];
    let mut out = b"%PDF-1.4\n".to_vec();
    for (at, object) in objects.iter().enumerate() {
        out.extend(format!("{} 0 obj ", at + 1).bytes());
        out.extend(object);
        out.extend(b" endobj\n");
    }
    out.extend(b"trailer << /Root 1 0 R /Info 8 0 R >>");
    out
}

fn site() -> Server {
    let words =
        "<p>Tea is a drink made of leaves, and people have liked it for a long time, in many countries.</p>".repeat(5);
    let page = format!(
        "<html><head><title>Tea | Shop</title></head><body><nav><a href=/>Home</a></nav><main><h1>Tea</h1>{words}\
         <table><tr><th>Name</th><th>Price</th></tr><tr><td>Sencha</td><td>3.50</td></tr></table>\
         <ol><li>boil</li><li>wait, see <a href=../how?a=1&amp;b=2>how</a></li></ol>\
         <pre><code class=language-rust>fn main() {{\n    tea();\n}}</code></pre></main><footer>Imprint</footer></body></html>"
    );
    Server::http(move |request| match path(request) {
        "/shop/tea" => html(&page),
        "/latin" => answer("200 OK", "content-type: text/html; charset=iso-8859-1\r\n", b"<p>Gr\xfcner Tee"),
        "/data" => answer("200 OK", "content-type: application/json\r\n", br#"{"n": 9007199254740993}"#),
        "/report" => answer("200 OK", "content-type: application/octet-stream\r\n", &pdf()),
        "/pot.png" => answer("200 OK", "content-type: image/png\r\n", b"\x89PNG\r\n\x1a\n0123"),
        "/broken.pdf" => answer("200 OK", "content-type: application/pdf\r\n", b"%PDF-1.4 nothing more"),
        "/huge" => {
            let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            packed.write_all(&vec![b'x'; 17_000_000]).unwrap();
            let packed = packed.finish().unwrap();
            answer("200 OK", "content-type: text/plain\r\ncontent-encoding: gzip\r\n", &packed)
        }
        "/vast" => html(&format!("<title>Vast</title>{}", "<p>Tea.".repeat(1_200_000))),
        "/much" => {
            let list = vec![r#"{"name": "tea"}"#; 80_000].join(", ");
            answer("200 OK", "content-type: application/json\r\n", format!("[{list}]").as_bytes())
        }
        hop if hop.starts_with("/hop/") => match hop[5..].parse::<u8>().unwrap() {
            1 => redirect("/shop/tea"),
            n => redirect(&format!("/hop/{}", n - 1)),
        },
        _ => answer("404 Not Found", "content-type: text/html\r\n", b"<h1>No</h1>"),
    })
}

#[test]
fn a_page_of_a_real_server_becomes_its_main_text() {
    let (w, site) = (reader(), site());
    let text = w.text("fetch_url", json!({"url": site.url("/shop/tea")}));
    let whole = format!("[how](http://127.0.0.1:{}/how?a=1&b=2)", site.port);
    for part in
        ["# Tea\n", "| Name | Price |", "| Sencha | 3.50 |", &whole, "```rust\nfn main() {\n    tea();\n}\n```", "boil"]
    {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains("Home") && !text.contains("Imprint"), "{text}");
    let asked = &site.seen()[0];
    assert!(asked.contains("user-agent: Mozilla") && asked.contains("accept: text/html"), "{asked}");
    let links = w.text("fetch_url", json!({"url": site.url("/shop/tea"), "render": "links"}));
    assert!(links.contains("- Home: http://127.0.0.1:"), "{links}");
}

#[test]
fn texts_data_and_documents_are_read_and_the_rest_is_refused_kindly() {
    let (w, site) = (reader(), site());
    let read = |at: &str| w.text("fetch_url", json!({"url": site.url(at)}));
    assert!(read("/latin").ends_with("Grüner Tee"));
    assert!(read("/data").contains("\"n\": 9007199254740993"));
    assert!(read("/much").contains(r#"[{"name": "tea"}, {"name": "tea"}"#));
    let report = read("/report");
    assert!(report.starts_with("# Tea report\n") && report.contains("PDF, 2 pages"), "{report}");
    assert!(report.ends_with("[page 1]\nAll about cafés\n\n[page 2]\nMilk, too"), "{report}");
    for (at, code, part) in [
        ("/pot.png", "invalid_arguments", "a picture (image/png, 12 bytes)"),
        ("/broken.pdf", "invalid_arguments", "the PDF has no list of pages"),
        ("/none", "not_found", "no such page"),
        ("/huge", "too_large", "larger than 16 MB"),
        ("/vast", "too_large", "has 8.4 MB; at most 8 MB"),
    ] {
        let (outcome, got) = fails(&w, "fetch_url", json!({"url": site.url(at)}));
        assert!(got == code && outcome.text.contains(part), "{at}: {}", outcome.text);
    }
}

#[test]
fn five_redirects_are_followed_and_a_sixth_is_not() {
    let (w, site) = (reader(), site());
    let text = w.text("fetch_url", json!({"url": site.url("/hop/5")}));
    assert!(text.contains(&site.url("/shop/tea")), "{text}");
    let (outcome, code) = fails(&w, "fetch_url", json!({"url": site.url("/hop/6")}));
    assert!(code == "upstream_unavailable" && outcome.text.contains("more than 5 times"), "{}", outcome.text);
}

#[test]
fn nothing_is_read_before_the_owner_lets_it_and_a_refusal_says_what_to_type() {
    let site = site();
    let url = site.url("/shop/tea");
    let ask = |w: &World| {
        let (outcome, code) = fails(w, "fetch_url", json!({"url": url}));
        (code, outcome.text)
    };
    let (code, text) = ask(&World::shipped(&json!({}), &[], Source::none()));
    assert!(
        code == "permission_denied" && text.contains("type: lapidary grant web EXTERNAL_HTTP for any host"),
        "{text}"
    );
    let (code, text) = ask(&World::shipped(&json!({"web": {"granted": ["EXTERNAL_HTTP"]}}), &[], Source::none()));
    assert!(code == "disabled" && text.contains("lapidary settings set web local_network true"), "{text}");
    let other = World::shipped(
        &json!({"web": {"hosts": ["example.org"]}}),
        &[("web", json!({"local_network": true}))],
        Source::none(),
    );
    let (code, text) = ask(&other);
    assert!(code == "permission_denied" && text.contains("lapidary grant web EXTERNAL_HTTP=127.0.0.1"), "{text}");
    assert!(site.seen().is_empty());
}

#[test]
fn a_private_chat_reads_and_searches_nothing() {
    let (w, site) = (reader(), site());
    for (tool, arguments) in
        [("fetch_url", json!({"url": site.url("/data")})), ("web_search", json!({"queries": ["tea"]}))]
    {
        let Value::Object(arguments) = arguments else { unreachable!() };
        let who = Who { private: true, ..Who::owner("test").in_chat("diary") };
        let outcome = w.host.call_now(Call::new(tool, arguments, who));
        assert_eq!(outcome.error.map(|e| e.code()), Some("disabled"), "{tool}");
    }
    assert!(site.seen().is_empty());
}

/// A SearXNG that answers `q=fail` with an error of its own.
fn searxng() -> Server {
    Server::http(|request| {
        let asked = path(request);
        let word = asked.split("q=").nth(1).and_then(|rest| rest.split('&').next()).unwrap_or_default().to_owned();
        if word == "fail" {
            return answer("500 Internal Server Error", "content-type: text/plain\r\n", b"boom");
        }
        let results = json!({"results": [
            {"url": format!("https://www.example.org/{word}?utm_source=x"), "title": word, "content": "Of it."},
            {"url": "https://example.org/both/", "title": "Both", "content": "Of all."},
        ]});
        answer("200 OK", "content-type: application/json\r\n", results.to_string().as_bytes())
    })
}

fn searcher(url: &str) -> World {
    World::shipped(&json!({}), &[("web_search", json!({"SEARXNG_URL": url}))], Source::none())
}

#[test]
fn one_query_that_fails_stands_beside_the_results_of_the_others() {
    let server = searxng();
    let w = searcher(&server.url("/"));
    let outcome = w.call("web_search", json!({"queries": ["tea", "fail", "green & black"]}));
    assert!(outcome.ok, "{}", outcome.text);
    let found = outcome.structured.unwrap();
    let shown: Vec<(&str, i64)> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["url"].as_str().unwrap(), item["query_index"].as_i64().unwrap()))
        .collect();
    let expected = [
        ("https://www.example.org/tea", 0),
        ("https://example.org/both/", 0),
        ("https://www.example.org/green+%26+black", 2),
    ];
    assert_eq!(shown, expected);
    assert_eq!(
        found["errors"],
        json!([{"query_index": 1, "code": "upstream_unavailable", "message": "SearXNG answered 500"}])
    );
    assert_eq!((&found["total"], &found["truncated"]), (&json!(3), &json!(false)));
    assert!(server.seen().iter().all(|request| path(request).contains("format=json")));
}

#[test]
fn queries_are_asked_at_the_same_time() {
    // Each answer waits until all three questions are there.
    let gate = Arc::new((Mutex::new(0), Condvar::new()));
    let server = Server::http(move |_| {
        let (count, came) = &*gate;
        let mut count = count.lock().unwrap();
        *count += 1;
        came.notify_all();
        let (count, _) = came.wait_timeout_while(count, Duration::from_secs(15), |count| *count < 3).unwrap();
        let status = if *count < 3 { "500 Alone" } else { "200 OK" };
        answer(status, "content-type: application/json\r\n", br#"{"results": []}"#)
    });
    let outcome = searcher(&server.url("")).call("web_search", json!({"queries": ["a", "b", "c"]}));
    assert!(outcome.ok && outcome.structured.as_ref().unwrap()["errors"] == json!([]), "{}", outcome.text);
}

#[test]
fn a_search_that_cannot_be_made_says_how_to_mend_it() {
    let closed = format!("http://127.0.0.1:{}", closed_port());
    let locked = Server::http(|_| answer("403 Forbidden", "", b""));
    for (url, code, advice) in [
        (closed, "upstream_unavailable", "lapidary settings set web_search SEARXNG_URL"),
        (locked.url(""), "upstream_auth", "`search.formats`"),
        ("http://search.lan".to_owned(), "permission_denied", "lapidary grant web_search EXTERNAL_HTTP=search.lan"),
        (String::new(), "disabled", "lapidary settings set web_search SEARXNG_URL"),
    ] {
        let (outcome, got) = fails(&searcher(&url), "web_search", json!({"queries": ["tea"]}));
        assert!(got == code && outcome.text.contains(advice), "{url}: {}", outcome.text);
        assert!(!outcome.text.contains("\n  at"), "{}", outcome.text);
    }
}
