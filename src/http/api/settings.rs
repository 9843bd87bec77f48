//! `/api/plugins/{name}/settings`: seen, tried, saved and taken back, through the same transaction as everywhere.

use super::Api;
use super::answer::{Answer, Asked, At, Refusal, Sent, blocking, header_text, tagged, version_of};
use super::table::{Op, delete, get, post, put};
use super::tools::PreviewAsked;
use crate::base::error::{Error, Kind, excerpt};
use crate::plugin::preview::{Look, Preview};
use crate::plugin::tune::{Change, Mode, Tuned, View};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::sync::Arc;

pub(super) fn ops() -> Vec<Op> {
    const PATHS: [&str; 2] = ["/api/plugins/{name}/settings", "/api/webui/plugins/{name}/settings"];
    const VERSION: &[(&str, &str)] =
        &[("If-Match", "The version that was read: nothing is changed where another is there.")];
    let mut ops = vec![
        post(
            "/api/plugins/{name}/settings/preview",
            "What a model would read under a change, which is not saved",
            preview,
        )
        .asks::<PreviewAsked>()
        .takes::<SettingsSent>()
        .gives::<Preview>(),
    ];
    for path in PATHS {
        ops.extend([
            get(path, "A plugin's settings: fields, values and version", show).gives::<View>(),
            put(path, "Change some settings, or nothing where `If-Match` names another version", save)
                .hears(VERSION)
                .takes::<SettingsSent>()
                .gives::<Tuned>(),
            delete(path, "Take settings back to their defaults, by `key`, or all", reset)
                .asks::<ResetAsked>()
                .hears(VERSION)
                .gives::<Tuned>(),
        ]);
    }
    ops
}

/// Settings to change: the values by key, as they are or under `settings`. Keys that are not named stay.
#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
struct SettingsSent(Map<String, Value>);

impl SettingsSent {
    fn patch(mut self) -> Map<String, Value> {
        match self.0.get_mut("settings").filter(|inner| inner.is_object()).map(Value::take) {
            Some(Value::Object(inner)) if self.0.len() == 1 => inner,
            Some(inner) => {
                self.0.insert("settings".to_owned(), inner);
                self.0
            }
            None => self.0,
        }
    }
}

async fn show(State(api): State<Arc<Api>>, At(name): At<String>) -> Answer<Response> {
    let view = blocking(&api, move |host| host.plugins().settings_view(&name)).await?;
    Ok(tagged(&view.etag.clone(), Json(view)))
}

async fn save(
    State(api): State<Arc<Api>>,
    At(name): At<String>,
    headers: HeaderMap,
    Sent(sent): Sent<SettingsSent>,
) -> Answer<Response> {
    tune(&api, name, Change::Patch(sent.patch()), &headers).await
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "it documents the query, where a key may stand again and again")]
struct ResetAsked {
    /// A setting; may stand again for others. All of them where there is none.
    key: Option<Vec<String>>,
}

async fn reset(State(api): State<Arc<Api>>, At(name): At<String>, uri: Uri, headers: HeaderMap) -> Answer<Response> {
    let mut keys = Vec::new();
    for (key, value) in url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        if key != "key" {
            let shown = excerpt(&key, 60);
            return Err(Error::invalid(format!("the query has an unknown field `{shown}`"))
                .hint("known is `key`")
                .into());
        }
        keys.push(value.into_owned());
    }
    tune(&api, name, Change::Reset(keys), &headers).await
}

async fn tune(api: &Arc<Api>, name: String, change: Change, headers: &HeaderMap) -> Answer<Response> {
    // `*` asks for any version that is there, and there always is one.
    let version = header_text(headers, header::IF_MATCH).map(version_of).filter(|tag| *tag != "*").map(str::to_owned);
    let tuned = blocking(api, move |host| {
        let plugins = host.plugins();
        match plugins.tune(&name, &change, Mode::Commit, version.as_deref()) {
            Ok(tuned) => Ok(Ok(tuned)),
            Err(e) if e.kind() == Kind::Conflict => Ok(Err((e, plugins.settings_view(&name).ok()))),
            Err(e) => Err(e),
        }
    })
    .await?;
    match tuned {
        Ok(tuned) => Ok(tagged(&tuned.etag.clone(), Json(tuned))),
        // What is there now comes along, for whoever has to look before saving again.
        Err((e, now)) => Err(Refusal::from(e).with("current", serde_json::to_value(now).unwrap_or_default())),
    }
}

async fn preview(
    State(api): State<Arc<Api>>,
    At(name): At<String>,
    Asked(asked): Asked<PreviewAsked>,
    Sent(sent): Sent<SettingsSent>,
) -> Answer<Json<Preview>> {
    let look = Look { dialect: asked.dialect()?, change: Some(Change::Patch(sent.patch())) };
    let preview = blocking(&api, move |host| {
        // A tool of that name is not meant here.
        host.plugins().known(&name)?;
        host.plugins().preview_of_plugin(&name, &look)
    });
    Ok(Json(preview.await?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_may_stand_alone_or_under_settings() {
        for (sent, patch) in [
            (json!({ "a": 1 }), json!({ "a": 1 })),
            (json!({ "settings": { "a": 1 } }), json!({ "a": 1 })),
            (json!({ "settings": {} }), json!({})),
            (json!({ "settings": "text" }), json!({ "settings": "text" })),
            (json!({ "settings": { "a": 1 }, "b": 2 }), json!({ "settings": { "a": 1 }, "b": 2 })),
            (json!({}), json!({})),
        ] {
            let read: SettingsSent = serde_json::from_value(sent.clone()).unwrap();
            assert_eq!(Value::Object(read.patch()), patch, "{sent}");
        }
    }
}
