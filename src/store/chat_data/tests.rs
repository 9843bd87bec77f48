//! Values of plugins in chats.

use super::*;

fn db() -> (tempfile::TempDir, MainDb) {
    let dir = tempfile::tempdir().unwrap();
    let db = MainDb::new(dir.path().join("user/lapidary.db"));
    (dir, db)
}

const DICE: Owner = Owner { plugin: "dice", chat: "a" };

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_put_is_one_row_and_what_is_appended_is_counted_from_one() {
    let (_dir, db) = db();
    db.ensure_chat("a", false, 1).unwrap();
    db.put_value(DICE, "k", "1", 10).unwrap();
    db.put_value(DICE, "k", "2", 11).unwrap();
    assert_eq!(db.value(DICE, "k").unwrap().as_deref(), Some("2"));
    assert_eq!(db.value_meta(DICE, "k").unwrap(), Some(KeyMeta { rows: 1, updated_at: 11 }));
    assert_eq!(db.append_value(DICE, "log", "\"x\"", 12).unwrap(), 1);
    assert_eq!(db.append_value(DICE, "log", "\"y\"", 13).unwrap(), 2);
    assert_eq!(db.append_values(DICE, "log", &texts(&["3", "4"]), 14).unwrap(), [3, 4]);
    assert_eq!(db.append_values(DICE, "log", &[], 14).unwrap(), Vec::<i64>::new());
    assert_eq!(db.values(DICE, "log").unwrap(), texts(&["\"x\"", "\"y\"", "3", "4"]));
    // Both on one key do not disturb each other.
    assert_eq!(db.append_value(DICE, "k", "9", 15).unwrap(), 1);
    assert_eq!(db.value(DICE, "k").unwrap().as_deref(), Some("2"));
    assert_eq!(db.values(DICE, "k").unwrap(), texts(&["9"]));
    assert_eq!(db.replace_values(DICE, "log", &texts(&["5"]), 16).unwrap(), [1]);
    assert_eq!(db.append_value(DICE, "log", "6", 17).unwrap(), 2);
    assert_eq!(db.values(DICE, "log").unwrap(), texts(&["5", "6"]));
    assert_eq!(db.value_keys(DICE).unwrap(), texts(&["k", "log"]));
    assert_eq!(db.delete_values(DICE, Some("k")).unwrap(), 2);
    assert_eq!(db.value_keys(DICE).unwrap(), texts(&["log"]));
    assert_eq!(db.delete_values(DICE, None).unwrap(), 2);
    assert_eq!(db.value_meta(DICE, "log").unwrap(), None);
}
