//! Writes the first version of a plugin: a tool that works, and a test beside it. It overwrites nothing.

use super::discover::{MANIFEST, Origin, Stock};
use super::load::NEVER_TOOLS;
use super::set::Plugins;
use super::status::Status;
use crate::base::error::{Error, Kind as ErrorKind, Result, io};
use crate::base::file;
use crate::base::paths::{Paths, valid_plugin_name};
use crate::script::lint::is_reserved_word;
use crate::tool::names;
use crate::tool::toolset::CATEGORIES;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How the tool file says what its tools are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// `TOOLS` and `execute`.
    Explicit,
    /// A function with a comment.
    #[default]
    Documented,
}

/// What is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Kind {
    /// One file in `user/tools/`.
    #[default]
    SingleFile,
    /// A folder in `user/plugins/` with a manifest.
    Folder,
}

/// Words that mean something else where plugins are named, beside the categories: toolset words and the host's own parts.
const TAKEN_NAMES: [&str; 5] = ["all", "none", "custom", "core", "std"];

/// The name as it is used: without space around it, in lower case, without `.rhai`.
///
/// # Errors
/// `invalid_arguments` for what cannot name a plugin, `conflict` for a word that means something else.
pub fn plugin_name(name: &str) -> Result<String> {
    let lower = name.trim().to_lowercase();
    let name = lower.strip_suffix(".rhai").unwrap_or(&lower);
    valid_plugin_name(name).map_err(|e| e.hint("take a short word such as `greet` or `unit-price`"))?;
    if CATEGORIES.contains(&name) || TAKEN_NAMES.contains(&name) {
        return Err(Error::new(
            ErrorKind::Conflict,
            format!("`{name}` is a word of the host, so a plugin cannot be called that"),
        )
        .hint(format!("take a longer name, such as `my-{name}`")));
    }
    Ok(name.to_owned())
}

/// The name of the function, and so of the tool, that a new plugin of this name gets.
#[must_use]
pub fn tool_name(plugin: &str) -> String {
    let name = plugin.replace('-', "_");
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        format!("tool_{name}")
    } else if is_reserved_word(&name) || NEVER_TOOLS.contains(&name.as_str()) {
        format!("{name}_tool")
    } else {
        name
    }
}

/// Writes a new plugin and gives the files, the tool first. A folder appears whole or not at all.
///
/// # Errors
/// `invalid_arguments` for a bad name; `conflict` where a plugin of that name is there or shipped, or one of the files is;
/// or what the file system says.
pub fn new(paths: &Paths, stock: &dyn Stock, name: &str, form: Form, kind: Kind) -> Result<Vec<PathBuf>> {
    let name = plugin_name(name)?;
    let tool = tool_name(&name);
    names::check(&tool).map_err(Error::invalid)?;
    is_free(paths, stock, &name)?;
    match kind {
        Kind::SingleFile => single(paths, &name, &tool, form),
        Kind::Folder => folder(paths, &name, &tool, form),
    }
}

impl Plugins {
    /// Whether a new plugin takes nothing from those that are there: neither a name, also one in other letters, nor a tool.
    ///
    /// # Errors
    /// `conflict` naming what is there.
    pub fn is_free(&self, name: &str, tool: &str) -> Result<()> {
        let taken =
            |what: String| Err(Error::new(ErrorKind::Conflict, what).hint("take another name; nothing was written"));
        if let Some(other) = self.names().into_iter().find(|other| other.eq_ignore_ascii_case(name))
            && let Some(found) = self.found(&other)
        {
            let place = found.place();
            return taken(match found.origin {
                Origin::Shipped => format!("`{name}` is a shipped plugin, and the new one would take its place"),
                _ => format!("`{name}` would be the same name as the plugin `{other}`: `{place}` is there already"),
            });
        }
        let snapshot = self.snapshot.load();
        if let Some(live) = snapshot.iter().find(|live| names::fold(&live.name) == names::fold(tool)) {
            let owner = &live.plugin().name;
            let place = self.found(owner).map(|found| format!(" ({})", found.place())).unwrap_or_default();
            return taken(format!("the tool `{}` belongs to the plugin `{owner}`{place} already", live.name));
        }
        Ok(())
    }

    /// Writes a new plugin as [`new`] does and loads it. Runs builds: not for a runtime thread.
    ///
    /// # Errors
    /// As [`new`] and [`Plugins::is_free`].
    pub fn create(self: &Arc<Self>, name: &str, form: Form, kind: Kind) -> Result<Status> {
        let name = plugin_name(name)?;
        self.is_free(&name, &tool_name(&name))?;
        new(&self.loader.services.paths, &*self.loader.stock, &name, form, kind)?;
        self.rescan();
        self.refresh(&[name.as_str().into()]);
        self.status(&name).ok_or_else(|| self.unknown(&name))
    }
}

fn is_free(paths: &Paths, stock: &dyn Stock, name: &str) -> Result<()> {
    let taken =
        |what: String| Err(Error::new(ErrorKind::Conflict, what).hint("take another name; nothing was written"));
    for (home, wanted) in [(paths.tools(), format!("{name}.rhai")), (paths.plugins(), name.to_owned())] {
        if let Some(place) = folded(&home, &wanted) {
            return taken(format!("`{}` is there already", paths.shown(&place)));
        }
    }
    let shipped = paths.scripts();
    let is_shipped = if shipped.is_dir() { folded(&shipped, name).is_some() } else { stock.plugins().contains(&name) };
    if is_shipped {
        return taken(format!("`{name}` is a shipped plugin, and the new one would take its place"));
    }
    Ok(())
}

/// What lies in `home` under this name or under one that differs in case only: both would be one plugin.
fn folded(home: &Path, name: &str) -> Option<PathBuf> {
    let exact = home.join(name);
    if fs::symlink_metadata(&exact).is_ok() {
        return Some(exact);
    }
    let entries = fs::read_dir(home).ok()?;
    entries.flatten().find(|e| e.file_name().to_str().is_some_and(|n| n.eq_ignore_ascii_case(name))).map(|e| e.path())
}

fn single(paths: &Paths, name: &str, tool: &str, form: Form) -> Result<Vec<PathBuf>> {
    let script = paths.tools().join(format!("{name}.rhai"));
    let test = paths.tools().join("tests").join(format!("{name}.rhai"));
    if fs::symlink_metadata(&test).is_ok() {
        return Err(Error::new(ErrorKind::Conflict, format!("`{}` is there already", paths.shown(&test)))
            .hint("move it away, or take another name; nothing was written"));
    }
    make_folder(paths, &paths.tools().join("tests"))?;
    file::write_atomic(&test, test_text(&paths.shown(&script), tool).as_bytes())?;
    // Last, so that a running host finds a finished plugin.
    file::write_atomic(&script, script_text(name, tool, form).as_bytes())?;
    Ok(vec![script, test])
}

#[expect(clippy::disallowed_methods, reason = "a whole folder takes its place in one step")]
fn folder(paths: &Paths, name: &str, tool: &str, form: Form) -> Result<Vec<PathBuf>> {
    let home = paths.plugins().join(name);
    // Hidden, so that a running host does not look into half a plugin.
    let temp = paths.plugins().join(format!(".{name}.{}.tmp", std::process::id()));
    let files = [
        (format!("tools/{tool}.rhai"), script_text(name, tool, form)),
        (format!("tests/{tool}.rhai"), test_text(&format!("tools/{tool}.rhai"), tool)),
        (MANIFEST.to_owned(), manifest_text(name)?),
        ("README.md".to_owned(), readme_text(name, tool)),
    ];
    let written = files
        .iter()
        .try_for_each(|(path, text)| {
            let target = temp.join(path);
            make_folder(paths, target.parent().unwrap_or(&temp))?;
            file::write_atomic(&target, text.as_bytes())
        })
        .and_then(|()| {
            fs::rename(&temp, &home).map_err(|e| io(format_args!("cannot make `{}`", paths.shown(&home)), &e))
        });
    if let Err(e) = written {
        let _ = fs::remove_dir_all(&temp);
        return Err(e);
    }
    file::sync_folder_of(&home);
    Ok(files.iter().map(|(path, _)| home.join(path)).collect())
}

fn make_folder(paths: &Paths, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|e| io(format_args!("cannot make `{}`", paths.shown(folder)), &e))
}

/// `unit-price` as a heading: `Unit Price`.
fn heading(name: &str) -> String {
    let words = name.split(['-', '_']).filter(|word| !word.is_empty()).map(|word| {
        let mut letters = word.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    });
    words.collect::<Vec<String>>().join(" ")
}

fn script_text(name: &str, tool: &str, form: Form) -> String {
    let template = match form {
        Form::Documented => DOCUMENTED,
        Form::Explicit => EXPLICIT,
    };
    fill(template, name, tool, "")
}

fn test_text(script: &str, tool: &str) -> String {
    fill(TEST, "", tool, script)
}

fn readme_text(name: &str, tool: &str) -> String {
    fill(README, name, tool, "")
}

fn fill(template: &str, name: &str, tool: &str, script: &str) -> String {
    template.replace("{heading}", &heading(name)).replace("{tool}", tool).replace("{script}", script)
}

fn manifest_text(name: &str) -> Result<String> {
    let manifest = serde_json::json!({
        "name": name,
        "short_display_name": heading(name),
        "version": "0.1.0",
        "description": "Says a text several times.",
        "emoji": "🔧",
        "api_version": super::manifest::API_VERSION,
        "capabilities": {}
    });
    let text = serde_json::to_string_pretty(&manifest).map_err(|e| Error::internal(e.to_string()))?;
    Ok(text + "\n")
}

const DOCUMENTED: &str = r#"//! {heading}: a tool to start from. The comment above the function is all that a model knows of it.

const EMOJI = "🔧";

/// Say a text several times, with a space between. Use it when someone asks to see a text again and again.
///
/// @param {string 1..200} text - The text to say.
/// @param {integer 1..20} times=2 - How many times to say it.
/// @local
/// @example {"text": "hi", "times": 3} => /^hi hi hi$/
fn {tool}(text, times) {
    let line = text;
    for round in 1..times {
        line += " " + text;
    }
    line
}
"#;

const EXPLICIT: &str = r#"//! {heading}: a tool to start from. TOOLS is all that a model knows of it.

const ENABLED = true;
const EMOJI = "🔧";
const AVAILABLE_FUNCTIONS = ["{tool}"];
const TOOLS = [#{
    type: "function",
    is_local: true,
    function: #{
        name: "{tool}",
        description: "Say a text several times, with a space between. Use it when someone asks to see a text again and again.",
        parameters: #{
            type: "object",
            properties: #{
                text: #{ type: "string", description: "The text to say", minLength: 1, maxLength: 200 },
                times: #{ type: "integer", description: "How many times to say it", minimum: 1, maximum: 20, "default": 2 },
            },
            required: ["text"],
        },
    },
}];

fn execute(function_name, arguments, config) {
    if function_name == "{tool}" {
        let line = arguments.text;
        for round in 1..(arguments.times ?? 2) {
            line += " " + arguments.text;
        }
        return [line, true];
    }
    [`Unknown function ${function_name}`, false]
}
"#;

const TEST: &str = r#"// Tests of {script}. `lapidary test` runs them, each in a fresh world.

fn test_it_says_the_text_as_often_as_asked() {
    assert_eq(tools::run("{tool}", #{ text: "hi", times: 3 }), "hi hi hi");
}

fn test_it_says_the_text_twice_unless_told_otherwise() {
    assert_eq(tools::run("{tool}", #{ text: "hi" }), "hi hi");
}

fn test_a_call_without_a_text_is_refused() {
    let code = "";
    try {
        tools::run("{tool}", #{});
    } catch (e) {
        code = e.code;
    }
    assert(code == "invalid_arguments", `expected a refusal, got "${code}"`);
}
"#;

const README: &str = r#"# {heading}

Says a text several times. Write here what your plugin is for, and what it needs.

| file | what it is |
|---|---|
| `plugin.json` | name, version, description; settings and permissions, once there are some |
| `tools/{tool}.rhai` | the tool; every `tools/*.rhai` beside it is loaded too |
| `tests/{tool}.rhai` | its tests, run by `lapidary test` |
| `lib/` | for modules of its own: `import "lib/words" as words;` |

Try it: `lapidary call {tool} text=hello times=3`
"#;

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::discover::{Empty, discover};
    use super::super::manifest::Manifest;
    use super::*;
    use crate::script::diagnostic::Diagnostic;
    use crate::tool::doc::from_doc;
    use rhai::{Dynamic, Engine, Map};
    use serde_json::{Value, json};

    struct World {
        _dir: tempfile::TempDir,
        paths: Paths,
    }

    fn world() -> World {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        World { _dir: dir, paths }
    }

    impl World {
        fn make(&self, name: &str, form: Form, kind: Kind) -> Result<Vec<String>> {
            let files = new(&self.paths, &Empty, name, form, kind)?;
            Ok(files.iter().map(|path| self.paths.shown(path)).collect())
        }

        fn read(&self, path: &str) -> String {
            fs::read_to_string(self.paths.root().join(path)).unwrap()
        }

        fn files(&self) -> usize {
            fn count(folder: &Path) -> usize {
                let Ok(entries) = fs::read_dir(folder) else { return 0 };
                entries.flatten().map(|e| if e.path().is_dir() { count(&e.path()) } else { 1 }).sum()
            }
            count(self.paths.root())
        }
    }

    #[test]
    fn names_are_made_plain_or_refused() {
        let rows = [
            ("dice", "dice", "dice"),
            ("  Dice.rhai ", "dice", "dice"),
            ("unit-price", "unit-price", "unit_price"),
            ("Unit_Price", "unit_price", "unit_price"),
            ("8ball", "8ball", "tool_8ball"),
            ("match", "match", "match_tool"),
            ("run", "run", "run_tool"),
            ("get-tools", "get-tools", "get_tools_tool"),
            ("my-web", "my-web", "my_web"),
        ];
        for (given, name, tool) in rows {
            assert_eq!(plugin_name(given).unwrap(), name, "{given}");
            assert_eq!(tool_name(name), tool, "{given}");
            assert!(names::check(tool).is_ok());
        }
        let long = "x".repeat(65);
        for bad in ["", " ", "_x", "-x", "a b", "a/b", "../x", "a.b", "ünit", "con", "agents", ".rhai", long.as_str()]
        {
            assert_eq!(plugin_name(bad).unwrap_err().kind(), ErrorKind::InvalidArguments, "{bad}");
        }
        for word in ["web", "Memory", "all", "none", "custom", "meta_danger", "std"] {
            assert_eq!(plugin_name(word).unwrap_err().kind(), ErrorKind::Conflict, "{word}");
        }
    }

    #[test]
    fn a_tool_file_comes_with_its_test() {
        let w = world();
        let files = w.make("dice", Form::Documented, Kind::SingleFile).unwrap();
        assert_eq!(files, ["user/tools/dice.rhai", "user/tools/tests/dice.rhai"]);
        assert!(w.read("user/tools/tests/dice.rhai").contains("Tests of user/tools/dice.rhai"));
        let found = discover(&w.paths, &[], &Empty);
        assert_eq!((found.plugins.len(), found.plugins[0].name.as_str(), found.notices.len()), (1, "dice", 0));
    }

    #[test]
    fn a_folder_comes_with_manifest_test_and_readme() {
        let w = world();
        let files = w.make("unit-price", Form::Explicit, Kind::Folder).unwrap();
        let names = ["tools/unit_price.rhai", "tests/unit_price.rhai", "plugin.json", "README.md"];
        assert_eq!(files, names.map(|name| format!("user/plugins/unit-price/{name}")));
        assert_eq!(w.files(), 4);
        let text = w.read("user/plugins/unit-price/plugin.json");
        let (manifest, notes) = Manifest::parse(&text, "plugin.json", "unit-price").unwrap();
        assert_eq!(notes, Vec::<Diagnostic>::new());
        assert_eq!(manifest.title(), "Unit Price");
        let found = discover(&w.paths, &[], &Empty);
        assert_eq!((found.plugins.len(), found.notices.len()), (1, 0));
        assert!(w.read("user/plugins/unit-price/README.md").starts_with("# Unit Price\n"));
    }

    #[test]
    fn nothing_is_ever_overwritten() {
        for kind in [Kind::SingleFile, Kind::Folder] {
            let w = world();
            w.make("dice", Form::Documented, kind).unwrap();
            let before = w.files();
            for again in [Kind::SingleFile, Kind::Folder] {
                assert_eq!(w.make("Dice", Form::Explicit, again).unwrap_err().kind(), ErrorKind::Conflict);
            }
            assert_eq!(w.files(), before);
        }
        let w = world();
        fs::create_dir_all(w.paths.tools().join("tests")).unwrap();
        fs::write(w.paths.tools().join("tests/dice.rhai"), "mine").unwrap();
        assert_eq!(w.make("dice", Form::Documented, Kind::SingleFile).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!((w.files(), w.read("user/tools/tests/dice.rhai").as_str()), (1, "mine"));
    }

    #[test]
    fn a_shipped_plugin_is_not_replaced_by_accident() {
        let w = world();
        fs::create_dir_all(w.paths.scripts().join("clock")).unwrap();
        let e = w.make("clock", Form::Documented, Kind::SingleFile).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Conflict);
        assert!(e.message().contains("shipped"), "{e}");
        assert_eq!(w.files(), 0);
    }

    /// Runs the script of the documented form the way the host does: arguments by position.
    fn documented(script: &str, tool: &str, text: &str, times: i64) -> String {
        let engine = Engine::new();
        let ast = engine.compile(script).unwrap();
        engine.call_fn(&mut rhai::Scope::new(), &ast, tool, (text.to_owned(), times)).unwrap()
    }

    #[test]
    fn the_documented_form_describes_and_does_what_its_comment_says() {
        for name in ["dice", "8ball", "match", "unit-price"] {
            let w = world();
            let tool = tool_name(name);
            w.make(name, Form::Documented, Kind::SingleFile).unwrap();
            let script = w.read(&format!("user/tools/{name}.rhai"));
            assert_eq!(documented(&script, &tool, "hi", 3), "hi hi hi");
            assert_eq!(documented(&script, &tool, "hi", 1), "hi");
            let ast = Engine::new().compile(&script).unwrap();
            let function = ast.iter_functions().find(|f| f.name == tool).unwrap();
            let (spec, plan) = from_doc(&tool, &function.params, &function.comments, 1).unwrap();
            assert!(spec.description.contains("Use it when"));
            assert_eq!(spec.parameters["required"], json!(["text"]));
            assert_eq!(plan[1].default, Some(json!(2)));
            assert_eq!(spec.examples.len(), 1);
        }
    }

    #[test]
    fn the_explicit_form_describes_and_does_what_its_list_says() {
        for name in ["dice", "8ball", "match"] {
            let w = world();
            let tool = tool_name(name);
            w.make(name, Form::Explicit, Kind::SingleFile).unwrap();
            let script = w.read(&format!("user/tools/{name}.rhai"));
            let engine = Engine::new();
            let ast = engine.compile(&script).unwrap();
            let mut scope = rhai::Scope::new();
            engine.run_ast_with_scope(&mut scope, &ast).unwrap();
            let listed: Value = rhai::serde::from_dynamic(&scope.get_value::<Dynamic>("TOOLS").unwrap()).unwrap();
            let function = &listed[0]["function"];
            assert_eq!(function["name"], json!(tool));
            assert!(jsonschema::options().offline().build(&function["parameters"]).is_ok());
            let call = |function: &str, arguments: Map| -> Value {
                let result: Dynamic = engine
                    .call_fn(&mut rhai::Scope::new(), &ast, "execute", (function.to_owned(), arguments, Map::new()))
                    .unwrap();
                rhai::serde::from_dynamic(&result).unwrap()
            };
            let arguments = |times: Option<i64>| {
                let mut map = Map::new();
                map.insert("text".into(), "hi".into());
                if let Some(times) = times {
                    map.insert("times".into(), times.into());
                }
                map
            };
            assert_eq!(call(&tool, arguments(Some(3))), json!(["hi hi hi", true]));
            assert_eq!(call(&tool, arguments(None)), json!(["hi hi", true]));
            assert_eq!(call("other", arguments(None)), json!(["Unknown function other", false]));
        }
    }

    #[test]
    fn the_tests_compile_and_name_the_tool() {
        let w = world();
        w.make("unit-price", Form::Documented, Kind::Folder).unwrap();
        let test = w.read("user/plugins/unit-price/tests/unit_price.rhai");
        let ast = Engine::new().compile(&test).unwrap();
        let names: Vec<_> = ast.iter_functions().map(|f| f.name).collect();
        assert_eq!(names.len(), 3);
        assert!(names.iter().all(|name| name.starts_with("test_")));
        assert!(test.contains("tools::run(\"unit_price\","));
    }
}
