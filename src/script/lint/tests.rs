//! What the walk finds, and what it leaves alone.

use super::super::tests::{Rig, on_call_thread};
use super::*;

fn lines(findings: &[Diagnostic]) -> Vec<String> {
    findings
        .iter()
        .map(|d| {
            let word = if d.severity == Severity::Error { "error" } else { "warning" };
            let hint = d.hint.as_deref().map_or_else(String::new, |h| format!(" | {h}"));
            format!("{word} {}:{} {}{hint}", d.line, d.column, d.message)
        })
        .collect()
}

fn rig() -> Rig {
    Rig::new()
        .with("lib/dates", "export const EPOCH = 1970;\nconst OWN = 1;\nfn age(a) { a }\nfn age(a, b) { b }\nprivate fn hidden() { OWN }")
        .with("lib/typo", "fn age(a) {\n  text::jion([a], \",\") }")
}

/// Rows of a file and exactly what is found in it.
fn table(rows: &[(&str, &[&str])]) {
    let rows: Vec<(String, Vec<String>)> =
        rows.iter().map(|(t, f)| ((*t).to_owned(), f.iter().map(|f| (*f).to_owned()).collect())).collect();
    on_call_thread(move || {
        for (text, wanted) in rows {
            assert_eq!(lines(&rig().findings(&text)), wanted, "{text}");
        }
    });
}

#[test]
fn a_closure_whose_variable_is_taken_for_a_function_further_up_is_told() {
    let finding = |place: &str| {
        format!(
            "warning {place} `asked` in this closure is `fn asked` of line 1, not the variable | give the variable or the function of line 1 another name"
        )
    };
    for (text, places) in [
        ("fn asked(x) { x }\nfn f(asked) { let w = || asked + 1; w.call() }", vec!["2:26"]),
        ("fn asked(x) { x }\nfn f() { let asked = 1; [1].map(|x| x + asked) }", vec!["2:41"]),
        ("fn asked(x) { x }\nfn f() { for asked in [1] { let w = || f(asked); } }\nfn f(x) { x }", vec!["2:42"]),
        (
            "fn asked(x) { x }\nfn f() { let asked = 1; let w = || { let v = || asked; v.call() }; w.call() }",
            vec!["2:49"],
        ),
        // The variable itself, a parameter of the closure, a call, and a pointer that is meant.
        ("fn asked(x) { x }\nfn f(asked) { asked + 1 }", vec![]),
        ("fn asked(x) { x }\nfn f() { [1].map(|asked| asked + 1) }", vec![]),
        ("fn asked(x) { x }\nfn f() { [1].map(|x| asked(x)) }", vec![]),
        ("fn asked(x) { x }\nfn f() { [[1]].map(|list| list.map(asked)) }\nfn g(asked) { asked }", vec![]),
        // Below the closure, a function hides nothing.
        ("fn f(asked) { let w = || asked + 1; w.call() }\nfn asked(x) { x }", vec![]),
    ] {
        let wanted: Vec<String> = places.into_iter().map(finding).collect();
        on_call_thread(move || assert_eq!(lines(&rig().findings(text)), wanted, "{text}"));
    }
}

#[test]
fn a_function_that_hides_a_used_method_or_operator_is_refused_naming_both_lines() {
    table(&[
        (
            "fn push(x) { x }\nfn f() { let list = [];\n list.push(1); list.push(2); }",
            &[
                "error 3:7 `fn push` of line 1 takes the place of the method used here, at line 3 | give the function of line 1 another name",
            ],
        ),
        (
            "fn f(list) { 1 in list }\n\nfn contains(a, b) { true }",
            &[
                "error 1:16 `fn contains` of line 3 takes the place of the operator `in` used here, at line 1 | give the function of line 3 another name",
            ],
        ),
        (
            "fn f(list) { 1 !in list }\nfn contains(a, b) { true }",
            &[
                "error 1:16 `fn contains` of line 2 takes the place of the operator `in` used here, at line 1 | give the function of line 2 another name",
            ],
        ),
        (
            "fn len() { 0 }\nfn f(list) { let g = |l| l.len(); `${list.len()}` }",
            &[
                "error 2:28 `fn len` of line 1 takes the place of the method used here, at line 2 | give the function of line 1 another name",
            ],
        ),
        // Another number of arguments, a call by name, an own method, a property: nothing is hidden.
        ("fn push(a, b) { a }\nfn f(list) { list.push(1); push(list, 2) }", &[]),
        ("fn contains(a, b) { true }\nfn f(list) { contains(list, 1) }", &[]),
        ("fn len() { 0 }\nfn f(list) { len() + list.len }", &[]),
        ("fn grow(n) { this.size += n; }\nfn f() { let plant = #{ size: 1 }; plant.grow(2); plant }", &[]),
    ]);
}

#[test]
fn a_call_that_finds_no_function_is_refused() {
    table(&[
        ("fn f() { text::jion([], \",\") }", &["error 1:16 no function `text::jion` | did you mean `text::join`?"]),
        ("fn f() { text::shout(\"a\") }", &["error 1:16 no function `text::shout` | `text` has join lines truncate"]),
        ("fn f() { text::join([]) }", &["error 1:16 `text::join` takes 2 arguments, not 1"]),
        ("fn f() { text::truncate(\"a\", 1, 2) }", &["error 1:16 `text::truncate` takes 1 or 2 arguments, not 3"]),
        ("fn f() { txt::join([], \"\") }", &["error 1:10 no module `txt` | did you mean `text`?"]),
        (
            "fn f() { agents::list() }",
            &[
                "error 1:10 the host module `agents` is not built yet | do without it in this version; `lapidary docs` lists the modules that there are",
            ],
        ),
        ("fn f() { agent::list() }", &["error 1:10 no module `agent` | import it: import \"lib/agent\" as agent;"]),
        ("fn f() { dates::age(1) }", &["error 1:10 no module `dates` | import it: import \"lib/dates\" as dates;"]),
        ("fn roll(a, b) { a }\nfn f() { rol(1, 2) }", &["error 2:10 no function `rol` | did you mean `roll`?"]),
        ("fn roll(a, b) { a }\nfn f() { roll(1) }", &["error 2:10 `roll` takes 2 arguments, not 1"]),
        (
            "fn roll() { 1 }\nfn roll(a, b) { a }\nfn f() { roll(1) }",
            &["error 3:10 `roll` takes 0 or 2 arguments, not 1"],
        ),
        ("fn f() { join([], \",\") }", &["error 1:10 no function `join` | did you mean `text::join`?"]),
        (
            "fn f() { let g = |x| x; g(1) }",
            &[
                "error 1:25 no function `g` | check the spelling; a closure in a variable is called as variable.call(..)",
            ],
        ),
        ("fn f() { min(1) }", &["error 1:10 `min` takes 2 arguments, not 1"]),
    ]);
}

#[test]
fn calls_are_found_wherever_they_stand() {
    let wraps = [
        "nope()",
        "`a ${nope()} b`",
        "let c = || nope();",
        "let c = |x| { let d = |y| nope(); d };",
        "[1, nope()]",
        "#{ a: nope() }",
        "if nope() { 1 }",
        "if true { nope() } else { 1 }",
        "if true { 1 } else { nope() }",
        "switch nope() { 1 => 2, _ => 3 }",
        "switch 1 { 1 => nope(), _ => 3 }",
        "switch 1 { 1 if nope() => 3, _ => 1 }",
        "switch 1 { 1..5 => nope(), _ => 3 }",
        "switch 1 { _ => nope() }",
        "while nope() { }",
        "loop { nope(); }",
        "do { nope(); } while false;",
        "do { } until nope();",
        "for i in nope() { }",
        "for i in 0..1 { nope(); }",
        "return nope();",
        "throw nope();",
        "try { nope(); } catch { }",
        "try { } catch (e) { nope(); }",
        "let a = 1; a += nope();",
        "let a = [1]; a[nope()] = 2;",
        "1 + 2 * nope()",
        "-nope()",
        "!nope()",
        "true && nope()",
        "true || nope()",
        "() ?? nope()",
        "text::lines(nope())",
        "[1].len(nope())",
        "#{}?.b[nope()]",
        "nope().a.b",
        "nope()[0]",
        "{ { nope(); } }",
        "let a = if true { nope() } else { 1 };",
        "[1].map(|x| nope())",
        "1 in nope()",
        "0..nope()",
        "const A = nope();",
        "nope!()",
        "let a = 1 ?? return nope();",
        "(nope())",
    ];
    on_call_thread(move || {
        for wrap in wraps {
            let text = format!("fn f() {{\n{wrap} }}");
            let found = rig().findings(&text);
            let column = wrap.find("nope").unwrap() + 1;
            let errors: Vec<&Diagnostic> =
                found.iter().filter(|d| d.severity == Severity::Error && d.message.contains("nope")).collect();
            assert_eq!(errors.len(), 1, "{wrap}: {:?}", lines(&found));
            assert_eq!((errors[0].line, errors[0].column), (2, column), "{wrap}");
            assert_eq!(errors[0].snippet.as_deref(), Some(format!("{wrap} }}").as_str()));
            // At the top level as well.
            if wrap.contains("return") {
                continue;
            }
            let fault = rig().load(&format!("if probe::count() < 0 {{\n{wrap} }}"));
            let loaded = fault.unwrap_or_else(|f| panic!("{wrap}: {}", f.diagnostic.render()));
            assert_eq!(check(&loaded.program).iter().filter(|d| d.message.contains("nope")).count(), 1, "{wrap}");
        }
    });
}

#[test]
fn what_an_import_lacks_is_refused() {
    table(&[
        (
            "import \"lib/dates\" as d;\nfn f() { d::aeg(1) }",
            &["error 2:10 the imported module has no function `d::aeg` | did you mean `d::age`?"],
        ),
        (
            "import \"lib/dates\" as d;\nfn f() { d::age(1, 2, 3) }",
            &["error 2:10 `d::age` takes 1 or 2 arguments, not 3"],
        ),
        (
            "import \"lib/dates\" as d;\nfn f() { d::hidden() }",
            &["error 2:10 the imported module has no function `d::hidden` | a `private` function stays in its module"],
        ),
        (
            "fn f() { import \"lib/dates\" as d; d::OWN }",
            &["error 1:35 the imported module has no constant `d::OWN` | write `export const OWN = ..` in the module"],
        ),
        ("import \"lib/dates\" as d;\nfn f() { [d::age(1), d::age(1, 2), d::EPOCH] }", &[]),
        ("fn f() { import \"lib/dates\" as d; let g = || d::age(1); g.call() + d::age(2, 3) }", &[]),
        (
            "import \"lib/typo\" as t;\nfn f() { t::age(1) }",
            &["error 2:9 no function `text::jion` | did you mean `text::join`?"],
        ),
    ]);
}

#[test]
fn what_is_wrong_in_a_lib_file_is_told_with_its_name() {
    on_call_thread(|| {
        let found = rig().findings("import \"lib/typo\" as t;\nfn f() { t::age(1) }");
        assert_eq!(found[0].summary(), "lib/typo.rhai:2:9: no function `text::jion`");
        assert_eq!(found[0].snippet.as_deref(), Some("  text::jion([a], \",\") }"));
    });
}

#[test]
fn a_name_that_is_no_variable_is_refused() {
    const PLAIN: &str = "check the spelling; only parameters, `let` of this function and top-level `const` are visible";
    let plain = |place: &str, name: &str| format!("error {place} no variable `{name}` here | {PLAIN}");
    let rows = [
        ("fn f() { zzz }", vec![plain("1:10", "zzz")]),
        ("fn f() { let g = || zzz + 1; g }", vec![plain("1:21", "zzz")]),
        ("fn f() { let g = |a| { let h = |b| a + b + zzz; h }; g }", vec![plain("1:44", "zzz")]),
        ("if probe::count() < 0 { let g = || zzz; }", vec![plain("1:36", "zzz")]),
        ("fn f() { `${zzz} and ${yyy}` }", vec![plain("1:13", "zzz"), plain("1:24", "yyy")]),
        ("fn f(a) { { let qqqqq = a; } qqqqq }", vec!["error 1:30 no variable `qqqqq` here | check the spelling; only parameters, `let` of this function and top-level `const` are visible".to_owned()]),
        ("fn f() { zzz = 1; }", vec![plain("1:10", "zzz")]),
        ("fn f() { zzz.push(1); zzz[0] = 2; }", vec![plain("1:10", "zzz"), plain("1:23", "zzz")]),
        ("fn f(a) { |v| v + a; v }", vec![plain("1:22", "v")]),
        ("fn f() { for i in 0..1 {} i }", vec![plain("1:27", "i")]),
        ("fn f() { try { } catch (e) { } e }", vec![plain("1:32", "e")]),
        ("const COUNT = 1;\nfn f() { CUONT }", vec!["error 2:10 no variable `CUONT` here | did you mean `COUNT`?".to_owned()]),
        ("fn f(arguments) { argumnets }", vec!["error 1:19 no variable `argumnets` here | did you mean `arguments`?".to_owned()]),
        (
            "let seen = 1;\nfn f() { seen }",
            vec!["error 2:10 no variable `seen` here | a top-level `let` is not visible in functions: make `seen` a const, a parameter, or keep it in state::".to_owned()],
        ),
        ("fn f() { None }", vec!["error 1:10 no variable `None` here | write `()`".to_owned()]),
        ("fn f() { text }", vec!["error 1:10 no variable `text` here | `text` is a module: write text::<function>(..)".to_owned()]),
        ("fn f() { global::NONE }", vec![plain("1:18", "NONE")]),
    ];
    on_call_thread(move || {
        for (text, wanted) in rows {
            assert_eq!(lines(&rig().findings(text)), wanted, "{text}");
        }
    });
}

#[test]
fn a_constant_used_above_its_line_says_to_move_it_up() {
    on_call_thread(|| {
        // The top level fails at once, with the same words.
        let fault = rig().load("const A = [B];\nconst B = 1;").err().unwrap();
        assert_eq!(fault.diagnostic.summary(), "tools/t.rhai:1:12: no variable `B` here");
        assert_eq!(
            fault.diagnostic.hint.as_deref(),
            Some("`const B` stands further down: move it above its first use")
        );
        // And where the line is not reached now.
        let found = rig().findings("if probe::count() < 0 { let a = B; }\nconst B = 1;\nfn f() { B }");
        assert_eq!(
            lines(&found),
            ["error 1:33 no variable `B` here | `const B` stands further down: move it above its first use"]
        );
    });
}

#[test]
fn names_that_are_there_are_left_alone() {
    table(&[
        (
            r#"
            const X = 1;
            import "lib/dates" as d;
            fn helper(a) { a }
            fn f(a, b) {
                let list = [3, 1];
                let c = a + X;
                const D = 2;
                list.sort(|p, q| p - q);
                let total = 0;
                for (item, index) in list { total += item * index; }
                let add = |n| { total += n + c + X + D; total };
                add.call(1);
                list.map(helper);
                list.filter(Fn("helper"));
                let curried = Fn("helper").curry(1);
                call(curried);
                helper.call(2);
                try { throw #{ code: 1 }; } catch (err) { let t = err.code; t += b; }
                switch a { 1 => X, 2..5 if b > c => list[0], _ => D }
                while total < 0 { break total; }
                do { total += 1; } while total < 0;
                let nested = |x| { let y = |z| x + z + a + X; y.call(1) };
                nested.call(1);
                let map = #{ run: |v| v + X, k: a };
                map.run(1);
                map.k += this.other ?? 1;
                map["late"] = |v| v;
                map.late(2);
                let s = `${a} ${ { let inner = X; inner + 1 } } ${helper(X)}`;
                s.to_upper(); s.len; s.len();
                type_of(a) + a.type_of();
                if is_def_fn("helper", 1) { exit(1); }
                is_shared(a);
                print_nothing();
                d::EPOCH + global::X
            }
            private fn print_nothing() { 1 }
            "#,
            &[],
        ),
        // Where names may come from the caller, nothing is said.
        ("fn g() { zzz }\nfn f() { let zzz = 1; g!() }", &[]),
        ("fn f() { if is_def_var(\"zzz\") { zzz } }", &[]),
        ("fn f() {}", &[]),
        ("// nothing", &[]),
    ]);
}

#[test]
fn what_works_and_should_be_looked_at_is_warned_of() {
    table(&[
        (
            "const A = 1;\nconst B = 2;\nconst A = 3;\nfn f() { A }",
            &["warning 3:7 `const A` stands twice, at lines 1 and 3: the last one counts | keep one"],
        ),
        (
            "const A = settings::get(\"sides\");\nfn f() { A }",
            &[
                "warning 1:7 `const A` keeps the setting as it was when the file was loaded | read it inside the function: settings::get(..) there sees every save; or build the tools in get_tools()",
            ],
        ),
        (
            "const T = [#{ d: `${settings::get(\"sides\")} ${settings::all().len}` }];\nlet b = settings::get(\"sides\");\nfn f() { settings::get(\"sides\") }",
            &[
                "warning 1:7 `const T` keeps the setting as it was when the file was loaded | read it inside the function: settings::get(..) there sees every save; or build the tools in get_tools()",
            ],
        ),
        (
            "fn f() { 1;\n print(1); debug(2); }",
            &["warning 2:2 `print` is left in (2 times) | take it out, or say log::info(..) for what should stay"],
        ),
        (
            "fn f() { \"<!--FILES:a-->\" + `x ${1} <<IMG::1>>` }",
            &[
                "warning 1:10 `<!--FILES:` looks like a marker made by hand, which the chat shows as plain text | the host makes markers: images::result, images::gallery, attachments::marker",
                "warning 1:36 `<<IMG::` looks like a marker made by hand, which the chat shows as plain text | the host makes markers: images::result, images::gallery, attachments::marker",
            ],
        ),
        (
            "fn roll() {}\nfn f() { Fn(\"rol\") }",
            &["warning 2:13 `Fn(\"rol\")` names no function of this file | did you mean `roll`?"],
        ),
        ("fn f(a) { a.psuh(1) }", &["warning 1:13 nothing has a method `psuh` | did you mean `push`?"]),
        (
            "fn f(a) { a.frobnicate() }",
            &[
                "warning 1:13 nothing has a method `frobnicate` | it works only where the object is a map that holds a function of that name",
            ],
        ),
    ]);
}

#[test]
fn a_tools_parameter_that_bears_a_reserved_word_is_warned_of() {
    table(&[(
        "const TOOLS = [#{ type: \"function\", function: #{ name: \"seek\", parameters: #{ type: \"object\",\n properties: #{ \"match\": #{ type: \"string\" }, type: #{ type: \"string\" } } } } }];\nfn execute(a, b, c) { b[\"match\"] }",
        &[
            "warning 2:17 `seek`: the parameter `match` bears a reserved word of Rhai | read it as arguments[\"match\"], or choose another name",
        ],
    )]);
}

#[test]
fn every_reserved_word_is_refused_by_the_parser_where_the_list_says_so() {
    on_call_thread(|| {
        let rig = rig();
        for word in RESERVED_WORDS {
            let text = format!("fn f({word}) {{ 1 }}");
            assert!(rig.load(&text).is_err(), "{text}");
        }
        for free in ["type", "enum", "exit", "not", "from", "to", "where", "arguments", "config", "count"] {
            let text = format!("fn f({free}) {{ let a = #{{ {free}: 1 }}; a.{free} }}");
            assert!(rig.load(&text).is_ok(), "{text}");
        }
    });
}

#[test]
fn many_findings_are_cut_and_counted() {
    on_call_thread(|| {
        let text: String = (0..200).map(|n| format!("fn f{n}() {{ q{n}q{n}q(); }}\n")).collect();
        let found = rig().findings(&text);
        assert_eq!(found.len(), MOST);
        assert!(found[MOST - 1].message.ends_with("(and 150 more like these)"), "{}", found[MOST - 1].message);
        assert_eq!(found[0].line, 1);
    });
}

#[test]
fn a_hidden_method_is_really_taken_over() {
    on_call_thread(|| {
        let rig = rig();
        assert_eq!(rig.say("fn push(x) { \"mine\" }\nfn f() { let l = []; l.push(1) }"), "mine");
        for (text, said) in [
            ("fn contains(a, b) { true }\nfn f() { [1 in [2], 1 !in [2]] }", "[true, false]"),
            ("fn contains(x) { true }\nfn f() { [1 in [2], 1 !in [2], [2].contains(1)] }", "[false, true, true]"),
        ] {
            assert_eq!(rig.say(text), said, "{text}");
        }
    });
}
