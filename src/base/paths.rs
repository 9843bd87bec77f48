//! The root and every place under it. Knows names and folders, never what is in a file.

use super::error::{Error, Result, excerpt, io};
use etcetera::BaseStrategy;
use std::path::{Path, PathBuf};

/// Where everything of one installation lives. Cheap enough to clone; getters build paths and touch no disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    root: PathBuf,
}

impl Paths {
    /// Finds the root: `explicit`, else `$LAPIDARY_ROOT`, else the nearest folder at or above the working directory that
    /// holds `user/` beside `scripts/` or `stdlib/`, else `lapidary/` in the data folder of the operating system.
    ///
    /// # Errors
    /// When there is no working directory to start from, or no home folder to end at.
    pub fn find(explicit: Option<PathBuf>) -> Result<Paths> {
        let from_env = from_environment();
        let here = std::env::current_dir().ok();
        let data = etcetera::choose_base_strategy().ok().map(|base| base.data_dir());
        Paths::choose(explicit, from_env, here.as_deref(), data)
    }

    /// As [`Paths::find`], for what makes no workshop. A folder that somebody named has to be one already: a slip of the
    /// fingers would open an empty workshop, and all that is in the real one would seem to be gone. The place in the data folder is
    /// made on first use.
    ///
    /// # Errors
    /// As [`Paths::find`], and `not_found` for a named folder that is not there or holds nothing of ours.
    pub fn find_existing(explicit: Option<PathBuf>) -> Result<Paths> {
        let by = if explicit.is_some() { Some("--root") } else { from_environment().map(|_| ROOT) };
        let paths = Paths::find(explicit)?;
        match by {
            Some(by) if !paths.is_workshop() => Err(paths.no_workshop(by)),
            _ => Ok(paths),
        }
    }

    /// Whether the root holds anything of ours.
    #[must_use]
    pub fn is_workshop(&self) -> bool {
        [self.user(), self.scripts(), self.stdlib()].iter().any(|folder| folder.is_dir())
    }

    fn no_workshop(&self, by: &str) -> Error {
        let root = self.root.display();
        let what = match std::fs::metadata(&self.root) {
            Err(_) => format!("there is no folder `{root}`"),
            Ok(found) if found.is_dir() => {
                format!("`{root}` is no workshop: it holds neither user/ nor scripts/ nor stdlib/")
            }
            Ok(_) => format!("`{root}` is no folder"),
        };
        Error::not_found(format!("{what}, and {by} names it as the root"))
            .hint(format!("look at what {by} says; to make a workshop there: lapidary new <tool>, or lapidary serve"))
    }

    fn choose(
        explicit: Option<PathBuf>,
        from_env: Option<PathBuf>,
        here: Option<&Path>,
        data: Option<PathBuf>,
    ) -> Result<Paths> {
        let chosen = explicit
            .or(from_env)
            .or_else(|| here.and_then(workshop_above))
            .or_else(|| data.map(|folder| folder.join("lapidary")))
            .ok_or_else(|| Error::not_found("no root folder: there is no home folder").hint("give --root DIR"))?;
        let root = std::path::absolute(&chosen)
            .map_err(|e| io(format_args!("cannot use `{}` as the root", chosen.display()), &e))?;
        Ok(Paths { root })
    }

    /// The paths under a known root.
    #[must_use]
    pub fn at(root: impl Into<PathBuf>) -> Paths {
        Paths { root: root.into() }
    }

    /// Makes the folders that the host writes to. Doing it again is harmless.
    ///
    /// # Errors
    /// `permission_denied` for a read-only place, `quota` for a full disk, with the folder's path.
    pub fn ensure(&self) -> Result<()> {
        for folder in
            [self.tools(), self.plugins(), self.webui_plugins(), self.plugin_state(), self.user().join("toolsets")]
        {
            std::fs::create_dir_all(&folder)
                .map_err(|e| io(format_args!("cannot make the folder `{}`", folder.display()), &e))?;
        }
        Ok(())
    }

    /// The root itself.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Everything that belongs to the user.
    #[must_use]
    pub fn user(&self) -> PathBuf {
        self.root.join("user")
    }

    /// Single-file tools: `user/tools`.
    #[must_use]
    pub fn tools(&self) -> PathBuf {
        self.user().join("tools")
    }

    /// Plugin folders: `user/plugins`.
    #[must_use]
    pub fn plugins(&self) -> PathBuf {
        self.user().join("plugins")
    }

    /// Shipped plugins, where the root has its own copy.
    #[must_use]
    pub fn scripts(&self) -> PathBuf {
        self.root.join("scripts")
    }

    /// Shared Rhai modules, where the root has its own copy.
    #[must_use]
    pub fn stdlib(&self) -> PathBuf {
        self.root.join("stdlib")
    }

    /// What the server and its page keep: who may sign in, settings, switches and grants.
    #[must_use]
    pub fn webui(&self) -> PathBuf {
        self.user().join("webui")
    }

    /// The folder of stored settings.
    #[must_use]
    pub fn webui_plugins(&self) -> PathBuf {
        self.webui().join("plugins")
    }

    /// Which plugins are switched on and off.
    #[must_use]
    pub fn plugins_json(&self) -> PathBuf {
        self.webui().join("plugins.json")
    }

    /// What the owner granted to plugins.
    #[must_use]
    pub fn grants_file(&self) -> PathBuf {
        self.webui().join("grants.json")
    }

    /// Stored settings of one plugin.
    #[must_use]
    pub fn settings_file(&self, plugin: &str) -> PathBuf {
        self.webui_plugins().join(format!("{plugin}.json"))
    }

    /// The folder of state, data files and databases of all plugins.
    #[must_use]
    pub fn plugin_state(&self) -> PathBuf {
        self.user().join("plugin_state")
    }

    /// State of one plugin.
    #[must_use]
    pub fn state_file(&self, plugin: &str) -> PathBuf {
        self.plugin_state().join(format!("{plugin}.json"))
    }

    /// Data folder of one plugin.
    #[must_use]
    pub fn files_dir(&self, plugin: &str) -> PathBuf {
        self.plugin_state().join(format!("{plugin}_files"))
    }

    /// One SQLite file of one plugin. `_` in `name` becomes `.`, so that the last `_` ends the plugin's name: otherwise
    /// `a` with `b_c` and `a_b` with `c` would share a file.
    #[must_use]
    pub fn db_file(&self, plugin: &str, name: &str) -> PathBuf {
        self.plugin_state().join(format!("{plugin}_{}.db", name.replace('_', ".")))
    }

    /// Saved toolsets.
    #[must_use]
    pub fn toolsets_file(&self) -> PathBuf {
        self.user().join("toolsets").join("toolsets.json")
    }

    /// The host's own database: chats and what belongs to them.
    #[must_use]
    pub fn main_db(&self) -> PathBuf {
        self.user().join("lapidary.db")
    }

    /// What this host signs the addresses of its picture proxy with.
    #[must_use]
    pub fn proxy_key(&self) -> PathBuf {
        self.webui().join("proxy.key")
    }

    /// The host's own settings.
    #[must_use]
    pub fn lapidary_toml(&self) -> PathBuf {
        self.user().join("lapidary.toml")
    }

    /// Held by every host that stays, so that others can tell.
    #[must_use]
    pub fn host_mark(&self) -> PathBuf {
        self.user().join(".host.mark")
    }

    /// Earlier sources of one plugin.
    #[must_use]
    pub fn history_dir(&self, plugin: &str) -> PathBuf {
        self.user().join("history").join(plugin)
    }

    /// The error with every path in it relative to the root, for readers who may not know where that is: scripts and models.
    #[must_use]
    pub fn conceal(&self, error: Error) -> Error {
        let root = self.root.display().to_string();
        error.reworded(|message| {
            message.replace(&format!("{root}{}", std::path::MAIN_SEPARATOR), "").replace(&root, ".")
        })
    }

    /// `path` as it is shown to people: relative to the root where it is inside, with `/`.
    #[must_use]
    pub fn shown(&self, path: &Path) -> String {
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        inside.to_string_lossy().replace('\\', "/")
    }
}

/// Where this user's credentials are kept: outside every root, for all of them.
#[must_use]
pub fn credentials_file() -> Option<PathBuf> {
    let base = etcetera::choose_base_strategy().ok()?;
    Some(base.config_dir().join("lapidary").join("credentials.json"))
}

/// A variable of the environment, where it is set and says something.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the room that reads the environment")]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The variable that may name the root.
const ROOT: &str = "LAPIDARY_ROOT";

#[expect(clippy::disallowed_methods, reason = "the root may be named by the environment")]
fn from_environment() -> Option<PathBuf> {
    std::env::var_os(ROOT).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn workshop_above(here: &Path) -> Option<PathBuf> {
    here.ancestors()
        .find(|folder| {
            folder.join("user").is_dir() && (folder.join("scripts").is_dir() || folder.join("stdlib").is_dir())
        })
        .map(Path::to_path_buf)
}

/// Checks a plugin's name: it becomes file names on every operating system, so it is 1 to 64 ASCII letters, digits, `_`
/// and `-`, begins with a letter or digit, and is not a name that some system or the host keeps for itself.
///
/// # Errors
/// `invalid_arguments` that says which rule is broken.
pub fn valid_plugin_name(name: &str) -> Result<()> {
    let shown = excerpt(name, 80);
    let refuse = |why: &str| Err(Error::invalid(format!("`{shown}` is not a plugin name: {why}")));
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.len() > 64 {
        return refuse("it is longer than 64 characters");
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        return refuse("only letters a to z, digits, `_` and `-` are allowed");
    }
    if !name.as_bytes()[0].is_ascii_alphanumeric() {
        return refuse("it must begin with a letter or a digit");
    }
    let lower = name.to_ascii_lowercase();
    let numbered = lower.len() == 4
        && (lower.starts_with("com") || lower.starts_with("lpt"))
        && matches!(lower.as_bytes()[3], b'1'..=b'9');
    if numbered || matches!(lower.as_str(), "con" | "prn" | "aux" | "nul") {
        return refuse("some operating systems keep this name for a device");
    }
    if lower == "agents" {
        return refuse("its state file would be the host's own `agents.json`");
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Kind;
    use std::fs;

    #[test]
    fn the_root_is_explicit_then_environment_then_workshop_then_data_folder() {
        let dir = tempfile::tempdir().unwrap();
        let shop = dir.path().join("shop");
        let deep = shop.join("user/tools/deep");
        fs::create_dir_all(&deep).unwrap();
        fs::create_dir_all(shop.join("stdlib")).unwrap();
        let env = || Some(PathBuf::from("/from/env"));
        let data = || Some(PathBuf::from("/data"));
        let root = |paths: Result<Paths>| paths.unwrap().root().to_path_buf();
        assert_eq!(root(Paths::choose(Some("/x".into()), env(), Some(&deep), data())), Path::new("/x"));
        assert_eq!(root(Paths::choose(None, env(), Some(&deep), data())), Path::new("/from/env"));
        assert_eq!(root(Paths::choose(None, None, Some(&deep), data())), shop);
        assert_eq!(root(Paths::choose(None, None, Some(dir.path()), data())), Path::new("/data/lapidary"));
        let e = Paths::choose(None, None, None, None).unwrap_err();
        assert!(e.hint_text().unwrap().contains("--root"), "{e}");
    }

    #[test]
    fn a_named_root_that_is_no_workshop_is_told_from_one_that_is() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        fs::create_dir_all(dir.path().join("empty")).unwrap();
        for (name, word) in [("nowhere", "there is no folder"), ("empty", "is no workshop"), ("file", "is no folder")] {
            let e = Paths::find_existing(Some(dir.path().join(name))).unwrap_err();
            assert_eq!(e.kind(), Kind::NotFound);
            assert!(e.message().contains(word) && e.message().contains(name) && e.message().contains("--root"), "{e}");
            assert!(e.hint_text().unwrap().contains("lapidary new"), "{e}");
        }
        for (root, mark) in [("a", "user"), ("b", "scripts"), ("c", "stdlib")] {
            fs::create_dir_all(dir.path().join(root).join(mark)).unwrap();
            Paths::find_existing(Some(dir.path().join(root))).unwrap();
        }
        assert!(!dir.path().join("nowhere").exists());
    }

    #[test]
    fn a_folder_with_only_one_of_the_marks_is_not_a_root() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("scripts")).unwrap();
        assert_eq!(workshop_above(dir.path()), None);
        fs::create_dir_all(dir.path().join("user")).unwrap();
        assert_eq!(workshop_above(dir.path()).as_deref(), Some(dir.path()));
    }

    #[test]
    fn a_relative_root_becomes_absolute() {
        let paths = Paths::choose(Some("shop".into()), None, None, None).unwrap();
        assert!(paths.root().is_absolute());
        assert!(paths.root().ends_with("shop"));
    }

    #[test]
    fn ensure_makes_the_folders_once_and_again() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path().join("new"));
        paths.ensure().unwrap();
        paths.ensure().unwrap();
        for folder in ["tools", "plugins", "webui/plugins", "plugin_state", "toolsets"] {
            assert!(paths.user().join(folder).is_dir(), "{folder}");
        }
    }

    #[test]
    fn ensure_names_the_folder_it_cannot_make() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("user"), "a file in the way").unwrap();
        let e = Paths::at(dir.path()).ensure().unwrap_err();
        assert!(e.message().contains("user"), "{e}");
    }

    #[test]
    fn every_file_has_its_documented_place() {
        let paths = Paths::at("/r");
        let rows = [
            (paths.tools(), "user/tools"),
            (paths.plugins(), "user/plugins"),
            (paths.scripts(), "scripts"),
            (paths.stdlib(), "stdlib"),
            (paths.plugins_json(), "user/webui/plugins.json"),
            (paths.grants_file(), "user/webui/grants.json"),
            (paths.settings_file("dice"), "user/webui/plugins/dice.json"),
            (paths.state_file("dice"), "user/plugin_state/dice.json"),
            (paths.files_dir("dice"), "user/plugin_state/dice_files"),
            (paths.db_file("dice", "log"), "user/plugin_state/dice_log.db"),
            (paths.toolsets_file(), "user/toolsets/toolsets.json"),
            (paths.main_db(), "user/lapidary.db"),
            (paths.proxy_key(), "user/webui/proxy.key"),
            (paths.lapidary_toml(), "user/lapidary.toml"),
            (paths.history_dir("dice"), "user/history/dice"),
        ];
        for (path, shown) in rows {
            assert_eq!(paths.shown(&path), shown);
        }
        assert_eq!(paths.shown(Path::new("/elsewhere/x")), "/elsewhere/x");
    }

    #[test]
    fn scripts_never_learn_where_the_root_is() {
        let e =
            Error::internal("cannot write `/home/me/shop/user/x.json` below `/home/me/shop`").hint("free some space");
        let e = Paths::at("/home/me/shop").conceal(e);
        assert_eq!(e.message(), "cannot write `user/x.json` below `.`");
        assert_eq!(e.hint_text(), Some("free some space"));
    }

    #[test]
    fn two_plugins_never_share_a_database() {
        let paths = Paths::at("/r");
        assert_ne!(paths.db_file("a", "b_c"), paths.db_file("a_b", "c"));
        assert_ne!(paths.db_file("a", "_c"), paths.db_file("a_", "c"));
    }

    #[test]
    fn plugin_names_are_safe_on_every_system() {
        let long = "a".repeat(64);
        for good in ["a", "dice", "My-Tool_2", "0x", "com", "com10", "lpt0", "console", "agent", long.as_str()] {
            assert!(valid_plugin_name(good).is_ok(), "{good}");
        }
        let too_long = "a".repeat(65);
        for bad in [
            "",
            "_a",
            "-a",
            "a.b",
            "a b",
            "a/b",
            "a\\b",
            "..",
            ".",
            "é",
            "日",
            "a\0",
            "con",
            "CON",
            "Nul",
            "aux",
            "prn",
            "com1",
            "LPT9",
            "agents",
            "a\n",
            too_long.as_str(),
        ] {
            assert_eq!(valid_plugin_name(bad).unwrap_err().kind(), Kind::InvalidArguments, "{bad:?}");
        }
    }
}
