//! What an author sees when something goes wrong: the place, the line, the caret, the calls, and what to do.

use super::*;

/// A file that fails in every way, beside a module that does.
fn rendered(text: &str) -> String {
    let rig = Rig::new()
        .with(
            "lib/deep",
            "fn outer(x) {\n    inner(x)\n}\nfn inner(x) {\n    x.missing_prop\n}\nfn native(x) { probe::fails(x) }\n",
        )
        .with("lib/bad", "fn x() {\n  let = 1;\n}")
        .with("lib/throws", "const A = 1;\nthrow \"not today\";");
    match rig.run(text) {
        Ok(value) => format!("fine: {value}"),
        Err(fault) => fault.diagnostic.render(),
    }
}

#[test]
fn a_stack_goes_through_modules_with_the_right_file_on_every_line() {
    on_call_thread(|| {
        assert_eq!(
            rendered("import \"lib/deep\" as deep;\n\nfn helper(x) {\n\tdeep::outer(x)\n}\nfn f() { helper(1) }"),
            "error: unknown property 'missing_prop' - a getter is not registered for type 'i64'\n\
             \x20 --> lib/deep.rhai:5:7\n\
             \x20 |\n\
             5 |     x.missing_prop\n\
             \x20 |       ^\n\
             \x20 in inner() called at lib/deep.rhai:2:5\n\
             \x20 in outer() called at tools/t.rhai:4:8\n\
             \x20 in helper() called at tools/t.rhai:6:10\n"
        );
    });
}

#[test]
fn a_host_error_points_at_the_call_of_the_host_function() {
    on_call_thread(|| {
        assert_eq!(
            rendered("import \"lib/deep\" as deep;\nfn f() { deep::native(\"file a\") }"),
            "error: no file a\n\
             \x20 --> lib/deep.rhai:7:23\n\
             \x20 |\n\
             7 | fn native(x) { probe::fails(x) }\n\
             \x20 |                       ^\n\
             \x20 in native() called at tools/t.rhai:2:16\n\
             \x20 help: look elsewhere\n"
        );
    });
}

#[test]
fn closures_are_called_closure() {
    on_call_thread(|| {
        assert_eq!(
            rendered("fn f() {\n  let g = |x| x.nope;\n  [1].map(g)\n}"),
            "error: unknown property 'nope' - a getter is not registered for type 'i64'\n\
             \x20 --> tools/t.rhai:2:17\n\
             \x20 |\n\
             2 |   let g = |x| x.nope;\n\
             \x20 |                 ^\n\
             \x20 in <closure>() called at tools/t.rhai:3:7\n\
             \x20 in map() called at tools/t.rhai:3:7\n"
        );
    });
}

#[test]
fn errors_while_loading_are_placed_in_the_file_that_has_them() {
    on_call_thread(|| {
        let table = [
            ("fn f() {\n  let = 1;\n}", "tools/t.rhai:2:7: expecting name of a variable", "syntax"),
            ("import \"lib/bad\" as b;\nfn f() { 1 }", "lib/bad.rhai:2:7: expecting name of a variable", "syntax"),
            ("\nimport \"lib/throws\" as b;\nfn f() { 1 }", "lib/throws.rhai:2:1: not today", "internal"),
            ("const A = probe::fails(\"luck\");\nfn f() { 1 }", "tools/t.rhai:1:18: no luck", "not_found"),
            ("fn f(match) { 1 }", "tools/t.rhai:1:6: 'match' is a reserved keyword", "syntax"),
            (
                "/// doc\nconst A = 1;",
                "tools/t.rhai:1:1: doc-comment must be followed immediately by a function definition",
                "syntax",
            ),
            ("#! /usr/bin/env rhai\nfn f() { 1 }", "tools/t.rhai:1:1: '#!' is a reserved symbol", "syntax"),
            ("fn f() { 1 }\nfn f() { 2 }", "tools/t.rhai:2:1: function f with no parameters already exists", "syntax"),
            ("fn f() { \"open", "tools/t.rhai:1:10: open string is not terminated", "syntax"),
            ("fn f() { 99999999999999999999 }", "tools/t.rhai:1:10: invalid number: '99999999999999999999'", "syntax"),
        ];
        for (text, summary, code) in table {
            let rig = Rig::new()
                .with("lib/bad", "fn x() {\n  let = 1;\n}")
                .with("lib/throws", "const A = 1;\nthrow \"not today\";");
            let fault = rig.load(text).err().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(fault.diagnostic.summary(), summary, "{text}");
            assert_eq!(fault.diagnostic.code, code, "{text}");
            assert!(fault.diagnostic.snippet.is_some(), "{text}");
        }
    });
}

#[test]
fn reserved_words_comments_and_first_lines_say_what_to_write_instead() {
    on_call_thread(|| {
        for (text, part) in [
            ("fn f(match) { 1 }", "`match_`"),
            ("fn f(a) { a.match }", "arguments[\"match\"]"),
            ("const A = #{ n: #{ type: 1, default: 2 } };", "`\"default\": ..`"),
            ("const A = #{\n  match : 2,\n};", "in quotes: `\"match\": ..`"),
            ("fn f() { match::x() }", "choose another name"),
            ("/// doc\nconst A = 1;", "write `//` here"),
            ("#!/usr/bin/rhai\nfn f() { 1 }", "take it out"),
            ("fn f() { eval(\"1\") }", "a map of functions"),
            ("fn f(a) { if a and 1 { } }", "`&&`"),
            ("fn f() { if 1 { } }", "`n != 0`"),
        ] {
            let fault = Rig::new().load(text).err().unwrap_or_else(|| panic!("{text}"));
            let hint = fault.diagnostic.hint.unwrap_or_default();
            assert!(hint.contains(part), "{text}: {hint}");
        }
    });
}

#[test]
fn what_is_thrown_keeps_its_code_message_and_fields() {
    on_call_thread(|| {
        let table = [
            ("throw \"plain\"", "internal", "plain"),
            ("throw 7", "internal", "7"),
            ("throw", "internal", "the script threw nothing"),
            ("throw #{ message: \"mine\", more: 1 }", "internal", "mine"),
            ("throw #{ a: 1 }", "internal", "{\"a\":1}"),
            ("throw failure(#{ code: \"not_found\", message: \"no page\" })", "not_found", "no page"),
            ("throw failure(#{ code: \"nope\" })", "invalid_arguments", "`nope` is not a failure code"),
            ("throw failure(#{ code: \"quota\", colour: 1 })", "invalid_arguments", "a failure has no field `colour`"),
            ("try { probe::fails(\"x\") } catch (e) { throw e; }", "not_found", "no x"),
            ("try { probe::fails(\"x\") } catch (e) { throw failure(e); }", "not_found", "no x"),
            (
                "try { 1.nope } catch (e) { throw e; }",
                "internal",
                "unknown property 'nope' - a getter is not registered for type 'i64'",
            ),
            ("1 / 0", "internal", "division by zero: 1 / 0"),
            ("9223372036854775807 + 1", "internal", "addition overflow: 9223372036854775807 + 1"),
            ("[1][5]", "internal", "array index 5 out of bounds: only 1 element in array"),
        ];
        for (body, code, message) in table {
            let fault = Rig::new().run(&format!("fn f() {{ {body}; }}")).err().unwrap_or_else(|| panic!("{body}"));
            assert_eq!((fault.error.code(), fault.error.message()), (code, message), "{body}");
            assert_eq!(fault.diagnostic.line, 1, "{body}");
        }
    });
}

#[test]
fn a_caught_host_error_is_a_map_of_code_message_and_hint() {
    on_call_thread(|| {
        assert_eq!(
            Rig::new()
                .say("fn f() { try { probe::fails(\"x\") } catch (e) { return `${e.code}|${e.message}|${e.hint}`; } }"),
            "not_found|no x|look elsewhere"
        );
        assert_eq!(
            Rig::new().say("fn f() { try { let a = 1; a.b } catch (e) { return [e.code, e.error, e.line, e.position, e.source]; } }"),
            r#"[(), "ErrorDotExpr", 1, 29, "tools/t.rhai"]"#
        );
    });
}

#[test]
fn a_panic_in_a_native_is_caught_and_the_engine_serves_on() {
    on_call_thread(|| {
        let rig = Rig::new();
        let loaded = rig
            .load("fn bad() { probe::panics() }\nfn deep() { [1].map(|x| probe::panics()) }\nfn f() { probe::who() }")
            .ok()
            .unwrap();
        for name in ["bad", "deep", "bad"] {
            let fault = rig.call(&loaded, name, vec![]).err().unwrap();
            assert_eq!(fault.error.message(), "a native broke");
            assert_eq!(rig.call(&loaded, "f", vec![]).ok().unwrap().to_string(), "Call owner");
        }
    });
}

#[test]
fn a_missing_function_says_which_types_it_was_asked_with() {
    on_call_thread(|| {
        assert_eq!(Rig::new().say("fn f() { text::join(1, 2) }"), "internal: no function text::join (i64, i64)");
        assert_eq!(Rig::new().say("fn f() { let a = 1; a.push(2) }"), "internal: no function push (i64, i64)");
    });
}

#[test]
fn a_long_line_is_shown_around_its_fault() {
    on_call_thread(|| {
        let text = format!("fn f() {{ let a = [{}]; a.nope }}", "1, ".repeat(400));
        let shown = Rig::new().run(&text).err().unwrap().diagnostic.render();
        let lines: Vec<&str> = shown.lines().collect();
        let caret = lines[4].find('^').unwrap();
        assert!(lines.iter().all(|l| l.chars().count() < 260), "{shown}");
        assert_eq!(&lines[3].chars().collect::<Vec<_>>()[caret..caret + 4], ['n', 'o', 'p', 'e'], "{shown}");
    });
}
