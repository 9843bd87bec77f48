//! The shipped plugins and shared modules that the program carries inside itself. Knows bytes by name, nothing of their meaning.

use include_dir::{Dir, include_dir};

/// Plugins and `std/` modules that need no disk. An embedder may bring its own.
pub trait Stock: Send + Sync {
    /// Names of the plugins, sorted.
    fn plugins(&self) -> Vec<&'static str>;
    /// One file of a plugin; `path` is relative to the plugin's folder, with `/`.
    fn read(&self, plugin: &str, path: &str) -> Option<&'static [u8]>;
    /// Paths of all files of a plugin, sorted; empty for a plugin that is not there.
    fn list(&self, plugin: &str) -> Vec<String>;
    /// The source of `std/<module>`.
    fn std(&self, module: &str) -> Option<&'static [u8]>;
    /// Names of the modules, sorted: what stands after `std/` in an import.
    fn std_modules(&self) -> Vec<String>;
}

static SCRIPTS: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/scripts");
static STDLIB: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/stdlib");

/// What this program was built with: `scripts/` and `stdlib/` of the project.
#[derive(Debug, Clone, Copy, Default)]
pub struct Embedded;

impl Stock for Embedded {
    fn plugins(&self) -> Vec<&'static str> {
        let with_manifest = SCRIPTS.dirs().filter(|dir| SCRIPTS.get_file(dir.path().join("plugin.json")).is_some());
        let mut names: Vec<&'static str> = with_manifest.filter_map(|dir| dir.path().to_str()).collect();
        names.sort_unstable();
        names
    }

    fn read(&self, plugin: &str, path: &str) -> Option<&'static [u8]> {
        let file = folder_of(plugin)?.get_file(plain(&format!("{plugin}/{path}"))?)?;
        Some(file.contents())
    }

    fn list(&self, plugin: &str) -> Vec<String> {
        let mut paths = Vec::new();
        if let Some(dir) = folder_of(plugin) {
            collect(dir, &format!("{plugin}/"), &mut paths);
        }
        paths.sort_unstable();
        paths
    }

    fn std(&self, module: &str) -> Option<&'static [u8]> {
        Some(STDLIB.get_file(plain(&format!("{module}.rhai"))?)?.contents())
    }

    fn std_modules(&self) -> Vec<String> {
        let mut paths = Vec::new();
        collect(&STDLIB, "", &mut paths);
        let mut names: Vec<String> =
            paths.iter().filter_map(|path| path.strip_suffix(".rhai")).map(str::to_owned).collect();
        names.sort_unstable();
        names
    }
}

fn folder_of(plugin: &str) -> Option<&'static Dir<'static>> {
    SCRIPTS.dirs().find(|dir| dir.path().as_os_str() == plugin)
}

/// The path itself if it is names with `/` between them.
fn plain(path: &str) -> Option<&str> {
    (!path.split('/').any(|name| matches!(name, "" | "." | ".."))).then_some(path)
}

fn collect(dir: &Dir<'static>, prefix: &str, out: &mut Vec<String>) {
    for file in dir.files() {
        let path = file.path().to_string_lossy().replace('\\', "/");
        out.push(path.strip_prefix(prefix).unwrap_or(&path).to_owned());
    }
    for inner in dir.dirs() {
        collect(inner, prefix, out);
    }
}

/// The standard library without the shipped plugins.
#[derive(Debug, Clone, Copy, Default)]
pub struct LibraryOnly;

impl Stock for LibraryOnly {
    fn plugins(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn read(&self, _: &str, _: &str) -> Option<&'static [u8]> {
        None
    }

    fn list(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn std(&self, module: &str) -> Option<&'static [u8]> {
        Embedded.std(module)
    }

    fn std_modules(&self) -> Vec<String> {
        Embedded.std_modules()
    }
}

/// Nothing at all: for an embedder that brings every script itself.
#[derive(Debug, Clone, Copy, Default)]
pub struct Empty;

impl Stock for Empty {
    fn plugins(&self) -> Vec<&'static str> {
        Vec::new()
    }

    fn read(&self, _: &str, _: &str) -> Option<&'static [u8]> {
        None
    }

    fn list(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn std(&self, _: &str) -> Option<&'static [u8]> {
        None
    }

    fn std_modules(&self) -> Vec<String> {
        Vec::new()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_listed_can_be_read() {
        let stock = Embedded;
        for plugin in stock.plugins() {
            let files = stock.list(plugin);
            assert!(files.contains(&"plugin.json".to_owned()), "{plugin}");
            for file in files {
                assert!(stock.read(plugin, &file).is_some(), "{plugin}/{file}");
            }
        }
        for module in stock.std_modules() {
            assert!(stock.std(&module).is_some(), "{module}");
        }
    }

    #[test]
    fn no_path_leads_out_of_its_plugin() {
        let stock = Embedded;
        let first = stock.plugins().first().copied().unwrap_or("dice");
        for path in ["../README.md", "/plugin.json", "", ".", "..", "../../Cargo.toml", "a/../plugin.json"] {
            assert!(stock.read(first, path).is_none(), "{path}");
        }
        for plugin in ["", "..", ".", "/", "../scripts", "nothing"] {
            assert!(stock.read(plugin, "plugin.json").is_none(), "{plugin}");
            assert!(stock.list(plugin).is_empty(), "{plugin}");
        }
        for module in ["", "..", "../Cargo", "/words", "README"] {
            assert!(stock.std(module).is_none(), "{module}");
        }
    }
}
