//! A model for tests of chats: a server that speaks the usual API for completions and answers by rules that a test can rely on.
//! It knows nothing of the host.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// How long an answer that is held waits for its test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A text with everything that Markdown has.
pub const RICH: &str = "# Dice\n\nSome **bold** words and `code`.\n\n1. one\n2. two\n\n```rust\nfn main() {}\n```\n\n| what | how many |\n|:--|--:|\n| dice | 2 |\n\n<img src=x onerror=alert(1)> and [a link](https://example.org/).\n\n![cat](https://example.org/cat.png)";

/// A running model. Its threads end with the test's process.
///
/// The last thing that was said decides: a result is repeated; `think` thinks first; `roll` calls `roll_dice`, `dots` calls
/// `show_dots`, `fail` a tool that is not there; `rich` gives [`RICH`]; `hold` says half, waits for [`Model::release`] and says the
/// rest; `broken` is a failure of the server. All else is repeated.
pub struct Model {
    pub port: u16,
    asked: Arc<Mutex<Vec<Value>>>,
    gate: Arc<(Mutex<usize>, Condvar)>,
}

impl Model {
    pub fn start() -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let model = Model { port, asked: Arc::default(), gate: Arc::default() };
        let (asked, gate) = (model.asked.clone(), model.gate.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, gate) = (asked.clone(), gate.clone());
                std::thread::spawn(move || answer(stream, &asked, &gate));
            }
        });
        model
    }

    /// What the host's own settings say of it.
    pub fn config(&self) -> String {
        format!(
            "[[models]]\nname = \"scripted\"\nbase_url = \"http://127.0.0.1:{}/v1\"\nmodel = \"scripted-1\"\nlocal = true\nvision = true\ntools = true\ncontext = 8192\n",
            self.port
        )
    }

    /// Lets one held answer go on.
    #[allow(dead_code, reason = "only chats hold answers")]
    pub fn release(&self) {
        *self.gate.0.lock().unwrap() += 1;
        self.gate.1.notify_all();
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Value> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, asked: &Mutex<Vec<Value>>, gate: &(Mutex<usize>, Condvar)) {
    let Some(body) = body(&stream) else { return };
    if body.is_null() {
        let list = json!({ "object": "list", "data": [{ "id": "scripted-1", "object": "model" }] }).to_string();
        let _ = write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{list}",
            list.len()
        );
        return;
    }
    asked.lock().unwrap().push(body.clone());
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let said = text_of(&last["content"]);
    if said.contains("broken") && last["role"] != "tool" {
        let told = "{\"error\": {\"message\": \"out of order\"}}";
        let _ = write!(
            stream,
            "HTTP/1.1 503 Out Of Order\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{told}",
            told.len()
        );
        return;
    }
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
    let _ = told(&mut stream, &last, &said, gate);
}

/// Says what the rules say; fails where nobody listens any more.
fn told(stream: &mut TcpStream, last: &Value, said: &str, gate: &(Mutex<usize>, Condvar)) -> std::io::Result<()> {
    let is_result = last["role"] == "tool";
    let call = [("roll", "roll_dice", "{\"sides\": 20}"), ("dots", "show_dots", "{}"), ("fail", "no_such_tool", "{}")]
        .into_iter()
        .find(|(word, _, _)| !is_result && said.contains(word));
    if said.contains("think") && !is_result {
        for word in ["First ", "I ", "think."] {
            delta(stream, &json!({ "reasoning_content": word }))?;
        }
    }
    let finish = if let Some((_, name, arguments)) = call {
        let function = json!({ "name": name, "arguments": "" });
        delta(
            stream,
            &json!({ "tool_calls": [{ "index": 0, "id": format!("call_{name}"), "type": "function", "function": function }] }),
        )?;
        delta(stream, &json!({ "tool_calls": [{ "index": 0, "function": { "arguments": arguments } }] }))?;
        "tool_calls"
    } else if said.contains("rich") {
        for piece in RICH.split_inclusive(' ') {
            delta(stream, &json!({ "content": piece }))?;
        }
        "stop"
    } else if said.contains("hold") && !is_result {
        delta(stream, &json!({ "content": "The first **half**" }))?;
        let mut open = gate.0.lock().unwrap();
        while *open == 0 {
            let (next, wait) = gate.1.wait_timeout(open, PATIENCE).unwrap();
            open = next;
            if wait.timed_out() {
                break;
            }
        }
        *open = open.saturating_sub(1);
        drop(open);
        delta(stream, &json!({ "content": " and the second." }))?;
        "stop"
    } else {
        let words = if is_result { format!("It says: {said}") } else { format!("You said: {said}") };
        for word in words.split_inclusive(' ') {
            delta(stream, &json!({ "content": word }))?;
        }
        "stop"
    };
    let usage = json!({ "prompt_tokens": 120, "completion_tokens": 12, "total_tokens": 132 });
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }], "usage": usage });
    write!(stream, "data: {end}\n\ndata: [DONE]\n\n")
}

fn delta(stream: &mut TcpStream, delta: &Value) -> std::io::Result<()> {
    let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "model": "scripted-1", "choices": [{ "index": 0, "delta": delta }] });
    write!(stream, "data: {chunk}\n\n")
}

/// The text of a message, whose content is a text or a list of parts.
fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n"),
        _ => String::new(),
    }
}

/// The body of one request; null where it has none.
fn body(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes).ok()?;
    if bytes.is_empty() { Some(Value::Null) } else { serde_json::from_slice(&bytes).ok() }
}
