//! What a request names: a queue, a number, a delivery in its path, options in its query, a value in its body.

use std::future::Future;

use axum::extract::FromRequest;
use axum::extract::FromRequestParts;
use axum::extract::RawPathParams;
use axum::extract::Request;
use http::HeaderMap;
use http::header;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use crate::api::Problem;
use crate::api::plain;
use crate::api::plain_text;
use crate::engine::Queue;
use crate::error::Misuse;
use crate::id::SequenceNumber;
use crate::inbound::inflow::Inflow;
use crate::server::answer::HttpRefusal;
use crate::server::authorize::BodyMax;
use crate::server::shared::SharedServer;

/// The parameters of a path.
pub(crate) struct PathParams {
    values: Vec<(String, String)>,
    shared: SharedServer,
}

impl FromRequestParts<SharedServer> for PathParams {
    type Rejection = HttpRefusal;

    async fn from_request_parts(parts: &mut Parts, shared: &SharedServer) -> Result<PathParams, HttpRefusal> {
        let params = RawPathParams::from_request_parts(parts, shared).await;
        let params = params.map_err(|_| HttpRefusal::misuse("path", "is not UTF-8"))?;
        let values = params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Ok(PathParams { values, shared: shared.clone() })
    }
}

impl PathParams {
    /// A parameter, as text.
    pub(crate) fn text(&self, name: &'static str) -> Result<&str, HttpRefusal> {
        let found = self.values.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).ok_or_else(|| HttpRefusal::misuse(name, "is missing"))
    }

    /// The queue, whether it exists or not.
    pub(crate) fn queue(&self) -> Result<Queue, HttpRefusal> {
        Ok(self.shared.client.queue(self.text("queue")?)?)
    }

    /// A message's number.
    pub(crate) fn number(&self) -> Result<SequenceNumber, HttpRefusal> {
        let number = self.text("number")?.parse();
        Ok(SequenceNumber::new(number.map_err(|_| HttpRefusal::misuse("number", "is not a whole number"))?))
    }
}

/// The options in a query.
pub(crate) struct QueryParams<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<SharedServer> for QueryParams<T> {
    type Rejection = HttpRefusal;

    fn from_request_parts(
        parts: &mut Parts,
        _: &SharedServer,
    ) -> impl Future<Output = Result<QueryParams<T>, HttpRefusal>> + Send {
        let read = axum::extract::Query::try_from_uri(&parts.uri);
        async move {
            match read {
                Ok(axum::extract::Query(value)) => Ok(QueryParams(value)),
                Err(rejection) => {
                    let problem = std::error::Error::source(&rejection)
                        .map_or_else(|| rejection.to_string(), ToString::to_string);
                    Err(HttpRefusal::from(misuse_of(&problem)))
                }
            }
        }
    }
}

/// A value in a JSON body; an empty body is an empty object.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<SharedServer> for JsonBody<T> {
    type Rejection = HttpRefusal;

    async fn from_request(request: Request, shared: &SharedServer) -> Result<JsonBody<T>, HttpRefusal> {
        let (parts, body) = request.into_parts();
        let bytes_max = parts.extensions.get::<BodyMax>().map_or(0, |max| max.0);
        let (body, _room) = Inflow::new(&shared.reading, body, bytes_max).all().await?;
        if body.is_empty() {
            return Ok(JsonBody(read_json(b"{}")?));
        }
        check_not_encoded(&parts.headers)?;
        check_is_json(&parts.headers)?;
        Ok(JsonBody(read_json(&body)?))
    }
}

/// The content type of a request's body, without its parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(value.split(';').next().unwrap_or_default().trim())
}

fn check_is_json(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    match media_type(headers) {
        None => Ok(()),
        Some(media_type) if crate::api::is_json(media_type) => Ok(()),
        Some(other) => {
            let detail = format!("the body is {other}, but only application/json is accepted here");
            Err(HttpRefusal::new("unsupported_media_type", detail))
        }
    }
}

/// Refuses a body that is packed: it is kept as it comes, and nobody who gets it later is told how to unpack it.
pub(crate) fn check_not_encoded(headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let lists = headers.get_all(header::CONTENT_ENCODING).iter().map(|value| value.as_bytes());
    let mut encodings = lists.flat_map(|list| list.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii);
    let other =
        encodings.find(|encoding| !encoding.is_empty() && !encoding.eq_ignore_ascii_case(b"identity"));
    let Some(other) = other.map(<[u8]>::escape_ascii) else { return Ok(()) };
    let detail = format!(
        "the body is encoded as {other}, and no encoding is undone here: send it as it is; to have it kept encoded, leave \
         Content-Encoding out, and let a property say so to who receives it"
    );
    Err(HttpRefusal::new("unsupported_media_type", detail))
}

/// Reads JSON: what is no JSON is malformed, what is JSON of another form is a misuse.
pub(crate) fn read_json<T: DeserializeOwned>(json: &[u8]) -> Result<T, HttpRefusal> {
    // An array would be read as the fields in their order, which nobody means.
    if json.trim_ascii_start().first() == Some(&b'[') {
        return Err(HttpRefusal::from(Problem::new(
            "misuse",
            "the request is an array where an object is meant",
        )));
    }
    serde_json::from_slice(json).map_err(|error| match error.classify() {
        Category::Data => HttpRefusal::from(misuse_of(&error.to_string())),
        Category::Io | Category::Syntax | Category::Eof => {
            HttpRefusal::new("malformed", format!("read JSON: {}", plain(&error)))
        }
    })
}

/// Names the field that is unknown or missing, when the sentence says which.
fn misuse_of(described: &str) -> Problem {
    let problem = Problem::new("misuse", plain_text(described));
    let extract = ["unknown field `", "missing field `"].into_iter().find_map(|beginning| {
        let (_, rest) = described.split_once(beginning)?;
        Some(rest.split('`').next()?.to_owned())
    });
    match extract {
        Some(field) => problem.field(field),
        None => problem,
    }
}

/// Refuses a text that is missing or empty where one is required.
pub(crate) fn required(field: &'static str, text: Option<String>) -> Result<String, HttpRefusal> {
    match text {
        Some(text) if !text.trim().is_empty() => Ok(text),
        _ => Err(HttpRefusal::from(Misuse::new(field, "is required"))),
    }
}
