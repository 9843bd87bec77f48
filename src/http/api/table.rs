//! One operation of the API: its method, path and handler, and what a program may know of it without reading the source.
//! The router and the document are made of the same list, so neither can have what the other lacks.

use super::Api;
use axum::handler::Handler;
use axum::http::Method;
use axum::routing::{MethodFilter, MethodRouter, on};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::sync::Arc;

/// Makes the schema of one type.
pub(super) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What a body holds.
#[derive(Clone, Copy)]
pub(super) enum Content {
    /// JSON of this schema.
    Json(SchemaOf),
    /// Bytes of this media type.
    Bytes(&'static str),
    /// Server-sent events, whose data is JSON of this schema.
    Events(SchemaOf),
    /// Nothing.
    Empty,
}

/// One operation.
pub(super) struct Op {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) says: &'static str,
    pub(super) query: Option<SchemaOf>,
    /// Headers with a meaning here, and what they say.
    pub(super) headers: &'static [(&'static str, &'static str)],
    pub(super) body: Option<Content>,
    pub(super) answers: Vec<(u16, Content)>,
    pub(super) audience: Audience,
    pub(super) route: MethodRouter<Arc<Api>>,
}

/// Whom an operation answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    /// Who is known.
    Known,
    /// Everybody.
    Everybody,
}

fn op<H, T>(method: Method, filter: MethodFilter, path: &'static str, says: &'static str, handler: H) -> Op
where
    H: Handler<T, Arc<Api>>,
    T: 'static,
{
    Op {
        method,
        path,
        says,
        query: None,
        headers: &[],
        body: None,
        answers: Vec::new(),
        audience: Audience::Known,
        route: on(filter, handler),
    }
}

macro_rules! methods {
    ($($name:ident $method:ident,)*) => {
        $(pub(super) fn $name<H, T>(path: &'static str, says: &'static str, handler: H) -> Op
        where
            H: Handler<T, Arc<Api>>,
            T: 'static,
        {
            op(Method::$method, MethodFilter::$method, path, says, handler)
        })*
    };
}

methods! {
    get GET,
    post POST,
    put PUT,
    delete DELETE,
}

impl Op {
    /// It answers everybody.
    pub(super) fn open(mut self) -> Op {
        self.audience = Audience::Everybody;
        self
    }

    /// The query is this type.
    pub(super) fn asks<T: JsonSchema>(mut self) -> Op {
        self.query = Some(schema_of::<T>());
        self
    }

    /// These headers have a meaning.
    pub(super) fn hears(mut self, headers: &'static [(&'static str, &'static str)]) -> Op {
        self.headers = headers;
        self
    }

    /// The body is JSON of this type.
    pub(super) fn takes<T: JsonSchema>(mut self) -> Op {
        self.body = Some(Content::Json(schema_of::<T>()));
        self
    }

    /// The body is this.
    pub(super) fn body(mut self, content: Content) -> Op {
        self.body = Some(content);
        self
    }

    /// A success is JSON of this type.
    pub(super) fn gives<T: JsonSchema>(self) -> Op {
        self.answers(200, Content::Json(schema_of::<T>()))
    }

    /// A success of this status.
    pub(super) fn answers(mut self, status: u16, content: Content) -> Op {
        self.answers.push((status, content));
        self
    }
}

pub(super) fn schema_of<T: JsonSchema>() -> SchemaOf {
    |generator| generator.subschema_for::<T>()
}
