//! Turns in chats, with a model that says what a script tells it to: the whole way from what is said to what is kept.

use crate::world::World;
use lapidary::chat::inbox::{Payload, Put};
use lapidary::chat::row::Entry;
use lapidary::chat::{Chats, Say};
use lapidary::model::Message;
use lapidary::model::scripted::{Gate, Scripted, Step};
use lapidary::store::inbox::Lane;
use lapidary::store::messages::Role;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

const TOOLS: &str = r#"
//! Tools of the test.

/// Doubles a number.
///
/// @param {integer} n - The number.
/// @local
fn double(n) { `twice is ${n * 2}` }

/// Always fails.
/// @local
fn broken() { throw "no luck"; }
"#;

fn world(steps: impl IntoIterator<Item = Step>) -> (World, Arc<Scripted>) {
    let world = World::prepared(|root| std::fs::write(root.join("user/tools/sums.rhai"), TOOLS).unwrap(), |b| b);
    let model = Arc::new(Scripted::new("scripted", steps));
    world.host.models().add(model.clone());
    world.host.chats().create(Some("desk"), false).unwrap();
    world.host.chats().open().unwrap();
    (world, model)
}

fn say(chats: &Chats, text: &str) -> String {
    chats.send("desk", Say { text: text.into(), ..Say::default() }).unwrap().ticket
}

fn rows(chats: &Chats) -> Vec<Entry> {
    assert!(chats.at_rest("desk", LONG));
    chats.history("desk", None, 500).unwrap().messages
}

fn told(rows: &[Entry]) -> Vec<String> {
    rows.iter().map(|row| format!("{}: {}", row.role.word(), row.body.text)).collect()
}

#[test]
fn a_model_calls_a_tool_reads_how_it_ended_and_answers() {
    let (world, model) = world([Step::calls("c1", "double", r#"{"n": 21}"#), Step::says("It is 42.")]);
    let chats = world.host.chats();
    let turn = say(chats, "double 21");
    let rows = rows(chats);
    assert_eq!(told(&rows), ["user: double 21", "assistant: ", "tool: twice is 42", "assistant: It is 42."]);
    assert!(rows.iter().all(|row| row.turn == turn));
    let asked = model.asked();
    assert_eq!(asked.len(), 2);
    assert!(
        matches!(asked[1].messages.last(), Some(Message::Tool { text, call, .. }) if text == "[ok]\ntwice is 42" && call == "c1")
    );
}

#[test]
fn every_call_gets_exactly_one_result_whatever_the_model_writes() {
    let calls = Step::new()
        .call("a", "double", "{\"n\": ")
        .call("b", "no_such_tool", "{}")
        .call("c", "double", "[1]")
        .call("d", "broken", "")
        .call("e", "double", r#"{"n": "2"}"#);
    let (world, model) = world([calls, Step::says("done")]);
    let rows = {
        say(world.host.chats(), "go");
        rows(world.host.chats())
    };
    let results: Vec<(Option<&str>, bool)> = rows
        .iter()
        .filter(|row| row.role == Role::Tool)
        .map(|row| (row.body.call.as_deref(), row.body.ok == Some(true)))
        .collect();
    assert_eq!(
        results,
        [(Some("a"), false), (Some("b"), false), (Some("c"), false), (Some("d"), false), (Some("e"), true)]
    );
    let asked = model.asked();
    let texts: Vec<&str> = asked[1]
        .messages
        .iter()
        .filter_map(|message| if let Message::Tool { text, .. } = message { Some(text.as_str()) } else { None })
        .collect();
    assert_eq!(texts.len(), 5);
    assert!(texts[..4].iter().all(|text| text.starts_with("[failed: ")), "{texts:?}");
}

#[test]
fn calls_beyond_what_one_reply_may_run_are_told_so() {
    let calls = (0..12).fold(Step::new(), |step, n| step.call(&format!("c{n}"), "double", format!("{{\"n\": {n}}}")));
    let (world, _) = world([calls, Step::says("done")]);
    say(world.host.chats(), "go");
    let rows = rows(world.host.chats());
    let codes: Vec<_> = rows.iter().filter(|row| row.role == Role::Tool).map(|row| row.body.code.as_deref()).collect();
    assert_eq!(codes.len(), 12);
    assert!(
        codes[..8].iter().all(Option::is_none) && codes[8..].iter().all(|code| *code == Some("quota")),
        "{codes:?}"
    );
}

#[test]
fn what_waits_runs_people_first_and_what_they_typed_in_a_row_is_one_turn() {
    let gate = Gate::new();
    let (world, _) = world([Step::new().stall(&gate).text("first"), Step::says("second"), Step::says("third")]);
    let chats = world.host.chats();
    say(chats, "one");
    gate.wait_reached();
    let chat = chats.summary("desk").unwrap().id;
    let machine = Put {
        chat,
        lane: Lane::Later,
        source: "songs".into(),
        plugin: Some("songs".into()),
        header: "[songs; not typed by the user]".into(),
        payload: Payload { text: "take 3 is in".into(), ..Payload::default() },
        ttl_ms: None,
        private: Some(false),
        on_drop: None,
        durable: true,
    };
    chats.inbox().put(&machine).unwrap();
    say(chats, "two");
    say(chats, "three");
    assert_eq!(chats.queue("desk").unwrap().len(), 3);
    assert_eq!(chats.queue("desk").unwrap()[2].text, None, "a machine's text is nobody's to peek at");
    gate.release();
    assert_eq!(
        told(&rows(chats)),
        [
            "user: one",
            "assistant: first",
            "user: two\n\nthree",
            "assistant: second",
            "user: take 3 is in",
            "assistant: third"
        ]
    );
}

#[test]
fn a_stop_keeps_what_was_said_and_a_failure_is_a_message() {
    let gate = Gate::new();
    let fails = lapidary::Error::not_found("there is no such model");
    let (world, _) = world([
        Step::new().text("half of").stall(&gate).text(" it"),
        Step::new().text("as far as").fail(fails),
        Step::says("fine"),
    ]);
    let chats = world.host.chats();
    say(chats, "go");
    gate.wait_reached();
    assert!(chats.cancel("desk").unwrap());
    let kept = rows(chats);
    assert_eq!((kept[1].body.text.as_str(), kept[1].body.stopped), ("half of", true));
    say(chats, "again");
    let kept = rows(chats);
    assert_eq!(kept[3].body.error.as_ref().unwrap().code, "not_found");
    assert_eq!(kept[3].body.text, "as far as", "what was read before it failed stays");
    say(chats, "and again");
    assert_eq!(told(&rows(chats)).last().unwrap(), "assistant: fine");
    assert!(!chats.cancel("desk").unwrap());
}

#[test]
fn a_turn_that_a_stop_of_the_host_broke_off_goes_on_at_the_next_start() {
    let gate = Gate::new();
    let (world, _) = world([Step::calls("c1", "double", r#"{"n": 1}"#), Step::new().stall(&gate)]);
    say(world.host.chats(), "go");
    gate.wait_reached();
    world.host.stop();
    gate.wait_left();
    let World { host, dir } = world;
    assert!(host.chats().at_rest("desk", LONG));
    drop(host);
    let host = lapidary::Host::builder().root(dir.path()).start().unwrap();
    let model = Arc::new(Scripted::new("scripted", [Step::says("twice one is two")]));
    host.models().add(model.clone());
    host.chats().open().unwrap();
    let rows = rows(host.chats());
    assert_eq!(told(&rows), ["user: go", "assistant: ", "tool: twice is 2", "assistant: twice one is two"]);
    assert_eq!(model.asked().len(), 1);
}

#[test]
fn without_a_model_a_line_calls_a_tool_and_everything_else_says_what_to_do() {
    let world = World::prepared(|root| std::fs::write(root.join("user/tools/sums.rhai"), TOOLS).unwrap(), |b| b);
    let chats = world.host.chats();
    chats.create(Some("desk"), false).unwrap();
    chats.open().unwrap();
    say(chats, "/double n=4");
    rows(chats);
    say(chats, "hello");
    let rows = rows(chats);
    assert_eq!(told(&rows)[..3], ["user: /double n=4", "assistant: ", "tool: twice is 8"]);
    let fault = rows[4].body.error.as_ref().unwrap();
    assert!(fault.hint.as_ref().unwrap().contains("[[models]]"), "{fault:?}");
}

#[test]
fn a_chat_that_is_renamed_in_the_middle_of_a_turn_keeps_it_and_one_that_is_deleted_ends_it() {
    let gate = Gate::new();
    let (world, _) = world([Step::new().stall(&gate).text("here"), Step::new().stall(&Gate::new())]);
    let chats = world.host.chats();
    say(chats, "go");
    gate.wait_reached();
    chats.rename("desk", "bench").unwrap();
    gate.release();
    assert!(chats.at_rest("bench", LONG));
    assert_eq!(chats.history("bench", None, 9).unwrap().messages[1].body.text, "here");
    chats.delete("bench").unwrap();
    assert_eq!(chats.summary("bench").unwrap_err().kind(), lapidary::Kind::NotFound);
}
