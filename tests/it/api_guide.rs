//! The examples of the guide to the HTTP API, sent to a host that holds the guide's own tool.

use super::api_client::Served;
use serde_json::Value;
use std::path::Path;

/// Whether a value is what was announced: objects may hold more, and `…` in a text stands for anything.
fn fits(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Object(expected), Value::Object(actual)) => {
            expected.iter().all(|(key, value)| actual.get(key).is_some_and(|actual| fits(value, actual)))
        }
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len() && expected.iter().zip(actual).all(|(a, b)| fits(a, b))
        }
        (Value::String(expected), Value::String(actual)) => super::guide::fits(expected, actual),
        _ => expected == actual,
    }
}

#[test]
fn what_the_guide_shows_of_the_api_is_what_happens() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide/http-api.md");
    let text = std::fs::read_to_string(page).unwrap();
    let blocks = super::guide::blocks(&text);
    let served = Served::new();
    for block in blocks.iter().filter(|block| block.file().is_some()) {
        served.world.write(block.file().unwrap(), &block.text);
    }
    served.world.host.plugins().rescan();
    let mut wrong = Vec::new();
    let mut sent = None;
    for block in &blocks {
        if block.language == "http" {
            let (head, body) = block.text.split_once("\n\n").unwrap_or((block.text.trim_end(), ""));
            let (method, path) = head.split_once(' ').unwrap();
            sent = Some(served.request(method, path, &[], body.as_bytes()));
        } else if let Some(status) = block.words.iter().find_map(|word| word.strip_prefix("answer=")) {
            let answer = sent.take().unwrap_or_else(|| panic!("line {}: no request stands before it", block.line));
            let expected: Value = serde_json::from_str(&block.text).unwrap();
            if answer.status.to_string() != status || !fits(&expected, &answer.json()) {
                wrong.push(format!("line {}: {} {}", block.line, answer.status, String::from_utf8_lossy(&answer.body)));
            }
        }
    }
    assert!(sent.is_none() && blocks.iter().filter(|block| block.language == "http").count() > 8);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
