//! How screens leave the server: HTML that no other page may frame and in which nothing runs but our own script.

use axum::body::Body;
use axum::response::Response;
use http::HeaderName;
use http::HeaderValue;
use http::StatusCode;
use http::header;

use crate::inbound::browser::bytes_as;
use crate::page::visitor::Cookies;

/// What a browser may do with a screen: load our stylesheet and our script, ask us, and send forms to us.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

const PROTECTED: [(HeaderName, &str); 5] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_FRAME_OPTIONS, "DENY"),
    // Not `no-referrer`: browsers would hide the origin of our own forms then, and the API would take them for foreign.
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// An answer of a media type, with everything that protects it.
pub(crate) fn protected(status: StatusCode, media_type: &'static str, body: impl Into<Body>) -> Response {
    let mut response = bytes_as(status, media_type, body);
    for (name, value) in PROTECTED {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// A screen.
pub(crate) fn page(status: StatusCode, html: String) -> Response {
    protected(status, "text/html; charset=utf-8", html)
}

/// Goes on somewhere else; the place is relative to the folder of the page.
pub(crate) fn go_to(place: &str) -> Response {
    let mut response = protected(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", "");
    let place = HeaderValue::try_from(place).unwrap_or(HeaderValue::from_static("./"));
    response.headers_mut().insert(header::LOCATION, place);
    response
}

/// Adds a cookie.
pub(crate) fn with_cookie(mut response: Response, cookie: Option<String>) -> Response {
    if let Some(Ok(line)) = cookie.map(HeaderValue::try_from) {
        response.headers_mut().append(header::SET_COOKIE, line);
    }
    response
}

/// Adds a cookie with something to show once, on the next screen.
pub(crate) fn with_notice(response: Response, cookies: &Cookies, text: &str) -> Response {
    with_cookie(response, Some(cookies.notice(text)))
}
