//! What a call returned, made into its outcome: without the values of credentials, shaped, in both copies, with its parts.

use super::{Dispatcher, FAILURE_CHARS, Outcome};
use crate::base::error::{Error, Kind, Result};
use crate::script::ctx::Ctx;
use crate::service::markers::{Mint, Part};
use crate::service::picture::Image;
use crate::service::secret::Redactor;
use crate::tool::pictures;
use crate::tool::registry::LiveTool;
use crate::tool::result::{self, Shaped};
use crate::tool::spec::Spec;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

impl Dispatcher {
    pub(super) fn finish(
        &self,
        ctx: &Ctx,
        parent: Option<(&Arc<Ctx>, usize)>,
        tool: &LiveTool,
        done: Result<Returned>,
        chars: usize,
    ) -> Outcome {
        let plugin = tool.plugin().name.clone();
        let done = match ctx.redactor() {
            None => done,
            Some(redactor) => done.map(|returned| returned.without(&redactor)).map_err(|e| redactor.error(e)),
        };
        let fail = |e: Error| {
            let e = self.tame(e);
            let e = if e.fallbacks().is_empty() { e.with_fallbacks(tool.spec.fallbacks.clone()) } else { e };
            ended(plugin.clone(), tool.generation(), Err(name_tool(e, tool)))
        };
        let (shaped, shown, parts) = match done {
            Ok(returned) => self.shape(ctx, parent, tool, returned, chars),
            Err(e) => return fail(e),
        };
        if let Some(broken) = shaped.broken {
            return Outcome { warnings: shaped.warnings, rest: shaped.rest, ..fail(broken) };
        }
        let mut outcome = ended(plugin.clone(), tool.generation(), Ok(shaped.text));
        if !shaped.ok {
            outcome.ok = false;
            outcome.error =
                Some(Error::new(Kind::Internal, outcome.text.clone()).with_fallbacks(tool.spec.fallbacks.clone()));
        }
        outcome.warnings = shaped.warnings;
        outcome.structured = shaped.structured;
        outcome.rest = shaped.rest;
        outcome.shown = shown;
        outcome.parts = parts;
        outcome
    }

    /// Both copies of what was returned, and what stands beside them. What a nested call made stays in its text, for the script
    /// that called it to pass on or to drop.
    fn shape(
        &self,
        ctx: &Ctx,
        parent: Option<(&Arc<Ctx>, usize)>,
        tool: &LiveTool,
        returned: Returned,
        chars: usize,
    ) -> (Shaped, Option<String>, Vec<Part>) {
        let Returned { mut value, images, warnings } = returned;
        let shape = |value| result::shape(value, &tool.spec, chars, &self.handles);
        if images.is_empty() && ctx.mint.is_empty() && warnings.is_empty() {
            return (shape(value), None, Vec::new());
        }
        let Some(text) = result::text_of(&mut value).map(std::mem::take) else {
            return (shape(value), None, Vec::new());
        };
        let untouched = Mint::default();
        let mint = match parent {
            Some((outer, _)) => {
                outer.mint.adopt(&ctx.mint, &images);
                &untouched
            }
            None => &ctx.mint,
        };
        let mut shaped = None;
        let has_images = !images.is_empty();
        let copies = mint.copies(text, images, |text| {
            let is_bare = text.is_empty() && has_images;
            if let Some(slot) = result::text_of(&mut value) {
                *slot = text;
            }
            let made = shape(std::mem::take(&mut value));
            let text = if is_bare { String::new() } else { made.text.clone() };
            shaped = Some(made);
            text
        });
        let mut shaped = shaped.unwrap_or_else(|| shape(Value::Null));
        let shown = (copies.person != copies.model).then_some(copies.person);
        shaped.text = copies.model;
        shaped.warnings.extend(warnings);
        let again = |part| match part {
            // What a nested call kept is fetched again now that the text passes it on.
            Part::Image(image) if image.data.is_empty() => pictures::again(ctx, image).ok().map(Part::Image),
            other => Some(other),
        };
        (shaped, shown, copies.parts.into_iter().filter_map(again).collect())
    }

    /// What a script throws is shaped as what it returns: short, without raw base64, the rest behind a handle.
    pub(in crate::tool) fn tame(&self, e: Error) -> Error {
        let shape = |text: &str| {
            let plain = Spec::new("failure", "", Value::Null);
            result::shape(Value::String(text.to_owned()), &plain, FAILURE_CHARS, &self.handles).text
        };
        let hint = e.hint_text().filter(|h| h.len() > FAILURE_CHARS).map(shape);
        let e = if e.message().len() > FAILURE_CHARS { e.reworded(shape) } else { e };
        match hint {
            Some(hint) => e.hint(hint),
            None => e,
        }
    }
}

/// What a tool returned: its value, and the pictures that came with its text.
pub(super) struct Returned {
    value: Value,
    images: Vec<Image>,
    warnings: Vec<String>,
}

impl Returned {
    pub(super) fn of(ctx: &Ctx, value: Value, given: pictures::Given) -> Result<Returned> {
        let (images, warnings) = if given.is_empty() { Default::default() } else { given.keep(ctx)? };
        Ok(Returned { value, images, warnings })
    }
}

impl Returned {
    /// Without the values of credentials.
    fn without(mut self, redactor: &Redactor) -> Returned {
        let mut clean = |text: String| redactor.text(&text).into_owned();
        self.value = redactor.json(self.value);
        self.images = self.images.into_iter().map(|image| image.map_texts(&mut clean)).collect();
        self.warnings = self.warnings.into_iter().map(clean).collect();
        self
    }
}

/// How a call ended, without what is told of every call: its id, its tool, its time.
pub(in crate::tool) fn ended(plugin: Arc<str>, generation: u64, done: Result<String>) -> Outcome {
    let (text, error) = match done {
        Ok(text) => (text, None),
        Err(e) => (result::failure_text(&e), Some(e)),
    };
    Outcome {
        call: String::new(),
        tool: String::new(),
        plugin,
        generation,
        ok: error.is_none(),
        text,
        shown: None,
        parts: Vec::new(),
        error,
        structured: None,
        rest: None,
        diagnostic: None,
        warnings: Vec::new(),
        duration: Duration::ZERO,
        operations: 0,
        memory: 0,
    }
}

/// An internal failure names its tool, so that a model can say which one failed.
fn name_tool(e: Error, tool: &LiveTool) -> Error {
    if e.kind() == Kind::Internal { e.context(format!("error in {}", tool.spec.name)) } else { e }
}
