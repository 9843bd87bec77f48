//! Pictures of the internet through the host's own address, with the real program and a real way out.

use super::http::Server;
use super::mcp::{folder, save};
use super::own::Reply;
use super::servers;
use lapidary::paths::Paths;
use std::io::{Read, Write};

/// Asks with the token.
#[track_caller]
pub fn ask(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let bearer = server.bearer();
    let headers: Vec<_> = headers.iter().copied().chain([("Authorization", bearer.as_str())]).collect();
    plain(server, method, path, &headers, body)
}

/// Asks with these headers and no others.
#[track_caller]
pub fn plain(server: &Server, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let mut stream = server.connect();
    stream.write_all(server.head(method, path, headers, body, "close").as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let reply = Reply::of(&bytes);
    assert_eq!(reply.header("transfer-encoding"), None, "{}", reply.head);
    reply
}

/// The head of a PNG, which is all that tells what a file is.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0";

#[test]
fn a_signed_picture_of_the_internet_is_served_and_kept_and_nothing_else_is() {
    let web = servers::Server::http(|request| match servers::path(request) {
        "/a.png" => servers::answer("200 OK", "content-type: text/html\r\nset-cookie: a=b\r\nx-evil: 1\r\n", PNG),
        "/page" => servers::answer("200 OK", "content-type: image/png\r\n", b"<script>alert(1)</script>"),
        "/vector.svg" => servers::answer("200 OK", "content-type: image/svg+xml\r\n", b"<svg xmlns='x'/>"),
        "/inside" => servers::answer("302 Found", "location: http://127.0.0.1:9/a.png\r\n", b""),
        "/onward" => servers::answer("302 Found", "location: /a.png\r\n", b""),
        "/large" => b"HTTP/1.1 200 OK\r\ncontent-length: 20971521\r\nconnection: close\r\n\r\n\x89PNG".to_vec(),
        _ => servers::answer("404 Not Found", "", b"no"),
    });
    let socks = servers::Server::socks(web.port, None);
    let dir = folder(&[]);
    save(dir.path(), "user/lapidary.toml", &format!("[net]\nproxy = \"socks5h://127.0.0.1:{}\"\n", socks.port));
    let server = Server::start(dir.path());
    let signer = lapidary::service::proxy::Signer::new(Paths::at(dir.path()));
    let signed = |path: &str| signer.sign(&format!("http://pictures.example{path}")).unwrap();

    let picture = ask(&server, "GET", &signed("/a.png"), &[], "");
    assert_eq!((picture.status, picture.body.as_slice()), (200, PNG), "{picture:?}");
    assert_eq!(picture.header("content-type"), Some("image/png"));
    assert_eq!(picture.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(picture.header("cache-control"), Some("private, max-age=3600"));
    assert!(picture.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    assert!(picture.header("set-cookie").is_none() && picture.header("x-evil").is_none());
    let again = ask(&server, "HEAD", &signed("/a.png"), &[], "");
    assert_eq!((again.status, again.body.len()), (200, 0));
    assert_eq!(again.header("content-length"), Some(PNG.len().to_string().as_str()));
    assert_eq!(web.seen().len(), 1, "the second was kept");
    assert_eq!(ask(&server, "GET", &signed("/onward"), &[], "").body, PNG);

    for (path, status) in
        [("/page", 502), ("/vector.svg", 502), ("/none", 502), ("/inside", 403), ("/large", 413), ("/none?x=1", 502)]
    {
        let refused = ask(&server, "GET", &signed(path), &[], "");
        assert_eq!(refused.status, status, "{path} {refused:?}");
        assert_eq!(refused.header("cache-control"), Some("no-store"));
        assert_eq!(refused.header("content-type"), Some("application/json"));
        // Whoever looks at a page is no script.
        let told = String::from_utf8_lossy(&refused.body);
        assert!(told.contains("\"hint\":null") && !told.contains("max_bytes") && !told.contains("images::"), "{told}");
    }
    let asked = web.seen().len();
    for url in ["http://127.0.0.1:1/a.png", "http://printer.lan/a.png", "http://[::1]/a", "http://169.254.169.254/a"] {
        assert_eq!(signer.sign(url).unwrap_err().code(), "permission_denied", "{url}");
    }
    let good = signed("/a.png");
    for (path, status) in [
        (good.replace("a.png", "b.png"), 403),
        (good.replace("&s=", "&s=x"), 403),
        (good.split('&').next().unwrap().to_owned(), 400),
        (format!("{good}&u=http%3A%2F%2Fother.example%2F"), 400),
        ("/api/proxy".to_owned(), 400),
        ("/api/proxy?u=file:///etc/passwd&s=x".to_owned(), 403),
    ] {
        assert_eq!(ask(&server, "GET", &path, &[], "").status, status, "{path}");
    }
    assert_eq!(plain(&server, "GET", &good, &[], "").status, 401);
    assert_eq!(ask(&server, "POST", &good, &[], "").status, 405);
    assert_eq!(web.seen().len(), asked, "what is refused is not asked for");
}
