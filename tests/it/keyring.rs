//! Credentials in a real Secret Service: a message bus and a GNOME Keyring of the test's own, which know no other folder than
//! the test's. Where these programs are not installed, a test says so and proves nothing.

use crate::servers::Server;
use crate::shell::{Ran, Shell, ran};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use zbus::{ObjectPath, OwnedObjectPath, OwnedVariant, Variant};

const FILE: &str = "config/lapidary/credentials.json";
const VALUE: &str = "s3cret value-xyz";
const NAME: &str = "org.freedesktop.secrets";
const ROOT: &str = "/org/freedesktop/secrets";
const SERVICE: &str = "org.freedesktop.Secret.Service";
/// A plugin that sends the credential `weather` and tells what the server said.
const TOOL: &str = r#"const PERMISSIONS = [#{ EXTERNAL_HTTP: ["localhost"] }, #{ USE_SECRETS: ["weather"] }];
/// Ask. Use it in tests.
fn forecast() {
    let key = credentials::get("weather");
    let answer = net::get("http://localhost:PORT/", #{ headers: #{ "X-Key": key }, timeout: 5 });
    `${key}: ${answer.text}`
}
"#;

/// A program that ends with the test.
struct Service(Child);

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A session with a message bus, in the folder of a workshop.
struct Session {
    shell: Shell,
    address: String,
    services: Vec<Service>,
}

/// Whether the programs are there. Where they have to be, their absence is a failure.
fn has(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = |program: &&&str| std::env::split_paths(&path).any(|folder| folder.join(**program).is_file());
    let missing: Vec<_> = programs.iter().filter(|program| !is_there(program)).collect();
    assert!(
        missing.is_empty() || std::env::var_os("LAPIDARY_TEST_KEYRING").is_none(),
        "these have to be installed: {missing:?}"
    );
    if !missing.is_empty() {
        // Past the harness, which keeps what a test prints to itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {missing:?} not installed, so no real keyring was tried");
    }
    missing.is_empty()
}

impl Session {
    /// With a bus that starts nothing by itself, and nobody on it.
    fn empty() -> Option<Session> {
        if !has(&["dbus-daemon"]) {
            return None;
        }
        let shell = Shell::new();
        let bus = shell.path("bus");
        let config = shell.write(
            "bus.conf",
            format!(
                r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={}</listen>
<policy context="default"><allow send_destination="*"/><allow receive_sender="*"/><allow own="*"/></policy></busconfig>"#,
                bus.display()
            ),
        );
        let mut daemon = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--print-address=1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut address = String::new();
        BufReader::new(daemon.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Some(Session { shell, address: address.trim().to_owned(), services: vec![Service(daemon)] })
    }

    /// With a keyring on it, open.
    fn with_keyring() -> Option<Session> {
        if !has(&["gnome-keyring-daemon"]) {
            return None;
        }
        let mut session = Session::empty()?;
        let runtime = session.shell.path("run");
        std::fs::create_dir(&runtime).unwrap();
        std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut daemon = Command::new("gnome-keyring-daemon")
            .args(["--foreground", "--components=secrets", "--unlock"])
            .env("DBUS_SESSION_BUS_ADDRESS", &session.address)
            .env("HOME", session.shell.dir.path())
            .env("XDG_DATA_HOME", session.shell.path("data"))
            .env("XDG_RUNTIME_DIR", &runtime)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        daemon.stdin.take().unwrap().write_all(b"the password").unwrap();
        session.services.push(Service(daemon));
        crate::world::until("the keyring is open", || session.ask(async |bus| default(bus).await.is_ok()));
        Some(session)
    }

    /// Asks the bus as another program of the session does.
    fn ask<T>(&self, ask: impl AsyncFnOnce(&zbus::Connection) -> T) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let bus = zbus::connection::Builder::address(self.address.as_str()).build().await.unwrap();
            ask(&bus).await
        })
    }

    fn lock(&self) {
        self.ask(async |bus| {
            let collection = default(bus).await.unwrap();
            let all = (vec![ObjectPath::from(&collection)],);
            bus.call_method(Some(NAME), ROOT, Some(SERVICE), "Lock", &all).await.unwrap();
        });
    }

    /// As signing in to the desktop does, without asking anybody.
    fn unlock(&self) {
        self.ask(async |bus| {
            let collection = default(bus).await.unwrap();
            let how = ("plain", Variant::from(""));
            let opened = bus.call_method(Some(NAME), ROOT, Some(SERVICE), "OpenSession", &how).await.unwrap();
            let (_, session): (OwnedVariant, OwnedObjectPath) = opened.body().deserialize().unwrap();
            let password = (ObjectPath::from(&session), &b""[..], &b"the password"[..], "text/plain");
            let body = (ObjectPath::from(&collection), password);
            let interface = "org.gnome.keyring.InternalUnsupportedGuiltRiddenInterface";
            bus.call_method(Some(NAME), ROOT, Some(interface), "UnlockWithMasterPassword", &body).await.unwrap();
        });
    }

    /// How many items of ours the keyring holds.
    fn items(&self) -> usize {
        self.ask(async |bus| {
            let marks = (std::collections::HashMap::from([("application", "lapidary")]),);
            let found = bus.call_method(Some(NAME), ROOT, Some(SERVICE), "SearchItems", &marks).await.unwrap();
            let (open, locked): (Vec<OwnedObjectPath>, Vec<OwnedObjectPath>) = found.body().deserialize().unwrap();
            open.len() + locked.len()
        })
    }

    fn run(&self, words: &[&str], stdin: &[u8]) -> Ran {
        on(&self.shell, &self.address, words, stdin)
    }
}

/// The program in a session with that bus.
fn on(shell: &Shell, address: &str, words: &[&str], stdin: &[u8]) -> Ran {
    let mut command = shell.command(words);
    command.env("DBUS_SESSION_BUS_ADDRESS", address).env_remove("LAPIDARY_CREDENTIALS_STORE");
    ran(command, stdin)
}

async fn default(bus: &zbus::Connection) -> zbus::Result<OwnedObjectPath> {
    let found = bus.call_method(Some(NAME), ROOT, Some(SERVICE), "ReadAlias", &("default",)).await?;
    let path: OwnedObjectPath = found.body().deserialize()?;
    if path.as_str() == "/" { Err(zbus::Error::InvalidReply) } else { Ok(path) }
}

/// Every file below a folder that holds the value.
fn holding(folder: &Path, out: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            holding(&path, out);
        } else if std::fs::read(&path).is_ok_and(|bytes| bytes.windows(VALUE.len()).any(|w| w == VALUE.as_bytes())) {
            out.push(path.display().to_string());
        }
    }
}

/// A server that repeats the key it was sent, as it is and escaped.
fn parrot() -> Server {
    Server::http(|request| {
        let key = request.lines().find_map(|line| line.to_ascii_lowercase().starts_with("x-key").then(|| &line[7..]));
        let body = key.map_or("no key".to_owned(), |key| format!("got {key} {}", key.replace(' ', "%20")));
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
    })
}

#[test]
fn a_real_keyring_keeps_a_value_gives_it_to_a_tool_and_lets_go_of_it() {
    let Some(session) = Session::with_keyring() else { return };
    let server = parrot();
    session.shell.write("user/tools/forecast.rhai", TOOL.replace("PORT", &server.port.to_string()));
    session.run(&["grant", "forecast", "USE_SECRETS=weather", "EXTERNAL_HTTP"], b"");
    let set = ["credentials", "set", "weather", "--host", "localhost"];
    let told = session.run(&set, VALUE.as_bytes()).ends(0);
    assert_eq!(told.out, "stored weather in the keyring; it goes to localhost\n");
    assert_eq!(session.items(), 1);
    session.run(&["credentials", "list"], b"").ends(0).says("keyring");
    session.run(&["doctor"], b"").says("1 in the keyring");
    let called = session.run(&["call", "forecast"], b"").ends(0);
    assert_eq!(called.out.trim(), "Secret: got *** ***");
    assert!(server.log.lock().unwrap()[0].contains(VALUE), "the server was sent the value");
    // Nothing that the host or the keyring wrote holds it.
    let mut found = Vec::new();
    holding(session.shell.dir.path(), &mut found);
    assert_eq!(found, Vec::<String>::new());
    // Another value takes its place; an account is one item; what is deleted is gone everywhere.
    session.run(&set, b"another value").ends(0).says("changed weather in the keyring");
    let account = ["credentials", "set", "email/work", "--field", "user", "--field", "password"];
    session.run(&account, b"ann\nthe long one\n").ends(0).says("keyring");
    assert_eq!(session.items(), 2);
    session.run(&["credentials", "delete", "weather"], b"").ends(0);
    session.run(&["credentials", "move", "--to", "file"], b"").ends(0).says("email/work is in the file");
    assert_eq!(session.items(), 0);
    assert!(session.shell.read(FILE).contains("the long one"));
    session.run(&["credentials", "move", "email/work", "--to", "keyring"], b"").ends(0);
    assert!(session.items() == 1 && !session.shell.read(FILE).contains("the long one"));
}

#[test]
fn a_real_keyring_that_is_locked_ends_a_call_with_what_to_do_and_is_asked_again() {
    let Some(session) = Session::with_keyring() else { return };
    let server = parrot();
    session.shell.write("user/tools/forecast.rhai", TOOL.replace("PORT", &server.port.to_string()));
    session.run(&["grant", "forecast", "USE_SECRETS=weather", "EXTERNAL_HTTP"], b"");
    session.run(&["credentials", "set", "weather", "--host", "localhost"], VALUE.as_bytes()).ends(0).says("keyring");
    session.lock();
    let refused = session.run(&["call", "forecast"], b"").ends(1);
    let refused = refused.complains("the keyring is locked").complains("lapidary credentials unlock");
    assert!(!refused.err.contains(VALUE) && server.log.lock().unwrap().is_empty());
    session.run(&["credentials", "list"], b"").ends(0).says("keyring");
    session.run(&["doctor"], b"").ends(1).says("the keyring is locked");
    // Nobody can be asked here: there is no screen.
    session.run(&["credentials", "unlock"], b"").ends(1);
    let set = session.run(&["credentials", "set", "other", "--host", "localhost"], b"other value").ends(0);
    set.says("stored other in the file").complains("the keyring is locked");
    let mut strict = session.shell.command(&["credentials", "set", "third", "--host", "localhost"]);
    strict.env("DBUS_SESSION_BUS_ADDRESS", &session.address).env("LAPIDARY_CREDENTIALS_STORE", "keyring");
    ran(strict, b"third value").ends(1).complains("the keyring is locked");
    assert!(!session.shell.read(FILE).contains("third value"));
    session.unlock();
    assert_eq!(session.run(&["call", "forecast"], b"").ends(0).out.trim(), "Secret: got *** ***");
    // Deleted while it is locked, it goes as soon as the keyring lets go of it.
    session.lock();
    session.run(&["credentials", "delete", "weather"], b"").ends(0).complains("may still be in it");
    session.unlock();
    session.run(&["credentials", "set", "other", "--keep", "--host", "b.example"], b"").ends(0);
    assert_eq!(session.items(), 0);
}

#[test]
fn a_bus_without_a_keyring_and_no_bus_at_all_mean_the_file() {
    let shell = Shell::new();
    let set = ["credentials", "set", "weather", "--host", "localhost"];
    for address in ["", "unix:path=/nowhere/to/be/found", "no address"] {
        let told = on(&shell, address, &set, VALUE.as_bytes()).ends(0).says("weather in the file");
        assert!(told.err.is_empty(), "{told:?}");
    }
    on(&shell, "", &["credentials", "unlock"], b"").ends(1).complains("no session bus");
    let Some(session) = Session::empty() else { return };
    session.run(&set, VALUE.as_bytes()).ends(0).says("stored weather in the file");
    session.shell.write("user/lapidary.toml", "[credentials]\nstore = \"keyring\"\n");
    session.run(&set, VALUE.as_bytes()).ends(1).complains("no program of this session keeps one");
    session.shell.write("user/lapidary.toml", "[credentials]\nstore = \"keychain\"\n");
    session.run(&set, VALUE.as_bytes()).ends(1).complains("`keychain` is no way to keep credentials");
    session.run(&["doctor"], b"").ends(1).says("`keychain`");
    session.shell.write("user/lapidary.toml", "[credentials\nstore = \"keyring\"\n");
    session.run(&set, VALUE.as_bytes()).ends(1).complains("mend it first");
    session.run(&["credentials", "list"], b"").ends(0).says("file");
    session.run(&["credentials", "delete", "weather"], b"").ends(0);
}

#[test]
fn a_bus_that_never_answers_is_asked_only_for_what_is_in_the_keyring_and_holds_nobody() {
    let shell = Shell::new();
    let path = shell.path("bus");
    let listener = UnixListener::bind(&path).unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            held.push(stream);
        }
    });
    let address = format!("unix:path={}", path.display());
    let entry = r#"{"credentials": {"weather": {"hosts": ["localhost"], "keyring": {"id": "1"}}, "key": {"value": "in the file"}}}"#;
    let file = shell.write(FILE, entry);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let probe = |name: &str| {
        format!(
            "const PERMISSIONS = [#{{ USE_SECRETS: [\"{name}\"] }}];\n/// Try it. Use it in tests.\n/// @local\nfn {name}_probe() {{ `${{credentials::get(\"{name}\")}}` }}\n"
        )
    };
    for name in ["weather", "key"] {
        shell.write(&format!("user/tools/{name}_probe.rhai"), probe(name));
        on(&shell, &address, &["grant", &format!("{name}_probe"), &format!("USE_SECRETS={name}")], b"").ends(0);
    }
    for words in [&["tools"][..], &["credentials", "list"], &["call", "key_probe"], &["info", "weather_probe"]] {
        on(&shell, &address, words, b"").ends(0);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 0, "nobody asked for what is in the keyring");
    let refused = on(&shell, &address, &["call", "weather_probe"], b"").ends(1);
    refused.complains("the keyring does not answer in time").complains("try again");
    assert_eq!(asked.load(Ordering::SeqCst), 1, "what does not answer is left alone for a while");
    let mut stand_in = shell.command(&["call", "weather_probe"]);
    stand_in.env("DBUS_SESSION_BUS_ADDRESS", &address).env_remove("LAPIDARY_CREDENTIALS_STORE");
    stand_in.env("LAPIDARY_CREDENTIAL_WEATHER", VALUE);
    ran(stand_in, b"").ends(0).says("Secret");
    // Set to the file, the keyring is not asked even for what is in it.
    let before = asked.load(Ordering::SeqCst);
    shell.run(&["call", "weather_probe"]).ends(1).complains("set to use the file only");
    let mut off = shell.command(&["call", "weather_probe"]);
    off.env("DBUS_SESSION_BUS_ADDRESS", &address);
    ran(off, b"").ends(1).complains("set to use the file only");
    assert_eq!(asked.load(Ordering::SeqCst), before);
}
