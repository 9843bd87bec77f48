//! Programs as they are run: what they are told, what is taken of them, and that nothing of them stays.

#![allow(clippy::unwrap_used)]

use super::*;

fn order(folder: &Path, program: &str, arguments: &[&str]) -> Order {
    Order {
        program: program.to_owned(),
        arguments: arguments.iter().map(|a| (*a).to_owned()).collect(),
        stdin: Vec::new(),
        variables: Vec::new(),
        network: Vec::new(),
        folder: folder.join("files"),
        root: folder.to_path_buf(),
        timeout: None,
        max_bytes: DEFAULT_MAX_BYTES,
    }
}

fn sh(folder: &Path, script: &str) -> Order {
    order(folder, "sh", &["-c", script])
}

fn now(order: Order) -> Result<Done> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(run(order))
}

fn done(code: i64, stdout: &str, stderr: &str) -> Done {
    Done { code, stdout: stdout.into(), stderr: stderr.into() }
}

/// Whether a process is at work. One that has ended may wait for somebody to look at it.
fn lives(id: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

fn ends(id: &str) {
    let start = std::time::Instant::now();
    while lives(id) {
        assert!(start.elapsed() < Duration::from_secs(20), "{id} still runs");
        std::thread::yield_now();
    }
}

#[test]
fn a_program_gets_its_arguments_as_they_are_and_its_ends_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    let rows = [
        (
            order(d, "printf", &["%s|", "a b", "$HOME", "*", "; ls", "", "\u{e9}"]),
            done(0, "a b|$HOME|*|; ls||\u{e9}|", ""),
        ),
        (sh(d, "echo out; echo err >&2; exit 3"), done(3, "out\n", "err\n")),
        (sh(d, "kill -9 $$"), done(-9, "", "")),
        (sh(d, "cat"), done(0, "", "")),
        (
            Order { stdin: b"in\xff".to_vec(), ..sh(d, "cat") },
            Done { code: 0, stdout: b"in\xff".to_vec(), stderr: Vec::new() },
        ),
        (Order { stdin: vec![b'x'; 1 << 20], ..sh(d, "true") }, done(0, "", "")),
        (
            order(d, "/bin/sh", &["-c", "pwd"]),
            done(0, &format!("{}\n", d.canonicalize().unwrap().join("files").display()), ""),
        ),
    ];
    for (order, expected) in rows {
        let what = order.arguments.join(" ");
        assert_eq!(now(order).unwrap(), expected, "{what}");
    }
}

#[test]
fn what_cannot_be_run_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let d = dir.path();
    std::fs::write(d.join("plain"), "x").unwrap();
    let plain = d.join("plain").display().to_string();
    let big = "x".repeat(MAX_ARGUMENT_BYTES + 1);
    let variable = |name: &str| Order { variables: vec![(name.to_owned(), "x".to_owned())], ..sh(d, "true") };
    let rows = [
        (order(d, "no-such-program-here", &[]), Kind::NotFound),
        (order(d, "/no/such/program", &[]), Kind::NotFound),
        (order(d, &plain, &[]), Kind::PermissionDenied),
        (order(d, "", &[]), Kind::InvalidArguments),
        (order(d, "./plain", &[]), Kind::InvalidArguments),
        (order(d, "../plain", &[]), Kind::InvalidArguments),
        (order(d, "ls -l", &[]), Kind::InvalidArguments),
        (order(d, "a\0b", &[]), Kind::InvalidArguments),
        (order(d, "sh", &["a\0b"]), Kind::InvalidArguments),
        (order(d, "sh", &[&big]), Kind::TooLarge),
        (order(d, "sh", &["x"; MAX_ARGUMENTS + 1]), Kind::TooLarge),
        (variable("PATH"), Kind::InvalidArguments),
        (variable("https_proxy"), Kind::InvalidArguments),
        (variable("LAPIDARY_ROOT"), Kind::InvalidArguments),
        (variable(""), Kind::InvalidArguments),
        (variable("A=B"), Kind::InvalidArguments),
    ];
    for (order, kind) in rows {
        let what = format!("{} {:?}", order.program, order.variables);
        assert_eq!(now(order).unwrap_err().kind(), kind, "{what}");
    }
}

#[test]
fn the_environment_is_clean() {
    let dir = tempfile::tempdir().unwrap();
    let order = Order { variables: vec![("OWN".to_owned(), "a b".to_owned())], ..order(dir.path(), "env", &[]) };
    let told = String::from_utf8(now(order).unwrap().stdout).unwrap();
    let names: Vec<&str> = told.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for name in &names {
        assert!(KEPT.contains(name) || ["PATH", "LANG", "LAPIDARY_ROOT", "OWN"].contains(name), "{name}");
    }
    // Cargo has set this for the test itself.
    assert!(paths::environment("CARGO_MANIFEST_DIR").is_some() && !names.contains(&"CARGO_MANIFEST_DIR"));
    assert!(told.contains(&format!("LAPIDARY_ROOT={}\n", dir.path().display())) && told.contains("OWN=a b\n"));
    let path = told.lines().find_map(|line| line.strip_prefix("PATH=")).unwrap();
    assert!(std::env::split_paths(path).all(|folder| folder.is_absolute()));
}

#[test]
fn more_output_than_was_asked_for_ends_the_program() {
    let dir = tempfile::tempdir().unwrap();
    for script in ["yes", "yes >&2", "yes & yes"] {
        let e = now(Order { max_bytes: 100_000, ..sh(dir.path(), script) }).unwrap_err();
        assert_eq!(e.kind(), Kind::TooLarge, "{script}");
    }
    let exact = now(Order { max_bytes: 5, ..order(dir.path(), "printf", &["12345"]) }).unwrap();
    assert_eq!(exact.stdout, b"12345");
}

#[cfg(target_os = "linux")]
#[test]
fn a_program_that_takes_too_long_ends_with_everything_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let id = dir.path().join("files/id");
    let script = "sleep 1000 & echo $! > id; sh -c 'sleep 1000 & echo $! >> id; wait' & wait";
    let e = now(Order { timeout: Some(Duration::from_millis(500)), ..sh(dir.path(), script) }).unwrap_err();
    assert_eq!(e.kind(), Kind::Timeout);
    let ids = std::fs::read_to_string(&id).unwrap();
    assert_eq!(ids.lines().count(), 2);
    ids.lines().for_each(ends);
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_program_leaves_running_ends_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let told = now(sh(dir.path(), "sleep 1000 & echo $!")).unwrap();
    ends(String::from_utf8(told.stdout).unwrap().trim());
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_a_process_holds_which_left_the_group_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let told = now(sh(
        dir.path(),
        "setsid sh -c 'echo $$; exec sleep 1000' & while [ ! -s x ]; do sleep 0.05; ls x 2>/dev/null; echo > x; done",
    ))
    .unwrap();
    let id = String::from_utf8(told.stdout).unwrap();
    if let Some(id) = id.lines().find(|line| line.parse::<u32>().is_ok()) {
        // It is nobody's any more; this test started it.
        let _ = Command::new("kill").arg(id).status();
        ends(id);
    }
}
