//! `grant` and `revoke`: what the owner lets a plugin do.

use super::context::{Context, Done, Stop, Verdict, known};
use super::print::{self, Table};
use crate::app::Host;
use crate::base::error::Error;
use crate::plugin::consent::Decision;
use crate::service::permissions::{self, Grant as Granted, Permission};
use clap::Args;
use serde_json::{Value, json};

/// Let a plugin do something; without a permission, show what it may do
#[derive(Args)]
#[command(after_help = "\
Examples:
  lapidary grant weather EXTERNAL_HTTP=api.example.org
  lapidary grant player folder:music=/home/me/Music")]
pub struct Grant {
    /// The plugin
    plugin: String,
    /// PERMISSION, PERMISSION=name,.. or folder:name=/path
    #[arg(value_name = "PERMISSION")]
    permissions: Vec<String>,
}

/// Take a permission away from a plugin
#[derive(Args)]
pub struct Revoke {
    /// The plugin
    plugin: String,
    /// PERMISSION, PERMISSION=name,.. or folder:name
    #[arg(value_name = "PERMISSION", required = true)]
    permissions: Vec<String>,
}

impl Grant {
    pub(super) fn run(&self, cx: &Context) -> Done {
        decide(&self.plugin, &self.permissions, Decision::Grant, cx)
    }
}

impl Revoke {
    pub(super) fn run(&self, cx: &Context) -> Done {
        decide(&self.plugin, &self.permissions, Decision::Revoke, cx)
    }
}

fn decide(plugin: &str, words: &[String], decision: Decision, cx: &Context) -> Done {
    let wanted = read(words)?;
    let host = cx.host()?;
    known(&host, plugin)?;
    let store = &host.services().grants;
    for grant in &wanted {
        match decision {
            Decision::Grant => store.grant(plugin, grant)?,
            Decision::Revoke => store.revoke(plugin, grant)?,
        }
    }
    show(&host, plugin, &wanted, cx)
}

/// All words are read before the first one counts.
fn read(words: &[String]) -> Result<Vec<Granted>, Stop> {
    let mut all = Vec::new();
    for word in words {
        all.extend(Granted::parse(word).map_err(Stop::Usage)?);
    }
    Ok(all)
}

/// What the plugin declares, and what it holds of that; `wanted` was just decided.
fn show(host: &Host, plugin: &str, wanted: &[Granted], cx: &Context) -> Done {
    host.plugins().grants_changed();
    let status = known(host, plugin)?;
    let record = host.services().grants.record(plugin)?;
    if cx.json {
        let record = serde_json::to_value(&record).map_err(|e| Error::internal(e.to_string()))?;
        print::json(&json!({
            "plugin": plugin,
            "declared": status.permissions,
            "missing": status.missing_permissions,
            "decided": record,
        }));
        return Ok(Verdict::Good);
    }
    let Some(generation) = host.plugins().live(plugin) else {
        print::line(format_args!("{plugin}: the decision is stored; the plugin does not load now ({})", status.status));
        return Ok(Verdict::Good);
    };
    let grants = generation.plugin.grants.load_full();
    let declared = generation.declared.permissions();
    // Folders need no declaration: who asks for them alone is told of them alone.
    let is_about_folders = !wanted.is_empty() && wanted.iter().all(|one| matches!(one, Granted::Folder { .. }));
    if declared.is_empty() {
        if !is_about_folders {
            print::line(format_args!("{plugin} declares no permission."));
        }
    } else {
        let missing = permissions::missing(&generation.declared, &grants);
        let mut table = Table::plain();
        for permission in &declared {
            let gap = missing.iter().find(|m| m.permission == *permission);
            let held = match gap {
                None => "granted".to_owned(),
                Some(m) => format!("needs: lapidary grant {plugin} {}", m.argument()),
            };
            table.row([permission.as_str().to_owned(), permission.meaning().to_owned(), held]);
        }
        print::line(table.render(0));
    }
    let words = Permission::ALL.iter().filter(|p| record.granted.contains(p.as_str()) && !declared.contains(p));
    let hosts = record.hosts.iter().filter(|host| !generation.declared.asks_for_host(host));
    let secrets = record.secrets.iter().filter(|name| !generation.declared.asks_for_secret(name));
    let unasked = words
        .map(ToString::to_string)
        .chain(hosts.map(|host| format!("{}={host}", Permission::ExternalHttp)))
        .chain(secrets.map(|name| format!("{}={name}", Permission::UseSecrets)));
    for what in unasked {
        print::note(format_args!("note: {plugin} does not declare {what}, so the grant does nothing until it does"));
    }
    for name in wanted.iter().filter_map(|one| match one {
        Granted::Folder { name, .. } if !record.folders.contains_key(name) => Some(name),
        _ => None,
    }) {
        print::line(format_args!("folder {name}: taken back"));
    }
    for (name, path) in &record.folders {
        print::line(format_args!("folder {name}: {}", path.display()));
    }
    Ok(Verdict::Good)
}

/// Permissions of a plugin for `info --json`.
pub(super) fn missing_json(missing: &[String], plugin: &str) -> Value {
    missing.iter().map(|m| json!({ "permission": m, "grant": format!("lapidary grant {plugin} {m}") })).collect()
}
