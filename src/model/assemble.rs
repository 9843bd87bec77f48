//! From the pieces of an answer on the wire to a reply: text, thoughts, calls whose arguments come in parts. Pure, and patient
//! with servers: ids may be missing or doubled, names repeated, numbers left out.

use super::think::{Part, Splitter};
use super::{Delta, Finish, Reply, ToolCall, Usage};
use crate::base::error::{Error, Kind, Result};
use serde_json::Value;

/// Most calls of one reply; a list that goes on is cut here.
const MOST_CALLS: usize = 128;
/// Most bytes of a reply, everything together.
const MOST_BYTES: usize = 8 << 20;

struct Pending {
    /// The place that the server gave it.
    index: Option<u64>,
    /// The id that the server gave it, which may be another's too.
    given: String,
    call: ToolCall,
    is_told: bool,
}

/// A reply that grows.
#[derive(Default)]
pub(super) struct Assembly {
    text: String,
    thinking: String,
    splitter: Splitter,
    calls: Vec<Pending>,
    finish: Option<Finish>,
    usage: Option<Usage>,
    bytes: usize,
    has_heard: bool,
}

impl Assembly {
    /// Whether the server said why it ended.
    pub(super) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether any document of an answer came.
    pub(super) fn has_heard(&self) -> bool {
        self.has_heard
    }

    /// Whether no more calls are taken.
    pub(super) fn is_full(&self) -> bool {
        self.calls.len() >= MOST_CALLS
    }

    /// Takes one document of the stream, or a whole answer.
    ///
    /// # Errors
    /// `too_large` where the answer does not end.
    pub(super) fn take(&mut self, document: &Value, told: &mut (dyn FnMut(Delta) + Send)) -> Result<()> {
        if let Some(usage) = document.get("usage").and_then(read_usage) {
            self.usage = Some(usage);
        }
        let Some(choice) = document.get("choices").and_then(|c| c.get(0)) else {
            self.has_heard |= document.get("choices").is_some();
            return Ok(());
        };
        self.has_heard = true;
        let message = choice.get("delta").filter(|d| d.is_object()).or_else(|| choice.get("message"));
        if let Some(message) = message {
            self.message(message, told)?;
        } else if let Some(text) = choice.get("text").and_then(Value::as_str) {
            self.say(text, told)?;
        }
        if let Some(word) = choice.get("finish_reason").and_then(Value::as_str).filter(|word| !word.is_empty()) {
            self.finish = Some(match word {
                "stop" | "end_turn" | "eos" => Finish::Stop,
                "length" | "max_tokens" => Finish::Length,
                "tool_calls" | "function_call" | "tool_use" => Finish::Calls,
                "content_filter" => Finish::Filtered,
                other => Finish::Other(other.chars().take(40).collect()),
            });
        }
        Ok(())
    }

    fn message(&mut self, message: &Value, told: &mut (dyn FnMut(Delta) + Send)) -> Result<()> {
        let thought = ["reasoning_content", "reasoning"].into_iter().filter_map(|key| message.get(key)?.as_str());
        if let Some(thought) = thought.into_iter().find(|text| !text.is_empty()) {
            self.think(thought, told)?;
        }
        match message.get("content") {
            Some(Value::String(text)) => self.say(text, told)?,
            Some(Value::Array(parts)) => {
                for part in parts {
                    match part.get("type").and_then(Value::as_str) {
                        Some("thinking") => {
                            for inner in part.get("thinking").and_then(Value::as_array).into_iter().flatten() {
                                self.think(inner.get("text").and_then(Value::as_str).unwrap_or_default(), told)?;
                            }
                        }
                        _ => self.say(part.get("text").and_then(Value::as_str).unwrap_or_default(), told)?,
                    }
                }
            }
            _ => {
                if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
                    self.say(refusal, told)?;
                }
            }
        }
        for piece in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
            self.call(piece.get("index").and_then(Value::as_u64), piece, told)?;
        }
        if let Some(function) = message.get("function_call").filter(|f| f.is_object()) {
            self.call(Some(0), &serde_json::json!({"function": function}), told)?;
        }
        Ok(())
    }

    fn grow(&mut self, by: usize) -> Result<()> {
        self.bytes += by;
        if self.bytes <= MOST_BYTES {
            return Ok(());
        }
        Err(Error::new(Kind::TooLarge, format!("the model's answer is larger than {MOST_BYTES} bytes and goes on"))
            .hint("set `max_tokens` for the model, or ask for less"))
    }

    fn think(&mut self, piece: &str, told: &mut (dyn FnMut(Delta) + Send)) -> Result<()> {
        if piece.is_empty() {
            return Ok(());
        }
        self.grow(piece.len())?;
        self.thinking.push_str(piece);
        told(Delta::Thinking(piece));
        Ok(())
    }

    fn say(&mut self, piece: &str, told: &mut (dyn FnMut(Delta) + Send)) -> Result<()> {
        self.grow(piece.len())?;
        let parts = self.splitter.take(piece);
        self.parts(parts, told);
        Ok(())
    }

    fn parts(&mut self, parts: Vec<Part>, told: &mut (dyn FnMut(Delta) + Send)) {
        for part in parts {
            match part {
                Part::Text(piece) => {
                    // The empty lines between thoughts and words.
                    let piece = match self.text.is_empty() && !self.thinking.is_empty() {
                        true => piece.trim_start(),
                        false => &piece,
                    };
                    if !piece.is_empty() {
                        self.text.push_str(piece);
                        told(Delta::Text(piece));
                    }
                }
                Part::Thinking(piece) => {
                    self.thinking.push_str(&piece);
                    told(Delta::Thinking(&piece));
                }
                Part::AllThought => {
                    let text = std::mem::take(&mut self.text);
                    self.thinking.push_str(&text);
                }
            }
        }
    }

    fn call(&mut self, index: Option<u64>, piece: &Value, told: &mut (dyn FnMut(Delta) + Send)) -> Result<()> {
        let function = piece.get("function").unwrap_or(piece);
        let word = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, name) = (word(piece.get("id")), word(function.get("name")));
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.clone(),
            None | Some(Value::Null) => String::new(),
            Some(value) => value.to_string(),
        };
        self.grow(id.len() + name.len() + arguments.len())?;
        let found = self.place(index, &id, &name, &arguments);
        let at = match found {
            Some(at) => at,
            None if self.is_full() => return Ok(()),
            None => {
                if let Some(last) = self.calls.len().checked_sub(1) {
                    self.tell(last, told);
                }
                let is_taken = id.is_empty() || self.calls.iter().any(|c| c.call.id == id);
                let own = if is_taken { made_up_id() } else { id.clone() };
                let call = ToolCall { id: own, name: String::new(), arguments: String::new() };
                self.calls.push(Pending { index, given: id.clone(), call, is_told: false });
                self.calls.len() - 1
            }
        };
        let pending = &mut self.calls[at];
        if pending.given.is_empty() && !id.is_empty() {
            pending.given = id;
        }
        // A name comes once, or in parts before the arguments, or whole again with every piece.
        if pending.call.arguments.is_empty() && pending.call.name != name {
            pending.call.name.push_str(&name);
        }
        pending.call.arguments.push_str(&arguments);
        if !arguments.is_empty() {
            self.tell(at, told);
        }
        Ok(())
    }

    /// The call that a piece belongs to; `None` for a new one.
    fn place(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> Option<usize> {
        let at = match index {
            Some(index) => self.calls.iter().rposition(|c| c.index == Some(index))?,
            None if !id.is_empty() && self.calls.iter().any(|c| c.given == id) => {
                self.calls.iter().rposition(|c| c.given == id)?
            }
            None if !id.is_empty() && !name.is_empty() => return None,
            None => self.calls.len().checked_sub(1)?,
        };
        let before = &self.calls[at];
        let is_whole = serde_json::from_str::<serde::de::IgnoredAny>(&before.call.arguments).is_ok();
        // Servers that give every call the same place: a further call begins where one is whole and a name comes again.
        let begins = match name.is_empty() {
            true => false,
            false if !id.is_empty() && !before.given.is_empty() && id != before.given => {
                is_whole || before.call.arguments.is_empty()
            }
            false => is_whole && !arguments.is_empty(),
        };
        (!begins).then_some(at)
    }

    fn tell(&mut self, at: usize, told: &mut (dyn FnMut(Delta) + Send)) {
        let pending = &mut self.calls[at];
        if !pending.is_told && !pending.call.name.is_empty() {
            pending.is_told = true;
            told(Delta::CallNamed { index: at, id: &pending.call.id, name: &pending.call.name });
        }
    }

    /// The reply as far as it came.
    pub(super) fn done(mut self, told: &mut (dyn FnMut(Delta) + Send)) -> Reply {
        let parts = self.splitter.rest();
        self.parts(parts, told);
        for at in 0..self.calls.len() {
            self.tell(at, told);
        }
        let finish = match self.finish.unwrap_or(Finish::Stop) {
            Finish::Stop | Finish::Calls if !self.calls.is_empty() => Finish::Calls,
            Finish::Calls => Finish::Stop,
            other => other,
        };
        Reply {
            text: self.text,
            thinking: self.thinking,
            calls: self.calls.into_iter().map(|pending| pending.call).collect(),
            finish,
            usage: self.usage,
        }
    }
}

/// An id for a call that has none of its own.
pub(super) fn made_up_id() -> String {
    format!("call_{}", &uuid::Uuid::new_v4().simple().to_string()[..8])
}

fn read_usage(usage: &Value) -> Option<Usage> {
    let count = |key: &str, other: &str| usage.get(key).or_else(|| usage.get(other)).and_then(Value::as_u64);
    let (input, output) = (count("prompt_tokens", "input_tokens"), count("completion_tokens", "output_tokens"));
    (input.is_some() || output.is_some())
        .then(|| Usage { input: input.unwrap_or_default(), output: output.unwrap_or_default() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reply(deltas: &[Value]) -> (Reply, Vec<String>) {
        let mut heard = Vec::new();
        let mut told = |delta: Delta| {
            heard.push(match delta {
                Delta::Text(text) => format!("text {text}"),
                Delta::Thinking(text) => format!("thinking {text}"),
                Delta::CallNamed { index, name, .. } => format!("call {index} {name}"),
            });
        };
        let mut assembly = Assembly::default();
        for delta in deltas {
            assembly.take(&json!({"choices": [{"delta": delta}]}), &mut told).unwrap();
        }
        (assembly.done(&mut told), heard)
    }

    fn call(index: Value, id: Value, name: Value, arguments: Value) -> Value {
        json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]})
    }

    #[test]
    fn calls_come_together_from_whatever_pieces_servers_cut_them_into() {
        let n = Value::Null;
        let c = |i: Value, id: &str, name: &str, args: &str| {
            call(i, json!(id), if name.is_empty() { Value::Null } else { json!(name) }, json!(args))
        };
        type Row = (&'static str, Vec<Value>, Vec<(&'static str, &'static str)>);
        let rows: Vec<Row> = vec![
            ("one whole", vec![c(json!(0), "a", "roll", "{}")], vec![("roll", "{}")]),
            (
                "arguments in parts",
                vec![c(json!(0), "a", "roll", ""), c(json!(0), "", "", "{\"n\""), c(json!(0), "", "", ":1}")],
                vec![("roll", "{\"n\":1}")],
            ),
            (
                "the name again with every part",
                vec![c(json!(0), "a", "roll", "{\"n\""), c(json!(0), "a", "roll", ":1}")],
                vec![("roll", "{\"n\":1}")],
            ),
            (
                "the name again before the arguments",
                vec![c(json!(0), "a", "roll", ""), c(json!(0), "a", "roll", ""), c(json!(0), "a", "roll", "{}")],
                vec![("roll", "{}")],
            ),
            (
                "the name in parts",
                vec![c(json!(0), "a", "ro", ""), c(json!(0), "", "ll", ""), c(json!(0), "", "", "{}")],
                vec![("roll", "{}")],
            ),
            (
                "two, interleaved",
                vec![
                    c(json!(0), "a", "x", ""),
                    c(json!(1), "b", "y", ""),
                    c(json!(0), "", "", "{\"p\":1}"),
                    c(json!(1), "", "", "{\"q\":2}"),
                ],
                vec![("x", "{\"p\":1}"), ("y", "{\"q\":2}")],
            ),
            (
                "all at one place, told apart by ids",
                vec![c(json!(0), "a", "x", "{}"), c(json!(0), "b", "x", "{}")],
                vec![("x", "{}"), ("x", "{}")],
            ),
            (
                "all at one place, without ids",
                vec![c(json!(0), "", "x", "{\"p\":1}"), c(json!(0), "", "y", "{\"q\":2}")],
                vec![("x", "{\"p\":1}"), ("y", "{\"q\":2}")],
            ),
            (
                "no places, ids only",
                vec![c(n.clone(), "a", "x", "{\"p\""), c(n.clone(), "a", "", ":1}"), c(n.clone(), "b", "y", "{}")],
                vec![("x", "{\"p\":1}"), ("y", "{}")],
            ),
            ("neither place nor id", vec![c(n.clone(), "", "x", "{"), c(n, "", "", "}")], vec![("x", "{}")]),
            ("far places", vec![c(json!(u64::MAX), "a", "x", "{}")], vec![("x", "{}")]),
            (
                "doubled ids",
                vec![c(json!(0), "a", "x", "{}"), c(json!(1), "a", "y", "{}")],
                vec![("x", "{}"), ("y", "{}")],
            ),
            ("arguments cut off", vec![c(json!(0), "a", "x", "{\"n\": ")], vec![("x", "{\"n\": ")]),
            ("no arguments", vec![call(json!(0), json!("a"), json!("x"), Value::Null)], vec![("x", "")]),
            ("an object", vec![call(json!(0), json!("a"), json!("x"), json!({"n": 1}))], vec![("x", "{\"n\":1}")]),
            ("the old form", vec![json!({"function_call": {"name": "x", "arguments": "{}"}})], vec![("x", "{}")]),
        ];
        for (what, deltas, want) in rows {
            let (reply, heard) = reply(&deltas);
            let got: Vec<(&str, &str)> = reply.calls.iter().map(|c| (c.name.as_str(), c.arguments.as_str())).collect();
            assert_eq!(got, want, "{what}");
            assert_eq!(reply.finish, Finish::Calls, "{what}");
            let named: Vec<String> = want.iter().enumerate().map(|(i, (name, _))| format!("call {i} {name}")).collect();
            let mut sorted = heard.clone();
            sorted.sort();
            assert_eq!(sorted, named, "{what}");
            let ids: std::collections::BTreeSet<&str> = reply.calls.iter().map(|c| c.id.as_str()).collect();
            assert!(ids.len() == want.len() && !ids.contains(""), "{what}: {ids:?}");
        }
    }

    #[test]
    fn thoughts_come_from_every_field_and_words_from_every_form() {
        let rows = [
            (vec![json!({"content": "a"}), json!({"content": "b"})], "ab", ""),
            (vec![json!({"reasoning_content": "t"}), json!({"content": "a"})], "a", "t"),
            (vec![json!({"reasoning": "t", "reasoning_content": null}), json!({"content": "a"})], "a", "t"),
            (vec![json!({"reasoning": "t", "reasoning_content": "t"})], "", "t"),
            (vec![json!({"content": "<thi"}), json!({"content": "nk>t</think>\n\na"})], "a", "t"),
            (vec![json!({"content": [{"type": "text", "text": "a"}]})], "a", ""),
            (
                vec![
                    json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, {"type": "text", "text": "a"}]}),
                ],
                "a",
                "t",
            ),
            (vec![json!({"content": null, "refusal": "no"})], "no", ""),
            (vec![json!({"content": null}), json!({}), json!({"role": "assistant"})], "", ""),
        ];
        for (deltas, text, thinking) in rows {
            let (reply, _) = reply(&deltas);
            assert_eq!((reply.text.as_str(), reply.thinking.as_str()), (text, thinking), "{deltas:?}");
            assert_eq!(reply.finish, Finish::Stop);
        }
    }

    #[test]
    fn a_list_of_calls_without_an_end_is_cut_and_so_is_a_text() {
        let mut assembly = Assembly::default();
        let mut told = |_: Delta| {};
        for i in 0..1000 {
            let delta = call(json!(i), json!(format!("c{i}")), json!("x"), json!("{}"));
            assembly.take(&json!({"choices": [{"delta": delta}]}), &mut told).unwrap();
        }
        assert!(assembly.is_full());
        assert_eq!(assembly.done(&mut told).calls.len(), MOST_CALLS);
        let mut assembly = Assembly::default();
        let piece = json!({"choices": [{"delta": {"content": "x".repeat(1 << 20)}}]});
        let ended = (0..10).find_map(|_| assembly.take(&piece, &mut told).err());
        assert_eq!(ended.unwrap().code(), "too_large");
    }

    #[test]
    fn the_end_and_the_tokens_are_read_where_they_are_told() {
        for (word, want) in [
            ("stop", Finish::Stop),
            ("length", Finish::Length),
            ("content_filter", Finish::Filtered),
            ("tool_calls", Finish::Stop),
            ("odd", Finish::Other("odd".into())),
        ] {
            let mut assembly = Assembly::default();
            assert!(!assembly.is_finished());
            let document = json!({"choices": [{"delta": {}, "finish_reason": word}], "usage": null});
            assembly.take(&document, &mut |_| {}).unwrap();
            assert!(assembly.is_finished());
            let tail = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}});
            assembly.take(&tail, &mut |_| {}).unwrap();
            let reply = assembly.done(&mut |_| {});
            assert_eq!((reply.finish, reply.usage), (want, Some(Usage { input: 5, output: 2 })), "{word}");
        }
    }
}
