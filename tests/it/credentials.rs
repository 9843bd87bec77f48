//! `credentials::` as scripts have it: who gets one, that no way leads from a `Secret` to its text, and that its value leaves
//! the call in nothing that is told of it.

use crate::servers::{Server, answer, header};
use crate::world::World;
use lapidary::app::Watching;
use lapidary::base::file::write_atomic_private;
use lapidary::base::paths::Paths;
use lapidary::script::ctx::Sink;
use lapidary::service::credentials::Source;
use lapidary::service::permissions::Grant;
use lapidary::tool::dispatch::{Call, Outcome, Who};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// The value of the credential `key`, and what may show none of it.
const VALUE: &str = "pa ss/w0rd+xyz";
const TRACES: [&str; 5] = ["pa ss", "w0rd", "pa%20ss", "pa+ss", "cGEgc3M"];

struct Kept {
    world: World,
    file: std::path::PathBuf,
    _dir: tempfile::TempDir,
}

/// A host whose plugin `probe` is granted these.
fn kept(granted: Value) -> Kept {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("credentials.json");
    let book = json!({ "credentials": {
        "key": { "value": VALUE, "hosts": ["127.0.0.1"] },
        "digits": { "value": "4711081512", "hosts": ["127.0.0.1"] },
        "other": { "value": "other value" },
        "email/work": { "fields": { "label": "Work", "address": "ann@example.org", "password": "work pass" },
            "public": ["label"], "hosts": ["127.0.0.1"] },
        "email/home": { "fields": { "label": "Home", "password": "home pass" }, "public": ["label"] },
    } });
    write_atomic_private(&file, book.to_string().as_bytes()).unwrap();
    let world = World::prepared(
        |root| {
            let paths = Paths::at(root);
            paths.ensure().unwrap();
            std::fs::write(paths.grants_file(), json!({ "probe": granted }).to_string()).unwrap();
        },
        |b| b.watching(Watching::Off).credentials(Source::file(&file)),
    );
    Kept { world, file, _dir: dir }
}

fn all() -> Kept {
    kept(json!({ "granted": ["USE_SECRETS", "EXTERNAL_HTTP"] }))
}

impl Kept {
    fn load(&self, permissions: &str, statements: &str) {
        let text = format!(
            "const PERMISSIONS = {permissions};\n\
             fn code(work) {{ try {{ work.call(); }} catch (e) {{ return if type_of(e) == \"map\" {{ e.code ?? e.error }} else {{ e }}; }} \"none\" }}\n\
             /// Try it. Use it in tests.\n/// @local\n/// @writes\nfn probe() {{\n{statements}\n}}\n"
        );
        self.world.tool("probe", &text);
    }

    #[track_caller]
    fn gives(&self, statements: &str) -> String {
        self.load("[\"USE_SECRETS\", \"EXTERNAL_HTTP\"]", statements);
        self.world.text("probe", json!({}))
    }
}

#[track_caller]
fn clean(text: &str) {
    for trace in TRACES {
        assert!(!text.contains(trace), "{trace} is shown: {text}");
    }
}

#[test]
fn a_plugin_gets_the_credentials_that_it_declared_and_was_granted_and_no_other() {
    let codes = r#"[code(|| credentials::get("key")), code(|| credentials::get("other")), code(|| credentials::get("absent")),
        code(|| credentials::account("email", "work")), code(|| credentials::account("email", "gone")),
        code(|| credentials::accounts("email"))]"#;
    let denied = "permission_denied";
    let rows = [
        (
            json!({"granted": ["USE_SECRETS"]}),
            r#"["USE_SECRETS"]"#,
            ["none", "none", "not_found", "none", "not_found", "none"],
        ),
        (json!({"granted": ["USE_SECRETS"]}), "[]", [denied; 6]),
        (json!({}), "[]", [denied; 6]),
        (json!({"secrets": ["key"]}), r#"[#{USE_SECRETS: ["key"]}]"#, ["none", denied, denied, denied, denied, "none"]),
        (
            json!({"granted": ["USE_SECRETS"]}),
            r#"[#{USE_SECRETS: ["key", "absent"]}]"#,
            ["none", denied, "not_found", denied, denied, "none"],
        ),
    ];
    for (granted, declared, expected) in rows {
        let kept = kept(granted.clone());
        kept.load(declared, codes);
        assert_eq!(kept.world.text("probe", json!({})), json!(expected).to_string(), "{granted} {declared}");
    }
    let kept = kept(json!({}));
    kept.load(r#"["USE_SECRETS"]"#, codes);
    assert_eq!(kept.world.fails("probe", json!({})).0, denied);
}

#[test]
fn a_revoked_credential_is_gone_at_the_next_call() {
    let kept = all();
    assert_eq!(kept.gives(r#"code(|| credentials::get("key"))"#), "none");
    kept.world.host.services().grants.revoke("probe", &Grant::parse("USE_SECRETS").unwrap()[0]).unwrap();
    kept.world.host.plugins().grants_changed();
    assert_eq!(kept.world.fails("probe", json!({})).0, "permission_denied");
}

#[test]
fn accounts_are_those_of_their_kind_and_scope_and_show_what_their_owner_made_public() {
    let kept = all();
    let told = kept.gives(
        r#"let a = credentials::account("email", "work");
        [credentials::accounts("email"), credentials::accounts("none"), credentials::account("email", ()), a.label,
            `${a.password} ${a.address}`, a.keys(), `${credentials::account("key", ()) ?? "closed"}`,
            code(|| credentials::account("email", 1)), code(|| credentials::account("email", "../work")),
            code(|| credentials::get("email/work"))]"#,
    );
    let expected = json!([
        ["home", "work"],
        [],
        null,
        "Work",
        "Secret Secret",
        ["address", "label", "password"],
        "closed",
        "invalid_arguments",
        "not_found",
        "invalid_arguments"
    ]);
    assert_eq!(told, expected.to_string());
    let listed = kept_for(r#"[#{USE_SECRETS: ["email/home"]}]"#);
    assert_eq!(listed, r#"["home"]"#);
}

fn kept_for(declared: &str) -> String {
    let kept = all();
    kept.load(declared, r#"credentials::accounts("email")"#);
    kept.world.text("probe", json!({}))
}

#[test]
fn the_fifth_parameter_has_the_functions_of_credentials() {
    let kept = all();
    let text = r#"
const PERMISSIONS = ["USE_SECRETS"];
const TOOLS = [#{ type: "function", is_local: true, function: #{ name: "probe", description: "Ask. Use it in tests.",
    parameters: #{ type: "object", properties: #{}, required: [] } } }];
fn execute(function_name, arguments, config, plugin_settings, credentials) {
    let c = credentials;
    let codes = [`${c.get("key")}`, c.accounts("email"), c.account("email", "work").label, c.account("email", ())];
    try { c.get("absent"); } catch (e) { codes.push(e.code); }
    try { c.account("email", "absent"); } catch (e) { codes.push(e.code); }
    codes
}
"#;
    kept.world.tool("probe", text);
    let expected = json!(["Secret", ["home", "work"], "Work", null, "not_found", "not_found"]);
    assert_eq!(kept.world.text("probe", json!({})), expected.to_string());
}

#[test]
fn a_secret_reads_secret_where_a_text_is_made_in_passing() {
    let kept = all();
    let rows = [
        "`${k}`",
        "`${[k]}`",
        "`${#{a: k}}`",
        "`${[[#{a: [k]}]]}`",
        "let s = \"\"; s += k; s",
        "let s = \"\"; s += [k]; s",
        "[k].to_string()",
        "#{a: k}.to_string()",
        "[k].to_debug()",
        "k.to_debug()",
        "type_of(k)",
        "let f = |x| `${x}`; f.call(k)",
        "let f = || `${k}`; f.call()",
        "`${Fn(\"code\").curry(k)}`",
        "let b = text::builder(); b.push(`${k}`); b.to_string()",
    ];
    for row in rows {
        let told = kept.gives(&format!("let k = credentials::get(\"key\"); {row}"));
        clean(&told);
        assert!(told.contains("Secret") || row.contains("curry"), "{row}: {told}");
        assert!(!told.contains("::"), "{row}: {told}");
    }
}

#[test]
fn no_way_leads_from_a_secret_to_its_text() {
    let kept = all();
    let rows = [
        "k + \"x\"",
        "\"x\" + k",
        "k + k",
        "k + 'x'",
        "'x' + k",
        "k + 1",
        "k.to_string()",
        "to_string(k)",
        "k.len()",
        "k.len",
        "k[0]",
        "k.name",
        "k.value",
        "k.chars()",
        "k.split()",
        "k.sub_string(0, 1)",
        "k.to_upper()",
        "k.contains(\"p\")",
        "\"pa\" in k",
        "for c in k { }",
        "k == k",
        "k == \"x\"",
        "\"x\" != k",
        "k < \"x\"",
        "[k] == [k]",
        "[\"x\"].contains(k)",
        "k in [\"x\"]",
        "json::encode(k)",
        "json::encode([k])",
        "json::encode(#{a: #{b: k}})",
        "base64::encode(k)",
        "hash::sha256(k)",
        "hash::hmac_sha256(k, \"x\")",
        "hash::hmac_sha256(\"x\", k)",
        "text::join([k], \"\")",
        "text::slug(k)",
        "text::truncate(k, 3)",
        "text::fuzzy(k, \"x\")",
        "text::builder().push(k)",
        "regex::is_match(\"p.*\", k)",
        "regex::replace(\"x\", \"x\", k)",
        "state::save(\"k\", k)",
        "state::save(\"k\", [k])",
        "state::update(\"k\", 1, |v| k)",
        "cache::put(\"k\", k, 60)",
        "cache::get_or(\"k\", 60, || k)",
        "files::write_text(\"k\", k)",
        "files::write_blob(\"k\", k)",
        "db::open(\"k\").query(\"SELECT ?\", [k])",
        "db::open(\"k\").exec(\"CREATE TABLE t(a)\", [k])",
        "html::text(k)",
        "math::evaluate(k)",
        "time::parse(k)",
        "log::info(k)",
        "log::info(\"x\", #{k: k})",
        "progress::status(k)",
        "tools::run(\"probe\", #{k: k})",
        "tools::run(k, #{})",
        "settings::get(k)",
        "scopes::get(k)",
        "credentials::get(k)",
        "net::get(k)",
        "net::classify(k)",
        "net::get(\"http://127.0.0.1/\", #{profile: k})",
        "net::post(\"http://127.0.0.1:9/\", #{data: k})",
        "net::post(\"http://127.0.0.1:9/\", #{data: #{}, files: #{f: k}})",
        "attachments::marker(k, [])",
        "failure(#{code: k, message: \"x\"})",
        "k.cast()",
        "parse_int(k)",
        "blob(k)",
        "let a = blob(3); a += k",
    ];
    for row in rows {
        let told = kept.gives(&format!(
            "let k = credentials::get(\"key\"); let out = (); try {{ out = {{ {row} }}; }} catch (e) {{ return `threw ${{e}}`; }} `gave ${{out}}`"
        ));
        clean(&told);
        // A type that takes no part in a comparison is unequal, and nothing else comes back.
        let harmless = told.starts_with("threw ") || ["gave false", "gave true", "gave "].contains(&told.as_str());
        assert!(harmless, "{row}: {told}");
    }
}

#[test]
fn a_secret_that_is_returned_or_thrown_fails_without_its_text() {
    let kept = all();
    for row in [
        "k",
        "[k]",
        "#{a: k}",
        "throw k",
        "throw [k]",
        "throw #{a: k}",
        "throw #{code: \"internal\", message: k}",
        "throw #{code: \"internal\", message: `${k}`, hint: k}",
        "throw `no: ${k}`",
        "let a = []; a[k]",
        "switch k { \"x\" => 1, _ => throw k }",
        "failure(#{code: \"not_found\", message: \"x\", hint: `${k}`})",
    ] {
        kept.load("[\"USE_SECRETS\"]", &format!("let k = credentials::get(\"key\"); {row}"));
        let outcome = kept.world.call("probe", json!({}));
        clean(&told(&outcome));
    }
}

/// Everything that a door could show of a call.
fn told(outcome: &Outcome) -> String {
    let diagnostic = outcome.diagnostic.as_ref().map(|d| d.render());
    format!("{outcome:?}\n{diagnostic:?}")
}

/// Keeps what it hears.
#[derive(Default)]
struct Heard(Mutex<String>);

impl Sink for Heard {
    fn status(&self, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }
    fn log(&self, _level: &str, text: &str) {
        self.0.lock().unwrap().push_str(text);
    }
}

/// A server that tells the value in words of its own, where no answer can be matched by its place.
fn telltale() -> Server {
    Server::http(|_| {
        let told = json!({ "plain": VALUE, "halves": ["pa ss/w0", "rd+xyz"], "digits": 4_711_081_512_i64, "a": ["4711", "081512"] });
        answer("200 OK", "content-type: application/json\r\n", told.to_string().as_bytes())
    })
}

#[test]
fn the_value_of_a_credential_leaves_its_call_in_nothing_that_is_told_of_it() {
    let server = telltale();
    let kept = all();
    // Only the request without the credential brings its value into the script.
    let fetch = format!(
        "let k = credentials::get(\"key\"); let d = credentials::get(\"digits\"); let a = net::get(\"{}\").json; \
         let v = a.halves[0] + a.halves[1]; let n = a.digits; ",
        server.url("/")
    );
    let rows = [
        "v",
        "[v, n]",
        "#{a: #{b: v}}",
        "let m = #{}; m[v] = 1; m",
        "json::encode([v])",
        "base64::encode(v)",
        "let w = v; w.replace(\" \", \"%20\"); w",
        "[`${v}`, false]",
        "throw v",
        "throw #{code: \"not_found\", message: v, hint: v, user_action: v}",
        "throw #{a: v}",
        "failure(#{code: \"not_found\", message: v, hint: `see ${v}`, fallbacks: [#{tool: v, when: v}]})",
        "let x = \"\"; for i in 0..3000 { x += v; } throw x",
        "let x = \"\"; for i in 0..30000 { x += v; } x",
        "log::info(v); log::warn(\"x\", #{v: v}); print(v); debug([v]); progress::status(v); \"\"",
        "let x = \"\"; for i in 0..1150 { x += v; } log::info(x); let s = \"x\"; s.pad(495, 'x'); progress::status(s + v); \"\"",
        "n",
        "[n]",
        "`${n}`",
    ];
    for row in rows {
        kept.load("[\"USE_SECRETS\", \"EXTERNAL_HTTP\"]", &format!("{fetch}{row}"));
        let heard = Arc::new(Heard::default());
        let mut call = Call::new("probe", serde_json::Map::new(), Who::owner("test"));
        call.sink = heard.clone();
        let outcome = kept.world.host.call_now(call);
        let mut all = format!("{} {}", told(&outcome), heard.0.lock().unwrap());
        if let Some(rest) = &outcome.rest {
            all += &kept.world.host.dispatcher().handles().read(rest, 0, usize::MAX).unwrap().text;
        }
        clean(&all);
        assert!(!all.contains("4711081512"), "{row}: {all}");
        assert!(all.contains("***"), "{row}: {all}");
    }
}

/// A server that keeps what it is sent in `X-Key`, and tells it to whoever asks: in what way, the path says.
fn remembering() -> Server {
    let kept: Arc<Mutex<String>> = Arc::default();
    Server::http(move |request| {
        if let Some(key) = header(request, "x-key") {
            *kept.lock().unwrap() = key.to_owned();
        }
        let key = kept.lock().unwrap().clone();
        let escaped: String = key.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
        let wide: Vec<u8> = key.encode_utf16().flat_map(u16::to_be_bytes).collect();
        match request.split(' ').nth(1).unwrap_or_default() {
            "/remember" => answer("200 OK", "", b"thank you"),
            "/plain" => answer("200 OK", "", key.as_bytes()),
            "/json" => {
                answer("200 OK", "content-type: application/json\r\n", format!("{{\"k\":\"{escaped}\"}}").as_bytes())
            }
            "/wide" => answer("200 OK", "content-type: text/plain; charset=utf-16be\r\n", &wide),
            "/cookie" => answer("200 OK", &format!("set-cookie: k={key}; Path=/\r\n"), b"-"),
            "/moved" => answer("302 Found", &format!("location: /?k={escaped}\r\n"), b"-"),
            "/number" => answer("200 OK", "content-type: application/json\r\n", b"{\"n\":4711081512,\"m\":[1,\"a\"]}"),
            _ => {
                answer("404 Not Found", "", format!("no {}", header(request, "cookie").unwrap_or("cookie")).as_bytes())
            }
        }
    })
}

#[test]
fn what_a_server_was_told_it_tells_no_later_request_of_that_plugin_in_this_call_or_another() {
    let server = remembering();
    let kept = all();
    let told = |path: &str| {
        format!(
            "let a = net::get(\"{}\", #{{allow_redirects: false, profile: \"browser:z\"}}); let all = a.text + `${{a.headers}}`; \
             if path != \"wide\" {{ all += json::encode(base64::encode(a.bytes)); }} \
             if path == \"json\" {{ all += a.json.k; }} \
             files::write_text(\"taken.txt\", all); let out = []; for c in all.chars() {{ out.push(`${{c}}`); }} text::join(out, \"-\")",
            server.url(&format!("/{path}"))
        )
        .replace("path ", &format!("\"{path}\" "))
    };
    let spelled: String = VALUE.chars().map(|c| format!("{c}-")).collect();
    let remember =
        format!("net::get(\"{}\", #{{headers: #{{\"X-Key\": credentials::get(\"key\")}}}});", server.url("/remember"));
    for path in ["plain", "json", "wide", "cookie", "moved", "elsewhere"] {
        for before in [remember.as_str(), ""] {
            let said = kept.gives(&format!("{before}{}", told(path)));
            assert!(!said.contains(&spelled[..8]), "{path} {before}: {said}");
            assert!(said.contains("*-*-*"), "{path} {before}: {said}");
            let file = kept.world.dir.path().join("user/plugin_state/probe_files/taken.txt");
            clean(&std::fs::read_to_string(file).unwrap());
        }
    }
    let number = format!("let a = net::get(\"{}\").json; `${{a.n}} ${{a.m}}`", server.url("/number"));
    assert_eq!(kept.gives(&number), "*** [1, \"a\"]");
}

#[test]
fn a_plugin_is_not_told_what_it_may_not_ask_for_and_nothing_is_taken_from_one_without_credentials() {
    let server = telltale();
    let kept = kept(json!({ "granted": ["EXTERNAL_HTTP"], "secrets": ["other"] }));
    let spell = format!(
        "let out = \"\"; for c in net::get(\"{}\").json.plain.chars() {{ out += `${{c}}.`; }} out",
        server.url("/")
    );
    kept.load("[#{USE_SECRETS: [\"other\"]}, \"EXTERNAL_HTTP\"]", &spell);
    assert!(kept.world.text("probe", json!({})).starts_with("p.a."));
    kept.load("[\"EXTERNAL_HTTP\"]", &spell);
    assert!(kept.world.text("probe", json!({})).starts_with("p.a."));
}

#[test]
fn failures_name_types_as_scripts_know_them() {
    let kept = all();
    for (row, want) in [
        ("let m = #{}; m[s] = 1; m", "Secret"),
        ("parse_int(s)", "Secret"),
        ("[s, \"b\"].sort()", "Secret"),
        ("[s, s].sort()", "Secret"),
        ("[1, 2].sort(|a, b| s)", "Secret"),
        ("Fn(s)", "Secret"),
        ("s.nothing", "Secret"),
        ("s[0]", "Secret"),
        ("let f = || s; let g = || f.call(); Fn(s)", ""),
        ("for x in s { }", ""),
        ("let a = 1; a.x = s; a", ""),
        ("if s { 1 }", ""),
        ("s()", ""),
    ] {
        kept.load("[\"USE_SECRETS\", \"EXTERNAL_HTTP\"]", &format!("let s = credentials::get(\"key\"); {row}"));
        let outcome = kept.world.host.call_now(Call::new("probe", serde_json::Map::new(), Who::owner("test")));
        let all = told(&outcome);
        assert!(!outcome.ok && all.contains(want), "{row}: {all}");
        for room in ["lapidary::", "alloc::", "std::", "rhai::", "core::"] {
            assert!(!all.contains(room), "{row}: {all}");
        }
    }
}

#[test]
fn a_file_that_others_may_read_gives_nothing_and_its_place_is_not_told() {
    let kept = all();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&kept.file, std::fs::Permissions::from_mode(0o644)).unwrap();
        kept.load("[\"USE_SECRETS\"]", "credentials::get(\"key\")");
        let (code, text) = kept.world.fails("probe", json!({}));
        assert_eq!(code, "permission_denied");
        assert!(!text.contains("json") && text.contains("lapidary doctor"), "{text}");
    }
    let _ = &kept.file;
}
