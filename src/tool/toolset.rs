//! Which tools a word stands for: `all`, a module, a saved toolset, a category, a plugin; and what is left after the filters.
//! Pure rules over a list of tools and the saved toolsets; nobody is asked and nothing is remembered.

use crate::base::error::{Error, Result};
use crate::base::json;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The categories, in the order in which people see them.
pub const CATEGORIES: [&str; 12] = [
    "web",
    "memory",
    "knowledge",
    "people",
    "goals",
    "files",
    "system",
    "devices",
    "comms",
    "media",
    "meta_danger",
    "agents",
];

/// The word that keeps whatever is selected.
pub const CUSTOM: &str = "custom";

/// A tool as the rules see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// Its module key, such as `plugin_dice_dice`.
    pub module: &'a str,
    /// Its plugin.
    pub plugin: &'a str,
    /// Its resolved category.
    pub category: &'a str,
    /// Left out of everything but a saved toolset that names it.
    pub hidden: bool,
    /// It changes something.
    pub writes: bool,
    /// A setting makes it invisible now.
    pub gated_off: bool,
}

/// The tools of one moment in the order of their registration, and the scopes of plugins.
#[derive(Debug, Clone, Default)]
pub struct Catalog<'a> {
    tools: Vec<Entry<'a>>,
    scopes: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Catalog<'a> {
    /// A catalog of these tools. Of two with one name the first counts.
    #[must_use]
    pub fn new(tools: impl IntoIterator<Item = Entry<'a>>) -> Catalog<'a> {
        let mut seen = BTreeSet::new();
        Catalog { tools: tools.into_iter().filter(|t| seen.insert(t.name)).collect(), scopes: BTreeMap::new() }
    }

    /// The same with the scopes that a person can set, by the plugin that owns them.
    #[must_use]
    pub fn with_scopes(mut self, scopes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Catalog<'a> {
        for (plugin, key) in scopes {
            self.scopes.entry(plugin).or_default().push(key);
        }
        self
    }

    /// Every tool, in order.
    #[must_use]
    pub fn tools(&self) -> &[Entry<'a>] {
        &self.tools
    }

    /// The tool `name`.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Entry<'a>> {
        self.tools.iter().find(|t| t.name == name)
    }

    fn open(&self, keep: impl Fn(&Entry<'a>) -> bool) -> Vec<&'a str> {
        self.tools.iter().filter(|t| !t.hidden && keep(t)).map(|t| t.name).collect()
    }

    fn is_module(&self, word: &str) -> bool {
        self.tools.iter().any(|t| t.module == word)
    }
}

/// The scope that a category keeps its data in.
#[must_use]
pub fn category_scope(category: &str) -> Option<&'static str> {
    match category {
        "memory" => Some("memory"),
        "knowledge" => Some("knowledge"),
        "people" => Some("people"),
        "goals" => Some("goal"),
        _ => None,
    }
}

/// The scope that a tool needs: its category's, else its plugin's if that has exactly one.
#[must_use]
pub fn tool_scope<'a>(catalog: &Catalog<'a>, name: &str) -> Option<&'a str> {
    let tool = catalog.tool(name)?;
    category_scope(tool.category).or_else(|| match catalog.scopes.get(tool.plugin).map(Vec::as_slice) {
        Some([only]) => Some(*only),
        _ => None,
    })
}

/// The scopes that are closed for a task: those set to `none`, and those it does not mention.
#[must_use]
pub fn closed_scopes<'a>(
    settable: impl IntoIterator<Item = &'a str>,
    task: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let is_open = |key: &str| task.get(key).is_some_and(|value| value != "none");
    settable.into_iter().filter(|key| !is_open(key)).map(str::to_owned).collect()
}

/// `{category, writes, module, plugin}` of a tool.
#[must_use]
pub fn meta(catalog: &Catalog<'_>, name: &str) -> Option<Value> {
    let tool = catalog.tool(name)?;
    Some(json!({ "category": tool.category, "writes": tool.writes, "module": tool.module, "plugin": tool.plugin }))
}

/// Each category with the names of its tools, in the order of registration, without hidden ones.
#[must_use]
pub fn categories<'a>(catalog: &Catalog<'a>) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut list: Vec<(&str, Vec<&str>)> = Vec::new();
    for tool in catalog.tools.iter().filter(|t| !t.hidden) {
        match list.iter_mut().find(|(category, _)| *category == tool.category) {
            Some((_, names)) => names.push(tool.name),
            None => list.push((tool.category, vec![tool.name])),
        }
    }
    list
}

/// Names of a category's tools, without hidden ones; with `writes` only those that change something, or only those that do not.
#[must_use]
pub fn in_category<'a>(catalog: &Catalog<'a>, category: &str, writes: Option<bool>) -> Vec<&'a str> {
    catalog.open(|t| t.category == category && writes.is_none_or(|w| w == t.writes))
}

/// Saved toolsets: names of tools under a name of the user's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Saved {
    sets: Vec<(String, Vec<String>)>,
}

impl Saved {
    /// Reads `toolsets.json`: an object of name to `{"functions": [..]}` or to the list itself. A set that is neither is left out
    /// with a warning; the others stay.
    ///
    /// # Errors
    /// `invalid_arguments` for text that is no JSON object.
    pub fn parse(text: &str) -> Result<(Saved, Vec<String>)> {
        let value =
            json::parse_file_text(text.as_bytes()).map_err(|e| Error::invalid(format!("toolsets.json: {e}")))?;
        let Value::Object(map) = value else {
            return Err(
                Error::invalid("toolsets.json holds no object").hint("write {\"name\": {\"functions\": [\"tool\"]}}")
            );
        };
        let mut saved = Saved::default();
        let mut warnings = Vec::new();
        for (name, set) in map {
            if name.starts_with('_') {
                continue;
            }
            let functions = match &set {
                Value::Object(set) => set.get("functions"),
                other => Some(other),
            };
            let Some(Value::Array(list)) = functions else {
                warnings.push(format!("the toolset `{name}` has no list of functions and was left out"));
                continue;
            };
            let names: Vec<String> = list.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect();
            if names.len() < list.len() {
                warnings
                    .push(format!("the toolset `{name}` lists {} entries that are no names", list.len() - names.len()));
            }
            saved.sets.push((name, names));
        }
        Ok((saved, warnings))
    }

    /// A set's list of names.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&[String]> {
        self.sets.iter().find(|(n, _)| n == name).map(|(_, list)| list.as_slice())
    }

    /// The names of the sets, as saved.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().map(|(name, _)| name.as_str())
    }
}

/// What is selected.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    /// The word that was resolved: `all`, `none`, a module, a toolset, a category, a plugin, or `custom`.
    pub label: String,
    /// The names, before filters; a name that no tool has now stays, for the tool may come back.
    pub names: Vec<String>,
    /// A word that stands for nothing.
    pub dangling: Option<String>,
}

impl Selection {
    fn of<'n>(label: &str, names: impl IntoIterator<Item = &'n str>) -> Selection {
        Selection { label: label.to_owned(), names: names.into_iter().map(str::to_owned).collect(), dangling: None }
    }

    /// The tools a model sees now, in the order of registration: those that exist and that no setting hides.
    #[must_use]
    pub fn visible<'a>(&self, catalog: &Catalog<'a>) -> Vec<&'a str> {
        let names: BTreeSet<&str> = self.names.iter().map(String::as_str).collect();
        catalog.tools.iter().filter(|t| names.contains(t.name) && !t.gated_off).map(|t| t.name).collect()
    }

    /// For people: how much of what was asked for is there. `partial` where tools that were asked for do not exist now.
    #[must_use]
    pub fn info(&self, catalog: &Catalog<'_>) -> Value {
        let expected: BTreeSet<&str> = self.names.iter().map(String::as_str).collect();
        let base = expected.iter().filter(|name| catalog.tool(name).is_some()).count();
        let visible = self.visible(catalog);
        json!({
            "name": self.label,
            "function_count": visible.len(),
            "base_count": base,
            "expected_count": expected.len(),
            "enabled_functions": visible,
            "status": if base == expected.len() { "ok" } else { "partial" },
        })
    }
}

/// What one word stands for: `(label, names)`. The order of the questions is the precedence.
fn word<'a>(catalog: &Catalog<'a>, saved: &'a Saved, word: &str) -> Option<Vec<&'a str>> {
    if catalog.is_module(word) {
        return Some(catalog.open(|t| t.module == word));
    }
    if let Some(list) = saved.get(word) {
        return Some(list.iter().map(String::as_str).collect());
    }
    if catalog.tools.iter().any(|t| t.category == word) {
        return Some(catalog.open(|t| t.category == word));
    }
    if catalog.tools.iter().any(|t| t.plugin == word) {
        return Some(catalog.open(|t| t.plugin == word));
    }
    None
}

/// Resolves what a person or a chat chose. One element is a word; none or several are names of tools.
#[must_use]
pub fn select<S: AsRef<str>>(catalog: &Catalog<'_>, saved: &Saved, chosen: &[S]) -> Selection {
    let [one] = chosen else {
        let names = chosen.iter().map(AsRef::as_ref).filter(|n| catalog.tool(n).is_none_or(|t| !t.hidden));
        return Selection::of(CUSTOM, names);
    };
    let one = one.as_ref();
    match one {
        "all" => Selection::of("all", catalog.open(|_| true)),
        "none" => Selection::of("none", []),
        _ => match word(catalog, saved, one) {
            Some(names) => Selection::of(one, names),
            None => Selection { label: "none".to_owned(), names: Vec::new(), dangling: Some(one.to_owned()) },
        },
    }
}

/// As [`select`] after tools changed; the word `custom` keeps the present selection, or a reload would wipe an ad-hoc one.
#[must_use]
pub fn reapply<S: AsRef<str>>(catalog: &Catalog<'_>, saved: &Saved, chosen: &[S], current: &Selection) -> Selection {
    match chosen {
        [one] if one.as_ref() == CUSTOM => current.clone(),
        _ => select(catalog, saved, chosen),
    }
}

/// The names among `added` that the active word takes in at once: all of them under `all`, those that an active saved toolset names.
#[must_use]
pub fn auto_extend<'a>(catalog: &Catalog<'_>, saved: &Saved, active: &str, added: &[Entry<'a>]) -> Vec<&'a str> {
    if active == "all" {
        return added.iter().filter(|t| !t.hidden).map(|t| t.name).collect();
    }
    // A module of that name would have won over the toolset, and modules are not extended.
    let named = saved.get(active).filter(|_| active != "none" && active != CUSTOM && !catalog.is_module(active));
    let Some(named) = named else { return Vec::new() };
    added.iter().filter(|t| named.iter().any(|n| n == t.name)).map(|t| t.name).collect()
}

/// Whether a word may be saved as a chat's toolset. Categories and plugins are words for lists, not for this.
#[must_use]
pub fn is_valid_toolset(catalog: &Catalog<'_>, saved: &Saved, word: &str) -> bool {
    word == "all" || word == "none" || catalog.is_module(word) || saved.get(word).is_some()
}

/// Every word that [`is_valid_toolset`] accepts.
#[must_use]
pub fn available(catalog: &Catalog<'_>, saved: &Saved) -> Vec<String> {
    let mut words = vec!["all".to_owned(), "none".to_owned()];
    let modules = catalog.tools.iter().map(|t| t.module);
    for word in modules.chain(saved.names()) {
        if !words.iter().any(|w| w == word) {
            words.push(word.to_owned());
        }
    }
    words
}

/// What a task asks for, by name.
#[derive(Debug, Clone, Default)]
pub struct Wish<'w> {
    /// One word; nothing means none.
    pub toolset: Option<&'w str>,
    /// More words, joined in.
    pub extra: &'w [String],
    /// Names of tools on top.
    pub add: &'w [String],
    /// Names of tools to leave out; what is also added is on.
    pub drop: &'w [String],
    /// Scopes that are closed here; tools that need one are left out, also added ones.
    pub closed: BTreeSet<String>,
}

/// What became of a wish.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The names, in the order of registration; `None` where nothing is left.
    pub names: Option<Vec<String>>,
    /// The toolset's label; extras do not change it.
    pub label: String,
    /// A toolset word that stands for nothing.
    pub dangling: Option<String>,
    /// Extra words that stand for nothing and were skipped.
    pub unknown: Vec<String>,
}

/// Resolves a wish without changing anything.
#[must_use]
pub fn resolve(catalog: &Catalog<'_>, saved: &Saved, wish: &Wish<'_>) -> Resolved {
    let toolset = wish.toolset.unwrap_or("none");
    if toolset == "none" && wish.extra.is_empty() && wish.add.is_empty() {
        return Resolved { label: "none".to_owned(), ..Resolved::default() };
    }
    let Selection { label, names, dangling } = select(catalog, saved, &[toolset]);
    let mut wanted: BTreeSet<&str> = names.iter().map(String::as_str).collect();
    let mut unknown = Vec::new();
    for extra in wish.extra {
        match word(catalog, saved, extra) {
            Some(names) => wanted.extend(names),
            None if extra == "none" => {}
            None => unknown.push(extra.clone()),
        }
    }
    for name in wish.drop {
        wanted.remove(name.as_str());
    }
    wanted.extend(wish.add.iter().map(String::as_str).filter(|n| catalog.tool(n).is_some_and(|t| !t.hidden)));
    let names: Vec<String> = catalog
        .tools
        .iter()
        .filter(|t| wanted.contains(t.name) && !t.gated_off)
        .filter(|t| tool_scope(catalog, t.name).is_none_or(|scope| !wish.closed.contains(scope)))
        .map(|t| t.name.to_owned())
        .collect();
    Resolved { names: (!names.is_empty()).then_some(names), label, dangling, unknown }
}

/// `"web, files"` as the toolset word and the extras.
#[must_use]
pub fn split_words(text: &str) -> (Option<String>, Vec<String>) {
    let mut words = text.split(',').map(str::trim).filter(|w| !w.is_empty()).map(str::to_owned);
    let first = words.next();
    (first, words.collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn entry<'a>(name: &'a str, module: &'a str, plugin: &'a str, category: &'a str) -> Entry<'a> {
        Entry { name, module, plugin, category, hidden: false, writes: false, gated_off: false }
    }

    /// web_search, fetch (a module called `web`), notes, a hidden tool, a gated tool.
    fn catalog() -> Catalog<'static> {
        Catalog::new([
            entry("web_search", "plugin_search_web", "search", "web"),
            entry("fetch", "web", "fetcher", "files"),
            Entry { writes: true, ..entry("note_save", "plugin_notes_notes", "notes", "memory") },
            entry("note_find", "plugin_notes_notes", "notes", "memory"),
            Entry { hidden: true, ..entry("note_purge", "plugin_notes_notes", "notes", "memory") },
            entry("goal_list", "plugin_goals_goals", "goals_plugin", "goals"),
            entry("mail_send", "plugin_mail_mail", "mail", "comms"),
            Entry { gated_off: true, ..entry("beta", "plugin_beta_beta", "beta_plugin", "system") },
        ])
        .with_scopes([("mail", "email")])
    }

    fn saved() -> Saved {
        Saved::parse(
            r#"{ "work": { "functions": ["note_purge", "fetch", "gone", "beta"] }, "memory": ["fetch"], "search": { "functions": ["fetch"] },
                "web": { "functions": ["mail_send"] }, "bad": { "functions": "all" }, "_note": "x", "odd": [1, "fetch"] }"#,
        )
        .unwrap()
        .0
    }

    fn names(selection: &Selection) -> Vec<&str> {
        selection.names.iter().map(String::as_str).collect()
    }

    #[test]
    fn row_05_hidden_tool_is_absent_from_all_but_a_saved_toolset() {
        let (catalog, saved) = (catalog(), saved());
        let rows: [&[&str]; 6] = [
            &["all"],
            &["plugin_notes_notes"],
            &["memory"],
            &["notes"],
            &["note_purge", "note_find"],
            &["note_find", "note_purge", "fetch"],
        ];
        for chosen in rows {
            assert!(!names(&select(&catalog, &saved, chosen)).contains(&"note_purge"), "{chosen:?}");
        }
        // `memory` is a saved toolset too; without it the category leaves the hidden tool out as well.
        assert!(!names(&select(&catalog, &Saved::default(), &["memory"])).contains(&"note_purge"));
        assert!(select(&catalog, &saved, &["work"]).visible(&catalog).contains(&"note_purge"));
        assert!(!categories(&catalog).iter().any(|(_, names)| names.contains(&"note_purge")));
        assert!(!in_category(&catalog, "memory", None).contains(&"note_purge"));
        let add = ["note_purge".to_owned()];
        assert_eq!(resolve(&catalog, &saved, &Wish { add: &add, ..Wish::default() }).names, None);
    }

    #[test]
    fn row_06_unknown_single_word_selects_nothing_and_is_recorded_and_no_words_are_custom() {
        let (catalog, saved) = (catalog(), saved());
        let dangling = select(&catalog, &saved, &["nonsense"]);
        assert_eq!(
            (dangling.label.as_str(), names(&dangling).len(), dangling.dangling.as_deref()),
            ("none", 0, Some("nonsense"))
        );
        let empty = select::<&str>(&catalog, &saved, &[]);
        assert_eq!((empty.label.as_str(), names(&empty).len(), empty.dangling), ("custom", 0, None));
        // A tool's name alone is no word.
        assert_eq!(select(&catalog, &saved, &["fetch"]).dangling.as_deref(), Some("fetch"));
    }

    #[test]
    fn row_07_module_beats_saved_toolset_beats_category_beats_plugin() {
        let (catalog, saved) = (catalog(), saved());
        let none = Saved::default();
        let extra = Catalog::new(
            catalog
                .tools()
                .iter()
                .copied()
                .chain([entry("x", "m", "files", "other"), entry("y", "m", "lone", "other")]),
        );
        let rows: [(&str, &Catalog<'_>, &Saved, &[&str]); 12] = [
            ("web", &catalog, &saved, &["fetch"]),
            ("web", &catalog, &none, &["fetch"]),
            ("memory", &catalog, &saved, &["fetch"]),
            ("memory", &catalog, &none, &["note_save", "note_find"]),
            ("search", &catalog, &saved, &["fetch"]),
            ("search", &catalog, &none, &["web_search"]),
            ("files", &extra, &saved, &["fetch"]),
            ("lone", &extra, &saved, &["y"]),
            ("notes", &catalog, &none, &["note_save", "note_find"]),
            ("plugin_mail_mail", &catalog, &none, &["mail_send"]),
            ("comms", &catalog, &none, &["mail_send"]),
            ("none", &catalog, &none, &[]),
        ];
        for (word, catalog, saved, expected) in rows {
            let selection = select(catalog, saved, &[word]);
            assert_eq!(names(&selection), expected, "{word}");
            assert_eq!(selection.label, word);
        }
    }

    #[test]
    fn row_08_drop_comes_before_add_and_closed_scopes_still_shed_an_added_tool() {
        let (catalog, saved) = (catalog(), Saved::default());
        let list = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let both = list(&["fetch"]);
        let wish = Wish { toolset: Some("comms"), add: &both, drop: &both, ..Wish::default() };
        assert_eq!(resolve(&catalog, &saved, &wish).names, Some(list(&["fetch", "mail_send"])));
        let add = list(&["note_find", "mail_send", "fetch"]);
        let closed = ["memory".to_owned(), "email".to_owned()].into();
        let wish = Wish { add: &add, closed, ..Wish::default() };
        assert_eq!(resolve(&catalog, &saved, &wish).names, Some(list(&["fetch"])));
        let drop = list(&["mail_send"]);
        assert_eq!(
            resolve(&catalog, &saved, &Wish { toolset: Some("comms"), drop: &drop, ..Wish::default() }).names,
            None
        );
    }

    #[test]
    fn row_09_nothing_resolves_to_none_not_to_an_empty_list() {
        let (catalog, saved) = (catalog(), saved());
        let gone = ["gone".to_owned()];
        let beta = ["beta".to_owned()];
        let unknown = ["nonsense".to_owned()];
        let rows = [
            Wish::default(),
            Wish { toolset: Some("none"), ..Wish::default() },
            Wish { toolset: Some("nonsense"), ..Wish::default() },
            Wish { add: &gone, ..Wish::default() },
            Wish { add: &beta, ..Wish::default() },
            Wish { extra: &unknown, ..Wish::default() },
            Wish { toolset: Some("system"), ..Wish::default() },
        ];
        for wish in rows {
            assert_eq!(resolve(&catalog, &saved, &wish).names, None, "{wish:?}");
        }
    }

    #[test]
    fn row_10_the_scope_of_a_tool_is_its_categorys_or_its_plugins_only_one() {
        let catalog = catalog();
        let rows = [
            ("note_find", Some("memory")),
            ("goal_list", Some("goal")),
            ("mail_send", Some("email")),
            ("web_search", None),
            ("fetch", None),
            ("unknown", None),
        ];
        for (name, scope) in rows {
            assert_eq!(tool_scope(&catalog, name), scope, "{name}");
        }
        let two = catalog.with_scopes([("mail", "archive")]);
        assert_eq!(tool_scope(&two, "mail_send"), None);
        assert_eq!(
            (category_scope("people"), category_scope("knowledge"), category_scope("web")),
            (Some("people"), Some("knowledge"), None)
        );
    }

    #[test]
    fn row_11_a_scope_that_a_task_does_not_mention_counts_as_closed() {
        let task = BTreeMap::from([("memory".to_owned(), "work".to_owned()), ("email".to_owned(), "none".to_owned())]);
        let closed = closed_scopes(["memory", "email", "people"], &task);
        assert_eq!(closed.into_iter().collect::<Vec<_>>(), ["email", "people"]);
    }

    #[test]
    fn row_20_tools_of_a_new_plugin_join_all_and_a_saved_toolset_that_names_them() {
        let (catalog, saved) = (catalog(), saved());
        let gone = entry("gone", "plugin_gone_gone", "gone_plugin", "web");
        let other = entry("other", "plugin_gone_gone", "gone_plugin", "web");
        let secret = Entry { hidden: true, ..entry("secret", "plugin_gone_gone", "gone_plugin", "web") };
        let added = [gone, other, secret];
        let rows: [(&str, &[&str]); 8] = [
            ("all", &["gone", "other"]),
            ("work", &["gone"]),
            ("none", &[]),
            ("custom", &[]),
            ("web", &[]),
            ("memory", &[]),
            ("plugin_gone_gone", &[]),
            ("nonsense", &[]),
        ];
        for (active, expected) in rows {
            assert_eq!(auto_extend(&catalog, &saved, active, &added), expected, "{active}");
        }
        // What a saved toolset names is visible as soon as it exists, without a new selection.
        let before = select(&catalog, &saved, &["work"]);
        assert!(!before.visible(&catalog).contains(&"gone"));
        let later = Catalog::new(catalog.tools().iter().copied().chain(added));
        assert!(before.visible(&later).contains(&"gone"));
    }

    #[test]
    fn row_21_custom_keeps_the_selection_when_it_is_applied_again() {
        let (catalog, saved) = (catalog(), saved());
        let current = select(&catalog, &saved, &["fetch", "mail_send"]);
        assert_eq!(reapply(&catalog, &saved, &["custom"], &current), current);
        assert_eq!(names(&reapply(&catalog, &saved, &["comms"], &current)), ["mail_send"]);
        // As a first choice the word stands for nothing.
        assert_eq!(select(&catalog, &saved, &["custom"]).dangling.as_deref(), Some("custom"));
    }

    #[test]
    fn a_gated_tool_is_invisible_and_the_info_counts_what_is_missing() {
        let (catalog, saved) = (catalog(), saved());
        let work = select(&catalog, &saved, &["work"]);
        assert_eq!(work.visible(&catalog), ["fetch", "note_purge"]);
        assert_eq!(
            work.info(&catalog),
            json!({ "name": "work", "function_count": 2, "base_count": 3, "expected_count": 4,
                "enabled_functions": ["fetch", "note_purge"], "status": "partial" })
        );
        let all = select(&catalog, &saved, &["all"]).info(&catalog);
        assert_eq!((&all["status"], &all["function_count"], &all["base_count"]), (&json!("ok"), &json!(6), &json!(7)));
    }

    #[test]
    fn extras_join_in_and_keep_the_label_and_unknown_ones_are_skipped() {
        let (catalog, saved) = (catalog(), saved());
        let extra = ["goals".to_owned(), "nonsense".to_owned(), "work".to_owned(), "all".to_owned(), "none".to_owned()];
        let made = resolve(&catalog, &saved, &Wish { toolset: Some("comms"), extra: &extra, ..Wish::default() });
        assert_eq!(made.label, "comms");
        assert_eq!(made.unknown, ["nonsense", "all"]);
        assert_eq!(made.names.unwrap(), ["fetch", "note_purge", "goal_list", "mail_send"]);
        let rows = [
            ("web, files", Some("web"), vec!["files"]),
            ("web", Some("web"), vec![]),
            (" , ,web,", Some("web"), vec![]),
            ("", None, vec![]),
        ];
        for (text, first, rest) in rows {
            assert_eq!(
                split_words(text),
                (first.map(str::to_owned), rest.into_iter().map(str::to_owned).collect()),
                "{text}"
            );
        }
    }

    #[test]
    fn bad_saved_toolsets_are_left_out_and_the_others_stay() {
        let (saved, warnings) =
            Saved::parse(r#"{ "a": { "functions": ["x"] }, "b": { "functions": 5 }, "c": 7, "d": {}, "e": ["y", 1] }"#)
                .unwrap();
        assert_eq!(saved.names().collect::<Vec<_>>(), ["a", "e"]);
        assert_eq!(warnings.len(), 4);
        assert_eq!(saved.get("e"), Some(&["y".to_owned()][..]));
        for text in ["", "[]", "5", "{\"a\"", "nonsense"] {
            assert!(Saved::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn words_for_a_chat_are_all_none_modules_and_saved_toolsets_but_not_categories() {
        let (catalog, saved) = (catalog(), saved());
        for (word, valid) in [
            ("all", true),
            ("none", true),
            ("web", true),
            ("work", true),
            ("comms", false),
            ("notes", false),
            ("x", false),
        ] {
            assert_eq!(is_valid_toolset(&catalog, &saved, word), valid, "{word}");
            assert_eq!(available(&catalog, &saved).contains(&word.to_owned()), valid, "{word}");
        }
    }

    #[test]
    fn categories_answer_in_order_and_by_what_tools_change() {
        let catalog = catalog();
        let order: Vec<&str> = categories(&catalog).into_iter().map(|(category, _)| category).collect();
        assert_eq!(order, ["web", "files", "memory", "goals", "comms", "system"]);
        let rows: [(&str, Option<bool>, &[&str]); 4] = [
            ("memory", None, &["note_save", "note_find"]),
            ("memory", Some(true), &["note_save"]),
            ("memory", Some(false), &["note_find"]),
            ("none", None, &[]),
        ];
        for (category, writes, expected) in rows {
            assert_eq!(in_category(&catalog, category, writes), expected);
        }
        assert_eq!(
            meta(&catalog, "note_save"),
            Some(json!({ "category": "memory", "writes": true, "module": "plugin_notes_notes", "plugin": "notes" }))
        );
        assert_eq!(meta(&catalog, "unknown"), None);
    }

    #[test]
    fn of_two_tools_with_one_name_the_first_counts() {
        let catalog = Catalog::new([entry("a", "m", "p", "web"), entry("a", "n", "q", "files")]);
        assert_eq!(catalog.tools().len(), 1);
        assert_eq!(catalog.tool("a").unwrap().module, "m");
    }
}
