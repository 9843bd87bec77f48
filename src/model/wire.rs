//! From a conversation to the document that is sent, in the form that OpenAI-compatible servers read. Pure.

use super::{Content, Message, Profile, Request, ToolCall};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// What a server turned out not to take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Without {
    /// `stream_options`: then there are no tokens told.
    pub(super) stream_options: bool,
    /// `max_tokens`: it is called `max_completion_tokens` there.
    pub(super) max_tokens: bool,
    /// A temperature of our choice.
    pub(super) temperature: bool,
}

/// The whole document.
pub(super) fn document(profile: &Profile, request: &Request, without: Without) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), json!(profile.model));
    body.insert("messages".into(), request.messages.iter().map(|m| message(profile, m)).collect());
    body.insert("stream".into(), json!(true));
    if !without.stream_options {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    if profile.tools && !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    if let Some(temperature) = request.temperature.filter(|_| !without.temperature) {
        body.insert("temperature".into(), json!(temperature));
    }
    if let Some(most) = request.max_tokens {
        let key = if without.max_tokens { "max_completion_tokens" } else { "max_tokens" };
        body.insert(key.into(), json!(most));
    }
    Value::Object(body)
}

/// A definition as these servers read it, whatever dialect wrote it: theirs has a function in it.
fn tool(definition: &Value) -> Value {
    if definition.get("function").is_some() || definition.get("name").is_none() {
        return definition.clone();
    }
    let mut function = definition.as_object().cloned().unwrap_or_default();
    if let Some(schema) = function.remove("input_schema") {
        function.insert("parameters".into(), schema);
    }
    json!({"type": "function", "function": function})
}

fn message(profile: &Profile, message: &Message) -> Value {
    match message {
        Message::System(text) => json!({"role": "system", "content": text}),
        Message::User(content) => json!({"role": "user", "content": said(profile, content)}),
        Message::Assistant { text, calls } if calls.is_empty() => json!({"role": "assistant", "content": text}),
        Message::Assistant { text, calls } if profile.tools => {
            let content = if text.is_empty() { Value::Null } else { json!(text) };
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| {
                    let function = json!({"name": call.name, "arguments": arguments(call)});
                    json!({"id": call.id, "type": "function", "function": function})
                })
                .collect();
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        Message::Assistant { text, calls } => {
            let mut text = text.clone();
            for call in calls {
                if !text.is_empty() {
                    text.push('\n');
                }
                let inner = format!("{{\"name\":{},\"arguments\":{}}}", json!(call.name), arguments(call));
                text.push_str(&format!("<tool_call>{inner}</tool_call>"));
            }
            json!({"role": "assistant", "content": text})
        }
        Message::Tool { call, name, text } if profile.tools => {
            json!({"role": "tool", "tool_call_id": call, "name": name, "content": text})
        }
        Message::Tool { name, text, .. } => {
            json!({"role": "user", "content": format!("[result of the tool {name}, not written by the user]\n{text}")})
        }
    }
}

/// Servers parse the arguments of past calls and fail where that cannot be done. What was wrong with them, the result says.
fn arguments(call: &ToolCall) -> &str {
    match serde_json::from_str::<Map<String, Value>>(&call.arguments) {
        Ok(_) => &call.arguments,
        Err(_) => "{}",
    }
}

fn said(profile: &Profile, content: &[Content]) -> Value {
    let has_image = content.iter().any(|part| matches!(part, Content::Image { .. }));
    if has_image && profile.vision {
        let parts = content.iter().map(|part| match part {
            Content::Text(text) => json!({"type": "text", "text": text}),
            Content::Image { media_type, data } => {
                let url = format!("data:{media_type};base64,{}", STANDARD.encode(data));
                json!({"type": "image_url", "image_url": {"url": url}})
            }
        });
        return parts.collect();
    }
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|part| match part {
            Content::Text(text) => Some(text.as_str()),
            Content::Image { .. } => None,
        })
        .collect();
    match (texts.is_empty(), has_image) {
        (true, true) => json!("(a picture, which this model cannot see)"),
        _ => json!(texts.join("\n\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_has_its_form_for_servers_with_tools_and_pictures_and_without() {
        let picture = Content::Image { media_type: "image/png".into(), data: vec![1, 2, 3].into() };
        let call = |arguments: &str| ToolCall { id: "c".into(), name: "roll".into(), arguments: arguments.into() };
        let whole = Profile { vision: true, ..Profile::new("a", "m") };
        let blind = Profile { tools: false, ..Profile::new("a", "m") };
        let calls = |arguments: &str| Message::Assistant { text: String::new(), calls: vec![call(arguments)] };
        let wired = |arguments: &str| {
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "roll", "arguments": arguments}}]})
        };
        let text = |text: &str| Content::Text(text.into());
        let result = Message::Tool { call: "c".into(), name: "roll".into(), text: "4".into() };
        let rows = [
            (&whole, Message::System("s".into()), json!({"role": "system", "content": "s"})),
            (&whole, Message::User(vec![text("a"), text("b")]), json!({"role": "user", "content": "a\n\nb"})),
            (
                &whole,
                Message::User(vec![text("a"), picture.clone()]),
                json!({"role": "user", "content": [{"type": "text", "text": "a"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AQID"}}]}),
            ),
            (&blind, Message::User(vec![text("a"), picture.clone()]), json!({"role": "user", "content": "a"})),
            (
                &blind,
                Message::User(vec![picture]),
                json!({"role": "user", "content": "(a picture, which this model cannot see)"}),
            ),
            (&whole, calls("{\"n\":1}"), wired("{\"n\":1}")),
            (&whole, calls(""), wired("{}")),
            (&whole, calls("{\"n\":"), wired("{}")),
            (&whole, calls("[1]"), wired("{}")),
            (
                &blind,
                calls("{\"n\":1}"),
                json!({"role": "assistant", "content": "<tool_call>{\"name\":\"roll\",\"arguments\":{\"n\":1}}</tool_call>"}),
            ),
            (&whole, result.clone(), json!({"role": "tool", "tool_call_id": "c", "name": "roll", "content": "4"})),
            (
                &blind,
                result,
                json!({"role": "user", "content": "[result of the tool roll, not written by the user]\n4"}),
            ),
        ];
        for (profile, given, want) in rows {
            assert_eq!(message(profile, &given), want, "{given:?}");
        }
    }

    #[test]
    fn what_a_server_does_not_take_is_left_out_or_named_otherwise() {
        let tools = [json!({"type": "function", "function": {"name": "x"}}), json!({"name": "y", "input_schema": {}})];
        let request = Request { tools: &tools, temperature: Some(0.0), max_tokens: Some(9), ..Request::default() };
        let profile = Profile::new("a", "m");
        let all = document(&profile, &request, Without::default());
        assert_eq!(all["tools"][1]["function"]["parameters"], json!({}));
        assert_eq!((&all["temperature"], &all["max_tokens"]), (&json!(0.0), &json!(9)));
        assert_eq!(all["stream_options"], json!({"include_usage": true}));
        let without = Without { stream_options: true, max_tokens: true, temperature: true };
        let less = document(&Profile { tools: false, ..profile }, &request, without);
        for key in ["stream_options", "max_tokens", "temperature", "tools"] {
            assert!(less.get(key).is_none(), "{key}");
        }
        assert_eq!(less["max_completion_tokens"], json!(9));
    }
}
