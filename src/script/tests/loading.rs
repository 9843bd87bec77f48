//! What a file may count on: its top level runs once, its constants and imports are there in every function.

use super::*;

const SHADOWS: &str = r#"
const X = 1;
const LIST = [1, 2, 3];
fn bare() { X }
fn by_let() { let X = 2; X }
fn by_parameter(X) { X }
fn by_for() { let s = 0; for X in LIST { s += X; } s }
fn by_catch() { try { throw 9; } catch (X) { return X; } }
fn by_closure() { let f = |X| X + 1; f.call(4) }
fn in_closure() { let f = || X + 10; f.call() }
fn in_nested_closure() { let f = || { let g = || X + 20; g.call() }; f.call() }
fn after_block() { { let X = 5; } X }
fn through_helper() { bare() }
fn in_text() { `x is ${X}` }
fn qualified() { global::X }
fn f() {
    [bare(), by_let(), by_parameter(3), by_for(), by_catch(), by_closure(), in_closure(), in_nested_closure(),
     after_block(), through_helper(), in_text(), qualified()]
}
"#;

#[test]
fn a_bare_constant_is_readable_in_every_function_and_local_names_shadow_it() {
    on_call_thread(|| {
        assert_eq!(Rig::new().say(SHADOWS), r#"[1, 2, 3, 6, 9, 5, 11, 21, 1, 1, "x is 1", 1]"#);
    });
}

#[test]
fn writing_a_constant_is_an_error_that_names_it() {
    on_call_thread(|| {
        let fault = Rig::new().run("const X = 1;\nfn f() { X = 2; }").err().unwrap();
        assert_eq!(fault.error.message(), "`X` is a constant");
        assert_eq!((fault.diagnostic.line, fault.diagnostic.column), (2, 10));
    });
}

#[test]
fn imports_are_usable_in_functions_closures_and_modules() {
    on_call_thread(|| {
        let rig = Rig::new()
            .with("lib/outer", "import \"lib/inner\" as inner;\nconst K = 100;\nfn twice(x) { inner::once(x) * 2 + K }")
            .with("lib/inner", "export const UNIT = 1;\nfn once(x) { x + UNIT }");
        let said = rig.say(
            r#"
            import "lib/outer" as outer;
            import "lib/inner" as inner;
            fn direct(x) { outer::twice(x) }
            fn f() {
                let mapped = [1, 2].map(|x| outer::twice(x));
                let pointer = [1].map(direct);
                let native = probe::each(|x| inner::once(x), 7);
                import "lib/inner" as local;
                [direct(1), mapped, pointer, native, inner::UNIT, local::once(0)]
            }
            "#,
        );
        assert_eq!(said, "[104, [104, 106], [104], 8, 1, 1]");
    });
}

#[test]
fn the_top_level_runs_once_a_generation_and_calls_never_run_it_again() {
    on_call_thread(|| {
        let rig = Rig::new().with("lib/a", "const N = probe::count();\nfn n() { N }");
        let loaded = rig
            .load(
                r#"
                const MINE = probe::count();
                import "lib/a" as a;
                import "lib/a" as again;
                fn f() { import "lib/a" as inside; [MINE, a::n(), again::n(), inside::n()] }
                "#,
            )
            .unwrap_or_else(|f| panic!("{}", f.diagnostic.render()));
        assert_eq!(rig.counter.load(Ordering::Relaxed), 2);
        for _ in 0..6 {
            let said = rig.call(&loaded, "f", vec![]).map(|v| v.to_string());
            // The import inside the function is resolved before the top level runs.
            assert_eq!(said.ok().as_deref(), Some("[2, 1, 1, 1]"));
        }
        assert_eq!(rig.counter.load(Ordering::Relaxed), 2);
    });
}

#[test]
fn constants_are_collected_without_export_and_locals_are_not() {
    on_call_thread(|| {
        let loaded = Rig::new()
            .load(
                "const A = 1;\nexport const B = \"b\";\nlet c = 3;\n{ const D = 4; }\nif c == 3 { const E = 5; }\n\
                 const F = A + c;\nconst A2 = [A, #{ k: B }]",
            )
            .unwrap_or_else(|f| panic!("{}", f.diagnostic.render()));
        let names: Vec<&str> = loaded.program.constants.keys().map(String::as_str).collect();
        assert_eq!(names, ["A", "A2", "B", "F"]);
        assert_eq!(loaded.program.constants["F"].as_int(), Ok(4));
        assert_eq!(loaded.program.constants["A2"].to_string(), r#"[1, #{"k": "b"}]"#);
    });
}

#[test]
fn constants_are_collected_whatever_the_file_ends_with() {
    on_call_thread(|| {
        for end in [
            "",
            ";",
            "\n",
            "\n\n",
            "\n// done",
            "\n/* done */",
            "\n/* never closed",
            "; fn f() { 1 }",
            "; 7",
            "; {}",
            "\r\n",
        ] {
            let loaded = Rig::new()
                .load(&format!("const A = 1{end}"))
                .unwrap_or_else(|f| panic!("{end:?} {}", f.diagnostic.render()));
            assert_eq!(loaded.program.constants["A"].as_int(), Ok(1), "{end:?}");
        }
    });
}

#[test]
fn functions_come_in_source_order_with_their_comments_and_places() {
    on_call_thread(|| {
        let loaded = Rig::new()
            .load("//! About the file.\n//! More.\n\n/// Second? No, first.\nfn zeta(a, b) { }\nprivate fn alpha() { }\n/** Block. */\nfn mid(x) {\n let c = |y| y; }")
            .unwrap_or_else(|f| panic!("{}", f.diagnostic.render()));
        let shown: Vec<String> = loaded
            .program
            .functions
            .iter()
            .map(|f| format!("{}({}) {} {} {:?}", f.name, f.params.join(","), f.private, f.line, f.comments))
            .collect();
        assert_eq!(
            shown,
            [
                r#"zeta(a,b) false 5 ["/// Second? No, first."]"#,
                "alpha() true 6 []",
                r#"mid(x) false 8 ["/** Block. */"]"#
            ]
        );
        assert_eq!(loaded.program.doc, "About the file.\nMore.");
    });
}

#[test]
fn get_tools_at_the_top_level_sees_the_load_context_and_may_only_read() {
    on_call_thread(|| {
        let rig = Rig::new();
        let loaded = rig
            .load("fn get_tools() { [settings::get(\"sides\"), probe::who()] }\nconst TOOLS = get_tools();\nfn f() { [TOOLS, probe::who(), probe::acts()] }")
            .unwrap_or_else(|f| panic!("{}", f.diagnostic.render()));
        assert_eq!(loaded.program.constants["TOOLS"].to_string(), r#"[6, "Load host"]"#);
        let said = rig.call(&loaded, "f", vec![]).map(|v| v.to_string());
        assert_eq!(said.ok().as_deref(), Some(r#"[[6, "Load host"], "Call owner", true]"#));
        let fault = rig.load("const A = 1;\nconst B = probe::acts();").err().unwrap();
        assert_eq!(fault.error.code(), "disabled");
        assert_eq!(fault.diagnostic.summary(), "tools/t.rhai:2:18: `acts` is not available while loading");
    });
}

#[test]
fn a_function_that_get_tools_calls_sees_only_constants_above_and_the_error_says_so() {
    on_call_thread(|| {
        let fault =
            Rig::new().load("fn get_tools() { [SIDES] }\nconst TOOLS = get_tools();\nconst SIDES = 6;").err().unwrap();
        assert_eq!(fault.error.message(), "no variable `SIDES` here");
        assert_eq!(
            fault.diagnostic.hint.as_deref(),
            Some("`const SIDES` stands further down: move it above its first use")
        );
        assert_eq!((fault.diagnostic.line, fault.diagnostic.column), (1, 19));
    });
}

#[test]
fn an_import_cycle_is_listed() {
    on_call_thread(|| {
        let rig = Rig::new()
            .with("lib/c1", "import \"lib/c2\" as n;")
            .with("lib/c2", "fn late() { import \"lib/c3\" as n; }")
            .with("lib/c3", "\nimport \"lib/c1\" as n;");
        let fault = rig.load("import \"lib/c1\" as c;").err().unwrap();
        assert_eq!(fault.error.message(), "import cycle: lib/c1 -> lib/c2 -> lib/c3 -> lib/c1");
        assert_eq!(fault.diagnostic.file, "lib/c3.rhai");
        assert_eq!(fault.diagnostic.line, 2);
        assert_eq!(
            Rig::new()
                .with("lib/me", "import \"lib/me\" as m;")
                .load("import \"lib/me\" as m;")
                .err()
                .unwrap()
                .error
                .message(),
            "import cycle: lib/me -> lib/me"
        );
    });
}

#[test]
fn imports_are_literal_confined_and_never_take_a_host_modules_name() {
    on_call_thread(|| {
        let table = [
            ("let p = \"lib/a\";\nimport p as a;", "2:1", "an import needs a literal path"),
            ("fn f() {\n  import \"lib/\" + \"a\" as a; }", "2:3", "an import needs a literal path"),
            ("let c = || {\n import `lib/${1}` as a; };", "2:2", "an import needs a literal path"),
            (
                "import \"../secret\" as s;",
                "1:8",
                "`../secret` cannot be imported: only std/.. and the plugin's own lib/.. are importable",
            ),
            (
                "import \"lib/../x\" as s;",
                "1:8",
                "`lib/../x` cannot be imported: a module name has only a-z 0-9 _ - and never leaves its folder",
            ),
            (
                "import \"/etc/passwd\" as s;",
                "1:8",
                "`/etc/passwd` cannot be imported: only std/.. and the plugin's own lib/.. are importable",
            ),
            ("fn f() {\n\n import \"words\" as s; }", "3:9", "`words` cannot be imported: it names no folder"),
            ("import \"lib/none\" as s;", "1:8", "no file lib/none.rhai"),
            ("import \"lib/a\" as text;", "1:1", "`text` is a host module, so an import cannot be called that"),
            (
                "fn f() { import \"lib/a\" as probe; }",
                "1:10",
                "`probe` is a host module, so an import cannot be called that",
            ),
        ];
        let rig = Rig::new().with("lib/a", "fn x() { 1 }");
        for (text, place, message) in table {
            let fault = rig.load(text).err().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(fault.diagnostic.summary(), format!("tools/t.rhai:{place}: {message}"), "{text}");
        }
        // Without an alias the module runs and nothing is named.
        assert!(rig.load("import \"lib/a\";").is_ok());
    });
}

#[test]
fn a_call_is_answered_from_the_generation_and_reads_nothing() {
    on_call_thread(|| {
        let rig = Rig::new().with("lib/a", "fn x() { 1 }");
        let loaded =
            rig.load("import \"lib/a\" as a;\nfn f() { import \"lib/a\" as b; [a::x(), b::x()] }").ok().unwrap();
        rig.remove("lib/a");
        assert_eq!(rig.call(&loaded, "f", vec![]).ok().map(|v| v.to_string()).as_deref(), Some("[1, 1]"));
        assert_eq!(loaded.imports.keys().into_iter().collect::<Vec<_>>(), ["entry:tools/t.rhai", "lib/a"]);
        assert_eq!(
            loaded.imports.edges().into_iter().collect::<Vec<_>>(),
            [("tools/t.rhai".to_owned(), "lib/a".to_owned())]
        );
        let fault = rig.load("import \"lib/a\" as a;").err().unwrap();
        assert_eq!(fault.error.code(), "not_found");
    });
}

#[test]
fn a_return_at_the_top_level_is_refused_and_a_throw_there_is_the_files_own_error() {
    on_call_thread(|| {
        let rig = Rig::new();
        for (text, place) in [
            ("return;", "1:1"),
            ("const A = 1;\nif A == 1 {\n  return 2; }", "3:3"),
            ("let x = 1 ?? return 2;", "1:14"),
        ] {
            let fault = rig.load(text).err().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(
                fault.diagnostic.summary(),
                format!("tools/t.rhai:{place}: `return` outside a function"),
                "{text}"
            );
        }
        assert!(rig.load("let f = |x| { return x; };\nfn f() { return 1; }").is_ok());
        let fault = rig.load("const A = 1;\nif A == 1 { throw \"no A today\"; }").err().unwrap();
        assert_eq!(fault.diagnostic.summary(), "tools/t.rhai:2:13: no A today");
    });
}

#[test]
fn eval_is_off() {
    on_call_thread(|| {
        let fault = Rig::new().load("fn f() { eval(\"1\") }").err().unwrap();
        assert_eq!(fault.diagnostic.code, "syntax");
        assert_eq!((fault.diagnostic.line, fault.diagnostic.column), (1, 10));
        // Nor through a pointer.
        assert!(Rig::new().run("fn f() { Fn(\"eval\").call(\"40 + 2\") }").is_err());
        assert!(Rig::new().run("fn f() { call(Fn(\"eval\"), \"40 + 2\") }").is_err());
    });
}

#[test]
fn two_threads_on_one_engine_never_see_each_others_caller() {
    let rig = Rig::new().with("lib/a", "fn who() { probe::who() }");
    let threads: Vec<_> = ["anna", "ben", "cleo"]
        .into_iter()
        .map(|caller| {
            let rig = rig.clone();
            pool::spawn(caller, move || {
                let loaded = rig
                    .load(
                        "import \"lib/a\" as a;\nfn f() { [probe::who(), a::who(), probe::each(|x| probe::who(), 1)] }",
                    )
                    .ok()
                    .unwrap();
                for _ in 0..300 {
                    let control = Control::start(Budget::CALL);
                    let said = rig.call_with(&loaded, "f", vec![], &control, caller).ok().unwrap().to_string();
                    assert_eq!(said, format!("[\"Call {caller}\", \"Call {caller}\", \"Call {caller}\"]"));
                }
            })
            .unwrap()
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[test]
fn this_is_bound_when_a_call_brings_it() {
    on_call_thread(|| {
        let rig = Rig::new();
        let loaded = rig.load("fn add(n) { this.total += n; this.total }\nfn f() { this.add(2) }").ok().unwrap();
        let mut map = Map::new();
        map.insert("total".into(), 40_i64.into());
        let mut this = Dynamic::from_map(map);
        let ctx = rig.ctx(Phase::Call, loaded.imports.clone(), Control::start(Budget::CALL), "owner");
        let call = Invocation { function: "f", this: Some(&mut this), arguments: &mut [], level: 0 };
        let result = program::invoke(&rig.engine, &loaded.program, &ctx, call).unwrap();
        assert_eq!(result.as_int(), Ok(42));
        assert_eq!(this.to_string(), r#"#{"total": 42}"#);
    });
}

#[test]
fn exit_ends_a_call_with_its_value() {
    on_call_thread(|| {
        assert_eq!(Rig::new().say("fn deep() { exit(7); }\nfn f() { deep(); 1 }"), "7");
    });
}

#[test]
fn logs_of_print_and_debug_reach_the_caller() {
    on_call_thread(|| {
        let heard = Arc::new(Heard::default());
        let rig = Rig { sink: heard.clone(), ..Rig::new() };
        assert_eq!(rig.say("fn f() { print(\"a\"); debug([1]); print(2); 3 }"), "3");
        assert_eq!(*heard.0.lock().unwrap(), ["info: a", "trace: [1]", "info: 2"]);
    });
}

#[test]
fn the_languages_own_functions_point_to_ours() {
    on_call_thread(|| {
        let rig = Rig::new();
        for (text, instead) in [
            ("sleep(1)", "time::sleep(seconds)"),
            ("sleep(0.5)", "time::sleep(seconds)"),
            ("timestamp()", "time::now()"),
            ("parse_json(\"1\")", "json::decode(text)"),
            ("to_json(#{})", "json::encode(value)"),
            ("#{}.to_json()", "json::encode(value)"),
            ("[].to_json()", "json::encode(value)"),
        ] {
            let fault = rig.run(&format!("fn f() {{ {text} }}")).err().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(fault.diagnostic.hint.as_deref(), Some(format!("use {instead}").as_str()), "{text}");
        }
    });
}

#[test]
fn nul_and_every_character_pass_through_texts() {
    on_call_thread(|| {
        let rig = Rig::new();
        assert_eq!(rig.run("fn f() { \"a\\x00b\" }").ok().unwrap().to_string(), "a\0b");
        assert_eq!(rig.run("fn f() { \"a\0b\".len() }").ok().unwrap().as_int(), Ok(3));
        assert_eq!(rig.run("fn f() { \"\\u200d\\U0001F469\".len() }").ok().unwrap().as_int(), Ok(2));
        // Half of a pair is no character.
        for lone in ["\\uD800", "\\uDFFF", "\\U0000D83D"] {
            let fault = rig.load(&format!("fn f() {{ \"{lone}\" }}")).err().unwrap_or_else(|| panic!("{lone}"));
            assert_eq!(fault.diagnostic.code, "syntax", "{lone}");
        }
    });
}

#[test]
fn a_source_is_utf8_without_a_bom_and_at_most_a_mebibyte() {
    assert_eq!(&*program::decode("a.rhai", b"\xef\xbb\xbfconst A = 1;".to_vec()).unwrap().text, "const A = 1;");
    let e = program::decode("a.rhai", b"line\nline \xff".to_vec()).unwrap_err();
    assert_eq!(e.message(), "a.rhai:2 is not UTF-8");
    assert!(program::decode("a.rhai", vec![b' '; program::MAX_SOURCE]).is_ok());
    let e = program::decode("a.rhai", vec![b' '; program::MAX_SOURCE + 1]).unwrap_err();
    assert_eq!(e.kind(), Kind::TooLarge);
}

#[test]
fn a_program_that_rested_answers_as_before() {
    on_call_thread(|| {
        let rig = Rig::new().with("lib/words", "const SUFFIX = \"!\";\nfn loud(x) { x + SUFFIX }");
        let mut loaded = rig
            .load(
                r#"
                import "lib/words" as words;
                const GREETING = "hello";
                const TABLE = #{ a: [1, -2, 2.5, 'c'], b: () };
                fn f() { [words::loud(GREETING), TABLE.a[1], (|x| x + TABLE.a[0]).call(1), h(2)] }
                private fn h(x) { x * 2 }
                "#,
            )
            .unwrap_or_else(|fault| panic!("{}", fault.diagnostic.render()));
        let before = rig.call(&loaded, "f", vec![]).ok().unwrap().to_string();
        Arc::get_mut(&mut loaded.program).unwrap().rest();
        // What was imported is held by the generation: the library is not asked again.
        rig.remove("lib/words");
        assert_eq!(rig.call(&loaded, "f", vec![]).ok().unwrap().to_string(), before);
        assert_eq!(before, r#"["hello!", -2, 2, 4]"#);
    });
}

#[test]
fn a_top_level_that_asks_for_something_runs_once_whether_it_may_rest_or_not() {
    on_call_thread(|| {
        for top in ["const N = probe::count();", "let n = probe::count(); const N = 1;", "probe::count(); const N = 1;"]
        {
            let rig = Rig::new();
            let mut loaded = rig.load(&format!("{top}\nfn f() {{ N }}")).unwrap_or_else(|_| panic!("{top}"));
            Arc::get_mut(&mut loaded.program).unwrap().rest();
            assert_eq!(rig.call(&loaded, "f", vec![]).ok().unwrap().to_string(), "1", "{top}");
            assert_eq!(rig.counter.load(Ordering::Relaxed), 1, "{top}");
        }
    });
}

#[test]
fn the_call_that_wakes_a_program_has_its_whole_time_left() {
    on_call_thread(|| {
        let mut text = String::from("fn f() { 7 }\n");
        for n in 0..8000 {
            text += &format!("private fn f{n}(x) {{ let a = [x, x + {n}]; if a.len() > 2 {{ a }} else {{ a[0] }} }}\n");
        }
        let rig = Rig::new().budget(Budget { deadline: std::time::Duration::from_millis(50), ..Budget::CALL });
        let source = Source { name: "tools/t.rhai".into(), text: text.into() };
        let slow = Budget { deadline: std::time::Duration::from_secs(120), ..Budget::LOAD };
        let mut loaded = rig.load_source(&source, slow).unwrap_or_else(|fault| panic!("{}", fault.diagnostic.render()));
        Arc::get_mut(&mut loaded.program).unwrap().rest();
        match rig.call(&loaded, "f", vec![]) {
            Ok(value) => assert_eq!(value.to_string(), "7"),
            Err(fault) => panic!("{}", fault.diagnostic.render()),
        }
    });
}
