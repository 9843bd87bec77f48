//! The OpenAPI document: that it is one, that it names every route, and that every answer of these tests is what it promises.

use super::api::{ECHO, WAIT};
use super::api_client::{Answer, Served};
use super::chat_model::Model;
use super::world::{World, until};
use jsonschema::Validator;
use lapidary::app::{Shipped, Watching};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

/// The document and the checks made of it. It is the same for every server of this program.
struct Promise {
    document: Value,
    checks: Mutex<BTreeMap<String, Arc<Validator>>>,
}

fn promise(served: &Served) -> &'static Promise {
    static PROMISE: OnceLock<Promise> = OnceLock::new();
    PROMISE.get_or_init(|| Promise {
        document: serde_json::from_slice(&served.plain("/api/openapi.json")).unwrap(),
        checks: Mutex::default(),
    })
}

impl Promise {
    /// The path of the document that a real one is.
    fn path(&self, real: &str) -> Option<&str> {
        let real: Vec<&str> = real.split('?').next().unwrap().split('/').collect();
        let fits = |template: &str| {
            let parts: Vec<&str> = template.split('/').collect();
            parts.len() == real.len()
                && parts.iter().zip(&real).all(|(part, real)| part.starts_with('{') || part == real)
        };
        // Of two that fit, the one with fewer parameters is meant.
        let paths = self.document["paths"].as_object().unwrap().keys().map(String::as_str);
        paths.filter(|path| fits(path)).min_by_key(|path| path.matches('{').count())
    }

    /// What is promised of an answer: its schema, or nothing where it has none.
    fn check(&self, key: &str, schema: &Value) -> Arc<Validator> {
        let mut checks = self.checks.lock().unwrap();
        if let Some(check) = checks.get(key) {
            return check.clone();
        }
        let whole = json!({ "allOf": [schema], "components": self.document["components"] });
        let check = Arc::new(jsonschema::options().offline().build(&whole).unwrap_or_else(|e| panic!("{key}: {e}")));
        checks.insert(key.to_owned(), check.clone());
        check
    }
}

/// Whether an answer is one that the document promises for its request.
#[track_caller]
pub fn as_promised(served: &Served, method: &str, path: &str, answer: &Answer) {
    let promise = promise(served);
    let Some(template) = promise.path(path) else { return };
    let operation = &promise.document["paths"][template][method.to_ascii_lowercase()];
    if operation.is_null() {
        assert!(matches!(answer.status, 401 | 404 | 405), "{method} {template} is no operation: {}", answer.status);
        return;
    }
    let responses = &operation["responses"];
    let status = answer.status.to_string();
    let response = responses.get(&status).unwrap_or_else(|| {
        assert!(answer.status >= 400, "{method} {template} promises no {status}");
        &promise.document["components"]["responses"]["Failure"]
    });
    let Some(content) = response.get("content").and_then(Value::as_object) else {
        assert!(answer.body.is_empty(), "{method} {template} promises no body");
        return;
    };
    let kind = answer.header("content-type").unwrap_or_default().split(';').next().unwrap();
    let promised = |key: &str| key == kind || key.strip_suffix("/*").is_some_and(|family| kind.starts_with(family));
    let Some((_, media)) = content.iter().find(|(key, _)| promised(key)) else {
        panic!("{method} {template} answers {kind} and promises {:?}", content.keys().collect::<Vec<_>>());
    };
    if kind == "application/json" {
        let key = format!("{method} {template} {status}");
        let check = promise.check(&key, &media["schema"]);
        let body = answer.json();
        let wrong: Vec<String> = check.iter_errors(&body).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "{key} is not as promised:\n{}\n{body}", wrong.join("\n"));
    }
}

#[test]
fn the_document_is_one_of_openapi_and_its_schemas_are_schemas() {
    let served = Served::new();
    let text = served.get("/api/openapi.json").body;
    let spec = oas3::from_json(std::str::from_utf8(&text).unwrap()).unwrap();
    assert!(spec.openapi.starts_with("3.1.") && spec.info.version == env!("CARGO_PKG_VERSION"));
    let operations: Vec<_> = spec.operations().collect();
    assert!(operations.len() > 40, "{}", operations.len());
    let mut ids = BTreeSet::new();
    for (path, method, operation) in operations {
        assert!(ids.insert(operation.operation_id.clone().unwrap()), "{method} {path}");
        let named: BTreeSet<String> = operation
            .parameters(&spec)
            .unwrap()
            .into_iter()
            .filter(|p| p.location == oas3::spec::ParameterIn::Path)
            .map(|p| p.name)
            .collect();
        let wanted = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).map(str::to_owned);
        assert_eq!(named, wanted.collect::<BTreeSet<_>>(), "{method} {path}");
        assert!(!operation.responses(&spec).is_empty(), "{method} {path}");
    }
    let document: Value = serde_json::from_slice(&text).unwrap();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        jsonschema::meta::validate(schema).unwrap_or_else(|e| panic!("{name}: {e}"));
    }
    let known: BTreeSet<String> = schemas.keys().map(|name| format!("#/components/schemas/{name}")).collect();
    let mut stack = vec![&document];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(map) => {
                if let Some(target) = map.get("$ref").and_then(Value::as_str) {
                    assert!(known.contains(target) || target == "#/components/responses/Failure", "{target}");
                }
                stack.extend(map.values());
            }
            Value::Array(list) => stack.extend(list),
            _ => {}
        }
    }
}

#[test]
fn the_document_says_what_a_program_needs_before_it_asks() {
    let served = Served::new();
    let document = served.get("/api/openapi.json").good();
    let operation = |path: &str, method: &str| document["paths"][path][method].clone();
    let call = operation("/api/call", "post");
    assert_eq!(call["requestBody"]["content"]["application/json"]["schema"]["$ref"], "#/components/schemas/CallSent");
    assert!(call["responses"]["200"]["content"]["text/event-stream"]["x-data"].is_object());
    let all = operation("/api/tools", "get")["parameters"][0].clone();
    assert_eq!(
        (&all["name"], &all["in"], &all["required"], &all["schema"]["type"]),
        (&json!("all"), &json!("query"), &json!(false), &json!("boolean"))
    );
    let install = operation("/api/install", "post");
    assert!(install["parameters"].as_array().unwrap().iter().any(|p| p["name"] == "file" && p["required"] == true));
    assert_eq!(operation("/api/session", "post")["security"], json!([]), "who signs in is not known yet");
    assert!(operation("/api/plugins", "get").get("security").is_none());
    assert!(document["components"]["schemas"]["SaveSent"]["properties"]["base"]["description"].is_string());
    let answers = &operation("/api/plugins/{name}", "get")["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(answers["$ref"], "#/components/schemas/Status");
    // What is always written is required of an answer, and what may be left out of a body is not.
    let required = |name: &str| document["components"]["schemas"][name]["required"].as_array().unwrap().clone();
    assert!(required("Status").contains(&json!("live")) && !required("CreateSent").contains(&json!("kind")));
}

#[test]
fn every_route_answers_as_its_schema_says() {
    let served =
        Served::of(World::with(|b| b.watching(Watching::Off).shipped(Shipped::All).keep_history().keep_journal()));
    served.world.tool("echo", ECHO);
    served.world.tool("wait", WAIT);
    until("it is kept", || served.world.host.history().list("echo").len() == 1);
    let source = served.get("/api/plugins/echo/source").good();
    let changed = ECHO.replace("    out\n", "    out + \"!\"\n");
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    served.world.tool(
        "paint",
        &format!("/// Paint. For tests.\nfn paint() {{ images::result(\"painted\", base64::decode(\"{png}\")) }}\n"),
    );
    let painted = served.post("/api/call", &json!({ "tool": "paint" })).good();
    let picture = painted["parts"][0]["id"].as_str().unwrap().to_owned();
    let token = served.post("/api/tokens", &json!({ "name": "for tests" }));
    assert_eq!(token.status, 201);
    let token = token.json()["id"].as_str().unwrap().to_owned();
    let running = served.follow("POST", "/api/call", &[], br#"{"tool": "wait", "call": "a_long_call"}"#);
    until("it runs", || served.get("/api/calls").good()[0]["call"] == "a_long_call");
    served.post("/api/call", &json!({ "tool": "paint", "call": "a_kept_call" })).good();
    let model = Model::start();
    let settings = "/api/plugins/clock/settings";
    let alias = "/api/webui/plugins/clock/settings";
    let rows: Vec<(&str, String, Value)> = [
        ("GET", "/api/tools?all=true", json!(null)),
        ("GET", "/api/tools/echo/preview", json!(null)),
        ("GET", "/api/toolsets", json!(null)),
        ("PUT", "/api/toolsets/mine", json!({ "words": ["echo", "clock"] })),
        ("DELETE", "/api/toolsets/mine", json!(null)),
        ("POST", "/api/call", json!({ "tool": "echo", "arguments": { "text": "x" } })),
        ("POST", "/api/call", json!({ "tool": "echo", "arguments": { "text": 5 } })),
        ("GET", "/api/calls", json!(null)),
        ("DELETE", "/api/calls/a_long_call", json!(null)),
        ("GET", "/api/journal", json!(null)),
        ("GET", "/api/journal/a_kept_call", json!(null)),
        ("POST", "/api/journal/a_kept_call/replay", json!(null)),
        ("GET", "/api/plugins", json!(null)),
        ("POST", "/api/plugins", json!({ "name": "greet" })),
        ("GET", "/api/plugins/echo", json!(null)),
        ("GET", "/api/plugins/echo/files", json!(null)),
        ("GET", "/api/plugins/echo/source", json!(null)),
        ("POST", "/api/plugins/echo/check", json!({ "text": "fn echo( {" })),
        ("PUT", "/api/plugins/echo/source", json!({ "text": changed, "base": source["version"] })),
        ("GET", "/api/plugins/echo/history", json!(null)),
        ("GET", "/api/plugins/echo/history/1", json!(null)),
        ("POST", "/api/plugins/echo/rollback", json!({ "generation": 1 })),
        ("POST", "/api/plugins/echo/disable", json!(null)),
        ("POST", "/api/plugins/echo/enable", json!(null)),
        ("POST", "/api/plugins/echo/reload", json!(null)),
        ("GET", "/api/plugins/echo/grants", json!(null)),
        ("POST", "/api/plugins/echo/grants", json!({ "grant": "SPEND" })),
        ("POST", "/api/plugins/echo/revoke", json!({ "grant": "SPEND" })),
        ("GET", settings, json!(null)),
        ("PUT", settings, json!({})),
        ("POST", "/api/plugins/clock/settings/preview", json!({})),
        ("DELETE", settings, json!(null)),
        ("GET", alias, json!(null)),
        ("PUT", alias, json!({})),
        ("DELETE", alias, json!(null)),
        ("POST", "/api/plugins/clock/copy", json!({})),
        ("GET", "/api/plugins/clock/download", json!(null)),
        ("GET", "/api/plugins/echo/download", json!(null)),
        ("DELETE", "/api/plugins/clock", json!(null)),
        ("GET", "/api/removed", json!(null)),
        ("GET", "/api/models", json!(null)),
        ("GET", "/api/docs", json!(null)),
        ("GET", "/api/host", json!(null)),
        ("GET", "/api/openapi.json", json!(null)),
        ("GET", "/api/session", json!(null)),
        ("GET", "/api/tokens", json!(null)),
        ("DELETE", "/api/journal", json!(null)),
        ("PUT", "/api/password", json!({ "new": "long enough for this" })),
        ("POST", "/api/session", json!({ "password": "long enough for this" })),
    ]
    .into_iter()
    .map(|(method, path, body)| (method, path.to_owned(), body))
    .chain([
        ("GET", format!("/api/models?port={}", model.port), json!(null)),
        (
            "POST",
            "/api/models".to_owned(),
            json!({ "base_url": format!("http://127.0.0.1:{}/v1", model.port), "model": "scripted-1" }),
        ),
        ("GET", format!("/api/tool-image/{picture}"), json!(null)),
        ("GET", format!("/api/tool-image/{picture}?view=model"), json!(null)),
        ("DELETE", format!("/api/tokens/{token}"), json!(null)),
    ])
    .collect();
    let promise = promise(&served);
    let mut seen = BTreeSet::from([("/api/tokens".to_owned(), "post".to_owned(), 201)]);
    for (method, path, body) in rows {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = served.request(method, &path, &[], &bytes);
        assert!(answer.status < 300, "{method} {path}: {} {}", answer.status, String::from_utf8_lossy(&answer.body));
        seen.insert((promise.path(&path).unwrap().to_owned(), method.to_ascii_lowercase(), answer.status));
    }
    let signed_in = served.post("/api/session", &json!({ "password": "long enough for this" }));
    let cookie = signed_in.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let csrf = signed_in.json()["csrf"].as_str().unwrap().to_owned();
    let out = served.request("DELETE", "/api/session", &[("Cookie", &cookie), ("X-CSRF-Token", &csrf)], b"");
    let no_password = json!({ "current": "long enough for this" }).to_string();
    let closed = served.request("DELETE", "/api/password", &[], no_password.as_bytes());
    for (path, answer) in [("/api/session", out), ("/api/password", closed)] {
        seen.insert((path.to_owned(), "delete".to_owned(), answer.status));
    }
    for query in ["file=given.rhai&look=true", "file=given.rhai"] {
        let script = ECHO.replace("echo", "given");
        let answer = served.request("POST", &format!("/api/install?{query}"), &[], script.as_bytes());
        seen.insert(("/api/install".to_owned(), "post".to_owned(), answer.status));
    }
    drop(running);

    let follow = |method: &str, path: &str, body: &[u8]| {
        let operation = &promise.document["paths"][path][method.to_ascii_lowercase()];
        let data = &operation["responses"]["200"]["content"]["text/event-stream"]["x-data"];
        let check = promise.check(&format!("{method} {path} events"), data);
        let mut events = served.follow(method, path, &[], body);
        let first = events.next().unwrap();
        assert!(check.is_valid(&first.data), "{path}: {first:?}");
        (events, check)
    };
    let (mut events, check) = follow("GET", "/api/events", b"");
    served.world.tool("echo", ECHO);
    served.post("/api/plugins/echo/reload", &json!({})).good();
    let live = events.until("plugin_live");
    assert!(check.is_valid(&live.data), "{live:?}");
    seen.insert(("/api/events".to_owned(), "get".to_owned(), 200));
    let (mut told, check) = follow("POST", "/api/call", br#"{"tool": "echo", "arguments": {"text": "x"}}"#);
    while let Some(event) = told.next() {
        assert!(check.is_valid(&event.data), "{event:?}");
    }

    served.post("/api/call", &json!({ "tool": "echo", "arguments": { "text": "x" }, "call": "a_kept_call" })).good();
    let replay = "/api/journal/a_kept_call/replay";
    let data = &promise.document["paths"]["/api/journal/{id}/replay"]["post"]["responses"]["200"]["content"];
    let check = promise.check("replay events", &data["text/event-stream"]["x-data"]);
    let mut told = served.follow("POST", replay, &[], b"");
    while let Some(event) = told.next() {
        assert!(check.is_valid(&event.data), "{event:?}");
    }

    let mut missing = Vec::new();
    for (path, item) in promise.document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            for status in operation["responses"].as_object().unwrap().keys().filter_map(|s| s.parse::<u16>().ok()) {
                if status < 400 && !seen.contains(&(path.clone(), method.clone(), status)) {
                    missing.push(format!("{method} {path} {status}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "no answer was seen of:\n{}", missing.join("\n"));
}
