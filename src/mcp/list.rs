//! The tools as MCP shows them, rendered once per change and never per request. It lists; whether a call may run is the gate's.

use crate::app::Host;
use crate::tool::registry::{LiveTool, Snapshot};
use crate::tool::spec::{SideEffect, Spec};
use crate::tool::toolset::{self, Wish};
use crate::tool::{port, saved};
use arc_swap::ArcSwap;
use rmcp::model::{Icon, JsonObject, Tool, ToolAnnotations};
use serde_json::Value;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

/// Characters of an EMOJI that are drawn: one sign may be a sequence of several.
const SIGN: usize = 8;

/// What is listed at one moment.
pub(super) struct Rendered {
    /// The revision of the tools that it was made from.
    pub(super) revision: u64,
    /// Counts what a client would see as different.
    pub(super) version: u64,
    /// A JSON list of tools.
    pub(super) json: Box<[u8]>,
    /// The names that may be called through this door: the listed ones, and those that a setting hides just now.
    pub(super) offered: Arc<BTreeSet<String>>,
}

/// The list of one door.
pub(super) struct List {
    host: Host,
    words: Option<(String, Vec<String>)>,
    current: ArcSwap<Rendered>,
    pieces: Mutex<HashMap<String, Piece>>,
}

/// One tool's part of the list, kept while its schema is the same one.
struct Piece {
    spec: Arc<Spec>,
    emoji: Arc<str>,
    json: Box<[u8]>,
}

impl List {
    /// The list of the tools that `words` stand for, such as `web, files`; of all where there are none.
    pub(super) fn new(host: &Host, words: Option<&str>) -> List {
        let words = words.map(toolset::split_words).and_then(|(first, extra)| first.map(|first| (first, extra)));
        // Never a revision of the registry: the first look renders.
        let nothing = Rendered { revision: u64::MAX, version: 0, json: Box::from(&b"[]"[..]), offered: Arc::default() };
        List { host: host.clone(), words, current: ArcSwap::from_pointee(nothing), pieces: Mutex::default() }
    }

    /// What is listed now.
    pub(super) fn current(&self) -> Arc<Rendered> {
        let snapshot = self.host.dispatcher().snapshot();
        let rendered = self.current.load_full();
        if rendered.revision == snapshot.revision { rendered } else { self.render(&snapshot) }
    }

    /// What the last look rendered.
    pub(super) fn last(&self) -> Arc<Rendered> {
        self.current.load_full()
    }

    fn render(&self, snapshot: &Arc<Snapshot>) -> Arc<Rendered> {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.current.load_full();
        if before.revision == snapshot.revision {
            return before;
        }
        let offered = self.offered(snapshot);
        let mut old = std::mem::take(&mut *pieces);
        let mut json = Vec::with_capacity(before.json.len() + 1024);
        json.push(b'[');
        for tool in snapshot.iter().filter(|t| offered.contains(&t.spec.name) && !t.is_gated_off()) {
            let same = |p: &Piece| Arc::ptr_eq(&p.spec, &tool.spec) && p.emoji == tool.emoji;
            let piece = old.remove(&tool.spec.name).filter(same).unwrap_or_else(|| Piece {
                spec: tool.spec.clone(),
                emoji: tool.emoji.clone(),
                json: serde_json::to_vec(&describe(tool)).unwrap_or_default().into(),
            });
            // A tool that cannot be written down is left out; its neighbours stay.
            if piece.json.is_empty() {
                continue;
            }
            if json.len() > 1 {
                json.push(b',');
            }
            json.extend_from_slice(&piece.json);
            pieces.insert(tool.spec.name.clone(), piece);
        }
        json.push(b']');
        let version = before.version + u64::from(*before.json != *json);
        let rendered =
            Arc::new(Rendered { revision: snapshot.revision, version, json: json.into(), offered: Arc::new(offered) });
        self.current.store(rendered.clone());
        rendered
    }

    fn offered(&self, snapshot: &Snapshot) -> BTreeSet<String> {
        let Some((word, extra)) = &self.words else {
            return snapshot.iter().filter(|t| !t.spec.hidden).map(|t| t.spec.name.clone()).collect();
        };
        let catalog = port::catalog(snapshot, &[]);
        let wish = Wish { toolset: Some(word), extra, ..Wish::default() };
        // A file that cannot be read saves no set: what a word stands for without one is offered all the same.
        let saved = saved::load(self.host.paths()).unwrap_or_default();
        let resolved = toolset::resolve(&catalog, &saved, &wish);
        for unknown in resolved.dangling.iter().chain(&resolved.unknown) {
            tracing::warn!(word = %unknown, "no toolset, category or plugin has this name");
        }
        resolved.names.unwrap_or_default().into_iter().collect()
    }
}

/// A tool as MCP describes it.
pub(super) fn describe(tool: &LiveTool) -> Tool {
    let spec = &*tool.spec;
    let parameters = match &spec.parameters {
        Value::Object(map) => map.clone(),
        _ => JsonObject::new(),
    };
    let effect = spec.effective_side_effect();
    let mut shown = Tool::new(spec.name.clone(), spec.description.clone(), parameters).with_annotations(
        ToolAnnotations::new()
            .read_only(effect <= SideEffect::Read)
            .destructive(effect >= SideEffect::Write)
            .open_world(spec.is_open_world()),
    );
    // Clients of the older revisions take only objects here.
    if let Some(Value::Object(schema)) = &spec.output_schema
        && schema.get("type").is_some_and(|t| t == "object")
    {
        shown = shown.with_raw_output_schema(Arc::new(schema.clone()));
    }
    let sign: String = tool.emoji.trim().chars().filter(|c| !c.is_control()).take(SIGN).collect();
    if !sign.is_empty() {
        shown = shown.with_title(format!("{sign} {}", spec.name.replace('_', " "))).with_icons(vec![
            Icon::new(icon(&sign)).with_mime_type("image/svg+xml").with_sizes(vec!["any".to_owned()]),
        ]);
    }
    shown
}

/// A picture of a sign as a `data:` address: nothing is fetched to show it.
fn icon(sign: &str) -> String {
    let mut text = String::with_capacity(sign.len());
    for c in sign.chars() {
        match c {
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '&' => text.push_str("&amp;"),
            c => text.push(c),
        }
    }
    let svg = format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 100 100'><text x='50' y='80' font-size='80' text-anchor='middle'>{text}</text></svg>"
    );
    let mut uri = String::from("data:image/svg+xml,");
    for byte in svg.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~/:='".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Result;
    use crate::script::ctx::{Ctx, PluginCtx};
    use crate::service::permissions::Permission;
    use crate::tool::registry::{Code, NativeTool};
    use serde_json::json;

    struct Nothing;
    impl NativeTool for Nothing {
        fn call(&self, _: &Arc<Ctx>, _: &JsonObject) -> Result<Value> {
            Ok(Value::Null)
        }
    }

    fn shown(emoji: &str, change: impl FnOnce(&mut Spec)) -> Value {
        let mut spec = Spec::new("roll_dice", "Rolls.", json!({"type": "object", "properties": {}}));
        change(&mut spec);
        let plugin = Arc::new(PluginCtx {
            name: "dice".into(),
            assets: None,
            grants: Default::default(),
            direct: Default::default(),
        });
        let tool = LiveTool {
            name: spec.name.as_str().into(),
            spec: Arc::new(spec),
            code: Code::Native(Arc::new(Nothing), plugin),
            plan: [].into(),
            function: "roll_dice".into(),
            category: "system".into(),
            emoji: emoji.into(),
            gated_by: None,
            settings: Arc::default(),
            pace: Default::default(),
        };
        serde_json::to_value(describe(&tool)).unwrap()
    }

    #[test]
    fn annotations_follow_the_flags() {
        let hints = |change: fn(&mut Spec)| {
            let tool = shown("", change);
            let a = &tool["annotations"];
            ["readOnlyHint", "destructiveHint", "openWorldHint"].map(|hint| a[hint].as_bool().unwrap())
        };
        assert_eq!(hints(|_| ()), [true, false, false]);
        assert_eq!(hints(|s| s.side_effect = Some(SideEffect::None)), [true, false, false]);
        assert_eq!(hints(|s| s.side_effect = Some(SideEffect::Write)), [false, true, false]);
        assert_eq!(hints(|s| s.side_effect = Some(SideEffect::Spend)), [false, true, false]);
        assert_eq!(hints(|s| s.writes = true), [false, true, false]);
        assert_eq!(hints(|s| s.network = true), [true, false, true]);
        assert_eq!(hints(|s| s.permissions = vec![Permission::ExternalHttp]), [true, false, true]);
        assert_eq!(hints(|s| s.permissions = vec![Permission::WriteFiles]), [false, true, false]);
    }

    #[test]
    fn a_sign_becomes_a_title_and_a_picture_that_can_hold_no_markup() {
        let tool = shown("🎲", |_| ());
        assert_eq!(tool["title"], "🎲 roll dice");
        let src = tool["icons"][0]["src"].as_str().unwrap();
        assert!(src.starts_with("data:image/svg+xml,%3Csvg") && src.contains("%F0%9F%8E%B2"), "{src}");
        let tool = shown("<b>&\n", |_| ());
        let src = tool["icons"][0]["src"].as_str().unwrap();
        assert!(src.contains("%26lt%3Bb%26gt%3B%26amp%3B"), "{src}");
        let plain = shown("", |_| ());
        assert!(plain.get("title").is_none() && plain.get("icons").is_none());
    }

    #[test]
    fn only_an_object_is_declared_as_the_shape_of_a_result() {
        let with = |schema: Value| shown("", |s| s.output_schema = Some(schema)).get("outputSchema").cloned();
        let object = json!({"type": "object", "properties": {"sum": {"type": "integer"}}});
        assert_eq!(with(object.clone()), Some(object));
        assert_eq!(with(json!({"type": "array"})), None);
        assert_eq!(with(json!({"oneOf": []})), None);
    }
}
