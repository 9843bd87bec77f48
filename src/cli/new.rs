//! `new`: a first version of a tool that works, with a test beside it.

use super::context::{Context, Done, Stop, Verdict};
use super::print;
use crate::plugin::scaffold::{self, Form, Kind};
use crate::plugin::stock::Embedded;
use clap::{Args, ValueEnum};
use serde_json::json;

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
        let files = scaffold::new(&paths, &Embedded, &self.name, form, kind)?;
        let name = scaffold::plugin_name(&self.name)?;
        let tool = scaffold::tool_name(&name);
        let shown: Vec<String> = files.iter().map(|f| paths.shown(f)).collect();
        let call = format!("lapidary call {tool}");
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
