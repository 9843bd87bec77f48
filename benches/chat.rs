//! What belongs to chats, beside SQLite and the file system themselves: values of plugins, state, and opening a long chat.
//! The script's own conversion of a value into JSON is counted apart.

use crate::measure::{self, Pair, bare, ratio, rounds, thread_cpu, timed};
use lapidary::base::clock::Clock;
use lapidary::base::event::Bus;
use lapidary::paths::Paths;
use lapidary::script::value;
use lapidary::service::chat_state::{ChatStates, Named};
use lapidary::service::state::States;
use lapidary::store::main::MainDb;
use lapidary::store::messages::{NewMessage, Role};
use rusqlite::{Connection, params};
use serde_json::{Map, Value, json};
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const APPENDS: usize = 1_000;
const ROWS: usize = 1_000;
const SAVES: usize = 20;
const MESSAGES: usize = 10_000;
const PAGE: usize = 50;

const NAMED: Named = Named { plugin: "bench", chat: "bench", home: None, private: false };

/// Measures what chats keep.
pub fn run() {
    values();
    state();
    open();
}

/// A value as plugins keep them: a roll with who rolled it and when.
fn sample(n: usize) -> Value {
    json!({ "n": n, "who": "somebody", "dice": [3, 4, 6], "note": "a roll of three dice, the second one twice", "at": 1_796_031_295_000_u64 })
}

/// The table as the host has it, with a row of a chat to belong to, set as the host sets its own.
fn floor_table(path: &Path) -> Connection {
    let c = Connection::open(path).expect("a temporary folder is writable");
    c.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -1024; PRAGMA wal_autocheckpoint = 8000; \
         CREATE TABLE chats (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE) STRICT; \
         INSERT INTO chats (name) VALUES ('bench'); \
         CREATE TABLE plugin_chat_data (chat INTEGER NOT NULL REFERENCES chats (id) ON DELETE CASCADE, plugin TEXT NOT NULL, \
            key TEXT NOT NULL, seq INTEGER NOT NULL, updated_at INTEGER NOT NULL, size INTEGER NOT NULL, value ANY NOT NULL, \
            PRIMARY KEY (chat, plugin, key, seq)) STRICT;",
    )
    .expect("the table is made");
    c
}

const INSERT: &str = "INSERT INTO plugin_chat_data (chat, plugin, key, seq, updated_at, size, value) \
                      VALUES (1, 'bench', ?1, ?2, ?3, ?4, ?5)";

fn values() {
    let dir = tempfile::tempdir().expect("there is a temporary folder");
    let store = Arc::new(MainDb::new(dir.path().join("user/lapidary.db")));
    store.ensure_chat("bench", false, 1).expect("the chat is made");
    let states = ChatStates::new(store, Clock::system());
    let clock = Clock::system();
    let floor = floor_table(&dir.path().join("floor.db"));
    let text = |value: &Value| serde_json::to_string(value).expect("JSON can be written");

    let n = rounds(APPENDS);
    let samples: Vec<Value> = (0..n).map(sample).collect();
    let mut insert = floor.prepare(INSERT).expect("the statement is one");
    let mut seq = 0_i64;
    ratio(
        &Pair { name: "chat/append", limit: 1.4, rounds: 21, of: n },
        || {
            bare(|| {
                timed(|| {
                    for value in &samples {
                        seq += 1;
                        let text = text(value);
                        insert.execute(params!["log", seq, clock.unix_ms(), text.len() as i64, text]).expect("it fits");
                    }
                })
            })
        },
        || {
            timed(|| {
                for value in &samples {
                    black_box(states.append(NAMED, "log", value).expect("it fits"));
                }
            })
        },
    );

    let many: Vec<Value> = (0..ROWS).map(sample).collect();
    let mut seq = 0_i64;
    ratio(
        &Pair { name: "chat/append_many", limit: 1.5, rounds: 21, of: ROWS },
        || {
            bare(|| {
                timed(|| {
                    let t = floor.unchecked_transaction().expect("nobody else writes");
                    for value in &many {
                        seq += 1;
                        let text = text(value);
                        insert
                            .execute(params!["many", seq, clock.unix_ms(), text.len() as i64, text])
                            .expect("it fits");
                    }
                    t.commit().expect("it fits");
                })
            })
        },
        || timed(|| drop(black_box(states.append_many(NAMED, "many", &many).expect("it fits")))),
    );

    let scripts: Vec<_> = many.iter().map(|v| value::from_json(v).expect("a script can hold it")).collect();
    let spent = timed(|| scripts.iter().for_each(|v| drop(black_box(value::to_json(v).expect("JSON can hold it")))));
    println!("a script's conversion of such a value = {:.2} µs", spent.as_secs_f64() * 1e6 / ROWS as f64);
}

/// Saving one of 100 keys, beside writing the same file anew: a temporary one, flushed to the disk and put in its place.
fn state() {
    let dir = tempfile::tempdir().expect("there is a temporary folder");
    let paths = Paths::at(dir.path());
    paths.ensure().expect("a temporary folder is writable");
    let states = States::new(paths, Clock::system(), Bus::default());
    let mut map: Map<String, Value> = (0..100).map(|n| (format!("key_{n:03}"), sample(n))).collect();
    for (key, value) in &map {
        states.save("bench", key, value).expect("it can be saved");
    }
    let target = dir.path().join("floor.json");
    let n = rounds(SAVES);
    let mut at = 0;
    let mut count = 0;
    ratio(
        &Pair { name: "chat/state, one of 100 keys", limit: 1.3, rounds: 21, of: n },
        || {
            bare(|| {
                timed(|| {
                    for _ in 0..n {
                        count += 1;
                        map.insert("key_050".to_owned(), sample(count));
                        replace(&target, &serde_json::to_vec_pretty(&map).expect("JSON can be written"));
                    }
                })
            })
        },
        || {
            timed(|| {
                for _ in 0..n {
                    at += 1;
                    states.save("bench", "key_050", &sample(at)).expect("it can be saved");
                }
            })
        },
    );
}

fn replace(target: &Path, bytes: &[u8]) {
    let temp = target.with_extension("tmp");
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&temp)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temp, target)?;
        File::open(target.parent().unwrap_or(target))?.sync_all()
    };
    write().expect("a temporary folder is writable");
}

/// The newest messages of a long chat, as a page shows it: by a program that has just started, and by one that has it open.
fn open() {
    let dir = tempfile::tempdir().expect("there is a temporary folder");
    let path = dir.path().join("user/lapidary.db");
    let body = json!({ "text": "a message of about this length, as people write them. ".repeat(15) }).to_string();
    let new: Vec<NewMessage> = (0..1000)
        .map(|at| NewMessage {
            role: if at % 2 == 0 { Role::User } else { Role::Assistant },
            at,
            turn: "t",
            body: &body,
        })
        .collect();
    {
        let db = MainDb::new(path.clone());
        for name in ["one", "bench", "three"] {
            let chat = db.ensure_chat(name, false, 1).expect("the chat is made").id;
            for _ in 0..rounds(MESSAGES / new.len()) {
                db.append_messages(chat, &new).expect("it fits");
            }
        }
    }
    let show = |db: &MainDb| {
        let chat = db.chat("bench").expect("it can be read").expect("it is there");
        let page = db.messages(chat.id, None, PAGE).expect("it can be read");
        assert_eq!(page.len(), PAGE);
        black_box((page, db.count_messages(chat.id).expect("it can be read")));
    };
    let wall = |mut work: Box<dyn FnMut() + '_>| -> (f64, f64) {
        let (mut walls, mut cpus): (Vec<f64>, Vec<f64>) = (0..rounds(51))
            .map(|_| {
                let (clock, cpu) = (Instant::now(), thread_cpu());
                work();
                (millis(clock.elapsed()), millis(thread_cpu() - cpu))
            })
            .unzip();
        (measure::median(&mut walls), measure::median(&mut cpus))
    };
    let (first, cpu) = wall(Box::new(|| show(&MainDb::new(path.clone()))));
    measure::value("chat/open, 10,000 messages, a program that has just started, wall", first, "ms", 50.0);
    println!("the same, CPU = {cpu:.2} ms");
    let db = MainDb::new(path.clone());
    let (again, _) = wall(Box::new(|| show(&db)));
    measure::value("chat/open, 10,000 messages, wall", again, "ms", 50.0);
    let (listed, _) = wall(Box::new(|| drop(black_box(db.chats().expect("they can be read")))));
    println!("the list of 3 chats with 30,000 messages, wall = {listed:.2} ms");
    let (searched, _) =
        wall(Box::new(|| drop(black_box(db.search_messages("nobody wrote", 50, None).expect("it ends")))));
    println!("a search through 30,000 messages that finds none, wall = {searched:.2} ms");
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
