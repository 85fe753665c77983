//! Web pages in a browser on this machine, which may not do what programs on it may, nor take data for a page.

use std::net::IpAddr;

use axum::body::Body;
use axum::response::Response;
use http::HeaderValue;
use http::StatusCode;
use http::header;
use http::request::Parts;
use thiserror::Error;

/// Why a request is taken for one of a web page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Foreign {
    /// It asks for another host.
    #[error("the Host header names another machine; without keys only this machine is served")]
    Host,
    /// A page of another origin asks.
    #[error("a page of another origin asks; without keys only its own origin may")]
    Page,
    /// What it says of itself cannot be read.
    #[error("are not ASCII")]
    NotAscii,
}

/// Without keys, whoever is on this machine may do everything; a web page in a browser is not. It is told by the
/// headers that browsers send, and by the name of the host: a page can point a name of its own here.
pub(crate) fn check_no_browser(parts: &Parts) -> Result<(), Foreign> {
    if host(parts)?.is_some_and(|host| !is_this_machine(host)) {
        return Err(Foreign::Host);
    }
    check_no_foreign_page(parts)
}

/// Where other machines are served without keys, by whatever name they reach this one, pages of other origins are not.
pub(crate) fn check_no_foreign_page(parts: &Parts) -> Result<(), Foreign> {
    let host = host(parts)?;
    let text = |name| text(parts, name);
    if let Some(origin) = text(header::ORIGIN)? {
        let authority = origin.split_once("://").map(|(_, authority)| authority);
        if authority.is_none() || authority != host {
            return Err(Foreign::Page);
        }
    }
    match text(header::HeaderName::from_static("sec-fetch-site"))? {
        None | Some("same-origin" | "none") => Ok(()),
        Some(_) => Err(Foreign::Page),
    }
}

/// An answer that is data: no browser may guess another type, no cache may keep it.
pub(crate) fn bytes_as(status: StatusCode, media_type: &'static str, bytes: impl Into<Body>) -> Response {
    let mut response = Response::new(bytes.into());
    *response.status_mut() = status;
    for (name, value) in [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// The host that a request asks for.
fn host(parts: &Parts) -> Result<Option<&str>, Foreign> {
    // Who writes the whole address into the request line means that one, whatever the header says.
    match parts.uri.authority() {
        Some(authority) => Ok(Some(authority.as_str())),
        None => text(parts, header::HOST),
    }
}

fn text(parts: &Parts, name: header::HeaderName) -> Result<Option<&str>, Foreign> {
    match parts.headers.get(name) {
        None => Ok(None),
        Some(value) => value.to_str().map(Some).map_err(|_| Foreign::NotAscii),
    }
}

/// Whether the host of a request, with its port, is a name of this machine itself.
fn is_this_machine(host: &str) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    let is_localhost = name.eq_ignore_ascii_case("localhost")
        || name.to_ascii_lowercase().strip_suffix(".localhost").is_some_and(|rest| !rest.is_empty());
    is_localhost || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_this_machine() {
        for host in
            ["localhost", "LOCALHOST:7700", "127.0.0.1:7700", "127.1.2.3", "[::1]:7700", "a.localhost:1"]
        {
            assert!(is_this_machine(host), "{host}");
        }
        for host in
            ["", "example.com", "localhost.example.com:7700", "10.0.0.1", "[::2]:1", "0.0.0.0", ".localhost"]
        {
            assert!(!is_this_machine(host), "{host}");
        }
    }
}
