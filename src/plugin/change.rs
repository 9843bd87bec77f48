//! What a changed path means: which plugin, module or file must be looked at again. Pure: paths in, words out.

use super::discover::is_litter;
use crate::base::paths::{Paths, valid_plugin_name};
use std::path::{Component, Path, PathBuf};

/// What must be looked at again. The thing may be new, changed or gone.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Change {
    /// A folder of plugins came, went, or was named as a whole: discover again.
    Rescan,
    /// The plugin of this name, wherever it lies: files in its folder, or its one file.
    Plugin(String),
    /// The module behind `import "std/<module>"`.
    Std(String),
    /// Stored settings of this plugin.
    Settings(String),
    /// Which plugins are on and off.
    Switches,
    /// What the owner granted.
    Grants,
    /// Saved toolsets.
    Toolsets,
}

/// What `changed` means; nothing for what no plugin is built from: litter, state, databases, tests, pages, notes.
///
/// All paths must be spelled from the same root; nothing is read. `extra` is as given to
/// [`discover`](super::discover::discover). In an extra place it can be two plugins: without reading, a folder of plugins and
/// a plugin's own folder look alike.
#[must_use]
pub fn affected(paths: &Paths, extra: &[PathBuf], changed: &Path) -> Vec<Change> {
    // The innermost place wins: an extra folder may lie anywhere, also under the root.
    let extra = extra.iter().filter(|place| changed.starts_with(place)).max_by_key(|place| place.components().count());
    let base = extra.map_or(paths.root(), PathBuf::as_path);
    let Some(inside) = changed.strip_prefix(base).ok().and_then(names) else { return Vec::new() };
    if inside.iter().any(|name| is_litter(name)) {
        return Vec::new();
    }
    match extra {
        Some(place) => in_extra(place, &inside),
        None => in_root(&inside).into_iter().collect(),
    }
}

fn in_root(inside: &[&str]) -> Option<Change> {
    match inside {
        []
        | ["scripts" | "stdlib" | "user"]
        | ["user", "tools" | "plugins" | "webui"]
        | ["user", "webui", "plugins"] => Some(Change::Rescan),
        ["scripts", name, rest @ ..] => in_folder(name, rest),
        ["stdlib", rest @ ..] => rest.join("/").strip_suffix(".rhai").map(|module| Change::Std(module.to_owned())),
        ["user", "plugins", name, rest @ ..] => in_folder(name, rest),
        ["user", "tools", file] => tool_file(file),
        ["user", "webui", "plugins.json"] => Some(Change::Switches),
        ["user", "webui", "grants.json"] => Some(Change::Grants),
        ["user", "webui", "plugins", file] => file
            .strip_suffix(".json")
            .filter(|name| valid_plugin_name(name).is_ok())
            .map(|name| Change::Settings(name.to_owned())),
        ["user", "toolsets", "toolsets.json"] => Some(Change::Toolsets),
        _ => None,
    }
}

fn in_extra(place: &Path, inside: &[&str]) -> Vec<Change> {
    let own = place.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if let Some(name) = own.strip_suffix(".rhai") {
        return vec![Change::Plugin(name.to_owned())];
    }
    let as_collection = match inside {
        [] => return vec![Change::Rescan],
        [file] if file.contains('.') => tool_file(file),
        [name, rest @ ..] => in_folder(name, rest),
    };
    let as_plugin = in_folder(own, inside);
    let mut changes: Vec<Change> = as_collection.into_iter().chain(as_plugin).collect();
    changes.dedup();
    changes
}

/// A file of a plugin's folder, or the folder itself.
fn in_folder(name: &str, rest: &[&str]) -> Option<Change> {
    if valid_plugin_name(name).is_err() {
        // No plugin, but a look says so to who made it.
        return (rest.is_empty() && !is_prose(name)).then_some(Change::Rescan);
    }
    let counts = match rest {
        [] => true,
        // Read when asked for, and no part of what runs.
        ["tests" | "web" | "docs", ..] => false,
        [file] => !is_prose(file),
        _ => true,
    };
    counts.then(|| Change::Plugin(name.to_owned()))
}

fn is_prose(file: &str) -> bool {
    file.ends_with(".md") || file.starts_with("LICENSE")
}

fn tool_file(file: &str) -> Option<Change> {
    let name = file.strip_suffix(".rhai")?;
    Some(if valid_plugin_name(name).is_ok() { Change::Plugin(name.to_owned()) } else { Change::Rescan })
}

fn names(path: &Path) -> Option<Vec<&str>> {
    path.components()
        .map(|part| match part {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_means_one_thing_or_nothing() {
        let plugin = |name: &str| Some(Change::Plugin(name.into()));
        let std = |name: &str| Some(Change::Std(name.into()));
        let settings = |name: &str| Some(Change::Settings(name.into()));
        let rows = [
            ("user/tools/dice.rhai", plugin("dice")),
            ("user/tools/My-Tool.rhai", plugin("My-Tool")),
            ("user/tools/my tool.rhai", Some(Change::Rescan)),
            ("user/tools/notes.txt", None),
            ("user/tools/.dice.rhai.swp", None),
            ("user/tools/dice.rhai~", None),
            ("user/tools/dice.rhai.bak", None),
            ("user/tools/#dice.rhai#", None),
            ("user/tools/.#dice.rhai", None),
            ("user/tools/4913", None),
            ("user/tools/dice.rhai.tmp~", None),
            ("user/tools/dice.rhai___jb_tmp___", None),
            ("user/tools/.dice.rhai.12-ab-0.tmp", None),
            ("user/tools/tests/dice.rhai", None),
            ("user/tools", Some(Change::Rescan)),
            ("user/plugins", Some(Change::Rescan)),
            ("user/plugins/weather", plugin("weather")),
            ("user/plugins/weather/plugin.json", plugin("weather")),
            ("user/plugins/weather/tools/forecast.rhai", plugin("weather")),
            ("user/plugins/weather/tools", plugin("weather")),
            ("user/plugins/weather/lib/parse.rhai", plugin("weather")),
            ("user/plugins/weather/agent_kind.rhai", plugin("weather")),
            ("user/plugins/weather/cities.csv", plugin("weather")),
            ("user/plugins/weather/data/cities.csv", plugin("weather")),
            ("user/plugins/weather/tests/forecast.rhai", None),
            ("user/plugins/weather/web/page.js", None),
            ("user/plugins/weather/README.md", None),
            ("user/plugins/weather/.git/index", None),
            ("user/plugins/weather/tools/.forecast.rhai.swp", None),
            ("user/plugins/we.ather", Some(Change::Rescan)),
            ("user/plugins/we.ather/plugin.json", None),
            ("user/plugins/.weather.12-ab-0.tmp/plugin.json", None),
            ("scripts", Some(Change::Rescan)),
            ("scripts/clock/tools/clock.rhai", plugin("clock")),
            ("scripts/README.md", None),
            ("stdlib", Some(Change::Rescan)),
            ("stdlib/words.rhai", std("words")),
            ("stdlib/net/retry.rhai", std("net/retry")),
            ("stdlib/README.md", None),
            ("stdlib/words.rhai~", None),
            ("user/webui/plugins.json", Some(Change::Switches)),
            ("user/webui/plugins.json.bad-20261130T093455Z", None),
            ("user/webui/.plugins.json.lock", None),
            ("user/webui/grants.json", Some(Change::Grants)),
            ("user/webui/plugins/dice.json", settings("dice")),
            ("user/webui/plugins/dice.json.bad-20261130T093455Z", None),
            ("user/webui/plugins/.dice.json.lock", None),
            ("user/webui/plugins/a b.json", None),
            ("user/webui/plugins", Some(Change::Rescan)),
            ("user/toolsets/toolsets.json", Some(Change::Toolsets)),
            ("user/plugin_state/dice.json", None),
            ("user/plugin_state/dice_files/a.rhai", None),
            ("user/plugin_state/dice_log.db-wal", None),
            ("user/lapidary.db", None),
            ("user/lapidary.db-shm", None),
            ("user/history/dice/7/dice.rhai", None),
            ("user/history/index.json", None),
            ("user/notes/today.md", None),
            ("user/lapidary.toml", None),
            ("user", Some(Change::Rescan)),
            ("target/debug/build", None),
            ("src/main.rs", None),
            ("", Some(Change::Rescan)),
        ];
        let paths = Paths::at("/r");
        for (path, expected) in rows {
            let changes = affected(&paths, &[], &Path::new("/r").join(path));
            assert_eq!(changes, expected.into_iter().collect::<Vec<_>>(), "{path}");
        }
        assert!(affected(&paths, &[], Path::new("/elsewhere/user/tools/dice.rhai")).is_empty());
        assert!(affected(&paths, &[], Path::new("/r/user/tools/../tools/dice.rhai")).is_empty());
    }

    #[test]
    fn extra_places_are_folders_plugins_or_files_and_may_lie_under_the_root() {
        let extra = [
            PathBuf::from("/e/tools"),
            PathBuf::from("/e/one/weather"),
            PathBuf::from("/e/dice.rhai"),
            PathBuf::from("/r/mine"),
        ];
        // `*` stands for a rescan; a name for that plugin.
        let rows: [(&str, &[&str]); 14] = [
            ("/e/tools", &["*"]),
            ("/e/tools/dice.rhai", &["dice", "tools"]),
            ("/e/tools/dice.rhai~", &[]),
            ("/e/tools/README.md", &[]),
            ("/e/tools/weather", &["weather", "tools"]),
            ("/e/tools/clock/tools/now.rhai", &["clock", "tools"]),
            ("/e/tools/clock/.git/HEAD", &[]),
            ("/e/one/weather", &["*"]),
            ("/e/one/weather/plugin.json", &["weather"]),
            ("/e/one/weather/tools/forecast.rhai", &["tools", "weather"]),
            ("/e/one/weather/data/cities.csv", &["data", "weather"]),
            ("/e/dice.rhai", &["dice"]),
            ("/e/other.rhai", &[]),
            ("/r/mine/dice.rhai", &["dice", "mine"]),
        ];
        let paths = Paths::at("/r");
        for (path, expected) in rows {
            let changes: Vec<String> = affected(&paths, &extra, Path::new(path))
                .into_iter()
                .map(|change| match change {
                    Change::Plugin(name) => name,
                    Change::Rescan => "*".into(),
                    other => format!("{other:?}"),
                })
                .collect();
            assert_eq!(changes, expected, "{path}");
        }
    }
}
