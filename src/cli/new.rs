//! `new`: a first version of a tool that works, with a test beside it.

use super::context::{Context, Done, Stop, Verdict};
use super::print;
use crate::plugin::scaffold::{self, Form, Kind};
use crate::plugin::stock::Embedded;
use crate::tool::spec::Spec;
use clap::{Args, ValueEnum};
use serde_json::{Value, json};

/// Write a new tool that works, with a test beside it
#[derive(Args)]
pub struct New {
    /// Its name: letters, digits, `_` and `-`
    name: String,
    /// How the file says what its tools are: a comment above a function, or a TOOLS list with execute()
    #[arg(long, value_enum, default_value_t = Shape::Documented, value_name = "FORM")]
    form: Shape,
    /// A plugin folder with a manifest, for several files or settings with a form
    #[arg(long)]
    plugin: bool,
    #[arg(long, hide = true)]
    agent: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shape {
    /// A comment above each function
    Documented,
    /// TOOLS and execute()
    Explicit,
}

/// Arguments to try a tool with, as one types them: those of its first example, or something for each that it requires.
fn sample(spec: &Spec) -> String {
    let mut arguments = spec.examples.first().and_then(|e| e.arguments.as_object()).cloned().unwrap_or_default();
    if arguments.is_empty() {
        let required = spec.parameters.get("required").and_then(Value::as_array);
        for key in required.into_iter().flatten().filter_map(Value::as_str) {
            let value = match spec.parameters["properties"][key]["type"].as_str() {
                Some("integer" | "number") => json!(1),
                Some("boolean") => json!(true),
                Some("array") => json!([]),
                Some("object") => json!({}),
                _ => json!("hello"),
            };
            arguments.insert(key.to_owned(), value);
        }
    }
    let mut out = String::new();
    for (key, value) in arguments {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let is_plain = !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "._-".contains(c));
        let word = if is_plain { text } else { format!("'{}'", text.replace('\'', "'\\''")) };
        out.push_str(&format!(" {key}={word}"));
    }
    out
}

impl New {
    pub(super) fn run(&self, cx: &Context) -> Done {
        if self.agent {
            return Err(Stop::not_yet("`--agent`"));
        }
        let paths = cx.paths()?;
        paths.ensure().map_err(Stop::NoHost)?;
        let form = match self.form {
            Shape::Documented => Form::Documented,
            Shape::Explicit => Form::Explicit,
        };
        let kind = if self.plugin { Kind::Folder } else { Kind::SingleFile };
        let name = scaffold::plugin_name(&self.name)?;
        let tool = scaffold::tool_name(&name);
        let host = cx.host()?;
        host.plugins().is_free(&name, &tool)?;
        let files = scaffold::new(&paths, &Embedded, &self.name, form, kind)?;
        let shown: Vec<String> = files.iter().map(|f| paths.shown(f)).collect();
        // From the tool itself, so that the command works as it stands.
        host.plugins().rescan();
        let call = match host.dispatcher().snapshot().get(&tool) {
            Some(live) => format!("lapidary call {tool}{}", sample(&live.spec)),
            None => format!("lapidary check {name}"),
        };
        if cx.json {
            print::json(&json!({ "plugin": name, "tool": tool, "files": shown, "root": paths.root(), "next": call }));
            return Ok(Verdict::Good);
        }
        print::line(format_args!("In {}:", paths.root().display()));
        for file in &shown {
            print::line(format_args!("  {file}"));
        }
        print::line("\nNext:");
        let mut table = print::Table::plain();
        table.row([call, "run it".into()]);
        table.row([format!("lapidary test {name}"), "run its test".into()]);
        table.row(["lapidary dev".into(), "edit it, and see each save go live".into()]);
        print::line(table.render(2));
        Ok(Verdict::Good)
    }
}
