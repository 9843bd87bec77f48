//! From the rows of a chat to what a model is sent: repaired, within its context, with the pictures of the newest turns.
//! Pure: where pictures and files come from is asked through [`Shelf`].

use super::row::{Body, Entry};
use crate::model::{Content, Message, ToolCall};
use crate::store::messages::Role;
use crate::tool::tokens::estimate_tokens;
use serde_json::Value;
use std::sync::Arc;

/// What a picture counts as, in tokens.
pub const PICTURE_TOKENS: usize = 1500;
/// Most pictures that are sent again of one message.
const PICTURES: usize = 8;
/// Of a result that is too long for the whole context: so many characters of it are left.
const CUT: usize = 4_000;

/// A picture as a model is sent it: its media type and its bytes.
pub type Picture = (String, Arc<[u8]>);

/// Where pictures and files of a chat are.
pub trait Shelf {
    /// A picture by its handle; nothing where it is gone, or not for a model.
    fn picture(&self, handle: &str) -> Option<Picture>;
    /// The text of a file by its id; nothing where it is gone or holds no text.
    fn text(&self, file: &str) -> Option<String>;
}

/// How much a model is sent.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    /// Tokens that are there for messages; 0 where that is not known, and nothing is left out.
    pub tokens: usize,
    /// Pictures of so many turns before the current one are sent again.
    pub picture_turns: usize,
    /// Whether the model sees pictures.
    pub vision: bool,
}

/// What is sent, and what it comes to.
#[derive(Debug, Default)]
pub struct Sent {
    /// The messages, oldest first.
    pub messages: Vec<Message>,
    /// About how many tokens they are.
    pub tokens: usize,
    /// Messages of the chat that were left out, the oldest ones.
    pub left_out: usize,
    /// Whether even the current turn alone is too long.
    pub overflows: bool,
}

/// A turn: a message that began it, and all that followed.
struct Turn {
    messages: Vec<Message>,
    tokens: usize,
    rows: usize,
}

/// What a model is sent of these rows, oldest first; the last turn is the current one and is never left out.
#[must_use]
pub fn sent(rows: &[Entry], shelf: &dyn Shelf, window: &Window) -> Sent {
    let first = rows.iter().position(|row| row.role == Role::User).unwrap_or(rows.len());
    let mut turns: Vec<Turn> = Vec::new();
    let mut ranges = Vec::new();
    let mut at = first;
    while at < rows.len() {
        let end = rows[at + 1..].iter().position(|row| row.role == Role::User).map_or(rows.len(), |n| at + 1 + n);
        ranges.push(at..end);
        at = end;
    }
    let count = ranges.len();
    for (n, range) in ranges.into_iter().enumerate() {
        let shows =
            window.vision && count - 1 - n <= window.picture_turns && (window.picture_turns > 0 || n + 1 == count);
        turns.push(turn(&rows[range], shelf, shows));
    }
    let total: usize = turns.iter().map(|turn| turn.tokens).sum();
    let mut sent = Sent { tokens: total, left_out: first, ..Sent::default() };
    let mut skip = 0;
    while window.tokens > 0 && sent.tokens > window.tokens && skip + 1 < turns.len() {
        sent.tokens -= turns[skip].tokens;
        sent.left_out += turns[skip].rows;
        skip += 1;
    }
    let mut kept: Vec<Turn> = turns.drain(skip..).collect();
    if window.tokens > 0 && sent.tokens > window.tokens {
        for turn in &mut kept {
            let before = turn.tokens;
            shorten(turn);
            sent.tokens = sent.tokens - before + turn.tokens;
        }
        sent.overflows = sent.tokens > window.tokens;
    }
    sent.messages = merge(kept.into_iter().flat_map(|turn| turn.messages).collect());
    sent
}

/// Long results of a turn, cut to their two ends.
fn shorten(turn: &mut Turn) {
    for message in &mut turn.messages {
        if let Message::Tool { text, .. } = message
            && text.len() > CUT
        {
            let head = text.floor_char_boundary(CUT * 3 / 4);
            let tail = text.ceil_char_boundary(text.len() - CUT / 4);
            *text = format!("{}\n[.. cut: there was no room for the whole ..]\n{}", &text[..head], &text[tail..]);
        }
    }
    turn.tokens = turn.messages.iter().map(cost).sum();
}

/// One turn, repaired: a call without its result and a result without its call are left out, and so is what is empty then.
fn turn(rows: &[Entry], shelf: &dyn Shelf, shows: bool) -> Turn {
    let mut messages = Vec::new();
    let mut at = 0;
    while let Some(row) = rows.get(at) {
        at += 1;
        match row.role {
            Role::User => messages.push(Message::User(user(&row.body, shelf, shows))),
            Role::Tool => {}
            Role::Assistant => {
                if row.body.error.is_some() {
                    continue;
                }
                let results: Vec<&Entry> = rows[at..].iter().take_while(|row| row.role == Role::Tool).collect();
                at += results.len();
                let result = |id: &str| results.iter().find(|row| row.body.call.as_deref() == Some(id));
                let answered: Vec<_> =
                    row.body.calls.iter().filter_map(|call| result(&call.id).map(|result| (call, *result))).collect();
                let text = row.body.for_model().to_owned();
                if text.trim().is_empty() && answered.is_empty() {
                    continue;
                }
                let calls = answered.iter().map(|(call, _)| ToolCall {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                });
                messages.push(Message::Assistant { text, calls: calls.collect() });
                let mut pictures = Vec::new();
                for (call, result) in answered {
                    messages.push(Message::Tool {
                        call: call.id.clone(),
                        name: result.body.name.clone().unwrap_or_else(|| "tool".to_owned()),
                        text: result.body.for_model().to_owned(),
                    });
                    if shows {
                        pictures.extend(of_parts(&result.body).filter_map(|handle| shelf.picture(handle)));
                    }
                }
                if !pictures.is_empty() {
                    messages.push(Message::User(shown_by_tools(pictures)));
                }
            }
        }
    }
    let tokens = messages.iter().map(cost).sum();
    Turn { messages, tokens, rows: rows.len() }
}

/// The pictures that tools returned, as the model is shown them: told apart from what a person says.
#[must_use]
pub fn shown_by_tools(pictures: Vec<Picture>) -> Vec<Content> {
    let note =
        "[Pictures from the tool results above, in their order. The user did not write this; go on with the task.]";
    let shown = pictures.into_iter().take(PICTURES).map(|(media_type, data)| Content::Image { media_type, data });
    std::iter::once(Content::Text(note.to_owned())).chain(shown).collect()
}

fn of_parts(body: &Body) -> impl Iterator<Item = &str> {
    let is_for_model = |part: &&Value| {
        part.get("type").and_then(Value::as_str) == Some("image")
            && part.get("display_only").and_then(Value::as_bool) != Some(true)
            && part.get("unseen").is_none()
    };
    body.parts.iter().filter(is_for_model).filter_map(|part| part.get("id").and_then(Value::as_str))
}

fn user(body: &Body, shelf: &dyn Shelf, shows: bool) -> Vec<Content> {
    let mut text = String::new();
    if let Some(header) = body.header.as_deref().filter(|header| !header.is_empty()) {
        text.push_str(header);
        text.push('\n');
    }
    text.push_str(body.for_model());
    for handle in &body.images {
        text.push_str(&format!("\n(image {handle})"));
    }
    for file in &body.files {
        match shelf.text(&file.id) {
            Some(content) => text.push_str(&fenced(&file.name, &content)),
            None => text.push_str(&format!("\n(file {}: {} bytes, not text)", file.name, file.size)),
        }
    }
    let mut content = vec![Content::Text(text)];
    if shows {
        let pictures = body.images.iter().take(PICTURES).filter_map(|handle| shelf.picture(handle));
        content.extend(pictures.map(|(media_type, data)| Content::Image { media_type, data }));
    }
    content
}

/// A file as a block that nothing in it can end.
fn fenced(name: &str, content: &str) -> String {
    let longest = content.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let language = if ending.chars().all(|c| c.is_ascii_alphanumeric()) { ending } else { "" };
    format!("\n\n{fence}{language}\n# {name}\n{}\n{fence}", content.trim_end_matches('\n'))
}

/// Some templates refuse two messages of one side in a row.
fn merge(messages: Vec<Message>) -> Vec<Message> {
    let mut merged: Vec<Message> = Vec::with_capacity(messages.len());
    for message in messages {
        match (merged.last_mut(), message) {
            (Some(Message::User(before)), Message::User(more)) => {
                before.push(Content::Text("\n\n".to_owned()));
                before.extend(more);
            }
            (Some(Message::Assistant { text: before, calls: made }), Message::Assistant { text, calls })
                if made.is_empty() =>
            {
                before.push_str("\n\n");
                before.push_str(&text);
                *made = calls;
            }
            (_, message) => merged.push(message),
        }
    }
    merged
}

/// About how many tokens a message is.
#[must_use]
pub fn cost(message: &Message) -> usize {
    const FRAME: usize = 4;
    FRAME
        + match message {
            Message::System(text) | Message::Tool { text, .. } => estimate_tokens(text),
            Message::User(content) => content
                .iter()
                .map(|content| match content {
                    Content::Text(text) => estimate_tokens(text),
                    Content::Image { .. } => PICTURE_TOKENS,
                })
                .sum(),
            Message::Assistant { text, calls } => {
                let of_calls =
                    calls.iter().map(|call| estimate_tokens(&call.name) + estimate_tokens(&call.arguments) + FRAME);
                estimate_tokens(text) + of_calls.sum::<usize>()
            }
        }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Nothing;

    impl Shelf for Nothing {
        fn picture(&self, handle: &str) -> Option<Picture> {
            (handle != "img:gone.png").then(|| ("image/png".to_owned(), Arc::from(handle.as_bytes())))
        }

        fn text(&self, _file: &str) -> Option<String> {
            Some("a ```` b".to_owned())
        }
    }

    fn entry(id: i64, role: Role, body: Value) -> Entry {
        Entry { id, role, at: 0, turn: "t".into(), body: serde_json::from_value(body).unwrap() }
    }

    /// `u:text`, `a:text`, `a:text+c1,c2` with calls, `t:c1` a result of it, `e:` a turn that failed.
    fn rows(list: &[&str]) -> Vec<Entry> {
        let of = |(n, word): (usize, &&str)| {
            let (who, text) = word.split_once(':').unwrap();
            let (text, calls) = text.split_once('+').unwrap_or((text, ""));
            let calls: Vec<Value> = calls
                .split(',')
                .filter(|id| !id.is_empty())
                .map(|id| json!({"id": id, "name": "look", "arguments": "{}"}))
                .collect();
            let id = i64::try_from(n).unwrap();
            match who {
                "u" => entry(id, Role::User, json!({"text": text})),
                "a" => entry(id, Role::Assistant, json!({"text": text, "calls": calls})),
                "t" => entry(id, Role::Tool, json!({"text": "seen", "call": text, "name": "look"})),
                _ => entry(id, Role::Assistant, json!({"text": "", "error": {"code": "timeout", "message": "late"}})),
            }
        };
        list.iter().enumerate().map(of).collect()
    }

    fn read(sent: &Sent) -> String {
        let of = |message: &Message| match message {
            Message::System(text) => format!("s:{text}"),
            Message::User(content) => {
                let texts = content.iter().map(|content| match content {
                    Content::Text(text) => text.replace("\n\n", "/"),
                    Content::Image { .. } => "#".to_owned(),
                });
                format!("u:{}", texts.collect::<String>())
            }
            Message::Assistant { text, calls } => {
                let ids: Vec<&str> = calls.iter().map(|call| call.id.as_str()).collect();
                format!("a:{text}+{}", ids.join(",")).trim_end_matches('+').to_owned()
            }
            Message::Tool { call, .. } => format!("t:{call}"),
        };
        sent.messages.iter().map(of).collect::<Vec<_>>().join(" ")
    }

    const WHOLE: Window = Window { tokens: 0, picture_turns: 3, vision: true };

    #[test]
    fn what_is_broken_is_mended_before_a_model_reads_it() {
        for (list, expected) in [
            (&["u:hi", "a:hello"][..], "u:hi a:hello"),
            (&["a:orphan", "t:c1", "u:hi"], "u:hi"),
            (&["u:hi", "a:+c1", "t:c1", "a:done"], "u:hi a:+c1 t:c1 a:done"),
            (&["u:hi", "a:+c1,c2", "t:c1"], "u:hi a:+c1 t:c1"),
            (&["u:hi", "a:so+c1", "u:on"], "u:hi a:so u:on"),
            (&["u:hi", "a:+c1", "u:on"], "u:hi/on"),
            (&["u:hi", "t:c9", "a:x"], "u:hi a:x"),
            (&["u:hi", "a:"], "u:hi"),
            (&["u:hi", "e:", "u:again"], "u:hi/again"),
            (&["u:a", "u:b", "a:x", "a:y"], "u:a/b a:x\n\ny"),
            (&[], ""),
        ] {
            assert_eq!(read(&sent(&rows(list), &Nothing, &WHOLE)), expected, "{list:?}");
        }
    }

    #[test]
    fn the_oldest_turns_go_first_and_the_current_one_never() {
        let long = "x".repeat(400);
        let list = [format!("u:1{long}"), format!("a:{long}"), format!("u:2{long}"), format!("u:3{long}")];
        let list: Vec<&str> = list.iter().map(String::as_str).collect();
        let kept = |tokens| {
            let sent = sent(&rows(&list), &Nothing, &Window { tokens, ..WHOLE });
            (sent.messages.len(), sent.left_out, sent.overflows)
        };
        assert_eq!(kept(0), (3, 0, false));
        assert_eq!(kept(1_000), (3, 0, false));
        assert_eq!(kept(250), (1, 2, false));
        assert_eq!(kept(120), (1, 3, false));
        assert_eq!(kept(50), (1, 3, true));
    }

    #[test]
    fn pictures_are_sent_again_for_so_many_turns_and_only_to_models_that_see() {
        let mut all = rows(&["u:0", "u:1", "u:2"]);
        for row in &mut all {
            row.body.images = vec!["img:a.png".into(), "img:gone.png".into()];
        }
        let count = |window: Window| read(&sent(&all, &Nothing, &window)).matches('#').count();
        for (picture_turns, expected) in [(0, 1), (1, 2), (2, 3), (9, 3)] {
            assert_eq!(count(Window { picture_turns, ..WHOLE }), expected, "{picture_turns}");
            assert_eq!(count(Window { picture_turns, vision: false, ..WHOLE }), 0);
        }
    }

    #[test]
    fn only_the_models_pictures_of_a_result_are_sent_and_nothing_in_a_file_ends_its_fence() {
        let mut all = rows(&["u:hi", "a:+c1", "t:c1"]);
        all[2].body.parts = vec![
            json!({"type": "image", "id": "img:a.png", "display_only": false}),
            json!({"type": "image", "id": "img:b.png", "display_only": true}),
            json!({"type": "image", "id": "img:c.png", "display_only": false, "unseen": "broken"}),
        ];
        assert_eq!(read(&sent(&all, &Nothing, &WHOLE)).matches('#').count(), 1);
        all[0].body.files = vec![crate::chat::row::File { id: "f".into(), name: "a.txt".into(), size: 8 }];
        assert!(read(&sent(&all, &Nothing, &WHOLE)).contains("`````txt\n# a.txt\na ```` b\n`````"));
    }
}
