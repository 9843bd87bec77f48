//! The house rules, held: which room may know which, which crate stays in which room, how long a file may be.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file under `folder`, with its text.
fn sources(folder: &str) -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, out: &mut Vec<(PathBuf, String)>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, out);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                out.push((path, text));
            }
        }
    }
    let mut out = Vec::new();
    walk(&root().join(folder), &mut out);
    out.sort();
    assert!(!out.is_empty() || !root().join(folder).exists(), "no sources under {folder}");
    out
}

/// The room of a file: the first folder under `src`, or the file's own name at the top.
fn room(path: &Path) -> String {
    let inside = path.strip_prefix(root().join("src")).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_string_lossy();
    first.trim_end_matches(".rs").to_owned()
}

/// Unit tests that have files of their own.
fn is_test(path: &Path) -> bool {
    path.components().any(|c| c.as_os_str() == "tests" || c.as_os_str() == "tests.rs")
}

/// Text without comments and string literals' worst offenders, so that documentation may name what code may not.
fn code(text: &str) -> String {
    let before_tests = text.split("#[cfg(test)]").next().unwrap_or(text);
    before_tests.lines().map(|l| l.split("//").next().unwrap_or(l)).collect::<Vec<_>>().join("\n")
}

/// What each room may use of the others. A room that is not a key may use everything (the composition root).
const MAY_USE: &[(&str, &[&str])] = &[
    ("base", &[]),
    ("store", &["base"]),
    ("net", &["base"]),
    ("model", &["base", "net"]),
    ("service", &["base", "store", "net"]),
    ("script", &["base", "store", "net", "model", "service"]),
    ("host", &["base", "service", "script"]),
    ("tool", &["base", "service", "script"]),
    ("plugin", &["base", "service", "script", "tool"]),
    ("chat", &["base", "store", "net", "model", "service", "script", "host", "plugin", "tool"]),
    ("agent", &["base", "store", "net", "model", "service", "script", "host", "plugin", "tool", "chat"]),
    ("room", &["base", "store", "service", "plugin", "tool"]),
    ("trial", &["app", "base", "store", "net", "model", "service", "script", "host", "plugin", "tool"]),
    (
        "http",
        &[
            "app", "docs", "base", "store", "net", "model", "service", "script", "host", "plugin", "tool", "chat",
            "agent", "room",
        ],
    ),
    (
        "mcp",
        &[
            "app", "docs", "base", "store", "net", "model", "service", "script", "host", "plugin", "tool", "chat",
            "agent", "room",
        ],
    ),
    (
        "cli",
        &[
            "app", "docs", "base", "store", "net", "model", "service", "script", "host", "plugin", "tool", "chat",
            "agent", "room", "doors", "trial",
        ],
    ),
];

/// Crates that stay in their rooms.
const FENCES: &[(&str, &[&str])] = &[
    ("rhai", &["script", "host", "plugin", "tool", "app", "config", "docs", "trial"]),
    ("rusqlite", &["store"]),
    ("reqwest", &["net"]),
    ("cookie_store", &["net"]),
    ("axum", &["http"]),
    ("tokio_rustls", &["http"]),
    ("argon2", &["http"]),
    ("ipnet", &["http"]),
    ("open", &["cli"]),
    ("rmcp", &["mcp"]),
    ("clap", &["cli"]),
    ("rustix", &["cli", "service"]),
    ("zbus", &["service"]),
    ("keyring_core", &["service"]),
    ("apple_native_keyring_store", &["service"]),
    ("windows_native_keyring_store", &["service"]),
    ("toml_edit", &["model"]),
    ("notify", &["plugin"]),
    ("zip", &["plugin"]),
    ("jsonschema", &["tool", "plugin"]),
    ("fend_core", &["service"]),
    ("scraper", &["service"]),
    ("htmd", &["service"]),
    ("pulldown_cmark", &["service"]),
    ("flate2", &["service"]),
    ("weezl", &["service"]),
    ("aes", &["service"]),
    ("image_rs", &["service"]),
    ("zune_jpeg", &["service"]),
    ("png", &["service"]),
    ("image_webp", &["service"]),
    ("libwebp_sys", &["service"]),
    ("fast_image_resize", &["service"]),
    ("jpeg_encoder", &["service"]),
    ("moxcms", &["service"]),
];

#[test]
fn a_room_uses_only_the_rooms_below_it() {
    let rules: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let rooms: Vec<&str> = rules.keys().copied().collect();
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        let here = room(&path);
        let Some(allowed) = rules.get(here.as_str()) else { continue };
        let text = code(&text);
        for other in rooms.iter().chain(&["app", "docs"]) {
            if *other != here && !allowed.contains(other) && text.contains(&format!("crate::{other}::")) {
                wrong.push(format!("{} uses {other}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "layers are crossed upward:\n{}", wrong.join("\n"));
}

#[test]
fn the_page_on_architecture_shows_the_rooms_as_they_are_held() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let exists =
        |room: &str| root().join("src").join(room).is_dir() || root().join("src").join(format!("{room}.rs")).is_file();
    let quoted =
        |names: &[&str]| names.iter().filter(|n| exists(n)).map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" ");
    let rows: Vec<String> = MAY_USE
        .iter()
        .filter(|(room, _)| exists(room))
        .map(|(room, allowed)| format!("| `{room}` | {} |", quoted(allowed)).replace("|  |", "| |"))
        .collect();
    let missing: Vec<&String> = rows.iter().filter(|row| !page.lines().any(|line| line == row.as_str())).collect();
    assert!(missing.is_empty(), "docs/architecture.md lacks these rows:\n{missing:#?}");
}

#[test]
fn every_test_that_a_page_names_is_there() {
    let functions: String = ["src", "tests"].iter().flat_map(|folder| sources(folder)).map(|(_, text)| text).collect();
    let mut wrong = Vec::new();
    for page in fs::read_dir(root().join("docs")).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file()) {
        let text = fs::read_to_string(&page).unwrap();
        // A name in back-ticks with five words or more is a test's.
        let names = text.split('`').skip(1).step_by(2).filter(|name| {
            name.matches('_').count() >= 4
                && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
        });
        wrong.extend(
            names.filter(|n| !functions.contains(&format!("fn {n}("))).map(|n| format!("{}: {n}", page.display())),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_fenced_crate_stays_in_its_rooms() {
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        let here = room(&path);
        let text = code(&text);
        for (name, rooms) in FENCES {
            let used = text.match_indices(&format!("{name}::")).any(|(at, _)| {
                // `crate::foo::rhai::` or `my_rhai::` is not the crate.
                !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
            });
            if used && !rooms.contains(&here.as_str()) {
                wrong.push(format!("{} uses the crate {name}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "fences are crossed:\n{}", wrong.join("\n"));
}

#[test]
fn every_file_says_what_it_owns_and_stays_short() {
    let mut wrong = Vec::new();
    for folder in ["src", "tests", "benches"] {
        for (path, text) in sources(folder) {
            let head = text.lines().take_while(|l| l.starts_with("//!")).count();
            if !(1..=4).contains(&head) && path.file_name().is_none_or(|n| n != "lib.rs") {
                wrong.push(format!("{}: {head} lines of //! at the top; 1 to 4 are asked for", path.display()));
            }
            let lines = text.lines().count();
            if lines > 800 {
                wrong.push(format!("{}: {lines} lines; at most 800", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_a_request_under_way_reads_the_value_of_a_credential() {
    let mut wrong = Vec::new();
    for (path, text) in sources("src").into_iter().filter(|(p, _)| !is_test(p)) {
        let inside = path.strip_prefix(root().join("src")).unwrap().to_string_lossy().into_owned();
        let allowed = inside == "service/secret.rs" || inside == "service/fetch.rs" || inside.starts_with("host/net");
        if !allowed && code(&text).contains(".expose()") {
            wrong.push(inside);
        }
    }
    assert!(wrong.is_empty(), "these read a secret's value:\n{}", wrong.join("\n"));
}

#[test]
fn only_the_keyrings_know_the_libraries_that_reach_one() {
    let libraries = ["zbus", "keyring_core", "apple_native_keyring_store", "windows_native_keyring_store"];
    let mut wrong = Vec::new();
    for (path, text) in sources("src") {
        let inside = path.strip_prefix(root().join("src")).unwrap().to_string_lossy().into_owned();
        if !inside.starts_with("service/credentials/keyring/") {
            let named = libraries.iter().filter(|library| code(&text).contains(&format!("{library}::")));
            wrong.extend(named.map(|library| format!("{inside} uses {library}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_gate_decides_and_only_the_dispatcher_runs() {
    let mut wrong = Vec::new();
    for (path, text) in sources("src").into_iter().filter(|(p, _)| !is_test(p)) {
        let inside = path.strip_prefix(root().join("src")).unwrap().to_string_lossy().into_owned();
        let text = code(&text);
        if text.contains("gate::decide") && inside != "tool/dispatch.rs" && inside != "tool/gate.rs" {
            wrong.push(format!("{inside} asks the gate itself"));
        }
        let runs = text.contains("program::invoke(") || text.contains(".call_fn_raw(");
        // A test script is no tool and nobody's call: its runner is the only way in.
        let may_run = ["script/program.rs", "tool/dispatch.rs", "plugin/load.rs", "app.rs", "trial/script.rs"];
        if runs && !may_run.contains(&inside.as_str()) {
            wrong.push(format!("{inside} runs script functions"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_registry_host_and_no_foreign_word_is_named() {
    let hosts = [concat!("crates", ".io"), concat!("docs", ".rs/"), concat!("npmjs", ".org"), concat!("pypi", ".org")];
    let mut wrong = Vec::new();
    for folder in ["src", "tests", "docs", "scripts", "stdlib", "user", "benches"] {
        let mut stack = vec![root().join(folder)];
        while let Some(next) = stack.pop() {
            for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
                let path = entry.path();
                if path.is_dir() {
                    stack.push(path);
                } else if let Ok(text) = fs::read_to_string(&path) {
                    wrong.extend(
                        hosts.iter().filter(|h| text.contains(**h)).map(|h| format!("{}: {h}", path.display())),
                    );
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
