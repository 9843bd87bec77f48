//! When a request is the one that was recorded, and what is said where it is not.

use super::*;
use serde_json::json;

fn question(method: &str, url: &str, content_type: &str, body: &[u8]) -> Question {
    let mut headers = vec![("accept-language".to_owned(), "en".to_owned())];
    if !content_type.is_empty() {
        headers.push(("content-type".into(), content_type.into()));
    }
    let body = (!body.is_empty()).then(|| body.to_vec());
    Question::of(Hop { method: method.into(), url: url.into(), headers, body })
}

fn recorded(url: &str, sent: Sent) -> Asked {
    Asked { method: "GET".into(), url: url.into(), headers: BTreeMap::new(), sent }
}

#[test]
fn an_address_is_the_same_in_any_order_of_its_parameters() {
    // recorded, asked, whether they are the same
    let rows = [
        ("https://a.example/", "https://a.example/", true),
        ("https://a.example/x?a=1&b=2", "https://a.example/x?b=2&a=1", true),
        ("https://a.example/x?a=1&a=2", "https://a.example/x?a=2&a=1", true),
        ("https://a.example/x?a=1&a=1", "https://a.example/x?a=1", false),
        ("https://a.example/x?a=1", "https://a.example/x?a=1&b=2", false),
        ("https://a.example/x?a=1", "https://a.example/x", false),
        ("https://a.example/x?a=1+2", "https://a.example/x?a=1%202", true),
        ("https://a.example/x?q=%C5%BE", "https://a.example/x?q=%c5%be", true),
        ("https://a.example/x?a", "https://a.example/x?a=", true),
        ("https://a.example/x#part", "https://a.example/x#other", true),
        ("https://a.example/x", "https://a.example/x/", false),
        ("https://a.example/x", "https://a.example/X", false),
        ("https://a.example/x", "http://a.example/x", false),
        ("https://a.example:8443/x", "https://a.example/x", false),
        ("https://a.example/x?key=***", "https://a.example/x?key=***", true),
        ("https://a.example/x?key=***&q=1", "https://a.example/x?q=1&key=placeholder", true),
        ("https://a.example/x?key=***", "https://a.example/x?other=1", false),
        ("https://a.example/***/x", "https://a.example/bot123/x", true),
        ("https://a.example/***/x", "https://a.example/bot123/y", false),
        ("https://a.example/u***s?k=***", "https://a.example/users?k=***", true),
    ];
    for (there, here, same) in rows {
        let differences = recorded(there, Sent::Nothing).differences(&question("GET", here, "", b""));
        assert_eq!(differences.is_empty(), same, "{there} {here} {differences:?}");
    }
}

#[test]
fn a_body_is_compared_as_what_it_is() {
    let json = |value| Sent::Json(value);
    let text = |value: &str| Sent::Text(value.to_owned());
    let rows: Vec<(Sent, &str, &[u8], bool)> = vec![
        (Sent::Nothing, "", b"", true),
        (Sent::Nothing, "text/plain", b"x", false),
        (Sent::Any, "", b"", true),
        (Sent::Any, "text/plain", b"x", true),
        (json(json!({"a": 1, "b": [1, "x"]})), "application/json", br#"{ "b": [1, "x"], "a": 1 }"#, true),
        (json(json!({"a": 1})), "application/json", br#"{"a":1.0}"#, true),
        (json(json!({"a": 1})), "application/json", br#"{"a":"1"}"#, false),
        (json(json!({"a": 1})), "application/json", br#"{"a":1,"b":2}"#, false),
        (json(json!({"a": [1, 2]})), "application/json", br#"{"a":[2,1]}"#, false),
        (json(json!({"key": "***"})), "application/json", br#"{"key":"placeholder"}"#, true),
        (json(json!(null)), "application/json", b"null", true),
        (json(json!({"a": 1})), "text/plain", br#"{"a":1}"#, true),
        (json(json!({"a": 1})), "application/json", b"", false),
        (text("a=1&b=2"), "application/x-www-form-urlencoded", b"a=1&b=2", true),
        (text("a=1&key=***"), "application/x-www-form-urlencoded", b"a=1&key=xyz", true),
        (text("a=1"), "application/x-www-form-urlencoded", b"a=2", false),
        (text("--boundary--"), "multipart/form-data; boundary=lapidary-77", b"--lapidary-77--", true),
        (Sent::Bytes(vec![0, 255]), "application/octet-stream", &[0, 255], true),
        (Sent::Bytes(vec![0, 255]), "application/octet-stream", &[0, 254], false),
    ];
    for (sent, content_type, body, same) in rows {
        let question = question("GET", "https://a.example/", content_type, body);
        assert_eq!(recorded("https://a.example/", sent.clone()).fits(&question), same, "{sent:?} {content_type}");
    }
}

#[test]
fn what_is_recorded_of_a_request_fits_it() {
    let long = "x".repeat(LONG + 1);
    let long_json = json!({ "b": long, "a": 1 }).to_string();
    let rows: [(&str, &[u8]); 9] = [
        ("", b""),
        ("application/json", br#"{"a":[1,null,"x"]}"#),
        ("application/json", b"not json"),
        ("text/plain; charset=utf-8", "žluť\n".as_bytes()),
        ("application/octet-stream", &[0, 1, 255]),
        ("text/plain", b"bell \x07"),
        ("text/plain", long.as_bytes()),
        ("application/json", long_json.as_bytes()),
        ("multipart/form-data; boundary=b1", b"--b1\r\nx\r\n--b1--\r\n"),
    ];
    for (content_type, body) in rows {
        let asked = question("POST", "https://a.example/?b=1&a=2", content_type, body).asked();
        let again = question("POST", "https://a.example/?a=2&b=1", content_type, body);
        assert!(asked.fits(&again), "{asked:?}");
        assert_eq!(matches!(asked.sent, Sent::Hash(_)), body.len() > LONG);
    }
    let swapped =
        question("POST", "https://a.example/", "application/json", json!({ "a": 1, "b": long }).to_string().as_bytes());
    assert!(question("POST", "https://a.example/", "application/json", long_json.as_bytes()).asked().fits(&swapped));
}

#[test]
fn only_headers_that_change_the_answer_are_recorded() {
    let mut hop = Hop {
        method: "GET".into(),
        url: "https://a.example/".into(),
        headers: [
            ("authorization", "Bearer x"),
            ("cookie", "a=b"),
            ("range", "bytes=0-1"),
            ("x-key", "k"),
            ("user-agent", "u"),
        ]
        .map(|(n, v)| (n.to_owned(), v.to_owned()))
        .to_vec(),
        body: None,
    };
    let asked = Question::of(hop.clone()).asked();
    assert_eq!(asked.headers.into_iter().collect::<Vec<_>>(), [("range".to_owned(), "bytes=0-1".to_owned())]);
    let by_hand = Asked {
        headers: [("x-key".to_owned(), "k".to_owned())].into(),
        ..recorded("https://a.example/", Sent::Nothing)
    };
    assert!(by_hand.fits(&Question::of(hop.clone())));
    hop.headers.retain(|(name, _)| name != "x-key");
    assert_eq!(by_hand.differences(&Question::of(hop)), ["the header `x-key` is `k` there"]);
}

#[test]
fn a_difference_is_told_in_words() {
    let rows: Vec<(Asked, Question, &str)> = vec![
        (
            recorded("https://a.example/x?city=Brno", Sent::Nothing),
            question("GET", "https://a.example/x?city=Praha", "", b""),
            "the parameter `city` is `Brno` there, `Praha` here",
        ),
        (
            recorded("https://a.example/x", Sent::Nothing),
            question("POST", "https://a.example/x", "", b""),
            "the method is GET there",
        ),
        (
            recorded("https://a.example/y", Sent::Nothing),
            question("GET", "https://a.example/x", "", b""),
            "the address is https://a.example/y there",
        ),
        (
            recorded("https://a.example/", Sent::Json(json!({"a": {"b": [1, 2]}}))),
            question("GET", "https://a.example/", "application/json", br#"{"a":{"b":[1,3]}}"#),
            "`a.b[1]` of the body is `2` there, `3` here",
        ),
        (
            recorded("https://a.example/", Sent::Nothing),
            question("GET", "https://a.example/", "text/plain", b"hello"),
            "the body is no body there, `hello` here",
        ),
    ];
    for (asked, question, said) in rows {
        assert!(asked.differences(&question).iter().any(|d| d == said), "{said}: {:?}", asked.differences(&question));
        assert!(asked.closeness(&question) > 0);
    }
}
