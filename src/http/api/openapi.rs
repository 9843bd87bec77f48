//! `/api/openapi.json`: the table of operations as an OpenAPI 3.1 document, with the schemas of the types that are really read
//! and written. Nothing is said here that the table or the types do not say.

use super::Api;
use super::answer::{Answer, blocking, encoded, json_text};
use super::table::{Audience, Content, Op, SchemaOf, get, schema_of};
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::{Arc, OnceLock};

/// Where the document keeps its schemas.
const SCHEMAS: &str = "#/components/schemas";

pub(super) fn ops() -> Vec<Op> {
    vec![
        get("/api/openapi.json", "This document", document)
            .answers(200, Content::Json(schema_of::<Map<String, Value>>())),
    ]
}

/// The document never changes while a host runs.
#[derive(Default)]
pub(super) struct Document(OnceLock<Bytes>);

async fn document(State(api): State<Arc<Api>>) -> Answer<Response> {
    if let Some(made) = api.document.0.get() {
        return Ok(json_text(made.clone()));
    }
    let cookie = api.keys.cookie_name(false);
    let made = blocking(&api, move |_| encoded("the document", &of(&super::table(), &cookie))).await?;
    let made = Bytes::from(made);
    Ok(json_text(api.document.0.get_or_init(|| made).clone()))
}

/// The body of every failure. Some say more, such as what is there now.
#[derive(Serialize, JsonSchema)]
struct Failure {
    /// Always false.
    ok: bool,
    /// What went wrong.
    error: FailureError,
}

/// What went wrong.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "FailureError")]
struct FailureError {
    /// The word of the closed list.
    code: crate::base::error::Kind,
    /// What happened.
    message: String,
    /// What to do next.
    hint: Option<String>,
}

/// Makes schemas of both kinds into one list: of what is written, and of what is read.
struct Schemas {
    written: SchemaGenerator,
    read: SchemaGenerator,
}

impl Schemas {
    fn new() -> Schemas {
        let settings = || {
            SchemaSettings::draft2020_12().with(|s| {
                s.meta_schema = None;
                s.definitions_path = SCHEMAS.trim_start_matches('#').into();
            })
        };
        Schemas {
            written: settings().for_serialize().into_generator(),
            read: settings().for_deserialize().into_generator(),
        }
    }

    fn of_answer(&mut self, schema: SchemaOf) -> Schema {
        schema(&mut self.written)
    }

    fn of_request(&mut self, schema: SchemaOf) -> Schema {
        schema(&mut self.read)
    }

    fn all(mut self) -> Map<String, Value> {
        let mut all = self.read.take_definitions(true);
        for (name, schema) in self.written.take_definitions(true) {
            all.insert(name, schema);
        }
        all.sort_keys();
        all
    }
}

/// The document about these operations.
fn of(table: &[Op], cookie: &str) -> Value {
    let mut schemas = Schemas::new();
    let failure = schemas.of_answer(schema_of::<Failure>());
    let mut paths: Map<String, Value> = Map::new();
    let mut tags: Vec<&str> = Vec::new();
    for op in table {
        let tag = tag(op.path);
        if !tags.contains(&tag) {
            tags.push(tag);
        }
        let entry = paths.entry(op.path).or_insert_with(|| json!({}));
        entry[op.method.as_str().to_ascii_lowercase()] = operation(op, tag, &mut schemas);
    }
    let tags: Vec<Value> = tags.into_iter().map(|name| json!({ "name": name })).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lapidary",
            "version": env!("CARGO_PKG_VERSION"),
            "description": env!("CARGO_PKG_DESCRIPTION"),
            "license": { "name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE") },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }, { "session": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "A token of `lapidary tokens add`, or of user/webui/token." },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": cookie,
                    "description": "A person's session; over https `__Host-` stands before the name. A write also shows what GET /api/session gives as `csrf`, in X-CSRF-Token.",
                },
            },
            "responses": {
                "Failure": {
                    "description": "It did not work; the body says why and what to do.",
                    "content": { "application/json": { "schema": failure } },
                },
            },
            "schemas": schemas.all(),
        },
    })
}

/// The resource of a path: its first part behind `/api`, without the alias.
fn tag(path: &'static str) -> &'static str {
    let rest = path.strip_prefix("/api/").unwrap_or(path);
    let rest = rest.strip_prefix("webui/").unwrap_or(rest);
    rest.split(['/', '.']).next().unwrap_or(rest)
}

fn operation(op: &Op, tag: &str, schemas: &mut Schemas) -> Value {
    let mut parameters: Vec<Value> = op
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| {
            let kind = if name == "generation" { "integer" } else { "string" };
            json!({ "name": name, "in": "path", "required": true, "schema": { "type": kind } })
        })
        .collect();
    if let Some(query) = op.query {
        // Its fields stand in the address one by one, so the type itself is no schema of the list.
        let mut own =
            SchemaSettings::draft2020_12().for_deserialize().with(|s| s.inline_subschemas = true).into_generator();
        parameters.extend(query_parameters(&query(&mut own).to_value()));
    }
    parameters.extend(op.headers.iter().map(
        |(name, says)| json!({ "name": name, "in": "header", "description": says, "schema": { "type": "string" } }),
    ));
    let mut value = json!({
        "tags": [tag],
        "operationId": id(op),
        "summary": op.says,
        "responses": responses(op, schemas),
    });
    if !parameters.is_empty() {
        value["parameters"] = parameters.into();
    }
    if let Some(body) = op.body {
        value["requestBody"] =
            json!({ "required": true, "content": content(body, |schema| schemas.of_request(schema)) });
    }
    if op.audience == Audience::Everybody {
        value["security"] = json!([]);
    }
    value
}

/// Unique, and made of the method and the path: `get_plugins_name_settings`.
fn id(op: &Op) -> String {
    let mut id = op.method.as_str().to_ascii_lowercase();
    let path = op.path.strip_prefix("/api").unwrap_or(op.path);
    for part in path.split(['/', '.', '-']).map(|part| part.trim_matches(['{', '}'])).filter(|part| !part.is_empty()) {
        id.push('_');
        id.push_str(part);
    }
    id
}

fn query_parameters(schema: &Value) -> Vec<Value> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, schema)| {
            let mut schema = schema.clone();
            let says = schema.as_object_mut().and_then(|map| map.shift_remove("description")).unwrap_or_default();
            // What may be left out is simply not there: an address knows no null.
            if let Some(types) = schema.get_mut("type").filter(|t| t.is_array())
                && let Some(first) = types.as_array().and_then(|t| t.iter().find(|t| *t != "null")).cloned()
            {
                *types = first;
            }
            json!({
                "name": name,
                "in": "query",
                "required": required.contains(&name.as_str()),
                "description": says,
                "schema": schema,
            })
        })
        .collect()
}

fn responses(op: &Op, schemas: &mut Schemas) -> Value {
    let mut responses: Map<String, Value> = Map::new();
    for (status, what) in &op.answers {
        let entry = responses
            .entry(status.to_string())
            .or_insert_with(|| json!({ "description": if *status == 204 { "It is done." } else { "A success." } }));
        if let Value::Object(more) = content(*what, |schema| schemas.of_answer(schema)) {
            let all = entry.as_object_mut().map(|entry| entry.entry("content").or_insert_with(|| json!({})));
            if let Some(Value::Object(all)) = all {
                all.extend(more);
            }
        }
    }
    responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Failure" }));
    responses.into()
}

/// The content of a body by its media type; nothing where it has none.
fn content(content: Content, mut schema: impl FnMut(SchemaOf) -> Schema) -> Value {
    match content {
        Content::Json(of) => json!({ "application/json": { "schema": schema(of) } }),
        Content::Bytes(media_type) => json!({ media_type: {} }),
        // A stream is text to this version of the specification; what its events hold is said beside it.
        Content::Events(of) => json!({ "text/event-stream": { "schema": { "type": "string" }, "x-data": schema(of) } }),
        Content::Empty => Value::Null,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_types_have_one_name_in_the_document() {
        let mut schemas = Schemas::new();
        for op in &super::super::table() {
            operation(op, "x", &mut schemas);
        }
        let (written, read) = (schemas.written.take_definitions(true), schemas.read.take_definitions(true));
        for (name, schema) in &read {
            assert!(written.get(name).is_none_or(|other| other == schema), "{name} is read and written in two forms");
        }
    }

    #[test]
    fn types_are_named_by_words_and_not_by_numbers() {
        let document = of(&super::super::table(), "c");
        let numbered: Vec<&String> = document["components"]["schemas"]
            .as_object()
            .unwrap()
            .keys()
            .filter(|name| name.ends_with(|c: char| c.is_ascii_digit()))
            .collect();
        assert!(numbered.is_empty(), "several types have one of these names: {numbered:?}");
    }

    #[test]
    fn every_operation_says_what_it_does_and_has_a_success_of_its_own() {
        let table = super::super::table();
        let mut ids = BTreeSet::new();
        for op in &table {
            assert!(!op.says.is_empty() && !op.says.ends_with('.'), "{}", op.path);
            assert!(!op.answers.is_empty(), "{} {}", op.method, op.path);
            assert!(ids.insert(id(op)), "{}", id(op));
            assert!(op.path.starts_with("/api/"), "{}", op.path);
        }
    }

    #[test]
    fn what_may_be_left_out_of_an_address_is_no_null() {
        let schema = json!({ "properties": {
            "a": { "type": ["string", "null"], "description": "A." },
            "b": { "type": "boolean" },
        }, "required": ["b"] });
        let made = query_parameters(&schema);
        assert_eq!(made[0]["schema"], json!({ "type": "string" }));
        assert_eq!((&made[0]["required"], &made[0]["description"]), (&json!(false), &json!("A.")));
        assert_eq!(made[1]["required"], json!(true));
    }
}
