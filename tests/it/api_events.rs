//! The stream of events over HTTP: what it begins with, how it is taken up again, and what becomes of a reader that is slow.

use super::api::ECHO;
use super::api_client::Served;
use super::world::until;
use lapidary::Event;
use serde_json::json;

fn publish(served: &Served, revision: u64) {
    served.world.host.services().bus.publish(Event::ToolsChanged { revision });
}

#[test]
fn a_fresh_stream_begins_with_hello_and_tells_what_happens_from_then_on() {
    let served = Served::new();
    served.world.tool("before", &ECHO.replace("echo", "before"));
    let mut events = served.events();
    let hello = events.next().unwrap();
    assert_eq!(hello.name, "hello");
    let boot = hello.data["boot"].as_str().unwrap().to_owned();
    assert_eq!(hello.data["version"], env!("CARGO_PKG_VERSION"));
    assert!(hello.data["revision"].as_u64().unwrap() > 0 && hello.id.unwrap().starts_with(&boot));
    served.world.tool("echo", ECHO);
    let live = events.until("plugin_live");
    assert_eq!(live.data, json!({ "event": "plugin_live", "plugin": "echo", "generation": 1 }));
    assert!(live.id.unwrap().starts_with(&format!("{boot}-")));
    served.post("/api/call", &json!({ "tool": "echo", "arguments": { "text": "secret words" } })).good();
    let ended = events.until("call_ended");
    assert_eq!((&ended.data["tool"], &ended.data["ok"]), (&json!("echo"), &json!(true)));
    assert!(!ended.data.to_string().contains("secret words"), "an event holds no content");
}

#[test]
fn a_stream_is_taken_up_where_it_broke_off_by_header_or_by_query() {
    let served = Served::new();
    let mut events = served.events();
    events.until("hello");
    for revision in 1..=3 {
        publish(&served, revision);
    }
    let first = events.until("tools_changed");
    let id = first.id.clone().unwrap();
    drop(events);
    publish(&served, 4);
    let streams = [
        served.follow("GET", "/api/events", &[("Last-Event-ID", &id)], b""),
        served.follow("GET", &format!("/api/events?since={id}"), &[], b""),
    ];
    for mut again in streams {
        let seen: Vec<u64> = (0..3).map(|_| again.next().unwrap().data["revision"].as_u64().unwrap()).collect();
        assert_eq!(seen, [2, 3, 4], "each once, none twice, and no hello");
    }
}

#[test]
fn what_cannot_be_taken_up_is_told_so_first() {
    let served = Served::new();
    let mut events = served.events();
    let hello = events.next().unwrap();
    let (id, boot) = (hello.id.unwrap(), hello.data["boot"].as_str().unwrap().to_owned());
    for revision in 0..1_100 {
        publish(&served, revision);
        if revision % 50 == 0 {
            // The bus itself keeps only so many for a listener that is behind.
            until("it is read", || events.next().is_some_and(|told| told.data["revision"] == revision));
        }
    }
    for last in [id.as_str(), "00000000-5", "nonsense", &format!("{boot}-99999")] {
        let mut again = served.follow("GET", "/api/events", &[("Last-Event-ID", last)], b"");
        let told = again.next().unwrap();
        assert_eq!((told.name.as_str(), &told.data["boot"]), ("resync", &json!(boot)), "{last}");
        publish(&served, 5);
        assert_eq!(again.next().unwrap().name, "tools_changed");
    }
    assert_eq!(served.get("/api/events?sinc=1").status, 400);
}

#[test]
fn a_reader_that_does_not_read_holds_nobody_up_and_is_told_to_fetch_everything_anew() {
    let served = Served::new();
    let mut slow = served.events();
    slow.until("hello");
    let mut quick = served.events();
    quick.until("hello");
    // Far more than the sockets hold: long enough texts fill them soon.
    let message = "x".repeat(2_000);
    let mut last = 0;
    for n in 0..6_000_u64 {
        served.world.host.services().bus.publish(Event::Notice { subject: n.to_string(), message: message.clone() });
        if n % 100 == 99 {
            let told = quick.until("notice");
            last = told.data["subject"].as_str().unwrap().parse().unwrap();
            while last < n {
                last = quick.until("notice").data["subject"].as_str().unwrap().parse().unwrap();
            }
        }
    }
    assert_eq!(last, 5_999, "one that reads misses nothing");
    let mut missed = false;
    loop {
        let told = slow.next().unwrap();
        missed |= told.name == "resync";
        if told.data["subject"] == "5999" || missed {
            break;
        }
    }
    assert!(missed, "one that does not read is told");
    publish(&served, 7);
    assert_eq!(slow.until("tools_changed").data["revision"], 7);
}

#[test]
fn there_are_only_so_many_readers_and_a_place_is_free_again_when_one_goes() {
    let served = Served::new();
    let mut readers: Vec<_> = (0..64).map(|_| served.events()).collect();
    assert_eq!(served.get("/api/events").refused(429).0, "rate_limited");
    readers.pop();
    until("a place is free", || {
        publish(&served, 1);
        let head = served.send("GET", "/api/events", &[], b"");
        let mut first = [0; 12];
        std::io::Read::read_exact(&mut &head, &mut first).unwrap();
        &first == b"HTTP/1.1 200"
    });
}
