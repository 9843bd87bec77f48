//! Commands that last: `dev`, `serve` and `mcp`, from their first line to a signal.
#![cfg(unix)]

use crate::shell::Shell;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;

const DICE: &str = "/// Roll dice. Use it whenever someone asks for a roll.\n///\n/// @param {integer 2..1000} sides=6 - Sides on each die.\n/// @local\n/// @example {\"sides\": 20} => /20/\nfn roll_dice(sides) { `v1 ${sides}` }\n";

#[test]
fn dev_tells_each_save_shows_faults_and_runs_the_call_again() {
    let sh = Shell::new();
    sh.write("user/tools/dice.rhai", DICE);
    sh.write("user/tools/bad.rhai", "fn bad(");
    let dev = sh.start(&["dev", "--replay", "roll_dice"]);
    let greeting = dev.until("v1 20");
    assert!(
        greeting.iter().any(|l| l.contains("bad: failed"))
            && greeting.iter().any(|l| l.contains("user/tools/bad.rhai:1:")),
        "{greeting:#?}"
    );

    sh.write("user/tools/dice.rhai", DICE.replace("v1", "v2").replace("Roll dice.", "Throw dice."));
    let seen = dev.until("v2 20");
    for part in ["dice: live 2", "-Roll dice.", "+Throw dice.", "roll_dice ok in"] {
        assert!(seen.iter().any(|l| l.contains(part)), "{part}: {seen:#?}");
    }

    sh.write("user/tools/dice.rhai", "fn roll_dice(sides { oops");
    let seen = dev.until("generation 2 goes on answering");
    for part in ["live 2, disk 3 failed", "user/tools/dice.rhai:1:", "^"] {
        assert!(seen.iter().any(|l| l.contains(part)), "{part}: {seen:#?}");
    }
    // The very text that was live before is no new generation, and still good news.
    sh.write("user/tools/dice.rhai", DICE.replace("v1", "v2").replace("Roll dice.", "Throw dice."));
    dev.until("dice: live 2, 1 tool");
    dev.until("v2 20");

    sh.write("user/tools/second.rhai", "/// Be second. Use it after the first.\n/// @local\nfn second() { 2 }\n");
    dev.until("second: live 1, 1 tool");
    std::fs::remove_file(sh.path("user/tools/second.rhai")).unwrap();
    dev.until("second: gone");
    sh.run(&["reload", "dice"]).ends(0).complains("The host that runs on this root");
    sh.run(&["doctor"]).ends(1).says("a host runs on this root");
    sh.run(&["disable", "dice"]).ends(0);
    dev.until("dice: off");
    assert_eq!(dev.signal("INT"), 0);
    // A host that stays keeps what went live, and is seen only while it stays.
    sh.run(&["enable", "dice"]).ends(0);
    sh.run(&["reload", "dice"]).ends(0).complains("No host runs on this root");
    sh.run(&["history", "dice"]).ends(0).says("2");
}

#[test]
fn dev_follows_a_script_outside_the_root() {
    let sh = Shell::new();
    let elsewhere = Shell::new();
    let path = elsewhere.write("dice.rhai", DICE);
    let dev = sh.start(&["dev", path.to_str().unwrap()]);
    dev.until("1 plugin, 1 tool");
    elsewhere.write("dice.rhai", DICE.replace("v1", "v2"));
    dev.until("dice: live 2");
    assert_eq!(dev.signal("INT"), 0);
    // A path inside the root names what is there anyway.
    sh.write("user/tools/own.rhai", "/// Be own. Use it at home.\n/// @local\nfn own() { 2 }\n");
    let dev = sh.start(&["dev", "user/tools/own.rhai"]);
    let greeting = dev.until("1 plugin, 1 tool");
    assert!(!greeting.iter().any(|l| l.contains("takes the place")), "{greeting:#?}");
    drop(dev);
    sh.run(&["dev", "nowhere.rhai"]).ends(1).complains("nowhere.rhai");
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn serve_prints_where_it_is_and_ends_when_told() {
    let sh = Shell::new();
    sh.write("user/tools/dice.rhai", DICE);
    let serve = sh.start(&["serve", "--addr", "127.0.0.1:0", "--json"]);
    let line = serve.until("{").pop().unwrap();
    let told: Value = serde_json::from_str(&line).unwrap();
    let address = told["address"].as_str().unwrap();
    assert_eq!(told["mcp"], format!("http://{address}/mcp"));
    assert!(get(address, "/healthz").starts_with("HTTP/1.1 200"), "{}", get(address, "/healthz"));
    assert!(get(address, "/mcp").starts_with("HTTP/1.1 401"));
    sh.run(&["serve", "--addr", address]).ends(3).complains(address);
    sh.run(&["serve", "--addr", "0.0.0.0:0"]).ends(3).complains("LAPIDARY_TOKEN");
    sh.run(&["serve", "--addr", "nowhere"]).ends(3).complains("nowhere");
    assert_eq!(serve.signal("TERM"), 0);

    let plain = sh.start(&["serve", "--addr", "127.0.0.1:0"]);
    plain.until("/mcp");
    // A save that breaks is told where the host runs, with the place in the file, and so is one that mends.
    sh.write("user/tools/dice.rhai", "fn roll( {");
    plain.complains("user/tools/dice.rhai:1");
    sh.write("user/tools/dice.rhai", DICE.replace("Roll", "Throw"));
    plain.complains("mended: dice");
    assert_eq!(plain.signal("INT"), 0);
}

#[test]
fn mcp_speaks_only_its_protocol_on_stdout_and_ends_with_its_input() {
    let sh = Shell::new();
    sh.write("user/tools/dice.rhai", DICE);
    sh.write("user/tools/bad.rhai", "fn bad(");
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params":
        { "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    let done = sh.run_with(&["mcp", "--chat", "kitchen"], format!("{hello}\n{ready}\n{list}\n").as_bytes()).ends(0);
    let lines: Vec<Value> = done.out.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let listed = lines.iter().find(|l| l["id"] == 2).unwrap();
    assert_eq!(listed["result"]["tools"][0]["name"], "roll_dice");
    sh.run_with(&["mcp"], b"").ends(0);
}

#[test]
fn ctrl_c_ends_a_call_with_its_reason() {
    let sh = Shell::new();
    sh.write(
        "user/tools/slow.rhai",
        "/// Wait. Use it when nothing is urgent.\n/// @local\nfn slow() { state::save(\"began\", true); time::sleep(25); \"done\" }\n",
    );
    let call = sh.start(&["call", "slow", "--json"]);
    let began = sh.path("user/plugin_state/slow.json");
    let patience = std::time::Instant::now() + std::time::Duration::from_secs(60);
    while !began.exists() && std::time::Instant::now() < patience {
        std::thread::yield_now();
    }
    call.interrupt();
    let told: Value = serde_json::from_str(&call.until("{").pop().unwrap()).unwrap();
    assert_eq!((&told["ok"], &told["error"]["code"]), (&json!(false), &json!("cancelled")));
    assert_eq!(call.end(), 1);
}
