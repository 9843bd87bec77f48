//! The journal over HTTP: what is listed, what is kept of a call, and calls that are made again.

use super::api::{ECHO, WAIT};
use super::api_client::Served;
use super::world::{World, until};
use lapidary::app::Watching;
use serde_json::{Value, json};

fn served() -> Served {
    let served = Served::of(World::with(|b| b.watching(Watching::Off).keep_journal()));
    served.world.tool("echo", ECHO);
    served.world.tool("wait", WAIT);
    served.world.tool("told", "/// Say much. For tests.\nfn told() {\n    log::warn(\"careful\");\n    progress::step(2, 4);\n    \"done\"\n}\n");
    served
}

fn call(served: &Served, tool: &str, arguments: Value, id: &str) -> Value {
    served.post("/api/call", &json!({ "tool": tool, "arguments": arguments, "call": id })).json()
}

#[test]
fn calls_are_listed_newest_first_by_page_and_by_what_is_asked_for() {
    let served = served();
    for n in 0..5 {
        call(&served, "echo", json!({ "text": format!("text {n}") }), &format!("call_number_{n}"));
    }
    call(&served, "echo", json!({ "text": 5 }), "a_bad_call");
    call(&served, "told", json!({}), "a_told_call");
    let list = |query: &str| -> Vec<String> {
        let page = served.get(&format!("/api/journal{query}")).good();
        page["calls"].as_array().unwrap().iter().map(|c| c["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(list("")[..3], ["a_told_call", "a_bad_call", "call_number_4"]);
    assert_eq!(list("?failed=true"), ["a_bad_call"]);
    assert_eq!(list("?tool=told"), ["a_told_call"]);
    assert_eq!(list("?plugin=echo&limit=2"), ["a_bad_call", "call_number_4"]);
    assert_eq!(list("?door=cli"), Vec::<String>::new());
    let page = served.get("/api/journal?limit=3").good();
    assert_eq!((&page["next"], &page["dropped"]), (&json!("call_number_4"), &json!(0)));
    assert_eq!(list("?limit=3&before=call_number_4"), ["call_number_3", "call_number_2", "call_number_1"]);
    let first = &page["calls"][0];
    assert_eq!((&first["door"], &first["caller"], &first["plugin"]), (&json!("http"), &json!("owner"), &json!("told")));
    for bad in ["?limit=0", "?limit=501", "?limit=x", "?tol=echo", "?failed=perhaps"] {
        assert_eq!(served.get(&format!("/api/journal{bad}")).refused(400).0, "invalid_arguments", "{bad}");
    }
    assert_eq!(served.delete("/api/journal").good()["deleted"], 7);
    assert_eq!(list(""), Vec::<String>::new());
}

#[test]
fn everything_of_a_call_is_kept_and_what_is_not_there_is_said() {
    let served = served();
    call(&served, "told", json!({}), "a_told_call");
    let entry = served.get("/api/journal/a_told_call").good();
    assert_eq!(
        (&entry["text"], &entry["arguments"], &entry["live_generation"]),
        (&json!("done"), &json!({}), &json!(1))
    );
    assert_eq!((&entry["logs"][0]["level"], &entry["logs"][0]["text"]), (&json!("warn"), &json!("careful")));
    assert_eq!((&entry["progress"][0]["done"], &entry["progress"][0]["total"]), (&json!(2), &json!(4)));
    call(&served, "echo", json!({ "text": 5 }), "a_bad_call");
    let entry = served.get("/api/journal/a_bad_call").good();
    assert_eq!((&entry["ok"], &entry["error"]["code"]), (&json!(false), &json!("invalid_arguments")));
    for unknown in ["nothing_here", "..%2f..%2fx", "%00"] {
        assert_eq!(served.get(&format!("/api/journal/{unknown}")).refused(404).0, "not_found");
        assert_eq!(served.post(&format!("/api/journal/{unknown}/replay"), &json!({})).status, 404);
    }
}

#[test]
fn a_call_is_made_again_on_what_is_live_now_and_what_differs_is_shown() {
    let served = served();
    call(&served, "echo", json!({ "text": "hi", "times": 2 }), "the_first_call");
    let same = served.post("/api/journal/the_first_call/replay", &json!({})).good();
    assert_eq!((&same["diff"], &same["changes"], &same["now"]["text"]), (&json!(""), &json!([]), &json!("hihi")));
    assert_ne!(same["now"]["call"], "the_first_call", "a replay is a call of its own");
    served.world.tool("echo", &ECHO.replace("    out\n", "    out + \"!\"\n"));
    let other = served.post("/api/journal/the_first_call/replay", &json!({})).good();
    assert_eq!((&other["then"]["text"], &other["now"]["text"]), (&json!("hihi"), &json!("hihi!")));
    let diff = other["diff"].as_str().unwrap();
    assert!(diff.contains("-hihi\n") && diff.contains("+hihi!"), "{diff}");
    assert_eq!(other["changes"], json!([{ "what": "generation", "then": 1, "now": 2 }]));

    let mut events = served.follow("POST", "/api/journal/the_first_call/replay", &[], b"");
    assert_eq!(events.next().unwrap().data["generation"], 2);
    let result = events.until("result");
    assert_eq!((&result.data["now"]["text"], &result.data["then"]["id"]), (&json!("hihi!"), &json!("the_first_call")));
    assert!(events.next().is_none());

    let secret = served.post(
        "/api/call",
        &json!({ "tool": "echo", "arguments": { "text": "x", "password": "hunter2hunter2" }, "call": "a_secret_call" }),
    );
    assert_eq!(secret.status, 200);
    let entry = served.get("/api/journal/a_secret_call").good();
    if entry["masked"] == true {
        assert_eq!(served.post("/api/journal/a_secret_call/replay", &json!({})).refused(403).0, "disabled");
    }
}

#[test]
fn a_replay_ends_when_its_reader_goes() {
    let served = served();
    let body = json!({ "tool": "wait", "call": "a_long_call" }).to_string();
    let mut events = served.follow("POST", "/api/call", &[], body.as_bytes());
    events.until("progress");
    drop(events);
    until("it ended", || served.get("/api/journal?tool=wait").good()["calls"].as_array().unwrap().len() == 1);
    let mut again = served.follow("POST", "/api/journal/a_long_call/replay", &[], b"");
    again.until("progress");
    drop(again);
    until("it ends too", || served.get("/api/calls").good() == json!([]));
}

#[test]
fn an_id_that_a_call_had_hides_no_call() {
    let served = served();
    let call = |text: &str| {
        served.post("/api/call", &json!({ "tool": "echo", "arguments": { "text": text }, "call": "c_mine_0001" }))
    };
    assert_eq!(call("first").good()["text"], "first");
    let second = call("second");
    assert_eq!((second.status, second.json()["error"]["code"].clone()), (409, json!("conflict")));
    let kept = served.get("/api/journal/c_mine_0001").good().to_string();
    assert!(kept.contains("first") && !kept.contains("second"), "{kept}");
}
