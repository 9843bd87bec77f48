//! Models behind servers that behave well, badly, and not at all: what is sent, what is told, what is said where it fails.

use crate::servers::{Server, answer, closed_port, header};
use lapidary::base::error::Error;
use lapidary::model::local::{self, Offer};
use lapidary::model::{
    Content, Delta, Endpoint, Entry, Finish, Key, Keys, Message, Model, Reply, Request, ToolCall, Usage, repair,
};
use lapidary::net::{Client, Rules, Target};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const KEY: &str = "sk-very-secret-1";

/// A key for one host.
struct OneHost(&'static str);

impl Rules for OneHost {
    fn permit(&self, target: Target) -> Result<(), Error> {
        match target.host == self.0 {
            true => Ok(()),
            false => Err(Error::denied(format!("the credential may not be sent to `{}`", target.host))),
        }
    }

    fn redact(&self, bytes: Vec<u8>) -> Result<Vec<u8>, Error> {
        Ok(String::from_utf8_lossy(&bytes).replace(KEY, "***").into_bytes())
    }
}

fn keys() -> Keys {
    Arc::new(|name| match name {
        "mine" => Ok(Key { header: format!("Bearer {KEY}"), rules: Box::new(OneHost("127.0.0.1")) }),
        "other" => Ok(Key { header: format!("Bearer {KEY}"), rules: Box::new(OneHost("api.example.org")) }),
        name => Err(Error::not_found(format!("there is no credential `{name}`"))),
    })
}

fn entry(port: u16) -> Entry {
    Entry::new("test", &format!("http://127.0.0.1:{port}/v1"), "m-1").unwrap()
}

fn model(entry: Entry) -> Endpoint {
    Endpoint::new(entry, Client::loopback_only(), keys()).with_backoff(Duration::from_millis(1))
}

fn ask(model: &dyn Model, request: &Request) -> (Vec<String>, Result<Reply, Error>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut heard = Vec::new();
    let mut told = |delta: Delta| {
        heard.push(match delta {
            Delta::Text(text) => text.to_owned(),
            Delta::Thinking(text) => format!("({text})"),
            Delta::CallNamed { index, id, name } => format!("[{index} {id} {name}]"),
        });
    };
    let reply = runtime.block_on(model.reply(request, &mut told));
    (heard, reply)
}

fn hello() -> Vec<Message> {
    vec![Message::System("be short".into()), Message::User(vec![Content::Text("hi".into())])]
}

/// What a server's bytes come to, with the usual request.
fn answered(bytes: Vec<u8>) -> (Vec<String>, Result<Reply, Error>) {
    let server = Server::http(move |_| bytes.clone());
    let messages = hello();
    ask(&model(entry(server.port)), &Request { messages: &messages, ..Request::default() })
}

fn streamed(body: impl AsRef<[u8]>) -> Vec<u8> {
    answer("200 OK", "content-type: text/event-stream\r\n", body.as_ref())
}

fn event(delta: Value, finish: Option<&str>) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}))
}

/// A server that writes these pieces one after the other without a length, then holds the line or closes it.
fn pieces(pieces: Vec<Vec<u8>>, holds: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0_u8; 65536];
            let _ = stream.read(&mut buffer);
            let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
            let _ = stream.write_all(head);
            for piece in &pieces {
                let _ = stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes());
                let _ = stream.write_all(piece).and_then(|()| stream.write_all(b"\r\n")).and_then(|()| stream.flush());
            }
            if holds {
                // Until the client goes away.
                while matches!(stream.read(&mut buffer), Ok(n) if n > 0) {}
            }
        }
    });
    port
}

#[test]
fn a_stream_is_told_piece_by_piece_and_asked_for_in_the_form_of_the_wire() {
    let body = [
        ": a comment\r\n\r\n".to_owned(),
        event(json!({"role": "assistant", "content": ""}), None),
        event(json!({"reasoning_content": "hm"}), None),
        event(json!({"content": "Hel"}), None),
        event(json!({"content": "lo"}), None),
        event(json!({}), Some("stop")),
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\r\n\r\n".to_owned(),
        "data: [DONE]\n\n".to_owned(),
    ]
    .concat();
    let server = Server::http(move |_| streamed(&body));
    let mut entry = entry(server.port);
    entry.credential = "mine".into();
    entry.temperature = Some(0.5);
    let messages = hello();
    let tools = [json!({"type": "function", "function": {"name": "roll", "parameters": {"type": "object"}}})];
    let request = Request { messages: &messages, tools: &tools, temperature: None, max_tokens: Some(64) };
    let (heard, reply) = ask(&model(entry), &request);
    assert_eq!(heard, ["(hm)", "Hel", "lo"]);
    let reply = reply.unwrap();
    assert_eq!((reply.text.as_str(), reply.thinking.as_str()), ("Hello", "hm"));
    assert_eq!((reply.finish, reply.usage), (Finish::Stop, Some(Usage { input: 7, output: 2 })));
    let seen = server.seen();
    assert_eq!(seen.len(), 1);
    assert!(seen[0].starts_with("POST /v1/chat/completions "), "{}", seen[0]);
    assert_eq!(header(&seen[0], "authorization"), Some(format!("Bearer {KEY}").as_str()));
    let sent: Value = serde_json::from_str(seen[0].split_once("\r\n\r\n").unwrap().1).unwrap();
    assert_eq!(sent["messages"][0], json!({"role": "system", "content": "be short"}));
    assert_eq!((&sent["model"], &sent["stream"], &sent["max_tokens"]), (&json!("m-1"), &json!(true), &json!(64)));
    assert_eq!((&sent["temperature"], &sent["tools"][0]), (&json!(0.5), &tools[0]));
}

#[test]
fn a_stream_is_the_same_however_the_network_cuts_it() {
    let whole = [
        event(json!({"content": "\u{e9}\u{1f600} "}), None),
        event(
            json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "roll", "arguments": "{\"n\""}}]}),
            None,
        ),
        event(json!({"tool_calls": [{"index": 0, "function": {"arguments": ":2}"}}]}), None).replace('\n', "\r\n"),
        event(json!({}), Some("tool_calls")),
    ]
    .concat()
    .into_bytes();
    for size in [1, 3, 7, 64, 4096] {
        let port = pieces(whole.chunks(size).map(<[u8]>::to_vec).chain([Vec::new()]).collect(), false);
        let messages = hello();
        let (heard, reply) = ask(&model(entry(port)), &Request { messages: &messages, ..Request::default() });
        let reply = reply.unwrap();
        assert_eq!(reply.text, "\u{e9}\u{1f600} ", "{size}");
        let roll = ToolCall { id: "a".into(), name: "roll".into(), arguments: "{\"n\":2}".into() };
        assert_eq!((reply.calls, reply.finish), (vec![roll], Finish::Calls), "{size}");
        assert_eq!(heard.concat(), "\u{e9}\u{1f600} [0 a roll]", "{size}");
    }
}

#[test]
fn bad_answers_become_replies_or_errors_and_never_more_than_they_hold() {
    let json = |status: &str, body: &str| answer(status, "content-type: application/json\r\n", body.as_bytes());
    let part = |text: &str| event(json!({"content": text}), None);
    type Row = (&'static str, Vec<u8>, &'static str, Result<&'static str, (&'static str, &'static str)>);
    let rows: Vec<Row> = vec![
        (
            "the server does not stream",
            json("200 OK", "{\"choices\":[{\"message\":{\"content\":\"whole\"},\"finish_reason\":\"stop\"}]}"),
            "whole",
            Ok("whole"),
        ),
        (
            "the server does not stream and does not say what it sends",
            answer("200 OK", "", b" {\"choices\":[{\"message\":{\"content\":\"whole\"}}]}"),
            "whole",
            Ok("whole"),
        ),
        ("no word of its end but the mark", streamed(part("a") + "data: [DONE]\n\n"), "a", Ok("a")),
        ("an end without the mark", streamed(part("a") + event(json!({}), Some("stop")).as_str()), "a", Ok("a")),
        (
            "a bad line in between",
            streamed(part("a") + "data: {oops\n\n" + part("b").as_str() + "data: [DONE]\n\n"),
            "ab",
            Ok("ab"),
        ),
        (
            "bytes that are no text",
            streamed(
                [b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xff\"},\"finish_reason\":\"stop\"}]}\n\n"
                    .as_slice()]
                .concat(),
            ),
            "a\u{fffd}",
            Ok("a\u{fffd}"),
        ),
        ("a stream without an end", streamed(part("half")), "half", Err(("upstream_unavailable", "broke off"))),
        (
            "a stream that ends in the middle of a line",
            streamed(part("half") + "data: {\"choices\":[{\"delta\":{\"con"),
            "half",
            Err(("upstream_unavailable", "broke off")),
        ),
        (
            "held back where it broke off",
            streamed(part("a <thi")),
            "a <thi",
            Err(("upstream_unavailable", "broke off")),
        ),
        (
            "an error in the middle",
            streamed(part("half") + "data: {\"error\":{\"message\":\"overloaded\",\"code\":529}}\n\n"),
            "half",
            Err(("upstream_unavailable", "overloaded")),
        ),
        (
            "an error with status 200",
            json("200 OK", "{\"error\":{\"message\":\"you are sending too much\",\"type\":\"rate_limit_error\"}}"),
            "",
            Err(("rate_limited", "too often")),
        ),
        ("an error as an event", streamed("data: {\"error\":\"boom\"}\n\n"), "", Err(("upstream_unavailable", "boom"))),
        ("half a document", json("200 OK", "{\"choices\":["), "", Err(("upstream_unavailable", "broke off"))),
        ("something else", json("200 OK", "{\"hello\":1}"), "", Err(("upstream_unavailable", "no answer of a model"))),
        (
            "a page",
            answer("200 OK", "content-type: text/html\r\n", b"<html>hi</html>"),
            "",
            Err(("upstream_unavailable", "no answer of a model")),
        ),
        ("nothing", answer("200 OK", "", b""), "", Err(("upstream_unavailable", "no answer of a model"))),
        (
            "somewhere else",
            answer("307 Go", "location: http://10.0.0.1/\r\n", b""),
            "",
            Err(("upstream_unavailable", "elsewhere")),
        ),
        (
            "401",
            json("401 No", "{\"error\":{\"message\":\"bad key sk-very-secret-1\"}}"),
            "",
            Err(("upstream_auth", "does not accept the key")),
        ),
        (
            "403",
            json("403 No", "{\"error\":\"for sk-very-secret-1 not here\"}"),
            "",
            Err(("upstream_auth", "for *** not here")),
        ),
        ("404", json("404 No", "{\"error\":{\"message\":\"no such model\"}}"), "", Err(("not_found", "`m-1`"))),
        ("402", json("402 No", "{}"), "", Err(("quota", "credit"))),
        (
            "400 context",
            json("400 No", "{\"error\":{\"message\":\"maximum context length is 10 tokens\"}}"),
            "",
            Err(("too_large", "no room")),
        ),
        (
            "400 tools",
            json("400 No", "{\"error\":{\"message\":\"m-1 does not support tools\"}}"),
            "",
            Err(("invalid_arguments", "these tools")),
        ),
    ];
    for (what, bytes, told, want) in rows {
        let server = Server::http(move |_| bytes.clone());
        let mut entry = entry(server.port);
        entry.credential = "mine".into();
        let messages = hello();
        let (heard, reply) = ask(&model(entry), &Request { messages: &messages, ..Request::default() });
        assert_eq!(heard.concat(), told, "{what}");
        match (reply, want) {
            (Ok(reply), Ok(text)) => assert_eq!(reply.text, text, "{what}"),
            (Err(e), Err((code, part))) => {
                assert_eq!(e.code(), code, "{what}: {e}");
                assert!(e.message().contains(part) && e.hint_text().is_some(), "{what}: {e}");
                assert!(!e.to_string().contains(KEY), "{what}: {e}");
            }
            (reply, _) => panic!("{what}: {reply:?}"),
        }
    }
}

#[test]
fn what_passes_is_tried_again_three_times_at_most_and_only_before_the_first_word() {
    let good = || streamed(event(json!({"content": "ok"}), Some("stop")));
    let rows: Vec<(&str, Vec<u8>, usize, usize, bool)> = vec![
        ("503", answer("503 Busy", "retry-after: 0\r\n", b""), 1, 2, true),
        ("500", answer("500 Bad", "", b""), 2, 3, true),
        ("529", answer("529 Busy", "", b""), 9, 3, false),
        ("429", answer("429 Slow", "retry-after: 0.001\r\n", b""), 2, 3, true),
        ("429 for a long time", answer("429 Slow", "retry-after: 3000\r\n", b""), 9, 1, false),
        ("no credit", answer("429 Pay", "", b"{\"error\":{\"message\":\"insufficient_quota\"}}"), 9, 1, false),
        ("400", answer("400 Bad", "", b"{}"), 9, 1, false),
        ("401", answer("401 Who", "", b"{}"), 9, 1, false),
        ("the line breaks", Vec::new(), 2, 3, true),
        ("broken before a word", streamed(event(json!({"role": "assistant"}), None)), 1, 2, true),
        ("broken after a word", streamed(event(json!({"content": "x"}), None)), 9, 1, false),
        ("it takes no stream_options", answer("400 Bad", "", b"{\"error\":\"unknown stream_options\"}"), 1, 2, true),
    ];
    for (what, bad, fails, asked, ok) in rows {
        let count = Arc::new(AtomicUsize::new(0));
        let (counted, good) = (count.clone(), good());
        let server = Server::http(move |_| match counted.fetch_add(1, Ordering::AcqRel) < fails {
            true => bad.clone(),
            false => good.clone(),
        });
        let messages = hello();
        let (_, reply) = ask(&model(entry(server.port)), &Request { messages: &messages, ..Request::default() });
        assert_eq!((count.load(Ordering::Acquire), reply.is_ok()), (asked, ok), "{what}: {reply:?}");
    }
}

#[test]
fn a_server_that_is_not_there_or_falls_silent_is_told_with_what_to_do() {
    let messages = hello();
    let request = Request { messages: &messages, ..Request::default() };
    let (_, reply) = ask(&model(entry(closed_port())), &request);
    let error = reply.unwrap_err();
    assert!(error.message().contains("is not running"), "{error}");
    assert!(error.hint_text().unwrap().contains("start the server"), "{error}");

    let mut silent = entry(Server::stalling(b"").port);
    silent.pace.first = Duration::from_millis(50);
    let error = ask(&model(silent), &request).1.unwrap_err();
    assert_eq!((error.code(), error.message().contains("does not answer")), ("timeout", true), "{error}");

    let mut stalled = entry(pieces(vec![event(json!({"content": "half"}), None).into_bytes()], true));
    stalled.pace.idle = Duration::from_millis(50);
    let (heard, reply) = ask(&model(stalled), &request);
    let error = reply.unwrap_err();
    assert_eq!((heard.concat().as_str(), error.code()), ("half", "timeout"));
    assert!(error.message().contains("broke off"), "{error}");

    let mut done = entry(pieces(vec![event(json!({"content": "all"}), Some("stop")).into_bytes()], true));
    done.pace.idle = Duration::from_millis(50);
    assert_eq!(ask(&model(done), &request).1.unwrap().text, "all");
}

#[test]
fn a_key_goes_to_its_own_hosts_only_and_a_missing_one_is_told() {
    let server = Server::http(|_| streamed(event(json!({"content": "ok"}), Some("stop"))));
    let messages = hello();
    for (credential, code) in [("other", "permission_denied"), ("none", "not_found")] {
        let mut entry = entry(server.port);
        entry.credential = credential.into();
        let (_, reply) = ask(&model(entry), &Request { messages: &messages, ..Request::default() });
        let error = reply.unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(!error.to_string().contains(KEY));
    }
    assert!(server.seen().is_empty());
}

#[test]
fn a_list_of_calls_without_an_end_is_cut() {
    let calls: String = (0..5000)
        .map(|i| {
            let call = json!({"index": i, "id": format!("c{i}"), "function": {"name": "x", "arguments": "{}"}});
            event(json!({"tool_calls": [call]}), None)
        })
        .collect();
    let reply = answered(streamed(calls)).1.unwrap();
    assert_eq!((reply.calls.len(), reply.finish), (128, Finish::Calls));
}

#[test]
fn dropping_a_reply_ends_the_connection() {
    let port = pieces(vec![event(json!({"content": "a"}), None).into_bytes()], true);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (model, messages) = (model(entry(port)), hello());
    let request = Request { messages: &messages, ..Request::default() };
    let (tx, rx) = tokio::sync::oneshot::channel();
    let mut tx = Some(tx);
    let mut told = move |_: Delta| {
        if let Some(tx) = tx.take() {
            tx.send(()).unwrap();
        }
    };
    runtime.block_on(async {
        tokio::select! {
            reply = model.reply(&request, &mut told) => panic!("{reply:?}"),
            heard = rx => heard.unwrap(),
        }
    });
}

#[test]
fn servers_on_this_machine_are_found_offered_and_live_once_accepted() {
    let list = |body: &'static str| Server::http(move |_| answer("200 OK", "", body.as_bytes()));
    let good = Server::http(|request| match request.starts_with("GET /v1/models ") {
        true => answer("200 OK", "", b"{\"object\":\"list\",\"data\":[{\"id\":\"m-1\"},{\"id\":\"\"},{\"id\":7}]}"),
        false => streamed(event(json!({"content": "found"}), Some("stop"))),
    });
    let (page, empty) = (list("<html>"), list("{\"data\":[]}"));
    let away = Server::http(|_| answer("307 Go", "location: http://10.0.0.1/\r\n", b""));
    let ports = [closed_port(), page.port, good.port, empty.port, away.port].map(|port| (port, "some server"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let offers = runtime.block_on(local::find_on(&Client::loopback_only(), &ports));
    let base_url = format!("http://127.0.0.1:{}/v1", good.port);
    assert_eq!(offers, [Offer { base_url, kind: "some server".into(), models: vec!["m-1".into()] }]);

    let root = tempfile::tempdir().unwrap();
    let host = lapidary::Host::builder().root(root.path()).watching(lapidary::Watching::Off).offline().start().unwrap();
    assert!(host.models().first().is_none());
    host.accept_model(&offers[0], "m-1").unwrap();
    let model = host.models().first().unwrap();
    assert_eq!((model.profile().name.as_str(), model.profile().local), ("local", true));
    let messages = hello();
    let reply = ask(&*model, &Request { messages: &messages, ..Request::default() }).1.unwrap();
    assert_eq!(reply.text, "found");
    drop(host);
    let again =
        lapidary::Host::builder().root(root.path()).watching(lapidary::Watching::Off).offline().start().unwrap();
    assert_eq!(again.models().profiles(), [model.profile().clone()]);
}

/// Against a real server: `LAPIDARY_TEST_MODEL=http://127.0.0.1:8081/v1 cargo test --test it models::a_real_model -- --nocapture`.
#[test]
fn a_real_model_calls_a_tool_and_speaks_of_what_came_of_it() {
    let Ok(url) = std::env::var("LAPIDARY_TEST_MODEL") else {
        eprintln!(
            "skipped: LAPIDARY_TEST_MODEL is not set to the address of a model's server, such as http://127.0.0.1:8081/v1"
        );
        return;
    };
    let name = std::env::var("LAPIDARY_TEST_MODEL_NAME").unwrap_or_else(|_| "qwen2.5-coder-1.5b-instruct".into());
    let model = model(Entry::new("real", &url, name).unwrap());
    let tools = [json!({"type": "function", "function": {
        "name": "get_weather", "description": "The weather in a city now.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}})];
    let system = "You are a helpful assistant. Use the tools for facts, then answer in one short sentence.";
    let question = Content::Text("What is the weather in Rome right now?".into());
    let mut messages = vec![Message::System(system.into()), Message::User(vec![question])];
    let request = Request { messages: &messages, tools: &tools, temperature: Some(0.0), max_tokens: Some(200) };
    let (heard, reply) = ask(&model, &request);
    let mut reply = reply.unwrap();
    eprintln!("first: {heard:?} {reply:?}");
    if reply.calls.is_empty() {
        let (text, calls) = repair::calls_in_text(&reply.text).expect("a call, natively or in the text");
        (reply.text, reply.calls) = (text, calls);
    }
    assert_eq!(reply.calls[0].name, "get_weather");
    let arguments: Value = serde_json::from_str(&reply.calls[0].arguments).unwrap();
    assert!(arguments["city"].as_str().unwrap().contains("Rome"), "{arguments}");
    let result = Message::Tool {
        call: reply.calls[0].id.clone(),
        name: "get_weather".into(),
        text: "ok\n{\"temperature_c\": 21, \"sky\": \"sunny\"}".into(),
    };
    messages.push(Message::Assistant { text: reply.text, calls: vec![reply.calls[0].clone()] });
    messages.push(result);
    let request = Request { messages: &messages, tools: &tools, temperature: Some(0.0), max_tokens: Some(200) };
    let (heard, reply) = ask(&model, &request);
    let reply = reply.unwrap();
    eprintln!("second, in {} pieces: {reply:?}", heard.len());
    assert!(reply.text.contains("21"), "{}", reply.text);
    assert!(heard.len() > 1, "it came in one piece");
}
