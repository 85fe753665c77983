//! The HTTP API, asked inside the process: the same routes, guards and answers as for everybody else.

use axum::Router;
use axum::body::Body;
use axum::body::to_bytes;
use axum::response::Response;
use bytes::Bytes;
use http::Extensions;
use http::HeaderMap;
use http::HeaderName;
use http::HeaderValue;
use http::Method;
use http::Request;
use http::StatusCode;
use http::header;
use http::request::Parts;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tower::ServiceExt;

use crate::api::Problem;
use crate::inbound::connection::FromFileSystem;
use crate::limits;
use crate::remote::RequestPath;

/// What was not answered as asked.
pub(crate) type ApiRefusal = Box<Problem>;

/// The API, asked on behalf of somebody.
#[derive(Clone)]
pub(crate) struct Api {
    router: Router,
    headers: HeaderMap,
    is_from_file_system: bool,
}

/// What a browser says of itself, by which the API tells a page of another origin.
const OF_BROWSERS: [HeaderName; 3] =
    [header::HOST, header::ORIGIN, HeaderName::from_static("sec-fetch-site")];

impl Api {
    /// For whoever has sent a request; with a key, if they have shown one.
    pub(crate) fn of(router: &Router, parts: &Parts, key: Option<&str>) -> Api {
        let mut headers = HeaderMap::new();
        for name in OF_BROWSERS {
            if let Some(value) = parts.headers.get(&name) {
                headers.insert(name, value.clone());
            }
        }
        // Following a link from anywhere is looking, and the answer is not shown to where the link was.
        if is_followed_link(parts) {
            headers.remove("sec-fetch-site");
        }
        if let Some(Ok(bearer)) = key.map(|key| HeaderValue::try_from(format!("Bearer {key}"))) {
            headers.insert(header::AUTHORIZATION, bearer);
        }
        let is_from_file_system = parts.extensions.get::<FromFileSystem>().is_some();
        Api { router: router.clone(), headers, is_from_file_system }
    }

    /// What a route answers, as it comes.
    pub(crate) async fn open(&self, method: Method, route: &RequestPath, body: Option<Vec<u8>>) -> Response {
        let mut request = Request::new(Body::empty());
        *request.method_mut() = method;
        match route.as_str().parse() {
            Ok(uri) => *request.uri_mut() = uri,
            Err(_) => return status_alone(StatusCode::BAD_REQUEST),
        }
        *request.headers_mut() = self.headers.clone();
        *request.extensions_mut() = Extensions::new();
        if self.is_from_file_system {
            request.extensions_mut().insert(FromFileSystem);
        }
        if let Some(body) = body {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(header::CONTENT_TYPE, json);
            *request.body_mut() = Body::from(body);
        }
        let Ok(response) = self.router.clone().oneshot(request).await;
        response
    }

    /// The bytes a route answers with.
    pub(crate) async fn bytes(&self, route: &RequestPath) -> Result<Bytes, ApiRefusal> {
        read(self.open(Method::GET, route, None).await).await
    }

    /// Looks at something.
    pub(crate) async fn get<T: DeserializeOwned>(&self, route: &RequestPath) -> Result<T, ApiRefusal> {
        parsed(&self.bytes(route).await?)
    }

    /// Asks for something to be done.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        route: &RequestPath,
        request: &impl Serialize,
    ) -> Result<T, ApiRefusal> {
        let body = serde_json::to_vec(request).map_err(|error| fault(&error))?;
        parsed(&read(self.open(Method::POST, route, Some(body)).await).await?)
    }

    /// Sends a request whose answer is not needed.
    pub(crate) async fn send(&self, method: Method, route: &RequestPath) -> Result<(), ApiRefusal> {
        read(self.open(method, route, None).await).await.map(drop)
    }
}

/// Whether somebody has followed a link, and a whole page of the browser is going to show the answer.
fn is_followed_link(parts: &Parts) -> bool {
    let says = |name: &str, value: &str| parts.headers.get(name).is_some_and(|found| found == value);
    parts.method == Method::GET
        && says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
        && !parts.headers.contains_key(header::ORIGIN)
}

async fn read(response: Response) -> Result<Bytes, ApiRefusal> {
    let (parts, body) = response.into_parts();
    let bytes = to_bytes(body, limits::REMOTE_ANSWER_BYTES_MAX).await.map_err(|error| fault(&error))?;
    if parts.status.is_success() {
        return Ok(bytes);
    }
    let unreadable = || Problem::new("fault", format!("the API answered {}", parts.status));
    Err(Box::new(serde_json::from_slice(&bytes).unwrap_or_else(|_| unreadable())))
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiRefusal> {
    serde_json::from_slice(bytes).map_err(|error| fault(&error))
}

fn fault(error: &dyn std::error::Error) -> ApiRefusal {
    Box::new(Problem::new("fault", format!("the page could not read the answer of the API: {error}")))
}

fn status_alone(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
