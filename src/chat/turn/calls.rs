//! The calls of one reply: those that only read run side by side, those that change something run alone and in their order. Every
//! call gets exactly one result.

use super::super::live::{Happening, Live};
use super::super::row::{self, Body, Call};
use super::Turn;
use crate::base::error::{Error, Kind};
use crate::script::ctx::Sink;
use crate::tool::dispatch::{Arguments, Call as ToolCall, CallHandle, Outcome, Who};
use crate::tool::result::failure_text;
use crate::tool::spec::SideEffect;
use futures_util::future::join_all;
use serde_json::Map;
use std::collections::HashMap;
use std::sync::Arc;

/// Most calls of one reply that run; the others are told so.
const AT_ONCE: usize = 8;
/// Most characters of a result that viewers are told before its message is written.
const SHOWN: usize = 500;

impl Turn {
    /// Runs the calls of a reply and gives their results, in their order. `left` rounds follow.
    pub(super) fn run_calls(&self, made: &[Call], counts: &mut HashMap<String, u32>, left: u32) -> Vec<Body> {
        let (run, over) = made.split_at(made.len().min(AT_ONCE));
        let mut results = Vec::with_capacity(made.len());
        let mut rest = run;
        while !rest.is_empty() {
            let reads = rest.iter().take_while(|call| self.only_reads(&call.name)).count().max(1);
            let (group, after) = rest.split_at(reads);
            rest = after;
            if self.stop.is_stopped() {
                results.extend(group.iter().map(cancelled));
                continue;
            }
            for call in group {
                self.live.tell(Happening::ToolStart {
                    id: call.id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                });
            }
            let outcomes = self.services.runtime.block_on(async {
                let handles: Vec<Arc<CallHandle>> = group.iter().map(|_| Arc::default()).collect();
                let all =
                    join_all(group.iter().zip(&handles).map(|(call, handle)| self.dispatch(call, handle.clone())));
                tokio::pin!(all);
                tokio::select! {
                    outcomes = &mut all => outcomes,
                    () = self.stop.stopped() => {
                        handles.iter().for_each(|handle| handle.cancel());
                        // A call that was cancelled still says how it ended.
                        all.await
                    }
                }
            });
            for (call, outcome) in group.iter().zip(outcomes) {
                let count = counts.entry(call.name.clone()).or_default();
                *count += 1;
                results.push(self.result(call, &outcome, *count));
            }
        }
        let error = Error::new(Kind::Quota, format!("at most {AT_ONCE} calls of one reply run; this one did not"))
            .hint(if left > 0 { "call it again in the next reply" } else { "the steps of this turn are used up" });
        results.extend(over.iter().map(|call| refused(call, &error)));
        for body in &results[run.len()..] {
            self.told(body);
        }
        results
    }

    fn only_reads(&self, tool: &str) -> bool {
        let reads = |effect: SideEffect| matches!(effect, SideEffect::None | SideEffect::Read);
        self.snapshot.get(tool).is_some_and(|tool| reads(tool.spec.effective_side_effect()))
    }

    async fn dispatch(&self, call: &Call, handle: Arc<CallHandle>) -> Outcome {
        let who = Who {
            caller: "ai".into(),
            door: "chat",
            chat: Some(self.name.clone()),
            private: self.settings.private,
            scopes: Some(self.scopes.clone()),
            allowed: Some(Arc::new(self.tools.clone())),
        };
        let sink = Arc::new(Told { live: self.live.clone(), id: call.id.clone() });
        self.dispatcher
            .call_async(ToolCall {
                arguments: Arguments::Text(call.arguments.clone()),
                sink,
                snapshot: Some(self.snapshot.clone()),
                handle: Some(handle),
                ..ToolCall::new(call.name.as_str(), Map::new(), who)
            })
            .await
    }

    /// The row of a result. Its first line says how the call ended, always in the same way.
    fn result(&self, call: &Call, outcome: &Outcome, count: u32) -> Body {
        let code = outcome.error.as_ref().map(|e| e.code().to_owned());
        let head = head(outcome.ok, code.as_deref());
        let mut model_text = format!("{head}\n{}", outcome.text);
        if let Some(warn) = self.snapshot.get(&call.name).and_then(|tool| tool.spec.loop_warn.clone())
            && count >= warn.after
        {
            let message = warn.message.unwrap_or_else(|| {
                "This tool was called {count} times in this turn, and every call costs: do not try again, answer with what you have.".to_owned()
            });
            model_text.push_str("\n\n");
            model_text.push_str(&message.replace("{count}", &count.to_string()));
        }
        let body = Body {
            text: outcome.for_person().to_owned(),
            model_text: Some(model_text),
            call: Some(call.id.clone()),
            name: Some(call.name.clone()),
            ok: Some(outcome.ok),
            code,
            took_ms: u64::try_from(outcome.duration.as_millis()).ok(),
            parts: outcome.parts.iter().map(row::part).collect(),
            ..Body::default()
        };
        self.told(&body);
        body
    }

    fn told(&self, body: &Body) {
        let text = &body.text[..body.text.floor_char_boundary(SHOWN)];
        self.live.tell(Happening::ToolEnd {
            id: body.call.clone().unwrap_or_default(),
            name: body.name.clone().unwrap_or_default(),
            ok: body.ok.unwrap_or(false),
            code: body.code.clone(),
            text: text.to_owned(),
            parts: body.parts.clone(),
        });
    }
}

fn head(ok: bool, code: Option<&str>) -> String {
    if ok { "[ok]".to_owned() } else { format!("[failed: {}]", code.unwrap_or("internal")) }
}

/// The result of a call that did not run.
pub(super) fn refused(call: &Call, e: &Error) -> Body {
    let text = failure_text(e);
    Body {
        model_text: Some(format!("{}\n{text}", head(false, Some(e.code())))),
        text,
        call: Some(call.id.clone()),
        name: Some(call.name.clone()),
        ok: Some(false),
        code: Some(e.code().to_owned()),
        ..Body::default()
    }
}

fn cancelled(call: &Call) -> Body {
    refused(call, &Error::new(Kind::Cancelled, "the user stopped this turn before the call ran"))
}

/// Tells the viewers of a chat how far a call is.
struct Told {
    live: Arc<Live>,
    id: String,
}

impl Sink for Told {
    fn status(&self, text: &str) {
        self.live.tell(Happening::ToolProgress {
            id: self.id.clone(),
            text: Some(text.to_owned()),
            done: None,
            total: None,
        });
    }

    fn step(&self, done: i64, total: i64) {
        self.live.tell(Happening::ToolProgress {
            id: self.id.clone(),
            text: None,
            done: Some(done),
            total: Some(total),
        });
    }
}
