//! What plugins keep in chats.

use super::*;
use serde_json::json;

struct Place {
    #[expect(dead_code, reason = "the folder goes with it")]
    dir: tempfile::TempDir,
    store: Arc<MainDb>,
    states: ChatStates,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(MainDb::new(dir.path().join("user/lapidary.db")));
    let states = ChatStates::new(store.clone(), Clock::manual(1_700_000_000_000));
    Place { dir, store, states }
}

fn dice(chat: &str) -> Named<'_> {
    Named { plugin: "dice", chat, home: None, private: false }
}

fn free(_: usize) -> Result<()> {
    Ok(())
}

#[test]
fn what_is_put_comes_back_as_it_was() {
    let p = place();
    p.store.ensure_chat("a", false, 1).unwrap();
    let deep = (0..MAX_VALUE_DEPTH).fold(json!(1), |inner, _| json!([inner]));
    for value in [
        json!(null),
        json!(i64::MIN),
        json!(1.5),
        json!(1e300),
        json!("ž\n\u{0}"),
        json!({"b": [1, {}], "a": ""}),
        deep,
    ] {
        p.states.put(dice("a"), "k", &value).unwrap();
        assert_eq!(p.states.get(dice("a"), "k", &free).unwrap(), Some(value.clone()));
        p.states.append(dice("a"), "l", &value).unwrap();
        assert_eq!(p.states.read_all(dice("a"), "l", &free).unwrap().pop(), Some(value));
    }
    assert_eq!(p.states.meta(dice("a"), "k").unwrap().unwrap().updated_at, 1_700_000_000_000);
}

#[test]
fn a_chat_that_is_not_there_is_empty_and_refuses_writes() {
    let p = place();
    p.store.ensure_chat("a", false, 1).unwrap();
    let none = dice("none");
    let one = json!(1);
    let many = [json!(1)];
    for failed in [
        p.states.put(none, "k", &one),
        p.states.append(none, "k", &one).map(drop),
        p.states.append_many(none, "k", &many).map(drop),
        p.states.append_many(none, "k", &[]).map(drop),
        p.states.replace(none, "k", &many).map(drop),
        p.states.delete(none, Some("k")),
        p.states.delete(none, None),
    ] {
        assert_eq!(failed.unwrap_err().kind(), Kind::NotFound);
    }
    assert_eq!(p.states.get(none, "k", &free).unwrap(), None);
    assert_eq!(p.states.read_all(none, "k", &free).unwrap(), Vec::<Value>::new());
    assert_eq!(p.states.keys(none).unwrap(), [""; 0]);
    assert_eq!(p.states.meta(none, "k").unwrap(), None);
    assert_eq!(p.store.chat("none").unwrap(), None, "asking makes nothing");
}

#[test]
fn only_a_call_of_a_door_s_own_chat_makes_that_chat() {
    let p = place();
    p.states.make_on_use("test");
    let rows = [
        ("cli", Some("cli"), true),
        ("mcp:editor", Some("mcp:editor"), true),
        ("test", Some("test"), true),
        ("http", Some("cli"), false),
        ("http", None, false),
        ("mine", Some("mine"), false),
    ];
    for (chat, home, is_made) in rows {
        let named = Named { home, ..dice(chat) };
        assert_eq!(p.states.append(named, "k", &json!(1)).is_ok(), is_made, "{chat} {home:?}");
        assert_eq!(p.store.chat(chat).unwrap().is_some(), is_made, "{chat} {home:?}");
    }
}

#[test]
fn what_cannot_be_stored_changes_nothing() {
    let p = place();
    p.store.ensure_chat("a", false, 1).unwrap();
    let big = json!("x".repeat(MAX_VALUE_BYTES - 1));
    let deep = (0..=MAX_VALUE_DEPTH).fold(json!(1), |inner, _| json!([inner]));
    for (value, kind) in
        [(big, Kind::TooLarge), (deep, Kind::InvalidArguments), (json!([u64::MAX]), Kind::InvalidArguments)]
    {
        assert_eq!(p.states.put(dice("a"), "k", &value).unwrap_err().kind(), kind);
        assert_eq!(p.states.append(dice("a"), "k", &value).unwrap_err().kind(), kind);
        let many = [json!(1), value];
        let failed = p.states.append_many(dice("a"), "k", &many).unwrap_err();
        assert_eq!(failed.kind(), kind);
        assert!(failed.message().contains("[1]"), "{failed}");
        assert_eq!(p.states.replace(dice("a"), "k", &many).unwrap_err().kind(), kind);
    }
    let long = "k".repeat(1025);
    assert_eq!(p.states.put(dice("a"), &long, &json!(1)).unwrap_err().kind(), Kind::TooLarge);
    p.states.put(dice("a"), &long[1..], &json!(1)).unwrap();
    assert_eq!(p.states.keys(dice("a")).unwrap(), [&long[1..]]);
}

#[test]
fn a_plugin_has_so_many_values_in_a_chat_and_no_more() {
    let p = place();
    p.store.ensure_chat("a", false, 1).unwrap();
    p.store.ensure_chat("b", false, 1).unwrap();
    let many = vec![json!(0); 10_000];
    for _ in 0..10 {
        p.states.append_many(dice("a"), "log", &many).unwrap();
    }
    assert_eq!(p.states.append(dice("a"), "log", &json!(1)).unwrap_err().kind(), Kind::Quota);
    assert_eq!(p.states.put(dice("a"), "k", &json!(1)).unwrap_err().kind(), Kind::Quota);
    assert_eq!(p.states.append_many(dice("a"), "log", &many).unwrap_err().kind(), Kind::Quota);
    // In another chat, and for another plugin, there is room.
    p.states.append(dice("b"), "log", &json!(1)).unwrap();
    p.states.append(Named { plugin: "mail", ..dice("a") }, "log", &json!(1)).unwrap();
    // What takes another's place needs none, and what was deleted makes some.
    assert_eq!(p.states.replace(dice("a"), "log", &many).unwrap().len(), 10_000);
    p.states.append(dice("a"), "log", &json!(1)).unwrap();
    assert_eq!(p.states.meta(dice("a"), "log").unwrap().unwrap().rows, 10_001);
}

#[test]
fn all_values_of_a_plugin_in_a_chat_have_a_limit() {
    let p = place();
    p.store.ensure_chat("a", false, 1).unwrap();
    let chunk = json!("x".repeat(MAX_VALUE_BYTES - 100));
    for n in 0..8 {
        p.states.put(dice("a"), &n.to_string(), &chunk).unwrap();
    }
    assert_eq!(p.states.put(dice("a"), "8", &chunk).unwrap_err().kind(), Kind::Quota);
    for _ in 0..3 {
        // The same key again is one value.
        p.states.put(dice("a"), "7", &chunk).unwrap();
    }
    p.states.delete(dice("a"), Some("0")).unwrap();
    p.states.put(dice("a"), "8", &chunk).unwrap();
}

#[test]
fn what_the_memory_of_a_call_has_no_room_for_is_not_read() {
    let p = place();
    p.store.ensure_chat("a", false, 1).unwrap();
    p.states.put(dice("a"), "k", &json!("x".repeat(1000))).unwrap();
    p.states.append(dice("a"), "k", &json!("x".repeat(1000))).unwrap();
    let no = |bytes: usize| {
        assert!(bytes >= 1000);
        Err(Error::new(Kind::Quota, "no room"))
    };
    assert_eq!(p.states.get(dice("a"), "k", &no).unwrap_err().kind(), Kind::Quota);
    assert_eq!(p.states.read_all(dice("a"), "k", &no).unwrap_err().kind(), Kind::Quota);
    assert_eq!(p.states.get_all_chats("dice", "k", &no).unwrap_err().kind(), Kind::Quota);
}

#[test]
fn appending_from_many_threads_numbers_every_value_once() {
    let p = place();
    p.store.ensure_chat("a", false, 1).unwrap();
    let numbers: Vec<i64> = std::thread::scope(|scope| {
        let one = |thread: i64| {
            let states = &p.states;
            move || (0..50).map(|n| states.append(dice("a"), "log", &json!([thread, n])).unwrap()).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(one(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=400).collect::<Vec<i64>>());
    let stored = p.states.read_all(dice("a"), "log", &free).unwrap();
    for thread in 0..8 {
        let of: Vec<i64> = stored.iter().filter(|v| v[0] == thread).map(|v| v[1].as_i64().unwrap()).collect();
        assert_eq!(of, (0..50).collect::<Vec<i64>>(), "a thread's own are in its order");
    }
}
