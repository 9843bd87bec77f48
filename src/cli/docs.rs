//! `docs`: the reference, on the terminal, into files, or compared with the files that are there.

use super::context::{Context, Done, Stop, Verdict};
use super::print;
use crate::base::error::{Error, io};
use crate::base::file;
use crate::docs;
use clap::Args;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Where the pages lie in the project.
const HOME: &str = "docs/ref";

/// Read the reference: what scripts can call, the commands, the errors, the events
#[derive(Args)]
#[command(after_help = "\
Examples:
  lapidary docs              lists the pages
  lapidary docs net          shows one
  lapidary docs net::get     shows one function")]
pub struct Docs {
    /// A page, a module, or module::function
    topic: Option<String>,
    /// Write all pages into this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["topic", "check"])]
    out: Option<PathBuf>,
    /// Compare docs/ref of the source tree around this folder with what would be written; 1 when a page is stale
    #[arg(long, conflicts_with = "topic")]
    check: bool,
}

impl Docs {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let pages: Vec<(String, String)> = docs::render(&crate::host::all())
            .into_iter()
            .map(|(path, text)| (path.trim_start_matches(HOME).trim_start_matches('/').to_owned(), text))
            .collect();
        if self.check {
            return check(&pages, cx);
        }
        if let Some(out) = &self.out {
            return write(&pages, out, cx);
        }
        match &self.topic {
            Some(topic) => show(&pages, topic, cx),
            None => list(&pages, cx),
        }
    }
}

fn list(pages: &[(String, String)], cx: &Context) -> Done {
    let named: Vec<(&str, &str)> = pages
        .iter()
        .filter_map(|(path, text)| Some((path.strip_suffix(".md")?, text.as_str())))
        .filter(|(name, _)| *name != "index")
        .collect();
    if cx.json {
        print::json(
            &named.iter().map(|(name, text)| json!({ "topic": name, "about": about(text) })).collect::<Vec<_>>(),
        );
        return Ok(Verdict::Good);
    }
    let mut table = print::Table::new(&["PAGE", "ABOUT"]);
    for (name, text) in named {
        table.row([name.to_owned(), print::clip(&about(text), 90)]);
    }
    print::line(table.render(0));
    print::line("\nRead one: lapidary docs <page>, or lapidary docs <module>::<function>");
    Ok(Verdict::Good)
}

/// The first sentence below the heading.
fn about(text: &str) -> String {
    let body = text.lines().skip_while(|l| !l.starts_with("# ")).skip(1).collect::<Vec<_>>().join("\n");
    let paragraph = print::first_paragraph(&body);
    paragraph.split_once(". ").map_or(paragraph.clone(), |(first, _)| format!("{first}."))
}

fn show(pages: &[(String, String)], topic: &str, cx: &Context) -> Done {
    let topic = topic.trim_end_matches("()");
    let page = |name: &str| pages.iter().find(|(path, _)| path.strip_suffix(".md") == Some(name)).map(|(_, text)| text);
    let text = match topic.split_once("::") {
        Some((module, function)) => page(module).and_then(|text| section(text, module, function)),
        None => page(topic).map(|text| {
            text.lines().filter(|l| !l.starts_with("<!--")).collect::<Vec<_>>().join("\n").trim().to_owned()
        }),
    };
    let Some(text) = text else {
        let names: Vec<&str> = pages.iter().filter_map(|(path, _)| path.strip_suffix(".md")).collect();
        let head = topic.split("::").next().unwrap_or(topic);
        let hint = if names.contains(&head) {
            format!("lapidary docs {head} lists what is in it")
        } else {
            match crate::tool::names::did_you_mean(head, names.iter().copied(), 3) {
                close if close.is_empty() => "lapidary docs lists the pages".to_owned(),
                close => format!("did you mean {}", close.join(", ")),
            }
        };
        return Err(Stop::Failed(Error::not_found(format!("the reference has no `{topic}`")).hint(hint)));
    };
    if cx.json {
        print::json(&json!({ "topic": topic, "text": text }))
    } else {
        print::line(text)
    }
    Ok(Verdict::Good)
}

/// The part of a page about one function.
fn section(text: &str, module: &str, function: &str) -> Option<String> {
    let heading = format!("### `{module}::{function}`");
    let mut lines = text.lines().skip_while(|l| **l != heading);
    let first = lines.next()?;
    let rest = lines.take_while(|l| !l.starts_with("## ") && !l.starts_with("### "));
    Some(std::iter::once(first).chain(rest).collect::<Vec<_>>().join("\n").trim().to_owned())
}

fn write(pages: &[(String, String)], out: &Path, cx: &Context) -> Done {
    let mut written = Vec::new();
    for (path, text) in pages {
        let target = out.join(path);
        if std::fs::read(&target).is_ok_and(|old| old == text.as_bytes()) {
            continue;
        }
        if let Some(folder) = target.parent() {
            std::fs::create_dir_all(folder).map_err(|e| io(format_args!("cannot make `{}`", folder.display()), &e))?;
        }
        file::write_atomic(&target, text.as_bytes())?;
        written.push(path.clone());
    }
    if cx.json {
        print::json(&json!({ "pages": pages.len(), "written": written }));
    } else {
        print::line(format_args!(
            "{} in {}, {} changed",
            print::count(pages.len(), "page"),
            out.display(),
            written.len()
        ));
    }
    Ok(Verdict::Good)
}

/// Pages that are missing, differ, or are there and should not be.
fn check(pages: &[(String, String)], cx: &Context) -> Done {
    let here = std::env::current_dir().map_err(|e| io("cannot tell the current folder", &e))?;
    let home = here.ancestors().map(|f| f.join(HOME)).find(|f| f.is_dir()).ok_or_else(|| {
        Error::not_found("there is no docs/ref here")
            .hint("run it in the project's source tree; lapidary docs --out docs/ref writes the pages")
    })?;
    let mut stale: Vec<String> = Vec::new();
    for (path, text) in pages {
        if std::fs::read(home.join(path)).ok().as_deref() != Some(text.as_bytes()) {
            stale.push(path.clone());
        }
    }
    let known: BTreeSet<&str> = pages.iter().map(|(path, _)| path.as_str()).collect();
    for entry in std::fs::read_dir(&home).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_file() && !known.contains(name.as_str()) {
            stale.push(name);
        }
    }
    if cx.json {
        print::json(&json!({ "folder": home, "stale": stale }));
    } else if stale.is_empty() {
        print::line(format_args!("{} in {} are fresh", print::count(pages.len(), "page"), home.display()));
    } else {
        print::line(format_args!("stale in {}:", home.display()));
        stale.iter().for_each(|path| print::line(format_args!("  {path}")));
        print::line("Write them anew: lapidary docs --out docs/ref (and delete those that it does not write)");
    }
    Ok(Verdict::of(stale.is_empty()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn every_module_and_function_can_be_looked_up() {
        let pages: Vec<(String, String)> = docs::render(&crate::host::all());
        for (path, text) in &pages {
            let Some(name) = path.strip_prefix("docs/ref/").and_then(|p| p.strip_suffix(".md")) else { continue };
            for heading in text.lines().filter_map(|l| l.strip_prefix("### `")).filter_map(|l| l.strip_suffix('`')) {
                let Some((module, function)) = heading.split_once("::") else { continue };
                assert_eq!(module, name);
                assert!(section(text, module, function).is_some_and(|s| s.contains("```")), "{heading}");
            }
        }
    }
}
