//! How whoever asks has called us: documents name entities by URLs that begin so.

use http::Uri;
use http::header;
use http::request::Parts;
use percent_encoding::AsciiSet;
use percent_encoding::CONTROLS;
use percent_encoding::utf8_percent_encode;

use crate::inbound::connection::OverTls;
use crate::service_bus::slashed::entity_name;

/// The version of the API for a request that names none.
const VERSION: &str = "2021-05";

/// What in a name would end a part of a path.
const IN_PATH: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

/// How a request came.
pub(crate) struct Caller {
    scheme: &'static str,
    host: String,
    version: String,
}

impl Caller {
    pub(crate) fn of(parts: &Parts) -> Caller {
        let scheme = if parts.extensions.get::<OverTls>().is_some() { "https" } else { "http" };
        let named = parts.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let host = parts.uri.authority().map(|authority| authority.as_str()).or(named);
        let version = query(&parts.uri, "api-version").unwrap_or_else(|| VERSION.to_owned());
        Caller { scheme, host: host.unwrap_or("localhost").to_owned(), version }
    }

    /// Whether it speaks a version of the API, or a later one.
    pub(crate) fn knows(&self, version: &str) -> bool {
        self.version.as_str() >= version
    }

    /// The version of the API that it speaks.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        let path = utf8_percent_encode(path, IN_PATH);
        let version = utf8_percent_encode(&self.version, percent_encoding::NON_ALPHANUMERIC).to_string();
        format!("{}://{}/{path}?api-version={}", self.scheme, self.host, version.replace("%2D", "-"))
    }

    /// The URL of an entity that another forwards to.
    pub(crate) fn entity(&self, name: &str) -> String {
        format!("sb://{}/{}", self.host, utf8_percent_encode(&entity_name(name), IN_PATH))
    }

    /// What the namespace is called: the first part of its host's name.
    pub(crate) fn namespace(&self) -> &str {
        let host = self.host.rsplit_once(':').map_or(self.host.as_str(), |(name, _)| name);
        match host.parse::<std::net::IpAddr>() {
            Ok(_) => host,
            Err(_) => host.split('.').next().unwrap_or(host),
        }
    }
}

/// A parameter of a query.
pub(crate) fn query(uri: &Uri, name: &str) -> Option<String> {
    uri.query()?.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=')?;
        let key = percent_encoding::percent_decode_str(key).decode_utf8().ok()?;
        let value = percent_encoding::percent_decode_str(value).decode_utf8().ok()?;
        (key == name).then(|| value.into_owned())
    })
}
