//! How answers leave the server: JSON, or a problem.

use axum::response::IntoResponse;
use axum::response::Response;
use http::HeaderValue;
use http::StatusCode;
use http::header;
use serde::Serialize;

use crate::api::HasCode;
use crate::api::Problem;
use crate::error::Misuse;
use crate::error::OperationError;
use crate::error::Unavailable;
use crate::inbound::browser::Foreign;
use crate::inbound::browser::bytes_as;
use crate::inbound::inflow::BodyRefusal;

/// The media type of problems.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// An answer that says what went wrong.
#[derive(Debug)]
pub(crate) struct HttpRefusal(pub(crate) Box<Problem>);

/// What a handler answers.
pub(crate) type HttpResult = Result<Response, HttpRefusal>;

impl HttpRefusal {
    /// A problem of a kind.
    pub(crate) fn new(code: &str, detail: impl Into<String>) -> HttpRefusal {
        HttpRefusal::from(Problem::new(code, detail))
    }

    /// A value that is not allowed.
    pub(crate) fn misuse(field: &'static str, problem: impl Into<String>) -> HttpRefusal {
        HttpRefusal::from(Misuse::new(field, problem.into()))
    }

    /// Whether it is about the engine and not about what was asked of it: of many things, the next would end so, too.
    pub(crate) fn is_of_server(&self) -> bool {
        self.0.status >= 500
    }
}

impl From<Problem> for HttpRefusal {
    fn from(problem: Problem) -> HttpRefusal {
        HttpRefusal(Box::new(problem))
    }
}

impl From<Box<Problem>> for HttpRefusal {
    fn from(problem: Box<Problem>) -> HttpRefusal {
        HttpRefusal(problem)
    }
}

impl From<Misuse> for HttpRefusal {
    fn from(misuse: Misuse) -> HttpRefusal {
        HttpRefusal::from(Problem::from(misuse))
    }
}

impl From<BodyRefusal> for HttpRefusal {
    fn from(refusal: BodyRefusal) -> HttpRefusal {
        HttpRefusal::new(refusal.code(), refusal.to_string())
    }
}

impl From<Foreign> for HttpRefusal {
    fn from(foreign: Foreign) -> HttpRefusal {
        match foreign {
            Foreign::Host => HttpRefusal::new("wrong_host", foreign.to_string()),
            Foreign::Page => HttpRefusal::new("forbidden", foreign.to_string()),
            Foreign::NotAscii => HttpRefusal::misuse("headers", foreign.to_string()),
        }
    }
}

impl From<Unavailable> for HttpRefusal {
    fn from(unavailable: Unavailable) -> HttpRefusal {
        HttpRefusal::from(Problem::from(unavailable))
    }
}

impl<R: std::error::Error + HasCode + 'static> From<OperationError<R>> for HttpRefusal {
    fn from(error: OperationError<R>) -> HttpRefusal {
        HttpRefusal::from(Problem::from(error))
    }
}

impl IntoResponse for HttpRefusal {
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
pub(crate) fn json(value: &impl Serialize) -> HttpResult {
    Ok(json_as(StatusCode::OK, value))
}

/// Nothing to say.
pub(crate) fn no_content() -> HttpResult {
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// A wire value as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("wire values have names and values that JSON can write")
}
