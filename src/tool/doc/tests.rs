//! What comments become, and what is said about those that cannot.

use super::*;
use crate::tool::arguments;
use serde_json::json;

/// Reads a comment that begins on line 10.
fn read(params: &[&str], comment: &str) -> Result<(Spec, Vec<ParamPlan>), DocError> {
    from_doc("roll_dice", params, &[comment], 10)
}

fn wrong(params: &[&str], comment: &str) -> DocError {
    read(params, comment).unwrap_err()
}

const DICE: &str = "/// Roll dice and add them up. Use it whenever someone asks for a roll.
///
/// @param {integer 2..1000} sides=6 - Sides on each die.
/// @param {integer 1..100} count=1 - How many dice.
/// @param {\"sum\"|\"list\"} [show] - What to give back.
/// @local
/// @example {\"sides\": 20} => /rolled/";

#[test]
fn a_documented_function_becomes_a_schema() {
    let (spec, plan) = read(&["sides", "count", "show"], DICE).unwrap();
    assert_eq!(
        spec.wire(),
        json!({ "type": "function", "function": {
            "name": "roll_dice",
            "description": "Roll dice and add them up. Use it whenever someone asks for a roll.",
            "parameters": { "type": "object", "additionalProperties": false, "properties": {
                "sides": { "type": "integer", "minimum": 2, "maximum": 1000, "description": "Sides on each die.", "default": 6 },
                "count": { "type": "integer", "minimum": 1, "maximum": 100, "description": "How many dice.", "default": 1 },
                "show": { "type": "string", "enum": ["sum", "list"], "description": "What to give back." } } } } })
    );
    assert_eq!(spec.is_local, Locality::Local);
    assert_eq!(spec.examples, [Example { arguments: json!({ "sides": 20 }), expect: "rolled".to_owned(), line: 16 }]);
    assert_eq!(plan.iter().map(|p| p.schema_name.as_str()).collect::<Vec<_>>(), ["sides", "count", "show"]);
    assert_eq!((plan[0].default.clone(), plan[2].optional, plan[2].position), (Some(json!(6)), true, 2));
    let arguments = arguments::prepare(&spec, arguments::parse("{\"count\": \"3\"}").unwrap()).unwrap();
    assert_eq!(Value::Object(arguments), json!({ "count": 3, "sides": 6 }));
}

#[test]
fn every_mark_of_a_comment_is_read_alike() {
    let rows: [&[&str]; 7] = [
        &["/// Rolls.\n/// @param {integer} sides - Sides."],
        &["/// Rolls.", "/// @param {integer} sides - Sides."],
        &["///Rolls.\r\n///@param {integer} sides - Sides.\r\n"],
        &["/** Rolls.\n * @param {integer} sides - Sides. */"],
        &["/**\n * Rolls.\n * @param {integer} sides - Sides.\n */"],
        &["/**\n    Rolls.\n    @param {integer} sides - Sides.\n*/"],
        &["/** Rolls. */", "/// @param {integer} sides - Sides."],
    ];
    for comments in rows {
        let (spec, _) = from_doc("roll", &["sides"], comments, 1).unwrap();
        assert_eq!(spec.description, "Rolls.", "{comments:?}");
        assert_eq!(
            spec.parameters["properties"]["sides"],
            json!({ "type": "integer", "description": "Sides." }),
            "{comments:?}"
        );
        assert_eq!(spec.parameters["required"], json!(["sides"]));
    }
}

#[test]
fn every_tag_sets_its_flag() {
    let comment = "/// Does it.\n/// @endpoint\n/// @network\n/// @writes\n/// @spends\n/// @hidden\n/// @category web
/// @permission EXTERNAL_HTTP, RUN_COMMANDS\n/// @permission SPEND\n/// @fallback web_search - the answer is public\n/// @fallback other
/// @timeout 20\n/// @returns {city: string} The city.\n/// @example {} => /a\\/b/";
    let (spec, plan) = read(&[], comment).unwrap();
    assert_eq!(spec.is_local, Locality::Endpoint);
    assert!(spec.network && spec.writes && spec.hidden && plan.is_empty());
    assert_eq!(spec.effective_side_effect(), SideEffect::Spend);
    assert_eq!(spec.category.as_deref(), Some("web"));
    assert_eq!(
        spec.permissions.iter().map(|p| p.as_str()).collect::<Vec<_>>(),
        ["EXTERNAL_HTTP", "RUN_COMMANDS", "SPEND"]
    );
    assert_eq!(spec.fallbacks[0], Fallback { tool: "web_search".to_owned(), when: "the answer is public".to_owned() });
    assert_eq!(spec.fallbacks[1].when, "");
    assert_eq!(spec.timeout_s, Some(20));
    assert_eq!(spec.output_schema.unwrap()["required"], json!(["city"]));
    assert_eq!(spec.examples[0].expect, "a\\/b");
    assert_eq!(spec.parameters, empty_parameters());
}

#[test]
fn parameters_are_required_defaulted_or_optional() {
    let rows = [
        ("{string} x - X", json!({ "type": "string", "description": "X" }), true, None, false),
        ("{string} x", json!({ "type": "string" }), true, None, false),
        ("{string} [x] - X", json!({ "type": "string", "description": "X" }), false, None, true),
        (
            "{string} x=Hello there - X",
            json!({ "type": "string", "description": "X", "default": "Hello there" }),
            false,
            Some(json!("Hello there")),
            false,
        ),
        (
            "{string} x=\"a - b\" - X",
            json!({ "type": "string", "description": "X", "default": "a - b" }),
            false,
            Some(json!("a - b")),
            false,
        ),
        (
            "{integer} [x=3] - X",
            json!({ "type": "integer", "description": "X", "default": 3 }),
            false,
            Some(json!(3)),
            false,
        ),
        (
            "{integer[]} [x=[1, 2]] - X",
            json!({ "type": "array", "items": { "type": "integer" }, "description": "X", "default": [1, 2] }),
            false,
            Some(json!([1, 2])),
            false,
        ),
        (
            "{boolean} x = false - X",
            json!({ "type": "boolean", "description": "X", "default": false }),
            false,
            Some(json!(false)),
            false,
        ),
        (
            "{\"a}b\"|\"c\"} x=c – X",
            json!({ "type": "string", "enum": ["a}b", "c"], "description": "X", "default": "c" }),
            false,
            Some(json!("c")),
            false,
        ),
        (
            "{object} x={\"a\": {\"b\": 1}} - X",
            json!({ "type": "object", "description": "X", "default": { "a": { "b": 1 } } }),
            false,
            Some(json!({ "a": { "b": 1 } })),
            false,
        ),
    ];
    for (param, schema, required, default, optional) in rows {
        let (spec, plan) = read(&["x"], &format!("/// Does it.\n/// @param {param}")).unwrap();
        assert_eq!(spec.parameters["properties"]["x"], schema, "{param}");
        assert_eq!(spec.parameters.get("required").is_some(), required, "{param}");
        assert_eq!((&plan[0].default, plan[0].optional), (&default, optional), "{param}");
    }
}

#[test]
fn mistakes_name_the_line_and_what_to_write() {
    let rows: Vec<(&[&str], &str, usize, &str, &str)> = vec![
        (&["sides"], "/// Rolls.", 10, "`sides` of `roll_dice(sides)` has no `@param` line", "@param {string} sides"),
        (
            &["sides"],
            "/// Rolls.\n/// @param {integer} sidez - X",
            11,
            "`@param sidez` is no parameter of `roll_dice(sides)`",
            "did you mean `sides`",
        ),
        (&[], "/// Rolls.\n/// @param {integer} sides - X", 11, "is no parameter of `roll_dice()`", "same parameters"),
        (
            &["a"],
            "/// Rolls.\n/// @param {integer} a - X\n/// @param {integer} a - X",
            12,
            "`a` is described twice",
            "",
        ),
        (&["a"], "/// Rolls.\n/// @param a - X", 11, "type in braces", "@param {integer 1..100} count=1"),
        (&["a"], "/// Rolls.\n/// @param {integer a - X", 11, "not closed", "@param"),
        (&["a"], "/// Rolls.\n/// @param {int} a - X", 11, "write integer", "integer 2..10"),
        (&["a"], "/// Rolls.\n/// @param {integer} - X", 11, "names no parameter", "@param"),
        (&["a"], "/// Rolls.\n/// @param {integer} a X", 11, "expected ` - `", "@param"),
        (&["a"], "/// Rolls.\n/// @param {integer} [a - X", 11, "bracket of `[a` is not closed", "[name]"),
        (&["a"], "/// Rolls.\n/// @param {integer} a=2.5 - X", 11, "`2.5` is no integer", "{integer}"),
        (&["a"], "/// Rolls.\n/// @param {integer 2..10} a=11 - X", 11, "11 is outside 2..10", "integer 2..10"),
        (&["a"], "/// Rolls.\n/// @param {integer} a=9223372036854775808", 11, "64 bits", "{integer}"),
        (&["a"], "/// Rolls.\n/// @param {\"x\"|\"y\"} a=z - X", 11, "none of", "\"x\"|\"y\""),
        (&["a"], "/// Rolls.\n/// @param {string 3..} a=ab - X", 11, "outside 3..", "string 3.."),
        (&[], "/// Rolls.\n/// @lokal", 11, "`@lokal` is unknown", "did you mean `@local`"),
        (&[], "/// Rolls.\n/// @parm {integer} a - X", 11, "`@parm` is unknown", "did you mean `@param`"),
        (&[], "/// Rolls.\n/// @author me", 11, "`@author` is unknown", "the tags are @param @local"),
        (&[], "/// Rolls.\n/// @local yes", 11, "takes nothing", "@local"),
        (&[], "/// Rolls.\n/// @local\n/// @endpoint", 12, "exclude each other", "one of them"),
        (&[], "/// Rolls.\n/// @timeout soon", 11, "whole seconds", "@timeout 20"),
        (&[], "/// Rolls.\n/// @timeout 0", 11, "whole seconds", "@timeout 20"),
        (&[], "/// Rolls.\n/// @category", 11, "one word", "@category web"),
        (&[], "/// Rolls.\n/// @category two words", 11, "one word", "@category web"),
        (&[], "/// Rolls.\n/// @permission EXTERNAL_HTTPS", 11, "no permission `EXTERNAL_HTTPS`", "the words are"),
        (&[], "/// Rolls.\n/// @permission", 11, "needs a permission", "EXTERNAL_HTTP"),
        (&[], "/// Rolls.\n/// @fallback - never", 11, "tool's name", "@fallback web_search"),
        (&[], "/// Rolls.\n/// @example 5 => /x/", 11, "as an object", "@example"),
        (&[], "/// Rolls.\n/// @example {\"a\": } => /x/", 11, "not JSON", "@example"),
        (&[], "/// Rolls.\n/// @example {} /x/", 11, "expected `=>`", "@example"),
        (&[], "/// Rolls.\n/// @example {} => x", 11, "between slashes", "@example"),
        (&[], "/// Rolls.\n/// @example {} => /(/", 11, "not a regular expression", "@example"),
        (&[], "/// Rolls.\n/// @returns nothing", 11, "type in braces", "@returns {city"),
        (&[], "/// @local", 10, "does not say what it does", "begin with a sentence"),
        (&[], "///\n///", 10, "does not say what it does", "begin with a sentence"),
        (&[], "/// Rolls.\n/// @local\n/// More text", 12, "stands after the tags", "before the first tag"),
        (
            &["a"],
            "/// Rolls.\n/// @param {integer} a - X\n///\n/// More",
            13,
            "stands after the tags",
            "before the first tag",
        ),
    ];
    for (params, comment, line, message, hint) in rows {
        let error = wrong(params, comment);
        assert_eq!(error.line, line, "{comment}: {error:?}");
        assert!(error.message.contains(message), "{comment}: {error:?}");
        assert!(error.hint.as_deref().unwrap_or_default().contains(hint), "{comment}: {error:?}");
    }
}

#[test]
fn the_order_of_the_function_decides_not_that_of_the_comment() {
    let (spec, plan) = read(&["a", "b"], "/// X.\n/// @param {string} b - B\n/// @param {string} a - A").unwrap();
    assert_eq!(plan.iter().map(|p| (p.schema_name.as_str(), p.position)).collect::<Vec<_>>(), [("a", 0), ("b", 1)]);
    assert_eq!(spec.parameters["required"], json!(["a", "b"]));
}

#[test]
fn a_reserved_word_is_written_with_an_underscore_that_the_schema_drops() {
    for written in ["match", "match_"] {
        let (spec, plan) = read(
            &["match_", "other_"],
            &format!("/// X.\n/// @param {{string}} {written} - M\n/// @param {{string}} other_ - O"),
        )
        .unwrap();
        assert_eq!(spec.parameters["required"], json!(["match", "other_"]), "{written}");
        assert_eq!(plan[0].schema_name, "match");
    }
    assert!(
        is_reserved_word("default")
            && is_reserved_word("yield")
            && !is_reserved_word("type")
            && !is_reserved_word("from")
    );
}

#[test]
fn paragraphs_are_joined_and_lists_and_code_keep_their_lines() {
    let rows = [
        ("/// One\n/// two.", "One two."),
        ("/// One.\n///\n///\n/// Two.", "One.\n\nTwo."),
        ("/// Kinds:\n/// - a\n/// - b\n/// end", "Kinds:\n- a\n- b end"),
        ("/// Steps:\n/// 1. a\n/// 2. b", "Steps:\n1. a\n2. b"),
        ("/// Code:\n/// ```\n/// @param x\n///   y\n/// ```\n/// after", "Code:\n```\n@param x\n  y\n```\nafter"),
        ("/// Mail me@example.org now.", "Mail me@example.org now."),
        ("///   Indented.   ", "Indented."),
    ];
    for (comment, text) in rows {
        assert_eq!(read(&[], comment).unwrap().0.description, text, "{comment}");
    }
}

#[test]
fn a_description_may_go_on_over_lines() {
    let (spec, _) = read(&["a"], "/// X.\n/// @param {string} a - One\n///   two.\n/// @local").unwrap();
    assert_eq!(spec.parameters["properties"]["a"]["description"], "One two.");
}
