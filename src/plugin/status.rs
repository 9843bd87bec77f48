//! What is to be said about a plugin: one value for the command line, the API, the page and the model.

use super::set::{Entry, Plugins};
use crate::script::diagnostic::{Diagnostic, Severity};
use schemars::JsonSchema;
use serde::Serialize;

/// The code of a finding that is nothing wrong, but asks the owner for a permission.
pub(super) const WISH: &str = "permission";

/// What the disk holds beside what is live.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disk {
    /// Not looked at yet.
    Unread,
    /// What is live.
    Same,
    /// Live, but some files never worked.
    Partly {
        /// What is wrong with those.
        diagnostics: Vec<Diagnostic>,
    },
    /// A newer version that does not load.
    Failed {
        /// Its number.
        number: u64,
        /// What is wrong.
        diagnostics: Vec<Diagnostic>,
    },
    /// A newer version that loads and asks for more than the live one holds: it waits for its owner's yes.
    Waits {
        /// Its number.
        number: u64,
        /// What it asks for, and how that is granted.
        diagnostics: Vec<Diagnostic>,
    },
    /// A version whose tool names belong to another plugin.
    Refused {
        /// Its number.
        number: u64,
        /// Which name, and whose it is.
        diagnostics: Vec<Diagnostic>,
    },
    /// Switched off.
    Off,
}

impl Disk {
    /// What is to be said of a generation that is live.
    #[must_use]
    pub fn of(generation: &super::load::Generation) -> Disk {
        if generation.broken.is_empty() {
            Disk::Same
        } else {
            Disk::Partly { diagnostics: generation.broken.values().flatten().cloned().collect() }
        }
    }

    /// What is to be said of version `number`, which does not go live: it waits where there is nothing but wishes.
    #[must_use]
    pub fn stopped(number: u64, diagnostics: Vec<Diagnostic>) -> Disk {
        if !diagnostics.is_empty() && diagnostics.iter().all(|d| d.code == WISH) {
            Disk::Waits { number, diagnostics }
        } else {
            Disk::Failed { number, diagnostics }
        }
    }

    /// The findings.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Disk::Unread | Disk::Same | Disk::Off => &[],
            Disk::Partly { diagnostics }
            | Disk::Failed { diagnostics, .. }
            | Disk::Waits { diagnostics, .. }
            | Disk::Refused { diagnostics, .. } => diagnostics,
        }
    }

    /// The first finding that stops it, or the first of all.
    #[must_use]
    pub fn first(&self) -> Option<&Diagnostic> {
        let found = self.diagnostics();
        found.iter().find(|d| d.severity == Severity::Error).or(found.first())
    }

    /// Whether a newer version does not go live for a reason of its own.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self, Disk::Failed { .. } | Disk::Waits { .. })
    }

    /// Whether there is something to mend.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        !self.diagnostics().is_empty()
    }
}

/// A tool that is left out while its neighbours work.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LeftOut {
    /// Its name.
    pub tool: String,
    /// Why, in one line with the place.
    pub reason: String,
}

/// The status of one plugin.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// `tool file`, `plugin folder`, `shipped` or `extra`.
    pub origin: &'static str,
    /// Where it is, relative to the root.
    pub path: String,
    /// One line: `live 7`, `live 7, disk 8 failed`, `live 7, disk 8 waits for a yes`, `off`, `failed`.
    pub status: String,
    /// Whether it is switched on.
    pub enabled: bool,
    /// The generation that answers.
    pub live: Option<u64>,
    /// The newer one on disk that does not load, or waits.
    pub disk: Option<u64>,
    /// Whether that one loads and waits for its owner's yes; `diagnostics` say what it asks for.
    pub waiting: bool,
    /// Hash of what is live.
    pub hash: Option<String>,
    /// What its manifest or its `//!` comment says.
    pub description: String,
    /// Its version, where it states one.
    pub version: Option<String>,
    /// Its tools.
    pub tools: Vec<String>,
    /// Its routes: the method and the path.
    pub routes: Vec<String>,
    /// Tools that are left out, and why.
    pub quarantined: Vec<LeftOut>,
    /// Capabilities that this host knows of and does not run yet.
    pub not_active_yet: Vec<String>,
    /// Permissions it declares.
    pub permissions: Vec<String>,
    /// Permissions it declares and does not have.
    pub missing_permissions: Vec<String>,
    /// What is wrong with the version on disk, or what it waits for.
    pub diagnostics: Vec<Diagnostic>,
    /// What should be looked at.
    pub warnings: Vec<Diagnostic>,
}

impl Plugins {
    /// The status of one plugin.
    #[must_use]
    pub fn status(&self, name: &str) -> Option<Status> {
        self.state().entries.get(name).map(|e| self.describe(e))
    }

    /// The status of all, by name.
    #[must_use]
    pub fn statuses(&self) -> Vec<Status> {
        self.state().entries.values().map(|e| self.describe(e)).collect()
    }

    fn describe(&self, entry: &Entry) -> Status {
        let live = entry.live.as_ref();
        let disk = match &entry.disk {
            Disk::Failed { number, .. } | Disk::Waits { number, .. } | Disk::Refused { number, .. } => Some(*number),
            _ => None,
        };
        let grants = live.map(|g| g.plugin.grants.load_full());
        Status {
            name: entry.found.name.clone(),
            origin: entry.found.origin.as_str(),
            path: entry.found.place(),
            status: line(entry, live.map(|g| g.number), disk),
            enabled: entry.enabled,
            live: live.map(|g| g.number),
            disk,
            waiting: matches!(entry.disk, Disk::Waits { .. }),
            hash: live.map(|g| g.hash.to_string()),
            description: live.map(|g| describe_text(g)).unwrap_or_default(),
            version: live.and_then(|g| g.manifest.version.clone()),
            tools: live
                .map(|g| g.files.iter().flat_map(|f| f.tools.iter().map(|t| t.spec.name.clone())).collect())
                .unwrap_or_default(),
            routes: live
                .map(|g| g.files.iter().flat_map(|f| f.routes.iter().map(|r| r.spec.name.clone())).collect())
                .unwrap_or_default(),
            quarantined: live
                .map(|g| {
                    g.quarantined
                        .iter()
                        .map(|q| LeftOut { tool: q.tool.clone(), reason: q.diagnostic.summary() })
                        .collect()
                })
                .unwrap_or_default(),
            not_active_yet: live.map(|g| g.manifest.capabilities.inactive.clone()).unwrap_or_default(),
            permissions: live.map(|g| g.declared.words()).unwrap_or_default(),
            missing_permissions: live
                .zip(grants.as_deref())
                .map(|(g, grants)| {
                    crate::service::permissions::missing(&g.declared, grants).iter().map(ToString::to_string).collect()
                })
                .unwrap_or_default(),
            diagnostics: entry.disk.diagnostics().to_vec(),
            warnings: live
                .map(|g| g.warnings.clone())
                .unwrap_or_default()
                .into_iter()
                .chain(entry.notes.clone())
                .collect(),
        }
    }
}

fn describe_text(generation: &super::load::Generation) -> String {
    generation.manifest.description.clone().filter(|d| !d.is_empty()).unwrap_or_else(|| {
        generation.files.iter().find_map(|f| f.unit.program.doc.lines().next().map(str::to_owned)).unwrap_or_default()
    })
}

/// The status line: the same words on every door.
fn line(entry: &Entry, live: Option<u64>, disk: Option<u64>) -> String {
    let mut text = match (live, &entry.disk) {
        (_, Disk::Off) => "off".to_owned(),
        (Some(live), Disk::Failed { number, .. }) => format!("live {live}, disk {number} failed"),
        (Some(live), Disk::Waits { number, .. }) => format!("live {live}, disk {number} waits for a yes"),
        (Some(live), Disk::Refused { number, .. }) => format!("live {live}, disk {number} refused"),
        (Some(live), Disk::Partly { .. }) => format!("live {live}, some files failed"),
        (Some(live), _) => format!("live {live}"),
        (None, Disk::Waits { .. }) => "waits for a yes".to_owned(),
        (None, Disk::Refused { .. }) => "refused".to_owned(),
        (None, _) => "failed".to_owned(),
    };
    // The place and message come along, wherever the line is shown.
    if disk.is_some()
        && let Some(first) = entry.disk.first()
    {
        let place = if first.line > 0 { format!(": {}:{}", first.line, first.column) } else { String::new() };
        text.push_str(&format!("{place}, {}", first.message));
    }
    if let Some(generation) = &entry.live {
        for q in &generation.quarantined {
            text.push_str(&format!("; quarantined: tool {}", q.tool));
        }
    }
    text
}
