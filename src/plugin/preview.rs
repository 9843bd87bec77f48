//! What a model would read of a plugin's tools, in a dialect, now and under other settings. It looks: nothing is saved, and
//! nothing that is live changes.

use super::set::Plugins;
use super::tune::{Change, diff};
use crate::base::error::{Error, Result};
use crate::tool::dialect::{Definition, Dialect, WireNames, define};
use crate::tool::names::did_you_mean;
use crate::tool::registry::LiveTool;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What to look at.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// Whose form the definitions have.
    pub dialect: Dialect,
    /// The settings to look under; those in force where there is no change.
    pub change: Option<Change>,
}

/// What a model would read.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Preview {
    /// The plugin whose tools these are.
    pub plugin: String,
    /// Whose form the definitions have.
    pub dialect: Dialect,
    /// The tools, in source order.
    pub tools: Vec<ToolPreview>,
    /// Estimated tokens of those that are offered.
    pub tokens: usize,
    /// The same without the change.
    pub tokens_before: usize,
    /// The effective settings under the change, those of password fields masked; nothing where no change was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<Map<String, Value>>,
    /// Names that `get_tools()` returned under the change and that are not registered: they need a reload.
    pub ignored: Vec<String>,
    /// The version of the stored settings that the change was tried on; for a save that must find them so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
}

/// What a model would read of one tool.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ToolPreview {
    /// The exact definition, under the change.
    #[serde(flatten)]
    pub definition: Definition,
    /// Whether models get it, under the change: a setting may switch it off, and hidden tools come only by name.
    pub offered: bool,
    /// Whether models get it now.
    pub offered_before: bool,
    /// Estimated tokens of the definition as it is now.
    pub tokens_before: usize,
    /// What the change does to [`Definition::reading`], as a unified diff; empty where it stays.
    pub diff: String,
}

impl Preview {
    /// Whether a model would read anything else than now.
    #[must_use]
    pub fn changes_something(&self) -> bool {
        self.tools.iter().any(|t| !t.diff.is_empty() || t.offered != t.offered_before)
    }
}

impl Plugins {
    /// What a model would read of a tool, or of every tool of a plugin; a name that is both is the tool. A change is checked as
    /// a save would check it, and `get_tools()` runs on the live version under it, as a refresh does. Nothing is saved.
    ///
    /// # Errors
    /// `not_found` for a name that is neither a live tool nor a plugin, or a plugin without settings to change; `disabled` for
    /// a plugin that is off; `invalid_arguments` naming the key for a change that a save would refuse.
    pub fn preview(self: &Arc<Self>, subject: &str, look: &Look) -> Result<Preview> {
        match self.snapshot.load().get(subject) {
            Some(tool) => self.preview_some(&tool.plugin().name, Some(subject), look),
            None => self.preview_some(subject, None, look).map_err(|e| self.no_subject(subject, e)),
        }
    }

    /// As [`Plugins::preview`], for a name that is a plugin's and no tool's.
    ///
    /// # Errors
    /// As [`Plugins::preview`].
    pub fn preview_of_plugin(self: &Arc<Self>, plugin: &str, look: &Look) -> Result<Preview> {
        self.preview_some(plugin, None, look)
    }

    fn preview_some(self: &Arc<Self>, plugin: &str, only: Option<&str>, look: &Look) -> Result<Preview> {
        let snapshot = self.snapshot.load_full();
        let plugin = plugin.to_owned();
        let now = snapshot.of_plugin(&plugin);
        if now.is_empty() {
            // Says why there is nothing to look at: unknown, off, or not loaded.
            self.generation_for_settings(&plugin)?;
        }
        let under = match &look.change {
            Some(change) => Some(self.under(&plugin, change)?),
            None => None,
        };
        let next = under.as_ref().map_or(now, |under| &under.tools);
        let names = WireNames::new(snapshot.iter().map(|tool| tool.spec.name.as_str()));
        let mut made = Preview {
            plugin,
            dialect: look.dialect,
            tools: Vec::new(),
            tokens: 0,
            tokens_before: 0,
            settings: None,
            ignored: Vec::new(),
            etag: None,
        };
        for tool in next.iter().filter(|tool| only.is_none_or(|name| tool.spec.name == name)) {
            let old = now.iter().find(|old| old.spec.name == tool.spec.name).unwrap_or(tool);
            let preview = compare(old, tool, look.dialect, &names);
            made.tokens += if preview.offered { preview.definition.tokens } else { 0 };
            made.tokens_before += if preview.offered_before { preview.tokens_before } else { 0 };
            made.tools.push(preview);
        }
        if let Some(under) = under {
            made.settings = Some(under.settings);
            made.ignored = under.ignored;
            made.etag = Some(under.etag);
        }
        Ok(made)
    }

    /// The error for a name that is no plugin: tools may have been meant as well.
    fn no_subject(&self, subject: &str, error: Error) -> Error {
        if self.status(subject).is_some() {
            return error;
        }
        let snapshot = self.snapshot.load_full();
        let plugins = self.names();
        let known = snapshot.iter().map(|t| t.spec.name.as_str()).chain(plugins.iter().map(|name| &**name));
        let close = did_you_mean(subject, known, 3);
        let error = Error::not_found(format!("no tool and no plugin `{subject}`"));
        if close.is_empty() {
            error.hint("lapidary tools lists the tools, lapidary info the plugins")
        } else {
            error.hint(format!("did you mean {}", close.join(", ")))
        }
    }
}

fn compare(old: &Arc<LiveTool>, new: &Arc<LiveTool>, dialect: Dialect, names: &WireNames) -> ToolPreview {
    let definition = define(&new.spec, dialect, names);
    let (tokens_before, diff) = if Arc::ptr_eq(&old.spec, &new.spec) {
        (definition.tokens, String::new())
    } else {
        let before = define(&old.spec, dialect, names);
        let (a, b) = (before.reading(), definition.reading());
        (before.tokens, if a == b { String::new() } else { diff(&a, &b) })
    };
    ToolPreview { offered: new.is_offered(), offered_before: old.is_offered(), tokens_before, diff, definition }
}
