//! `tools`: what a model would see now, and what it costs to see it.

use super::context::{Context, Done, Stop, Verdict};
use super::print::{self, Table};
use crate::app::Host;
use crate::tool::dialect::{Dialect, define_all};
use crate::tool::registry::LiveTool;
use crate::tool::spec::{Locality, SideEffect};
use clap::Args;

/// List the tools as a model would see them now; --json prints the schemas that are sent
#[derive(Args)]
pub struct Tools {
    /// The chat to look from
    #[arg(long, value_name = "NAME")]
    chat: Option<String>,
    /// The dialect that --json prints and tokens count: openai, anthropic, gemini, llama or plain
    #[arg(long, value_name = "NAME", default_value_t = Dialect::OpenAi)]
    provider: Dialect,
    /// Also hidden tools, and those that a setting switches off
    #[arg(long)]
    all: bool,
}

impl Tools {
    pub(super) fn run(&self, cx: &Context) -> Done {
        if self.chat.as_ref().is_some_and(|c| c.trim().is_empty()) {
            return Err(Stop::usage("the name of the chat is empty", "--chat NAME"));
        }
        let host = cx.host()?;
        let snapshot = host.dispatcher().snapshot();
        let (seen, unseen): (Vec<_>, Vec<_>) = snapshot.iter().partition(|t| t.is_offered());
        let shown: Vec<_> = seen.iter().chain(unseen.iter().filter(|_| self.all)).collect();
        let (definitions, _) = define_all(shown.iter().map(|t| &*t.spec), self.provider);
        if cx.json {
            print::json(&definitions.iter().map(|d| &d.definition).collect::<Vec<_>>());
            return Ok(Verdict::Good);
        }
        if shown.is_empty() {
            print::line("No tools. Write one: lapidary new greet");
            if !unseen.is_empty() {
                print::line(unseen_words(unseen.len()));
            }
            tell_broken(&host);
            return Ok(Verdict::Good);
        }
        let mut table = Table::new(&["TOOL", "PLUGIN", "CATEGORY", "TOKENS", "FLAGS", "WHAT IT DOES"]).right(3);
        let mut total = 0;
        for (tool, definition) in shown.iter().zip(&definitions) {
            let cost = definition.tokens;
            total += cost;
            let what = print::clip(&print::first_paragraph(&tool.spec.description), 72);
            table.row([
                tool.spec.name.clone(),
                tool.plugin().name.to_string(),
                tool.category.to_string(),
                print::grouped(cost),
                flags(tool),
                what,
            ]);
        }
        print::line(table.render(0));
        let shown_tokens = format!("{}, about {} tokens", print::count(shown.len(), "tool"), print::grouped(total));
        let rest =
            if self.all || unseen.is_empty() { String::new() } else { format!("; {}", unseen_words(unseen.len())) };
        print::line(format_args!("\n{shown_tokens}{rest}"));
        tell_broken(&host);
        Ok(Verdict::Good)
    }
}

fn unseen_words(count: usize) -> String {
    format!("{count} more with --all (hidden, or off by a setting)")
}

/// What a list does not show must not look as if it were not there.
fn tell_broken(host: &Host) {
    for notice in host.plugins().notices().into_iter().filter(|n| n.refused.is_some()) {
        print::note(format_args!("note: {}", notice.message));
    }
    let (waiting, bad): (Vec<_>, Vec<_>) =
        host.plugins().statuses().into_iter().filter(|s| !s.diagnostics.is_empty()).partition(|s| s.waiting);
    if !waiting.is_empty() {
        let verb = if waiting.len() == 1 { "waits" } else { "wait" };
        print::note(format_args!("{} {verb} for a yes: lapidary info", print::count(waiting.len(), "plugin")));
    }
    let failed = bad.len();
    if failed > 0 {
        let verb = if failed == 1 { "has" } else { "have" };
        print::note(format_args!("{} {verb} errors: lapidary info", print::count(failed, "plugin")));
    }
}

fn flags(tool: &LiveTool) -> String {
    let spec = &tool.spec;
    let mut words = Vec::new();
    match &spec.is_local {
        Locality::Local => words.push("local"),
        Locality::Endpoint => words.push("endpoint"),
        Locality::NotLocal | Locality::Other(_) => words.push("remote"),
        Locality::Unset => {}
    }
    if spec.network {
        words.push("network");
    }
    match spec.effective_side_effect() {
        SideEffect::Write => words.push("writes"),
        SideEffect::Spend => words.push("spends"),
        SideEffect::None | SideEffect::Read => {}
    }
    if spec.hidden {
        words.push("hidden");
    }
    if tool.is_gated_off() {
        words.push("off");
    }
    if words.is_empty() { "-".to_owned() } else { words.join(",") }
}
