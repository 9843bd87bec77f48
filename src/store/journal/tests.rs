//! Rows of the journal: order, conditions, room, chats, and what is left in the file after clearing.

use super::*;
use crate::store::images::{Keep, NewImage};

struct Place {
    dir: tempfile::TempDir,
    db: MainDb,
}

const ALL: Room = Room { bytes: u64::MAX, since: i64::MIN };

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    Place { db: MainDb::new(dir.path().join("user/lapidary.db")), dir }
}

fn row(id: &str, at: i64) -> CallRow {
    let line = CallLine {
        id: id.into(),
        at,
        tool: "roll".into(),
        plugin: "dice".into(),
        generation: 3,
        door: "cli".into(),
        caller: "owner".into(),
        ok: true,
        duration_us: 1500,
        summary: "rolled 4".into(),
        ..CallLine::default()
    };
    CallRow { line, arguments: "{}".into(), text: "rolled 4".into(), ..CallRow::default() }
}

fn in_chat(id: &str, chat: &str) -> CallRow {
    let mut row = row(id, 1);
    row.line.chat = Some(chat.into());
    row
}

impl Place {
    fn add(&self, rows: &[CallRow]) {
        self.db.add_calls(rows, 0, &ALL).unwrap();
    }

    fn ids(&self, wanted: &Wanted) -> Vec<String> {
        self.db.calls(wanted).unwrap().into_iter().map(|line| line.id).collect()
    }

    fn all(&self) -> Vec<String> {
        self.ids(&Wanted { limit: 1000, ..Wanted::default() })
    }

    /// The total that is counted, and what it should be.
    fn bytes(&self) -> (i64, i64) {
        let read = |c: &Connection| {
            c.query_row("SELECT bytes, (SELECT ifnull(sum(bytes), 0) FROM journal) FROM journal_totals", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .map_err(|e| explain(&e))
        };
        self.db.read(read).unwrap().unwrap()
    }

    fn raw(&self) -> Vec<u8> {
        let mut all = Vec::new();
        for end in ["", "-wal"] {
            all.extend(std::fs::read(self.dir.path().join(format!("user/lapidary.db{end}"))).unwrap_or_default());
        }
        all
    }
}

#[test]
fn nothing_is_made_before_a_call_is_kept() {
    let place = place();
    assert_eq!(place.all(), Vec::<String>::new());
    assert_eq!(place.db.call("a").unwrap(), None);
    assert_eq!((place.db.dropped_calls().unwrap(), place.db.clear_calls().unwrap()), (0, 0));
    assert!(!place.db.has_calls_before(i64::MAX).unwrap());
    assert!(!place.dir.path().join("user").exists());
}

#[test]
fn a_row_is_read_back_as_it_was_and_the_newest_of_an_id_counts() {
    let place = place();
    let mut full = in_chat("a", "kitchen");
    full.line.ok = false;
    full.line.code = Some("timeout".into());
    (full.operations, full.memory) = (u64::MAX, 7);
    (full.shown, full.more) = (Some("shown \0 ž".into()), Some("{}".into()));
    place.add(&[row("a", 1), row("b", 2), full.clone()]);
    let read = place.db.call("a").unwrap().unwrap();
    assert_eq!(read, CallRow { operations: i64::MAX as u64, ..full });
    assert_eq!(place.all(), ["a", "b", "a"]);
    assert_eq!(place.db.call("c").unwrap(), None);
}

#[test]
fn calls_are_listed_newest_first_under_every_condition_at_once() {
    let place = place();
    let make = |(id, tool, plugin, door, ok): (&str, &str, &str, &str, bool)| {
        let mut row = row(id, 10);
        (row.line.tool, row.line.plugin, row.line.door, row.line.ok) = (tool.into(), plugin.into(), door.into(), ok);
        row
    };
    let rows = [
        ("1", "roll", "dice", "cli", true),
        ("2", "roll", "dice", "mcp", false),
        ("3", "flip", "dice", "cli", true),
        ("4", "nope", "", "cli", false),
        ("5", "roll", "dice", "tool", false),
        ("6", "roll", "dice", "cli", false),
    ];
    place.add(&rows.map(make));
    let any = Wanted { limit: 100, ..Wanted::default() };
    let asked = [
        (any.clone(), "654321"),
        (Wanted { limit: 2, ..any.clone() }, "65"),
        (Wanted { tool: Some("roll"), ..any.clone() }, "6521"),
        (Wanted { plugin: Some("dice"), ..any.clone() }, "65321"),
        (Wanted { plugin: Some(""), ..any.clone() }, "4"),
        (Wanted { door: Some("cli"), ..any.clone() }, "6431"),
        (Wanted { but_door: Some("tool"), ..any.clone() }, "64321"),
        (Wanted { failed: true, ..any.clone() }, "6542"),
        (Wanted { before: Some("4"), ..any.clone() }, "321"),
        (Wanted { before: Some("none"), ..any.clone() }, ""),
        (Wanted { since: 11, ..any.clone() }, ""),
        (Wanted { tool: Some("roll"), door: Some("cli"), failed: true, before: Some("9"), ..any.clone() }, ""),
        (Wanted { tool: Some("roll"), door: Some("mcp"), failed: true, before: Some("6"), ..any.clone() }, "2"),
        (Wanted { tool: Some("' OR 1 = 1 --"), ..any.clone() }, ""),
    ];
    for (wanted, expected) in asked {
        assert_eq!(place.ids(&wanted).concat(), expected, "{wanted:?}");
    }
}

#[test]
fn the_oldest_go_when_there_is_no_room_and_a_tenth_more_at_once() {
    let place = place();
    let each = row("00", 1).bytes() as u64;
    let room = Room { bytes: each * 20, since: i64::MIN };
    for n in 0..20 {
        place.db.add_calls(&[row(&format!("{n:02}"), 1)], 0, &room).unwrap();
    }
    assert_eq!(place.all().len(), 20);
    place.db.add_calls(&[row("20", 1)], 0, &room).unwrap();
    let left = place.all();
    assert_eq!((left.len(), left[0].as_str(), left[17].as_str()), (18, "20", "03"));
    assert_eq!(place.bytes().0, place.bytes().1);
    // One that is too large for the whole room does not stay either.
    let mut huge = row("huge", 1);
    huge.text = "x".repeat(30_000);
    place.db.add_calls(&[huge], 0, &Room { bytes: 10_000, since: i64::MIN }).unwrap();
    assert_eq!((place.all().len(), place.bytes()), (0, (0, 0)));
}

#[test]
fn a_total_that_is_wrong_does_not_empty_the_journal_for_ever() {
    let place = place();
    place.add(&[row("a", 1)]);
    place.db.write(|t| Ok(t.execute("UPDATE journal_totals SET bytes = 1000000", []).unwrap())).unwrap();
    let room = Room { bytes: 100_000, since: i64::MIN };
    place.db.add_calls(&[row("b", 1)], 0, &room).unwrap();
    assert_eq!((place.all().len(), place.bytes()), (0, (0, 0)));
    place.db.add_calls(&[row("c", 1)], 0, &room).unwrap();
    assert_eq!(place.all(), ["c"]);
}

#[test]
fn what_is_too_old_goes_from_the_oldest_on() {
    let place = place();
    place.add(&[row("a", 10), row("b", 20), row("c", 30), row("d", 15)]);
    assert!(place.db.has_calls_before(11).unwrap() && !place.db.has_calls_before(10).unwrap());
    place.db.add_calls(&[], 0, &Room { bytes: u64::MAX, since: 25 }).unwrap();
    assert_eq!(place.all(), ["d", "c"]);
    assert_eq!(place.bytes().0, place.bytes().1);
}

#[test]
fn a_chat_takes_its_calls_along_when_it_is_renamed_or_deleted_and_they_go_when_it_becomes_private() {
    let place = place();
    place.add(&[in_chat("1", "a"), in_chat("2", "b"), row("3", 1), in_chat("4", "a")]);
    // The chat may get a row of its own later than its calls.
    place.db.ensure_chat("a", false, 1).unwrap();
    place.db.ensure_chat("b", false, 1).unwrap();
    place.db.rename_chat("a", "c", 2).unwrap();
    assert_eq!(place.db.call("1").unwrap().unwrap().line.chat.as_deref(), Some("c"));
    place.db.delete_chat("c").unwrap();
    assert_eq!(place.all(), ["3", "2"]);
    place.db.write(|t| Ok(t.execute("UPDATE chats SET private = 1 WHERE name = 'b'", []).unwrap())).unwrap();
    assert_eq!(place.all(), ["3"]);
    assert_eq!(place.bytes().0, place.bytes().1);
}

#[test]
fn a_chat_that_is_private_by_its_row_keeps_nothing_whatever_the_call_says() {
    let place = place();
    place.db.ensure_chat("diary", true, 1).unwrap();
    place.add(&[in_chat("1", "diary"), in_chat("2", "kitchen")]);
    assert_eq!(place.all(), ["2"]);
    assert_eq!(place.bytes().0, place.bytes().1);
}

#[test]
fn clearing_leaves_no_trace_in_the_file_and_gives_back_its_room() {
    let place = place();
    let mut long = row("a", 1);
    long.text = "trace-of-a-call ".repeat(50_000);
    place.db.add_calls(&[long, row("b", 1)], 3, &ALL).unwrap();
    let data = b"picture bytes";
    let image = NewImage {
        chat: "a",
        private: false,
        id: "a.png",
        data,
        media_type: "image/png",
        visible: true,
        caption: None,
        now: 1,
    };
    place.db.put_image(&image, Keep::All).unwrap();
    assert_eq!(place.db.dropped_calls().unwrap(), 3);
    assert_eq!(place.db.clear_calls().unwrap(), 2);
    assert_eq!((place.all().len(), place.db.dropped_calls().unwrap(), place.bytes()), (0, 0, (0, 0)));
    let raw = place.raw();
    assert!(!raw.windows(15).any(|w| w == b"trace-of-a-call"), "a trace is left");
    assert!(raw.len() < 200_000, "{} bytes are left", raw.len());
    assert_eq!(place.db.image_data("a", "a.png").unwrap().unwrap(), data);
}

#[test]
fn a_database_without_a_journal_gets_one_and_keeps_what_it_has() {
    let place = place();
    let path = place.dir.path().join("user/lapidary.db");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    {
        let mut raw = Connection::open(&path).unwrap();
        crate::store::schema::migrate_to(&mut raw, 1).unwrap().unwrap();
        raw.execute("INSERT INTO chats (name, created_at, updated_at) VALUES ('a', 1, 1)", []).unwrap();
    }
    assert_eq!(place.all(), Vec::<String>::new());
    place.add(&[in_chat("1", "a")]);
    assert!(place.db.chat("a").unwrap().is_some());
    place.db.delete_chat("a").unwrap();
    assert_eq!(place.all(), Vec::<String>::new());
}
