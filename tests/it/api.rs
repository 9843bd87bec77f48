//! The HTTP API: what it tells of tools and plugins, how it runs calls, and what it says to a request that does not fit.

use super::api_client::Served;
use super::world::{World, until};
use lapidary::app::{Shipped, Watching};
use serde_json::{Value, json};
use std::io::Write;

/// A tool that says what it was given.
pub const ECHO: &str = "//! Says things.\n\nconst EMOJI = \"🦜\";\n\n/// Say a text again. For tests.\n///\n/// @param {string} text - The text.\n/// @param {integer 1..9} times=1 - How often.\n/// @local\n/// @example {\"text\": \"hi\"} => /hi/\nfn echo(text, times) {\n    let out = \"\";\n    for i in 0..times { out += text; }\n    out\n}\n";
/// A tool that runs until it is stopped, and says how far it is.
pub const WAIT: &str = "/// Wait until somebody stops it. For tests.\nfn wait() {\n    progress::status(\"waiting\");\n    progress::step(1, 3);\n    log::info(\"here\");\n    while true {}\n}\n";

fn served() -> Served {
    let served = Served::new();
    served.world.tool("echo", ECHO);
    served.world.tool("wait", WAIT);
    served
}

#[test]
fn every_address_of_the_api_wants_the_token_and_says_what_it_takes() {
    let served = served();
    for path in ["/api/tools", "/api/plugins", "/api/call", "/api/events", "/api/docs", "/api/host", "/api/nothing"] {
        let answer = served.request("GET", path, &[("Authorization", "Bearer wrong")], b"");
        assert_eq!(answer.status, 401, "{path}");
    }
    let (code, told) = served.get("/api/call").refused(405);
    assert!(code == "invalid_arguments" && told.contains("GET"), "{told}");
    assert!(served.get("/api/call").header("allow").is_some_and(|allow| allow.contains("POST")));
    assert_eq!(served.get("/api/nothing").refused(404).0, "not_found");
    for name in ["content-security-policy", "x-content-type-options", "cache-control"] {
        assert!(served.get("/api/tools").header(name).is_some(), "{name}");
    }
}

#[test]
fn tools_are_told_with_all_that_a_form_and_a_model_need() {
    let served = served();
    served.world.tool("secret", "const TOOLS = [#{ type: \"function\", hidden: true, writes: true, function: #{ name: \"secret\", description: \"Hidden. For tests.\" } }];\nfn execute(name, arguments, config) { \"x\" }\n");
    let body = served.get("/api/tools").good();
    assert!(body["revision"].as_u64().unwrap() > 0);
    let names = |body: &Value| -> Vec<String> {
        body["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&body), ["echo", "wait"]);
    let echo = &body["tools"][0];
    assert_eq!(echo["parameters"]["required"], json!(["text"]));
    for (key, value) in [
        ("plugin", json!("echo")),
        ("emoji", json!("🦜")),
        ("hidden", json!(false)),
        ("offered", json!(true)),
        ("example", json!({ "text": "hi" })),
    ] {
        assert_eq!(echo[key], value, "{key}");
    }
    assert_eq!(echo["flags"]["locality"], "local");
    assert!(echo["tokens"].as_u64().unwrap() > 10 && echo["generation"].as_u64().unwrap() >= 1);
    let all = served.get("/api/tools?all=true").good();
    assert_eq!(names(&all), ["echo", "secret", "wait"]);
    assert_eq!(
        (&all["tools"][1]["offered"], &all["tools"][1]["flags"]["side_effect"]),
        (&json!(false), &json!("write"))
    );
    let (code, told) = served.get("/api/tools?al=true").refused(400);
    assert!(code == "invalid_arguments" && told.contains("al") && told.contains("all"), "{told}");
}

#[test]
fn a_preview_is_what_each_dialect_sends() {
    let served = served();
    for dialect in ["openai", "anthropic", "gemini", "llama", "plain"] {
        let body = served.get(&format!("/api/tools/echo/preview?dialect={dialect}")).good();
        assert_eq!((&body["dialect"], &body["tools"][0]["tool"]), (&json!(dialect), &json!("echo")));
    }
    assert_eq!(served.get("/api/tools/echo/preview").good()["dialect"], "openai");
    assert_eq!(served.get("/api/tools/ecko/preview").refused(404).0, "not_found");
    assert!(served.get("/api/tools/echo/preview?dialect=klingon").refused(400).1.contains("gemini"));
}

#[test]
fn a_call_is_answered_whether_or_not_the_tool_succeeds_and_a_request_that_is_none_is_refused() {
    let served = served();
    let body = served.post("/api/call", &json!({ "tool": "echo", "arguments": { "text": "ab", "times": 2 } })).good();
    for (key, value) in [
        ("ok", json!(true)),
        ("tool", json!("echo")),
        ("plugin", json!("echo")),
        ("text", json!("abab")),
        ("parts", json!([])),
        ("warnings", json!([])),
        ("tokens", json!(1)),
    ] {
        assert_eq!(body[key], value, "{key}: {body}");
    }
    assert!(body["generation"].as_u64().unwrap() >= 1 && body["operations"].as_u64().unwrap() > 0, "{body}");
    assert!(body["duration_ms"].as_f64().unwrap() > 0.0 && body["memory"].as_u64().unwrap() > 0, "{body}");
    assert!(body.get("error").is_none() && body.get("shown").is_none());
    for (arguments, text) in [(json!("{\"text\": \"x\"}"), "x"), (json!({ "text": "y", "call": 1 }), "")] {
        let body = served.post("/api/call", &json!({ "tool": "echo", "arguments": arguments })).good();
        assert_eq!(body["ok"], !text.is_empty(), "{body}");
    }
    let failed = served.post("/api/call", &json!({ "tool": "echo", "arguments": { "text": 5, "times": 99 } })).good();
    assert_eq!((&failed["ok"], &failed["error"]["code"]), (&json!(false), &json!("invalid_arguments")));
    assert!(failed["text"].as_str().unwrap().starts_with("invalid_arguments: "));
    assert_eq!(served.post("/api/call", &json!({ "tool": "echo", "arguments": null })).good()["ok"], false);

    let (code, told) = served.post("/api/call", &json!({ "tool": "ecko" })).refused(404);
    assert!(code == "not_found" && told.contains("echo"), "{told}");
    for (body, part) in [
        (r#"{"tool": "echo", "argumets": {}}"#, "`argumets`"),
        (r#"{"tool": 5}"#, "`tool`"),
        (r#"{"tool": "echo", "arguments": [1]}"#, "`arguments`"),
        (r#"{"arguments": {}}"#, "`tool`"),
        ("[]", "object"),
        ("", "too early"),
        ("{\"tool\": \"echo\"", "too early"),
        ("{\"tool\": \"echo\", \"tool\": \"wait\"}", "twice"),
        ("{\"tool\": \"echo\", \"arguments\": {\"text\": 99999999999999999999}}", "64 bits"),
        ("{\"tool\": \"echo\", \"call\": \"short\"}", "no id"),
        ("{\"tool\": \"echo\", \"call\": \"../../etc/passwd\"}", "no id"),
    ] {
        let (code, told) = served.request("POST", "/api/call", &[], body.as_bytes()).refused(400);
        assert!(code == "invalid_arguments" && told.contains(part), "{body}: {told}");
    }
    let (code, _) = served.request("POST", "/api/call", &[], &vec![b' '; (16 << 20) + 1]).refused(413);
    assert_eq!(code, "too_large");
}

#[test]
fn a_failing_script_says_where_and_a_deadline_is_a_result_too() {
    let served = served();
    served.world.tool("bad", "/// Fail. For tests.\nfn bad() {\n    let x = 1;\n    x.nothing()\n}\n");
    let body = served.post("/api/call", &json!({ "tool": "bad" })).good();
    assert_eq!((&body["ok"], &body["diagnostic"]["line"]), (&json!(false), &json!(4)), "{body}");
    assert_eq!(body["diagnostic"]["file"], "user/tools/bad.rhai");
}

#[test]
fn a_call_is_followed_as_it_goes_on_and_ends_when_its_reader_goes() {
    let served = served();
    let body = json!({ "tool": "echo", "arguments": { "text": "hi" }, "call": "my_own_call" }).to_string();
    let mut events = served.follow("POST", "/api/call", &[], body.as_bytes());
    let started = events.next().unwrap();
    assert_eq!((started.name.as_str(), &started.data["call"]), ("started", &json!("my_own_call")));
    let result = events.until("result");
    assert_eq!((&result.data["text"], &result.data["call"]), (&json!("hi"), &json!("my_own_call")));
    assert!(events.next().is_none(), "the result is the last event");

    let body = json!({ "tool": "wait", "call": "a_long_call" }).to_string();
    let mut events = served.follow("POST", "/api/call", &[], body.as_bytes());
    assert_eq!(events.next().unwrap().data["tool"], "wait");
    assert_eq!(events.until("progress").data, json!({ "text": "waiting" }));
    assert_eq!(events.until("progress").data, json!({ "text": "waiting", "done": 1, "total": 3 }));
    assert_eq!(events.until("log").data, json!({ "level": "info", "text": "here" }));
    let running = served.get("/api/calls").good();
    assert_eq!(running[0]["call"], "a_long_call");
    assert_eq!(running[0]["progress"], json!({ "text": "waiting", "done": 1, "total": 3 }));
    for key in ["tool", "plugin", "door", "caller", "started_at"] {
        assert!(running[0][key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {running}");
    }
    let (code, told) = served.post("/api/call", &json!({ "tool": "echo", "call": "a_long_call" })).refused(409);
    assert!(code == "conflict" && told.contains("a_long_call"), "{told}");
    drop(events);
    until("the call ends with its reader", || served.get("/api/calls").good() == json!([]));
    until("it is counted as cancelled", || served.world.host.counted().by_code.get("cancelled") == Some(&1));

    let unknown = served.request(
        "POST",
        "/api/call",
        &[("Accept", "text/event-stream")],
        json!({ "tool": "ecko" }).to_string().as_bytes(),
    );
    assert_eq!(unknown.refused(404).0, "not_found");
}

#[test]
fn a_running_call_is_cancelled_by_its_id_and_one_that_is_over_is_not_found() {
    let served = served();
    std::thread::scope(|scope| {
        let call =
            scope.spawn(|| served.post("/api/call", &json!({ "tool": "wait", "call": "stop_me_please" })).good());
        until("it runs", || served.get("/api/calls").good()[0]["progress"]["done"] == 1);
        assert_eq!(served.delete("/api/calls/stop_me_please").status, 204);
        let body = call.join().unwrap();
        assert_eq!((&body["ok"], &body["error"]["code"]), (&json!(false), &json!("cancelled")), "{body}");
        assert_eq!(body["call"], "stop_me_please");
    });
    assert_eq!(served.delete("/api/calls/stop_me_please").refused(404).0, "not_found");
    // Whoever breaks off a plain request has taken its call back, too.
    let body = json!({ "tool": "wait" }).to_string();
    let stream = served.send("POST", "/api/call", &[], body.as_bytes());
    until("it runs", || served.get("/api/calls").good()[0]["tool"] == "wait");
    drop(stream);
    until("it ends", || served.get("/api/calls").good() == json!([]));
}

#[test]
fn a_server_that_stops_lets_calls_finish_and_ends_streams_at_once() {
    let mut served = served();
    served.world.tool("slow", "/// Take a moment. For tests.\nfn slow() {\n    progress::status(\"at it\");\n    time::sleep(0.4);\n    \"done\"\n}\n");
    let mut events = served.events();
    assert_eq!(events.next().unwrap().name, "hello");
    let body = json!({ "tool": "slow" }).to_string();
    let mut call = served.follow("POST", "/api/call", &[], body.as_bytes());
    call.until("progress");
    served.begin_to_stop();
    while events.next().is_some() {}
    assert_eq!(call.until("result").data["text"], "done");
    served.stop();
}

#[test]
fn a_picture_of_a_result_is_there_for_the_person_and_for_the_model_and_for_nobody_by_another_name() {
    let served = served();
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    served.world.tool("paint", &format!("/// Paint. For tests.\nfn paint() {{\n    let data = base64::decode(\"{png}\");\n    images::result(\"painted\", data)\n}}\n"));
    let body = served.post("/api/call", &json!({ "tool": "paint" })).good();
    assert_eq!(body["ok"], true, "{body}");
    let part = &body["parts"][0];
    assert_eq!((&part["type"], &part["width"], &part["media_type"]), (&json!("image"), &json!(1), &json!("image/png")));
    assert_eq!(body["shown"], "painted", "the person needs no receipt: {body}");
    let id = part["id"].as_str().unwrap();
    for path in [format!("/api/tool-image/{id}"), format!("/api/tool-image/{}", id.trim_start_matches("img:"))] {
        let picture = served.get(&path);
        assert_eq!((picture.status, picture.header("content-type")), (200, Some("image/png")), "{path}");
        assert!(picture.body.starts_with(b"\x89PNG") && picture.header("cache-control").unwrap().contains("immutable"));
    }
    let seen = served.get(&format!("/api/tool-image/{id}?view=model"));
    assert!(seen.status == 200 && seen.header("content-type").is_some_and(|kind| kind.starts_with("image/")));
    for other in ["img:000000000000.png", "nothing", "..%2f..%2fetc", "%00"] {
        assert_eq!(served.get(&format!("/api/tool-image/{other}")).refused(404).0, "not_found", "{other}");
    }
    assert_eq!(served.get(&format!("/api/tool-image/{id}?view=cat")).status, 400);
}

#[test]
fn plugins_are_told_with_what_is_live_and_what_the_disk_holds() {
    let served = served();
    served.world.tool("echo", "fn echo( { oops");
    let body = served.get("/api/plugins").good();
    let names: Vec<&str> = body["plugins"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["echo", "wait"]);
    let echo = served.get("/api/plugins/echo").good();
    assert_eq!(body["plugins"][0], echo);
    assert!(echo["status"].as_str().unwrap().starts_with("live 1, disk 2 failed"), "{echo}");
    assert_eq!((&echo["diagnostics"][0]["line"], &echo["live"]), (&json!(1), &json!(1)));
    let (code, told) = served.get("/api/plugins/ecko").refused(404);
    assert!(code == "not_found" && told.contains("echo"), "{told}");
}

#[test]
fn the_reference_holds_modules_and_the_language_and_the_host_says_what_it_is() {
    let served = served();
    let docs = served.get("/api/docs").good();
    let modules = docs["modules"].as_array().unwrap();
    let json_module = modules.iter().find(|m| m["name"] == "json").unwrap();
    assert!(json_module["functions"].as_array().unwrap().iter().any(|f| f["name"] == "decode"));
    assert!(docs["language"]["keywords"].as_array().unwrap().contains(&json!("fn")));
    assert!(docs["language"]["functions"].as_array().unwrap().len() > 100);
    served.post("/api/call", &json!({ "tool": "echo", "arguments": { "text": "x" } })).good();
    let host = served.get("/api/host").good();
    assert_eq!(
        (&host["name"], &host["plugins"], &host["tools"], &host["calls"]),
        (&json!("lapidary"), &json!(2), &json!(2), &json!(1))
    );
    assert!(host["started_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn half_a_request_holds_nobody_up() {
    let served = served();
    let mut half = served.connect();
    half.write_all(b"POST /api/call HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n").unwrap();
    assert_eq!(served.post("/api/call", &json!({ "tool": "echo", "arguments": { "text": "x" } })).good()["text"], "x");
}

#[test]
fn shipped_plugins_are_there_too() {
    let world = World::with(|b| b.watching(Watching::Off).shipped(Shipped::All));
    let served = Served::of(world);
    let body = served.get("/api/plugins/clock").good();
    assert_eq!(body["origin"], "shipped");
}
