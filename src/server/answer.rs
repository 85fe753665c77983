//! How answers leave the server: JSON, or a problem.

use axum::body::Body;
use axum::response::IntoResponse;
use axum::response::Response;
use http::HeaderName;
use http::HeaderValue;
use http::StatusCode;
use http::header;
use serde::Serialize;

use crate::api::Coded;
use crate::api::Problem;
use crate::error::Misuse;
use crate::error::OperationError;
use crate::error::Unavailable;
use crate::inbound::browser::Foreign;
use crate::inbound::inflow::BodyRefusal;

/// The media type of problems.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// An answer that says what went wrong.
#[derive(Debug)]
pub(crate) struct Refused(pub(crate) Box<Problem>);

/// What a handler answers.
pub(crate) type Answer = Result<Response, Refused>;

impl Refused {
    /// A problem of a kind.
    pub(crate) fn new(code: &str, detail: impl Into<String>) -> Refused {
        Refused::from(Problem::new(code, detail))
    }

    /// A value that is not allowed.
    pub(crate) fn misuse(field: &'static str, problem: impl Into<String>) -> Refused {
        Refused::from(Misuse::new(field, problem.into()))
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Refused {
        Refused(Box::new(problem))
    }
}

impl From<Box<Problem>> for Refused {
    fn from(problem: Box<Problem>) -> Refused {
        Refused(problem)
    }
}

impl From<Misuse> for Refused {
    fn from(misuse: Misuse) -> Refused {
        Refused::from(Problem::from(misuse))
    }
}

impl From<BodyRefusal> for Refused {
    fn from(refusal: BodyRefusal) -> Refused {
        let code = match refusal {
            BodyRefusal::TooLarge(_) => "body_too_large",
            BodyRefusal::TooSlow { .. } => "too_slow",
            BodyRefusal::Broken(_) => "malformed",
            BodyRefusal::NoRoom => "busy",
        };
        Refused::new(code, refusal.to_string())
    }
}

impl From<Foreign> for Refused {
    fn from(foreign: Foreign) -> Refused {
        match foreign {
            Foreign::Host => Refused::new("wrong_host", foreign.to_string()),
            Foreign::Page => Refused::new("forbidden", foreign.to_string()),
            Foreign::NotAscii => Refused::misuse("headers", foreign.to_string()),
        }
    }
}

impl From<Unavailable> for Refused {
    fn from(unavailable: Unavailable) -> Refused {
        Refused::from(Problem::from(unavailable))
    }
}

impl<R: std::error::Error + Coded + 'static> From<OperationError<R>> for Refused {
    fn from(error: OperationError<R>) -> Refused {
        Refused::from(Problem::from(error))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let problem = self.0;
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = bytes_as(status, PROBLEM_JSON, to_json(&problem));
        if let Some(seconds) = problem.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if status == StatusCode::UNAUTHORIZED {
            let challenge = HeaderValue::from_static("Bearer realm=\"seriatim\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}

/// JSON with a status.
pub(crate) fn json_as(status: StatusCode, value: &impl Serialize) -> Response {
    bytes_as(status, "application/json", to_json(value))
}

/// JSON.
pub(crate) fn json(value: &impl Serialize) -> Answer {
    Ok(json_as(StatusCode::OK, value))
}

/// Nothing to say.
pub(crate) fn no_content() -> Answer {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Bytes of a media type. What is answered is data: no browser may guess another type, no cache may keep it.
pub(crate) fn bytes_as(status: StatusCode, media_type: &'static str, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    let headers: [(HeaderName, &'static str); 3] = [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A wire value as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("wire values have names and values that JSON can write")
}
