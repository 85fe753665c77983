//! A client of a running daemon: where it is, and the connections to it.

use std::path::PathBuf;

use bytes::Bytes;
use http::HeaderMap;
use http::HeaderValue;
use http::Uri;
use http::header;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use hyper_util::rt::TokioTimer;

use crate::error::Misuse;
use crate::remote::connector::RemoteConnector;
use crate::remote::route::RequestPath;
use crate::shown::shown;

/// How a daemon is spoken to.
#[derive(Clone, Debug, Default)]
pub struct RemoteOptions {
    /// A PEM file of certificates that are trusted instead of the roots of the web.
    pub ca_file: Option<PathBuf>,
}

/// A client of a running daemon. Connections are opened when they are needed, kept, and used again; a clone shares them.
///
/// ```no_run
/// # async fn run() -> Result<(), seriatim::remote::RemoteError> {
/// use seriatim::remote::Remote;
/// use seriatim::api::SendEnvelope;
///
/// let remote = Remote::connect("http://127.0.0.1:7700", None)?;
/// let paid = SendEnvelope {
///     workflow_id: Some("order-17".to_owned()),
///     body_text: Some("paid".to_owned()),
///     ..SendEnvelope::default()
/// };
/// let receipt = remote.send("orders", &paid).await?;
/// println!("message {}", receipt.sequence_number.unwrap_or_default());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Remote {
    url: String,
    authorization: Option<HeaderValue>,
    client: Client<RemoteConnector, Full<Bytes>>,
}

shown!(Remote {});

impl Remote {
    /// A client of the daemon at a URL, such as `http://127.0.0.1:7700`, with a key if the daemon asks for one. Nothing
    /// is sent yet.
    ///
    /// # Errors
    /// [`Misuse`] when the URL or the key is none.
    pub fn connect(url: &str, key: Option<&str>) -> Result<Remote, Misuse> {
        Remote::connect_with(url, key, &RemoteOptions::default())
    }

    /// As [`Remote::connect`], with options.
    ///
    /// # Errors
    /// [`Misuse`] when the URL, the key or the CA file is none.
    pub fn connect_with(url: &str, key: Option<&str>, options: &RemoteOptions) -> Result<Remote, Misuse> {
        let url = url.trim_end_matches('/');
        let wrong = || Misuse::new("url", format!("{url:?} is not like http://127.0.0.1:7700"));
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        if uri.query().is_some() || url.contains('#') || uri.host().is_none_or(str::is_empty) {
            return Err(wrong());
        }
        let connector = match uri.scheme_str() {
            Some("http") => RemoteConnector::plain(),
            Some("https") => RemoteConnector::encrypted(options.ca_file.as_deref())?,
            _ => return Err(wrong()),
        };
        let client = Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector);
        Ok(Remote { url: url.to_owned(), authorization: key.map(bearer).transpose()?, client })
    }

    /// Where the daemon is.
    pub fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn uri(&self, route: &RequestPath) -> Result<Uri, Misuse> {
        let uri = format!("{}{}", self.url, route.as_str());
        uri.parse().map_err(|error: http::uri::InvalidUri| Misuse::new("url", error.to_string()))
    }

    pub(crate) fn authorization(&self) -> HeaderMap {
        self.authorization.iter().map(|value| (header::AUTHORIZATION, value.clone())).collect()
    }

    pub(crate) fn client(&self) -> &Client<RemoteConnector, Full<Bytes>> {
        &self.client
    }
}

fn bearer(key: &str) -> Result<HeaderValue, Misuse> {
    let value = HeaderValue::from_str(&format!("Bearer {key}"));
    let mut value = value.map_err(|_| Misuse::new("key", "has characters that no key has"))?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_url_is_refused_before_anything_is_sent() {
        for wrong in ["", "127.0.0.1:7700", "ftp://a", "http://", "http://a?b=c", "http://a b"] {
            let refused = Remote::connect(wrong, None).err().map(|misuse| misuse.field().to_owned());
            assert_eq!(refused.as_deref(), Some("url"), "{wrong}");
        }
        for right in ["http://[::1]:7700", "http://a/prefix/", "https://queue.example.org"] {
            assert!(Remote::connect(right, None).is_ok(), "{right}");
        }
    }

    #[test]
    fn a_key_cannot_add_headers() {
        assert_eq!(Remote::connect("http://a", Some("k\r\nx: y")).err().unwrap().field(), "key");
    }

    #[test]
    fn a_prefix_of_the_url_stays_before_every_path() {
        let remote = Remote::connect("http://a/queue/", None).unwrap();
        assert_eq!(remote.uri(&RequestPath::new("/v1/blocked")).unwrap(), "http://a/queue/v1/blocked");
    }
}
