//! `settings`: stored settings through the same transaction as every other door.

use super::context::{Context, Done, Stop, Verdict, known};
use super::credentials::ask;
use super::print::{self, Table};
use crate::app::Host;
use crate::base::error::Error;
use crate::base::json as strict;
use crate::plugin::tune::{Change, Mode, Tuned, View};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

/// Show and change a plugin's settings
#[derive(Args)]
pub struct Settings {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// All settings of a plugin; without a name, the plugins that have some
    List {
        /// The plugin
        plugin: Option<String>,
    },
    /// One setting's value; without a key, all of them
    Get {
        /// The plugin
        plugin: String,
        /// The setting
        key: Option<String>,
    },
    /// Change a setting; nothing is saved when the tools would break under it
    Set {
        /// The plugin
        plugin: String,
        /// The setting
        key: String,
        /// The new value: text, number, true or false, or a JSON list; `-` asks for a password, or reads it from stdin
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Only show what a model would read differently
        #[arg(long)]
        preview: bool,
    },
    /// Back to the defaults: one setting, or all
    Reset {
        /// The plugin
        plugin: String,
        /// The setting; all of them without it
        key: Option<String>,
        /// Only show what a model would read differently
        #[arg(long)]
        preview: bool,
    },
}

impl Settings {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let host = cx.host()?;
        match &self.what {
            What::List { plugin: Some(plugin) } | What::Get { plugin, key: None } => list(&host, plugin, cx),
            What::List { plugin: None } => overview(&host, cx),
            What::Get { plugin, key: Some(key) } => get(&host, plugin, key, cx),
            What::Set { plugin, key, value, preview } => {
                let view = view(&host, plugin)?;
                let is_secret = view.fields.iter().any(|field| field.key == *key && field.is_secret());
                // Other programs can see the words of a command.
                let value = match value.as_str() {
                    "-" if is_secret => Value::String(ask(&format!("{key} of {plugin}"))?.to_string()),
                    text => typed(&view, key, text),
                };
                let mut patch = Map::new();
                patch.insert(key.clone(), value);
                tune(&host, plugin, &Change::Patch(patch), mode(*preview), cx)
            }
            What::Reset { plugin, key, preview } => {
                tune(&host, plugin, &Change::Reset(key.iter().cloned().collect()), mode(*preview), cx)
            }
        }
    }
}

fn mode(preview: bool) -> Mode {
    if preview { Mode::Preview } else { Mode::Commit }
}

fn view(host: &Host, plugin: &str) -> Result<View, Error> {
    known(host, plugin)?;
    host.plugins().settings_view(plugin)
}

/// A declared field coerces the text itself; where nothing is declared, what looks like JSON is JSON.
pub(super) fn typed(view: &View, key: &str, text: &str) -> Value {
    let is_declared = view.fields.iter().any(|f| f.key == key);
    let parsed = if is_declared { None } else { strict::parse(text).ok() };
    parsed.unwrap_or_else(|| Value::String(text.to_owned()))
}

fn overview(host: &Host, cx: &Context) -> Done {
    let mut all = Vec::new();
    for name in host.plugins().names() {
        if let Ok(view) = host.plugins().settings_view(&name)
            && (!view.fields.is_empty() || !view.stored.is_empty())
        {
            all.push((name, view));
        }
    }
    if cx.json {
        let list: Vec<Value> = all
            .iter()
            .map(|(name, view)| json!({ "plugin": &**name, "settings": view.values.len(), "stored": view.stored }))
            .collect();
        print::json(&list);
        return Ok(Verdict::Good);
    }
    if all.is_empty() {
        print::line("No plugin has settings. A script declares them: const SETTINGS = #{ greeting: \"hello\" };");
        return Ok(Verdict::Good);
    }
    let mut table = Table::new(&["PLUGIN", "SETTINGS", "SET BY YOU"]).right(1).right(2);
    for (name, view) in &all {
        table.row([name.to_string(), view.fields.len().to_string(), view.stored.len().to_string()]);
    }
    print::line(table.render(0));
    print::line("\nMore: lapidary settings list <plugin>");
    Ok(Verdict::Good)
}

fn list(host: &Host, plugin: &str, cx: &Context) -> Done {
    let view = view(host, plugin)?;
    if cx.json {
        print::json(&view);
        return Ok(Verdict::Good);
    }
    if view.fields.is_empty() && view.values.is_empty() {
        print::line(format_args!("`{plugin}` has no settings."));
    } else {
        let mut table = Table::new(&["SETTING", "VALUE", "", "TYPE", "WHAT IT DOES"]);
        for (key, value) in &view.values {
            let field = view.fields.iter().find(|f| f.key == *key);
            let origin = if view.stored.contains(key) { "set" } else { "default" };
            table.row([
                key.clone(),
                print::clip(&shown(value), 40),
                origin.to_owned(),
                field.map_or("", |f| f.kind.as_str()).to_owned(),
                print::clip(field.map_or("stored, and no setting of the plugin", |f| &f.help), 72),
            ]);
        }
        print::line(table.render(0));
    }
    for text in view.notes.iter().chain(&view.set_aside) {
        print::note(format_args!("warning: {text}"));
    }
    Ok(Verdict::Good)
}

fn get(host: &Host, plugin: &str, key: &str, cx: &Context) -> Done {
    let view = view(host, plugin)?;
    let Some(value) = view.values.get(key) else {
        let names: Vec<&str> = view.values.keys().map(String::as_str).collect();
        let close = crate::tool::names::did_you_mean(key, names.iter().copied(), 3);
        let hint = match (close.is_empty(), names.is_empty()) {
            (false, _) => format!("did you mean {}", close.join(", ")),
            (true, true) => "it has none".to_owned(),
            (true, false) => format!("it has {}", names.join(", ")),
        };
        return Err(Stop::Failed(Error::not_found(format!("`{plugin}` has no setting `{key}`")).hint(hint)));
    };
    if cx.json {
        print::json(value)
    } else {
        print::line(shown(value))
    }
    Ok(Verdict::Good)
}

fn tune(host: &Host, plugin: &str, change: &Change, mode: Mode, cx: &Context) -> Done {
    known(host, plugin)?;
    let tuned = host.plugins().tune(plugin, change, mode, None)?;
    if cx.json {
        print::json(&tuned);
        return Ok(Verdict::Good);
    }
    let saved = if tuned.committed { "saved" } else { "preview, nothing is saved" };
    match change {
        Change::Patch(patch) => {
            for key in patch.keys() {
                let value = tuned.settings.get(key).map(shown).unwrap_or_default();
                print::line(format_args!("{plugin}: {key} = {value} ({saved})"));
            }
        }
        Change::Reset(keys) if keys.is_empty() => {
            print::line(format_args!("{plugin}: all settings at their defaults ({saved})"))
        }
        Change::Reset(keys) => {
            for key in keys {
                let value = tuned.settings.get(key).map(shown).unwrap_or_default();
                print::line(format_args!("{plugin}: {key} = {value}, the default ({saved})"));
            }
        }
    }
    differences(&tuned);
    Ok(Verdict::Good)
}

/// What a model reads differently, as diffs with their cost.
pub(super) fn differences(tuned: &Tuned) {
    if tuned.tools.is_empty() && tuned.gated.is_empty() {
        print::line("What a model reads stays as it is.");
    }
    for tool in &tuned.tools {
        print::line(format_args!("\n{}: {}", tool.tool, tokens(tool.tokens_before, tool.tokens_after)));
        for (what, diff) in [("description", &tool.description), ("parameters", &tool.parameters)] {
            if !diff.is_empty() {
                print::line(format_args!("  {what}"));
                for line in diff_lines(diff) {
                    print::line(format_args!("  {line}"));
                }
            }
        }
    }
    for tool in &tuned.gated {
        print::line(format_args!("\n{tool}: shown or hidden by this setting"));
    }
    for name in &tuned.ignored {
        print::note(format_args!("note: get_tools() also names `{name}`; a new tool needs a reload"));
    }
}

/// `92 tokens, 4 more`.
pub(super) fn tokens(before: usize, after: usize) -> String {
    let change = match after.cmp(&before) {
        std::cmp::Ordering::Equal => "as many as before".to_owned(),
        std::cmp::Ordering::Greater => format!("{} more", print::grouped(after - before)),
        std::cmp::Ordering::Less => format!("{} fewer", print::grouped(before - after)),
    };
    format!("about {} tokens, {change}", print::grouped(after))
}

/// A unified diff, without its file headings.
pub(super) fn diff_lines(diff: &str) -> Vec<&str> {
    diff.lines()
        .filter(|l| {
            !l.starts_with("---") && !l.starts_with("+++") && !l.starts_with("@@") && !l.starts_with("\\ No newline")
        })
        .collect()
}

/// A value as a person reads it: texts without quotes.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
