//! `/api/tools`: the tools of this moment, and what a model reads of one.

use super::Api;
use super::answer::{Answer, Asked, At, blocking, encoded, json_text};
use super::table::{Op, get};
use crate::app;
use crate::plugin::preview::{Look, Preview};
use crate::tool::dialect::{Dialect, define_all};
use crate::tool::registry::LiveTool;
use crate::tool::spec::{Locality, Spec};
use axum::Json;
use axum::extract::State;
use axum::response::Response;
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

/// A tool, and what an owner wants to know of it.
#[derive(Serialize, JsonSchema)]
struct Tool {
    #[serde(flatten)]
    tool: app::Tool,
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

async fn list(State(api): State<Arc<Api>>, Asked(asked): Asked<ToolsAsked>) -> Answer<Response> {
    // Counting tokens writes every definition, and a workshop may have a thousand.
    let listed = blocking(&api, move |host| {
        let snapshot = host.dispatcher().snapshot();
        let shown: Vec<_> = snapshot.iter().filter(|tool| asked.all || tool.is_offered()).collect();
        let (definitions, _) = define_all(shown.iter().map(|tool| &*tool.spec), Dialect::default());
        let tools = shown.into_iter().zip(definitions).map(|(tool, definition)| Tool {
            tool: app::Tool::of(tool),
            tokens: definition.tokens,
            hidden: tool.spec.hidden,
            offered: tool.is_offered(),
            flags: Flags::of(tool),
            example: tool.spec.examples.first().map(|example| example.arguments.clone()),
        });
        encoded("the list", &Tools { revision: snapshot.revision, tools: tools.collect() })
    });
    Ok(json_text(listed.await?))
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
