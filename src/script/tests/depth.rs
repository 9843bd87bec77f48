//! Nothing that nests, in the text or in its values, brings the process down.

use super::*;
use crate::script::alloc;

/// Ways to put an expression into an expression, or a statement around it; `@` is where it goes.
const WRAPS: &[&str] = &[
    "(@)",
    "-@",
    "!(@ == 0)",
    "1 + @",
    "@ + 1",
    "2 * (@)",
    "[@]",
    "[1, [@]]",
    "#{ a: @ }",
    "[1, 2][@]",
    "#{ a: 1 }[`${@}`]",
    "`${@}`",
    "`a${1}b${@}c`",
    "if @ == 0 { 1 } else { 2 }",
    "if true { @ } else { 2 }",
    "switch @ { 0 => 1, _ => 2 }",
    "switch 1 { 1 => @, _ => 2 }",
    "switch 1 { 0..9 if @ == 0 => 1, _ => 2 }",
    "{ @ }",
    "{ let a = @; a }",
    "{ let a = 1; a += @; a }",
    "true && @ == 0",
    "@ == 0 || false",
    "() ?? @",
    "(@).abs()",
    "abs(@)",
    "[1].contains(@)",
    "max(1, @)",
    "@ in [1]",
    "(0..@).start",
    "{ for i in 0..1 { @; } 1 }",
    "{ for i in [@] { } 1 }",
    "{ while @ == 77 { } 1 }",
    "{ loop { @; break; } 1 }",
    "{ do { @; } while false; 1 }",
    "{ try { @; } catch { } 1 }",
    "{ try { throw @; } catch (e) { e } 1 }",
    "[1].map(|x| @)[0]",
    "{ let g = || @; g.call() }",
    "{ let g = |x| { @ }; g.call(1) }",
    "probe::each(|x| @, 1)",
    "[2, 1].sort_by(|a, b| @)",
    "[1].filter(|x| @ == 0)",
    "[1, 2].reduce(|a, b| @)",
    "#{ a: [1, #{ b: (@) }] }",
    "{ const K = @; K }",
    "{ return @; }",
    "[@, @]",
    "id(@)",
    "Fn(\"id\").call(@)",
    "call(Fn(\"id\"), @)",
    "Fn(\"id\").curry(@).call()",
];

/// The deepest `f` made of these wraps in turn that compiles; its core calls `f` again.
fn deepest(rig: &Rig, wraps: &[&str]) -> Loaded {
    let text = |n: usize| {
        let mut body = String::from("f(n - 1)");
        for i in 0..n {
            body = wraps[i % wraps.len()].replace('@', &body);
            if body.len() > 20_000 {
                break;
            }
        }
        format!("fn id(x) {{ x }}\nfn f(n) {{ if n == 0 {{ return 0; }} {body} }}")
    };
    let slow = Budget { deadline: std::time::Duration::from_secs(60), ..Budget::LOAD };
    let load = |text: &str| rig.load_source(&Source { name: "tools/t.rhai".into(), text: text.into() }, slow);
    let (mut fits, mut fails) = (0, 70);
    while fails - fits > 1 {
        let n = usize::midpoint(fits, fails);
        match load(&text(n)) {
            Ok(_) => fits = n,
            // Too deep; or a mixture that the grammar does not have.
            Err(_) => fails = n,
        }
    }
    load(&text(fits)).ok().unwrap()
}

/// A thread with a sixty-fourth of a call thread's stack: what is left over is for values that nest.
fn on_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(16 << 20).spawn(test).unwrap();
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn recurse(rig: &Rig, wraps: &[&str]) {
    let loaded = deepest(rig, wraps);
    match rig.call(&loaded, "f", vec![Dynamic::from_int(1000)]) {
        Ok(_) => assert!(wraps.iter().any(|w| w.contains("catch") || w.contains("sort")), "{wraps:?}"),
        // A mixture may also come to a function with a value that it does not take.
        Err(fault) => {
            assert!(matches!(fault.error.kind(), Kind::Quota | Kind::Internal), "{wraps:?}: {}", fault.error.message())
        }
    }
    assert_eq!(rig.say("fn f() { 1 }"), "1");
}

#[test]
fn recursion_to_the_limit_through_the_deepest_expression_of_every_kind_fits() {
    on_small_stack(|| {
        let rig = Rig::new().budget(Budget { operations: 3_000_000, ..Budget::CALL });
        for wrap in WRAPS {
            recurse(&rig, &[wrap]);
        }
    });
}

#[test]
fn recursion_to_the_limit_through_mixed_expressions_fits() {
    on_small_stack(|| {
        let rig = Rig::new().budget(Budget { operations: 300_000, ..Budget::CALL });
        // A fixed walk through many mixtures of two to five kinds.
        let mut seed = 88_172_645_463_325_252_u64;
        for _ in 0..150 {
            let mut next = || {
                seed ^= seed << 13;
                seed ^= seed >> 7;
                seed ^= seed << 17;
                seed as usize
            };
            let mix: Vec<&str> = (0..2 + next() % 4).map(|_| WRAPS[next() % WRAPS.len()]).collect();
            recurse(&rig, &mix);
        }
    });
}

#[test]
fn texts_that_nest_or_chain_without_end_are_errors() {
    on_small_stack(|| {
        let rig = Rig::new();
        let many = 100_000;
        for open in [
            "(",
            "[",
            "{",
            "-(",
            "!",
            "#{a:",
            "||",
            "if a {",
            "`${",
            "fn f() {",
            "let a = {",
            "do {",
            "while a {",
            "loop {",
            "try {",
            "switch a { 1 => ",
            "return ",
            "a(",
            "a[",
            "a.b(",
            "for a in b {",
            "1+(",
            "1+-",
            "a??(",
            "export ",
            "import ",
            "/*",
            "throw ",
            "|x|",
            "true&&(",
            "..",
        ] {
            let text = open.repeat(many.min(program::MAX_SOURCE / open.len()));
            // An endless comment is a comment.
            assert_eq!(rig.load(&text).is_ok(), open == "/*", "{open}");
        }
        for link in [
            "+a", ".b", ".b()", "[0]", "?.b", "?[0]", "&&a", "||a", "??a", "**a", "-a", "*a", "..a", " in a", "==a",
            "(a)",
        ] {
            let text = format!("fn f(a) {{ a{} }}", link.repeat(200_000.min(program::MAX_SOURCE / link.len() - 20)));
            assert!(rig.load(&text).is_err(), "{link}");
        }
        let text = format!("fn f(a) {{ if a {{}}{} }}", " else if a {}".repeat(60_000));
        assert!(rig.load(&text).is_err());
    });
}

#[test]
fn a_mebibyte_of_flat_text_loads_and_goes() {
    on_call_thread(|| {
        let rig = Rig::new();
        let long = Budget { deadline: std::time::Duration::from_secs(120), ..Budget::LOAD };
        let filled = |head: &str, unit: &str, tail: &str| {
            let times = (program::MAX_SOURCE - head.len() - tail.len()) / unit.len();
            format!("{head}{}{tail}", unit.repeat(times))
        };
        for (text, works) in [
            (filled("const A = [", "1,", "];"), true),
            (filled("", "1;", ""), true),
            (filled("const A = \"", "x", "\";"), true),
            (filled("fn f(a) { ", "a;", "}"), true),
            (filled("fn f(a) { [", "a,", "] }"), true),
            (filled("fn f(a) { `", "${a}", "` }"), true),
            (filled("fn f(a) { switch a { ", "1=>2,", "} }"), true),
            (filled("fn f(a) { max(", "1,", "1) }"), true),
            (filled("//", "x", ""), true),
            (filled("", "///\n", "fn f() {}"), true),
            (filled("", "fn f(){}", ""), false),
            (filled("\"", "x", ""), false),
        ] {
            let source = Source { name: "tools/t.rhai".into(), text: text.as_str().into() };
            let loaded = rig.load_source(&source, long);
            // What is too much for the memory of a load is that.
            let loaded = match loaded {
                Err(fault) if works && fault.error.kind() == Kind::Quota => continue,
                other => other,
            };
            let head: String = text.chars().take(20).collect();
            assert_eq!(loaded.is_ok(), works, "{head}: {:?}", loaded.err().map(|f| f.error.to_string()));
        }
    });
}

/// Statements that leave the deepest value the budget allows in `a`, or stop while they build it.
const DEEP: &[(&str, &str)] = &[
    ("closures", "let a = 1; for i in 0..N { let b = a; a = || b; }"),
    ("closures of two", "let a = 1; for i in 0..N { let b = a; let c = a; a = || [b, c]; }"),
    ("closures and lists", "let a = 1; for i in 0..N { let b = [a]; a = || b; }"),
    ("closures and maps", "let a = 1; for i in 0..N { let b = #{ a: a }; a = || b; }"),
    (
        "lists in closures",
        "let a = 1; for i in 0..N { let b = [[[[[[[[a]]]]]]]]; for j in 0..30 { b = [b.take()]; } a = || b; }",
    ),
];

#[test]
fn values_that_nest_to_the_end_of_the_memory_budget_are_built_used_and_dropped() {
    on_call_thread(|| {
        let rig = Rig::new().budget(Budget {
            memory: 64 << 20,
            deadline: std::time::Duration::from_secs(120),
            ..Budget::CALL
        });
        for (name, build) in DEEP {
            // Until the budget ends it.
            let before = alloc::live();
            let text = format!("fn id(x) {{ x }}\nfn f() {{ {} a }}", build.replace("0..N", "0..9_000_000"));
            let fault = rig.run(&text).err().unwrap_or_else(|| panic!("{name}"));
            assert_eq!(fault.error.kind(), Kind::Quota, "{name}: {}", fault.error.message());
            assert!(alloc::live() - before < 1 << 20, "{name}");
            // And a deep one that lives, in every hand that takes it.
            for work in [
                "a",
                "let b = a; let c = b; [a, b, c]",
                "`${a}`",
                "`${[a]}`",
                "[a].to_debug()",
                "switch a { 1 => 2, _ => 3 }",
                "switch [a] { 1 => 2, _ => 3 }",
                "print(a); print([a]); debug(#{ a: a })",
                "throw a",
                "throw [a]",
                "[a].contains(1)",
                "1 in [a]",
                "a.type_of()",
                "\"\" + [a]",
                "[a].len()",
                "let b = [a, a]; b.sort(|x, y| 0)",
                "probe::each(|x| x, a)",
                "a == 1",
                "#{ x: a } == #{ x: 1 }",
                "[a] == [a]",
            ] {
                let text = format!(
                    "fn id(x) {{ x }}\nfn f() {{ {} {work} }}",
                    build.replace("0..N", if name.starts_with("lists") { "0..300" } else { "0..12_000" })
                );
                // A value or an error, but an answer.
                let _ = rig.run(&text);
            }
        }
    });
}

#[test]
fn lists_and_maps_that_nest_deep_are_compared_and_shown_to_an_end() {
    on_call_thread(|| {
        let rig = Rig::new();
        for build in [
            "let a = []; for i in 0..3000 { a = [a.take()]; }",
            "let a = #{}; for i in 0..3000 { a = #{ a: a.take() }; }",
        ] {
            for (work, said) in [
                ("let b = a; a == b", "too_large: values that nest deeper than 128 levels cannot be compared"),
                ("let b = a; a != b", "too_large: values that nest deeper than 128 levels cannot be compared"),
                ("a in [a]", "too_large: values that nest deeper than 128 levels cannot be compared"),
                ("[1, a].index_of(a)", "too_large: values that nest deeper than 128 levels cannot be compared"),
                ("[a, a].dedup()", "too_large: values that nest deeper than 128 levels cannot be compared"),
                ("a == 1", "false"),
                ("`${a}`.contains('…')", "true"),
                ("a.to_debug().len() > 128", "true"),
                ("print(a); 1", "1"),
                ("throw a", "?"),
            ] {
                let got = rig.say(&format!("fn f() {{ {build} {work} }}"));
                assert!(got == said || said == "?", "{build} {work}: {got}");
            }
        }
    });
}

#[test]
fn a_closure_that_captured_itself_is_followed_to_no_end() {
    on_call_thread(|| {
        let rig = Rig::new();
        for work in [
            "switch f { 1 => 2, _ => 3 }",
            "[f].to_debug()",
            "`${[f]}`",
            "print([f])",
            "throw [f]",
            "[f, 1].contains(1)",
            "f",
            "[f]",
            "\"\" + [f]",
            "f.to_debug()",
            "f.to_string()",
            "switch [f] { 1 => 2, _ => 3 }",
        ] {
            let _ = rig.run(&format!("fn f() {{ let f = 1; f = || f; {work} }}"));
        }
        let fault = rig.load("fn make() { let f = 1; f = || f; f }\nconst F = make();").err().unwrap();
        assert_eq!(fault.error.message(), "`const F` nests deeper than 128 levels");
    });
}

#[test]
fn a_constant_that_nests_too_deep_is_refused_wherever_it_stands() {
    on_call_thread(|| {
        const MAKE: &str = "fn make(n) { let a = []; for i in 0..n { a = [a.take()]; } a }\n";
        let rig = Rig::new()
            .with("lib/deep", &format!("{MAKE}const A = make(1000);"))
            .with("lib/shown", &format!("{MAKE}export let a = make(1000);"));
        assert!(rig.load(&format!("{MAKE}const A = make(100);")).is_ok());
        assert!(rig.load(&format!("{MAKE}const A = || 1;")).is_ok());
        let fault = rig.load(&format!("{MAKE}const A = make(1000);")).err().unwrap();
        assert_eq!(fault.error.message(), "`const A` nests deeper than 128 levels");
        let fault = rig.load("import \"lib/deep\" as d;").err().unwrap();
        assert_eq!(fault.error.message(), "`const A` nests deeper than 128 levels");
        assert_eq!(fault.diagnostic.file, "lib/deep.rhai");
        let fault = rig.load("import \"lib/shown\" as d;").err().unwrap();
        assert_eq!(fault.error.message(), "`a` nests deeper than 128 levels");
    });
}

#[test]
fn a_text_that_many_places_share_is_not_written_out_at_each() {
    on_call_thread(|| {
        let rig = Rig::new();
        let build =
            "let s = \"x\"; s.pad(1_000_000, 'x'); let a = []; for i in 0..1000 { a.push(s); } let m = #{ a: a };";
        for work in ["`${a}`", "a.to_string()", "a.to_debug()", "\"\" + a", "`${m}`", "m.to_debug()"] {
            let loaded = rig.load(&format!("fn f() {{ {build} {work} }}")).ok().unwrap();
            let before = alloc::live();
            alloc::reset_peak();
            assert_eq!(rig.call(&loaded, "f", vec![]).err().unwrap().error.kind(), Kind::Quota, "{work}");
            assert!(alloc::peak() - before < 150 << 20, "{work}: {} MiB", (alloc::peak() - before) >> 20);
        }
        for work in ["print(a); 1", "debug(m); 1", "throw a"] {
            let loaded = rig.load(&format!("fn f() {{ {build} {work} }}")).ok().unwrap();
            let before = alloc::live();
            alloc::reset_peak();
            assert!(rig.call(&loaded, "f", vec![]).is_err(), "{work}");
            assert!(alloc::peak() - before < 150 << 20, "{work}: {} MiB", (alloc::peak() - before) >> 20);
        }
    });
}

#[test]
fn long_comparisons_and_sorts_answer_the_budgets() {
    on_call_thread(|| {
        let rig = Rig::new().budget(Budget { operations: 2_000_000, ..Budget::CALL });
        // Equal texts that are not one text: each comparison reads them to the end.
        let build = "let s = \"x\"; s.pad(1_000_000, 'x'); let t = \"x\"; t.pad(1_000_000, 'x'); let a = []; let b = []; \
                     for i in 0..5000 { a.push(s); b.push(t); }";
        for work in [
            "a == b",
            "a != b",
            "#{ a: a } == #{ a: b }",
            "a.contains(t + \"y\"); a.contains(t.to_lower()); a == b",
            "a.push(t); a.dedup(); a += b; a.sort(); a.sort(); a == b",
            "for i in 0..5000 { a[i] = b[i * 7 % 5000]; a[i * 3 % 5000] = s; } a.sort(); a == b",
        ] {
            let fault = rig.run(&format!("fn f() {{ {build} {work} }}")).err().unwrap_or_else(|| panic!("{work}"));
            assert_eq!(fault.error.message(), "the call passed its budget of 2000000 operations", "{work}");
        }
    });
}
