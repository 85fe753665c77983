//! Where a post goes, as a definition says it.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::SocketAddr;

use http::Uri;
use http::uri::Scheme;

use crate::error::Misuse;
use crate::handlers::outbound::address::is_public;

/// A URL that was checked as far as it can be without asking for addresses.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    uri: Uri,
    host: String,
    port: u16,
    is_tls: bool,
    allow_private: bool,
}

impl Target {
    /// Reads a URL.
    ///
    /// # Errors
    /// [`Misuse`] says what is wrong with it, also that it leads to a private address.
    pub(crate) fn parse(url: &str, allow_private: bool) -> Result<Target, Misuse> {
        let wrong = |problem: String| Misuse::new("URL", problem);
        let uri: Uri = url.parse().map_err(|error| wrong(format!("{url:?} is none: {error}")))?;
        let is_tls = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(wrong(format!("{url:?} begins with neither https:// nor http://"))),
        };
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(wrong(
                "holds a name or a password: secrets belong into a file or a variable".to_owned(),
            ));
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            return Err(wrong(format!("{url:?} names no host")));
        }
        if is_number_in_disguise(&host) {
            return Err(wrong(format!(
                "names the host {host}, a number: write it as a name or as 192.0.2.1"
            )));
        }
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let target = Target { uri, host, port, is_tls, allow_private };
        if let Some(address) = target.literal() {
            target.check(address).map_err(wrong)?;
        }
        Ok(target)
    }

    pub(crate) fn uri(&self) -> &Uri {
        &self.uri
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    pub(super) fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// The addresses to try. All are checked, whichever is used: a name that leads to a private address beside a public
    /// one is no mistake of its owner.
    pub(super) async fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port)).await;
        let found = found.map_err(|error| format!("find the address of {}: {error}", self.host))?;
        let found: Vec<SocketAddr> = found.collect();
        let checked = found.iter().try_for_each(|address| self.check(address.ip()));
        checked.map_err(|refusal| format!("{} {refusal}", self.host))?;
        match found.is_empty() {
            true => Err(format!("find the address of {}: it has none", self.host)),
            false => Ok(found),
        }
    }

    fn literal(&self) -> Option<IpAddr> {
        match self.host.parse() {
            Ok(address) => Some(address),
            Err(_) if self.host.eq_ignore_ascii_case("localhost") => Some(Ipv4Addr::LOCALHOST.into()),
            Err(_) => None,
        }
    }

    fn check(&self, address: IpAddr) -> Result<(), String> {
        match self.allow_private || is_public(address) {
            true => Ok(()),
            false => Err(format!(
                "leads to {address}, which is not public: allow_private = true lets it be reached"
            )),
        }
    }
}

/// Whether a host is a number that is not written as an address but may be read as one: `2130706433`, `0x7f.1`.
fn is_number_in_disguise(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    let digits = last.strip_prefix("0x").or(last.strip_prefix("0X"));
    let is_number = match digits {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()),
    };
    is_number && host.parse::<IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_address_is_refused_however_it_is_written() {
        for url in [
            "http://127.0.0.1:9000/orders",
            "http://localhost/",
            "https://169.254.169.254/latest/meta-data",
            "http://[::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://127.1/",
            "http://0177.0.0.1./",
        ] {
            assert_eq!(Target::parse(url, false).unwrap_err().field(), "URL", "{url}");
        }
        let refusal = Target::parse("http://127.0.0.1:9000/", false).unwrap_err().to_string();
        assert!(refusal.contains("allow_private = true"), "{refusal}");
        assert!(Target::parse("http://127.0.0.1:9000/", true).is_ok());
        assert!(Target::parse("http://2130706433/", true).is_err());
    }

    #[test]
    fn only_plain_urls_are_taken() {
        for url in
            ["ftp://example.com/", "example.com", "/path", "https://user:pass@example.com/", "https:///x"]
        {
            assert!(Target::parse(url, true).is_err(), "{url}");
        }
        let target = Target::parse("https://example.com/hook?a=b", false).unwrap();
        assert_eq!((target.host(), target.port, target.is_tls()), ("example.com", 443, true));
    }

    #[tokio::test]
    async fn a_name_that_leads_to_a_private_address_is_refused_when_it_is_used() {
        let mut target = Target::parse("http://example.com/", false).unwrap();
        target.host = "localhost".to_owned();
        let refusal = target.addresses().await.unwrap_err();
        assert!(refusal.contains("not public"), "{refusal}");
    }
}
