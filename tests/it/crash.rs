//! The host's database under kill -9: a program that writes all the time is killed wherever it happens to be, again and again on the
//! same file. What it was told is stored is there; what belongs together is there together or not at all.
#![cfg(unix)]

use lapidary::store::chat_data::Owner;
use lapidary::store::chat_files::NewFile;
use lapidary::store::images::{Keep, NewImage};
use lapidary::store::inbox::{ItemState, Lane, NewItem};
use lapidary::store::main::MainDb;
use lapidary::store::messages::{NewMessage, Role};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const ROOT: &str = "LAPIDARY_TEST_CRASH_ROOT";
const KILLS: usize = 40;
const PLUGIN: &str = "dice";

fn open(root: &Path) -> MainDb {
    MainDb::new(root.join("user/lapidary.db"))
}

/// One turn as the host writes it, every step a transaction of its own.
fn turn(db: &MainDb, n: u64) {
    let at = i64::try_from(n).unwrap();
    let chat = db.ensure_chat(if n % 10 < 5 { "even" } else { "odd" }, false, at).unwrap();
    let (ticket, turn) = (format!("ticket-{n}"), format!("turn-{n}"));
    let body = |step: &str, k: u32| json!({ "n": n, "step": step, "k": k, "text": "word ".repeat(40) }).to_string();
    let said = |role, body| NewMessage { role, at, turn: &turn, body };
    db.put_item(&NewItem {
        ticket: &ticket,
        chat: chat.id,
        lane: Lane::Now,
        source: "test",
        plugin: None,
        header: "",
        payload: &body("item", 0),
        put_at: at,
        expires_at: None,
        private_at_put: Some(false),
        on_drop: None,
        durable: true,
    })
    .unwrap();
    let (one, two) = (body("start", 0), body("start", 1));
    db.start_items(&[&ticket], &[said(Role::User, &one), said(Role::User, &two)]).unwrap();
    let (one, two, three) = (body("round", 0), body("round", 1), body("round", 2));
    db.append_messages(chat.id, &[said(Role::Assistant, &one), said(Role::Tool, &two), said(Role::Tool, &three)])
        .unwrap();
    let owner = Owner { plugin: PLUGIN, chat: &chat.name };
    db.append_values(owner, "log", &[body("value", 0), body("value", 1), body("value", 2)], at).unwrap();
    db.replace_values(owner, "rewritten", &[body("new", 0), body("new", 1)], at).unwrap();
    db.append_value(owner, "single", &body("single", 0), at).unwrap();
    db.put_value(owner, "last", &n.to_string(), at).unwrap();
    // A chat that comes, fills and goes, under two names.
    let passing = db.create_chat("passing", false, at).unwrap();
    let data = vec![7; 5_000];
    let image = NewImage {
        chat: "passing",
        private: false,
        id: "passing.png",
        data: &data,
        media_type: "image/png",
        visible: true,
        caption: None,
        now: at,
    };
    db.put_image(&image, Keep::All).unwrap();
    db.put_file(&NewFile { id: "passing", chat: passing.id, name: "f", media_type: "a/b", data: &data, now: at })
        .unwrap();
    db.append_value(Owner { plugin: PLUGIN, chat: "passing" }, "log", "1", at).unwrap();
    db.rename_chat("passing", "renamed", at).unwrap();
    db.delete_chat("renamed").unwrap();
    let last = body("last", 0);
    db.finish_items_with(&[&ticket], chat.id, &[said(Role::Assistant, &last)]).unwrap();
}

/// What the killed program left half done is done or undone, as a host does at its start. Gives the next number.
fn recover(db: &MainDb) -> u64 {
    for item in db.all_items().unwrap() {
        db.remove_item(&item.ticket).unwrap();
    }
    for name in ["passing", "renamed"] {
        db.delete_chat(name).unwrap();
    }
    let newest = ["even", "odd"].into_iter().filter_map(|name| {
        let chat = db.chat(name).unwrap()?;
        let message = db.messages(chat.id, None, 1).unwrap().pop()?;
        serde_json::from_str::<Value>(&message.body).unwrap()["n"].as_u64()
    });
    newest.max().map_or(1, |n| n + 1)
}

fn write_until_killed(root: &Path) {
    let db = open(root);
    let first = recover(&db);
    for n in first.. {
        turn(&db, n);
        println!("\nstored {n}");
    }
}

/// How many rows each step of each turn has.
fn steps(bodies: impl Iterator<Item = String>) -> BTreeMap<(u64, String), Vec<u64>> {
    let mut steps: BTreeMap<(u64, String), Vec<u64>> = BTreeMap::new();
    for body in bodies {
        let body: Value = serde_json::from_str(&body).unwrap();
        let key = (body["n"].as_u64().unwrap(), body["step"].as_str().unwrap().to_owned());
        steps.entry(key).or_default().push(body["k"].as_u64().unwrap());
    }
    steps
}

/// Looks at everything that must hold whenever the program was killed; `stored` is the last turn of which it said that it is there.
fn look(root: &Path, stored: u64) {
    let raw = Connection::open(root.join("user/lapidary.db")).unwrap();
    let said: String = raw.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(said, "ok");
    assert!(!raw.prepare("PRAGMA foreign_key_check").unwrap().exists([]).unwrap());
    drop(raw);
    let db = open(root);
    let mut finished = 0;
    for name in ["even", "odd"] {
        let Some(chat) = db.chat(name).unwrap() else { continue };
        let messages = steps(db.messages(chat.id, None, usize::MAX).unwrap().into_iter().map(|m| m.body));
        for ((n, step), rows) in &messages {
            let whole: &[u64] = match step.as_str() {
                "start" => &[0, 1],
                "round" => &[0, 1, 2],
                _ => &[0],
            };
            assert_eq!(rows, whole, "turn {n}, {step}");
            if step == "last" {
                finished = finished.max(*n);
            }
        }
        for item in db.items(chat.id).unwrap() {
            let n = serde_json::from_str::<Value>(&item.payload).unwrap()["n"].as_u64().unwrap();
            let has = |step: &str| messages.contains_key(&(n, step.to_owned()));
            assert_eq!(item.state == ItemState::Running, has("start"), "an item runs once its messages are there: {n}");
            assert!(!has("last"), "an item is gone once its turn has ended: {n}");
        }
        let owner = Owner { plugin: PLUGIN, chat: name };
        let read = |key: &str| db.values(owner, key, &|_| Ok(())).unwrap();
        let values = steps(read("log").into_iter());
        assert!(values.values().all(|rows| rows == &[0, 1, 2]), "{values:?}");
        let rewritten = steps(read("rewritten").into_iter());
        assert!(rewritten.len() <= 1 && rewritten.values().all(|rows| rows == &[0, 1]), "{rewritten:?}");
        let singles = steps(read("single").into_iter());
        assert!(singles.values().all(|rows| rows == &[0]));
        for n in messages.keys().filter(|(_, step)| step == "last").map(|(n, _)| *n) {
            assert!(
                values.contains_key(&(n, "value".into())) && singles.contains_key(&(n, "single".into())),
                "turn {n}"
            );
            assert!(
                messages.contains_key(&(n, "start".into())) && messages.contains_key(&(n, "round".into())),
                "turn {n}"
            );
        }
    }
    assert!(finished >= stored, "turn {stored} was stored, and {finished} is the last that is there");
    // A chat is there with what was put into it, or not at all.
    for name in ["passing", "renamed"] {
        let rows = db.value_keys(Owner { plugin: PLUGIN, chat: name }).unwrap().len();
        let is_there = db.chat(name).unwrap().is_some();
        assert!(is_there || (rows == 0 && db.image(name, "passing.png").unwrap().is_none()), "{name}");
    }
}

#[test]
fn a_database_is_whole_wherever_its_program_is_killed_and_nothing_that_was_stored_is_lost() {
    if let Ok(root) = std::env::var(ROOT) {
        return write_until_killed(Path::new(&root));
    }
    let dir = tempfile::tempdir().unwrap();
    let mut stored = 0;
    for _ in 0..KILLS {
        let this_test = concat!(
            "crash::",
            "a_database_is_whole_wherever_its_program_is_killed_and_nothing_that_was_stored_is_lost"
        );
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([this_test, "--exact", "--nocapture"])
            .env(ROOT, dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut told = lines.filter_map(|line| line.strip_prefix("stored ").and_then(|n| n.parse::<u64>().ok()));
        // It goes on while the line is read: the moment is anywhere in one of the next turns.
        for _ in 0..fastrand::usize(1..12) {
            stored = told.next().expect("it writes until it is killed");
        }
        for _ in 0..fastrand::u32(0..30_000) {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        // What it said before the end is stored as well.
        stored = told.last().unwrap_or(stored);
        child.wait().unwrap();
        look(dir.path(), stored);
    }
    let db = open(dir.path());
    assert!(recover(&db) > stored);
    turn(&db, recover(&db));
}
