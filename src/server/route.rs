//! A route and what is known of it: who may use it, what it takes, what it answers. The router, the authorization and the
//! OpenAPI document are made of the same facts.

use axum::handler::Handler;
use axum::routing::MethodFilter;
use axum::routing::MethodRouter;
use axum::routing::on;
use http::Method;
use http::StatusCode;
use schemars::JsonSchema;
use schemars::Schema;
use schemars::SchemaGenerator;

use crate::limits;
use crate::sas::Right;
use crate::server::shared::SharedServer;

/// What a caller needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequiredRight {
    /// Nothing, not even a key.
    Nothing,
    /// A key with this right.
    Right(Right),
}

/// What the right is needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RightScope {
    /// The queue or topic in the path.
    Queue,
    /// Any queue: the handler shows only those the caller reaches.
    Each,
    /// All queues.
    All,
}

/// Makes the schema of a type.
pub(crate) type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// What the body of a request is.
#[derive(Clone, Copy)]
pub(crate) enum Takes {
    /// No body.
    Nothing,
    /// JSON of a type.
    Json(SchemaOf),
    /// Bytes; these media types have a meaning.
    Bytes(&'static [&'static str]),
}

/// What an answer is, if nothing goes wrong.
#[derive(Clone, Copy)]
pub(crate) struct Gives {
    pub(crate) status: StatusCode,
    pub(crate) says: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) schema: Option<SchemaOf>,
}

/// What is known of a route beside its handler.
pub(crate) struct RouteFacts {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) says: &'static str,
    pub(crate) need: RequiredRight,
    pub(crate) scope: RightScope,
    pub(crate) body_bytes_max: usize,
    /// The options in the query, as an object.
    pub(crate) query: Option<SchemaOf>,
    /// Headers with a meaning, and that meaning.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    pub(crate) takes: Takes,
    pub(crate) gives: Vec<Gives>,
    /// Whether it is asked so often, by machines, that nobody wants to read of it.
    is_quiet: bool,
}

impl RouteFacts {
    /// Writes down how a request ended: what failed, who was turned away, and what an operator has done is worth a line of
    /// its own; what clients do all the time is not.
    pub(crate) fn note(&self, who: &str, queue: Option<&str>, status: StatusCode, ms: u64) {
        let (method, path, status) = (self.method.as_str(), self.path, status.as_u16());
        let is_act = self.need == RequiredRight::Right(Right::Manage) && self.method != Method::GET;
        match status {
            // Of what stops everybody the log has one line, not one for each who asks.
            503 | 507 => tracing::debug!(method, path, queue, status, ms, who, "answered a request"),
            500.. => tracing::error!(method, path, queue, status, ms, who, "answered a request"),
            401 | 403 | 421 => tracing::info!(method, path, queue, status, ms, who, "answered a request"),
            ..=399 if is_act => tracing::info!(method, path, queue, status, ms, who, "answered a request"),
            _ if self.is_quiet => tracing::trace!(method, path, queue, status, ms, who, "answered a request"),
            _ => tracing::debug!(method, path, queue, status, ms, who, "answered a request"),
        }
    }
}

/// A route.
pub(crate) struct Route {
    pub(crate) facts: RouteFacts,
    pub(crate) handler: MethodRouter<SharedServer>,
}

pub(crate) fn get<H: Handler<T, SharedServer>, T: 'static>(
    path: &'static str,
    says: &'static str,
    handler: H,
) -> Route {
    Route::new(Method::GET, path, says, on(MethodFilter::GET, handler))
}

pub(crate) fn post<H: Handler<T, SharedServer>, T: 'static>(
    path: &'static str,
    says: &'static str,
    handler: H,
) -> Route {
    Route::new(Method::POST, path, says, on(MethodFilter::POST, handler))
}

pub(crate) fn put<H: Handler<T, SharedServer>, T: 'static>(
    path: &'static str,
    says: &'static str,
    handler: H,
) -> Route {
    Route::new(Method::PUT, path, says, on(MethodFilter::PUT, handler))
}

pub(crate) fn delete<H: Handler<T, SharedServer>, T: 'static>(
    path: &'static str,
    says: &'static str,
    handler: H,
) -> Route {
    Route::new(Method::DELETE, path, says, on(MethodFilter::DELETE, handler))
}

fn schema_of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

impl Route {
    /// A route that nobody may use until it says who.
    fn new(
        method: Method,
        path: &'static str,
        says: &'static str,
        handler: MethodRouter<SharedServer>,
    ) -> Route {
        let is_named = path.contains("{queue}") || path.contains("{topic}");
        let scope = if is_named { RightScope::Queue } else { RightScope::All };
        let facts = RouteFacts {
            method,
            path,
            says,
            need: RequiredRight::Right(Right::Manage),
            scope,
            body_bytes_max: limits::HTTP_BODY_BYTES_MAX,
            query: None,
            headers: &[],
            takes: Takes::Nothing,
            gives: Vec::new(),
            is_quiet: false,
        };
        Route { facts, handler }
    }

    /// Anybody may use it.
    pub(crate) fn open(mut self) -> Route {
        self.facts.need = RequiredRight::Nothing;
        self
    }

    /// Who may send may use it.
    pub(crate) fn for_senders(mut self) -> Route {
        self.facts.need = RequiredRight::Right(Right::Send);
        self
    }

    /// Who may listen may use it.
    pub(crate) fn for_listeners(mut self) -> Route {
        self.facts.need = RequiredRight::Right(Right::Listen);
        self
    }

    /// Who has the right for some queue may use it; what is answered is about those queues only.
    pub(crate) fn of_each_queue(mut self) -> Route {
        self.facts.scope = RightScope::Each;
        self
    }

    /// It is not worth a line in the log.
    pub(crate) fn quiet(mut self) -> Route {
        self.facts.is_quiet = true;
        self
    }

    /// The body may be as large as messages are.
    pub(crate) fn with_messages(mut self) -> Route {
        self.facts.body_bytes_max = limits::HTTP_MESSAGES_BYTES_MAX;
        self
    }

    pub(crate) fn asks<T: JsonSchema>(mut self) -> Route {
        self.facts.query = Some(schema_of::<T>);
        self
    }

    pub(crate) fn headers(mut self, headers: &'static [(&'static str, &'static str)]) -> Route {
        self.facts.headers = headers;
        self
    }

    pub(crate) fn takes<T: JsonSchema>(mut self) -> Route {
        self.facts.takes = Takes::Json(schema_of::<T>);
        self
    }

    pub(crate) fn takes_bytes(mut self, media_types: &'static [&'static str]) -> Route {
        self.facts.takes = Takes::Bytes(media_types);
        self
    }

    /// What it answers.
    pub(crate) fn gives<T: JsonSchema>(self, status: StatusCode, says: &'static str) -> Route {
        self.gives_as(Gives { status, says, media_type: "application/json", schema: Some(schema_of::<T>) })
    }

    /// It answers that it is done, and nothing else.
    pub(crate) fn gives_nothing(self, says: &'static str) -> Route {
        self.gives_as(Gives { status: StatusCode::NO_CONTENT, says, media_type: "", schema: None })
    }

    /// It answers one JSON value a line.
    pub(crate) fn gives_lines<T: JsonSchema>(self, says: &'static str) -> Route {
        let media_type = "application/x-ndjson";
        self.gives_as(Gives { status: StatusCode::OK, says, media_type, schema: Some(schema_of::<T>) })
    }

    /// It answers something that is not JSON.
    pub(crate) fn gives_text(self, media_type: &'static str, says: &'static str) -> Route {
        self.gives_as(Gives { status: StatusCode::OK, says, media_type, schema: None })
    }

    pub(crate) fn gives_as(mut self, gives: Gives) -> Route {
        self.facts.gives.push(gives);
        self
    }
}
