//! How answers leave this endpoint: XML, or only headers.

use axum::body::Body;
use axum::response::Response;
use http::HeaderName;
use http::HeaderValue;
use http::StatusCode;
use http::header;

use crate::xml::Xml;

/// The version of the API that is spoken.
const VERSION: &str = "2021-12-02";

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    headed(response, [("x-ms-version", VERSION.to_owned())])
}

/// An answer with a document. What is answered is data: no browser may guess another type.
pub(crate) fn xml(status: StatusCode, xml: Xml) -> Response {
    let mut response = empty(status);
    *response.body_mut() = Body::from(xml.into_text());
    let headers = [
        (header::CONTENT_TYPE, "application/xml"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// An answer with more headers. A value that no header can have is left out.
pub(crate) fn headed(
    mut response: Response,
    headers: impl IntoIterator<Item = (impl AsRef<str>, String)>,
) -> Response {
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_ref().as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(&value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
