//! `/api/tool-image/{id}`: the pictures of results, as the person got them or as the model was shown them.

use super::Api;
use super::answer::{Answer, Asked, At, blocking};
use super::table::{Content, Op, get};
use crate::base::error::{Error, Kind, excerpt};
use crate::service::images::{self, Audience};
use crate::service::picture::{self, PREFIX};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// A picture never changes under its id.
const KEPT: &str = "private, max-age=31536000, immutable";

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/tool-image/{id}", "A picture of a result", serve)
            .asks::<ImageAsked>()
            .answers(200, Content::Bytes("image/*")),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ImageAsked {
    /// Whose copy: the person's unless given, or the model's.
    #[serde(default)]
    view: WhoseCopy,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum WhoseCopy {
    #[default]
    Person,
    Model,
}

async fn serve(State(api): State<Arc<Api>>, At(id): At<String>, Asked(asked): Asked<ImageAsked>) -> Answer<Response> {
    let (media_type, data) = blocking(&api, move |host| {
        let missing = || {
            let shown = excerpt(&id, 80);
            Error::not_found(format!("there is no picture `{shown}`")).hint("old pictures of this door are dropped")
        };
        let handle = if id.starts_with(PREFIX) { id.clone() } else { format!("{PREFIX}{id}") };
        let id = picture::id_of(&handle).ok_or_else(missing)?;
        let data = host.services().store.open_image(id)?.ok_or_else(missing)?;
        let own = images::media_type(&data)?;
        if asked.view == WhoseCopy::Person {
            return Ok((own, data));
        }
        let image = images::shown_image(data, Audience::Both, &|| Ok(()))?;
        match image.for_model() {
            Some((_, bytes)) => Ok((images::media_type(bytes).unwrap_or(own), bytes.to_vec())),
            None => Err(Error::new(Kind::BadImage, "a model is shown nothing of this picture")
                .hint("without `view=model` it is the person's copy")),
        }
    })
    .await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::CACHE_CONTROL, HeaderValue::from_static(KEPT)),
    ];
    Ok((headers, data).into_response())
}
