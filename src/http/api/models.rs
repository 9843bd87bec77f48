//! `/api/models`: the models that answer in chats, servers of others that run on this machine, and one of those taken in.

use super::Api;
use super::answer::{Answer, Asked, Sent, blocking};
use super::table::{Content, Op, get, post, schema_of};
use crate::base::error::{Error, excerpt};
use crate::model::Profile;
use crate::model::local::{self, Offer};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/models", "The models that answer in chats, and servers of others that run on this machine", list)
            .asks::<ModelsAsked>()
            .gives::<ModelList>(),
        post(
            "/api/models",
            "Take in a model of a server that was found: it is written into user/lapidary.toml",
            accept,
        )
        .takes::<ModelChosen>()
        .answers(201, Content::Json(schema_of::<ModelShown>())),
    ]
}

/// A model as a person chooses one.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Model")]
pub(super) struct ModelShown {
    /// What it is called here.
    name: String,
    /// What its server calls it.
    model: String,
    /// Whether it may serve private chats.
    local: bool,
    /// Whether it sees pictures.
    vision: bool,
    /// Whether it calls tools.
    tools: bool,
    /// How much it reads at most, in tokens; 0 where that is not known.
    context: u32,
}

impl From<Profile> for ModelShown {
    fn from(profile: Profile) -> Self {
        let Profile { name, model, local, vision, tools, context, .. } = profile;
        ModelShown { name, model, local, vision, tools, context }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModelsAsked {
    /// Also look for servers on the usual ports of this machine, which takes a second at most.
    #[serde(default)]
    find: bool,
    /// Look on this port of this machine instead.
    port: Option<u16>,
}

/// The models.
#[derive(Serialize, JsonSchema)]
struct ModelList {
    /// Those that answer in chats; the first is used unless a chat says otherwise.
    models: Vec<ModelShown>,
    /// Servers that were found, where they were looked for.
    found: Vec<ModelServer>,
}

/// A server of models on this machine.
#[derive(Serialize, JsonSchema)]
struct ModelServer {
    /// Its address.
    base_url: String,
    /// What usually serves there.
    kind: String,
    /// The models it has, by its own names.
    models: Vec<String>,
}

impl From<Offer> for ModelServer {
    fn from(offer: Offer) -> Self {
        ModelServer { base_url: offer.base_url, kind: offer.kind, models: offer.models }
    }
}

async fn list(State(api): State<Arc<Api>>, Asked(asked): Asked<ModelsAsked>) -> Json<ModelList> {
    let found = match asked.port {
        Some(port) => on(&api, port).await,
        None if asked.find => api.host.model_offers().await,
        None => Vec::new(),
    };
    let models = api.host.models().profiles().into_iter().map(ModelShown::from).collect();
    Json(ModelList { models, found: found.into_iter().map(ModelServer::from).collect() })
}

/// What serves models on a port of this machine.
async fn on(api: &Api, port: u16) -> Vec<Offer> {
    let usual = local::USUAL.iter().find(|(known, _)| *known == port);
    local::find_on(&api.host.services().net, &[(port, usual.map_or("a server of models", |(_, kind)| *kind))]).await
}

/// A model of a server that was found.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ModelChosen {
    /// The server's address, as it was found.
    base_url: String,
    /// The model, by the server's own name.
    model: String,
}

async fn accept(
    State(api): State<Arc<Api>>,
    Sent(chosen): Sent<ModelChosen>,
) -> Answer<(StatusCode, Json<ModelShown>)> {
    let missing = || {
        Error::not_found(format!("no server of models answers at `{}`", excerpt(&chosen.base_url, 80)))
            .hint("GET /api/models?find=true lists those of this machine; others go into user/lapidary.toml by hand")
    };
    // Only what answers on this machine now: any other address that was sent is nothing to go to.
    let port = chosen.base_url.strip_prefix("http://127.0.0.1:").and_then(|rest| rest.strip_suffix("/v1"));
    let port = port.and_then(|port| port.parse().ok()).ok_or_else(missing)?;
    let offer = on(&api, port).await.pop().ok_or_else(missing)?;
    let entry = blocking(&api, move |host| host.accept_model(&offer, &chosen.model)).await?;
    Ok((StatusCode::CREATED, Json(entry.profile.into())))
}
