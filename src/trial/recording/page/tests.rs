//! What is written is read as the same, and what cannot be read is said where it stands.

use super::*;
use serde_json::json;

fn beside() -> Beside {
    Beside::nowhere()
}

fn answer(headers: &[(&str, &str)], body: &[u8]) -> Exchange {
    let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    Exchange {
        test: Some("test_a".into()),
        keep: false,
        request: Asked {
            method: "POST".into(),
            url: "https://a.example/?x=1".into(),
            headers: [("range".to_owned(), "bytes=0-9".to_owned())].into(),
            sent: Sent::Json(json!(null)),
        },
        outcome: Outcome::Answer(Reply { status: 201, headers, body: body.to_vec(), file: None }),
    }
}

#[test]
fn what_is_written_is_read_as_the_same() {
    let json_type = [("content-type", "application/json")];
    let big = format!("[{}]", "1, ".repeat(10) + "2");
    let exchanges = vec![
        answer(&[], b""),
        answer(&json_type, br#"{"a":[1,2.5,"x"],"b":null}"#),
        answer(&json_type, br#"{"n":123456789012345678901234567890}"#),
        answer(&json_type, br#"{"n":1.50}"#),
        answer(&json_type, b"not json"),
        answer(&[("content-type", "text/html"), ("link", "<a>"), ("link", "<b>")], "two\nlines ž\r\n".as_bytes()),
        answer(&[("content-type", "image/png")], &[0x89, 0, 1, 2]),
        answer(&[("content-type", "text/plain")], b"bell \x07"),
        Exchange {
            keep: true,
            test: None,
            outcome: Outcome::Failure(Kind::Timeout, "slow".into()),
            ..answer(&[], b"")
        },
    ];
    let bytes = write(exchanges.clone()).unwrap();
    assert_eq!(read(&bytes, &beside()).unwrap(), exchanges, "{}", String::from_utf8_lossy(&bytes));
    let text = String::from_utf8(bytes).unwrap();
    assert!(text.contains("\"two\",\n") && text.contains("1.50") && text.ends_with("}\n"), "{text}");
    // White space is all that is lost of a body of JSON.
    let spaced = write(vec![answer(&json_type, big.as_bytes())]).unwrap();
    let Outcome::Answer(reply) = &read(&spaced, &beside()).unwrap()[0].outcome else { panic!() };
    assert_eq!(reply.body, big.replace(' ', "").into_bytes());
}

#[test]
fn little_has_to_be_written_by_hand() {
    let text =
        br#"{"format": 1, "exchanges": [{"request": {"url": "https://A.example"}, "response": {"json": {"a": 1}}}]}"#;
    let read = read(text, &beside()).unwrap();
    assert_eq!((read[0].request.method.as_str(), read[0].request.url.as_str()), ("GET", "https://a.example/"));
    let Outcome::Answer(reply) = &read[0].outcome else { panic!() };
    assert_eq!(reply.status, 200);
    assert_eq!(reply.headers, [("content-type".to_owned(), "application/json".to_owned())]);
    assert_eq!(reply.body, br#"{"a":1}"#);
}

#[test]
fn what_cannot_be_read_is_told_with_its_line_and_path() {
    let one = |exchange: &str| format!("{{\"format\": 1,\n\"exchanges\": [\n{exchange}\n]}}");
    let good = r#""request": {"url": "https://a.example/"}"#;
    let rows = [
        ("{".to_owned(), 1, "not valid JSON"),
        ("[]".to_owned(), 1, ""),
        ("{\"exchanges\": []}".to_owned(), 1, "format"),
        ("{\n\"format\": 2, \"exchanges\": []}".to_owned(), 2, "`format`: it is of format 2"),
        (one("{}"), 3, "`exchanges[0]`: missing field `request`"),
        (one(&format!("{{{good}}}")), 3, "neither `response` nor `failure`"),
        (
            one(&format!("{{{good}, \"response\": {{}}, \"failure\": {{\"code\": \"timeout\", \"message\": \"\"}}}}")),
            3,
            "only one can be",
        ),
        (
            one(&format!("{{{good},\n\"failure\": {{\"code\": \"slow\", \"message\": \"\"}}}}")),
            4,
            "`slow` is no failure code",
        ),
        (
            one("{\"request\": {\n\"url\": \"/x\"}, \"response\": {}}"),
            4,
            "`exchanges[0].request.url`: `/x` is no address",
        ),
        (
            one("{\"request\": {\"url\": \"https://a.example/\",\n\"body\": 1}, \"response\": {}}"),
            4,
            "unknown field `body`",
        ),
        (one(&format!("{{{good}, \"response\": {{\n\"text\": 1}}}}")), 4, "expected a text, or an array of lines"),
        (one(&format!("{{{good}, \"response\": {{\n\"status\": 99}}}}")), 4, "99 is no status"),
        (one(&format!("{{{good}, \"response\": {{\"text\": \"a\",\n\"json\": 1}}}}")), 3, "there is one body"),
        (one(&format!("{{{good}, \"response\": {{\"base64\": \"!\"}}}}")), 3, "`exchanges[0].response.base64`"),
        (one(&format!("{{{good}, \"response\": {{\"file\": \"x.png\"}}}}")), 3, "there is no `x.png` beside it"),
    ];
    for (text, line, part) in rows {
        let found = read(text.as_bytes(), &beside()).unwrap_err();
        assert!(found.message.contains(part), "{text}: {}", found.message);
        assert_eq!(found.line, line, "{text}: {}", found.message);
    }
}
