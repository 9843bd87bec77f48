//! `journal`: the calls that were made, whoever made them. It reads what is kept and starts no host.

use super::context::{Context, Done, Stop, Verdict};
use super::parts;
use super::print::{self, Table};
use crate::config;
use crate::script::diagnostic::Diagnostic;
use crate::service::journal::{Entry, Filter, Journal, Listed, MAX_PAGE, Page, Setup};
use crate::service::secret::Redactor;
use crate::store::main::MainDb;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::sync::Arc;

/// Show the calls that were made: what each was given, what came of it, what it said
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  lapidary journal --failed            the newest calls that failed
  lapidary journal --tool roll_dice    those of one tool
  lapidary journal show last           everything about the newest call
  lapidary replay last                 the same call again

Secrets are taken out before a call is kept, and nothing of private chats is kept. How much is kept, and whether,
is under [journal] in user/lapidary.toml."
)]
pub struct JournalCommand {
    #[command(flatten)]
    list: List,
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// The calls, newest first
    List(List),
    /// Everything about one call
    Show {
        /// Its id, `last` for the newest call, or a tool for its newest one
        call: String,
    },
    /// Delete all calls
    Clear,
}

#[derive(Args)]
struct List {
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only calls of this plugin's tools
    #[arg(long, value_name = "PLUGIN")]
    plugin: Option<String>,
    /// Only calls that failed
    #[arg(long)]
    failed: bool,
    /// Only calls through this door: cli, http, mcp, library, or tool for those that tools made
    #[arg(long, value_name = "DOOR")]
    door: Option<String>,
    /// Only calls before the one with this id
    #[arg(long, value_name = "ID")]
    before: Option<String>,
    /// At most so many [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=MAX_PAGE as i64))]
    limit: Option<u16>,
}

impl JournalCommand {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let (journal, is_kept) = open(cx)?;
        match &self.what {
            None => list(&journal, &self.list, is_kept, cx),
            Some(What::List(options)) => list(&journal, options, is_kept, cx),
            Some(What::Show { call }) => {
                let entry = journal.find(call)?;
                if cx.json {
                    print::json(&entry)
                } else {
                    show(&entry)
                }
                Ok(Verdict::Good)
            }
            Some(What::Clear) => {
                let gone = journal.clear()?;
                if cx.json {
                    print::json(&json!({ "deleted": gone }));
                } else {
                    let many = print::count(usize::try_from(gone).unwrap_or(usize::MAX), "call");
                    print::line(format_args!("deleted {many}"));
                }
                Ok(Verdict::Good)
            }
        }
    }
}

/// The journal of the root, and whether calls are kept in it.
fn open(cx: &Context) -> Result<(Journal, bool), Stop> {
    let paths = cx.workshop()?;
    let (file, broken) = config::read(&paths);
    let (keeping, _) = config::journal(&file, &paths, broken.as_ref());
    let journal = Journal::new(Setup {
        store: Arc::new(MainDb::new(paths.main_db())),
        clock: Default::default(),
        bus: Default::default(),
        limits: keeping.limits,
        // Nothing is written here.
        known: Box::new(Redactor::default),
    });
    Ok((journal, keeping.keep))
}

fn list(journal: &Journal, options: &List, is_kept: bool, cx: &Context) -> Done {
    let page = journal.list(&Filter {
        tool: options.tool.clone(),
        plugin: options.plugin.clone(),
        failed: options.failed,
        door: options.door.clone(),
        before: options.before.clone(),
        limit: usize::from(options.limit.unwrap_or(20)),
    })?;
    if cx.json {
        print::json(&page);
        return Ok(Verdict::Good);
    }
    if page.calls.is_empty() {
        let is_filtered = options.failed
            || [&options.tool, &options.plugin, &options.door, &options.before].iter().any(|word| word.is_some());
        print::line(match (is_kept, is_filtered) {
            (_, true) => "No call of these is kept.",
            (true, false) => "No call is kept yet. Make one: lapidary call TOOL",
            (false, false) => "No calls are kept: [journal] in user/lapidary.toml says so, or cannot be read.",
        });
    } else {
        print::line(table(&page));
    }
    if page.dropped > 0 {
        let many = print::count(usize::try_from(page.dropped).unwrap_or(usize::MAX), "call");
        print::note(format_args!("note: {many} could not be kept: too many at once, or the database refused"));
    }
    Ok(Verdict::Good)
}

fn table(page: &Page) -> String {
    let mut table = Table::new(&["WHEN", "TOOL", "", "MS", "DOOR", "CALL", "WHAT CAME OF IT"]).right(3);
    for call in &page.calls {
        table.row([
            when(&call.at),
            print::clip(&call.tool, 40),
            if call.ok { "ok".to_owned() } else { call.code.clone().unwrap_or_else(|| "failed".to_owned()) },
            format!("{:.1}", call.duration_ms),
            door(call),
            call.id.clone(),
            print::clip(&call.summary, 60),
        ]);
    }
    let more = page.next.as_ref().map(|next| format!("\n\nMore: lapidary journal --before {next}"));
    format!("{}{}", table.render(0), more.unwrap_or_default())
}

fn door(call: &Listed) -> String {
    match (call.door.as_str(), call.caller.as_str()) {
        ("tool", caller) => format!("from {}", print::clip(caller, 30)),
        (door, _) => door.to_owned(),
    }
}

/// A time of the journal as the clock on the wall shows it.
pub(super) fn when(at: &str) -> String {
    match at.parse::<jiff::Timestamp>() {
        Ok(at) => at.to_zoned_datetime(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string(),
        Err(_) => at.to_owned(),
    }
}

fn show(entry: &Entry) {
    let call = &entry.listed;
    print::line(format_args!("{}  {}  {}", call.id, call.tool, outcome(call)));
    let plugin = if call.plugin.is_empty() { "no plugin" } else { &call.plugin };
    let chat = call.chat.as_ref().map(|chat| format!(", in the chat `{chat}`")).unwrap_or_default();
    print::line(format_args!(
        "{}, {plugin}, generation {}, by {} through {}{chat}",
        when(&call.at),
        call.generation,
        call.caller,
        call.door
    ));
    print::line(format_args!(
        "{} operations, {} KiB at most",
        print::grouped(usize::try_from(entry.operations).unwrap_or(usize::MAX)),
        print::grouped(usize::try_from(entry.memory.div_ceil(1024)).unwrap_or(usize::MAX))
    ));
    section("arguments");
    match &entry.arguments {
        Value::String(text) => print::line(text),
        value => print::line(serde_json::to_string_pretty(value).unwrap_or_default()),
    }
    if entry.masked {
        print::line("(a secret was taken out: this call cannot run again)");
    }
    section("result");
    print::line(entry.shown.as_ref().unwrap_or(&entry.text));
    parts::kept_lines(&entry.parts).iter().for_each(print::line);
    if entry.shown.is_some() {
        section("the model read");
        print::line(&entry.text);
    }
    if let Some(structured) = &entry.structured {
        section("structured");
        print::line(serde_json::to_string_pretty(structured).unwrap_or_default());
    }
    failure(entry);
    said(entry);
    entry.warnings.iter().for_each(|warning| print::note(format_args!("warning: {warning}")));
    if !entry.cut.is_empty() {
        print::note(format_args!("note: too long to be kept whole: {}", entry.cut.join(", ")));
    }
}

fn failure(entry: &Entry) {
    let Some(error) = &entry.error else { return };
    section(&format!("failed with {}", error.code));
    let diagnostic = entry.diagnostic.clone().and_then(|value| serde_json::from_value::<Diagnostic>(value).ok());
    match diagnostic {
        Some(diagnostic) => print::line(diagnostic.render().trim_end()),
        None => print::line(&error.message),
    }
    for (word, text) in [("help", &error.hint), ("to do", &error.user_action)] {
        if let Some(text) = text {
            print::line(format_args!("  {word}: {text}"));
        }
    }
    error.fallbacks.iter().for_each(|fallback| print::line(format_args!("  instead: {}", fallback.tool)));
}

fn said(entry: &Entry) {
    if entry.logs.is_empty() && entry.progress.is_empty() && entry.logs_left_out == 0 {
        return;
    }
    section("said");
    let mut lines: Vec<(u64, String)> =
        entry.logs.iter().map(|line| (line.at_ms, format!("{}: {}", line.level, line.text))).collect();
    lines.extend(entry.progress.iter().map(|step| {
        let text = match (&step.status, step.done, step.total) {
            (Some(status), _, _) => status.clone(),
            (None, Some(done), Some(total)) if total > 0 => format!("{done} of {total}"),
            (None, done, _) => done.unwrap_or_default().to_string(),
        };
        (step.at_ms, text)
    }));
    lines.sort_by_key(|(at, _)| *at);
    for (at, text) in lines {
        print::line(format_args!("{at:>6} ms  {text}"));
    }
    if entry.logs_left_out > 0 {
        print::line(format_args!("           {} more lines were not kept", entry.logs_left_out));
    }
}

/// `ok in 1.2 ms`, or with which code it failed.
pub(super) fn outcome(call: &Listed) -> String {
    let how = if call.ok { "ok" } else { call.code.as_deref().unwrap_or("failed") };
    format!("{how} in {:.1} ms", call.duration_ms)
}

fn section(title: &str) {
    print::line(format_args!("\n{title}:"));
}
