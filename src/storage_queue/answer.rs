//! How answers leave this endpoint: XML, or only headers.

use axum::body::Body;
use axum::response::Response;
use http::HeaderName;
use http::HeaderValue;
use http::StatusCode;

use crate::inbound::browser::bytes_as;
use crate::xml::Xml;

/// The version of the API that is spoken.
const VERSION: &str = "2021-12-02";

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    versioned(response)
}

/// An answer with a document.
pub(crate) fn xml(status: StatusCode, xml: Xml) -> Response {
    versioned(bytes_as(status, "application/xml", xml.into_text()))
}

fn versioned(response: Response) -> Response {
    headed(response, [("x-ms-version", VERSION.to_owned())])
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
