//! `user/lapidary.toml`: the host's own settings, and the commented example that a first start leaves there.

use crate::base::error::{Error, Kind, Result};
use crate::base::file;
use crate::base::paths::Paths;
use rhai::Map;
use serde_json::Value;

/// The parsed file.
pub type Config = toml::Table;

/// Most bytes of the file.
const MAX: u64 = 1 << 20;

/// What a first start writes, so that a person sees what there is to set. Every line is a comment: defaults stay defaults.
const EXAMPLE: &str = r#"# Lapidary's own settings. A plugin's settings are in user/webui/plugins/<name>.json.
# Remove the `#` before what you want to change; a restart reads it.

# [server]
# addr = "127.0.0.1:8470"        # another address than loopback needs a token
# token = ""                     # what programs send as `Authorization: Bearer ..`; made on the first start where empty
# hosts = ["workshop.lan"]       # names in `Host` beside loopback and the address itself

# [privacy]
# allow_unflagged_tools = false  # let tools that do not say `is_local` run in private chats

# [config]                       # what scripts read as `config.<key>`: text, numbers, lists; never a secret
# locale = "en"
# timezone = "Europe/Prague"
"#;

/// Reads the file. One that is not there is empty; one that does not parse counts as empty too, for defaults are safe, and
/// comes with what is wrong.
#[must_use]
pub fn read(paths: &Paths) -> (Config, Option<Error>) {
    match file::read_text_capped(&paths.lapidary_toml(), MAX) {
        Ok(text) => match text.parse::<Config>() {
            Ok(config) => (config, None),
            Err(e) => {
                let line = e.span().map_or(0, |span| 1 + text[..span.start].matches('\n').count());
                let error = Error::invalid(format!("user/lapidary.toml:{line}: {}", e.message()))
                    .hint("the defaults are in force until it is mended");
                (Config::new(), Some(error))
            }
        },
        Err(e) if e.kind() == Kind::NotFound => (Config::new(), None),
        Err(e) => (Config::new(), Some(e)),
    }
}

/// Leaves the commented example where there is no file yet; tells whether it did.
///
/// # Errors
/// What writing says.
pub fn write_example(paths: &Paths) -> Result<bool> {
    let path = paths.lapidary_toml();
    if path.exists() {
        return Ok(false);
    }
    file::write_atomic(&path, EXAMPLE.as_bytes()).map(|()| true)
}

/// A boolean under `[table] key`, or `false`.
#[must_use]
pub fn flag(config: &Config, table: &str, key: &str) -> bool {
    config.get(table).and_then(|t| t.get(key)).and_then(toml::Value::as_bool).unwrap_or(false)
}

/// What every script reads as `config`: never a secret, a path or another plugin's setting. `own` comes from the embedder.
#[must_use]
pub fn for_scripts(config: &Config, paths: &Paths, own: Map) -> Map {
    let mut map = Map::new();
    let root_name = paths.root().file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    map.insert("version".into(), env!("CARGO_PKG_VERSION").into());
    map.insert("root_name".into(), root_name.into());
    map.insert("locale".into(), "en".into());
    map.insert("timezone".into(), crate::service::time::local_zone().into());
    if let Some(keys) = config.get("config").and_then(toml::Value::as_table) {
        for (key, value) in keys {
            let json = serde_json::to_value(value).unwrap_or(Value::Null);
            if let Ok(value) = crate::script::value::from_json(&json) {
                map.insert(key.as_str().into(), value);
            }
        }
    }
    map.extend(own);
    map
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_example_parses_and_changes_nothing() {
        assert!(EXAMPLE.parse::<Config>().unwrap().is_empty());
        let bare: String = EXAMPLE
            .lines()
            .filter_map(|l| l.strip_prefix("# "))
            .filter(|l| l.starts_with('[') || l.contains(" = "))
            .map(|l| format!("{l}\n"))
            .collect();
        let config = bare.parse::<Config>().unwrap();
        assert_eq!(config.keys().cloned().collect::<Vec<_>>(), ["config", "privacy", "server"]);
    }

    #[test]
    fn a_file_that_does_not_parse_names_its_line_and_counts_as_empty() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        paths.ensure().unwrap();
        std::fs::write(paths.lapidary_toml(), "[server]\naddr = \n").unwrap();
        let (config, error) = read(&paths);
        assert!(config.is_empty());
        assert!(error.unwrap().message().starts_with("user/lapidary.toml:2:"));
        assert!(!write_example(&paths).unwrap());
    }
}
