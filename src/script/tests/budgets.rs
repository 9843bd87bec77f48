//! The budgets stop what they should, nothing swallows them, and the host serves on afterwards.

use super::*;
use crate::script::alloc;
use std::time::Duration;

const MIB: u64 = 1 << 20;

fn budget(operations: u64, memory: u64) -> Budget {
    Budget { deadline: Duration::from_secs(120), operations, memory }
}

/// Bodies of `f()` that grow without end. Each ends by the memory budget.
const BOMBS: &[(&str, &str)] = &[
    ("s += s", "let s = \"abcdefgh\"; loop { s += s; }"),
    ("s = s + s", "let s = \"abcdefgh\"; loop { s = s + s; }"),
    ("template", "let s = \"abcdefgh\"; loop { s = `${s}${s}`; }"),
    ("wide template", "let s = \"abcdefgh\"; loop { s = `${s}${s}${s}${s}${s}${s}${s}${s}`; }"),
    ("pad text", "let s = \"\"; s.pad(1_000_000_000, '$'); s"),
    ("pad text by text", "let s = \"\"; s.pad(100_000_000, \"ab\"); s"),
    ("pad negative", "let s = \"\"; s.pad(-1, \"ab\"); let n = 1; loop { s.pad(n, 'x'); n *= 2; }"),
    ("blob", "blob(1_000_000_000)"),
    ("blob filled", "blob(100_000_000, 7)"),
    ("blob pad", "let b = blob(1); b.pad(1_000_000_000, 7); b"),
    ("array pad", "let a = []; a.pad(100_000_000, 0); a"),
    ("array pad of texts", "let a = []; let s = \"x\"; s.pad(1000, 'x'); a.pad(100_000_000, s); a"),
    ("array pad of arrays", "let a = []; let b = []; b.pad(1000, 0); let n = 1; loop { a.pad(n, b); n *= 2; }"),
    ("push", "let a = []; loop { a.push(1); }"),
    ("array of big texts", "let a = []; let s = \"x\"; s.pad(100_000, 'x'); loop { a.push(s + a.len()); }"),
    ("[a, a]", "let a = [1]; loop { a = [a, a]; }"),
    ("a += a", "let a = [1]; loop { a += a; }"),
    ("a + a", "let a = [1]; loop { a = a + a; }"),
    ("append", "let a = [1]; loop { a.append(a); }"),
    ("map of maps", "let m = #{ a: 1 }; loop { m = #{ a: m, b: m }; }"),
    ("map keys", "let m = #{}; let i = 0; loop { m[`key number ${i}`] = `${i}`; i += 1; }"),
    ("map + map", "let m = #{}; let i = 0; loop { m += #{}; m[`k${i}`] = i; i += 1; }"),
    ("replace growth", "let s = \"aaaaaaaa\"; loop { s.replace(\"a\", \"aaaaaaaa\"); }"),
    ("replace nothing", "let s = \"aaaaaaaa\"; loop { s.replace(\"\", \"aaaaaaaa\"); }"),
    ("replace a char", "let s = \"aaaaaaaa\"; loop { s.replace('a', \"aaaaaaaa\"); }"),
    ("split", "let s = \"x\"; s.pad(1_000_000, 'x'); let a = []; loop { a.push(s.split(\"\")); }"),
    ("split by char", "let s = \"x\"; s.pad(4_000_000, 'x'); let a = []; loop { a.push(s.split('x')); }"),
    ("to_chars", "let s = \"x\"; s.pad(1_000_000, 'x'); let a = []; loop { a.push(s.to_chars()); }"),
    ("chars", "let s = \"x\"; s.pad(4_000_000, 'x'); let a = []; loop { for c in s.chars() { a.push(c); } }"),
    ("blob to array", "let b = blob(8_000_000); let a = []; loop { a.push(b.to_array()); }"),
    ("blob append", "let b = blob(8); loop { b += b; }"),
    ("text to blob", "let s = \"x\"; s.pad(1_000_000, 'x'); let a = []; loop { a.push(s.to_blob()); }"),
    ("bytes of text", "let s = \"x\"; s.pad(4_000_000, 'x'); let a = []; loop { a.push(s.to_upper()); }"),
    ("sub_string", "let s = \"x\"; s.pad(4_000_000, 'x'); let a = []; loop { a.push(s.sub_string(1)); }"),
    ("range pad", "let a = []; a.pad(1_000_000_000, 0..10); a"),
    (
        "array from map",
        "let m = #{}; for i in 0..10_000 { m[`k${i}`] = i; } let a = []; loop { a.push(m.keys()); a.push(m.values()); }",
    ),
    ("splice", "let a = [1]; loop { a.splice(0..0, a); }"),
    ("insert", "let a = []; loop { a.insert(0, [a.len()]); }"),
    ("extract", "let a = []; a.pad(10_000, 0); let b = []; loop { b.push(a.extract(0..10_000)); }"),
    ("chunks", "let a = []; a.pad(100_000, 0); let b = []; loop { b.push(a.zip(a, |x, y| [x, y])); }"),
    ("filter copies", "let a = []; a.pad(100_000, 0); let b = []; loop { b.push(a.filter(|x| true)); }"),
    ("map copies", "let a = []; a.pad(100_000, 0); let b = []; loop { b.push(a.map(|x| [x])); }"),
    ("shared closure", "let a = []; let grow = || a.push(a.len()); loop { grow.call(); }"),
    ("closure text", "let s = \"ab\"; let grow = || { s += s; }; loop { grow.call(); }"),
    ("recursion with arrays", "fn_deep(0)"),
    ("catch", "let s = \"ab\"; loop { try { loop { s += s; } } catch { s = s; } }"),
    ("catch of pad", "let a = []; loop { try { let b = []; b.pad(100_000_000, 0); } catch (e) { a.push(e); } }"),
    ("for over a growing range", "let a = []; for i in 0..9_000_000_000 { a.push(i); }"),
    (
        "nested text of arrays",
        "let a = [1, 2, 3, 4, 5, 6, 7, 8]; let s = \"\"; loop { s = `${a}`; a.push(s); a.push(a); }",
    ),
    ("join by hand", "let a = []; a.pad(100_000, \"0123456789\"); let s = \"\"; loop { for x in a { s += x; } }"),
    ("concat a + text", "let a = []; a.pad(1_000_000, 0); let b = []; loop { b.push(\"\" + a); }"),
    ("hex of numbers", "let a = []; loop { a.push(255.to_hex()); a.push(1.5.to_string()); }"),
    ("debug text", "let a = [1]; loop { a = [a.to_debug(), a.to_debug(), a]; }"),
    ("curry", "let f = |a, b| b; loop { f = f.curry(f); }"),
    ("throw", "let s = \"ab\"; loop { try { throw [s, s]; } catch (e) { s = e; } }"),
    ("as_string of blob", "let b = blob(8_000_000, 65); let a = []; loop { a.push(b.as_string()); }"),
    ("writes into a blob", "let b = blob(); loop { b.push(1); b += b; }"),
];

#[test]
fn no_bomb_passes_the_memory_budget_by_much_and_the_host_serves_on() {
    on_call_thread(|| {
        let rig = Rig::new();
        let small = rig.load("fn f() { let a = []; for i in 0..1000 { a.push(`${i}`); } a.len() }").ok().unwrap();
        for (name, body) in BOMBS {
            let text = format!(
                "fn fn_deep(n) {{ let a = []; a.pad(90_000, n); fn_deep(n + 1) + a.len() }}\nfn f() {{ {body} }}"
            );
            let loaded = rig.load(&text).unwrap_or_else(|f| panic!("{name}: {}", f.diagnostic.render()));
            let memory = 8 * MIB;
            let before = alloc::live();
            let control = Control::start(budget(100_000_000, memory));
            alloc::reset_peak();
            let result = rig.call_with(&loaded, "f", vec![], &control, "owner");
            let peak = u64::try_from(alloc::peak() - before).unwrap();
            match result {
                Ok(value) => panic!("{name} ended with {}", value.type_name()),
                Err(fault) => {
                    assert_eq!(fault.error.kind(), Kind::Quota, "{name}: {}", fault.error.message());
                    assert!(
                        fault.error.message().contains("memory budget of 8 MiB"),
                        "{name}: {}",
                        fault.error.message()
                    );
                }
            }
            assert_eq!(control.stopped(), Stop::Memory, "{name}");
            assert!(peak * 10 <= memory * 23, "{name} peaked at {} KiB", peak >> 10);
            drop(loaded);
            assert!(alloc::live() - before < 1 << 20, "{name} left {} KiB", (alloc::live() - before) >> 10);
            assert_eq!(rig.call(&small, "f", vec![]).ok().unwrap().as_int(), Ok(1000), "after {name}");
        }
    });
}

#[test]
fn a_constant_bomb_is_stopped_while_loading() {
    on_call_thread(|| {
        let rig = Rig::new();
        let folds = |first: &str, next: &dyn Fn(usize) -> String| {
            let mut text = format!("const A0 = {first};\n");
            for i in 1..40 {
                text += &format!("const A{i} = {};\n", next(i - 1));
            }
            text
        };
        for text in [
            folds("\"abcdefgh\"", &|i| format!("A{i} + A{i}")),
            folds("[1, 2]", &|i| format!("[A{i}, A{i}]")),
            folds("#{ a: 1 }", &|i| format!("#{{ a: A{i}, b: A{i} }}")),
            folds("\"abcdefgh\"", &|i| format!("`${{A{i}}}${{A{i}}}`")),
        ] {
            let before = alloc::live();
            alloc::reset_peak();
            let fault = rig.load(&text).err().unwrap();
            assert_eq!(fault.error.kind(), Kind::Quota, "{}", fault.error.message());
            assert!(alloc::peak() - before < (64 * 23 / 10) << 20);
            // In a function nothing runs at all.
            assert!(rig.load(&format!("fn f() {{ {text} }}")).is_ok());
        }
    });
}

#[test]
fn an_endless_loop_ends_at_its_deadline() {
    on_call_thread(|| {
        let rig =
            Rig::new().budget(Budget { deadline: Duration::from_millis(30), operations: u64::MAX, memory: 64 * MIB });
        for body in [
            "loop { }",
            "while true { let a = 1; }",
            "loop { try { loop { } } catch { } }",
            "loop { try { loop { } } catch (e) { continue; } }",
            "for i in 0..9_000_000_000_000 { }",
            "[1].map(|x| { loop { } })",
            "do { } while true",
        ] {
            let fault = rig.run(&format!("fn f() {{ {body} }}")).err().unwrap_or_else(|| panic!("{body}"));
            assert_eq!(fault.error.kind(), Kind::Timeout, "{body}: {}", fault.error.message());
            assert_eq!(fault.error.message(), "the call passed its deadline of 0.03 s", "{body}");
            assert!(fault.error.hint_text().unwrap().contains("limits.timeout_s"), "{body}");
        }
    });
}

#[test]
fn an_endless_top_level_ends_at_the_load_deadline() {
    on_call_thread(|| {
        let source = Source { name: "tools/t.rhai".into(), text: "const A = 1;\nloop { }".into() };
        let short = Budget { deadline: Duration::from_millis(30), ..Budget::LOAD };
        let fault = Rig::new().load_source(&source, short).err().unwrap();
        assert_eq!(fault.error.kind(), Kind::Timeout);
        let source = Source { name: "tools/t.rhai".into(), text: "import \"lib/a\" as a;".into() };
        let fault = Rig::new().with("lib/a", "\nloop { }").load_source(&source, short).err().unwrap();
        assert_eq!(fault.error.kind(), Kind::Timeout);
        assert_eq!(fault.diagnostic.file, "lib/a.rhai");
    });
}

#[test]
fn a_text_that_takes_the_parser_too_long_ends_at_the_load_deadline() {
    on_call_thread(|| {
        // Every name looks through all names before it: minutes, were it not stopped.
        let mut text = String::from("fn f(a) { ");
        for i in 0..9000 {
            text += &format!("let a{i}=1;");
        }
        while text.len() < program::MAX_SOURCE - 20 {
            text += "a;a0;a1;";
        }
        text += "}";
        let source = Source { name: "tools/t.rhai".into(), text: text.as_str().into() };
        let short = Budget { deadline: Duration::from_millis(50), ..Budget::LOAD };
        let fault = Rig::new().load_source(&source, short).err().unwrap();
        assert_eq!(fault.error.kind(), Kind::Timeout, "{}", fault.error.message());
        assert_eq!(fault.diagnostic.code, "timeout");
        let keys: String = (0..90_000).map(|i| format!("a{i}:1,")).collect();
        let source = Source { name: "tools/t.rhai".into(), text: format!("const A = #{{{keys}}};").as_str().into() };
        assert_eq!(Rig::new().load_source(&source, short).err().unwrap().error.kind(), Kind::Timeout);
    });
}

#[test]
fn a_cancel_stops_a_call_wherever_it_is() {
    for body in ["loop { }", "loop { try { loop { } } catch { } }", "[1].map(|x| { loop { } })"] {
        let rig = Rig::new();
        let control = Control::start(Budget { operations: u64::MAX, ..Budget::CALL });
        let (running, own) = (control.clone(), rig.clone());
        let text = format!("fn f() {{ probe::count(); {body} }}");
        let thread = pool::spawn("cancelled", move || {
            let loaded = own.load(&text).ok().unwrap();
            let fault = own.call_with(&loaded, "f", vec![], &running, "owner").err().unwrap();
            assert_eq!(own.say("fn f() { 1 }"), "1");
            fault.error
        })
        .unwrap();
        while rig.counter.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        control.cancel();
        let error = thread.join().unwrap();
        assert_eq!(error.kind(), Kind::Cancelled, "{body}");
    }
}

#[test]
fn a_call_that_was_cancelled_before_it_began_does_nothing() {
    on_call_thread(|| {
        let rig = Rig::new();
        let loaded = rig.load("fn f() { probe::count() }").ok().unwrap();
        let control = Control::start(Budget::CALL);
        control.cancel();
        assert_eq!(rig.call_with(&loaded, "f", vec![], &control, "owner").err().unwrap().error.kind(), Kind::Cancelled);
        assert_eq!(rig.counter.load(Ordering::Relaxed), 0);
    });
}

#[test]
fn operations_are_counted_and_a_catch_cannot_swallow_the_end() {
    on_call_thread(|| {
        let rig = Rig::new().budget(budget(10_000, 64 * MIB));
        assert_eq!(rig.say("fn f() { let n = 0; for i in 0..1000 { n += 1; } n }"), "1000");
        for body in
            ["loop { }", "loop { try { loop { } } catch { } }", "for i in 0..100_000 { try { i += 1; } catch { } }"]
        {
            let fault = rig.run(&format!("fn f() {{ {body} }}")).err().unwrap_or_else(|| panic!("{body}"));
            assert_eq!(fault.error.kind(), Kind::Quota, "{body}");
            assert_eq!(fault.error.message(), "the call passed its budget of 10000 operations", "{body}");
        }
    });
}

#[test]
fn a_nested_call_counts_in_its_parent_and_its_own_limit_can_be_caught() {
    on_call_thread(|| {
        let rig = Rig::new().budget(budget(20_000, 64 * MIB));
        // The inner budget ends only the inner call.
        assert_eq!(
            rig.say(
                "fn deep() { loop { } }\nfn f() { try { probe::nest(\"deep\", 1000) } catch (e) { return e.code; } }"
            ),
            "quota"
        );
        // Many inner calls use up the outer budget.
        assert_eq!(
            rig.say("fn deep() { for i in 0..100 { } }\nfn f() { loop { probe::nest(\"deep\", 100_000) } }"),
            "quota: the call passed its budget of 20000 operations"
        );
        // The inner one cannot have more than the outer has left.
        assert_eq!(
            rig.say("fn deep() { loop { } }\nfn f() { probe::nest(\"deep\", 1_000_000) }"),
            "quota: the call passed its budget of 20000 operations"
        );
    });
}

#[test]
fn the_depth_of_calls_is_shared_with_nested_calls() {
    on_call_thread(|| {
        let rig = Rig::new();
        assert_eq!(rig.say("fn f() { probe::nest(\"f\", 1_000_000) }"), "quota: calls nest deeper than 64");
        assert_eq!(rig.say("fn g(n) { if n == 0 { 0 } else { g(n - 1) } }\nfn f() { g(60) }"), "0");
        assert_eq!(rig.say("fn g(n) { g(n + 1) }\nfn f() { g(0) }"), "quota: calls nest deeper than 64");
        assert_eq!(rig.say("fn f() { let g = |g| g.call(g); g.call(g) }"), "quota: calls nest deeper than 64");
        assert_eq!(
            rig.say("fn a() { b() }\nfn b() { [1].map(|x| a()) }\nfn f() { a() }"),
            "quota: calls nest deeper than 64"
        );
    });
}

#[test]
fn a_native_is_refused_before_it_allocates() {
    on_call_thread(|| {
        let rig = Rig::new();
        for body in [
            "let s = \"\"; s.pad(100_000_000, 'x')",
            "let s = \"\"; s.pad(9_223_372_036_854_775_807, \"abc\")",
            "blob(9_223_372_036_854_775_807)",
            "blob(100_000_000, 1)",
            "let b = blob(1); b.pad(100_000_000, 0)",
            "let a = []; a.pad(100_000_000, 0)",
            "let a = []; a.pad(9_223_372_036_854_775_807, 0..3)",
            "let s = \"x\"; s.pad(1_000_000, 'x'); s.replace(\"x\", s)",
            "let s = \"x\"; s.pad(10_000_000, 'x'); s.split(\"\")",
            "let s = \"x\"; s.pad(10_000_000, 'x'); s.to_chars()",
        ] {
            let loaded = rig.load(&format!("fn f() {{ {body} }}")).ok().unwrap();
            let before = alloc::live();
            alloc::reset_peak();
            let fault = rig.call(&loaded, "f", vec![]).err().unwrap_or_else(|| panic!("{body}"));
            assert_eq!(fault.error.kind(), Kind::Quota, "{body}");
            assert!(alloc::peak() - before < 24 << 20, "{body} took {} KiB", (alloc::peak() - before) >> 10);
        }
    });
}

#[test]
fn the_budget_is_whole_again_for_every_call() {
    on_call_thread(|| {
        let rig = Rig::new().budget(budget(10_000_000, 8 * MIB));
        let bomb = rig.load("fn f() { let a = []; loop { a.push([1, 2, 3]); } }").ok().unwrap();
        let most = rig.load("fn f() { let s = \"x\"; s.pad(6_000_000, 'x'); s.len }").ok().unwrap();
        for _ in 0..20 {
            assert!(rig.call(&bomb, "f", vec![]).is_err());
            assert_eq!(rig.call(&most, "f", vec![]).ok().unwrap().as_int(), Ok(6_000_000));
        }
    });
}

#[test]
fn operations_used_are_told_when_the_call_is_over() {
    on_call_thread(|| {
        let rig = Rig::new();
        let loaded = rig.load("fn f() { for i in 0..100 { } }").ok().unwrap();
        let control = Control::start(Budget::CALL);
        assert!(rig.call_with(&loaded, "f", vec![], &control, "owner").is_ok());
        assert!((100..2000).contains(&control.operations()), "{}", control.operations());
    });
}
