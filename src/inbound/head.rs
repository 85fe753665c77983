//! Heads of requests that could mean two things: whoever stands between a client and us might take the other. Of two that
//! say where a body ends, the connection takes `Transfer-Encoding`, and is closed behind the answer.

use http::HeaderMap;
use http::Uri;
use http::Version;
use http::header;

/// Refuses a head that could mean two things, as RFC 9112 wants it.
pub(crate) fn check_head(version: Version, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
    let hosts = headers.get_all(header::HOST).iter().count();
    match hosts {
        0 if version == Version::HTTP_11 && uri.authority().is_none() => Err("there is no Host header"),
        2.. => Err("there is more than one Host header"),
        _ => Ok(()),
    }
}
