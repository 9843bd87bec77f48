//! The host's own database: chats and pictures, by several handles and processes' worth of openings.

use super::*;
use crate::store::schema;
use std::path::PathBuf;

fn place(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("user/lapidary.db")
}

fn image<'a>(chat: &'a str, id: &'a str, data: &'a [u8]) -> NewImage<'a> {
    NewImage { chat, private: false, id, data, media_type: "image/png", visible: true, caption: None, now: 1_000 }
}

#[test]
fn nothing_is_made_before_something_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(place(&dir));
    assert_eq!(db.chat("cli").unwrap(), None);
    assert_eq!(db.image("cli", "a.png").unwrap(), None);
    assert_eq!(db.image_data("cli", "a.png").unwrap(), None);
    assert!(!db.delete_chat("cli").unwrap());
    assert_eq!(db.prune_images("cli", &HashSet::new(), i64::MAX).unwrap(), 0);
    assert_eq!(db.set_caption("cli", "a.png", Some("x")).unwrap_err().kind(), Kind::NotFound);
    assert!(!dir.path().join("user").exists());
}

#[test]
fn a_picture_is_read_back_in_its_own_chat_only() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(place(&dir));
    db.put_image(&NewImage { caption: Some("a cat"), visible: false, ..image("one", "a.png", b"bytes") }, Keep::All)
        .unwrap();
    db.ensure_chat("two", true, 5).unwrap();
    assert_eq!(db.image_data("one", "a.png").unwrap().unwrap(), b"bytes");
    let row = db.image("one", "a.png").unwrap().unwrap();
    assert_eq!((row.media_type.as_str(), row.size, row.visible, row.created_at), ("image/png", 5, false, 1_000));
    assert_eq!(row.caption.as_deref(), Some("a cat"));
    for (chat, id) in [("two", "a.png"), ("", "a.png"), ("one", "b.png"), ("one", "A.png"), ("one", "")] {
        assert_eq!(db.image(chat, id).unwrap(), None, "{chat} {id}");
        assert_eq!(db.image_data(chat, id).unwrap(), None, "{chat} {id}");
        assert_eq!(db.set_caption(chat, id, Some("x")).unwrap_err().kind(), Kind::NotFound);
    }
    db.set_caption("one", "a.png", Some("two cats")).unwrap();
    assert_eq!(db.image("one", "a.png").unwrap().unwrap().caption.as_deref(), Some("two cats"));
    db.set_caption("one", "a.png", None).unwrap();
    assert_eq!(db.image("one", "a.png").unwrap().unwrap().caption, None);
    assert_eq!(db.put_image(&image("two", "a.png", b"other"), Keep::All).unwrap_err().kind(), Kind::Conflict);
    assert_eq!(db.image_data("one", "a.png").unwrap().unwrap(), b"bytes");
}

#[test]
fn a_chat_is_made_once_and_keeps_what_it_was_made_with() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(place(&dir));
    db.ensure_chat("diary", true, 7).unwrap();
    db.ensure_chat("diary", false, 9).unwrap();
    let chat = db.chat("diary").unwrap().unwrap();
    assert_eq!((chat.private, chat.created_at, chat.settings.as_str()), (true, 7, "{}"));
    for bad in ["", " ", "a\nb", " a", "a ", "\0", &"x".repeat(201)] {
        assert_eq!(db.ensure_chat(bad, false, 1).unwrap_err().kind(), Kind::InvalidArguments, "{bad:?}");
        assert!(db.put_image(&image(bad, "z.png", b"x"), Keep::All).is_err());
        assert!(db.rename_chat("diary", bad, 1).is_err());
    }
    db.ensure_chat(&"ž".repeat(200), false, 1).unwrap();
}

#[test]
fn pictures_follow_their_chat_when_it_is_renamed_and_go_when_it_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(place(&dir));
    db.put_image(&image("old", "a.png", b"1"), Keep::All).unwrap();
    db.put_image(&image("other", "b.png", b"2"), Keep::All).unwrap();
    assert_eq!(db.rename_chat("old", "other", 2).unwrap_err().kind(), Kind::Conflict);
    assert_eq!(db.rename_chat("none", "new", 2).unwrap_err().kind(), Kind::NotFound);
    db.rename_chat("old", "old", 2).unwrap();
    db.rename_chat("old", "new", 3).unwrap();
    assert_eq!(db.image_data("new", "a.png").unwrap().unwrap(), b"1");
    assert_eq!(db.image("old", "a.png").unwrap(), None);
    assert_eq!(db.chat("new").unwrap().unwrap().updated_at, 3);
    assert!(db.delete_chat("new").unwrap() && !db.delete_chat("new").unwrap());
    assert_eq!(db.image("new", "a.png").unwrap(), None);
    assert_eq!(db.image_data("other", "b.png").unwrap().unwrap(), b"2");
    // The name is free again, and nothing of the old chat comes back.
    db.put_image(&image("new", "c.png", b"3"), Keep::All).unwrap();
    assert_eq!(db.image("new", "a.png").unwrap(), None);
}

#[test]
fn row_29_what_no_message_names_is_pruned_and_what_one_names_stays() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(place(&dir));
    for (id, now) in [("a.png", 10), ("b.png", 20), ("young.png", 99)] {
        db.put_image(&NewImage { now, ..image("one", id, b"1") }, Keep::All).unwrap();
    }
    db.put_image(&image("two", "c.png", b"2"), Keep::All).unwrap();
    let named: HashSet<String> = ["b.png".to_owned(), "not-there.png".to_owned()].into();
    assert_eq!(db.prune_images("one", &named, 99).unwrap(), 1);
    assert!(db.image("one", "a.png").unwrap().is_none());
    for (chat, id) in [("one", "b.png"), ("one", "young.png"), ("two", "c.png")] {
        assert!(db.image(chat, id).unwrap().is_some(), "{id}");
    }
    assert_eq!(db.prune_images("none", &named, 99).unwrap(), 0);
}

#[test]
fn a_chat_without_messages_keeps_its_newest_pictures() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(place(&dir));
    for n in 0..7 {
        let id = format!("{n}.png");
        db.put_image(&NewImage { now: 100 + i64::from(n) / 2, ..image("cli", &id, b"1") }, Keep::Newest(3)).unwrap();
    }
    let there: Vec<u32> = (0..7).filter(|n| db.image("cli", &format!("{n}.png")).unwrap().is_some()).collect();
    assert_eq!(there, [4, 5, 6]);
}

#[test]
fn a_picture_beyond_the_limit_is_refused_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(place(&dir));
    let e = db.put_image(&image("one", "a.png", &vec![0; MAX_BYTES + 1]), Keep::All).unwrap_err();
    assert_eq!(e.kind(), Kind::TooLarge);
    assert_eq!(db.chat("one").unwrap(), None);
}

#[test]
fn two_processes_write_one_database_and_read_each_other() {
    let dir = tempfile::tempdir().unwrap();
    // Handles share nothing but the file, as two processes do; both open it for the first time at once.
    let work = |who: &'static str| {
        let path = place(&dir);
        move || {
            let db = MainDb::new(path);
            for n in 0..100 {
                db.put_image(&image("shared", &format!("{who}{n}.png"), who.as_bytes()), Keep::All).unwrap();
            }
        }
    };
    std::thread::scope(|scope| {
        for who in ["a", "b", "c"] {
            scope.spawn(work(who));
        }
    });
    let db = MainDb::new(place(&dir));
    for who in ["a", "b", "c"] {
        for n in 0..100 {
            assert_eq!(db.image_data("shared", &format!("{who}{n}.png")).unwrap().unwrap(), who.as_bytes());
        }
    }
}

#[test]
fn a_reader_sees_what_another_handle_committed() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (MainDb::new(place(&dir)), MainDb::new(place(&dir)));
    one.put_image(&image("x", "a.png", b"1"), Keep::All).unwrap();
    assert!(two.image("x", "a.png").unwrap().is_some());
    two.rename_chat("x", "y", 2).unwrap();
    assert!(one.image("x", "a.png").unwrap().is_none() && one.image("y", "a.png").unwrap().is_some());
    one.delete_chat("y").unwrap();
    assert!(two.image("y", "a.png").unwrap().is_none());
}

#[test]
fn a_database_of_a_newer_program_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    MainDb::new(place(&dir)).ensure_chat("a", false, 1).unwrap();
    let raw = Connection::open(place(&dir)).unwrap();
    raw.pragma_update(None, "user_version", schema::VERSION + 1).unwrap();
    drop(raw);
    let e = MainDb::new(place(&dir)).chat("a").unwrap_err();
    assert_eq!(e.kind(), Kind::Conflict);
    assert!(e.message().contains(&format!("version {}", schema::VERSION + 1)), "{e}");
}

#[test]
fn a_file_that_is_no_database_is_told_and_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(dir.path().join("user")).unwrap();
    std::fs::write(place(&dir), "this is no database at all, only text that somebody wrote").unwrap();
    let e = MainDb::new(place(&dir)).ensure_chat("a", false, 1).unwrap_err();
    assert!(!e.to_string().contains(&*dir.path().to_string_lossy()), "{e}");
    assert!(e.hint_text().unwrap().contains("lapidary.db"), "{e}");
    assert!(std::fs::read_to_string(place(&dir)).unwrap().starts_with("this is no database"));
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_the_database() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(place(&dir));
    db.ensure_chat("a", false, 1).unwrap();
    for file in ["lapidary.db", "lapidary.db-wal", "lapidary.db-shm"] {
        let mode = std::fs::metadata(dir.path().join("user").join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{file}");
    }
}

#[test]
fn the_owner_sees_a_picture_of_any_chat_that_is_not_private() {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(place(&dir));
    assert_eq!(db.open_image("a.png").unwrap(), None);
    db.put_image(&image("open", "a.png", b"1"), Keep::All).unwrap();
    db.put_image(&NewImage { private: true, ..image("closed", "b.png", b"2") }, Keep::All).unwrap();
    assert_eq!(db.open_image("a.png").unwrap().unwrap(), b"1");
    assert_eq!((db.open_image("b.png").unwrap(), db.open_image("c.png").unwrap()), (None, None));
}
