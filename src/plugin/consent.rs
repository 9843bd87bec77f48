//! What a plugin may do, in words: what it declares, what its owner decided, and what a version that waits asks for.
//! It tells; what counts is the rule in `service::permissions`.

use super::discover::Found;
use super::set::Plugins;
use crate::base::error::Result;
use crate::service::permissions::{self, Declared, Grant, Grants, Missing, Permission, Reach, Record};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a plugin may do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Consent {
    /// What it asks for, and what was granted without being asked for.
    pub permissions: Vec<Power>,
    /// Hosts that the owner granted beside those that the plugin lists.
    pub hosts: Vec<String>,
    /// Folders of the owner's that it may read and write, by the name that scripts use.
    pub folders: BTreeMap<String, String>,
    /// Credentials that the owner granted, by name.
    pub secrets: Vec<String>,
    /// What the version on disk asks for beyond the one that answers: it waits until that is granted.
    pub wishes: Vec<Wish>,
}

/// One permission of a plugin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Power {
    /// The word, such as `EXTERNAL_HTTP`.
    pub permission: String,
    /// What it allows, in words that go on from "it may".
    pub says: String,
    /// The hosts or credentials it is limited to; empty where it is not.
    pub names: Vec<String>,
    /// Whether the plugin asks for it.
    pub declared: bool,
    /// Whether the plugin holds all that it asks for of it.
    pub granted: bool,
    /// Whether the owner took it away.
    pub denied: bool,
    /// What to grant, where something is missing: the argument of a grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<String>,
    /// Why it is not as one might expect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// A permission that a version waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Wish {
    /// The word.
    pub permission: String,
    /// What it allows, in words that go on from "it may".
    pub says: String,
    /// What to grant: the argument of a grant.
    pub grant: String,
}

impl Wish {
    fn of(missing: &Missing) -> Wish {
        Wish {
            permission: missing.permission.to_string(),
            says: missing.permission.says(&missing.names),
            grant: missing.argument(),
        }
    }
}

/// Whether something is granted or taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Grant,
    /// It may not.
    Revoke,
}

impl Plugins {
    /// What a plugin may do, as its owner decides about it. It may build a version that waits, so it is not for a runtime thread.
    ///
    /// # Errors
    /// `not_found` for a plugin that nobody knows; what the file system says.
    pub fn consent(self: &Arc<Self>, name: &str) -> Result<Consent> {
        let found = self.known(name)?;
        let record = self.loader.services.grants.record(name)?;
        let live = self.live(name);
        let mut declared = live.as_ref().map(|live| (*live.declared).clone()).unwrap_or_default();
        let mut wishes = Vec::new();
        if self.status(name).is_some_and(|status| status.waiting)
            && let Ok(new) = self.check(&found)
        {
            let grants = new.plugin.grants.load();
            wishes = match &live {
                Some(live) => permissions::grown(&live.declared, &live.plugin.grants.load(), &new.declared, &grants),
                None => permissions::missing(&new.declared, &grants),
            };
            if live.is_none() {
                declared = (*new.declared).clone();
            }
        }
        let held = self.loader.services.grants.effective(name, &declared);
        Ok(Consent {
            permissions: powers(&declared, &held, &record),
            hosts: record.hosts.iter().cloned().collect(),
            folders: record.folders.iter().map(|(name, path)| (name.clone(), path.display().to_string())).collect(),
            secrets: record.secrets.iter().cloned().collect(),
            wishes: wishes.iter().map(Wish::of).collect(),
        })
    }

    /// Grants or revokes what `text` names, as `lapidary grant` reads it, and tells what the plugin may do then. A version that
    /// waited for it is live when this returns.
    ///
    /// # Errors
    /// `not_found` for a plugin that nobody knows, `invalid_arguments` for a text that names nothing, and what the file of grants
    /// says.
    pub fn decide(self: &Arc<Self>, name: &str, text: &str, decision: Decision) -> Result<Consent> {
        self.known(name)?;
        let store = &self.loader.services.grants;
        for grant in Grant::parse(text)? {
            match decision {
                Decision::Grant => store.grant(name, &grant)?,
                Decision::Revoke => store.revoke(name, &grant)?,
            }
        }
        self.grants_changed();
        self.consent(name)
    }

    /// What a version asks for, in words, for somebody who is about to let it in.
    pub(super) fn asked_by(&self, found: &Found, declared: &Declared) -> Vec<Power> {
        let held = self.loader.services.grants.effective(&found.name, declared);
        powers(declared, &held, &self.loader.services.grants.record(&found.name).unwrap_or_default())
    }
}

fn powers(declared: &Declared, held: &Grants, record: &Record) -> Vec<Power> {
    let missing = permissions::missing(declared, held);
    let asked = declared.permissions();
    let mut powers: Vec<Power> = asked
        .iter()
        .map(|&permission| {
            let names: Vec<String> = match permission {
                Permission::ExternalHttp => listed(declared.hosts()),
                Permission::UseSecrets => listed(declared.secrets()),
                _ => Vec::new(),
            };
            let gap = missing.iter().find(|gap| gap.permission == permission);
            let denied = record.denied.contains(permission.as_str());
            Power {
                permission: permission.to_string(),
                says: permission.says(&names),
                declared: true,
                granted: gap.is_none(),
                denied,
                grant: gap.map(Missing::argument),
                why: match gap {
                    None => None,
                    Some(_) if denied => Some("you took it away".to_owned()),
                    Some(_) => Some("it needs your yes".to_owned()),
                },
                names,
            }
        })
        .collect();
    // What was granted and is not asked for does nothing, and should be seen.
    let unasked = Permission::ALL.iter().filter(|p| record.granted.contains(p.as_str()) && !asked.contains(p));
    powers.extend(unasked.map(|permission| Power {
        permission: permission.to_string(),
        says: permission.says(&[]),
        names: Vec::new(),
        declared: false,
        granted: false,
        denied: false,
        grant: None,
        why: Some("it was granted, and does nothing until the plugin declares it".to_owned()),
    }));
    powers
}

fn listed(reach: &Reach) -> Vec<String> {
    match reach {
        Reach::Listed(names) => names.iter().cloned().collect(),
        Reach::None | Reach::Any => Vec::new(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn told(declared: Value, record: Value) -> Vec<(String, bool, bool, bool)> {
        let declared = Declared::parse(&declared).unwrap();
        let record: Record = serde_json::from_value(record).unwrap();
        let held = permissions::effective(&record, &declared);
        let power = |p: Power| (p.permission, p.declared, p.granted, p.denied);
        powers(&declared, &held, &record).into_iter().map(power).collect()
    }

    #[test]
    fn each_power_says_whether_it_is_asked_for_held_and_taken_away() {
        let rows = [
            (json!([]), json!({}), vec![]),
            (json!(["READ_NOTES"]), json!({}), vec![("READ_NOTES", true, true, false)]),
            (json!(["READ_NOTES"]), json!({ "denied": ["READ_NOTES"] }), vec![("READ_NOTES", true, false, true)]),
            (json!(["RUN_COMMANDS"]), json!({}), vec![("RUN_COMMANDS", true, false, false)]),
            (
                json!(["RUN_COMMANDS"]),
                json!({ "granted": ["RUN_COMMANDS"] }),
                vec![("RUN_COMMANDS", true, true, false)],
            ),
            (json!([]), json!({ "granted": ["SPEND"] }), vec![("SPEND", false, false, false)]),
            (json!([{ "EXTERNAL_HTTP": ["a.example"] }]), json!({}), vec![("EXTERNAL_HTTP", true, true, false)]),
            (json!(["EXTERNAL_HTTP"]), json!({}), vec![("EXTERNAL_HTTP", true, false, false)]),
        ];
        for (declared, record, expected) in rows {
            let expected: Vec<_> = expected.into_iter().map(|(p, d, g, x)| (p.to_owned(), d, g, x)).collect();
            assert_eq!(told(declared.clone(), record.clone()), expected, "{declared} {record}");
        }
    }

    #[test]
    fn what_it_may_do_goes_on_from_it_may() {
        let names = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            Permission::ExternalHttp.says(&names(&["a.example", "*.b.example"])),
            "talk to a.example and *.b.example"
        );
        assert_eq!(Permission::ExternalHttp.says(&[]), "talk to any host on the internet");
        assert_eq!(Permission::UseSecrets.says(&names(&["git"])), "use the credential git");
        assert_eq!(Permission::RunCommands.says(&[]), "run programs on this machine");
        for permission in Permission::ALL {
            let says = permission.says(&[]);
            assert!(says.starts_with(|c: char| c.is_ascii_lowercase()) && !says.ends_with('.'), "{says}");
        }
    }
}
