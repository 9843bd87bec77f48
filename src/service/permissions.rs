//! The closed list of permissions, what a script declares, what it is granted, and the rule between the two.
//! Pure values and rules; the file of grants is `grants.rs`, and the decision about a call is the gate's.

use crate::base::error::{Error, Kind, Result, excerpt};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

pub mod word;

pub use word::{GUARDED, GUARDED_BY_FOLDER, Permission};

pub use super::grants::{Grant, GrantStore, Record};

/// How far a permission that can carry a list reaches.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Reach {
    /// Nowhere.
    #[default]
    None,
    /// To these names only.
    Listed(BTreeSet<String>),
    /// Everywhere.
    Any,
}

impl Reach {
    /// Whether it reaches anything.
    #[must_use]
    pub fn is_none(&self) -> bool {
        matches!(self, Reach::None)
    }

    /// As a list of hosts: whether one of its patterns is `host` or stands for it.
    fn covers(&self, host: &str) -> bool {
        match self {
            Reach::None => false,
            Reach::Any => true,
            Reach::Listed(patterns) => {
                let host = normal_host(host);
                patterns.iter().any(|pattern| covers(pattern, &host))
            }
        }
    }

    fn of(names: BTreeSet<String>) -> Reach {
        if names.is_empty() { Reach::None } else { Reach::Listed(names) }
    }

    fn union(self, other: Reach) -> Reach {
        match (self, other) {
            (Reach::Any, _) | (_, Reach::Any) => Reach::Any,
            (Reach::Listed(a), Reach::Listed(b)) => Reach::Listed(a.into_iter().chain(b).collect()),
            (Reach::None, other) | (other, Reach::None) => other,
        }
    }
}

/// What a manifest, a script's `PERMISSIONS` or a tool's `permissions` asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    words: BTreeSet<Permission>,
    hosts: Reach,
    /// The hosts that are listed by name, also where `hosts` is any.
    named_hosts: BTreeSet<String>,
    secrets: Reach,
}

impl Declared {
    /// Whether a plugin holds all of it without its owner's word, whatever it declared before.
    #[must_use]
    pub fn is_harmless(&self) -> bool {
        self.hosts.is_none() && self.secrets.is_none() && self.words.iter().all(|word| word.harmless())
    }

    /// Whether a grant of this host would count: it is declared, or any host is.
    #[must_use]
    pub fn asks_for_host(&self, host: &str) -> bool {
        self.hosts.covers(host)
    }

    /// Whether a grant of this credential would count.
    #[must_use]
    pub fn asks_for_secret(&self, name: &str) -> bool {
        match &self.secrets {
            Reach::None => false,
            Reach::Any => true,
            Reach::Listed(names) => names.contains(name),
        }
    }

    /// Reads a list such as `["READ_NOTES", {"EXTERNAL_HTTP": ["api.example.org", "*.example.net"]}]`; `null` is the empty list.
    ///
    /// # Errors
    /// `invalid_arguments` for anything else, naming the entry: an unknown word, a list on a permission that takes none, a host
    /// with a scheme, port or path, or a wildcard wider than one domain.
    pub fn parse(value: &Value) -> Result<Declared> {
        let entries = match value {
            Value::Null => return Ok(Declared::default()),
            Value::Array(entries) => entries,
            _ => return Err(Error::invalid("permissions are a list of words").hint("write [\"READ_NOTES\"]")),
        };
        let mut declared = Declared::default();
        for entry in entries {
            match entry {
                Value::String(word) => declared.add(Permission::read(word)?, Reach::Any),
                Value::Object(map) => {
                    for (word, names) in map {
                        let permission = Permission::read(word)?;
                        declared.add(permission, Reach::Listed(listed(permission, names)?));
                    }
                }
                other => {
                    return Err(Error::invalid(format!("a permission is a word or a map of lists, not {other}")));
                }
            }
        }
        Ok(declared)
    }

    fn add(&mut self, permission: Permission, reach: Reach) {
        match permission {
            Permission::ExternalHttp => {
                if let Reach::Listed(names) = &reach {
                    self.named_hosts.extend(names.iter().cloned());
                }
                self.hosts = std::mem::take(&mut self.hosts).union(reach);
            }
            Permission::UseSecrets => self.secrets = std::mem::take(&mut self.secrets).union(reach),
            word => {
                self.words.insert(word);
            }
        }
    }

    /// This and `other` together.
    #[must_use]
    pub fn merge(mut self, other: Declared) -> Declared {
        self.words.extend(other.words);
        self.hosts = self.hosts.union(other.hosts);
        self.named_hosts.extend(other.named_hosts);
        self.secrets = self.secrets.union(other.secrets);
        self
    }

    /// Whether nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty() && self.hosts.is_none() && self.secrets.is_none()
    }

    /// The permissions asked for, without their lists, in the order of [`Permission::ALL`].
    #[must_use]
    pub fn permissions(&self) -> Vec<Permission> {
        let asked = |p: &Permission| match p {
            Permission::ExternalHttp => !self.hosts.is_none(),
            Permission::UseSecrets => !self.secrets.is_none(),
            word => self.words.contains(word),
        };
        Permission::ALL.iter().copied().filter(asked).collect()
    }

    /// What is asked for as people read it: `READ_NOTES`, `EXTERNAL_HTTP=api.example.org`. A list of hosts beside any host is
    /// a word of its own.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let listed = |p: Permission, names: &BTreeSet<String>| {
            format!("{p}={}", names.iter().map(String::as_str).collect::<Vec<_>>().join(","))
        };
        let shown = |p: Permission| match p {
            Permission::ExternalHttp => {
                let named = (!self.named_hosts.is_empty()).then(|| listed(p, &self.named_hosts));
                named.into_iter().chain((self.hosts == Reach::Any).then(|| p.to_string())).collect()
            }
            Permission::UseSecrets => match &self.secrets {
                Reach::Listed(names) => vec![listed(p, names)],
                _ => vec![p.to_string()],
            },
            _ => vec![p.to_string()],
        };
        self.permissions().into_iter().flat_map(shown).collect()
    }

    /// How far `EXTERNAL_HTTP` is asked for.
    #[must_use]
    pub fn hosts(&self) -> &Reach {
        &self.hosts
    }

    /// How far `USE_SECRETS` is asked for.
    #[must_use]
    pub fn secrets(&self) -> &Reach {
        &self.secrets
    }
}

impl<'de> Deserialize<'de> for Declared {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Declared::parse(&Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Declared {
    fn schema_name() -> Cow<'static, str> {
        "Permissions".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = Permission::ALL.iter().map(|p| p.as_str()).collect();
        let names = json_schema!({ "type": "array", "minItems": 1, "items": { "type": "string" } });
        json_schema!({
            "description": "What the plugin may do, once granted. EXTERNAL_HTTP and USE_SECRETS may list hosts and credentials.",
            "type": "array",
            "items": { "anyOf": [
                { "type": "string", "enum": words },
                {
                    "type": "object",
                    "properties": { "EXTERNAL_HTTP": names.clone(), "USE_SECRETS": names },
                    "additionalProperties": false
                }
            ] }
        })
    }
}

fn listed(permission: Permission, names: &Value) -> Result<BTreeSet<String>> {
    if !matches!(permission, Permission::ExternalHttp | Permission::UseSecrets) {
        return Err(Error::invalid(format!("`{permission}` takes no list")).hint("write the word alone"));
    }
    let names = names.as_array().filter(|names| !names.is_empty()).ok_or_else(|| {
        Error::invalid(format!("`{permission}` needs a list with at least one name")).hint("or write the word alone")
    })?;
    names
        .iter()
        .map(|name| {
            let name =
                name.as_str().ok_or_else(|| Error::invalid(format!("`{permission}` lists texts, not {name}")))?;
            if permission == Permission::ExternalHttp { host_pattern(name) } else { secret_name(name) }
        })
        .collect()
}

/// A host of a list in its one spelling: lower case, no trailing dot, an IPv6 address without brackets, or `*.` and a domain.
///
/// # Errors
/// `invalid_arguments` for a scheme, port, path or user, for letters beyond ASCII, and for a wildcard over a whole top level.
pub fn host_pattern(text: &str) -> Result<String> {
    let shown = excerpt(text, 80);
    let refuse = |why: &str, hint: &str| Err(Error::invalid(format!("`{shown}` is not a host: {why}")).hint(hint));
    let host = normal_host(text);
    let bare = host.strip_prefix("*.").unwrap_or(&host);
    if bare.parse::<std::net::Ipv6Addr>().is_ok() && bare == host {
        return Ok(host);
    }
    if bare.is_empty() || bare.contains('*') {
        return refuse(
            "a wildcard stands only for the names below a domain",
            "write `*.example.org`, or the permission's word alone for any host",
        );
    }
    if !bare.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')) {
        return refuse("only the name is written, without scheme, port or path", "write `api.example.org`");
    }
    if bare.split('.').any(str::is_empty) || host.len() > 253 {
        return refuse("it has an empty part or is too long", "write `api.example.org`");
    }
    if bare != host && (!bare.contains('.') || bare.parse::<std::net::Ipv4Addr>().is_ok()) {
        return refuse("the wildcard is too wide", "name a domain with at least two parts");
    }
    Ok(host)
}

/// A credential's name: 1 to 64 letters, digits, `_`, `-`, `.`, `:` or `/`.
///
/// # Errors
/// `invalid_arguments` for anything else.
pub fn secret_name(text: &str) -> Result<String> {
    let fits = !text.is_empty()
        && text.len() <= 64
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b':' | b'/'));
    if fits {
        Ok(text.to_string())
    } else {
        let shown = excerpt(text, 80);
        Err(Error::invalid(format!("`{shown}` is not the name of a credential")))
    }
}

pub(super) fn normal_host(text: &str) -> String {
    let host = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// What a plugin may do: declared by it, and granted by the owner or by the rule for harmless powers. Default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    pub(super) words: BTreeSet<Permission>,
    pub(super) hosts: Reach,
    /// The part of `hosts` that the owner granted, and not the plugin's own list.
    pub(super) owner_hosts: Reach,
    pub(super) secrets: Reach,
    pub(super) folders: BTreeMap<String, PathBuf>,
    /// What is declared and not held.
    pub(super) lacking: Vec<Missing>,
    /// What the owner took away, whether or not it is declared.
    denied: BTreeSet<Permission>,
}

impl Grants {
    /// Whether the permission is held, for at least one host or secret where it reaches only some.
    #[must_use]
    pub fn allows(&self, permission: &Permission) -> bool {
        match permission {
            Permission::ExternalHttp => !self.hosts.is_none(),
            Permission::UseSecrets => !self.secrets.is_none(),
            word => self.words.contains(word),
        }
    }

    /// Whether requests to `host` are allowed: listed itself, or below a listed `*.domain`, or any host is.
    #[must_use]
    pub fn allows_host(&self, host: &str) -> bool {
        self.hosts.covers(host)
    }

    /// Whether requests to `host` are allowed and the owner said so, beside the plugin's own list.
    #[must_use]
    pub fn owner_allows_host(&self, host: &str) -> bool {
        self.hosts.covers(host) && self.owner_hosts.covers(host)
    }

    /// Whose credentials it may use.
    #[must_use]
    pub fn secrets(&self) -> &Reach {
        &self.secrets
    }

    /// Whether the credential `name` may be used.
    #[must_use]
    pub fn allows_secret(&self, name: &str) -> bool {
        match &self.secrets {
            Reach::None => false,
            Reach::Any => true,
            Reach::Listed(names) => names.contains(name),
        }
    }

    /// A granted user folder.
    #[must_use]
    pub fn folder(&self, name: &str) -> Option<&Path> {
        self.folders.get(name).map(PathBuf::as_path)
    }

    /// Names of the granted user folders, sorted.
    pub fn folder_names(&self) -> impl Iterator<Item = &str> {
        self.folders.keys().map(String::as_str)
    }

    /// How far `EXTERNAL_HTTP` reaches.
    #[must_use]
    pub fn hosts(&self) -> &Reach {
        &self.hosts
    }

    /// `Ok` where the permission is held.
    ///
    /// # Errors
    /// `permission_denied` naming the permission and what to type.
    pub fn require(&self, permission: Permission, plugin: &str) -> Result<()> {
        if self.allows(&permission) {
            return Ok(());
        }
        Err(self.lack(permission).error(plugin))
    }

    /// What has to be granted for a permission that is not held: the names that are declared, where names are.
    #[must_use]
    pub fn lack(&self, permission: Permission) -> Missing {
        let declared = self.lacking.iter().find(|missing| missing.permission == permission);
        declared.cloned().unwrap_or(Missing { permission, names: Vec::new() })
    }
}

/// `pattern` is an exact host or `*.domain`; `host` is in its one spelling.
pub(super) fn covers(pattern: &str, host: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        None => pattern == host,
    }
}

/// A declared permission that is not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which.
    pub permission: Permission,
    /// The hosts or credentials that are not covered; empty where the permission as a whole is missing.
    pub names: Vec<String>,
}

impl Missing {
    /// The argument of `lapidary grant <plugin> ..` that would grant it.
    #[must_use]
    pub fn argument(&self) -> String {
        if self.names.is_empty() {
            self.permission.to_string()
        } else {
            format!("{}={}", self.permission, self.names.join(","))
        }
    }

    /// The failure of a call that needs it.
    #[must_use]
    pub fn error(&self, plugin: &str) -> Error {
        let argument = self.argument();
        Error::new(Kind::PermissionDenied, format!("the plugin `{plugin}` does not hold `{argument}`"))
            .hint(format!("declare it in PERMISSIONS or plugin.json, then type: lapidary grant {plugin} {argument}"))
            .with_user_action(format!("grant `{argument}` to the plugin `{plugin}`"))
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.argument())
    }
}

/// What of `declared` is not in `grants`, in the order of [`Permission::ALL`]. Empty means: may run.
/// A permission declared for any host but granted for some is held: the owner narrowed it, and each request is checked.
#[must_use]
pub fn missing(declared: &Declared, grants: &Grants) -> Vec<Missing> {
    let uncovered = |asked: &Reach, held: &Reach, covered: &dyn Fn(&str) -> bool| match (asked, held) {
        (Reach::None, _) | (_, Reach::Any) | (Reach::Any, Reach::Listed(_)) => None,
        (Reach::Any, Reach::None) => Some(Vec::new()),
        (Reach::Listed(names), _) => {
            let open: Vec<String> = names.iter().filter(|name| !covered(name)).cloned().collect();
            (!open.is_empty()).then_some(open)
        }
    };
    Permission::ALL
        .iter()
        .filter_map(|&permission| {
            let names = match permission {
                Permission::ExternalHttp => uncovered(&declared.hosts, &grants.hosts, &|name| match &grants.hosts {
                    Reach::Listed(held) => held.iter().any(|pattern| pattern == name || covers(pattern, name)),
                    _ => false,
                })?,
                Permission::UseSecrets => {
                    uncovered(&declared.secrets, &grants.secrets, &|name| grants.allows_secret(name))?
                }
                word if declared.words.contains(&word) && !grants.words.contains(&word) => Vec::new(),
                _ => return None,
            };
            Some(Missing { permission, names })
        })
        .collect()
}

/// What `new` asks for beyond a version before it, and its owner has not granted: that version declared `old` and held `held`.
/// Hosts that are listed count, though a plugin that is new holds them at once: who let a plugin in saw its list then, not now.
/// What the owner took away is no question any more: a version does without it.
#[must_use]
pub fn grown(old: &Declared, held: &Grants, new: &Declared, grants: &Grants) -> Vec<Missing> {
    let before = missing(old, grants);
    let mut more: Vec<Missing> = missing(new, grants)
        .into_iter()
        .filter_map(|asked| match before.iter().find(|m| m.permission == asked.permission) {
            None => Some(asked),
            Some(known) if known.names.is_empty() => None,
            // It asked for some by name, and now for any.
            Some(_) if asked.names.is_empty() => Some(asked),
            Some(known) => {
                let names: Vec<String> = asked.names.into_iter().filter(|name| !known.names.contains(name)).collect();
                (!names.is_empty()).then_some(Missing { permission: asked.permission, names })
            }
        })
        .collect();
    if !more.iter().any(|m| m.permission == Permission::ExternalHttp) {
        let reached = |reach: &Reach, name: &String| match reach {
            Reach::None => false,
            Reach::Any => true,
            Reach::Listed(patterns) => patterns.iter().any(|pattern| pattern == name || covers(pattern, name)),
        };
        let names: Vec<String> = new
            .named_hosts
            .iter()
            .filter(|name| !reached(&held.hosts, name) && !reached(&grants.owner_hosts, name))
            .cloned()
            .collect();
        if !names.is_empty() {
            more.push(Missing { permission: Permission::ExternalHttp, names });
        }
    }
    more.retain(|asked| !grants.denied.contains(&asked.permission));
    more
}

/// The rule for what a plugin that the owner put there, or that is shipped, holds: only what it declares; of that the harmless
/// powers and the listed hosts at once, also where any host is asked for beside them, and the rest where the owner granted it.
/// What the owner revoked it does not hold.
#[must_use]
pub fn effective(record: &Record, declared: &Declared) -> Grants {
    let granted = |p: Permission| record.granted.contains(p.as_str());
    let denied = |p: Permission| record.denied.contains(p.as_str());
    let words = declared.words.iter().copied().filter(|&p| !denied(p) && (p.harmless() || granted(p))).collect();
    let hosts = match &declared.hosts {
        _ if denied(Permission::ExternalHttp) => Reach::None,
        Reach::None => Reach::None,
        Reach::Listed(hosts) => Reach::Listed(hosts.clone()),
        Reach::Any if granted(Permission::ExternalHttp) => Reach::Any,
        Reach::Any => Reach::of(record.hosts.union(&declared.named_hosts).cloned().collect()),
    };
    let owner_hosts = if granted(Permission::ExternalHttp) { Reach::Any } else { Reach::of(record.hosts.clone()) };
    let secrets = match &declared.secrets {
        _ if denied(Permission::UseSecrets) => Reach::None,
        Reach::None => Reach::None,
        asked if granted(Permission::UseSecrets) => asked.clone(),
        Reach::Listed(names) => Reach::of(names.intersection(&record.secrets).cloned().collect()),
        Reach::Any => Reach::of(record.secrets.clone()),
    };
    let folders = record.folders.clone();
    let denied = Permission::ALL.iter().copied().filter(|&p| denied(p)).collect();
    let mut grants = Grants { words, hosts, owner_hosts, secrets, folders, lacking: Vec::new(), denied };
    grants.lacking = missing(declared, &grants);
    grants
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn declared(value: Value) -> Declared {
        Declared::parse(&value).unwrap()
    }

    #[test]
    fn a_version_asks_for_more_by_what_its_owner_has_not_said_yes_to() {
        let record = |words: &[&str], hosts: &[&str], secrets: &[&str]| {
            let set = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<BTreeSet<_>>();
            Record { granted: set(words), hosts: set(hosts), secrets: set(secrets), ..Record::default() }
        };
        let denied =
            |words: &[&str]| Record { denied: words.iter().map(|s| (*s).to_owned()).collect(), ..Record::default() };
        let nothing = record(&[], &[], &[]);
        let http = |hosts: &[&str]| json!([{ "EXTERNAL_HTTP": hosts }]);
        // what was declared, what is declared now, what the owner granted, what is asked for beyond
        let rows = [
            (json!([]), json!([]), nothing.clone(), vec![]),
            (json!([]), json!(["READ_NOTES"]), nothing.clone(), vec![]),
            (json!([]), json!(["RUN_COMMANDS"]), nothing.clone(), vec!["RUN_COMMANDS"]),
            (json!(["RUN_COMMANDS"]), json!(["RUN_COMMANDS"]), nothing.clone(), vec![]),
            (json!(["RUN_COMMANDS"]), json!(["RUN_COMMANDS", "SPEND"]), nothing.clone(), vec!["SPEND"]),
            (json!([]), json!(["RUN_COMMANDS"]), record(&["RUN_COMMANDS"], &[], &[]), vec![]),
            (json!([]), http(&["a.example"]), nothing.clone(), vec!["EXTERNAL_HTTP=a.example"]),
            (http(&["a.example"]), http(&["a.example"]), nothing.clone(), vec![]),
            (http(&["a.example", "b.example"]), http(&["a.example"]), nothing.clone(), vec![]),
            (http(&["a.example"]), http(&["a.example", "b.example"]), nothing.clone(), vec!["EXTERNAL_HTTP=b.example"]),
            (http(&["a.example"]), http(&["a.example", "b.example"]), record(&[], &["b.example"], &[]), vec![]),
            (http(&["a.example"]), http(&["b.example"]), record(&["EXTERNAL_HTTP"], &[], &[]), vec![]),
            (http(&["*.a.example"]), http(&["x.a.example"]), nothing.clone(), vec![]),
            (http(&["x.a.example"]), http(&["*.a.example"]), nothing.clone(), vec!["EXTERNAL_HTTP=*.a.example"]),
            (http(&["a.example"]), json!(["EXTERNAL_HTTP"]), nothing.clone(), vec!["EXTERNAL_HTTP"]),
            (json!(["EXTERNAL_HTTP"]), http(&["a.example"]), nothing.clone(), vec!["EXTERNAL_HTTP=a.example"]),
            (json!(["EXTERNAL_HTTP"]), http(&["a.example"]), record(&["EXTERNAL_HTTP"], &[], &[]), vec![]),
            (
                json!([{"USE_SECRETS": ["a"]}]),
                json!([{"USE_SECRETS": ["a", "b"]}]),
                nothing.clone(),
                vec!["USE_SECRETS=b"],
            ),
            (json!([{"USE_SECRETS": ["a", "b"]}]), json!([{"USE_SECRETS": ["a"]}]), nothing.clone(), vec![]),
            (json!([{"USE_SECRETS": ["a"]}]), json!([{"USE_SECRETS": ["a", "b"]}]), record(&[], &[], &["b"]), vec![]),
            // To what was taken away the answer is known.
            (json!([]), json!(["READ_NOTES"]), denied(&["READ_NOTES"]), vec![]),
            (json!([]), json!(["RUN_COMMANDS", "SPEND"]), denied(&["RUN_COMMANDS"]), vec!["SPEND"]),
            (json!([]), http(&["a.example"]), denied(&["EXTERNAL_HTTP"]), vec![]),
            (http(&["a.example"]), http(&["a.example", "b.example"]), denied(&["EXTERNAL_HTTP"]), vec![]),
            (json!([]), json!([{"USE_SECRETS": ["a"]}]), denied(&["USE_SECRETS"]), vec![]),
        ];
        for (old, new, record, want) in rows {
            let (old, new) = (declared(old), declared(new));
            let more = grown(&old, &effective(&record, &old), &new, &effective(&record, &new));
            assert_eq!(more.iter().map(Missing::argument).collect::<Vec<_>>(), want, "{old:?} {new:?} {record:?}");
        }
    }

    #[test]
    fn bad_declarations_are_refused_with_a_reason() {
        let rows = [
            (json!("EXTERNAL_HTTP"), "a list"),
            (json!({"EXTERNAL_HTTP": ["a.b"]}), "a list"),
            (json!([1]), "not 1"),
            (json!([["READ_NOTES"]]), "a word or a map"),
            (json!(["NOPE"]), "no permission `NOPE`"),
            (json!([{"READ_NOTES": ["x"]}]), "takes no list"),
            (json!([{"EXTERNAL_HTTP": []}]), "at least one"),
            (json!([{"EXTERNAL_HTTP": "a.b"}]), "at least one"),
            (json!([{"EXTERNAL_HTTP": [1]}]), "lists texts"),
            (json!([{"EXTERNAL_HTTP": ["https://a.b"]}]), "not a host"),
            (json!([{"EXTERNAL_HTTP": ["a.b/path"]}]), "not a host"),
            (json!([{"EXTERNAL_HTTP": ["a.b:80"]}]), "not a host"),
            (json!([{"EXTERNAL_HTTP": ["user@a.b"]}]), "not a host"),
            (json!([{"EXTERNAL_HTTP": ["*"]}]), "not a host"),
            (json!([{"EXTERNAL_HTTP": ["*.org"]}]), "too wide"),
            (json!([{"EXTERNAL_HTTP": ["*.10.0.0.1"]}]), "too wide"),
            (json!([{"EXTERNAL_HTTP": ["a.*.b"]}]), "not a host"),
            (json!([{"EXTERNAL_HTTP": ["a..b"]}]), "empty part"),
            (json!([{"EXTERNAL_HTTP": ["münchen.example"]}]), "not a host"),
            (json!([{"EXTERNAL_HTTP": [""]}]), "not a host"),
            (json!([{"USE_SECRETS": ["a b"]}]), "not the name"),
            (json!([{"USE_SECRETS": [""]}]), "not the name"),
        ];
        for (value, word) in rows {
            let e = Declared::parse(&value).unwrap_err();
            assert_eq!(e.kind(), Kind::InvalidArguments, "{value}");
            assert!(e.message().contains(word), "{value}: {e}");
        }
    }

    #[test]
    fn declarations_add_up_and_the_word_alone_reaches_everywhere() {
        let one = declared(json!([{"EXTERNAL_HTTP": ["A.Example.org."]}, "READ_NOTES"]));
        assert_eq!(one.hosts(), &Reach::Listed(["a.example.org".to_string()].into()));
        let both = one.clone().merge(declared(json!([{"EXTERNAL_HTTP": ["[::1]"]}, {"USE_SECRETS": ["git"]}])));
        assert_eq!(both.hosts(), &Reach::Listed(["a.example.org".to_string(), "::1".to_string()].into()));
        assert_eq!(both.permissions(), [Permission::ReadNotes, Permission::ExternalHttp, Permission::UseSecrets]);
        assert_eq!(both.words(), ["READ_NOTES", "EXTERNAL_HTTP=::1,a.example.org", "USE_SECRETS=git"]);
        assert_eq!(one.merge(declared(json!(["EXTERNAL_HTTP"]))).hosts(), &Reach::Any);
        assert!(declared(json!(null)).is_empty() && declared(json!([])).is_empty());
    }

    #[test]
    fn nothing_is_held_by_default() {
        let grants = Grants::default();
        assert!(Permission::ALL.iter().all(|p| !grants.allows(p)));
        assert!(!grants.allows_host("a.example.org") && !grants.allows_secret("x") && grants.folder("x").is_none());
        let e = grants.require(Permission::RunCommands, "dice").unwrap_err();
        assert_eq!(e.kind(), Kind::PermissionDenied);
        assert!(e.hint_text().unwrap().contains("lapidary grant dice RUN_COMMANDS"), "{e}");
    }

    #[test]
    fn hosts_are_exact_or_below_a_listed_domain() {
        let grants = effective(
            &Record::default(),
            &declared(json!([{"EXTERNAL_HTTP": ["api.example.org", "*.cdn.example", "10.0.0.1", "::1"]}])),
        );
        for yes in [
            "api.example.org",
            "API.Example.Org",
            "api.example.org.",
            "a.cdn.example",
            "a.b.cdn.example",
            "10.0.0.1",
            "::1",
            "[::1]",
        ] {
            assert!(grants.allows_host(yes), "{yes}");
        }
        for no in [
            "example.org",
            "x.api.example.org",
            "evilapi.example.org",
            "cdn.example",
            "evilcdn.example",
            ".cdn.example",
            "10.0.0.2",
            "api.example.org.evil",
            "",
        ] {
            assert!(!grants.allows_host(no), "{no}");
        }
    }

    /// One row: what is declared, what the owner did, what is held and what is missing.
    type Row = (Value, Value, &'static [&'static str], &'static [&'static str]);

    #[test]
    fn the_rule_between_declared_and_granted() {
        let rows: &[Row] = &[
            (json!([]), json!({}), &[], &[]),
            (json!([]), json!({"granted": ["RUN_COMMANDS", "SPEND"]}), &[], &[]),
            (json!(["READ_NOTES"]), json!({}), &["READ_NOTES"], &[]),
            (json!(["WRITE_NOTES", "START_AGENTS"]), json!({}), &["WRITE_NOTES", "START_AGENTS"], &[]),
            (json!(["READ_NOTES"]), json!({"denied": ["READ_NOTES"]}), &[], &["READ_NOTES"]),
            (json!(["READ_NOTES"]), json!({"granted": ["READ_NOTES"], "denied": ["READ_NOTES"]}), &[], &["READ_NOTES"]),
            (json!(["RUN_COMMANDS"]), json!({}), &[], &["RUN_COMMANDS"]),
            (json!(["RUN_COMMANDS"]), json!({"granted": ["RUN_COMMANDS"]}), &["RUN_COMMANDS"], &[]),
            (json!(["WRITE_EXTERNAL", "SPEND"]), json!({}), &[], &["WRITE_EXTERNAL", "SPEND"]),
            (json!(["WRITE_EXTERNAL", "SPEND"]), json!({"granted": ["SPEND"]}), &["SPEND"], &["WRITE_EXTERNAL"]),
            (json!(["USE_SECRETS"]), json!({}), &[], &["USE_SECRETS"]),
            (json!(["USE_SECRETS"]), json!({"secrets": ["git"]}), &["USE_SECRETS"], &[]),
            (json!([{"USE_SECRETS": ["git", "mail"]}]), json!({}), &[], &["USE_SECRETS=git,mail"]),
            (
                json!([{"USE_SECRETS": ["git", "mail"]}]),
                json!({"secrets": ["git"]}),
                &["USE_SECRETS"],
                &["USE_SECRETS=mail"],
            ),
            (json!([{"USE_SECRETS": ["git"]}]), json!({"granted": ["USE_SECRETS"]}), &["USE_SECRETS"], &[]),
            (json!([{"USE_SECRETS": ["git"]}]), json!({"secrets": ["other"]}), &[], &["USE_SECRETS=git"]),
            (json!(["EXTERNAL_HTTP"]), json!({}), &[], &["EXTERNAL_HTTP"]),
            (json!(["EXTERNAL_HTTP"]), json!({"granted": ["EXTERNAL_HTTP"]}), &["EXTERNAL_HTTP"], &[]),
            (json!(["EXTERNAL_HTTP"]), json!({"hosts": ["a.example"]}), &["EXTERNAL_HTTP"], &[]),
            (json!([{"EXTERNAL_HTTP": ["a.example"]}]), json!({}), &["EXTERNAL_HTTP"], &[]),
            (
                json!([{"EXTERNAL_HTTP": ["a.example"]}]),
                json!({"denied": ["EXTERNAL_HTTP"]}),
                &[],
                &["EXTERNAL_HTTP=a.example"],
            ),
            (json!([{"EXTERNAL_HTTP": ["a.example"]}, "EXTERNAL_HTTP"]), json!({}), &["EXTERNAL_HTTP"], &[]),
            (
                json!([{"EXTERNAL_HTTP": ["a.example"]}, "EXTERNAL_HTTP"]),
                json!({"denied": ["EXTERNAL_HTTP"]}),
                &[],
                &["EXTERNAL_HTTP"],
            ),
            (json!(["READ_NOTES"]), json!({"granted": ["A_WORD_OF_TOMORROW"]}), &["READ_NOTES"], &[]),
        ];
        for (asked, record, held, open) in rows {
            let asked = declared(asked.clone());
            let record: Record = serde_json::from_value(record.clone()).unwrap();
            let grants = effective(&record, &asked);
            let has: Vec<_> = Permission::ALL.iter().filter(|p| grants.allows(p)).map(|p| p.as_str()).collect();
            let mut wanted = held.to_vec();
            wanted.sort_by_key(|w| Permission::ALL.iter().position(|p| p.as_str() == *w));
            assert_eq!(has, wanted, "{asked:?} {record:?}");
            let lacks: Vec<_> = missing(&asked, &grants).iter().map(Missing::argument).collect();
            assert_eq!(lacks, *open, "{asked:?} {record:?}");
        }
    }

    #[test]
    fn a_grant_never_reaches_beyond_what_is_declared() {
        let record: Record = serde_json::from_value(
            json!({"granted": ["EXTERNAL_HTTP", "USE_SECRETS"], "hosts": ["b.example"], "secrets": ["x"]}),
        )
        .unwrap();
        let grants = effective(&record, &declared(json!([{"EXTERNAL_HTTP": ["a.example"]}, {"USE_SECRETS": ["git"]}])));
        assert!(grants.allows_host("a.example") && !grants.allows_host("b.example"));
        assert!(grants.allows_secret("git") && !grants.allows_secret("x"));
    }

    #[test]
    fn hosts_listed_beside_any_host_are_held_at_once_and_others_where_they_are_granted() {
        let asked = declared(json!([{"EXTERNAL_HTTP": ["a.example"]}])).merge(declared(json!(["EXTERNAL_HTTP"])));
        assert_eq!(asked.words(), ["EXTERNAL_HTTP=a.example", "EXTERNAL_HTTP"]);
        let rows = [
            (json!({}), [true, false, false]),
            (json!({"hosts": ["b.example"]}), [true, true, false]),
            (json!({"granted": ["EXTERNAL_HTTP"]}), [true, true, true]),
            (json!({"hosts": ["b.example"], "denied": ["EXTERNAL_HTTP"]}), [false, false, false]),
        ];
        for (record, expected) in rows {
            let grants = effective(&serde_json::from_value(record.clone()).unwrap(), &asked);
            let held = ["a.example", "b.example", "c.example"].map(|host| grants.allows_host(host));
            assert_eq!(held, expected, "{record}");
        }
        // The plugin's own list is not the owner's word.
        assert!(!effective(&Record::default(), &asked).owner_allows_host("a.example"));
    }

    #[test]
    fn a_tool_asks_within_what_its_plugin_holds() {
        let held =
            effective(&Record::default(), &declared(json!([{"EXTERNAL_HTTP": ["*.example.org"]}, "READ_NOTES"])));
        assert!(missing(&declared(json!([{"EXTERNAL_HTTP": ["api.example.org"]}])), &held).is_empty());
        assert!(missing(&declared(json!(["EXTERNAL_HTTP"])), &held).is_empty());
        assert_eq!(missing(&declared(json!(["SEND_MESSAGES", {"EXTERNAL_HTTP": ["other.example"]}])), &held).len(), 2);
    }
}
