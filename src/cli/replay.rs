//! `replay`: a call of the journal once more, on what is live now, and what differs.

use super::call::{self, Progress, cancel_on_interrupt};
use super::context::{Context, Done, Verdict};
use super::{journal, print, settings};
use crate::app::{Again, Replay as Replayed};
use crate::tool::dispatch::{CallHandle, Outcome, Who};
use clap::Args;
use serde_json::{Value, json};
use std::sync::Arc;

/// Run a call of the journal again and show what differs
#[derive(Args)]
#[command(after_help = "\
It is a new call with the same arguments, on the code that is live now. A tool that changes something changes it again.
Exit code 1 means that the call failed this time.")]
pub struct Replay {
    /// The call's id, `last` for the newest call, or a tool for its newest one
    #[arg(default_value = "last")]
    call: String,
}

impl Replay {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let host = cx.calling_host()?;
        let id = host.journal().find(&self.call)?.listed.id;
        let Again { then, mut call } = host.again(&id, &Who::owner("cli"))?;
        let handle = Arc::new(CallHandle::default());
        cancel_on_interrupt(&host, handle.clone());
        call.handle = Some(handle);
        call.sink = Arc::new(Progress { shown: print::is_watched() });
        let now = host.call_now(call);
        let replay = host.compare(then, now);
        if cx.json {
            print::json(&as_json(&replay));
        } else {
            show(&replay);
        }
        host.stop();
        Ok(Verdict::of(replay.now.ok))
    }
}

fn as_json(replay: &Replayed) -> Value {
    let mut now = call::outcome_json(&replay.now);
    now["call"] = replay.now.call.as_str().into();
    json!({ "then": replay.then, "now": now, "diff": replay.diff, "changes": replay.changes })
}

fn show(replay: &Replayed) {
    let then = &replay.then.listed;
    print::line(format_args!("{} {}", then.tool, print::clip(&replay.then.arguments.to_string(), 200)));
    print::line(format_args!(
        "then  {}  {}, generation {}",
        journal::when(&then.at),
        journal::outcome(then),
        then.generation
    ));
    let now = &replay.now;
    let how = now.error.as_ref().map_or("ok", |e| e.code());
    let ms = now.duration.as_secs_f64() * 1000.0;
    print::line(format_args!("now   {:19}  {how} in {ms:.1} ms, generation {}", "", now.generation));
    print::line("");
    if replay.diff.is_empty() {
        print::line(format_args!("the same text:\n{}", now.for_person()));
    } else {
        settings::diff_lines(&replay.diff).iter().for_each(print::line);
    }
    for change in replay.changes.iter().filter(|change| matches!(change.what, "parts" | "structured")) {
        let side = |value: &Value| print::clip(&value.to_string(), 200);
        print::line(format_args!("{}: {} then, {} now", change.what, side(&change.then), side(&change.now)));
    }
    tell_failure(now);
}

fn tell_failure(now: &Outcome) {
    if !now.ok {
        call::show_failure(now);
    }
}
