//! Golden schemas: what a model sees of a plugin's tools, kept in a file beside its tests, so that no change of it goes
//! unnoticed. It compares values; running anything is not its business.

use super::recipe::Beside;
use crate::base::error::{Error, Result, io};
use crate::base::{file, json};
use crate::plugin::load::Generation;
use crate::plugin::tune::diff;
use crate::script::diagnostic::Diagnostic;
use crate::tool::spec::{SideEffect, Spec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the format that is written and read.
const FORMAT: u32 = 1;
/// Most bytes of the file.
const MAX_FILE: u64 = 16 << 20;

/// What becomes of golden schemas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Golden {
    /// Compared, where there are some.
    #[default]
    Compared,
    /// Written, for every plugin.
    Updated,
}

/// Golden schemas of a plugin: what a model sees of its tools while every setting has its default.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Page {
    /// The version of this format: 1.
    format: u32,
    /// The tools, in the order in which the plugin has them.
    tools: Vec<Shown>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Shown {
    name: String,
    description: Vec<String>,
    input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_schema: Option<Value>,
    annotations: Annotations,
    /// Left out of every selection that does not name it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Annotations {
    read_only: bool,
    destructive: bool,
    open_world: bool,
}

impl Shown {
    fn of(spec: &Spec) -> Shown {
        let effect = spec.effective_side_effect();
        Shown {
            name: spec.name.clone(),
            description: spec.description.split('\n').map(str::to_owned).collect(),
            input_schema: spec.parameters.clone(),
            output_schema: spec.output_schema.clone(),
            annotations: Annotations {
                read_only: effect <= SideEffect::Read,
                destructive: effect >= SideEffect::Write,
                open_world: spec.is_open_world(),
            },
            hidden: spec.hidden,
        }
    }
}

/// What a model sees now.
pub struct Seen(Page);

impl Seen {
    /// Of a plugin whose settings have their defaults.
    pub fn of(generation: &Generation) -> Seen {
        let drafts = generation.files.iter().flat_map(|file| &file.tools);
        Seen(Page { format: FORMAT, tools: drafts.map(|draft| Shown::of(&draft.spec)).collect() })
    }

    /// Whether it is what the file says; `None` where there is no file.
    ///
    /// # Errors
    /// What differs, or why the file cannot be used.
    pub fn compare(&self, beside: &Beside) -> Result<Option<()>, Vec<Diagnostic>> {
        let unusable =
            |message: String| vec![Diagnostic::error("golden", beside.shown.as_str(), message).hint(again(beside))];
        let bytes = match beside.read(&beside.name, MAX_FILE) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Ok(None),
            Err(e) => return Err(unusable(e.message().to_owned())),
        };
        let value = json::parse_file_text(&bytes).map_err(|e| {
            let text = String::from_utf8_lossy(&bytes);
            vec![
                Diagnostic::error("golden", beside.shown.as_str(), format!("not valid JSON: {e}"))
                    .at(&text, e.line, e.column)
                    .hint(again(beside)),
            ]
        })?;
        let golden: Page = serde_path_to_error::deserialize(value)
            .map_err(|e| unusable(format!("`{}`: {}", e.path(), json::plain_words(&e.inner().to_string()))))?;
        if golden.format != FORMAT {
            return Err(unusable(format!("it is of format {}, and this program reads format {FORMAT}", golden.format)));
        }
        let wrong: Vec<Diagnostic> = differences(&golden, &self.0)
            .into_iter()
            .map(|message| Diagnostic::error("golden", beside.shown.as_str(), message).hint(again(beside)))
            .collect();
        if wrong.is_empty() { Ok(Some(())) } else { Err(wrong) }
    }

    /// Writes the file, where it says something else. Gives what a person should know.
    ///
    /// # Errors
    /// What the file system says.
    pub fn update(&self, beside: &Beside) -> Result<Option<String>> {
        let shown = &beside.shown;
        if matches!(self.compare(beside), Ok(Some(()))) {
            return Ok(None);
        }
        let Some(path) = beside.path() else {
            return Ok(Some(format!("{shown} is part of the program and stays as it is")));
        };
        if self.0.tools.is_empty() {
            if !path.exists() {
                return Ok(None);
            }
            std::fs::remove_file(&path).map_err(|e| io(format_args!("cannot remove `{shown}`"), &e))?;
            return Ok(Some(format!("{shown} is removed: there are no tools")));
        }
        let mut bytes = serde_json::to_vec_pretty(&self.0)
            .map_err(|e| Error::internal(format!("the schemas cannot be written: {e}")))?;
        bytes.push(b'\n');
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| io(format_args!("cannot make the folder of `{shown}`"), &e))?;
        }
        file::write_atomic(&path, &bytes)?;
        let many = if self.0.tools.len() == 1 { "tool" } else { "tools" };
        Ok(Some(format!("{shown} written: {} {many}", self.0.tools.len())))
    }
}

fn again(beside: &Beside) -> String {
    let plugin = beside.name.rsplit('/').next().unwrap_or_default().trim_end_matches(".json");
    format!("if that is as it should be, type: lapidary test --update {plugin}")
}

/// One text for each tool that is not as it was.
fn differences(golden: &Page, now: &Page) -> Vec<String> {
    let pretty = |tool: &Shown| serde_json::to_string_pretty(tool).unwrap_or_default();
    let mut out = Vec::new();
    for tool in &golden.tools {
        match now.tools.iter().find(|t| t.name == tool.name) {
            None => out.push(format!("the tool `{}` is gone", tool.name)),
            Some(there) if there == tool => {}
            Some(there) => {
                let lines = diff(&pretty(tool), &pretty(there));
                let lines =
                    lines.lines().filter(|l| !["---", "+++", "@@", "\\"].iter().any(|mark| l.starts_with(mark)));
                let lines: Vec<String> = lines.map(|line| format!("  {line}")).collect();
                out.push(format!("what a model sees of `{}` has changed\n{}", tool.name, lines.join("\n")));
            }
        }
    }
    let new = now.tools.iter().filter(|tool| !golden.tools.iter().any(|t| t.name == tool.name));
    out.extend(new.map(|tool| format!("the tool `{}` is new", tool.name)));
    let order = |page: &Page| page.tools.iter().map(|t| t.name.clone()).collect::<Vec<_>>();
    if out.is_empty() && order(golden) != order(now) {
        out.push(format!("the order of the tools is now {}", order(now).join(", ")));
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(tools: &[(&str, &str)]) -> Page {
        let shown = |(name, description): &(&str, &str)| {
            Shown::of(&Spec::new(
                *name,
                *description,
                json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
            ))
        };
        Page { format: FORMAT, tools: tools.iter().map(shown).collect() }
    }

    #[test]
    fn every_change_that_a_model_sees_is_told() {
        let golden = page(&[("steep", "Steep tea."), ("pour", "Pour.\nSlowly.")]);
        type Row = (&'static [(&'static str, &'static str)], &'static [&'static str]);
        let rows: [Row; 6] = [
            (&[("steep", "Steep tea."), ("pour", "Pour.\nSlowly.")], &[]),
            (&[("pour", "Pour.\nSlowly."), ("steep", "Steep tea.")], &["the order of the tools is now pour, steep"]),
            (&[("pour", "Pour.\nSlowly.")], &["the tool `steep` is gone"]),
            (&[("steep", "Steep tea."), ("pour", "Pour.\nSlowly."), ("x", "X.")], &["the tool `x` is new"]),
            (
                &[("brew", "Steep tea."), ("pour", "Pour.\nSlowly.")],
                &["the tool `steep` is gone", "the tool `brew` is new"],
            ),
            (
                &[("steep", "Steep tea."), ("pour", "Pour.\nFast.")],
                &["what a model sees of `pour` has changed", "-    \"Slowly.\"", "+    \"Fast.\""],
            ),
        ];
        for (now, parts) in rows {
            let told = differences(&golden, &page(now)).join("\n");
            assert_eq!(told.is_empty(), parts.is_empty(), "{told}");
            for part in parts {
                assert!(told.contains(part), "{part}: {told}");
            }
        }
    }
}
