//! `preview`: what a model reads of a tool, in the form its provider gets, and what other settings would make of it.

use super::context::{Context, Done, Stop, Verdict};
use super::print;
use super::settings::{diff_lines, tokens, typed};
use crate::app::Host;
use crate::base::error::Error;
use crate::plugin::preview::{Look, Preview as Shown, ToolPreview};
use crate::plugin::tune::Change;
use crate::tool::dialect::{Definition, Dialect};
use clap::Args;
use serde_json::{Map, Value};

/// Show what a model reads of a tool, and what other settings would make of it
#[derive(Args)]
#[command(after_help = "\
Examples:
  lapidary preview clock_now
  lapidary preview clock --dialect gemini
  lapidary preview clock --set home=Asia/Tokyo")]
pub struct Preview {
    /// A tool, or a plugin for all of its tools
    name: String,
    /// Whose form it has: openai, anthropic, gemini, llama or plain
    #[arg(long, value_name = "NAME", default_value_t = Dialect::OpenAi)]
    dialect: Dialect,
    /// A setting to try, which is not saved; may be given again for others
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
}

impl Preview {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let pairs = self.pairs()?;
        let host = cx.host()?;
        let change = match pairs.as_slice() {
            [] => None,
            pairs => Some(Change::Patch(patch(&host, &self.name, pairs)?)),
        };
        let shown = host.preview(&self.name, &Look { dialect: self.dialect, change })?;
        if cx.json {
            print::json(&shown);
        } else if self.sets.is_empty() {
            definitions(&shown);
        } else {
            differences(&shown);
        }
        Ok(Verdict::Good)
    }

    fn pairs(&self) -> Result<Vec<(&str, &str)>, Stop> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for set in &self.sets {
            match set.split_once('=') {
                Some((key, value)) if !key.is_empty() => {
                    if pairs.iter().any(|(known, _)| *known == key) {
                        return Err(Stop::usage(
                            format!("`{}` is set twice", print::clip(key, 60)),
                            "give each setting once",
                        ));
                    }
                    pairs.push((key, value));
                }
                _ => {
                    let message = format!("`{}` is not key=value", print::clip(set, 60));
                    return Err(Stop::usage(message, "--set name=value"));
                }
            }
        }
        Ok(pairs)
    }
}

/// What was typed, as the values that the settings of this plugin take.
fn patch(host: &Host, name: &str, pairs: &[(&str, &str)]) -> Result<Map<String, Value>, Error> {
    let snapshot = host.dispatcher().snapshot();
    let plugin = snapshot.get(name).map_or_else(|| name.to_owned(), |tool| tool.plugin().name.to_string());
    // A plugin that is not there is told of by the preview itself, which knows the tools too.
    let view = host.plugins().settings_view(&plugin).ok();
    let value = |key: &str, text: &str| {
        view.as_ref().map_or_else(|| Value::String(text.to_owned()), |view| typed(view, key, text))
    };
    Ok(pairs.iter().map(|(key, text)| ((*key).to_owned(), value(key, text))).collect())
}

fn definitions(shown: &Shown) {
    for (index, tool) in shown.tools.iter().enumerate() {
        if index > 0 {
            print::line("");
        }
        print::line(format_args!("{}: {}", heading(shown, tool), about(tool.definition.tokens)));
        remarks(&tool.definition);
        match &tool.definition.definition {
            Value::String(text) => print::line(format_args!("\n{text}")),
            definition => {
                let pretty = serde_json::to_string_pretty(definition).unwrap_or_default();
                print::line(format_args!("\n{pretty}"));
            }
        }
    }
    if shown.tools.len() > 1 {
        let count = print::count(shown.tools.iter().filter(|t| t.offered).count(), "tool");
        print::line(format_args!("\n{count} offered, {}", about(shown.tokens)));
    }
}

fn differences(shown: &Shown) {
    if !shown.changes_something() {
        print::line("What a model reads stays as it is (preview, nothing is saved).");
    }
    for tool in shown.tools.iter().filter(|t| !t.diff.is_empty() || t.offered != t.offered_before) {
        print::line(format_args!(
            "{}: {} (preview, nothing is saved)",
            heading(shown, tool),
            tokens(tool.tokens_before, tool.definition.tokens)
        ));
        for line in diff_lines(&tool.diff) {
            print::line(format_args!("  {line}"));
        }
        print::line("");
    }
    for name in &shown.ignored {
        print::note(format_args!("note: get_tools() also names `{name}`; a new tool needs a reload"));
    }
    if shown.tools.iter().filter(|t| t.offered || t.offered_before).count() > 1 {
        print::line(format_args!("{}, all in all: {}", shown.plugin, tokens(shown.tokens_before, shown.tokens)));
    }
}

fn heading(shown: &Shown, tool: &ToolPreview) -> String {
    let state = match (tool.offered_before, tool.offered) {
        (true, true) => "",
        (false, true) => ", which models would get",
        (true, false) => ", which models would not get",
        (false, false) => ", which models do not get now",
    };
    format!("{} of {} as {}{state}", tool.definition.tool, shown.plugin, shown.dialect)
}

fn remarks(definition: &Definition) {
    if definition.name != definition.tool {
        print::line(format_args!("  the model calls it {}", definition.name));
    }
    if let Some(strict) = &definition.strict {
        match strict.obstacles.as_slice() {
            [] => print::line("  strict mode could hold"),
            [first, rest @ ..] => {
                let more = if rest.is_empty() { String::new() } else { format!(", and {} more", rest.len()) };
                print::line(format_args!("  strict mode could not hold: {first}{more}"));
            }
        }
    }
    for note in &definition.notes {
        print::line(format_args!("  note: {note}"));
    }
}

fn about(tokens: usize) -> String {
    format!("about {} tokens", print::grouped(tokens))
}
