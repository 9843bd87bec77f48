//! One JSON-RPC message as bytes, before the SDK reads it and after it wrote it. It knows no tool and no transport.
//! Arguments that a JSON reader would round, refuse or take half of travel on as text, for the exact parser of the dispatcher to
//! judge.

mod once;

use crate::base::json;
use once::Once;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, JsonObject, ListToolsRequest,
    RequestId, RequestMetaObject,
};
use serde::Deserialize;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::ops::Range;

/// Digits from which on an integer may not fit 64 bits.
const WIDE: usize = 19;

/// What a line holds.
pub(super) enum Read {
    /// A message for the SDK.
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that anybody waits for: a blank line, a notification that MCP does not know.
    Nothing,
    /// No message; this is the answer to it.
    Refused(Vec<u8>),
}

/// A message, read once.
#[cfg_attr(not(feature = "server"), expect(dead_code, reason = "lines are read for what they hold alone"))]
pub(super) struct Opened<'a> {
    /// The text that the SDK would read it from.
    pub(super) text: Cow<'a, [u8]>,
    /// What it holds.
    pub(super) read: Read,
    /// Whether it is one of those that come by the thousand, and nothing about it is unusual.
    pub(super) is_frequent: bool,
}

/// Reads one line.
pub(super) fn read(line: &[u8]) -> Read {
    open(line).read
}

/// Reads a message.
pub(super) fn open(message: &[u8]) -> Opened<'_> {
    let line = message.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(message).trim_ascii();
    if line.is_empty() {
        return Opened { text: line.into(), read: Read::Nothing, is_frequent: false };
    }
    let mut packed = if is_suspicious(line) { prepare(line) } else { None };
    if let Some(message) = frequent(packed.as_deref().unwrap_or(line)) {
        return Opened { text: either(packed, line), read: Read::Message(Box::new(message)), is_frequent: true };
    }
    if packed.is_none() {
        packed = prepare(line);
    }
    let error = match serde_json::from_slice(packed.as_deref().unwrap_or(line)) {
        Ok(message) => return Opened { text: either(packed, line), read: Read::Message(message), is_frequent: false },
        Err(error) => error,
    };
    if packed.is_none()
        && let Some(packed) = pack(line)
        && let Ok(message) = serde_json::from_slice(&packed)
    {
        return Opened { text: packed.into(), read: Read::Message(message), is_frequent: false };
    }
    Opened { text: line.into(), read: refuse(line, &error), is_frequent: false }
}

fn either(packed: Option<Vec<u8>>, line: &[u8]) -> Cow<'_, [u8]> {
    packed.map_or(Cow::Borrowed(line), Cow::Owned)
}

fn refuse(line: &[u8], error: &serde_json::Error) -> Read {
    let id = member(line, 0..line.len(), "id").and_then(|at| serde_json::from_slice::<Value>(&line[at]).ok());
    let id = id.filter(|id| id.is_string() || id.is_number()).unwrap_or(Value::Null);
    let reply = |code: i64, message: String| {
        let mut bytes = json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
            .to_string()
            .into_bytes();
        bytes.push(b'\n');
        Read::Refused(bytes)
    };
    match json::parse_bytes(line) {
        Err(e) => reply(-32700, format!("this is not JSON: {e}")),
        Ok(Value::Array(_)) => reply(-32600, "batches are not taken; send one message at a time".to_owned()),
        // A notification waits for no answer, whatever is wrong with it.
        Ok(Value::Object(map)) if map.contains_key("method") && !map.contains_key("id") => Read::Nothing,
        Ok(_) => reply(-32600, format!("this is not a JSON-RPC 2.0 message: {error}")),
    }
}

/// The two requests that come by the thousand, read in one pass. Anything unusual about one is left to the SDK's reader.
fn frequent(line: &[u8]) -> Option<ClientJsonRpcMessage> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Message<'a> {
        jsonrpc: &'a str,
        id: RequestId,
        method: &'a str,
        #[serde(default)]
        params: Params,
    }
    #[derive(Deserialize, Default)]
    #[serde(deny_unknown_fields)]
    struct Params {
        name: Option<String>,
        arguments: Option<Once<JsonObject>>,
        #[serde(rename = "_meta")]
        meta: Option<RequestMetaObject>,
    }
    let message: Message = serde_json::from_slice(line).ok()?;
    if message.jsonrpc != "2.0" {
        return None;
    }
    let Params { name, arguments, meta } = message.params;
    let request = match (message.method, name) {
        ("tools/call", Some(name)) => {
            let mut params = CallToolRequestParams::new(name);
            params.arguments = arguments.map(|Once(arguments)| arguments);
            let mut request = CallToolRequest::new(params);
            if let Some(meta) = meta {
                request.extensions.insert(meta);
            }
            ClientRequest::CallToolRequest(request)
        }
        ("tools/list", None) if arguments.is_none() => {
            let mut request = ListToolsRequest::default();
            if let Some(meta) = meta {
                request.extensions.insert(meta);
            }
            ClientRequest::ListToolsRequest(request)
        }
        _ => return None,
    };
    Some(ClientJsonRpcMessage::request(request, message.id))
}

/// The message with its arguments as text, where a JSON reader would round or refuse them or take one of two values; `None` where
/// it can stay as it is.
fn prepare(message: &[u8]) -> Option<Vec<u8>> {
    let at = arguments(message)?;
    let text = std::str::from_utf8(&message[at]).ok()?;
    if !is_suspicious(text.as_bytes()) && serde_json::from_str::<Once<Value>>(text).is_ok() {
        return None;
    }
    if json::parse_untrusted(text).is_ok() { None } else { pack(message) }
}

/// Whether a message may hold what only the exact parser reads right: a long run of digits, or half of a surrogate pair.
fn is_suspicious(message: &[u8]) -> bool {
    let mut digits = 0;
    for (at, byte) in message.iter().enumerate() {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        if digits == WIDE {
            return true;
        }
        let surrogate = *byte == b'\\'
            && matches!(
                message.get(at + 1..at + 4),
                Some([b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F'])
            );
        if surrogate {
            return true;
        }
    }
    false
}

/// The message with its arguments as one JSON text.
fn pack(message: &[u8]) -> Option<Vec<u8>> {
    let at = arguments(message)?;
    if !matches!(message[at.start], b'{' | b'[' | b'-' | b'0'..=b'9') {
        return None;
    }
    let text = std::str::from_utf8(&message[at.clone()]).ok()?;
    let mut packed = Vec::with_capacity(message.len() + 64);
    packed.extend_from_slice(&message[..at.start]);
    serde_json::to_writer(&mut packed, text).ok()?;
    packed.extend_from_slice(&message[at.end..]);
    Some(packed)
}

/// Where `params.arguments` stands.
fn arguments(message: &[u8]) -> Option<Range<usize>> {
    let params = member(message, 0..message.len(), "params")?;
    member(message, params, "arguments")
}

/// Where the value of `key` stands in the object at `object`, the last one where there are several. It looks only as far as
/// the text can be followed, so that the id of a broken message may still be found.
fn member(bytes: &[u8], object: Range<usize>, key: &str) -> Option<Range<usize>> {
    let mut walk = Walk { bytes: &bytes[..object.end], at: object.start };
    let mut found = None;
    walk.space();
    if walk.next()? != b'{' {
        return None;
    }
    while let Some((name, value)) = walk.entry() {
        let name = &bytes[name];
        let hit = if name.contains(&b'\\') {
            serde_json::from_slice::<String>(name).is_ok_and(|name| name == key)
        } else {
            name.get(1..name.len() - 1) == Some(key.as_bytes())
        };
        if hit {
            found = Some(value);
        }
    }
    found
}

/// Follows JSON without understanding it: strings, and brackets that close.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The next `"key": value` of an object, with the comma after it.
    fn entry(&mut self) -> Option<(Range<usize>, Range<usize>)> {
        self.space();
        let start = self.at;
        self.string()?;
        let key = start..self.at;
        self.space();
        if self.next()? != b':' {
            return None;
        }
        self.space();
        let start = self.at;
        self.value()?;
        let value = start..self.at;
        self.space();
        if self.peek() == Some(b',') {
            self.at += 1;
        }
        Some((key, value))
    }

    fn string(&mut self) -> Option<()> {
        if self.next()? != b'"' {
            return None;
        }
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => {
                    self.next()?;
                }
                _ => {}
            }
        }
    }

    fn value(&mut self) -> Option<()> {
        match self.peek()? {
            b'"' => self.string(),
            b'{' | b'[' => {
                let mut depth = 0_usize;
                loop {
                    match self.peek()? {
                        b'"' => {
                            self.string()?;
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    self.at += 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
            }
            _ => {
                let start = self.at;
                while self.peek().is_some_and(|b| !matches!(b, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r')) {
                    self.at += 1;
                }
                (self.at > start).then_some(())
            }
        }
    }
}

/// The end of a message that lists no tools. A list result is the only message that ends so, and no text in one can hold these
/// bytes, for there the quotes are escaped.
const NO_TOOLS: &[u8] = b"\"tools\":[]}}";
/// Longest message that is looked at: an empty list is short, and a long result is not searched for nothing.
const SHORT: usize = 4096;

/// Puts the rendered tools in place of the empty list that a list result was made with; `None` for any other message.
/// What stands around the message, such as the other lines of an event, stays.
pub(super) fn splice(message: &[u8], tools: &[u8]) -> Option<Vec<u8>> {
    if message.len() > SHORT {
        return None;
    }
    let mut ends = message.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| at).chain([message.len()]);
    let end = ends.find(|end| message[..*end].ends_with(NO_TOOLS))?;
    let mut full = Vec::with_capacity(message.len() + tools.len());
    full.extend_from_slice(&message[..end - NO_TOOLS.len()]);
    full.extend_from_slice(b"\"tools\":");
    full.extend_from_slice(tools);
    full.extend_from_slice(b"}}");
    full.extend_from_slice(&message[end..]);
    Some(full)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn call(arguments: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"t","arguments":{arguments}}}}}"#)
    }

    /// What the arguments of a call become: the object itself, or their text.
    fn carried(arguments: &str) -> String {
        match read(call(arguments).as_bytes()) {
            Read::Message(message) => match *message {
                ClientJsonRpcMessage::Request(request) => match request.request {
                    ClientRequest::CallToolRequest(call) => {
                        Value::Object(call.params.arguments.unwrap_or_default()).to_string()
                    }
                    ClientRequest::CustomRequest(custom) => {
                        let packed = custom.params.unwrap()["arguments"].clone();
                        format!("text {}", packed.as_str().map_or_else(|| packed.to_string(), str::to_owned))
                    }
                    other => format!("{other:?}"),
                },
                other => format!("{other:?}"),
            },
            Read::Nothing => "nothing".to_owned(),
            Read::Refused(reply) => String::from_utf8(reply).unwrap(),
        }
    }

    #[test]
    fn row_23_wide_integers_are_never_rounded_and_of_two_values_none_is_chosen_on_the_way_in() {
        let same = [
            r#"{}"#,
            r#"{"n":1}"#,
            r#"{"n":9223372036854775807}"#,
            r#"{"n":-9223372036854775808}"#,
            // Digits in texts and fractions are no wide integers.
            r#"{"s":"99999999999999999999"}"#,
            r#"{"s":"\"99999999999999999999"}"#,
            r#"{"f":0.1234567890123456789}"#,
        ];
        for arguments in same {
            let kept: Value = serde_json::from_str(&carried(arguments)).unwrap();
            assert_eq!(kept, serde_json::from_str::<Value>(arguments).unwrap(), "{arguments}");
        }
        let packed = [
            r#"{"n":9223372036854775808}"#,
            r#"{"n":18446744073709551615}"#,
            r#"{"n":18446744073709551616}"#,
            r#"{"n":99999999999999999999}"#,
            r#"{"n":-9223372036854775809}"#,
            r#"{"n":123456789012345678901234567890}"#,
            r#"{ "deep" : [ {"n" : 99999999999999999999} ] }"#,
            r#"{"s":"}]\"{","n":99999999999999999999}"#,
            r#"{"s":"\ud800"}"#,
            r#"{"s":"\uDFFF tail"}"#,
            r#"{"n":1e999}"#,
            r#"[99999999999999999999]"#,
            r#"{"n":1,"n":2}"#,
            r#"{"a":[{"n":1,"m":2,"n":1}]}"#,
            r#"{"n":1,"\u006e":2}"#,
        ];
        for arguments in packed {
            assert_eq!(carried(arguments), format!("text {arguments}"), "{arguments}");
        }
    }

    #[test]
    fn row_23_arguments_that_are_no_object_reach_the_dispatcher_as_they_are() {
        for (arguments, expected) in [
            (r#""""#, "text "),
            (r#""foo""#, "text foo"),
            (r#""{\"n\":1}""#, r#"text {"n":1}"#),
            ("[1]", "text [1]"),
            ("7", "text 7"),
            ("true", "text true"),
            ("null", "{}"),
        ] {
            assert_eq!(carried(arguments), expected, "{arguments}");
        }
    }

    #[test]
    fn only_arguments_are_packed_wherever_they_stand() {
        let id = r#"{"jsonrpc":"2.0","id":99999999999999999999,"method":"ping"}"#;
        assert_eq!(prepare(id.as_bytes()), None);
        let early = r#"{"params":{"arguments":{"n":99999999999999999999},"name":"t"},"id":"x","method":"tools/call","jsonrpc":"2.0"}"#;
        let packed = prepare(early.as_bytes()).unwrap();
        let value: Value = serde_json::from_slice(&packed).unwrap();
        assert_eq!(value["params"]["arguments"], r#"{"n":99999999999999999999}"#);
        assert_eq!(value["params"]["name"], "t");
        assert_eq!(value["id"], "x");
        let escaped = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","argum\u0065nts":{"n":99999999999999999999}}}"#;
        let value: Value = serde_json::from_slice(&prepare(escaped.as_bytes()).unwrap()).unwrap();
        assert_eq!(value["params"]["arguments"], r#"{"n":99999999999999999999}"#);
        let elsewhere = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"n":1},"_meta":{"n":99999999999999999999}}}"#;
        assert_eq!(prepare(elsewhere.as_bytes()), None);
    }

    #[test]
    fn the_sdk_is_given_the_text_that_was_read() {
        let wide = call(r#"{"n":99999999999999999999}"#);
        let packed = call(r#""{\"n\":99999999999999999999}""#);
        let twice = call(r#"{"n":1,"n":2}"#);
        let packed_twice = call(r#""{\"n\":1,\"n\":2}""#);
        let plain = call(r#"{"n":1}"#);
        let marked = format!("\u{feff}{plain}\n");
        let rows = [(&wide, &packed), (&twice, &packed_twice), (&plain, &plain), (&marked, &plain)];
        for (message, expected) in rows {
            let Opened { text, read, .. } = open(message.as_bytes());
            assert_eq!(std::str::from_utf8(&text).unwrap(), expected);
            let Read::Message(read) = read else { panic!("{message}") };
            let again: ClientJsonRpcMessage = serde_json::from_slice(&text).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), serde_json::to_value(&again).unwrap());
        }
    }

    #[test]
    fn the_short_cut_reads_what_the_sdk_reads() {
        for line in [
            call("{}"),
            call(r#"{"text":"héllo \"q\" \u00e9","n":[1,2.5,null,{"a":true}]}"#),
            r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"t"}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{},"_meta":{"progressToken":"p","x":1}}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{"progressToken":1}}}"#.to_owned(),
        ] {
            let short = frequent(line.as_bytes()).unwrap();
            let long: ClientJsonRpcMessage = serde_json::from_str(&line).unwrap();
            assert_eq!(serde_json::to_value(&short).unwrap(), serde_json::to_value(&long).unwrap(), "{line}");
        }
    }

    #[test]
    fn the_short_cut_leaves_everything_else_alone() {
        for line in [
            r#"{"jsonrpc":"1.0","id":3,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","task":{}}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            "[]",
            "",
        ] {
            assert!(frequent(line.as_bytes()).is_none() && !open(line.as_bytes()).is_frequent, "{line}");
        }
    }

    #[test]
    fn what_is_no_message_is_answered_under_its_id_where_it_has_one() {
        let rows = [
            ("{oops", -32700, Value::Null),
            ("not json", -32700, Value::Null),
            (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name""#, -32700, json!(7)),
            ("[]", -32600, Value::Null),
            ("7", -32600, Value::Null),
            (r#"{"id":"x","hello":1}"#, -32600, json!("x")),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, Value::Null),
        ];
        for (line, code, id) in rows {
            let Read::Refused(reply) = read(line.as_bytes()) else { panic!("{line}") };
            assert_eq!(reply.last(), Some(&b'\n'));
            let reply: Value = serde_json::from_slice(&reply).unwrap();
            assert_eq!((reply["error"]["code"].as_i64(), &reply["id"]), (Some(code), &id), "{line}: {reply}");
        }
        for line in ["", "  \r", r#"{"jsonrpc":"2.0","method":7}"#] {
            assert!(matches!(read(line.as_bytes()), Read::Nothing), "{line}");
        }
    }

    #[test]
    fn a_rendered_list_takes_the_place_of_the_empty_one_and_of_nothing_else() {
        let spliced =
            |message: &str| splice(message.as_bytes(), b"[1,2]").map(|bytes| String::from_utf8(bytes).unwrap());
        let list = r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}"#;
        assert_eq!(spliced(list).unwrap(), r#"{"jsonrpc":"2.0","id":3,"result":{"tools":[1,2]}}"#);
        let event = "id: 0/1\ndata: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"ttlMs\":0,\"tools\":[]}}\n\n";
        assert!(spliced(event).unwrap().ends_with("\"ttlMs\":0,\"tools\":[1,2]}}\n\n"));
        let event = "data: {\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"tools\":[]}}\nid: 0/1\n\n";
        assert!(spliced(event).unwrap().ends_with("\"tools\":[1,2]}}\nid: 0/1\n\n"));
        for other in [
            r#"{"jsonrpc":"2.0","id":3,"result":{"structuredContent":{"a":{"tools":[]}},"isError":false}}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"{\"tools\":[]}}"}],"isError":false}}"#,
            ":\n\n",
            "",
        ] {
            assert_eq!(spliced(other), None, "{other}");
        }
    }
}
