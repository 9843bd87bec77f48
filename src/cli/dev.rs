//! `dev`: live editing in a terminal. Each save is told in one line, a fault with its caret, a changed description as a diff;
//! the last call runs again against the new code.

use super::call::{self, Progress};
use super::context::{Context, Done, Lasting, Stop, Verdict};
use super::{print, settings};
use crate::app::{Host, arguments_of};
use crate::base::error::Error;
use crate::base::event::Event;
use crate::base::paths::Paths;
use crate::plugin::tune::diff;
use crate::tool::dispatch::{Arguments, Call, CallHandle, Who};
use crate::tool::registry::LiveTool;
use crate::tool::tokens;
use clap::Args;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use tokio::sync::broadcast::error::RecvError;

/// Watch files and show each save as it goes live or fails; type a call to run it after every save
#[derive(Args)]
#[command(after_help = "\
While it runs, type a call as after `lapidary call`:
  roll_dice sides=20
Enter alone runs it again, and so does every save. Ctrl+C ends it.")]
pub struct Dev {
    /// Also plugins from here: a script, a plugin folder, or a folder of those
    path: Option<PathBuf>,
    /// Run this tool after every save, with the arguments of its @example, else those of its newest call in the journal
    #[arg(long, value_name = "TOOL")]
    replay: Option<String>,
}

enum Heard {
    Event(Event),
    Missed(u64),
    Line(String),
    End,
}

/// A tool as a model read it when we last looked.
#[derive(Clone, PartialEq)]
struct Seen {
    description: String,
    parameters: String,
    tokens: usize,
}

impl Dev {
    pub(super) fn run(&self, cx: &Context) -> Done {
        if cx.json {
            return Err(Stop::usage(
                "`dev` is for people and has no --json",
                "programs use `lapidary serve` or `lapidary mcp`",
            ));
        }
        let mut builder = cx.builder();
        if let Some(path) = &self.path {
            let path = std::path::absolute(path).ok().filter(|p| p.exists()).ok_or_else(|| {
                Stop::Failed(
                    Error::not_found(format!("there is no `{}`", path.display())).hint("give a script or a folder"),
                )
            })?;
            // What lies in the root is there anyway.
            if !is_in_root(&path, &cx.paths()?) {
                builder = builder.plugins_from(path);
            }
        }
        let lasting = Lasting::start(builder)?;
        let host = lasting.host.clone();
        if let Some(tool) = &self.replay
            && host.dispatcher().snapshot().get(tool).is_none()
        {
            print::note(format_args!("note: there is no tool `{tool}` yet; it runs when there is"));
        }
        let heard = listen(&host);
        let mut bench = Bench { seen: HashMap::new(), last: None, host };
        bench.greet();
        if let Some(tool) = &self.replay {
            bench.last = Some((tool.clone(), None));
            bench.again();
        }
        while let Ok(heard) = heard.recv() {
            match heard {
                Heard::Event(event) => bench.tell(&event),
                Heard::Missed(n) => say("", &format!("{n} events came too fast to show: lapidary info")),
                Heard::Line(line) => bench.typed(line.trim()),
                Heard::End => break,
            }
        }
        bench.host.stop();
        Ok(Verdict::Good)
    }
}

fn is_in_root(path: &Path, root: &Paths) -> bool {
    let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_path_buf());
    let path = real(path);
    [root.tools(), root.plugins(), root.scripts()].iter().any(|home| path.starts_with(real(home)))
        || path == real(root.root())
}

/// Events, typed lines and the end, in one queue.
fn listen(host: &Host) -> mpsc::Receiver<Heard> {
    let (tx, rx) = mpsc::channel();
    let mut events = host.events();
    let runtime = &host.services().runtime;
    let to = tx.clone();
    runtime.spawn(async move {
        loop {
            let heard = match events.recv().await {
                Ok(event) => Heard::Event(event),
                Err(RecvError::Lagged(n)) => Heard::Missed(n),
                Err(RecvError::Closed) => return,
            };
            if to.send(heard).is_err() {
                return;
            }
        }
    });
    let to = tx.clone();
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            let _ = to.send(Heard::End);
        }
    });
    if std::io::stdin().is_terminal() {
        // Ends with the process: a read of a terminal cannot be called off.
        let _ = std::thread::Builder::new().name("lapidary-typed".into()).spawn(move || {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                if tx.send(Heard::Line(line)).is_err() {
                    return;
                }
            }
            let _ = tx.send(Heard::End);
        });
    }
    rx
}

/// One line with the time before it.
fn say(who: &str, what: &str) {
    let now = jiff::ZonedDateTime::now().strftime("%H:%M:%S").to_string();
    let who = if who.is_empty() { String::new() } else { format!("{who}: ") };
    print::line(format_args!("{now}  {who}{what}"));
}

fn indented(text: &str) {
    for line in text.trim_end().lines() {
        print::line(format_args!("          {line}"));
    }
}

struct Bench {
    host: Host,
    seen: HashMap<String, HashMap<String, Seen>>,
    /// The call to run again: a tool, and its arguments where somebody gave some.
    last: Option<(String, Option<Map<String, Value>>)>,
}

impl Bench {
    fn greet(&mut self) {
        let statuses = self.host.plugins().statuses();
        for status in &statuses {
            self.look(&status.name);
        }
        let tools = self.host.dispatcher().snapshot().len();
        print::line(format_args!("root {}", self.host.paths().root().display()));
        print::line(format_args!(
            "{}, {}; save a file and it is live, Ctrl+C ends",
            print::count(statuses.len(), "plugin"),
            print::count(tools, "tool")
        ));
        print::line("");
        for status in statuses.iter().filter(|s| !s.diagnostics.is_empty()) {
            say(&status.name, &short(&status.status));
            status.diagnostics.iter().for_each(|d| indented(&d.render()));
        }
    }

    fn tell(&mut self, event: &Event) {
        match event {
            Event::PluginLive { plugin, generation } => {
                let Some(status) = self.host.plugins().status(plugin) else { return };
                let line =
                    if status.live == Some(*generation) { status.status.clone() } else { format!("live {generation}") };
                say(plugin, &format!("{}, {}", short(&line), print::count(status.tools.len(), "tool")));
                status.diagnostics.iter().chain(&status.warnings).for_each(|d| indented(&d.render()));
                self.differences(plugin);
                self.again_if_of(plugin);
            }
            Event::PluginFailed { plugin, live, disk, summary }
            | Event::PluginWaits { plugin, live, disk, summary } => {
                let what = if matches!(event, Event::PluginWaits { .. }) { "waits for a yes" } else { "failed" };
                let line = match live {
                    Some(live) => format!("live {live}, disk {disk} {what}"),
                    None => what.to_owned(),
                };
                say(plugin, &line);
                let diagnostics = self.host.plugins().status(plugin).map(|s| s.diagnostics).unwrap_or_default();
                if diagnostics.is_empty() {
                    indented(summary);
                }
                diagnostics.iter().for_each(|d| indented(&d.render()));
                if let Some(live) = live {
                    indented(&format!("generation {live} goes on answering"));
                }
            }
            Event::PluginGone { plugin } => {
                self.seen.remove(plugin.as_str());
                let is_off = self.host.plugins().status(plugin).is_some();
                say(plugin, if is_off { "off" } else { "gone" });
            }
            Event::SettingsChanged { plugin } => {
                say(plugin, "settings changed");
                self.differences(plugin);
                self.again_if_of(plugin);
            }
            Event::Notice { subject, message } => say(subject, message),
            Event::ToolsChanged { .. } | Event::CallEnded { .. } | Event::Stopping => {}
        }
    }

    /// What a model reads of a plugin's tools now.
    fn look(&mut self, plugin: &str) -> HashMap<String, Seen> {
        let snapshot = self.host.dispatcher().snapshot();
        let now: HashMap<String, Seen> =
            snapshot.of_plugin(plugin).iter().map(|t| (t.spec.name.clone(), Seen::of(t))).collect();
        self.seen.insert(plugin.to_owned(), now).unwrap_or_default()
    }

    fn differences(&mut self, plugin: &str) {
        let before = self.look(plugin);
        let now = self.seen.get(plugin).cloned().unwrap_or_default();
        let mut names: Vec<&String> = before.keys().chain(now.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            match (before.get(name), now.get(name)) {
                // A plugin that was not there before brings nothing but new tools: its line says so.
                (None, Some(_)) if before.is_empty() => {}
                (None, Some(seen)) => indented(&format!("+ {name} (about {} tokens)", print::grouped(seen.tokens))),
                (Some(_), None) => indented(&format!("- {name}")),
                (Some(old), Some(new)) if old != new => {
                    indented(&format!("{name}: {}", settings::tokens(old.tokens, new.tokens)));
                    for (what, old, new) in [
                        ("description", &old.description, &new.description),
                        ("parameters", &old.parameters, &new.parameters),
                    ] {
                        if old != new {
                            indented(what);
                            settings::diff_lines(&diff(old, new)).iter().for_each(|line| indented(line));
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn typed(&mut self, line: &str) {
        if line.is_empty() {
            return self.again();
        }
        let (tool, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let snapshot = self.host.dispatcher().snapshot();
        let spec = snapshot.get(tool).map(|t| t.spec.clone());
        match call::typed_arguments(rest.trim(), spec.as_deref()) {
            Ok(arguments) => {
                self.last = Some((tool.to_owned(), arguments));
                self.again();
            }
            Err(stop) => print::failure(stop.parts().0),
        }
    }

    fn again_if_of(&mut self, plugin: &str) {
        let snapshot = self.host.dispatcher().snapshot();
        let is_ours =
            self.last.as_ref().and_then(|(tool, _)| snapshot.get(tool)).is_some_and(|t| &*t.plugin().name == plugin);
        if is_ours {
            self.again();
        }
    }

    /// Runs the last call again.
    fn again(&mut self) {
        let Some((tool, given)) = &mut self.last else { return };
        let snapshot = self.host.dispatcher().snapshot();
        let example =
            snapshot.get(tool).and_then(|t| t.spec.examples.first()).and_then(|e| e.arguments.as_object().cloned());
        if given.is_none() && example.is_none() && snapshot.get(tool).is_some() {
            *given = kept(&self.host, tool);
        }
        let arguments = given.clone().or(example).unwrap_or_default();
        let outcome = self.host.call_now(Call {
            arguments: Arguments::Object(arguments),
            sink: Arc::new(Progress { shown: true }),
            handle: Some(Arc::new(CallHandle::default())),
            ..Call::new(tool.as_str(), Map::new(), Who::owner("cli").in_chat(call::CHAT))
        });
        let how = if outcome.ok { "ok" } else { "failed" };
        let ms = outcome.duration.as_secs_f64() * 1000.0;
        say("", &format!("{tool} {how} in {ms:.1} ms, generation {}", outcome.generation));
        if outcome.ok {
            indented(outcome.for_person());
            super::parts::lines(&outcome).iter().for_each(|line| indented(line));
        } else {
            call::show_failure(&outcome);
        }
    }
}

/// The arguments of a tool's newest call that can run again.
fn kept(host: &Host, tool: &str) -> Option<Map<String, Value>> {
    let entry = host.journal().newest(Some(tool)).ok()??;
    match arguments_of(&entry) {
        Ok(Arguments::Object(arguments)) => {
            let at = super::journal::when(&entry.listed.at);
            say("", &format!("{tool}: with the arguments of the call of {at}; type a call to give others"));
            Some(arguments)
        }
        Ok(Arguments::Text(_)) | Err(_) => None,
    }
}

impl Seen {
    fn of(tool: &LiveTool) -> Seen {
        Seen {
            description: tool.spec.description.clone(),
            parameters: serde_json::to_string_pretty(&tool.spec.parameters).unwrap_or_default(),
            tokens: tokens::of_tool(&tool.spec),
        }
    }
}

/// A status line up to its place and message, which the diagnostic below says better.
fn short(status: &str) -> String {
    status.split_once(": ").map_or(status, |(head, _)| head).to_owned()
}
