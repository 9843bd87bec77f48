//! MCP over standard input and output, with the real program as a child and a plain JSON-RPC client.

use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long anything may take before a test counts as hung.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Tools that the tests call.
pub const ECHO: &str = r#"//! Echo.
const EMOJI = "🔊";
/// Say a text back. For tests.
///
/// @param {string} text - What to say.
/// @param {integer} count=1 - How often.
/// @local
fn echo(text, count) { text }
/// Count steps. For tests.
///
/// @param {integer} steps=3 - How many.
/// @local
fn steps(steps) { for n in 1..=steps { progress::status(`step ${n}`); progress::step(n, steps); } "counted" }
/// Work for a while. For tests.
///
/// @param {integer} turns=300000 - How long.
/// @local
fn work(turns) { let n = 0; while n < turns { n += 1; } `worked ${n}` }
/// Never end. For tests.
///
/// @local
fn forever() { loop {} }
"#;

/// A tool whose description holds `text`.
pub fn greet(text: &str, answer: &str) -> String {
    format!("//! Greet.\n/// {text}\n///\n/// @local\nfn greet() {{ \"{answer}\" }}\n")
}

/// A folder with these single-file plugins.
pub fn folder(tools: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in tools {
        save(dir.path(), &format!("user/tools/{name}.rhai"), text);
    }
    dir
}

/// Saves a file as an editor does: a new one moved over the old.
pub fn save(root: &Path, relative: &str, text: &str) {
    let path = root.join(relative);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let half = path.with_extension("tmp~");
    std::fs::write(&half, text).unwrap();
    std::fs::rename(&half, &path).unwrap();
}

/// The program, with nothing of this process's own installation.
pub fn program(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lapidary"));
    command
        .arg("--root")
        .arg(root)
        .env("LAPIDARY_CREDENTIALS_STORE", "file")
        .env_remove("LAPIDARY_ROOT")
        .env_remove("LAPIDARY_TOKEN")
        .env_remove("LAPIDARY_LOG");
    command
}

struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    replies: HashMap<String, Value>,
    notes: VecDeque<Value>,
    next: i64,
}

impl Client {
    fn start(root: &Path, options: &[&str]) -> Client {
        let mut child = program(root)
            .arg("mcp")
            .args(options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (tx, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                // Only protocol may stand there; anything else fails whoever waits.
                let message = serde_json::from_str(&line).unwrap_or_else(|_| json!({ "garbage": line }));
                if tx.send(message).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take();
        Client { child, input, lines, replies: HashMap::new(), notes: VecDeque::new(), next: 0 }
    }

    /// A client that has shaken hands.
    fn open(root: &Path, options: &[&str]) -> Client {
        let mut client = Client::start(root, options);
        client.hello("2025-06-18");
        client
    }

    fn hello(&mut self, version: &str) -> Value {
        let client = json!({ "name": "tests", "version": "1" });
        let hello = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
        let reply = self.ask("initialize", hello);
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        reply["result"].clone()
    }

    fn raw(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, message: &Value) {
        self.raw(&message.to_string());
    }

    /// Takes in one more message; false at the end of the output.
    #[track_caller]
    fn pump(&mut self) -> bool {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(message) if message.get("garbage").is_some() => panic!("not protocol: {message}"),
            Ok(message) if message.get("method").is_some() => self.notes.push_back(message),
            Ok(message) => {
                self.replies.insert(message["id"].to_string(), message);
            }
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(RecvTimeoutError::Timeout) => panic!("no message came"),
        }
        true
    }

    #[track_caller]
    fn reply(&mut self, id: &Value) -> Value {
        loop {
            if let Some(reply) = self.replies.remove(&id.to_string()) {
                return reply;
            }
            assert!(self.pump(), "the program ended before it answered {id}");
        }
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = json!(self.next);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.reply(&id)
    }

    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    #[track_caller]
    fn text(&mut self, tool: &str, arguments: Value) -> String {
        let reply = self.call(tool, arguments);
        assert_eq!(reply["result"]["isError"], false, "{reply}");
        reply["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    fn fails(&mut self, tool: &str, arguments: Value) -> String {
        let reply = self.call(tool, arguments);
        assert_eq!(reply["result"]["isError"], true, "{reply}");
        reply["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    fn tools(&mut self) -> Vec<Value> {
        self.ask("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone()
    }

    fn tool(&mut self, name: &str) -> Option<Value> {
        self.tools().into_iter().find(|t| t["name"] == name)
    }

    /// Waits for the next notification of this kind.
    #[track_caller]
    fn note(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notes.iter().position(|note| note["method"] == method) {
                return self.notes.remove(at).unwrap();
            }
            assert!(self.pump(), "the program ended before it said {method}");
        }
    }

    /// How many notifications of this kind have come, after everything sent so far was answered.
    fn count(&mut self, method: &str) -> usize {
        self.ask("ping", json!({}));
        self.notes.iter().filter(|note| note["method"] == method).count()
    }

    /// Closes the input and waits for the end; what came until then is in `replies`.
    fn close(&mut self) -> Option<i32> {
        drop(self.input.take());
        while self.pump() {}
        self.child.wait().unwrap().code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const CHANGED: &str = "notifications/tools/list_changed";

#[test]
fn every_revision_with_a_handshake_is_spoken() {
    let dir = folder(&[("echo", ECHO)]);
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::start(dir.path(), &[]);
        let hello = client.hello(version);
        assert_eq!(hello["protocolVersion"], version);
        assert_eq!(hello["capabilities"]["tools"]["listChanged"], true);
        assert_eq!(hello["serverInfo"]["name"], "lapidary");
        assert_eq!(client.text("echo", json!({ "text": version })), version);
        assert_eq!(client.close(), Some(0));
    }
    let mut client = Client::start(dir.path(), &[]);
    assert_eq!(client.hello("1999-01-01")["protocolVersion"], "2025-11-25");
}

#[test]
fn the_revision_without_a_handshake_is_spoken() {
    let dir = folder(&[("echo", ECHO), ("greet", &greet("Greet somebody. For tests.", "hello"))]);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "tests", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut client = Client::start(dir.path(), &[]);
    let found = client.ask("server/discover", json!({ "_meta": meta }));
    assert!(found["result"]["supportedVersions"].as_array().unwrap().contains(&json!("2026-07-28")), "{found}");
    let list = client.ask("tools/list", json!({ "_meta": meta }));
    assert_eq!(list["result"]["resultType"], "complete");
    assert!(list["result"]["ttlMs"].is_number() && list["result"]["cacheScope"].is_string());
    assert!(list["result"]["tools"].as_array().unwrap().iter().any(|t| t["name"] == "echo"), "{list}");
    let said = client.ask("tools/call", json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": meta }));
    assert_eq!(said["result"]["content"][0]["text"], "x", "{said}");
    assert_eq!(said["result"]["resultType"], "complete");

    let listening =
        client.request("subscriptions/listen", json!({ "notifications": { "toolsListChanged": true }, "_meta": meta }));
    client.note("notifications/subscriptions/acknowledged");
    save(dir.path(), "user/tools/greet.rhai", &greet("Greet warmly. For tests.", "hello"));
    let note = client.note(CHANGED);
    assert_eq!(note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], listening, "{note}");
    assert_eq!(client.close(), Some(0));
}

#[test]
fn tools_are_listed_in_one_order_with_what_their_flags_say() {
    let dir = folder(&[
        ("echo", ECHO),
        ("pad", "//! Pad.\n/// Write a line. For tests.\n///\n/// @local\n/// @writes\nfn pad() { 1 }\n"),
    ]);
    let mut client = Client::open(dir.path(), &[]);
    let names = |tools: &[Value]| tools.iter().map(|t| t["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let first = client.tools();
    assert_eq!(names(&first), names(&client.tools()));
    let mine: Vec<_> = names(&first)
        .into_iter()
        .filter(|n| ["echo", "steps", "work", "forever", "pad"].contains(&n.as_str()))
        .collect();
    assert_eq!(mine, ["echo", "steps", "work", "forever", "pad"], "by file, then in the order of the source");
    let echo = client.tool("echo").unwrap();
    assert_eq!(echo["inputSchema"]["required"], json!(["text"]));
    assert_eq!(echo["annotations"], json!({ "readOnlyHint": true, "destructiveHint": false, "openWorldHint": false }));
    assert_eq!(echo["title"], "🔊 echo");
    assert!(echo["icons"][0]["src"].as_str().unwrap().starts_with("data:image/svg+xml,"));
    let pad = client.tool("pad").unwrap();
    assert_eq!(pad["annotations"]["readOnlyHint"], false);
    assert_eq!(pad["annotations"]["destructiveHint"], true);
}

#[test]
fn an_edit_is_told_once_and_the_next_call_runs_it() {
    let dir = folder(&[("greet", &greet("Greet somebody. For tests.", "one"))]);
    let mut client = Client::open(dir.path(), &[]);
    assert_eq!(client.text("greet", json!({})), "one");
    save(dir.path(), "user/tools/greet.rhai", &greet("Greet warmly. For tests.", "two"));
    client.note(CHANGED);
    assert_eq!(client.tool("greet").unwrap()["description"], "Greet warmly. For tests.");
    assert_eq!(client.text("greet", json!({})), "two");
    // The description alone, then nothing that a model reads, then a new tool: two more notices, not three.
    save(dir.path(), "user/tools/greet.rhai", &greet("Greet coldly. For tests.", "two"));
    client.note(CHANGED);
    assert_eq!(client.tool("greet").unwrap()["description"], "Greet coldly. For tests.");
    save(dir.path(), "user/tools/greet.rhai", &greet("Greet coldly. For tests.", "three"));
    while client.text("greet", json!({})) != "three" {}
    save(dir.path(), "user/tools/echo.rhai", ECHO);
    client.note(CHANGED);
    assert!(client.tool("echo").is_some());
    assert_eq!(client.count(CHANGED), 0, "each change was told once");
}

#[test]
fn a_broken_edit_keeps_the_last_good_code_and_tells_nobody() {
    let dir = folder(&[("greet", &greet("Greet somebody. For tests.", "one"))]);
    let mut client = Client::open(dir.path(), &[]);
    save(dir.path(), "user/tools/greet.rhai", "fn greet( { oops");
    // Another plugin's arrival shows that the host has been at work since.
    save(dir.path(), "user/tools/echo.rhai", ECHO);
    client.note(CHANGED);
    assert_eq!(client.text("greet", json!({})), "one");
    assert_eq!(client.tool("greet").unwrap()["description"], "Greet somebody. For tests.");
    save(dir.path(), "user/tools/greet.rhai", &greet("Greet somebody. For tests.", "mended"));
    while client.text("greet", json!({})) != "mended" {}
    assert_eq!(client.count(CHANGED), 0);
}

#[test]
fn a_setting_changes_what_a_model_reads() {
    let script = r#"const SETTINGS = #{ NAME: "" };
fn get_tools() {
  let text = "Greet somebody. For tests.";
  let name = settings::get("NAME");
  if name != () && name != "" { text += ` Her name is ${name}.`; }
  [#{ type: "function", is_local: true, function: #{ name: "meet", description: text, parameters: #{ type: "object", properties: #{} } } }]
}
const TOOLS = [];
fn execute(name, arguments, config, settings) { [`met ${settings.NAME}`, true] }
"#;
    let dir = folder(&[("meet", script)]);
    let mut client = Client::open(dir.path(), &[]);
    assert_eq!(client.tool("meet").unwrap()["description"], "Greet somebody. For tests.");
    save(dir.path(), "user/webui/plugins/meet.json", r#"{"NAME": "Ruby"}"#);
    client.note(CHANGED);
    assert_eq!(client.tool("meet").unwrap()["description"], "Greet somebody. For tests. Her name is Ruby.");
    assert_eq!(client.text("meet", json!({})), "met Ruby");
    assert_eq!(client.count(CHANGED), 0);
}

#[test]
fn a_tool_that_is_gone_is_a_protocol_error_that_names_the_present_ones() {
    let dir = folder(&[("echo", ECHO), ("greet", &greet("Greet somebody. For tests.", "one"))]);
    let mut client = Client::open(dir.path(), &["--toolset", "echo, greet"]);
    assert_eq!(client.tools().len(), 5);
    std::fs::remove_file(dir.path().join("user/tools/greet.rhai")).unwrap();
    client.note(CHANGED);
    let error = client.call("greet", json!({}))["error"].clone();
    assert_eq!(error["code"], -32602, "{error}");
    assert!(error["message"].as_str().unwrap().contains("echo, forever, steps, work"), "{error}");
    let error = client.call("ecko", json!({}))["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("did you mean `echo`"), "{error}");
}

#[test]
fn only_the_tools_of_the_chosen_words_are_there() {
    let dir = folder(&[("echo", ECHO), ("greet", &greet("Greet somebody. For tests.", "one"))]);
    let mut client = Client::open(dir.path(), &["--toolset", "greet"]);
    let names: Vec<_> = client.tools().iter().map(|t| t["name"].clone()).collect();
    assert_eq!(names, ["greet"]);
    assert_eq!(client.text("greet", json!({})), "one");
    assert_eq!(client.call("echo", json!({ "text": "x" }))["error"]["code"], -32602);
}

#[test]
fn row_23_arguments_that_do_not_fit_are_results_that_say_what_does() {
    let dir = folder(&[("echo", ECHO)]);
    let mut client = Client::open(dir.path(), &[]);
    let text = client.fails("echo", json!({ "text": 5, "count": "many" }));
    for part in ["text", "expected a text", "got 5", "count", "example"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (arguments, part) in [
        ("\"foo\"", "not valid JSON"),
        ("[1]", "must be a JSON object"),
        ("7", "must be a JSON object"),
        (r#"{"text":"x","count":99999999999999999999}"#, "99999999999999999999"),
        (r#"{"text":"x","count":9223372036854775808}"#, "9223372036854775808"),
        (r#"{"text":"x","count":-9223372036854775809}"#, "-9223372036854775809"),
        (r#"{"text":"\ud800"}"#, "surrogate"),
        (r#"{"text":"x","count":1e999}"#, "1e999"),
    ] {
        client.raw(&format!(r#"{{"jsonrpc":"2.0","id":"{part}","method":"tools/call","params":{{"name":"echo","arguments":{arguments}}}}}"#));
        let reply = client.reply(&json!(part));
        assert_eq!(reply["result"]["isError"], true, "{arguments}: {reply}");
        assert!(reply["result"]["content"][0]["text"].as_str().unwrap().contains(part), "{arguments}: {reply}");
    }
    for exact in ["×→中文 e\u{301} שלום 👩‍👩‍👧", "a\0b", ""] {
        let expected = if exact.is_empty() { "(no output)" } else { exact };
        let said = client.text("echo", json!({ "text": exact }));
        assert!(said == expected || exact.contains('\0'), "{exact:?}: {said:?}");
    }
}

#[test]
fn lines_that_are_no_messages_are_answered_and_survived() {
    let dir = folder(&[("echo", ECHO)]);
    let mut client = Client::start(dir.path(), &[]);
    // A notification before the handshake, garbage before and after it.
    client.raw(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    client.raw("{oops");
    assert_eq!(client.reply(&Value::Null)["error"]["code"], -32700);
    client.hello("2025-06-18");
    for (line, code) in [("not json", -32700), ("[]", -32600), (r#"{"hello":1}"#, -32600), ("\u{fffd}\u{0}", -32700)] {
        client.raw(line);
        assert_eq!(client.reply(&Value::Null)["error"]["code"], code, "{line}");
    }
    client.raw(&"x".repeat((16 << 20) + 1));
    assert!(client.reply(&Value::Null)["error"]["message"].as_str().unwrap().contains("16 MiB"));
    client.raw("");
    assert_eq!(client.ask("no/such", json!({}))["error"]["code"], -32601);
    assert_eq!(client.text("echo", json!({ "text": "still here" })), "still here");
    assert_eq!(client.close(), Some(0));
}

#[test]
fn progress_comes_before_the_result_and_only_grows() {
    let dir = folder(&[("echo", ECHO)]);
    let mut client = Client::open(dir.path(), &[]);
    let params = json!({ "name": "steps", "arguments": { "steps": 5 }, "_meta": { "progressToken": "p" } });
    let reply = client.ask("tools/call", params);
    assert_eq!(reply["result"]["content"][0]["text"], "counted");
    let notes: Vec<_> = client.notes.drain(..).map(|note| note["params"].clone()).collect();
    assert!(notes.iter().all(|n| n["progressToken"] == "p"));
    let numbers: Vec<f64> = notes.iter().map(|n| n["progress"].as_f64().unwrap()).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "{numbers:?}");
    assert_eq!(numbers.last(), Some(&5.0));
    assert!(notes.iter().any(|n| n["message"] == "step 5"));
    client.text("steps", json!({}));
    assert_eq!(client.count("notifications/progress"), 0, "nobody asked");
}

#[test]
fn a_cancelled_call_gives_its_thread_back() {
    let dir = folder(&[("echo", ECHO)]);
    let mut client = Client::open(dir.path(), &[]);
    let id = client.request("tools/call", json!({ "name": "forever", "arguments": {} }));
    assert_eq!(client.text("echo", json!({ "text": "meanwhile" })), "meanwhile");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": "enough" } }));
    assert_eq!(client.text("echo", json!({ "text": "after" })), "after");
    assert_eq!(client.close(), Some(0));
    assert!(!client.replies.contains_key(&id.to_string()), "nobody waits for it any more");
}

#[test]
fn fifty_calls_at_once_each_get_their_own_answer() {
    let dir = folder(&[("echo", ECHO)]);
    let mut client = Client::open(dir.path(), &[]);
    let ids: Vec<Value> = (0..50)
        .map(|n| client.request("tools/call", json!({ "name": "echo", "arguments": { "text": format!("call {n}") } })))
        .collect();
    for (n, id) in ids.iter().enumerate() {
        assert_eq!(client.reply(id)["result"]["content"][0]["text"], format!("call {n}"));
    }
}

#[test]
fn calls_in_flight_at_the_end_of_the_input_are_answered() {
    let dir = folder(&[("echo", ECHO)]);
    let mut client = Client::open(dir.path(), &[]);
    let ids: Vec<Value> =
        (0..3).map(|_| client.request("tools/call", json!({ "name": "work", "arguments": {} }))).collect();
    assert_eq!(client.close(), Some(0));
    for id in ids {
        assert_eq!(client.replies[&id.to_string()]["result"]["content"][0]["text"], "worked 300000");
    }
}

const ALBUM: &str = r#"//! Album.
fn dot() { base64::decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==") }
/// Show a dot. For tests.
/// @local
/// @param {string} [text] - A text from elsewhere.
fn album(text) {
    let row = attachments::marker("Songs", [#{url: "/api/plugin/album/a.mp3"}]);
    images::result(`Found. ${text ?? ""}\n${row}`, dot())
}
/// Show a dot to the person. For tests.
/// @local
fn secret() { images::result("Look.", dot(), true) }
/// Find a picture. For tests.
/// @local
/// @param {string} source - Its handle.
fn look(source) { images::resolve(source).media_type }
"#;

#[test]
fn the_rest_of_a_long_result_is_a_resource() {
    let dir = folder(&[("echo", ECHO)]);
    let mut client = Client::open(dir.path(), &[]);
    let whole: String = (0..60_000).map(|n| format!("{n:05} ")).collect();
    let reply = client.call("echo", json!({ "text": whole }));
    let text = reply["result"]["content"][0]["text"].as_str().unwrap();
    let named = text.split("read the resource ").nth(1).unwrap().split(']').next().unwrap();
    let (handle, from) = named.split_once("?from=").unwrap();
    assert_eq!(text[..from.parse().unwrap()], whole[..from.parse().unwrap()]);
    let mut read = |uri: &str| client.ask("resources/read", json!({ "uri": uri }));
    let rest = read(named)["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
    assert_eq!(rest, whole[from.parse::<usize>().unwrap()..]);
    let first = read(handle)["result"]["contents"][0]["text"].as_str().unwrap().to_owned();
    assert!(
        whole.starts_with(first.split("\n\n[Of 360000 characters").next().unwrap()),
        "{}",
        &first[first.len() - 99..]
    );
    for wrong in ["result:0000000000000000", "file:///etc/passwd", &format!("{handle}?from=x")] {
        assert!(read(wrong)["error"]["message"].is_string(), "{wrong}");
    }
}

#[test]
fn a_file_that_a_tool_gave_is_read_as_a_resource_as_it_is_over_http() {
    let dir = folder(&[("echo", ECHO)]);
    let root = dir.path();
    let manifest = |name: &str, tools: &str| {
        let route =
            |path: &str, handler: &str| json!({ "path": path, "handler": format!("routes/all.rhai:{handler}") });
        let get = [("take/{id}", "take"), ("notes", "notes"), ("large", "large"), ("gone", "gone"), ("seen", "seen")];
        let mut routes: Vec<Value> = get.iter().map(|(path, handler)| route(path, handler)).collect();
        routes.push(json!({ "path": "send", "handler": "routes/all.rhai:notes", "method": "POST" }));
        save(
            root,
            &format!("user/plugins/{name}/plugin.json"),
            &json!({ "name": name, "capabilities": { "routes": routes } }).to_string(),
        );
        let text = "fn take(id) { routes::file(`takes/${id}`) }\nfn notes(query) { `notes of ${query.of ?? \"all\"} ž` }\n\
                    fn large() { routes::file(`large.wav`) }\nfn gone() { [#{ gone: true }, 404] }\nfn seen(request) { request.method + request.headers.len() }\n";
        save(root, &format!("user/plugins/{name}/routes/all.rhai"), text);
        if !tools.is_empty() {
            save(root, &format!("user/plugins/{name}/tools/t.rhai"), tools);
        }
    };
    manifest(
        "melody",
        "//! Melody.\n/// Give a file. For tests.\n/// @local\nfn give() {\n    let row = attachments::marker(\"\", [#{url: \"/api/plugin/melody/take/a-rather-long-name-of-a-take.wav\"}]);\n    `Here.\\n${row}`\n}\n",
    );
    manifest("quiet", "");
    save(root, "user/plugin_state/melody_files/takes/a-rather-long-name-of-a-take.wav", "RIFF1234");
    std::fs::File::create(root.join("user/plugin_state/melody_files/large.wav"))
        .unwrap()
        .set_len((16 << 20) + 1)
        .unwrap();
    let mut client = Client::open(root, &[]);
    let reply = client.call("give", json!({}));
    let link = reply["result"]["content"][1].clone();
    assert_eq!(link["type"], "resource_link", "{reply}");
    let uri = link["uri"].as_str().unwrap().to_owned();
    let mut read = |uri: &str| client.ask("resources/read", json!({ "uri": uri }));
    let take = read(&uri)["result"]["contents"].clone();
    assert_eq!(take, json!([{ "uri": uri, "mimeType": "audio/wav", "blob": "UklGRjEyMzQ=" }]));
    let notes = read("lapidary:/api/plugin/melody/notes?of=one%20day")["result"]["contents"][0].clone();
    assert_eq!(
        (&notes["text"], &notes["mimeType"]),
        (&json!("notes of one day ž"), &json!("text/plain; charset=utf-8"))
    );
    assert_eq!(read("lapidary:/api/plugin/melody/seen")["result"]["contents"][0]["text"], "GET0");
    for (path, told) in [
        ("/api/plugin/melody/take/none-that-is-there-and-has-a-very-long-name-indeed.wav", "cannot read"),
        ("/api/plugin/melody/take/..%2F..%2F..%2Flapidary.toml", "nothing is at this address"),
        ("/api/plugin/melody/gone", "answers 404"),
        ("/api/plugin/melody/send", "not for reading"),
        ("/api/plugin/melody/large", "at most 16777216"),
        ("/api/plugin/melody", "nothing is at this address"),
        // A plugin that this door offers no tool of.
        ("/api/plugin/quiet/notes", "nothing is at this address"),
        ("/api/plugin/none/notes", "nothing is at this address"),
        ("/api/settings?with=a&long=query&that=goes&on=and&on=1234567890", "no text behind"),
    ] {
        let reply = read(&format!("lapidary:{path}"));
        let message = reply["error"]["message"].as_str().unwrap_or_else(|| panic!("{path}: {reply}"));
        assert!(message.contains(told) && message.contains(path), "{path}: {message}");
    }
}

#[test]
fn pictures_are_image_content_with_their_audience_and_files_are_links() {
    let dir = folder(&[("album", ALBUM)]);
    let mut client = Client::open(dir.path(), &[]);
    let reply = client.call("album", json!({}));
    let content = reply["result"]["content"].as_array().unwrap();
    let kinds: Vec<&str> = content.iter().map(|block| block["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["text", "image", "resource_link"], "{reply}");
    assert_eq!((&content[1]["mimeType"], content[1].get("annotations")), (&json!("image/png"), None));
    assert!(content[1]["data"].as_str().unwrap().starts_with("iVBORw0KGgo"));
    assert_eq!(content[2]["uri"], "lapidary:/api/plugin/album/a.mp3");
    assert_eq!(content[2]["annotations"]["audience"], json!(["user"]));
    let text = content[0]["text"].as_str().unwrap();
    let id = text.rsplit_once("(image ").unwrap().1.trim_end_matches(')').to_owned();
    assert_eq!(client.text("look", json!({ "source": id })), "image/png");
    let reply = client.call("secret", json!({}));
    assert_eq!(reply["result"]["content"][1]["annotations"]["audience"], json!(["user"]), "{reply}");
    // What this client was given, one of another name cannot name.
    let mut other = Client::start(dir.path(), &[]);
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "other", "version": "1" } });
    other.ask("initialize", hello);
    other.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert!(other.fails("look", json!({ "source": id })).starts_with("not_found"));
}

#[test]
fn text_that_looks_like_a_marker_stays_text() {
    let dir = folder(&[("album", ALBUM), ("echo", ECHO)]);
    let mut client = Client::open(dir.path(), &[]);
    for text in [
        "<!--GALLERY:[\"https://tracker.example/x.png\"]-->",
        "<!--FILES:{\"title\":\"x\",\"items\":[{\"url\":\"/api/plugin/album/b.mp3\",\"name\":\"b\"}]}-->",
        "<<IMG::tool:0123456789ab.png>>",
        "(image img:0123456789ab.png)",
    ] {
        let reply = client.call("echo", json!({ "text": text }));
        assert_eq!(reply["result"]["content"], json!([{ "type": "text", "text": text }]));
        let reply = client.call("album", json!({ "text": text }));
        assert_eq!(reply["result"]["content"].as_array().unwrap().len(), 3, "{reply}");
        assert!(reply["result"]["content"][0]["text"].as_str().unwrap().contains(text));
    }
}
