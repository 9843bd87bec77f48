//! The rules of JSON as tables.

use super::*;
use crate::base::error::Kind;
use serde_json::json;

#[test]
fn good_texts_give_the_value_serde_json_gives() {
    let texts = [
        "null",
        "true",
        "false",
        "0",
        "1",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "1.5",
        "-0.25",
        "1e3",
        "1E-7",
        "2.5e+10",
        "123456789.123456789",
        "5e-324",
        "1.7976931348623157e308",
        r#""""#,
        r#""plain""#,
        r#""a\"b\\c\/d\b\f\n\r\t""#,
        r#""\u00e9\u4e2d""#,
        r#""\ud83d\ude00""#,
        r#""\u0000""#,
        "\"日本 é 😀\"",
        "\"e\u{301}\"",
        "\"\u{202e}rtl\"",
        "[]",
        "{}",
        " [ 1 , 2 ] ",
        "[[[]]]",
        r#"{"a":{"b":[1,{"c":null}]}}"#,
        "\t{\r\n\"k\" : \"v\"\n}\n",
        r#"{"":1}"#,
        r#"[true,false,null,"x",1.0]"#,
        r#"{"a":1,"a":2}"#,
    ];
    for text in texts {
        assert_eq!(parse(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
    }
}

#[test]
fn bad_texts_say_what_and_where() {
    // text, byte offset, ends too early, a word of the message
    let rows: &[(&str, usize, bool, &str)] = &[
        ("", 0, true, "empty"),
        ("  \n", 3, true, "empty"),
        ("{", 1, true, "ends too early"),
        ("[", 1, true, "ends too early"),
        ("[1", 2, true, "ends too early"),
        ("[1,", 3, true, "ends too early"),
        (r#"{"a""#, 4, true, "ends too early"),
        (r#"{"a":"#, 5, true, "ends too early"),
        (r#"{"a":1"#, 6, true, "ends too early"),
        (r#"{"a":1,"#, 7, true, "ends too early"),
        (r#""abc"#, 4, true, "ends too early"),
        (r#""abc\"#, 5, true, "ends too early"),
        (r#""\u00"#, 5, true, "ends too early"),
        (r#""\ud83d"#, 7, true, "ends too early"),
        (r#""\ud83d\"#, 8, true, "ends too early"),
        ("tru", 3, true, "ends too early"),
        ("nul", 3, true, "ends too early"),
        ("-", 1, true, "ends too early"),
        ("1.", 2, true, "ends too early"),
        ("1e", 2, true, "ends too early"),
        ("True", 0, false, "expected a value"),
        ("trux", 0, false, "lower case"),
        ("None", 0, false, "expected a value"),
        ("NaN", 0, false, "expected a value"),
        ("Infinity", 0, false, "expected a value"),
        ("'a'", 0, false, "double quotes"),
        ("// x\n1", 0, false, "comments"),
        ("[1,]", 3, false, "comma before `]`"),
        (r#"{"a":1,}"#, 7, false, "comma before `}`"),
        ("{a:1}", 1, false, "key in double quotes"),
        (r#"{"a" 1}"#, 5, false, "`:`"),
        (r#"{"a":1 "b":2}"#, 7, false, "`,` or `}`"),
        ("[1 2]", 3, false, "`,` or `]`"),
        ("1 2", 2, false, "after the end"),
        ("{}x", 2, false, "after the end"),
        ("01", 0, false, "begin with 0"),
        ("-01", 1, false, "begin with 0"),
        ("+1", 0, false, "expected a value"),
        (".5", 0, false, "expected a value"),
        ("1.x", 2, false, "digit after the point"),
        ("1ex", 2, false, "exponent"),
        ("0x10", 1, false, "after the end"),
        ("9223372036854775808", 0, false, "outside 64 bits"),
        ("-9223372036854775809", 0, false, "outside 64 bits"),
        ("18446744073709551616", 0, false, "outside 64 bits"),
        ("[1, 99999999999999999999999]", 4, false, "outside 64 bits"),
        ("1e999", 0, false, "too large for a float"),
        (r#""\x""#, 2, false, "escape"),
        (r#""\u12g4""#, 5, false, "hexadecimal"),
        (r#""\ud800""#, 1, false, "surrogate"),
        (r#""\ud800x""#, 1, false, "surrogate"),
        (r#""\udc00""#, 1, false, "surrogate"),
        (r#""\ud800\u0041""#, 1, false, "surrogate"),
        ("\"a\nb\"", 2, false, "control character"),
        ("\"a\u{0}b\"", 2, false, "NUL"),
        ("\u{feff}{}", 0, false, "expected a value"),
    ];
    for (text, offset, truncated, word) in rows {
        let e = parse(text).unwrap_err();
        assert_eq!((e.offset, e.truncated), (*offset, *truncated), "{text:?}: {e}");
        assert!(e.message.contains(word), "{text:?}: {e}");
        assert!(e.excerpt.chars().count() <= 40, "{text:?}");
    }
}

#[test]
fn a_cut_text_is_told_from_a_wrong_one_at_every_byte() {
    let whole = r#"{"name":"dice","sides":[4,6,-20.5e1],"on":true,"s":"a\u00e9\ud83d\ude00\n","n":null}"#;
    for end in 0..whole.len() {
        assert!(parse(&whole[..end]).unwrap_err().truncated, "{}", &whole[..end]);
    }
    assert!(parse(whole).is_ok());
}

#[test]
fn positions_count_lines_characters_and_bytes() {
    let e = parse("{\n  \"é\": 1,\n  \"日\": oops\n}").unwrap_err();
    assert_eq!((e.line, e.column, e.offset), (3, 8, 22));
    assert_eq!(e.path, "日");
    assert_eq!(e.excerpt, "{   \"é\": 1,   \"日\": oops }");
}

#[test]
fn the_path_leads_to_the_bad_integer() {
    let e = parse(r#"{"a":[{"b":1},{"b":[0,12345678901234567890]}]}"#).unwrap_err();
    assert_eq!(e.path, "a[1].b[1]");
    let error = Error::from(e);
    assert_eq!(error.kind(), Kind::InvalidArguments);
    assert!(error.message().contains("at `a[1].b[1]`: an integer outside 64 bits"), "{error}");
}

#[test]
fn only_a_cut_text_is_worth_a_retry() {
    assert!(Error::from(parse("{").unwrap_err()).retryable());
    assert!(!Error::from(parse("{]").unwrap_err()).retryable());
}

#[test]
fn depth_is_limited_without_using_up_the_stack() {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(parse(&nested(MAX_DEPTH)).is_ok());
    let e = parse(&nested(MAX_DEPTH + 1)).unwrap_err();
    assert!(e.message.contains("128 levels"), "{e}");
    assert!(!parse(&"[".repeat(1_000_000)).unwrap_err().truncated);
}

#[test]
fn a_repeated_key_is_named_with_its_place_where_that_matters() {
    let text = r#"{"x":{"name":1,"other":2,"name":3}}"#;
    assert_eq!(parse(text).unwrap()["x"]["name"], 3);
    let e = parse_unique(text).unwrap_err();
    assert_eq!((e.offset, e.path.as_str()), (25, "x"));
    assert!(e.message.contains("\"name\""), "{e}");
    assert!(parse_unique(r#"{"a":{"k":1},"b":{"k":1}}"#).is_ok());
    assert_eq!(parse_untrusted(text).unwrap_err(), e);
    assert!(parse_untrusted("\u{feff}{}").is_err());
}

#[test]
fn a_byte_order_mark_is_fine_in_files_only() {
    assert_eq!(parse_file_text(b"\xef\xbb\xbf{}").unwrap(), json!({}));
    assert_eq!(parse_unique("\u{feff}{}").unwrap(), json!({}));
    assert_eq!(parse_file_text(b"\xef\xbb\xbf{x").unwrap_err().offset, 4);
    assert!(parse_bytes(b"\xef\xbb\xbf{}").is_err());
}

#[test]
fn bytes_that_are_not_utf8_are_located() {
    let e = parse_bytes(b"{\"a\":\"\xff\"}").unwrap_err();
    assert_eq!((e.offset, e.truncated), (6, false));
    assert!(parse_bytes(b"\"\xe6\x97").unwrap_err().truncated);
}

#[test]
fn canonical_text_does_not_depend_on_the_order_of_keys() {
    let a = parse(r#"{"b":[1,{"z":1,"y":"é\n"}],"a":1.5}"#).unwrap();
    let b = parse(r#"{ "a":1.5, "b":[1,{"y":"é\n","z":1}] }"#).unwrap();
    assert_eq!(canonical(&a), r#"{"a":1.5,"b":[1,{"y":"é\n","z":1}]}"#);
    assert_eq!(canonical(&a), canonical(&b));
}

#[test]
fn the_length_is_that_of_the_compact_text() {
    for value in [json!(null), json!({"a": [1, 2.5, "é\n"], "b": {}}), json!("")] {
        assert_eq!(encoded_len(&value), value.to_string().len());
    }
}

#[test]
fn control_characters_never_reach_the_excerpt() {
    let e = parse("[\u{1b}[31m").unwrap_err();
    assert!(!e.to_string().contains('\u{1b}'));
}

#[test]
fn of_other_programs_a_number_that_nothing_holds_is_the_text_of_its_digits() {
    for (text, want) in [
        ("9223372036854775807", json!(i64::MAX)),
        ("9223372036854775808", json!("9223372036854775808")),
        ("-9223372036854775809", json!("-9223372036854775809")),
        ("[1, {\"b\": 12345678901234567890}]", json!([1, {"b": "12345678901234567890"}])),
        ("1e400", json!("1e400")),
        ("-1.5E+999", json!("-1.5E+999")),
        ("1e300", json!(1e300)),
    ] {
        assert_eq!(parse_foreign(text).unwrap(), want, "{text}");
    }
    for wrong in ["01", "1.", "--1", "[1 2]", "12345678901234567890x"] {
        assert!(parse_foreign(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn what_does_not_fit_a_shape_is_told_without_names_of_this_program() {
    for (said, want) in [
        ("invalid type: sequence, expected struct Page", "a list, expected an object"),
        ("invalid length 0, expected struct Page with 2 elements", "an empty list, expected an object"),
        ("invalid length 1, expected struct Page with 2 elements", "invalid length 1, expected an object"),
        ("invalid type: map, expected u16", "an object, expected a whole number, not below 0"),
        ("invalid type: integer `1`, expected a boolean", "integer `1`, expected true or false"),
        ("missing field `request`", "missing field `request`"),
    ] {
        assert_eq!(plain_words(said), want);
    }
}
