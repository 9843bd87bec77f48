//! The journal over a real database: several at once, a full queue, a database that refuses, ages, and ends.

use super::*;
use crate::base::clock::Clock;
use crate::base::error::Kind;
use crate::base::event::Event;
use serde_json::json;
use std::path::Path;
use std::sync::{Condvar, Mutex};

fn setup(root: &Path) -> Setup {
    Setup {
        store: Arc::new(MainDb::new(root.join("user/lapidary.db"))),
        clock: Clock::manual(1_700_000_000_000),
        bus: Bus::default(),
        limits: Limits::default(),
        known: Box::new(Redactor::default),
    }
}

fn ended(id: &str) -> Box<Ended> {
    let Value::Object(arguments) = json!({ "n": id }) else { unreachable!() };
    Box::new(Ended {
        id: id.into(),
        at: 1_700_000_000_000,
        tool: Tool::Unknown("roll".into()),
        plugin: "dice".into(),
        generation: 1,
        door: "cli",
        caller: "owner".into(),
        chat: None,
        arguments: Given::Object(arguments),
        ok: true,
        error: None,
        text: format!("rolled {id}"),
        shown: None,
        parts: Vec::new(),
        picture_bytes: Vec::new(),
        structured: None,
        said: None,
        diagnostic: None,
        warnings: Vec::new(),
        duration: Duration::from_millis(2),
        operations: 1,
        memory: 1,
        used: None,
    })
}

fn ids(journal: &Journal, filter: &Filter) -> Vec<String> {
    journal.list(filter).unwrap().calls.into_iter().map(|call| call.id).collect()
}

#[test]
fn what_was_handed_over_is_there_for_who_reads_next() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(setup(dir.path()));
    assert!(ids(&journal, &Filter::default()).is_empty() && !dir.path().join("user").exists());
    journal.record(ended("a"));
    assert_eq!(journal.get("a").unwrap().text, "rolled a");
    journal.record(ended("b"));
    assert_eq!(ids(&journal, &Filter::default()), ["b", "a"]);
    assert_eq!(journal.get("c").unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn pages_follow_one_another_without_a_gap() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(setup(dir.path()));
    let all: Vec<String> = (0..25).map(|n| format!("c{n:02}")).collect();
    all.iter().for_each(|id| journal.record(ended(id)));
    let mut filter = Filter { limit: 10, ..Filter::default() };
    let mut seen = Vec::new();
    loop {
        let page = journal.list(&filter).unwrap();
        seen.extend(page.calls.into_iter().map(|call| call.id));
        let Some(next) = page.next else { break };
        filter.before = Some(next);
    }
    assert_eq!(seen, all.into_iter().rev().collect::<Vec<_>>());
    assert_eq!(ids(&journal, &Filter { limit: 0, ..Filter::default() }).len(), 1);
}

#[test]
fn a_word_means_an_id_a_tool_or_the_last_call_and_never_one_that_a_tool_made() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(setup(dir.path()));
    assert_eq!(journal.find("last").unwrap_err().message(), "the journal is empty");
    journal.record(ended("a"));
    journal.record(Box::new(Ended { tool: Tool::Unknown("flip".into()), ..*ended("b") }));
    journal.record(Box::new(Ended { door: "tool", ..*ended("c") }));
    for (word, id) in [("a", "a"), ("c", "c"), ("roll", "a"), ("flip", "b"), ("last", "b")] {
        assert_eq!(journal.find(word).unwrap().listed.id, id, "{word}");
    }
    assert_eq!(journal.find("nope").unwrap_err().kind(), Kind::NotFound);
}

#[test]
fn several_journals_write_one_database_and_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for one in 0..4 {
            let root = dir.path();
            scope.spawn(move || {
                let journal = Journal::new(setup(root));
                for n in 0..500 {
                    journal.record(ended(&format!("{one}-{n}")));
                }
            });
        }
    });
    let journal = Journal::new(setup(dir.path()));
    let mut filter = Filter { limit: MAX_PAGE, ..Filter::default() };
    let mut seen = Vec::new();
    loop {
        let page = journal.list(&filter).unwrap();
        assert_eq!(page.dropped, 0);
        seen.extend(page.calls.into_iter().map(|call| call.id));
        let Some(next) = page.next else { break };
        filter.before = Some(next);
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 2000);
}

/// A gate that the writing thread stands before.
#[derive(Default)]
struct Gate(Mutex<bool>, Condvar);

impl Gate {
    fn open(&self) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }

    fn pass(&self) {
        let open = self.0.lock().unwrap();
        drop(self.1.wait_while(open, |open| !*open).unwrap());
    }
}

#[test]
fn where_too_much_waits_the_newest_are_counted_and_whoever_hands_over_never_waits() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let at_gate = gate.clone();
    let known: Known = Box::new(move || {
        at_gate.pass();
        Redactor::default()
    });
    let journal = Journal::new(Setup { known, ..setup(dir.path()) });
    // Nobody writes now, so that every one of these would wait if handing over did.
    for n in 0..writer::MOST + 2000 {
        journal.record(ended(&format!("c{n}")));
    }
    assert!(!journal.flush(Duration::ZERO));
    gate.open();
    let page = journal.list(&Filter { limit: 1, ..Filter::default() }).unwrap();
    // The thread took one batch before the queue was full.
    assert!((1488..=2000).contains(&page.dropped), "{}", page.dropped);
    journal.get("c0").unwrap();
    journal.record(ended("after"));
    assert_eq!(journal.get("after").unwrap().listed.id, "after");
    journal.close();
    // Another process sees how many are missing.
    let other = Journal::new(setup(dir.path()));
    assert_eq!(other.list(&Filter::default()).unwrap().dropped, page.dropped);
    other.clear().unwrap();
    assert_eq!(other.list(&Filter::default()).unwrap().dropped, 0);
}

#[test]
fn records_that_are_large_fill_the_queue_sooner() {
    let dir = tempfile::tempdir().unwrap();
    let gate = Arc::new(Gate::default());
    let at_gate = gate.clone();
    let known: Known = Box::new(move || {
        at_gate.pass();
        Redactor::default()
    });
    let journal = Journal::new(Setup { known, ..setup(dir.path()) });
    for n in 0..100 {
        journal.record(Box::new(Ended { text: "x".repeat(1 << 20), ..*ended(&format!("c{n}")) }));
    }
    gate.open();
    let dropped = journal.list(&Filter::default()).unwrap().dropped;
    assert!((60..100).contains(&dropped), "{dropped}");
}

#[test]
fn what_is_handed_over_is_written_at_the_end_and_what_comes_later_is_not() {
    let dir = tempfile::tempdir().unwrap();
    let journal = Journal::new(setup(dir.path()));
    journal.record(ended("a"));
    journal.close();
    journal.record(ended("b"));
    journal.close();
    let other = Journal::new(setup(dir.path()));
    assert_eq!(ids(&other, &Filter::default()), ["a"]);
    assert_eq!(ids(&journal, &Filter::default()), ["a"], "a closed journal can be read");
}

#[test]
fn a_database_that_refuses_costs_no_call_and_is_told_once() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("user"), "a file where the folder should be").unwrap();
    let bus = Bus::default();
    let mut events = bus.subscribe();
    let journal = Journal::new(Setup { bus, ..setup(dir.path()) });
    for id in ["a", "b", "c"] {
        journal.record(ended(id));
        assert!(journal.flush(PATIENCE));
    }
    let mut notices = Vec::new();
    while let Ok(Event::Notice { subject, message }) = events.try_recv() {
        assert_eq!(subject, "user/lapidary.db");
        notices.push(message);
    }
    assert_eq!(notices.len(), 1, "{notices:?}");
    // Once there is a place, it goes on, and says what is missing.
    std::fs::remove_file(dir.path().join("user")).unwrap();
    journal.record(ended("d"));
    let page = journal.list(&Filter::default()).unwrap();
    assert_eq!((page.calls.len(), page.calls[0].id.as_str(), page.dropped), (1, "d", 3));
}

#[test]
fn a_record_that_brings_the_writer_down_does_not_end_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let first = Mutex::new(true);
    let known: Known = Box::new(move || {
        let is_first = std::mem::replace(&mut *first.lock().unwrap_or_else(|e| e.into_inner()), false);
        assert!(!is_first, "the first time it fails");
        Redactor::default()
    });
    let journal = Journal::new(Setup { known, ..setup(dir.path()) });
    journal.record(ended("a"));
    assert!(journal.flush(PATIENCE));
    journal.record(ended("b"));
    let page = journal.list(&Filter::default()).unwrap();
    assert_eq!((page.calls.len(), page.dropped), (1, 1));
}

#[test]
fn what_is_older_than_its_days_is_neither_shown_nor_kept() {
    let dir = tempfile::tempdir().unwrap();
    let made = setup(dir.path());
    let (clock, store) = (made.clock.clone(), made.store.clone());
    let journal = Journal::new(Setup { limits: Limits { max_days: 2, ..Limits::default() }, ..made });
    journal.record(ended("a"));
    let day = 24 * 60 * 60 * 1000;
    clock.advance(day);
    journal.record(Box::new(Ended { at: clock.unix_ms(), ..*ended("b") }));
    assert_eq!(ids(&journal, &Filter::default()), ["b", "a"]);
    clock.advance(day + 1);
    assert_eq!(journal.get("a").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(ids(&journal, &Filter::default()), ["b"]);
    assert!(store.call("a").unwrap().is_none(), "it is gone, not only hidden");
}
