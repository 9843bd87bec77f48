//! What is shipped is exemplary: every plugin loads without a word of complaint, every tool answers, every example of the
//! shared modules holds.

use crate::world::World;
use lapidary::app::{Shipped, Watching};
use lapidary::script::lint::check_description;
use lapidary::tool::spec::Locality;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// The words that tools are sorted by.
const CATEGORIES: [&str; 12] = [
    "web", "memory", "knowledge", "people", "goals", "files", "system", "devices", "comms", "media", "meta_danger", "agents",
];

/// Each shipped plugin, and one call of each of its tools with a part of what it answers.
fn calls() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    vec![
        ("dice", "roll_dice", json!({"sides": 20, "count": 2}), "rolled "),
    ]
}

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn shipped() -> World {
    World::with(|b| b.watching(Watching::Off).shipped(Shipped::All))
}

#[test]
fn every_shipped_plugin_loads_without_a_word_of_complaint() {
    let w = shipped();
    let names = w.host.plugins().names();
    assert!(!names.is_empty());
    for name in names {
        let status = w.host.plugins().status(&name).unwrap();
        assert_eq!(status.status, "live 1", "{name}");
        let complaints: Vec<String> = status.diagnostics.iter().chain(&status.warnings).map(|d| d.render()).collect();
        assert!(complaints.is_empty(), "{name}:\n{}", complaints.join("\n"));
        assert!(status.quarantined.is_empty() && status.missing_permissions.is_empty(), "{name}: {status:?}");
        assert!(!status.tools.is_empty() && !status.description.is_empty() && status.version.is_some(), "{name}: {status:?}");
        let home = project("scripts").join(&*name);
        assert!(home.join("README.md").is_file(), "{name} has no README.md");
        assert!(fs::read_dir(home.join("tests")).is_ok_and(|files| files.count() > 0), "{name} has no tests");
    }
    assert!(w.host.plugins().notices().is_empty(), "{:?}", w.host.plugins().notices());
}

#[test]
fn every_shipped_tool_says_what_it_does_when_to_use_it_and_where_it_belongs() {
    let w = shipped();
    for tool in w.host.dispatcher().snapshot().iter() {
        let spec = &tool.spec;
        assert_eq!(check_description(&spec.name, &spec.description), None);
        assert_ne!(spec.is_local, Locality::Unset, "{} says nothing of is_local", spec.name);
        assert!(CATEGORIES.contains(&&*tool.category), "{} is of the category `{}`", spec.name, tool.category);
        let described = spec.parameters["properties"].as_object().unwrap();
        for (name, schema) in described {
            assert!(schema["description"].as_str().is_some_and(|d| !d.is_empty()), "{}: {name}", spec.name);
        }
        assert_eq!(spec.parameters["additionalProperties"], json!(false), "{} takes unknown arguments", spec.name);
    }
}

#[test]
fn every_shipped_tool_answers() {
    let w = shipped();
    let mut left: Vec<String> = w.host.dispatcher().snapshot().iter().map(|t| t.spec.name.clone()).collect();
    for (plugin, tool, arguments, part) in calls() {
        assert!(w.host.plugins().status(plugin).unwrap().tools.iter().any(|t| t == tool), "{plugin} has no {tool}");
        let text = w.text(tool, arguments);
        assert!(text.contains(part), "{tool}: {text}");
        left.retain(|name| name != tool);
    }
    assert!(left.is_empty(), "never called: {left:?}");
}

/// The `rhai` blocks of a module's comments, with the line each begins at.
fn examples(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in text.lines().enumerate() {
        let Some(line) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else { continue };
        let line = line.strip_prefix(' ').unwrap_or(line);
        match &mut open {
            None if line == "```rhai" => open = Some((number + 2, String::new())),
            None => {}
            Some(_) if line == "```" => out.extend(open.take()),
            Some((_, block)) => {
                block.push_str(line);
                block.push('\n');
            }
        }
    }
    assert!(open.is_none(), "a block is not closed");
    out
}

#[test]
fn every_example_of_the_shared_modules_holds() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for entry in fs::read_dir(project("stdlib")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "rhai") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).unwrap();
        for (line, block) in examples(&text) {
            let w = World::new();
            w.tool("probe", &format!("//! Probe.\n/// Runs an example. Use it in tests.\n/// @local\nfn probe() {{\n{block}\n\"fine\"\n}}\n\
                private fn assert_eq(a, b) {{ if json::encode(a) != json::encode(b) {{ throw `${{json::encode(a)}} is not ${{json::encode(b)}}`; }} }}\n"));
            let status = w.host.plugins().status("probe").unwrap();
            wrong.extend(status.diagnostics.iter().map(|d| format!("{name}:{line}\n{}", d.render())));
            let outcome = w.call("probe", json!({}));
            if !outcome.ok {
                wrong.push(format!("{name}:{line}: {}", outcome.text));
            }
            seen += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 20, "{seen}");
}
