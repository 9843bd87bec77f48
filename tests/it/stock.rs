//! What is shipped is exemplary: every plugin loads without a word of complaint, every tool answers, every example of the
//! shared modules holds.

use crate::world::World;
use lapidary::app::{Shipped, Watching};
use lapidary::script::lint::check_description;
use lapidary::tool::spec::Locality;
use lapidary::tool::toolset::CATEGORIES;
use lapidary::trial;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// Each shipped plugin, and one call of each of its tools with a part of what it answers.
fn calls() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    vec![
        ("calculator", "calculate", json!({"expression": "2^100"}), "1267650600228229401496703205376"),
        ("clock", "clock_now", json!({"zone": "Asia/Tokyo"}), "in Asia/Tokyo (UTC+09:00)"),
        ("clock", "clock_convert", json!({"time": "2026-07-01 14:00", "to": "Asia/Tokyo"}), "23:00 in Asia/Tokyo"),
        ("clock", "clock_difference", json!({"start": "2026-01-01", "end": "2026-01-03 01:00"}), "2 days and 1 hour"),
        ("convert", "convert_units", json!({"quantity": "5 km", "to": "miles", "digits": 3}), "5 km = 3.11 miles"),
        ("dice", "roll_dice", json!({"sides": 20, "count": 2}), "rolled "),
        ("recorder", "recorder_list", json!({}), "there are no takes"),
        ("recorder", "recorder_play", json!({"notes": "C4 E4 G4:2", "title": "Rise"}), "take 1-rise: 3 notes, 2.0 s"),
        ("recorder", "recorder_delete", json!({"name": "1-rise"}), "deleted '1-rise'"),
        ("pad", "pad_list", json!({}), "the pad is empty"),
        ("pad", "pad_write", json!({"name": "Tea", "text": "no sugar"}), "wrote 'tea'"),
        ("pad", "pad_read", json!({"name": "tea"}), "no sugar"),
        ("pad", "pad_delete", json!({"name": "tea"}), "deleted 'tea'"),
    ]
}

/// Tools that want a folder, a key or the network first: their own tests call them.
const ELSEWHERE: [&str; 9] = [
    "album_list",
    "album_open",
    "album_show",
    "fetch_url",
    "find_pictures",
    "view_picture",
    "weather_forecast",
    "weather_now",
    "web_search",
];

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
        assert!(status.quarantined.is_empty(), "{name}: {status:?}");
        assert!(
            !status.tools.is_empty() && !status.description.is_empty() && status.version.is_some(),
            "{name}: {status:?}"
        );
        let home = project("scripts").join(&*name);
        let readme = fs::read_to_string(home.join("README.md")).unwrap_or_default();
        assert!(!readme.is_empty(), "{name} has no README.md");
        // What its owner has to allow first is said there, as it is typed.
        for missing in &status.missing_permissions {
            assert!(readme.contains(&format!("lapidary grant {name} {missing}")), "{name} does not tell of {missing}");
        }
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
fn every_shipped_manifest_fits_the_schema_that_editors_use() {
    let schema = serde_json::from_str(&fs::read_to_string(project("docs/ref/plugin.schema.json")).unwrap()).unwrap();
    let schema = jsonschema::validator_for(&schema).unwrap();
    for name in shipped().host.plugins().names() {
        let path = project("scripts").join(&*name).join("plugin.json");
        let manifest: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let wrong: Vec<String> = schema.iter_errors(&manifest).map(|e| format!("{}: {e}", e.instance_path())).collect();
        assert!(wrong.is_empty(), "{name}: {}", wrong.join("\n"));
        // Editors find the schema from where the manifest lies.
        let link = manifest["$schema"].as_str().unwrap();
        assert!(path.parent().unwrap().join(link).is_file(), "{name}: {link}");
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
    left.retain(|name| !ELSEWHERE.contains(&name.as_str()));
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
            let report = trial::run_text(&format!("{name}:{line}"), &format!("fn test_example() {{\n{block}}}\n"));
            wrong.extend(report.tests.iter().filter(|t| !t.ok).map(|t| format!("{name}:{line}\n{}", t.render())));
            seen += report.tests.len();
        }
        let functions = text.lines().filter(|l| l.starts_with("fn ")).count();
        assert!(examples(&text).len() >= functions, "{name} has functions without an example");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(seen > 20, "{seen}");
}

#[test]
fn every_script_test_passes() {
    let options = trial::Options {
        paths: ["tests/suite", "scripts"].map(project).to_vec(),
        ..trial::Options::new(lapidary::paths::Paths::at(project("")))
    };
    let report = trial::run(&options, &mut |_| {}).unwrap();
    let wrong: Vec<String> =
        report.tests.iter().filter(|t| !t.ok).map(|t| format!("{}\n{}", t.file, t.render())).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for plugin in shipped().host.plugins().names() {
        let tested = report.tests.iter().filter(|t| t.plugin == *plugin);
        assert!(tested.count() > 0, "nothing tests the plugin {plugin}");
    }
}

#[test]
fn a_carried_plugin_reads_the_files_beside_its_script() {
    let w = World::with(|b| b.watching(Watching::Off).shipped(Shipped::All));
    let carried = w.host.services().carried.get().unwrap();
    assert!(carried.file("dice", "README.md").is_some_and(|bytes| !bytes.is_empty()));
    assert!(carried.file("dice", "../clock/README.md").is_none());
}
