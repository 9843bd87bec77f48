//! Hot reload: however a file is saved, the next call runs it; nothing fails, mixes or is lost on the way.

use crate::world::{Caller, World, until};
use lapidary::base::event::Event;
use lapidary::tool::dispatch::{Call, CallHandle, Who};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn tool(name: &str, answer: &str) -> String {
    format!("/// Answers. Use it in tests.\n/// @local\nfn {name}() {{ \"{answer}\" }}\n")
}

/// Every way that editors save.
fn save(style: &str, path: &Path, text: &str) {
    let beside = |suffix: &str| path.with_file_name(format!("{}{suffix}", path.file_name().unwrap().to_string_lossy()));
    match style {
        "in place" => fs::write(path, text).unwrap(),
        "rename over" => {
            fs::write(beside(".tmp~"), text).unwrap();
            fs::rename(beside(".tmp~"), path).unwrap();
        }
        "delete and create" => {
            fs::remove_file(path).unwrap();
            fs::write(path, text).unwrap();
        }
        "backup and rename" => {
            fs::rename(path, beside("~")).unwrap();
            fs::write(path, text).unwrap();
            fs::remove_file(beside("~")).unwrap();
        }
        "two parts" => {
            let (a, b) = text.split_at(text.len() / 2);
            fs::write(path, a).unwrap();
            fs::OpenOptions::new().append(true).open(path).unwrap().write_all(b.as_bytes()).unwrap();
        }
        "slow handle" => {
            let mut file = fs::File::create(path).unwrap();
            for byte in text.as_bytes() {
                file.write_all(&[*byte]).unwrap();
            }
        }
        "older time" => {
            fs::write(beside(".tmp~"), text).unwrap();
            let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
            fs::File::options().write(true).open(beside(".tmp~")).unwrap().set_modified(old).unwrap();
            fs::rename(beside(".tmp~"), path).unwrap();
        }
        "emptied first" => {
            fs::write(path, "").unwrap();
            fs::write(path, text).unwrap();
        }
        other => panic!("{other}"),
    }
}

#[test]
fn every_way_to_save_is_noticed_and_the_tool_never_goes_away() {
    let styles = [
        "in place",
        "rename over",
        "delete and create",
        "backup and rename",
        "two parts",
        "slow handle",
        "older time",
        "emptied first",
    ];
    let w = World::watching();
    w.write("user/tools/t.rhai", &tool("answer", "start"));
    until("the first version is live", || w.call("answer", json!({})).ok);
    let caller = Caller::of(&w.host, "answer");
    for style in styles {
        save(style, &w.path("user/tools/t.rhai"), &tool("answer", style));
        until(style, || w.text("answer", json!({})) == style);
    }
    assert_eq!(caller.failed(), 0);
}

#[test]
fn a_touch_and_a_save_without_a_change_are_no_new_version() {
    let w = World::new();
    w.tool("t", &tool("answer", "one"));
    let before = w.host.plugins().live("t").unwrap();
    w.tool("t", &tool("answer", "one"));
    let file = fs::File::options().write(true).open(w.path("user/tools/t.rhai")).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    w.host.plugins().refresh(&["t".into()]);
    assert!(Arc::ptr_eq(&before, &w.host.plugins().live("t").unwrap()));
    assert_eq!(w.status("t"), "live 1");
}

#[test]
fn an_edit_that_is_taken_back_is_the_version_that_was_live_all_along() {
    let w = World::new();
    w.tool("t", &tool("answer", "one"));
    w.tool("t", "fn (");
    assert!(w.status("t").contains("disk 2 failed"));
    w.tool("t", &tool("answer", "one"));
    assert_eq!(w.status("t"), "live 1");
}

#[test]
fn an_empty_file_keeps_the_last_good() {
    let w = World::new();
    w.tool("t", &tool("answer", "one"));
    w.tool("t", "");
    assert_eq!(w.text("answer", json!({})), "one");
    assert!(w.status("t").contains("the file is empty"), "{}", w.status("t"));
}

#[test]
fn a_changed_module_reloads_everything_that_reaches_it() {
    let w = World::watching();
    let call_a = "import \"std/a\" as a;\n/// Answers. Use it in tests.\nfn top() { a::say() }\n";
    fs::create_dir_all(w.path("stdlib")).unwrap();
    w.write("stdlib/c.rhai", "fn say() { \"c1\" }");
    // A diamond: a imports b and d, both import c.
    w.write("stdlib/b.rhai", "import \"std/c\" as c;\nfn say() { \"b\" + c::say() }");
    w.write("stdlib/d.rhai", "import \"std/c\" as c;\nfn say() { \"d\" + c::say() }");
    w.write("stdlib/a.rhai", "import \"std/b\" as b;\nimport \"std/d\" as d;\nfn say() { b::say() + d::say() }");
    w.write("user/tools/t.rhai", call_a);
    w.write("user/tools/other.rhai", &tool("other", "x"));
    until("both are live", || w.call("top", json!({})).ok && w.call("other", json!({})).ok);
    assert_eq!(w.text("top", json!({})), "bc1dc1");
    let other = w.host.plugins().live("other").unwrap();
    w.write("stdlib/c.rhai", "fn say() { \"c2\" }");
    until("the change came through three levels", || w.text("top", json!({})) == "bc2dc2");
    w.write("stdlib/c.rhai", "fn say( {");
    until("the failure is known", || w.status("t").contains("failed"));
    assert!(w.status("t").contains("failed") && w.text("top", json!({})) == "bc2dc2");
    let status = w.host.plugins().status("t").unwrap();
    assert_eq!(status.diagnostics[0].file, "stdlib/c.rhai", "{:?}", status.diagnostics);
    w.write("stdlib/c.rhai", "fn say() { \"c3\" }");
    until("mended", || w.text("top", json!({})) == "bc3dc3");
    assert!(Arc::ptr_eq(&other, &w.host.plugins().live("other").unwrap()));
}

#[test]
fn a_module_that_comes_later_mends_its_importer() {
    let w = World::watching();
    fs::create_dir_all(w.path("stdlib")).unwrap();
    until("the folder is watched", || {
        w.write("stdlib/probe.rhai", "fn x() { 1 }");
        w.path("stdlib/probe.rhai").exists()
    });
    w.write(
        "user/tools/t.rhai",
        "import \"std/late\" as late;\n/// Answers. Use it in tests.\nfn top() { late::say() }\n",
    );
    until("it failed", || w.status("t").contains("failed"));
    w.write("stdlib/late.rhai", "fn say() { \"here\" }");
    until("it came alive", || w.call("top", json!({})).text == "here");
}

#[test]
fn a_call_in_flight_finishes_on_its_generation_and_shutdown_waits_for_it() {
    let w = World::new();
    let script = |v: &str| {
        format!(
            "/// Waits. Use it in tests.\nfn wait_here() {{ progress::status(\"in {v}\"); time::sleep(30); \"{v}\" }}\n\
             /// Answers. Use it in tests.\nfn quick() {{ \"{v}\" }}\n\
             fn shutdown() {{ state::save(\"down_{v}\", true); }}\n"
        )
    };
    w.tool("t", &script("one"));
    let (tx, rx) = std::sync::mpsc::channel();
    struct Told(std::sync::Mutex<std::sync::mpsc::Sender<String>>);
    impl lapidary::script::ctx::Sink for Told {
        fn status(&self, text: &str) {
            let _ = self.0.lock().unwrap().send(text.to_owned());
        }
    }
    let handle = Arc::new(CallHandle::default());
    let mut call = Call::new("wait_here", serde_json::Map::new(), Who::owner("test"));
    call.sink = Arc::new(Told(std::sync::Mutex::new(tx)));
    call.handle = Some(handle.clone());
    let running = std::thread::spawn({
        let host = w.host.clone();
        move || host.call_now(call)
    });
    assert_eq!(rx.recv().unwrap(), "in one");
    w.tool("t", &script("two"));
    assert_eq!(w.text("quick", json!({})), "two");
    let state = || w.host.services().state.get("t", "down_one").unwrap();
    assert!(!running.is_finished(), "{:?}", running.join());
    assert_eq!(state(), None);
    handle.cancel();
    let outcome = running.join().unwrap();
    assert_eq!(outcome.generation, 1);
    assert_eq!(outcome.error.map(|e| e.code()), Some("cancelled"));
    until("the old generation shut down", || state() == Some(json!(true)));
    assert_eq!(w.host.services().state.get("t", "down_two").unwrap(), None);
    let host = w.host.clone();
    host.stop();
    assert_eq!(host.services().state.get("t", "down_two").unwrap(), Some(json!(true)));
}

#[test]
fn ten_thousand_calls_during_reloads_neither_fail_nor_mix() {
    let w = World::watching();
    // Two functions of one file: an answer that mixes them would show two numbers.
    let script = |n: usize| {
        format!(
            "const N = {n};\nfn other() {{ {n} }}\n/// Answers. Use it in tests.\nfn pair() {{ `${{N}}-${{other()}}` }}\n"
        )
    };
    w.write("user/tools/t.rhai", &script(0));
    until("live", || w.call("pair", json!({})).ok);
    let stop = Arc::new(AtomicBool::new(false));
    let saver = std::thread::spawn({
        let (stop, path) = (stop.clone(), w.path("user/tools/t.rhai"));
        move || {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                n += 1;
                save(["in place", "rename over"][n % 2], &path, &script(n));
            }
            n
        }
    });
    let mut versions = std::collections::BTreeSet::new();
    for _ in 0..10_000 {
        let text = w.text("pair", json!({}));
        let (a, b) = text.split_once('-').unwrap();
        assert_eq!(a, b, "a mixed answer");
        versions.insert(a.to_owned());
    }
    stop.store(true, Ordering::Relaxed);
    let last = saver.join().unwrap();
    until("the last save is live", || w.text("pair", json!({})) == format!("{last}-{last}"));
    assert!(versions.len() > 1, "no reload happened meanwhile");
}

#[test]
fn fifteen_hundred_saves_at_once_settle() {
    let w = World::prepared(
        |root| {
            for i in 0..500 {
                fs::write(root.join(format!("user/tools/t{i}.rhai")), tool(&format!("t{i}"), "0")).unwrap();
            }
        },
        |b| b,
    );
    for round in 1..=3 {
        for i in 0..500 {
            fs::write(w.path(&format!("user/tools/t{i}.rhai")), tool(&format!("t{i}"), &round.to_string())).unwrap();
        }
    }
    until("all are settled", || (0..500).all(|i| w.call(&format!("t{i}"), json!({})).text == "3"));
}

#[test]
fn one_change_is_one_notice_also_for_a_description_alone() {
    let w = World::new();
    w.tool("t", &tool("answer", "one"));
    let mut events = w.host.events();
    let changes = |events: &mut tokio::sync::broadcast::Receiver<Event>| {
        std::iter::from_fn(|| events.try_recv().ok()).filter(|e| matches!(e, Event::ToolsChanged { .. })).count()
    };
    w.tool("t", &tool("answer", "two"));
    assert_eq!(changes(&mut events), 0, "code alone is no change for a reader");
    w.tool("t", &tool("answer", "two").replace("Answers.", "Replies."));
    assert_eq!(changes(&mut events), 1);
    w.tool("t", "fn (");
    assert_eq!(changes(&mut events), 0, "a broken edit changes nothing");
}

#[test]
fn a_folder_plugin_loses_no_file_that_works() {
    let w = World::new();
    w.write("user/plugins/p/plugin.json", r#"{"name": "p", "version": "1", "description": "x"}"#);
    w.write("user/plugins/p/tools/a.rhai", &tool("a", "a1"));
    w.write("user/plugins/p/tools/b.rhai", "fn (");
    w.host.plugins().rescan();
    // At first the files that work are taken; the other is reported.
    assert_eq!(w.text("a", json!({})), "a1");
    assert!(w.status("p").contains("some files failed"), "{}", w.status("p"));
    // A file that never worked does not hold up the one that does.
    w.write("user/plugins/p/tools/a.rhai", &tool("a", "a2"));
    w.host.plugins().refresh(&["p".into()]);
    assert_eq!(w.text("a", json!({})), "a2");
    w.write("user/plugins/p/tools/b.rhai", &tool("b", "b1"));
    w.host.plugins().refresh(&["p".into()]);
    assert_eq!((w.text("a", json!({})), w.text("b", json!({}))), ("a2".into(), "b1".into()));
    // Once it works, a version that breaks it does not go live.
    w.write("user/plugins/p/tools/a.rhai", &tool("a", "a3"));
    w.write("user/plugins/p/tools/b.rhai", "fn (");
    w.host.plugins().refresh(&["p".into()]);
    assert_eq!((w.text("a", json!({})), w.text("b", json!({}))), ("a2".into(), "b1".into()));
    assert!(w.status("p").contains("failed"), "{}", w.status("p"));
}

#[test]
fn a_renamed_file_is_told_as_one_change() {
    let w = World::watching();
    w.tool("before", "/// Greet. Use it in tests.\nfn greet() { 1 }\n");
    let mut revisions = w.host.revisions();
    let first = *revisions.borrow_and_update();
    let mut events = w.host.events();
    fs::rename(w.path("user/tools/before.rhai"), w.path("user/tools/after.rhai")).unwrap();
    let owner = || w.host.dispatcher().snapshot().get("greet").map(|t| t.plugin().name.to_string());
    until("the new name", || owner().as_deref() == Some("after"));
    // What follows a rename has been looked at before a later save is.
    until("the news", || *revisions.borrow_and_update() > first);
    let mut told = 0;
    w.write("user/tools/mark.rhai", "/// Mark. Use it in tests.\nfn mark() { 1 }\n");
    until("the mark", || w.host.dispatcher().snapshot().get("mark").is_some());
    until("the end", || {
        while let Ok(event) = events.try_recv() {
            told += usize::from(matches!(event, lapidary::base::event::Event::ToolsChanged { .. }));
        }
        told >= 2
    });
    assert_eq!(told, 2, "one for the rename and one for the new file");
}

#[test]
fn a_renamed_file_is_a_new_plugin_and_the_old_one_goes() {
    let w = World::watching();
    w.write("user/tools/old.rhai", &tool("answer", "one"));
    until("live", || w.status("old") == "live 1");
    fs::rename(w.path("user/tools/old.rhai"), w.path("user/tools/new.rhai")).unwrap();
    until("the new name is live and the old one gone", || {
        w.status("new").starts_with("live") && w.host.plugins().status("old").is_none()
    });
    assert_eq!(w.text("answer", json!({})), "one");
}

#[test]
fn a_renamed_file_answers_all_the_time() {
    let w = World::watching();
    w.write("user/tools/name0.rhai", &tool("answer", "there"));
    until("live", || w.call("answer", json!({})).ok);
    let caller = Caller::of(&w.host, "answer");
    for round in 0..10 {
        let (old, new) = (format!("name{round}"), format!("name{}", round + 1));
        fs::rename(w.path(&format!("user/tools/{old}.rhai")), w.path(&format!("user/tools/{new}.rhai"))).unwrap();
        until("the new name is live", || w.status(&new).starts_with("live") && w.host.plugins().status(&old).is_none());
    }
    assert_eq!(caller.failed(), 0);
}

#[test]
fn a_plugin_that_takes_the_place_of_another_is_live_at_once() {
    let w = World::prepared(
        |root| {
            for (file, text) in [
                (
                    "scripts/dice/plugin.json",
                    r#"{"name":"dice","version":"1.0.0","description":"Shipped."}"#.to_owned(),
                ),
                ("scripts/dice/tools/dice.rhai", tool("answer", "shipped")),
            ] {
                fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
                fs::write(root.join(file), text).unwrap();
            }
        },
        |b| b.shipped(lapidary::Shipped::All),
    );
    until("the shipped one", || w.call("answer", json!({})).text == "shipped");
    w.write("user/tools/dice.rhai", &tool("answer", "file"));
    until("the file", || w.call("answer", json!({})).text == "file");
    fs::remove_file(w.path("user/tools/dice.rhai")).unwrap();
    until("the shipped one again", || w.call("answer", json!({})).text == "shipped");
    let made = w.path("made");
    fs::create_dir_all(made.join("tools")).unwrap();
    fs::write(made.join("plugin.json"), r#"{"name":"dice","version":"2.0.0","description":"Mine."}"#).unwrap();
    fs::write(made.join("tools/dice.rhai"), tool("answer", "folder")).unwrap();
    fs::create_dir_all(w.path("user/plugins")).unwrap();
    fs::rename(&made, w.path("user/plugins/dice")).unwrap();
    until("the folder", || w.call("answer", json!({})).text == "folder");
}

#[test]
fn a_plugin_that_is_switched_on_again_answers_from_its_last_good_version() {
    use lapidary::plugin::set::Switch;
    let w = World::with(|b| b.watching(lapidary::Watching::Off).keep_history());
    w.tool("t", &tool("answer", "one"));
    // The history writes beside the calls.
    until("the version is kept", || w.path("user/history/t/1/files/t.rhai").is_file());
    w.host.plugins().switch("t", Switch::Off).unwrap();
    w.write("user/tools/t.rhai", "fn (");
    w.host.plugins().switch("t", Switch::On).unwrap();
    assert_eq!(w.text("answer", json!({})), "one");
    assert!(w.status("t").starts_with("live 1, disk "), "{}", w.status("t"));
}

#[test]
fn a_disabled_plugin_answers_nothing_and_an_edit_does_not_wake_it() {
    use lapidary::plugin::set::Switch;
    let w = World::new();
    w.tool("t", &tool("answer", "one"));
    w.host.plugins().switch("t", Switch::Off).unwrap();
    assert!(!w.call("answer", json!({})).ok);
    w.tool("t", &tool("answer", "two"));
    assert!(!w.call("answer", json!({})).ok);
    w.host.plugins().switch("t", Switch::On).unwrap();
    assert_eq!(w.text("answer", json!({})), "two");
}

#[test]
fn a_plugin_folder_that_is_copied_in_is_live_with_all_its_files() {
    let w = World::watching();
    for n in 0..10 {
        let folder = w.path(&format!("user/plugins/p{n}"));
        fs::create_dir_all(folder.join("tools")).unwrap();
        fs::create_dir_all(folder.join("lib")).unwrap();
        fs::write(folder.join("plugin.json"), format!("{{\"name\": \"p{n}\"}}")).unwrap();
        fs::write(folder.join("lib/a.rhai"), "fn say() { \"lib\" }").unwrap();
        fs::write(folder.join("tools/one.rhai"), tool(&format!("one{n}"), "1")).unwrap();
        let two = format!("import \"lib/a\" as a;\n/// Answers. Use it in tests.\nfn two{n}() {{ a::say() }}\n");
        fs::write(folder.join("tools/two.rhai"), two).unwrap();
    }
    until("all are live", || {
        (0..10).all(|n| w.call(&format!("one{n}"), json!({})).ok && w.call(&format!("two{n}"), json!({})).text == "lib")
    });
    fs::remove_dir_all(w.path("user/plugins/p3")).unwrap();
    until("the removed one is gone", || w.host.plugins().status("p3").is_none());
    assert!(w.call("one4", json!({})).ok);
}

#[test]
fn a_saved_toolset_that_changes_is_a_change_for_its_readers() {
    let w = World::watching();
    w.write("user/tools/t.rhai", &tool("answer", "one"));
    until("live", || w.call("answer", json!({})).ok);
    let before = w.host.dispatcher().snapshot().revision;
    w.write("user/toolsets/toolsets.json", r#"{"mine": {"functions": ["answer"]}}"#);
    until("the revision moved on", || w.host.dispatcher().snapshot().revision > before);
    assert!(w.host.select(&["mine".to_owned()]).unwrap().contains("answer"));
}
