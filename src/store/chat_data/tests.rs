//! Values of plugins in chats.

use super::*;

fn db() -> (tempfile::TempDir, MainDb) {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    (dir, db)
}

const DICE: Owner = Owner { plugin: "dice", chat: "a" };

fn value(db: &MainDb, owner: Owner, key: &str) -> Option<String> {
    db.value(owner, key, &|_| Ok(())).unwrap()
}

fn values(db: &MainDb, owner: Owner, key: &str) -> Vec<String> {
    db.values(owner, key, &|_| Ok(())).unwrap()
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_put_is_one_row_and_what_is_appended_is_counted_from_one() {
    let (_dir, db) = db();
    db.ensure_chat("a", false, 1).unwrap();
    db.put_value(DICE, "k", "1", 10).unwrap();
    db.put_value(DICE, "k", "2", 11).unwrap();
    assert_eq!(value(&db, DICE, "k").as_deref(), Some("2"));
    assert_eq!(db.value_meta(DICE, "k").unwrap(), Some(KeyMeta { rows: 1, updated_at: 11 }));
    assert_eq!(db.append_value(DICE, "log", "\"x\"", 12).unwrap(), 1);
    assert_eq!(db.append_value(DICE, "log", "\"y\"", 13).unwrap(), 2);
    assert_eq!(db.append_values(DICE, "log", &texts(&["3", "4"]), 14).unwrap(), [3, 4]);
    assert_eq!(db.append_values(DICE, "log", &[], 14).unwrap(), Vec::<i64>::new());
    assert_eq!(values(&db, DICE, "log"), texts(&["\"x\"", "\"y\"", "3", "4"]));
    // Both on one key do not disturb each other.
    assert_eq!(db.append_value(DICE, "k", "9", 15).unwrap(), 1);
    assert_eq!(value(&db, DICE, "k").as_deref(), Some("2"));
    assert_eq!(values(&db, DICE, "k"), texts(&["9"]));
    assert_eq!(db.replace_values(DICE, "log", &texts(&["5"]), 16).unwrap(), [1]);
    assert_eq!(db.append_value(DICE, "log", "6", 17).unwrap(), 2);
    assert_eq!(values(&db, DICE, "log"), texts(&["5", "6"]));
    assert_eq!(db.value_keys(DICE).unwrap(), texts(&["k", "log"]));
    assert_eq!(db.delete_values(DICE, Some("k")).unwrap(), 2);
    assert_eq!(db.value_keys(DICE).unwrap(), texts(&["log"]));
    assert_eq!(db.delete_values(DICE, None).unwrap(), 2);
    assert_eq!(db.value_meta(DICE, "log").unwrap(), None);
}

#[test]
fn a_plugin_sees_its_own_rows_of_one_chat() {
    let (_dir, db) = db();
    db.ensure_chat("a", false, 1).unwrap();
    db.ensure_chat("b", false, 1).unwrap();
    let owners = [("dice", "a"), ("mail", "a"), ("dice", "b")].map(|(plugin, chat)| Owner { plugin, chat });
    for (n, owner) in owners.into_iter().enumerate() {
        db.put_value(owner, "k", &n.to_string(), 1).unwrap();
        assert_eq!(db.append_value(owner, "l", &n.to_string(), 1).unwrap(), 1);
    }
    db.delete_values(owners[0], None).unwrap();
    assert_eq!(value(&db, owners[0], "k"), None);
    assert_eq!(values(&db, owners[1], "l"), ["1"]);
    assert_eq!(values(&db, owners[2], "l"), ["2"]);
    assert_eq!(db.values_held(owners[1], Replaced::Nothing).unwrap(), Held { rows: 2, bytes: 4 });
    assert_eq!(db.values_held(owners[1], Replaced::Value("k")).unwrap(), Held { rows: 1, bytes: 2 });
    assert_eq!(db.values_held(owners[1], Replaced::Value("l")).unwrap(), Held { rows: 2, bytes: 4 });
    assert_eq!(db.values_held(owners[1], Replaced::Appended("l")).unwrap(), Held { rows: 1, bytes: 2 });
    let all = |plugin| db.value_in_chats(plugin, "k", &|_| Ok(())).unwrap();
    assert_eq!(all("dice"), [("b".to_owned(), "2".to_owned())]);
    assert_eq!(all("mail"), [("a".to_owned(), "1".to_owned())]);
    assert_eq!(all("none"), []);
}

#[test]
fn a_sealed_chat_is_empty_and_refuses_writes() {
    let (_dir, db) = db();
    db.ensure_chat("a", true, 1).unwrap();
    db.put_value(DICE, "k", "1", 1).unwrap();
    db.append_value(DICE, "k", "2", 1).unwrap();
    let seal = |vaulted: i64| {
        db.write_one(|c| c.execute("UPDATE chats SET vaulted = ?1", [vaulted]).map(drop).map_err(|e| explain(&e)))
            .unwrap();
    };
    seal(1);
    assert_eq!((value(&db, DICE, "k"), values(&db, DICE, "k")), (None, vec![]));
    assert_eq!(db.value_keys(DICE).unwrap(), [""; 0]);
    assert_eq!(db.value_meta(DICE, "k").unwrap(), None);
    assert_eq!(db.value_in_chats("dice", "k", &|_| Ok(())).unwrap(), []);
    for failed in [
        db.put_value(DICE, "k", "1", 1),
        db.append_value(DICE, "k", "1", 1).map(drop),
        db.append_values(DICE, "k", &texts(&["1"]), 1).map(drop),
        db.replace_values(DICE, "k", &[], 1).map(drop),
        db.delete_values(DICE, None).map(drop),
    ] {
        assert_eq!(failed.unwrap_err().kind(), Kind::ChatSealed);
    }
    seal(0);
    assert_eq!((value(&db, DICE, "k").as_deref(), values(&db, DICE, "k")), (Some("1"), texts(&["2"])));
}

#[test]
fn what_a_plugin_has_is_dropped_or_handed_on() {
    let (dir, db) = db();
    assert_eq!(db.drop_values("dice").unwrap(), 0);
    assert_eq!(db.hand_values("dice", "old").unwrap(), 0);
    assert!(!dir.path().join("user").exists(), "nothing is made to delete from it");
    for chat in ["a", "b"] {
        db.ensure_chat(chat, false, 1).unwrap();
        for plugin in ["dice", "mail"] {
            db.append_values(Owner { plugin, chat }, "k", &texts(&["1", "2"]), 1).unwrap();
        }
    }
    assert_eq!(db.hand_values("dice", "mail").unwrap_err().kind(), Kind::Conflict);
    assert_eq!(db.hand_values("dice", "dice@1").unwrap(), 4);
    assert_eq!(values(&db, DICE, "k"), [""; 0]);
    db.delete_chat("b").unwrap();
    assert_eq!(db.hand_values("dice@1", "dice").unwrap(), 2);
    assert_eq!(values(&db, DICE, "k"), ["1", "2"]);
    assert_eq!(db.drop_values("dice").unwrap(), 2);
    assert_eq!(values(&db, Owner { plugin: "mail", ..DICE }, "k"), ["1", "2"]);
}

#[test]
fn a_value_that_is_refused_in_the_middle_takes_the_others_along() {
    let (_dir, db) = db();
    db.ensure_chat("a", false, 1).unwrap();
    db.append_values(DICE, "k", &texts(&["1", "2"]), 1).unwrap();
    db.write_one(|c| {
        c.execute_batch(
            "CREATE TRIGGER no BEFORE INSERT ON plugin_chat_data WHEN NEW.value = 'bad' BEGIN SELECT raise(ABORT, 'no'); END",
        )
        .map_err(|e| explain(&e))
    })
    .unwrap();
    assert!(db.append_values(DICE, "k", &texts(&["3", "bad", "4"]), 2).is_err());
    assert!(db.replace_values(DICE, "k", &texts(&["3", "bad"]), 2).is_err());
    assert!(db.append_value(DICE, "k", "bad", 2).is_err());
    assert!(db.put_value(DICE, "k", "bad", 2).is_err());
    assert_eq!((values(&db, DICE, "k"), value(&db, DICE, "k")), (texts(&["1", "2"]), None));
    assert_eq!(db.append_value(DICE, "k", "3", 2).unwrap(), 3);
}
