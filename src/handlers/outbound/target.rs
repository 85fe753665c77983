//! Where a post goes, as a definition says it.

use std::net::SocketAddr;

use http::Uri;

use crate::definition::Url;
use crate::error::Misuse;

/// The URL to post to.
#[derive(Clone, Debug)]
pub(crate) struct TargetUrl(Url);

impl TargetUrl {
    /// Reads a URL, as the reader of definitions does.
    ///
    /// # Errors
    /// [`Misuse`] says what is wrong with it, also that it leads to a private address.
    pub(crate) fn parse(url: &str, allow_private: bool) -> Result<TargetUrl, Misuse> {
        let url = Url::parse(url, allow_private);
        url.map(TargetUrl).map_err(|(problem, _)| Misuse::new("URL", format!("cannot be used: {problem}")))
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.0.uri
    }

    pub(super) fn host(&self) -> &str {
        &self.0.host
    }

    pub(super) fn is_tls(&self) -> bool {
        self.0.is_tls
    }

    /// The addresses to try. All are checked, whichever is used: a name that leads to a private address beside a public
    /// one is no mistake of its owner.
    pub(super) async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let host = self.host();
        let found = tokio::net::lookup_host((host, self.0.port)).await;
        let found = found.map_err(|error| format!("find the address of {host}: {error}"))?;
        let found: Vec<SocketAddr> = found.collect();
        let checked = found.iter().try_for_each(|address| self.0.check(address.ip()));
        checked.map_err(|address| {
            format!(
                "connect to {host}: it leads to {address}, which is not a public address; allow_private = true in the \
                 definition lets it be reached"
            )
        })?;
        match found.is_empty() {
            true => Err(format!("find the address of {host}: it has none")),
            false => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_name_that_leads_to_a_private_address_is_refused_when_it_is_used() {
        let mut target = TargetUrl::parse("http://example.com/", false).unwrap();
        target.0.host = "localhost".to_owned();
        let refusal = target.addresses().await.unwrap_err();
        assert!(refusal.contains("not a public address"), "{refusal}");
    }
}
