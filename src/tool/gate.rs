//! Whether a call may run: the only code that decides it. Facts go in, a verdict comes out; nothing is looked up or remembered.

use super::names;
use super::spec::{Locality, Spec};
use super::toolset::category_scope;
use crate::base::error::{Error, Kind, excerpt};
use crate::service::permissions::{Grants, Missing, Permission};
use crate::service::scopes::ScopeValues;
use std::collections::BTreeSet;

/// How deep tool calls may nest: a call by a tool that was called by a tool that was called by a tool.
pub const NESTING: u8 = 3;
/// Most names that a refusal offers instead.
const ALTERNATIVES: usize = 10;

/// What the person in whose name a call runs may do.
#[derive(Debug, Clone, Copy)]
pub enum Held<'a> {
    /// The owner of the installation holds everything.
    Everything,
    /// These permissions.
    Only(&'a BTreeSet<Permission>),
}

/// Who reads a refusal, for what it advises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reader {
    /// A model, which can do without the tool, or a program.
    Model,
    /// Somebody at a terminal.
    Person,
}

/// The facts of a call to a tool that exists.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The tool.
    pub tool: &'a Spec,
    /// The plugin it belongs to.
    pub plugin: &'a str,
    /// Its resolved category.
    pub category: &'a str,
    /// Native code failed under this plugin too often.
    pub panicked: bool,
    /// The setting that switches the tool off now.
    pub gated_off: Option<&'a str>,
    /// The names that were offered, where only those may be called.
    pub allowed: Option<&'a BTreeSet<String>>,
    /// The chat is private.
    pub private: bool,
    /// Tools that do not say whether they are local may run in private chats.
    pub allow_unflagged: bool,
    /// The scopes of this call.
    pub scopes: &'a ScopeValues,
    /// What the plugin was granted.
    pub grants: &'a Grants,
    /// What the caller may do.
    pub held: Held<'a>,
    /// How many tool calls are around this one.
    pub depth: u8,
    /// Who reads the refusal.
    pub reader: Reader,
}

/// Why a plugin's tools cannot be called though it is known: for messages that help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// Switched off.
    Off,
    /// It does not load; the first diagnostic.
    Failed(String),
    /// It wants a tool name that another one has.
    Refused(String),
}

/// Nothing, or why not.
pub type Verdict = Result<(), Error>;

/// Decides a call.
///
/// # Errors
/// `disabled` where the tool is not callable here now, `permission_denied` for a missing permission, `quota` for calls nested too
/// deep; each says what to do.
pub fn decide(request: &Request<'_>) -> Verdict {
    let name = &request.tool.name;
    if let Some(allowed) = request.allowed
        && !allowed.contains(name)
    {
        return Err(not_offered(name, allowed, request.reader));
    }
    if request.depth > NESTING {
        return Err(Error::new(
            Kind::Quota,
            format!(
                "`{name}` would be the call number {} inside another; tools call tools at most {NESTING} deep",
                request.depth
            ),
        )
        .hint("call the tool from the tool that the model called"));
    }
    if let Some(setting) = request.gated_off {
        return Err(Error::new(Kind::Disabled, format!("the tool `{name}` is off while the setting `{setting}` is"))
            .hint(format!("type: lapidary settings set {} {setting} true", request.plugin)));
    }
    if request.panicked {
        return Err(Error::new(
            Kind::Disabled,
            format!("the plugin `{}` is quarantined: the host failed too often while it ran", request.plugin),
        )
        .hint(format!("type: lapidary reload {}, and report the fault", request.plugin)));
    }
    privacy(request)?;
    // A scope that nobody registered closes nothing.
    if let Some(scope) = category_scope(request.category)
        && request.scopes.get(scope).is_ok_and(|value| value.is_none())
    {
        return Err(Error::new(
            Kind::Disabled,
            format!("the tool `{name}` needs the scope `{scope}`, which is closed in this chat"),
        )
        .hint(match request.reader {
            Reader::Model => format!("choose a {scope} scope in the chat's settings, or answer without this tool"),
            Reader::Person => format!("choose a {scope} scope in the chat's settings"),
        }));
    }
    permissions(request)
}

fn not_offered(name: &str, allowed: &BTreeSet<String>, reader: Reader) -> Error {
    let error = Error::new(Kind::Disabled, format!("the tool `{name}` is not in the active toolset"));
    error.hint(alternatives(allowed.iter().map(String::as_str), reader))
}

fn alternatives<'a>(available: impl Iterator<Item = &'a str>, reader: Reader) -> String {
    let mut sorted: Vec<&str> = available.collect();
    sorted.sort_unstable();
    let more = sorted.len().saturating_sub(ALTERNATIVES);
    sorted.truncate(ALTERNATIVES);
    let names = sorted.join(", ");
    match (reader, sorted.is_empty(), more) {
        (Reader::Model, true, _) => "no tools are available; answer without tools".to_owned(),
        (Reader::Model, false, 0) => format!("call one of {names}, or answer without tools"),
        (Reader::Model, false, more) => format!("call one of {names} or {more} others, or answer without tools"),
        (Reader::Person, true, _) => "there are no tools yet; write one: lapidary new greet".to_owned(),
        (Reader::Person, false, 0) => format!("there are {names}"),
        (Reader::Person, false, more) => format!("there are {names} and {more} others; lapidary tools lists them"),
    }
}

fn privacy(request: &Request<'_>) -> Verdict {
    if !request.private {
        return Ok(());
    }
    let name = &request.tool.name;
    match &request.tool.is_local {
        Locality::Local => Ok(()),
        Locality::Unset if request.allow_unflagged => Ok(()),
        Locality::Unset => Err(Error::new(
            Kind::Disabled,
            format!("the tool `{name}` does not say whether it is local, so it does not run in a private chat"),
        )
        .hint("its author can add `is_local: true`, or the owner can allow such tools with `allow_unflagged_tools = true` under [privacy] in user/lapidary.toml; tell the user")),
        Locality::NotLocal | Locality::Endpoint | Locality::Other(_) => Err(Error::new(
            Kind::Disabled,
            format!("the tool `{name}` needs the network and is blocked in a private chat"),
        )
        .hint("tell the user that this needs a chat that is not private")),
    }
}

/// Declared by the tool, granted to the plugin, held by the caller: each within the next.
fn permissions(request: &Request<'_>) -> Verdict {
    let declared = &request.tool.permissions;
    let plugin = request.plugin;
    let missing: Vec<Missing> =
        declared.iter().filter(|p| !request.grants.allows(p)).map(|p| request.grants.lack(*p)).collect();
    match missing.as_slice() {
        [] => {}
        [one] => {
            let error = one.error(plugin).context(format!("`{}`", request.tool.name));
            // The tool's plugin has declared it, so that only the grant is left to say.
            let command = format!("lapidary grant {plugin} {}", one.argument());
            return Err(match (one.permission, one.names.is_empty()) {
                (Permission::ExternalHttp, true) => {
                    error.hint(format!("type: {command} for any host, or {command}=example.org for this one"))
                }
                _ => error.hint(format!("type: {command}")),
            });
        }
        several => {
            let words: Vec<String> = several.iter().map(|p| format!("`{p}`")).collect();
            let commands: Vec<String> = several.iter().map(|p| format!("lapidary grant {plugin} {p}")).collect();
            return Err(Error::denied(format!(
                "`{}`: the plugin `{plugin}` does not hold {}",
                request.tool.name,
                words.join(", ")
            ))
            .hint(format!("type: {}", commands.join("; ")))
            .with_user_action(format!("grant {} to the plugin `{plugin}`", words.join(", "))));
        }
    }
    if let Held::Only(held) = request.held
        && let Some(lacking) = declared.iter().find(|p| !held.contains(p))
    {
        return Err(Error::denied(format!(
            "`{}` needs `{lacking}`, which the caller does not hold",
            request.tool.name
        ))
        .hint(format!("an administrator can give `{lacking}` to the person this runs for")));
    }
    Ok(())
}

/// The refusal of a name that no tool has. `names` are those that this caller may be offered; `absent` are plugins whose tools
/// are missing now.
pub fn unknown<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a str>,
    absent: impl IntoIterator<Item = (&'a str, &'a Absence)>,
    reader: Reader,
) -> Error {
    let shown = excerpt(wanted, 80);
    let names: Vec<&str> = names.into_iter().collect();
    let error = Error::not_found(format!("there is no tool `{shown}`"));
    let folded = names::fold(wanted);
    let owner = absent.into_iter().find(|(plugin, _)| {
        let plugin = names::fold(plugin);
        plugin == folded || (plugin.len() >= 3 && folded.contains(&plugin))
    });
    if let Some((plugin, why)) = owner {
        return error.hint(match why {
            Absence::Off => format!("the plugin `{plugin}` is off; type: lapidary enable {plugin}"),
            Absence::Failed(_) => format!("the plugin `{plugin}` does not load; type: lapidary info {plugin}"),
            Absence::Refused(_) => {
                format!("the plugin `{plugin}` was refused over a name; type: lapidary info {plugin}")
            }
        });
    }
    let close = names::did_you_mean(wanted, names.iter().copied(), 3);
    if close.is_empty() {
        return error.hint(alternatives(names.into_iter(), reader));
    }
    let close: Vec<String> = close.into_iter().map(|n| format!("`{n}`")).collect();
    error.hint(format!("did you mean {}?", close.join(" or ")))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::service::permissions::{Declared, Record, effective};
    use crate::service::scopes::Registry;
    use serde_json::{Map, Value, json};

    fn spec(is_local: Locality, permissions: &[Permission]) -> Spec {
        let mut spec = Spec::new("do_it", "Does it.", json!({ "type": "object" }));
        spec.is_local = is_local;
        spec.permissions = permissions.to_vec();
        spec
    }

    /// Grants of a plugin that declares and was granted these words.
    fn granted(words: &[&str]) -> Grants {
        let declared = Declared::parse(&json!(words)).unwrap();
        let record = Record { granted: words.iter().map(|w| (*w).to_owned()).collect(), ..Record::default() };
        effective(&record, &declared)
    }

    fn request<'a>(tool: &'a Spec, scopes: &'a ScopeValues, grants: &'a Grants) -> Request<'a> {
        Request {
            tool,
            plugin: "dice",
            category: "web",
            panicked: false,
            gated_off: None,
            allowed: None,
            private: false,
            allow_unflagged: false,
            scopes,
            grants,
            held: Held::Everything,
            depth: 0,
            reader: Reader::Model,
        }
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|n| (*n).to_owned()).collect()
    }

    #[test]
    fn row_17_private_chats_run_local_tools_only_and_the_option_covers_unflagged_ones_alone() {
        let (scopes, grants) = (ScopeValues::default(), Grants::default());
        let other = || Locality::Other("yes".to_owned());
        let rows: [(Locality, bool, bool, Option<&str>); 20] = [
            (Locality::Local, false, false, None),
            (Locality::Local, true, false, None),
            (Locality::Local, true, true, None),
            (Locality::Local, false, true, None),
            (Locality::Unset, false, false, None),
            (Locality::Unset, false, true, None),
            (Locality::Unset, true, false, Some("does not say whether it is local")),
            (Locality::Unset, true, true, None),
            (Locality::NotLocal, false, false, None),
            (Locality::NotLocal, false, true, None),
            (Locality::NotLocal, true, false, Some("needs the network")),
            (Locality::NotLocal, true, true, Some("needs the network")),
            (Locality::Endpoint, false, false, None),
            (Locality::Endpoint, false, true, None),
            (Locality::Endpoint, true, false, Some("needs the network")),
            (Locality::Endpoint, true, true, Some("needs the network")),
            (other(), false, false, None),
            (other(), false, true, None),
            (other(), true, false, Some("needs the network")),
            (other(), true, true, Some("needs the network")),
        ];
        for (is_local, private, allow_unflagged, refusal) in rows {
            let tool = spec(is_local.clone(), &[]);
            let verdict = decide(&Request { private, allow_unflagged, ..request(&tool, &scopes, &grants) });
            match (verdict, refusal) {
                (Ok(()), None) => {}
                (Err(e), Some(words)) => {
                    assert_eq!(e.kind(), Kind::Disabled);
                    assert!(e.message().contains(words) && e.to_string().contains("tell the user"), "{e}");
                    assert_eq!(
                        e.to_string().contains("[privacy] in user/lapidary.toml"),
                        is_local == Locality::Unset,
                        "{e}"
                    );
                }
                (verdict, refusal) => panic!("{is_local:?} {private} {allow_unflagged}: {verdict:?}, not {refusal:?}"),
            }
        }
    }

    #[test]
    fn row_18_a_call_outside_the_toolset_is_offered_at_most_ten_names_sorted() {
        let (scopes, grants, tool) = (ScopeValues::default(), Grants::default(), spec(Locality::Local, &[]));
        let many: BTreeSet<String> = (0..25).rev().map(|i| format!("tool_{i:02}")).collect();
        let e = decide(&Request { allowed: Some(&many), ..request(&tool, &scopes, &grants) }).unwrap_err();
        assert_eq!(e.kind(), Kind::Disabled);
        let hint = e.hint_text().unwrap();
        assert!(hint.starts_with("call one of tool_00, tool_01, ") && hint.contains("tool_09 or 15 others"), "{hint}");
        assert!(!hint.contains("tool_10") && hint.ends_with("or answer without tools"), "{hint}");
        let few = set(&["b", "a"]);
        let e = decide(&Request { allowed: Some(&few), ..request(&tool, &scopes, &grants) }).unwrap_err();
        assert_eq!(e.hint_text(), Some("call one of a, b, or answer without tools"));
        let none = BTreeSet::new();
        let e = decide(&Request { allowed: Some(&none), ..request(&tool, &scopes, &grants) }).unwrap_err();
        assert_eq!(e.hint_text(), Some("no tools are available; answer without tools"));
        let own = set(&["do_it"]);
        assert!(decide(&Request { allowed: Some(&own), ..request(&tool, &scopes, &grants) }).is_ok());
    }

    #[test]
    fn permissions_of_the_tool_lie_within_the_plugins_and_those_within_the_callers() {
        use Permission::{ExternalHttp, ReadNotes, RunCommands, Spend};
        let all: BTreeSet<Permission> = Permission::ALL.iter().copied().collect();
        let notes: BTreeSet<Permission> = [ReadNotes].into();
        let none = BTreeSet::new();
        // declared by the tool, granted to the plugin, held by the caller, the word of the refusal
        type Row<'a> = (&'a [Permission], &'a [&'a str], Held<'a>, Option<&'a str>);
        let rows: Vec<Row<'_>> = vec![
            (&[], &[], Held::Everything, None),
            (&[], &[], Held::Only(&none), None),
            (&[ReadNotes], &["READ_NOTES"], Held::Everything, None),
            (&[ReadNotes], &["READ_NOTES"], Held::Only(&notes), None),
            (&[ReadNotes], &["READ_NOTES"], Held::Only(&all), None),
            (&[ReadNotes], &["READ_NOTES"], Held::Only(&none), Some("READ_NOTES")),
            (&[ReadNotes], &[], Held::Everything, Some("READ_NOTES")),
            (&[ReadNotes], &["WRITE_NOTES"], Held::Everything, Some("READ_NOTES")),
            (&[ReadNotes], &[], Held::Only(&all), Some("READ_NOTES")),
            (&[RunCommands], &["RUN_COMMANDS"], Held::Everything, None),
            (&[RunCommands], &["RUN_COMMANDS"], Held::Only(&notes), Some("RUN_COMMANDS")),
            (&[RunCommands], &[], Held::Everything, Some("RUN_COMMANDS")),
            (&[Spend, RunCommands], &["SPEND"], Held::Everything, Some("RUN_COMMANDS")),
            (&[Spend, RunCommands], &["SPEND", "RUN_COMMANDS"], Held::Everything, None),
            (&[ExternalHttp], &["EXTERNAL_HTTP"], Held::Everything, None),
            (&[ExternalHttp], &[], Held::Everything, Some("EXTERNAL_HTTP")),
            (&[ExternalHttp, ReadNotes], &["EXTERNAL_HTTP", "READ_NOTES"], Held::Only(&notes), Some("EXTERNAL_HTTP")),
        ];
        let scopes = ScopeValues::default();
        for (declared, words, held, refusal) in rows {
            let (tool, grants) = (spec(Locality::Local, declared), granted(words));
            match (decide(&Request { held, ..request(&tool, &scopes, &grants) }), refusal) {
                (Ok(()), None) => {}
                (Err(e), Some(word)) => {
                    assert_eq!(e.kind(), Kind::PermissionDenied);
                    assert!(e.message().contains(&format!("`{word}`")), "{e}");
                }
                (verdict, refusal) => panic!("{declared:?} {words:?} {held:?}: {verdict:?}, not {refusal:?}"),
            }
        }
    }

    #[test]
    fn a_missing_permission_says_what_to_type() {
        let scopes = ScopeValues::default();
        let one = spec(Locality::Local, &[Permission::RunCommands]);
        let e = decide(&request(&one, &scopes, &Grants::default())).unwrap_err();
        assert_eq!(e.hint_text(), Some("type: lapidary grant dice RUN_COMMANDS"));
        // Where the plugin names credentials, no more than those.
        let declared = Declared::parse(&json!([{"USE_SECRETS": ["weather", "tides"]}])).unwrap();
        let key = spec(Locality::Local, &[Permission::UseSecrets]);
        let e = decide(&request(&key, &scopes, &effective(&Record::default(), &declared))).unwrap_err();
        assert!(e.to_string().contains("lapidary grant dice USE_SECRETS=tides,weather"), "{e}");
        let two = spec(Locality::Local, &[Permission::RunCommands, Permission::Spend]);
        let e = decide(&request(&two, &scopes, &Grants::default())).unwrap_err();
        assert!(e.to_string().contains("lapidary grant dice RUN_COMMANDS; lapidary grant dice SPEND"), "{e}");
    }

    #[test]
    fn what_is_declared_but_was_taken_away_is_refused() {
        let declared = Declared::parse(&json!(["READ_NOTES"])).unwrap();
        let record = Record { denied: ["READ_NOTES".to_owned()].into(), ..Record::default() };
        let grants = effective(&record, &declared);
        let tool = spec(Locality::Local, &[Permission::ReadNotes]);
        assert_eq!(
            decide(&request(&tool, &ScopeValues::default(), &grants)).unwrap_err().kind(),
            Kind::PermissionDenied
        );
    }

    #[test]
    fn calls_nest_three_deep_and_no_deeper() {
        let (scopes, grants, tool) = (ScopeValues::default(), Grants::default(), spec(Locality::Local, &[]));
        for depth in 0..=3 {
            assert!(decide(&Request { depth, ..request(&tool, &scopes, &grants) }).is_ok(), "{depth}");
        }
        for depth in [4, 5, u8::MAX] {
            let e = decide(&Request { depth, ..request(&tool, &scopes, &grants) }).unwrap_err();
            assert_eq!(e.kind(), Kind::Quota, "{depth}");
            assert!(e.message().contains("at most 3 deep"), "{e}");
        }
    }

    #[test]
    fn a_tool_that_a_setting_hides_or_whose_plugin_failed_is_off() {
        let (scopes, grants, tool) = (ScopeValues::default(), Grants::default(), spec(Locality::Local, &[]));
        let e = decide(&Request { gated_off: Some("use_beta"), ..request(&tool, &scopes, &grants) }).unwrap_err();
        assert_eq!(e.kind(), Kind::Disabled);
        assert!(e.to_string().contains("lapidary settings set dice use_beta true"), "{e}");
        let e = decide(&Request { panicked: true, ..request(&tool, &scopes, &grants) }).unwrap_err();
        assert_eq!(e.kind(), Kind::Disabled);
        assert!(e.to_string().contains("lapidary reload dice"), "{e}");
    }

    #[test]
    fn a_closed_scope_closes_the_tools_that_need_it() {
        let registry = Registry::new();
        registry.register("memory", "memory", Some("default")).unwrap();
        registry.register("goal", "goals", None).unwrap();
        let values = |settings: Value| registry.values(settings.as_object().unwrap_or(&Map::new()));
        let (grants, tool) = (Grants::default(), spec(Locality::Local, &[]));
        let rows = [
            ("memory", json!({}), true),
            ("memory", json!({ "memory_scope": "work" }), true),
            ("memory", json!({ "memory_scope": "none" }), false),
            ("goals", json!({}), false),
            ("goals", json!({ "goal_scope": "x" }), true),
            ("people", json!({}), true),
            ("web", json!({ "memory_scope": "none" }), true),
        ];
        for (category, settings, runs) in rows {
            let scopes = values(settings.clone());
            let verdict = decide(&Request { category, ..request(&tool, &scopes, &grants) });
            assert_eq!(verdict.is_ok(), runs, "{category} {settings}");
            if let Err(e) = verdict {
                assert_eq!(e.kind(), Kind::Disabled);
            }
        }
    }

    #[test]
    fn hidden_is_no_reason_to_refuse() {
        let mut tool = spec(Locality::Local, &[]);
        tool.hidden = true;
        assert!(decide(&request(&tool, &ScopeValues::default(), &Grants::default())).is_ok());
    }

    #[test]
    fn an_unknown_tool_gets_names_that_help() {
        let names = ["roll_dice", "web_search", "clock_now"];
        let failed = Absence::Failed("user/tools/maps.rhai:3:1: secret words".to_owned());
        let absent = [("mapsplugin", &Absence::Off), ("notes", &failed), ("x", &Absence::Off)];
        let rows = [
            ("roll_dcie", "did you mean `roll_dice`?"),
            ("RollDice", "did you mean `roll_dice`?"),
            ("search", "did you mean `web_search`?"),
            ("zzz", "call one of clock_now, roll_dice, web_search, or answer without tools"),
            ("notes_find", "the plugin `notes` does not load; type: lapidary info notes"),
            ("mapsplugin_show", "the plugin `mapsplugin` is off; type: lapidary enable mapsplugin"),
        ];
        for (wanted, hint) in rows {
            let e = unknown(wanted, names, absent, Reader::Model);
            assert_eq!((e.kind(), e.hint_text()), (Kind::NotFound, Some(hint)), "{wanted}");
            assert!(!e.to_string().contains("secret words"));
        }
        let e = unknown(&"\u{1b}x".repeat(1_000), [], [], Reader::Model);
        assert!(e.message().len() < 800 && !e.message().contains('\u{1b}'));
        assert_eq!(e.hint_text(), Some("no tools are available; answer without tools"));
    }
    #[test]
    fn a_person_is_told_what_there_is_and_not_how_to_answer() {
        let (scopes, grants, tool) = (ScopeValues::default(), Grants::default(), spec(Locality::Local, &[]));
        let offered = set(&["b", "a"]);
        let many: Vec<String> = (0..25).map(|i| format!("tool_{i:02}")).collect();
        let person = Request { reader: Reader::Person, allowed: Some(&offered), ..request(&tool, &scopes, &grants) };
        for (refusal, hint) in [
            (unknown("zzz", [], [], Reader::Person), "there are no tools yet; write one: lapidary new greet"),
            (unknown("zzz", ["roll_dice"], [], Reader::Person), "there are roll_dice"),
            (decide(&person).unwrap_err(), "there are a, b"),
        ] {
            assert_eq!(refusal.hint_text(), Some(hint));
        }
        let e = unknown("zzz", many.iter().map(String::as_str), [], Reader::Person);
        assert!(e.hint_text().unwrap().ends_with("tool_09 and 15 others; lapidary tools lists them"), "{e}");
    }
}
