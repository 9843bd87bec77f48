//! `/api/tools`: the tools of this moment, and what a model reads of one.

use super::Api;
use super::answer::{Answer, Asked, At, blocking};
use super::table::{Op, get};
use crate::plugin::preview::{Look, Preview};
use crate::tool::dialect::{Dialect, define_all};
use crate::tool::registry::LiveTool;
use crate::tool::spec::{Locality, Spec};
use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/tools", "The tools of this moment, in the order in which models get them", list)
            .asks::<ToolsAsked>()
            .gives::<Tools>(),
        get(
            "/api/tools/{tool}/preview",
            "What a model reads of a tool, exactly, in the form its provider gets",
            preview,
        )
        .asks::<PreviewAsked>()
        .gives::<Preview>(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolsAsked {
    /// Also those that no model gets: hidden ones, and those that a setting switches off.
    #[serde(default)]
    all: bool,
}

#[derive(Serialize, JsonSchema)]
struct Tools {
    /// Counts effective changes of what a model reads about the tools since the start.
    revision: u64,
    /// The tools.
    tools: Vec<Tool>,
}

/// A tool.
#[derive(Serialize, JsonSchema)]
struct Tool {
    /// Its name, unique in the host.
    name: String,
    /// What it does and when to use it.
    description: String,
    /// JSON Schema of its arguments.
    parameters: Value,
    /// Its plugin.
    plugin: String,
    /// Its category.
    category: String,
    /// Its file's emoji, or empty.
    emoji: String,
    /// The word that stands for the tools of its file in a toolset.
    module: String,
    /// The generation that a call would run; 0 for a tool of the program itself.
    generation: u64,
    /// About how many tokens a model pays to read of it.
    tokens: usize,
    /// Left out of every selection but a saved toolset that names it.
    hidden: bool,
    /// Whether models get it now.
    offered: bool,
    /// What it says of itself.
    flags: Flags,
    /// Arguments to try it with, where its author wrote some.
    #[serde(skip_serializing_if = "Option::is_none")]
    example: Option<Value>,
}

/// What a tool says of itself.
#[derive(Serialize, JsonSchema)]
struct Flags {
    /// `local`, `remote` or `endpoint`; nothing where it does not say.
    locality: Option<&'static str>,
    /// It uses the network.
    network: bool,
    /// It changes something.
    writes: bool,
    /// `none`, `read`, `write` or `spend`.
    side_effect: &'static str,
    /// What it needs to be allowed.
    permissions: Vec<&'static str>,
    /// Its deadline in seconds, where it has one of its own.
    timeout_s: Option<u64>,
    /// A longer explanation for people.
    usage: Option<String>,
    /// JSON Schema of its structured result.
    output_schema: Option<Value>,
    /// The setting that switches it on and off.
    gated_by: Option<String>,
}

impl Flags {
    fn of(tool: &LiveTool) -> Flags {
        let spec: &Spec = &tool.spec;
        Flags {
            locality: match spec.is_local {
                Locality::Local => Some("local"),
                Locality::Endpoint => Some("endpoint"),
                Locality::NotLocal | Locality::Other(_) => Some("remote"),
                Locality::Unset => None,
            },
            network: spec.network,
            writes: spec.writes,
            side_effect: spec.effective_side_effect().as_str(),
            permissions: spec.permissions.iter().map(|p| p.as_str()).collect(),
            timeout_s: spec.timeout_s,
            usage: spec.usage.clone(),
            output_schema: spec.output_schema.clone(),
            gated_by: tool.gated_by.as_deref().map(str::to_owned),
        }
    }
}

async fn list(State(api): State<Arc<Api>>, Asked(asked): Asked<ToolsAsked>) -> Answer<Json<Tools>> {
    let snapshot = api.host.dispatcher().snapshot();
    let is_offered = |tool: &LiveTool| !tool.spec.hidden && !tool.is_gated_off();
    let shown: Vec<_> = snapshot.iter().filter(|tool| asked.all || is_offered(tool)).collect();
    let (definitions, _) = define_all(shown.iter().map(|tool| &*tool.spec), Dialect::default());
    let tools = shown
        .into_iter()
        .zip(definitions)
        .map(|(tool, definition)| Tool {
            name: tool.spec.name.clone(),
            description: tool.spec.description.clone(),
            parameters: tool.spec.parameters.clone(),
            plugin: tool.plugin().name.to_string(),
            category: tool.category.to_string(),
            emoji: tool.emoji.to_string(),
            module: tool.module().to_owned(),
            generation: tool.generation(),
            tokens: definition.tokens,
            hidden: tool.spec.hidden,
            offered: is_offered(tool),
            flags: Flags::of(tool),
            example: tool.spec.examples.first().map(|example| example.arguments.clone()),
        })
        .collect();
    Ok(Json(Tools { revision: snapshot.revision, tools }))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PreviewAsked {
    /// Whose form it has: `openai` unless given, `anthropic`, `gemini`, `llama` or `plain`.
    pub(super) dialect: Option<String>,
}

impl PreviewAsked {
    pub(super) fn dialect(&self) -> Answer<Dialect> {
        Ok(self.dialect.as_deref().map_or(Ok(Dialect::default()), str::parse)?)
    }
}

async fn preview(
    State(api): State<Arc<Api>>,
    At(tool): At<String>,
    Asked(asked): Asked<PreviewAsked>,
) -> Answer<Json<Preview>> {
    let look = Look { dialect: asked.dialect()?, change: None };
    Ok(Json(blocking(&api, move |host| host.preview(&tool, &look)).await?))
}
