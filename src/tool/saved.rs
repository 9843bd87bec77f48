//! The file of saved toolsets: read, and changed one set at a time under its lock. What a word stands for is `toolset`'s.

use super::toolset::{self, Catalog, Saved};
use crate::base::clock::Clock;
use crate::base::error::{Error, Kind, Result, excerpt, io};
use crate::base::event::Bus;
use crate::base::paths::Paths;
use crate::base::{file, json};
use crate::service::quarantine;
use serde_json::{Map, Value, json};

/// The file may have this many bytes.
const MAX_BYTES: u64 = 4 << 20;
/// A set may have this many tools.
const MAX_TOOLS: usize = 2000;

/// The saved toolsets; none where there is no file.
///
/// # Errors
/// `invalid_arguments` for a file that is no JSON object; what the file system says.
pub fn load(paths: &Paths) -> Result<Saved> {
    match file::read_text_capped(&paths.toolsets_file(), MAX_BYTES) {
        Ok(text) => Ok(Saved::parse(&text)?.0),
        Err(e) if e.kind() == Kind::NotFound => Ok(Saved::default()),
        Err(e) => Err(e),
    }
}

/// Checks the name of a set.
///
/// # Errors
/// `invalid_arguments` for what cannot be one, `conflict` for a word that always means something else.
pub fn valid_name(name: &str, catalog: &Catalog<'_>) -> Result<()> {
    let shown = excerpt(name, 80);
    let length = name.chars().count();
    if name.trim() != name || !(1..=64).contains(&length) || name.contains(',') || name.chars().any(char::is_control) {
        return Err(Error::invalid(format!("`{shown}` is no name for a toolset"))
            .hint("use 1 to 64 characters without a comma, and no space at either end"));
    }
    if name.starts_with('_') {
        return Err(Error::invalid(format!("`{shown}` begins with `_`, which marks a remark in the file")));
    }
    let taken = matches!(name, "all" | "none" | toolset::CUSTOM) || catalog.tools().iter().any(|t| t.module == name);
    if taken {
        return Err(Error::new(Kind::Conflict, format!("`{shown}` is a word with a meaning of its own"))
            .hint("take another name"));
    }
    Ok(())
}

/// The tools that words stand for now, each once: names of tools as they are, also of tools that are in the set `before` and
/// are away, and the tools of modules, sets, categories and plugins.
///
/// # Errors
/// `not_found` for a word that stands for nothing.
pub fn expand(catalog: &Catalog<'_>, saved: &Saved, before: &[String], words: &[String]) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    for word in words {
        if catalog.tool(word).is_some() || before.contains(word) {
            add(word);
            continue;
        }
        let selection = toolset::select(catalog, saved, std::slice::from_ref(word));
        if selection.dangling.is_some() || word == "none" {
            let shown = excerpt(word, 80);
            let known = catalog.tools().iter().flat_map(|t| [t.name, t.category, t.plugin]);
            let close = super::names::did_you_mean(word, known, 3);
            let error = Error::not_found(format!("`{shown}` is no tool, toolset, category, plugin or module"));
            return Err(if close.is_empty() {
                error
            } else {
                error.hint(format!("did you mean {}", close.join(", ")))
            });
        }
        selection.names.iter().for_each(|name| add(name));
    }
    if names.len() > MAX_TOOLS {
        return Err(Error::new(Kind::TooLarge, format!("a toolset has at most {MAX_TOOLS} tools")));
    }
    Ok(names)
}

/// Saves a set under a name, in the place of one that has it. Other sets and remarks of the file stay.
///
/// # Errors
/// What the file system says.
pub fn put(paths: &Paths, clock: &Clock, bus: &Bus, name: &str, tools: &[String]) -> Result<()> {
    change(paths, clock, bus, |map| {
        map.insert(name.to_owned(), json!({ "functions": tools }));
        Ok(())
    })
}

/// Deletes a saved set.
///
/// # Errors
/// `not_found` where none has that name; what the file system says.
pub fn delete(paths: &Paths, clock: &Clock, bus: &Bus, name: &str) -> Result<()> {
    change(paths, clock, bus, |map| match map.shift_remove(name).filter(|_| !name.starts_with('_')) {
        Some(_) => Ok(()),
        None => {
            let shown = excerpt(name, 80);
            Err(Error::not_found(format!("no toolset `{shown}` is saved"))
                .hint("categories, plugins and modules are words that need no saving"))
        }
    })
}

fn change(
    paths: &Paths,
    clock: &Clock,
    bus: &Bus,
    edit: impl FnOnce(&mut Map<String, Value>) -> Result<()>,
) -> Result<()> {
    let path = paths.toolsets_file();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| io(format_args!("cannot make `{}`", folder.display()), &e))?;
    }
    file::update(&path, |old| {
        let mut map = match old.as_deref().map(json::parse_object) {
            None => Map::new(),
            Some(Ok(map)) => map,
            Some(Err(fault)) => {
                quarantine::set_aside(&path, &fault, paths, clock, bus);
                Map::new()
            }
        };
        edit(&mut map)?;
        let mut text = serde_json::to_string_pretty(&map).map_err(|e| Error::internal(format!("toolsets: {e}")))?;
        text.push('\n');
        Ok(Some(text.into_bytes()))
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::toolset::Entry;
    use super::*;

    fn catalog() -> Catalog<'static> {
        let entry = |name, plugin, category| Entry {
            name,
            module: "plugin_x",
            plugin,
            category,
            hidden: false,
            writes: false,
            gated_off: false,
        };
        Catalog::new([entry("a", "one", "web"), entry("b", "one", "files"), entry("c", "two", "web")])
    }

    #[test]
    fn words_become_the_tools_that_they_stand_for_each_once() {
        let saved = Saved::parse(r#"{ "mine": ["b", "gone"] }"#).unwrap().0;
        let before = vec!["away".to_owned()];
        let rows: [(&[&str], Option<&[&str]>); 8] = [
            (&["a"], Some(&["a"])),
            (&["c", "a", "c"], Some(&["c", "a"])),
            (&["web", "b"], Some(&["a", "c", "b"])),
            (&["one", "web"], Some(&["a", "b", "c"])),
            (&["mine"], Some(&["b", "gone"])),
            (&["away"], Some(&["away"])),
            (&[], Some(&[])),
            (&["nothing"], None),
        ];
        for (words, expected) in rows {
            let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
            let made = expand(&catalog(), &saved, &before, &words).ok();
            assert_eq!(made, expected.map(|e| e.iter().map(|w| (*w).to_owned()).collect()), "{words:?}");
        }
    }

    #[test]
    fn a_set_is_named_by_what_means_nothing_else() {
        for good in ["work", "web", "for the garden", "ž"] {
            assert!(valid_name(good, &catalog()).is_ok(), "{good}");
        }
        let long = "x".repeat(65);
        for (bad, kind) in [
            ("", Kind::InvalidArguments),
            (" a", Kind::InvalidArguments),
            ("a,b", Kind::InvalidArguments),
            ("a\nb", Kind::InvalidArguments),
            ("_note", Kind::InvalidArguments),
            (long.as_str(), Kind::InvalidArguments),
            ("all", Kind::Conflict),
            ("none", Kind::Conflict),
            ("custom", Kind::Conflict),
            ("plugin_x", Kind::Conflict),
        ] {
            assert_eq!(valid_name(bad, &catalog()).unwrap_err().kind(), kind, "{bad}");
        }
    }

    #[test]
    fn one_set_changes_and_the_rest_of_the_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (paths, clock, bus) = (Paths::at(dir.path()), Clock::manual(0), Bus::default());
        put(&paths, &clock, &bus, "mine", &["a".to_owned()]).unwrap();
        let file = paths.toolsets_file();
        std::fs::write(&file, r#"{ "_note": "x", "other": ["b"], "mine": { "functions": ["a"] } }"#).unwrap();
        put(&paths, &clock, &bus, "mine", &["c".to_owned()]).unwrap();
        delete(&paths, &clock, &bus, "other").unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            json!({ "_note": "x", "mine": { "functions": ["c"] } })
        );
        for gone in ["other", "_note"] {
            assert_eq!(delete(&paths, &clock, &bus, gone).unwrap_err().kind(), Kind::NotFound, "{gone}");
        }
        assert!(std::fs::read_to_string(&file).unwrap().contains("_note"));
    }
}
