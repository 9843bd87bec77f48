//! Messages of chats.

use super::*;

fn db() -> (tempfile::TempDir, MainDb, i64) {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    let chat = db.ensure_chat("a", false, 1).unwrap().id;
    (dir, db, chat)
}

fn said<'a>(at: i64, body: &'a str) -> NewMessage<'a> {
    NewMessage { role: Role::User, at, turn: "t1", body }
}

fn bodies(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| &*message.body).collect()
}

#[test]
fn messages_are_paged_from_the_newest_back() {
    let (_dir, db, chat) = db();
    let ids = db.append_messages(chat, &[said(10, "1"), said(11, "2"), said(12, "3"), said(9, "4")]).unwrap();
    assert!(ids.is_sorted());
    assert_eq!(bodies(&db.messages(chat, None, 2).unwrap()), ["3", "4"]);
    assert_eq!(bodies(&db.messages(chat, Some(ids[2]), 2).unwrap()), ["1", "2"]);
    assert_eq!(bodies(&db.messages(chat, Some(ids[0]), 2).unwrap()), Vec::<&str>::new());
    assert_eq!(bodies(&db.messages(chat, None, 0).unwrap()), Vec::<&str>::new());
    assert_eq!(bodies(&db.messages_from(chat, ids[1]).unwrap()), ["2", "3", "4"]);
    assert_eq!(db.chat("a").unwrap().unwrap().updated_at, 12);
    assert_eq!(db.count_messages(chat).unwrap(), 4);
    db.replace_message(chat, ids[0], "one").unwrap();
    assert_eq!(db.message(chat, ids[0]).unwrap().unwrap().body, "one");
    assert_eq!(db.delete_messages(chat, &[ids[0], ids[0], 999]).unwrap(), 1);
    assert_eq!(db.delete_messages_from(chat, ids[2]).unwrap(), 2);
    assert_eq!(bodies(&db.messages(chat, None, 9).unwrap()), ["2"]);
}

#[test]
fn messages_of_another_chat_are_none() {
    let (_dir, db, one) = db();
    let two = db.ensure_chat("b", false, 1).unwrap().id;
    let mine = db.append_messages(one, &[said(1, "1"), said(2, "2")]).unwrap();
    db.append_messages(two, &[said(3, "3")]).unwrap();
    assert_eq!(db.message(two, mine[0]).unwrap(), None);
    assert_eq!(db.replace_message(two, mine[0], "x").unwrap_err().kind(), Kind::NotFound);
    assert_eq!(db.delete_messages(two, &mine).unwrap(), 0);
    assert_eq!(db.delete_messages_from(two, mine[1]).unwrap(), 1, "its own newer one");
    assert_eq!(bodies(&db.messages(one, None, 9).unwrap()), ["1", "2"]);
    assert_eq!(bodies(&db.messages(two, None, 9).unwrap()), Vec::<&str>::new());
}

#[test]
fn an_id_is_never_given_again() {
    let (_dir, db, chat) = db();
    let first = db.append_messages(chat, &[said(1, "1")]).unwrap()[0];
    db.delete_messages_from(chat, 0).unwrap();
    assert!(db.append_messages(chat, &[said(1, "2")]).unwrap()[0] > first);
}

#[test]
fn messages_are_appended_all_or_none() {
    let (_dir, db, chat) = db();
    let big = "x".repeat(MAX_BODY + 1);
    assert_eq!(db.append_messages(chat, &[said(1, "1"), said(2, &big)]).unwrap_err().kind(), Kind::TooLarge);
    let id = db.append_messages(chat, &[said(1, "1")]).unwrap()[0];
    assert_eq!(db.replace_message(chat, id, &big).unwrap_err().kind(), Kind::TooLarge);
    // One that the table refuses in the middle takes the others along.
    db.write_one(|c| {
        c.execute_batch(
            "CREATE TRIGGER no BEFORE INSERT ON messages WHEN NEW.body = 'bad' BEGIN SELECT raise(ABORT, 'no'); END",
        )
        .map_err(|e| explain(&e))
    })
    .unwrap();
    assert!(db.append_messages(chat, &[said(8, "2"), said(9, "bad"), said(9, "3")]).is_err());
    assert_eq!(bodies(&db.messages(chat, None, 9).unwrap()), ["1"]);
    assert_eq!(db.chat("a").unwrap().unwrap().updated_at, 1);
}

#[test]
fn every_role_comes_back_as_it_was() {
    let (_dir, db, chat) = db();
    for role in [Role::User, Role::Assistant, Role::Tool] {
        assert_eq!(Role::from_word(role.word()), Some(role));
        let id = db.append_messages(chat, &[NewMessage { role, at: -5, turn: "", body: "ž\u{0}\n" }]).unwrap()[0];
        let message = db.message(chat, id).unwrap().unwrap();
        assert_eq!(message, Message { id, role, at: -5, turn: String::new(), body: "ž\u{0}\n".into() });
    }
    assert_eq!(Role::from_word("system"), None);
    assert_eq!(db.append_messages(chat, &[]).unwrap(), Vec::<i64>::new());
}

#[test]
fn a_word_is_found_in_every_script_and_is_never_a_pattern() {
    let (_dir, db, chat) = db();
    let bodies = [
        r#"{"text":"The QUICK brown fox"}"#,
        r#"{"text":"Příliš žluťoučký kůň"}"#,
        r#"{"text":"ΟΔΟΣ, Straße"}"#,
        r#"{"text":"100% of_it \"quoted\" C:\\dir\nnew line"}"#,
        r#"{"parts":[{"text":"deep"},{"n":12}],"text":"outer"}"#,
        "no JSON at all",
    ];
    for body in bodies {
        db.append_messages(chat, &[said(1, body)]).unwrap();
    }
    // Words, and which of the bodies have them.
    let rows: &[(&str, &[usize])] = &[
        ("quick", &[0]),
        ("FOX brown", &[0]),
        ("fox horse", &[]),
        ("ŽLUŤOUČKÝ", &[1]),
        ("kůŇ", &[1]),
        ("kun", &[]),
        ("οδος", &[2]),
        ("οδοσ", &[2]),
        ("straße", &[2]),
        ("100%", &[3]),
        ("1%0", &[]),
        ("of_it", &[3]),
        ("of-it", &[]),
        ("%", &[3]),
        ("_", &[3]),
        ("\"quoted\"", &[3]),
        (r"c:\dir", &[3]),
        ("nnew", &[]),
        ("new", &[3]),
        ("text", &[]),
        ("parts", &[]),
        ("deep outer", &[4]),
        ("deepouter", &[]),
        ("12", &[]),
        ("json", &[5]),
        ("e", &[0, 2, 3, 4]),
        ("  ", &[]),
        ("", &[]),
    ];
    for (words, expected) in rows {
        let found = db.search_messages(words, 50, None).unwrap();
        let mut found_at: Vec<usize> =
            found.hits.iter().map(|hit| bodies.iter().position(|body| *body == hit.body).unwrap()).collect();
        assert!(found_at.iter().rev().is_sorted(), "{words:?}: newest first");
        found_at.reverse();
        assert_eq!((found_at.as_slice(), found.next), (*expected, None), "{words:?}");
    }
}

#[test]
fn a_search_goes_on_where_it_stopped_and_sees_no_private_chat() {
    let (_dir, db, chat) = db();
    let private = db.ensure_chat("closed", true, 1).unwrap().id;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.extend(db.append_messages(chat, &[said(n, r#""word""#)]).unwrap());
        db.append_messages(private, &[said(n, r#""word""#)]).unwrap();
    }
    let (mut before, mut seen) = (None, Vec::new());
    loop {
        let found = db.search_messages("word", 2, before).unwrap();
        assert!(found.hits.iter().all(|hit| hit.chat == "a" && hit.role == Role::User));
        seen.extend(found.hits.iter().map(|hit| hit.message));
        before = found.next;
        if before.is_none() {
            break;
        }
    }
    seen.reverse();
    assert_eq!(seen, ids);
    assert_eq!(db.search_messages("word", 0, None).unwrap(), Found::default());
    assert_eq!(db.search_messages("word", usize::MAX, None).unwrap().hits.len(), 5);
    db.set_chat_private(chat, true, 9).unwrap();
    assert_eq!(db.search_messages("word", 9, None).unwrap(), Found::default());
}

#[test]
fn a_word_is_found_however_its_letters_are_written() {
    let (_dir, db, chat) = db();
    db.append_messages(chat, &[said(1, r#"{"text":"p\u0159\u00edli\u0161 \u0041\/b"}"#)]).unwrap();
    for (words, is_found) in [("PŘÍLIŠ", true), ("a/b", true), ("u0159", false)] {
        assert_eq!(db.search_messages(words, 9, None).unwrap().hits.len(), usize::from(is_found), "{words}");
    }
}

#[test]
fn a_role_is_written_as_the_word_that_stands_in_its_row() {
    for role in [Role::User, Role::Assistant, Role::Tool] {
        assert_eq!(serde_json::to_value(role).unwrap(), role.word());
        assert_eq!(Role::from_word(role.word()), Some(role));
    }
}
