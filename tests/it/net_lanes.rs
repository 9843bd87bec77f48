//! `net::` as scripts have it, against real servers: lanes, proxies, the address check, limits, sessions, cookies, secrets.
//! Names lead where a test says; nothing leaves this machine.

use crate::servers::{Identity, Server, answer, closed_port, gzip_bomb, header, path};
use crate::world::{World, until};
use lapidary::HostModule;
use lapidary::app::Watching;
use lapidary::net::Names;
use lapidary::script::ctx::Sink;
use lapidary::service::secret::Secret;
use lapidary::tool::dispatch::{Call, CallHandle, Outcome, Who};
use rhai::{Dynamic, FuncRegistration, Module};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};

/// The value behind `keys::get()`.
const VALUE: &str = "pa ss/w0rd+";

/// A host with a network of the test's own.
struct Net {
    world: World,
    /// Every name that was resolved, in order.
    resolved: Arc<Mutex<Vec<String>>>,
}

impl Net {
    /// With this `[net]` and these names; a name has several answers that are given one after the other.
    fn new(settings: &str, names: &[(&str, &[&str])]) -> Net {
        Net::with(settings, names, None, &["EXTERNAL_HTTP"])
    }

    fn with(settings: &str, names: &[(&str, &[&str])], authority: Option<&Identity>, granted: &[&str]) -> Net {
        let table: HashMap<String, Vec<IpAddr>> = names
            .iter()
            .map(|(name, ips)| ((*name).to_owned(), ips.iter().map(|ip| ip.parse().unwrap()).collect()))
            .collect();
        let resolved: Arc<Mutex<Vec<String>>> = Arc::default();
        let asked = resolved.clone();
        let names = Names::by(move |name| {
            let mut asked = asked.lock().unwrap();
            let before = asked.iter().filter(|n| *n == name).count();
            asked.push(name.to_owned());
            let answers = table.get(name).ok_or_else(|| std::io::Error::other("no such name"))?;
            Ok(vec![answers[before.min(answers.len() - 1)]])
        });
        let keys = HostModule::new("keys", "Secrets of tests.", || {
            let mut module = Module::new();
            FuncRegistration::new("get").set_into_module(&mut module, |hosts: rhai::Array| {
                let hosts: Vec<String> = hosts.into_iter().map(|h| h.into_string().unwrap()).collect();
                Dynamic::from(Secret::new("weather", VALUE, &hosts).unwrap())
            });
            module
        });
        let grants = json!({ "probe": { "granted": granted }, "other": { "granted": granted } });
        let world = World::prepared(
            |root| {
                let paths = lapidary::base::paths::Paths::at(root);
                paths.ensure().unwrap();
                std::fs::write(paths.grants_file(), grants.to_string()).unwrap();
                std::fs::write(paths.lapidary_toml(), format!("[net]\n{settings}\n")).unwrap();
                if let Some(authority) = authority {
                    std::fs::write(paths.user().join("ca.pem"), &authority.authority).unwrap();
                }
            },
            |b| b.watching(Watching::Off).names(names).module(keys),
        );
        Net { world, resolved }
    }

    fn load(&self, plugin: &str, statements: &str) {
        let text = format!(
            "const PERMISSIONS = [\"EXTERNAL_HTTP\"];\n/// Try it. Use it in tests.\n/// @local\n/// @writes\n\
             fn {plugin}() {{\n{statements}\n}}\n"
        );
        self.world.tool(plugin, &text);
    }

    /// What statements give.
    #[track_caller]
    fn gives(&self, statements: &str) -> String {
        self.load("probe", statements);
        self.world.text("probe", json!({}))
    }

    /// The code of what statements throw, and the text that a model reads.
    #[track_caller]
    fn throws(&self, statements: &str) -> (&'static str, String) {
        self.load("probe", statements);
        let (code, text) = self.world.fails("probe", json!({}));
        assert!(!text.contains(VALUE) && !text.contains("pa%20ss") && !text.contains("pa+ss"), "{text}");
        (code, text)
    }

    fn names(&self) -> Vec<String> {
        self.resolved.lock().unwrap().clone()
    }
}

/// Says which request it got.
fn echo() -> Server {
    Server::http(|request| {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let told = json!({ "head": head, "body": body, "path": path(request) });
        answer("200 OK", "content-type: application/json\r\n", told.to_string().as_bytes())
    })
}

#[test]
fn a_lane_follows_from_the_text_of_a_host_and_no_name_is_resolved_for_it() {
    let table = [
        (
            "workshop-pi WORKSHOP-PI nas. nas.. localhost LOCALHOST. homeassistant.local printer.lan box.home.arpa",
            "lan",
        ),
        ("192.168.1.5 10.0.0.5 172.16.0.1 172.31.255.255 127.0.0.1 127.255.255.254 0.0.0.0 169.254.1.1", "lan"),
        ("fe80::1 [fe80::1] ::1 [::1] fe80::1%eth0 fd00::1 ::ffff:10.0.0.1 2001:db8::1", "lan"),
        ("2130706433 0x7f000001 017700000001 192.168.001.005 99999999999 089 0 192。168。1。1", "lan"),
        ("example.com EXAMPLE.com. 8.8.8.8 1.1.1.1 172.32.0.1 172.15.0.1 192.169.0.1 100.64.0.1 224.0.0.1", "wan"),
        ("2001:4860:4860::8888 fe80::zz ::ffff:8.8.8.8 64:ff9b::a00:1 2002:a00:1:: ff02::1", "wan"),
        ("notlocal.localx 16843009 0x08080808 127.1 0x7f.0.0.1 evil。com foo.localhost 999.1.1.1 .", "wan"),
        ("http://192.168.1.1@evil.com/", "wan"),
    ];
    let net = Net::new("", &[]);
    for (hosts, lane) in table {
        let hosts: Vec<&str> = hosts.split(' ').collect();
        let told = net.gives(&format!("let out = []; for h in {} {{ out += net::classify(h); }} out", json!(hosts)));
        let told: Vec<String> = serde_json::from_str(&told).unwrap();
        for (host, told) in hosts.iter().zip(&told) {
            assert_eq!(told, lane, "{host}");
        }
    }
    assert_eq!(net.gives("net::classify(\"\")"), "wan");
    let sessions = r#"net::session_for("http://printer/").lane + net::session_for("https://example.org:8080/x").lane
        + net::session_for("http://0x7f000001/").lane + net::wan_session().lane"#;
    assert_eq!(net.gives(sessions), "lanwanlanwan");
    assert_eq!(net.names(), Vec::<String>::new());
}

#[test]
fn a_url_means_the_address_that_parsers_of_urls_read_in_it() {
    let target = echo();
    let net = Net::new("proxy = \"socks5h://127.0.0.1:1\"", &[]);
    for host in ["127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433"] {
        let statements = format!(
            "net::session_for(\"http://{host}:{0}/\").lane + net::get(\"http://{host}:{0}/x\").url",
            target.port
        );
        assert_eq!(net.gives(&statements), format!("lanhttp://127.0.0.1:{}/x", target.port), "{host}");
    }
}

#[test]
fn no_request_of_a_private_chat_goes_beyond_the_local_network() {
    let target = echo();
    let socks = Server::socks(target.port, None);
    let net = Net::new(&format!("proxy = \"socks5h://127.0.0.1:{}\"", socks.port), &[]);
    let ask = |statements: &str| {
        net.load("probe", statements);
        let who = Who { private: true, ..Who::owner("test").in_chat("secret") };
        let outcome = net.world.host.call_now(Call::new("probe", serde_json::Map::new(), who));
        (outcome.error.as_ref().map_or("ok", |e| e.code()), outcome.text)
    };
    assert_eq!(ask(&format!("net::get(\"{}\").json.path", target.url("/lan"))), ("ok", "/lan".to_owned()));
    let (code, text) = ask(r#"net::get("http://shop.example.org/")"#);
    assert_eq!(code, "disabled", "{text}");
    assert!(text.contains("private chat"), "{text}");
    assert_eq!(ask(r#"net::get_all(["http://shop.example.org/"])[0].code"#).1, "disabled");
    assert_eq!(ask(r#"images::for_chat(images::resolve("http://shop.example.org/a.png"))"#).0, "disabled");
    let redirected = Server::http(|_| answer("302 Found", "location: http://shop.example.org/\r\n", b""));
    assert_eq!(ask(&format!("net::get(\"{}\", #{{allow_redirects: true}})", redirected.url("/"))).0, "disabled");
    assert_eq!(socks.seen(), Vec::<String>::new());
    // The same is allowed where nothing is private.
    assert_eq!(net.gives(r#"net::get("http://shop.example.org/").status"#), "200");
}

#[test]
fn the_internet_goes_through_a_socks_proxy_by_name_and_the_local_network_does_not() {
    let target = echo();
    let socks = Server::socks(target.port, None);
    for scheme in ["socks5h", "socks5"] {
        let net = Net::new(&format!("proxy = \"{scheme}://127.0.0.1:{}\"", socks.port), &[]);
        socks.log.lock().unwrap().clear();
        assert_eq!(net.gives(r#"net::get("http://shop.example.org/a?b=1").json.path"#), "/a?b=1");
        assert_eq!(net.gives(r#"net::wan_session().post("http://8.8.8.8:81/x", #{data: "hi"}).json.body"#), "hi");
        assert_eq!(socks.seen(), ["name shop.example.org:80", "address 8.8.8.8:81"], "{scheme}");
        assert_eq!(net.gives(&format!("net::get(\"{}\").json.path", target.url("/lan"))), "/lan");
        assert_eq!(socks.seen().len(), 2);
        assert_eq!(net.names(), Vec::<String>::new(), "{scheme}: no name is resolved here");
    }
}

#[test]
fn a_proxys_login_is_used_and_a_wrong_one_fails_loudly() {
    let target = echo();
    let socks = Server::socks(target.port, Some(("annabel", "p@ss/word")));
    let right = format!(
        "proxy = \"socks5h://127.0.0.1:{}\"\nproxy_user = \"annabel\"\nproxy_password = \"p@ss/word\"",
        socks.port
    );
    assert_eq!(Net::new(&right, &[]).gives(r#"net::get("http://a.example/").status"#), "200");
    for wrong in [right.replace("/word", "/worse"), right.lines().next().unwrap().to_owned()] {
        let (code, text) = Net::new(&wrong, &[]).throws(r#"net::get("http://a.example/")"#);
        assert_eq!(code, "upstream_unavailable", "{text}");
        assert!(text.contains("through the proxy") && !text.contains("p@ss") && !text.contains("annabel"), "{text}");
    }
    let proxy = Server::proxy(target.port, Some("Basic YW5uOnBAc3M="));
    let settings = |login: &str| format!("proxy = \"http://{login}127.0.0.1:{}\"", proxy.port);
    assert_eq!(Net::new(&settings("ann:p%40ss@"), &[]).gives(r#"net::get("http://a.example/x").json.path"#), "/x");
    for address in ["http://a.example/", "https://a.example/"] {
        let (code, text) = Net::new(&settings(""), &[]).throws(&format!("net::get(\"{address}\")"));
        assert_eq!(code, "upstream_unavailable", "{text}");
        assert!(text.contains("through the proxy"), "{text}");
    }
    assert_eq!(target.seen().len(), 2);
}

#[test]
fn an_http_proxy_passes_pages_on_and_tunnels_what_is_encrypted() {
    let identity = Identity::of(&["shop.example.org"]);
    let plain = echo();
    let encrypted = Server::https(&identity, |request| answer("200 OK", "", path(request).as_bytes()));
    for (target, url, first) in [
        (&plain, "http://shop.example.org/a?b=1", "GET http://shop.example.org/a?b=1 HTTP/1.1 by nobody"),
        (&encrypted, "https://shop.example.org/a?b=1", "CONNECT shop.example.org:443 HTTP/1.1 by nobody"),
    ] {
        let proxy = Server::proxy(target.port, None);
        let settings = format!("proxy = \"http://127.0.0.1:{}\"\nextra_ca = \"ca.pem\"", proxy.port);
        let net = Net::with(&settings, &[], Some(&identity), &["EXTERNAL_HTTP"]);
        assert!(net.gives(&format!("net::get(\"{url}\").text")).contains("/a?b=1"));
        assert_eq!(proxy.seen(), [first]);
        assert_eq!(net.names(), Vec::<String>::new());
    }
    let socks = Server::socks(encrypted.port, None);
    let settings = format!("proxy = \"127.0.0.1:{}\"\nextra_ca = \"ca.pem\"", socks.port);
    let net = Net::with(&settings, &[], Some(&identity), &["EXTERNAL_HTTP"]);
    assert_eq!(net.gives(r#"net::get("https://shop.example.org/z").text"#), "/z");
    let (code, text) = net.throws(r#"net::get("https://bank.example.org/")"#);
    assert_eq!(code, "upstream_unavailable", "a certificate for another name: {text}");
}

#[test]
fn a_dead_proxy_fails_loudly_and_nothing_goes_around_it() {
    let target = echo();
    // Where a request went around the proxy, it would arrive here.
    let names: &[(&str, &[&str])] = &[("shop.example.org", &["127.0.0.1"])];
    for scheme in ["socks5h", "socks5", "http", "https"] {
        let net = Net::new(&format!("proxy = \"{scheme}://127.0.0.1:{}\"", closed_port()), names);
        for url in [
            format!("http://shop.example.org:{}/", target.port),
            format!("https://shop.example.org:{}/", target.port),
            "http://203.0.112.7/".to_owned(),
        ] {
            let (code, text) = net.throws(&format!("net::get(\"{url}\")"));
            assert_eq!(code, "upstream_unavailable", "{scheme} {url}: {text}");
            assert!(text.contains("through the proxy") && text.contains("nothing goes around"), "{text}");
        }
        let (code, _) = net.throws(&format!("net::wan_session().get(\"http://shop.example.org:{}/\")", target.port));
        assert_eq!(code, "upstream_unavailable");
        assert_eq!(net.names(), Vec::<String>::new(), "{scheme}");
        assert!(target.seen().is_empty(), "{scheme}");
        assert_eq!(net.gives(&format!("net::get(\"{}\").status", target.url("/"))), "200", "the lan needs no proxy");
        target.log.lock().unwrap().clear();
    }
}

#[test]
fn a_proxys_own_name_is_resolved_wherever_it_leads_and_a_setting_that_cannot_be_read_closes_the_internet() {
    let target = echo();
    let socks = Server::socks(target.port, None);
    let names: &[(&str, &[&str])] = &[("proxy.example.org", &["127.0.0.1"])];
    let net = Net::new(&format!("proxy = \"socks5h://proxy.example.org:{}\"", socks.port), names);
    assert_eq!(net.gives(r#"net::get("http://a.example/").status"#), "200");
    assert_eq!(net.names(), ["proxy.example.org"]);
    for broken in ["proxy = \"socks4://127.0.0.1:1\"", "proxy = 1080", "proxy = \"127.0.0.1:1", "proxy = \"::::\""] {
        let net = Net::new(broken, &[("a.example", &["127.0.0.1"])]);
        let (code, text) = net.throws(r#"net::get("http://a.example/")"#);
        assert_eq!(code, "upstream_unavailable", "{broken}: {text}");
        assert!(text.contains("the internet is closed"), "{text}");
        assert_eq!(net.gives(&format!("net::get(\"{}\").status", target.url("/"))), "200");
        assert_eq!(net.names(), Vec::<String>::new());
    }
}

#[test]
fn a_name_that_leads_inside_when_it_is_connected_to_is_refused_whatever_it_led_to_before() {
    let target = echo();
    let names: &[(&str, &[&str])] =
        &[("rebind.example.org", &["93.184.216.34", "127.0.0.1"]), ("mapped.example.org", &["::ffff:127.0.0.1"])];
    let net = Net::new("", names);
    // Whoever looks first, as a check before the connection would, finds a public address.
    net.resolved.lock().unwrap().push("rebind.example.org".to_owned());
    for name in ["rebind", "mapped"] {
        let url = format!("http://{name}.example.org:{}/", target.port);
        let (code, text) = net.throws(&format!("net::get(\"{url}\")"));
        assert_eq!(code, "permission_denied", "{text}");
        assert!(text.contains("its address is on the local network"), "{text}");
    }
    // The answer that was looked at is the one that would have been connected to: there is no second look.
    assert_eq!(net.names(), ["rebind.example.org", "rebind.example.org", "mapped.example.org"]);
    assert!(target.seen().is_empty());
}

#[test]
fn an_address_is_refused_however_it_is_written() {
    let net = Net::new("", &[]);
    for host in [
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "025177524776",
        "0xa9.0xfe.0xa9.0xfe",
        "169.254.43518",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "[fd00:ec2::254]",
        "100.100.100.200",
        "224.0.0.1",
    ] {
        let (code, text) = net.throws(&format!("net::get(\"http://{host}/latest/meta-data\")"));
        assert_eq!(code, "permission_denied", "{host}: {text}");
    }
    assert_eq!(net.names(), Vec::<String>::new());
}

#[test]
fn a_redirect_from_the_internet_into_the_local_network_is_refused() {
    let inside = echo();
    let port = inside.port;
    let outside = Server::http(move |request| match path(request) {
        "/by-number" => answer("302 Found", &format!("location: http://127.0.0.1:{port}/\r\n"), b""),
        "/by-hex" => answer("302 Found", &format!("location: http://0x7f000001:{port}/\r\n"), b""),
        "/by-name" => answer("302 Found", &format!("location: http://localhost:{port}/\r\n"), b""),
        "/by-label" => answer("307 Again", &format!("location: //nas:{port}/\r\n"), b""),
        "/on" => answer("302 Found", "location: /end\r\n", b""),
        _ => answer("200 OK", "", b"the end"),
    });
    let socks = Server::socks(outside.port, None);
    let net = Net::new(&format!("proxy = \"socks5h://127.0.0.1:{}\"", socks.port), &[("nas", &["127.0.0.1"])]);
    for path in ["/by-number", "/by-hex", "/by-name", "/by-label"] {
        let (code, text) = net.throws(&format!("net::get(\"http://shop.example.org{path}\")"));
        assert_eq!(code, "permission_denied", "{text}");
        assert!(text.contains("redirects into the local network"), "{text}");
    }
    assert!(inside.seen().is_empty());
    assert_eq!(net.gives(r#"net::get("http://shop.example.org/on").text"#), "the end");
    assert_eq!(net.gives(r#"net::get("http://shop.example.org/on", #{allow_redirects: false}).status"#), "302");
}

#[test]
fn a_local_hosts_redirect_is_the_answer_unless_it_may_be_followed() {
    let server = Server::http(|request| match path(request) {
        "/on" => answer("302 Found", "location: /end\r\n", b""),
        "/out" => answer("302 Found", "location: http://shop.example.org/end\r\n", b""),
        _ => answer("200 OK", "", b"the end"),
    });
    let socks = Server::socks(server.port, None);
    let net = Net::new(&format!("proxy = \"socks5h://127.0.0.1:{}\"", socks.port), &[]);
    let on = server.url("/on");
    assert_eq!(net.gives(&format!("let a = net::get(\"{on}\"); `${{a.status}} ${{a.headers.location}}`")), "302 /end");
    assert_eq!(net.gives(&format!("net::get(\"{on}\", #{{allow_redirects: true}}).text")), "the end");
    assert!(socks.seen().is_empty());
    // A hop onto the other lane takes that lane's way, and a session does not change lanes.
    let out = server.url("/out");
    assert_eq!(
        net.gives(&format!("net::get(\"{out}\", #{{allow_redirects: true}}).url")),
        "http://shop.example.org/end"
    );
    assert_eq!(socks.seen(), ["name shop.example.org:80"]);
    let session = format!("net::session_for(\"{out}\").get(\"{out}\", #{{allow_redirects: true}})");
    assert_eq!(net.throws(&session).0, "invalid_arguments");
    let code = net.throws(&format!("net::session_for(\"{out}\").get(\"http://shop.example.org/\")")).0;
    assert_eq!(code, "invalid_arguments");
    assert_eq!(net.throws(&format!("net::wan_session().get(\"{out}\")")).0, "invalid_arguments");
    assert_eq!(socks.seen().len(), 1);
}

#[test]
fn tls_trusts_the_authority_of_the_settings_and_no_other() {
    let identity = Identity::of(&["localhost", "127.0.0.1"]);
    let server = Server::https(&identity, |_| answer("200 OK", "", b"private"));
    let url = format!("https://localhost:{}/", server.port);
    let names: &[(&str, &[&str])] = &[("localhost", &["127.0.0.1"])];
    let trusting = Net::with("extra_ca = \"ca.pem\"", names, Some(&identity), &["EXTERNAL_HTTP"]);
    assert_eq!(trusting.gives(&format!("net::get(\"{url}\").text")), "private");
    assert_eq!(trusting.gives(&format!("net::get(\"{}\").text", url.replace("localhost", "127.0.0.1"))), "private");
    let strangers = Identity::of(&["localhost"]);
    for net in [
        Net::new("", names),
        Net::with("extra_ca = \"ca.pem\"", names, Some(&strangers), &["EXTERNAL_HTTP"]),
        Net::new("extra_ca = \"gone.pem\"", names),
    ] {
        let (code, text) = net.throws(&format!("net::get(\"{url}\")"));
        assert_eq!(code, "upstream_unavailable", "{text}");
    }
}

#[test]
fn a_small_answer_that_unpacks_to_a_large_one_is_cut_off() {
    let bomb = gzip_bomb(200 << 20);
    assert!(bomb.len() < 2 << 20);
    let server = Server::http(move |_| answer("200 OK", "content-encoding: gzip\r\n", &bomb));
    let net = Net::new("", &[]);
    for opts in ["#{}", "#{max_bytes: 100000}"] {
        let (code, text) = net.throws(&format!("net::get(\"{}\", {opts})", server.url("/")));
        assert_eq!(code, "too_large", "{text}");
    }
}

#[test]
fn a_body_that_stalls_meets_the_timeout_the_deadline_or_a_cancel() {
    let server = Server::stalling(b"half a wor");
    let net = Net::new("", &[]);
    let url = server.url("/");
    let (code, text) = net.throws(&format!("net::get(\"{url}\", #{{timeout: 0.2}})"));
    assert_eq!(code, "timeout", "{text}");
    assert!(text.contains("within 0.2 s"), "{text}");
    // The call's own deadline, where the request's is later.
    let text = format!(
        "const PERMISSIONS = [\"EXTERNAL_HTTP\"];\n/// Wait. Use it in tests.\n/// @local\n/// @timeout 1\n\
         fn other() {{ net::get(\"{url}\", #{{timeout: 600}}).text }}\n"
    );
    net.world.tool("other", &text);
    let (code, text) = net.world.fails("other", json!({}));
    assert_eq!(code, "timeout", "{text}");
    assert!(text.contains("deadline of 1 s"), "{text}");
    // A cancel, once the server has the request.
    server.log.lock().unwrap().clear();
    net.load("probe", &format!("net::get(\"{url}\", #{{timeout: 600}}).text"));
    let outcome = cancelled(&net, || !server.seen().is_empty());
    assert_eq!(outcome.error.map(|e| e.code()), Some("cancelled"));
    net.load("probe", &format!("net::get_all([\"{url}\", \"{url}\"], #{{timeout: 600}}).len()"));
    let outcome = cancelled(&net, || server.seen().len() >= 3);
    assert_eq!(outcome.error.map(|e| e.code()), Some("cancelled"));
}

/// Calls `probe` and cancels once `when` holds.
fn cancelled(net: &Net, when: impl FnMut() -> bool) -> Outcome {
    struct Silent;
    impl Sink for Silent {}
    let handle = Arc::new(CallHandle::default());
    let mut call = Call::new("probe", serde_json::Map::new(), Who::owner("test"));
    call.sink = Arc::new(Silent);
    call.handle = Some(handle.clone());
    let host = net.world.host.clone();
    let running = std::thread::spawn(move || host.call_now(call));
    until("the request arrived", when);
    handle.cancel();
    running.join().unwrap()
}

#[test]
fn many_are_asked_at_once_and_answered_in_order_each_in_its_place() {
    // Nobody is answered before eight are there, and there are never more.
    let (barrier, here, most) =
        (Arc::new(Barrier::new(8)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen_most = most.clone();
    let server = Server::http(move |request| {
        most.fetch_max(here.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        barrier.wait();
        here.fetch_sub(1, Ordering::SeqCst);
        answer("200 OK", "", path(request).as_bytes())
    });
    let urls: Vec<String> = (0..16).map(|at| server.url(&format!("/{at}"))).collect();
    let net = Net::new("", &[]);
    let told = net.gives(&format!("net::get_all({}).map(|a| a.text)", json!(urls)));
    let expected: Vec<String> = (0..16).map(|at| format!("/{at}")).collect();
    assert_eq!(serde_json::from_str::<Vec<String>>(&told).unwrap(), expected);
    assert!(seen_most.load(Ordering::SeqCst) <= 8);

    let server = echo();
    let gone = format!("http://127.0.0.1:{}/", closed_port());
    let mixed = json!([server.url("/a"), "nonsense", 7, gone, "http://169.254.169.254/", server.url("/b")]);
    let told = net.gives(&format!(
        "net::get_all({mixed}, #{{params: #{{q: 1}}}}).map(|a| if a.ok == true {{ a.json.path }} else {{ a.code }})"
    ));
    assert_eq!(
        serde_json::from_str::<Value>(&told).unwrap(),
        json!([
            "/a?q=1",
            "invalid_arguments",
            "invalid_arguments",
            "upstream_unavailable",
            "permission_denied",
            "/b?q=1"
        ])
    );
    assert_eq!(net.gives("net::get_all([]).len()"), "0");
    assert_eq!(net.throws("net::get_all([], #{tiemout: 1})").0, "invalid_arguments");
}

#[test]
fn many_answers_share_what_the_call_may_hold() {
    let server = Server::http(|_| answer("200 OK", "", &vec![b'x'; 4 << 20]));
    let net = Net::new("", &[]);
    let urls: Vec<String> = (0..12).map(|_| server.url("/")).collect();
    // Half of 64 MiB is room for seven or eight of them, and the rest say so.
    let told = net.gives(&format!(
        "let n = 0; let codes = []; for a in net::get_all({}) {{ if a.ok == true {{ n += 1; }} else {{ codes += a.code; }} }}
         codes.dedup(); `${{n}} ${{codes}}`",
        json!(urls)
    ));
    let count: usize = told.split(' ').next().unwrap().parse().unwrap();
    assert!((1..=8).contains(&count), "{told}");
    assert!(told.ends_with("[\"too_large\"]"), "{told}");
}

#[test]
fn what_many_requests_send_together_counts_before_it_is_copied() {
    let server = Server::http(|request| answer("200 OK", "", request.len().to_string().as_bytes()));
    let net = Net::new("", &[]);
    let urls: Vec<String> = (0..1000).map(|_| server.url("/")).collect();
    let (code, text) = net.throws(&format!("net::get_all({}, #{{data: blob(8000000)}})", json!(urls)));
    assert_eq!(code, "quota", "{text}");
    assert!(server.seen().is_empty());
    let few = json!(&urls[..2]);
    assert_eq!(net.gives(&format!("net::get_all({few}, #{{data: blob(1000000), max_bytes: 1000}}).len()")), "2");
    let (code, _) =
        net.throws(&format!("let urls = []; urls.pad(1001, {}); net::get_all(urls)", json!(server.url("/"))));
    assert_eq!(code, "invalid_arguments");
}

#[test]
fn cookies_stay_in_the_jar_of_a_profile_and_a_plugin() {
    let server = Server::http(|request| {
        let sent = header(request, "cookie").unwrap_or("none");
        answer("200 OK", &format!("set-cookie: seen={}; Path=/\r\n", path(request).trim_matches('/')), sent.as_bytes())
    });
    let net = Net::new("", &[]);
    let get = |path: &str, opts: &str| format!("net::get(\"{}\", {opts}).text", server.url(path));
    for (path, opts, sent) in [
        ("/1", "#{}", "none"),
        ("/2", "#{}", "none"),
        ("/3", "#{profile: \"browser\"}", "none"),
        ("/4", "#{profile: \"browser\"}", "seen=3"),
        ("/5", "#{profile: \"browser:work\"}", "none"),
        ("/6", "#{profile: \"browser:work\", headers: #{Cookie: \"own=1\"}}", "own=1; seen=5"),
        ("/7", "#{profile: \"plain\", headers: #{Cookie: \"own=1\"}}", "own=1"),
        ("/8", "#{profile: \"browser\"}", "seen=4"),
    ] {
        assert_eq!(net.gives(&get(path, opts)), sent, "{path}");
    }
    net.load("other", &get("/9", "#{profile: \"browser\"}"));
    assert_eq!(net.world.text("other", json!({})), "none");
    assert_eq!(net.throws(&get("/", "#{profile: \"brwser\"}")).0, "invalid_arguments");
    assert!(header(&server.seen()[2], "user-agent").unwrap().starts_with("Mozilla/5.0"));
    assert!(header(&server.seen()[0], "user-agent").unwrap().starts_with("lapidary/"));
}

#[test]
fn a_form_with_files_a_login_and_a_token_arrive() {
    let server = echo();
    let net = Net::new("", &[]);
    let post =
        |opts: &str| format!("let a = net::post(\"{}\", {opts}).json; a.head + \"\\n\\n\" + a.body", server.url("/"));
    let form = net.gives(&post(
        r##"#{data: #{title: "Tea", tag: ["a", "b"]}, files: #{
            note: "just text", photo: ["cup.jpg", "JPG".to_blob(), "image/jpeg"], many: [#{data: "1", name: "1.txt"}, #{data: "2", type: "text/css"}]}}"##,
    ));
    for part in [
        "content-type: multipart/form-data; boundary=lapidary-",
        "form-data; name=\"title\"\r\n\r\nTea\r\n",
        "form-data; name=\"tag\"\r\n\r\na\r\n",
        "form-data; name=\"tag\"\r\n\r\nb\r\n",
        "name=\"note\"; filename=\"note\"\r\nContent-Type: application/octet-stream\r\n\r\njust text\r\n",
        "name=\"photo\"; filename=\"cup.jpg\"\r\nContent-Type: image/jpeg\r\n\r\nJPG\r\n",
        "name=\"many\"; filename=\"1.txt\"",
        "name=\"many\"; filename=\"many\"\r\nContent-Type: text/css\r\n\r\n2\r\n",
    ] {
        assert!(form.contains(part), "{part}\n---\n{form}");
    }
    assert!(net.gives(&post(r#"#{auth: ["ann", "p:w"]}"#)).contains("authorization: Basic YW5uOnA6dw=="));
    assert!(net.gives(&post(r#"#{auth: "t0ken"}"#)).contains("authorization: Bearer t0ken"));
    for wrong in [
        r#"#{auth: ["a:b", "c"]}"#,
        r#"#{auth: ["a"]}"#,
        r#"#{auth: 1}"#,
        r#"#{auth: "t", headers: #{Authorization: "x"}}"#,
        r#"#{headers: #{"Proxy-Authorization": "x"}}"#,
        r#"#{files: #{a: "x"}, json: 1}"#,
        r#"#{files: #{a: "x"}, data: "text"}"#,
        r#"#{files: #{a: 1}}"#,
        r#"#{files: #{a: []}}"#,
        r#"#{files: #{a: #{name: "x"}}}"#,
        r#"#{files: #{a: #{data: "x", nome: "x"}}}"#,
        r#"#{files: #{a: "x"}, headers: #{"Content-Type": "text/plain"}}"#,
        r#"#{timout: 3}"#,
        r#"#{data: keys::get([])}"#,
    ] {
        let (code, text) = net.throws(&post(wrong));
        assert_eq!(code, "invalid_arguments", "{wrong}: {text}");
    }
}

#[test]
fn a_secret_arrives_where_its_credential_says_and_comes_back_as_stars() {
    let server = Server::http(|request| {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        let answered =
            format!("x-echo: {}\r\nlocation: {}\r\n", header(request, "x-key").unwrap_or("-"), path(request));
        answer("200 OK", &answered, format!("{head}\n{body}").as_bytes())
    });
    let net = Net::new("", &[]);
    let opts = [
        ("#{headers: #{\"X-Key\": k}}", "x-key: pa ss/w0rd+"),
        ("#{params: #{key: k, q: \"tea\"}}", "/?key=pa+ss%2Fw0rd%2B&q=tea"),
        ("#{auth: k}", "authorization: Bearer pa ss/w0rd+"),
        ("#{auth: [\"ann\", k]}", "authorization: Basic YW5uOnBhIHNzL3cwcmQr"),
        ("#{json: #{login: #{user: \"ann\", keys: [k]}}}", "{\"login\":{\"keys\":[\"pa ss/w0rd+\"],\"user\":\"ann\"}}"),
        ("#{data: #{key: k}}", "key=pa+ss%2Fw0rd%2B"),
        ("#{data: #{key: k}, files: #{f: \"x\"}}", "name=\"key\"\r\n\r\npa ss/w0rd+\r\n"),
    ];
    for (opts, arrived) in opts {
        server.log.lock().unwrap().clear();
        let told = net.gives(&format!(
            "let k = keys::get([\"127.0.0.1\"]); let a = net::post(\"{}\", {opts}); `${{a.url}}\n${{a.headers}}\n${{a.text}}`",
            server.url("/")
        ));
        let seen = server.seen();
        assert!(seen[0].contains(arrived), "{opts}: {}", seen[0]);
        for trace in [VALUE, "pa+ss", "pa%20ss", "YW5uOnBh", "w0rd"] {
            assert!(!told.contains(trace), "{opts} shows {trace}: {told}");
        }
        assert!(told.contains("***"), "{opts}: {told}");
    }
}

#[test]
fn a_secret_goes_nowhere_else_neither_at_first_nor_by_a_redirect_nor_in_the_clear() {
    let elsewhere = echo();
    let port = elsewhere.port;
    let first = Server::http(move |_| answer("307 Again", &format!("location: http://nas.lan:{port}/\r\n"), b""));
    let socks = Server::socks(elsewhere.port, None);
    let names: &[(&str, &[&str])] = &[("nas.lan", &["127.0.0.1"])];
    let net = Net::new(&format!("proxy = \"127.0.0.1:{}\"", socks.port), names);
    for (hosts, url) in [
        ("[]", first.url("/")),
        ("[\"nas.lan\"]", first.url("/")),
        ("[\"127.0.0.1\"]", first.url("/")),
        ("[\"*.example.org\"]", "https://example.org/".to_owned()),
        // The right host, but in the clear over the internet.
        ("[\"api.example.org\"]", "http://api.example.org/".to_owned()),
    ] {
        for opts in ["headers: #{\"X-Key\": k}", "params: #{key: k}", "auth: k", "json: [k]", "data: #{key: k}"] {
            let call = format!("let k = keys::get({hosts}); net::post(\"{url}\", #{{{opts}, allow_redirects: true}})");
            let (code, text) = net.throws(&call);
            assert_eq!(code, "permission_denied", "{hosts} {url} {opts}: {text}");
            assert!(text.contains("`weather`"), "{text}");
        }
    }
    assert!(elsewhere.seen().is_empty() && socks.seen().is_empty());
    // Both hosts are the credential's, so the hop is made; what was in a header stays with the first.
    let told = net.gives(&format!(
        "let k = keys::get([\"127.0.0.1\", \"nas.lan\"]); \
         net::post(\"{}\", #{{auth: k, allow_redirects: true}}).json.head.contains(\"authorization\")",
        first.url("/")
    ));
    assert_eq!(told, "false");
    assert_eq!(elsewhere.seen().len(), 1);
}

#[test]
fn a_registered_host_is_local_for_its_plugin_its_generation_and_where_the_owner_agrees() {
    let server = echo();
    let socks = Server::socks(server.port, None);
    let settings = format!("proxy = \"127.0.0.1:{}\"", socks.port);
    let names: &[(&str, &[&str])] = &[("ha.my-house.example", &["127.0.0.1"])];
    let url = format!("http://ha.my-house.example:{}/", server.port);
    let net = Net::new(&settings, names);
    let classify = "net::classify(\"HA.my-house.example.\")";
    assert_eq!(net.gives(classify), "wan");
    for form in ["[\"ha.my-house.example\", ()]", "\"ha.my-house.example\""] {
        let direct = format!("net::register_direct_hosts({form}); `${{net::get(\"{url}\").status}} ${{{classify}}}`");
        assert_eq!(net.gives(&direct), "200 lan");
    }
    assert!(socks.seen().is_empty(), "it went straight");
    net.load("other", classify);
    assert_eq!(net.world.text("other", json!({})), "wan");
    // The generation that registered it is gone.
    assert_eq!(net.gives(classify), "wan");
    assert_eq!(net.gives(&format!("net::get(\"{url}\").status")), "200");
    assert_eq!(socks.seen().len(), 1);

    // By a function, which is asked at once.
    let by_name = format!(
        "const PERMISSIONS = [\"EXTERNAL_HTTP\"];\nfn houses() {{ [\"ha.my-house.example\"] }}\nfn angry() {{ throw \"no\" }}\n\
         /// Go. Use it in tests.\n/// @local\n/// @param {{string}} name - The name.\nfn probe(name) {{ net::register_direct_hosts(name); {classify} }}\n"
    );
    net.world.tool("probe", &by_name);
    assert_eq!(net.world.text("probe", json!({ "name": "houses" })), "lan");
    assert!(!net.world.call("probe", json!({ "name": "angry" })).ok);
    assert!(!net.world.call("probe", json!({ "name": "no_such" })).ok);
    assert_eq!(net.throws("net::register_direct_hosts([\"*.example.org\"])").0, "invalid_arguments");
    assert_eq!(net.throws("net::register_direct_hosts(|| [])").0, "invalid_arguments");
    assert_eq!(net.throws("net::register_direct_hosts(7)").0, "invalid_arguments");

    // A plugin's own list of hosts is not the owner's word.
    let listed = format!(
        "const PERMISSIONS = [#{{EXTERNAL_HTTP: [\"ha.my-house.example\"]}}];\n/// Go. Use it in tests.\n/// @local\n\
         fn probe() {{ net::register_direct_hosts(\"ha.my-house.example\"); net::get(\"{url}\").status }}\n"
    );
    let careful = Net::with(&settings, names, None, &[]);
    careful.world.tool("probe", &listed);
    let (code, text) = careful.world.fails("probe", json!({}));
    assert_eq!(code, "permission_denied");
    assert!(text.contains("lapidary grant probe EXTERNAL_HTTP=ha.my-house.example"), "{text}");
    assert_eq!(careful.names(), Vec::<String>::new());
}

/// Run it with `--nocapture` to look at the lanes.
#[test]
fn the_lanes_as_a_table() {
    let identity = Identity::of(&["shop.example.org"]);
    let (inside, tls) = (echo(), Server::https(&identity, |_| answer("200 OK", "", b"bought")));
    let port = inside.port;
    let outside = Server::http(move |request| match path(request) {
        "/in" => answer("302 Found", &format!("location: http://127.0.0.1:{port}/\r\n"), b""),
        _ => answer("200 OK", "", b"fine"),
    });
    let (socks, tunnel) = (Server::socks(outside.port, None), Server::proxy(tls.port, None));
    let (by_socks, by_tunnel, dead) = (
        format!("proxy = \"socks5h://127.0.0.1:{}\"", socks.port),
        format!("proxy = \"http://127.0.0.1:{}\"\nextra_ca = \"ca.pem\"", tunnel.port),
        format!("proxy = \"socks5h://127.0.0.1:{}\"", closed_port()),
    );
    let rebind = format!("http://rebind.example.org:{port}/");
    let local = inside.url("/");
    let rows: [(&str, &str, &str, &str); 10] = [
        ("off", "", &local, "200"),
        ("off", "", &rebind, "permission_denied"),
        ("off", "", "http://2852039166/latest", "permission_denied"),
        ("SOCKS5", &by_socks, &local, "200"),
        ("SOCKS5", &by_socks, "http://shop.example.org/", "200"),
        ("SOCKS5", &by_socks, "http://shop.example.org/in", "permission_denied"),
        ("HTTP", &by_tunnel, "https://shop.example.org/", "200"),
        ("dead", &dead, &local, "200"),
        ("dead", &dead, "http://shop.example.org/", "upstream_unavailable"),
        ("dead", &dead, &rebind, "upstream_unavailable"),
    ];
    let mut table = String::from("\nproxy  | lane | resolved here | arrived inside | address and outcome\n");
    for (proxy, settings, url, expected) in rows {
        inside.log.lock().unwrap().clear();
        let names: &[(&str, &[&str])] = &[("rebind.example.org", &["127.0.0.1"])];
        let net = Net::with(settings, names, Some(&identity), &["EXTERNAL_HTTP"]);
        let told = net.gives(&format!(
            "let lane = net::session_for(\"{url}\").lane;
             let out = ();
             try {{ out = `${{lane}}|${{net::get(\"{url}\").status}}|`; }} catch (e) {{ out = `${{lane}}|${{e.code}}|${{e.message}}`; }}
             out"
        ));
        let mut told = told.splitn(3, '|');
        let (lane, outcome, why) = (told.next().unwrap(), told.next().unwrap(), told.next().unwrap());
        let (resolved, arrived) = (net.names().len(), inside.seen().len());
        table += &format!("{proxy:6} | {lane:4} | {resolved:13} | {arrived:14} | {url} -> {outcome} {why}\n");
        assert_eq!(outcome, expected, "{table}");
        assert_eq!(arrived, usize::from(lane == "lan" && outcome == "200"), "{table}");
        assert!(proxy == "off" || resolved == 0, "{table}");
    }
    println!("{table}");
}
