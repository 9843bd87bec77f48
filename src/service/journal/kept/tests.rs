//! What a row may hold: no secret in any of its columns, no text beyond its length, and everything else as it was.

use super::*;
use crate::base::error::{Error, Fallback, Kind};
use crate::service::attachments::{Files, Item};
use crate::service::gallery::{Gallery, Tile};
use crate::service::journal::entry::Entry;
use crate::service::journal::{Described, Heard, Tool};
use crate::service::picture::Image;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

struct Takes(Value);

impl Described for Takes {
    fn name(&self) -> &str {
        "send"
    }

    fn schema(&self) -> &Value {
        &self.0
    }
}

fn ended(arguments: Value) -> Ended {
    Ended {
        id: "c_1".into(),
        at: 1_700_000_000_123,
        tool: Tool::Unknown("send".into()),
        plugin: "mail".into(),
        generation: 4,
        door: "cli",
        caller: "owner".into(),
        chat: Some("kitchen".into()),
        arguments: match arguments {
            Value::Object(map) => Given::Object(map),
            Value::String(text) => Given::Text(text),
            _ => panic!("an object or a text"),
        },
        ok: true,
        error: None,
        text: "sent".into(),
        shown: None,
        parts: Vec::new(),
        picture_bytes: Vec::new(),
        structured: None,
        said: None,
        diagnostic: None,
        warnings: Vec::new(),
        duration: Duration::from_micros(1500),
        operations: 9,
        memory: 1024,
        used: None,
    }
}

const MOST: usize = 1000;

fn kept(ended: Ended) -> Entry {
    Entry::of(row(ended, &Redactor::default(), MOST).unwrap())
}

#[test]
fn a_plain_call_is_kept_as_it_was() {
    let entry = kept(ended(json!({ "to": "ann", "n": 9_007_199_254_740_993_i64, "x": 0.1 })));
    let told = serde_json::to_value(&entry).unwrap();
    let expected = json!({
        "id": "c_1", "at": "2023-11-14T22:13:20.123Z", "tool": "send", "plugin": "mail", "generation": 4, "ok": true,
        "door": "cli", "caller": "owner", "chat": "kitchen", "duration_ms": 1.5, "summary": "sent",
        "arguments": { "to": "ann", "n": 9_007_199_254_740_993_i64, "x": 0.1 }, "text": "sent", "parts": [], "logs": [],
        "logs_left_out": 0, "progress": [], "warnings": [], "operations": 9, "memory": 1024, "masked": false, "cut": [],
    });
    assert_eq!(told, expected);
    assert_eq!(serde_json::from_value::<Entry>(told).unwrap(), entry);
}

#[test]
fn what_came_is_kept_as_an_object_or_as_the_text_that_it_was() {
    for (text, expected) in [
        ("{\"a\": 1}", json!({ "a": 1 })),
        ("", json!({})),
        (" null ", json!({})),
        ("[1]", json!("[1]")),
        ("\"x\"", json!("\"x\"")),
        ("{\"a\": ", json!("{\"a\": ")),
        ("{\"a\": 1, \"a\": 2}", json!("{\"a\": 1, \"a\": 2}")),
        ("99999999999999999999", json!("99999999999999999999")),
    ] {
        let entry = kept(ended(text.into()));
        assert_eq!((entry.arguments, entry.masked), (expected, false), "{text}");
    }
    let entry = kept(ended("{\"password\": \"hunter2".into()));
    assert_eq!((entry.arguments, entry.masked), (json!("***"), true));
}

/// A call that says `secret` everywhere it can.
fn talkative(secret: &str) -> Ended {
    let heard = Heard::default();
    heard.log("info", secret);
    heard.status(secret);
    heard.step(1, 2);
    let mut image = Image::of(Vec::new(), "image/png");
    image.caption = Some(secret.into());
    image.view = View::Unseen(secret.into());
    let tile = Tile {
        handle: None,
        full: Some(format!("/api/plugin/mail/{secret}")),
        title: secret.into(),
        page: Some(format!("https://x.example/{secret}")),
        thumb: Some(secret.into()),
    };
    let item = Item { url: format!("/api/plugin/mail/{secret}"), name: secret.into() };
    let fallback = Fallback { tool: secret.into(), when: secret.into() };
    Ended {
        tool: Tool::Unknown(secret.into()),
        caller: secret.into(),
        ok: false,
        error: Some(
            Error::new(Kind::UpstreamAuth, format!("refused {secret}"))
                .hint(secret)
                .with_user_action(secret)
                .with_fallbacks(vec![fallback]),
        ),
        text: format!("text {secret} text"),
        shown: Some(secret.into()),
        parts: vec![
            Part::Image(image),
            Part::Gallery(Gallery { title: secret.into(), items: vec![tile] }),
            Part::Files(Files { title: secret.into(), items: vec![item] }),
        ],
        picture_bytes: vec![77],
        structured: Some(json!({ secret: [secret] })),
        said: heard.take().map(|said| (said, Instant::now())),
        diagnostic: Some(json!({ "message": secret, "snippet": secret, "stack": [{ "function": secret }] })),
        warnings: vec![secret.into()],
        ..ended(json!({}))
    }
}

fn of_secret(secret: &str) -> Redactor {
    let mut redactor = Redactor::default();
    redactor.add(secret);
    redactor
}

#[test]
fn no_column_holds_a_secret_whoever_knows_it() {
    let secret = "s3cr3t/value";
    let nobody = Redactor::default();
    let marked = json!({ "properties": { "pin": { "format": "password" } } });
    let rows = [
        (talkative(secret), of_secret(secret)),
        (Ended { used: Some(Arc::new(of_secret(secret))), ..talkative(secret) }, nobody),
        (
            Ended {
                arguments: Given::Text(json!({ "pin": secret, "also": secret }).to_string()),
                tool: Tool::Known(Arc::new(Takes(marked))),
                ..talkative(secret)
            },
            Redactor::default(),
        ),
        (
            Ended {
                arguments: Given::Object([("db_password".to_owned(), json!(secret))].into_iter().collect()),
                ..talkative(secret)
            },
            Redactor::default(),
        ),
        (
            Ended { arguments: Given::Text(format!("{{\"password\": \"{secret}")), ..talkative(secret) },
            of_secret(secret),
        ),
    ];
    for (at, (ended, known)) in rows.into_iter().enumerate() {
        let row = row(ended, &known, MOST).unwrap();
        let all = format!("{row:?}");
        assert!(!all.contains(secret) && !all.contains("s3cr3t"), "{at}: {all}");
        let entry = Entry::of(row);
        // Everything is there but the secret.
        let shape = (entry.parts.len(), entry.logs.len(), entry.progress.len(), entry.warnings.len());
        assert_eq!(shape, (3, 1, 2, 1), "{at}: {entry:?}");
        assert!(entry.error.is_some() && entry.diagnostic.is_some() && entry.structured.is_some(), "{at}: {entry:?}");
        assert_eq!(entry.listed.summary, "refused ***");
        assert!(matches!(&entry.parts[0], Piece::Image { bytes: 77, .. }));
    }
}

#[test]
fn a_secret_among_the_arguments_is_said_to_be_masked() {
    let rows = [
        (json!({ "a": "x" }), false),
        (json!({ "a": "s3cr3t-value" }), true),
        (json!({ "a": ["say s3cr3t-value twice"] }), true),
        (json!({ "s3cr3t-value": 1 }), true),
        (json!("{\"a\": \"s3cr3t-value"), true),
    ];
    for (arguments, masked) in rows {
        let entry = Entry::of(row(ended(arguments.clone()), &of_secret("s3cr3t-value"), MOST).unwrap());
        assert_eq!(entry.masked, masked, "{arguments}");
    }
    let known = of_secret("4711081512");
    let entry = Entry::of(row(ended(json!({ "n": 4_711_081_512_i64 })), &known, MOST).unwrap());
    assert_eq!((entry.masked, entry.arguments), (true, json!({ "n": "***" })));
}

#[test]
fn a_call_of_a_chat_with_a_secret_for_a_name_is_not_kept() {
    let call = Ended { chat: Some("s3cr3t-value".into()), ..ended(json!({})) };
    assert!(row(call, &of_secret("s3cr3t-value"), MOST).is_none());
}

#[test]
fn what_is_too_long_is_cut_and_says_so() {
    let long = "é".repeat(MOST);
    let call = Ended {
        text: long.clone(),
        shown: Some(long.clone()),
        structured: Some(json!(long)),
        parts: vec![Part::Gallery(Gallery { title: long.clone(), items: Vec::new() })],
        ..ended(json!({ "a": long, "b": [long, 1], "c": 1 }))
    };
    let entry = kept(call);
    assert_eq!(entry.cut, ["arguments", "text", "shown", "structured", "parts"]);
    assert!(entry.text.ends_with("\n[1000 more bytes were not kept]"), "{}", entry.text);
    assert_eq!(entry.text.len(), MOST + "\n[1000 more bytes were not kept]".len());
    assert!(entry.arguments["a"].as_str().unwrap().ends_with('…'), "it is an object still: {}", entry.arguments);
    assert_eq!((entry.structured, entry.parts.len()), (None, 0));
    let whole = kept(Ended { text: "x".repeat(MOST), ..ended(json!({})) });
    assert_eq!((whole.text.len(), whole.cut.len()), (MOST, 0));
}

#[test]
fn a_secret_over_the_place_where_a_text_is_cut_is_found_whole() {
    let secret = "s3cr3t-".repeat(10);
    for before in MOST - 75..=MOST + 5 {
        let text = format!("{}{secret}{}", "x".repeat(before), "y".repeat(100_000));
        let entry = Entry::of(row(Ended { text, ..ended(json!({})) }, &of_secret(&secret), MOST).unwrap());
        assert!(!entry.text.contains("s3c"), "{before}");
    }
}

#[test]
fn a_summary_is_one_line_of_the_text_or_of_the_failure() {
    let of = |text: &str| kept(Ended { text: text.into(), ..ended(json!({})) }).listed.summary;
    assert_eq!(of("a\nb\tc"), "a b c");
    assert_eq!(of(&"é ".repeat(1000)).chars().count(), SUMMARY);
    assert_eq!(of(""), "");
    let picture = vec![Part::Image(Image::of(Vec::new(), "image/png"))];
    let call = Ended { text: String::new(), parts: picture, ..ended(json!({})) };
    assert_eq!(kept(call).listed.summary, "1 part");
}
