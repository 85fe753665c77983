//! A URL in a definition: checked once, by the code that reads the definition and by what posts to it.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::Ipv6Addr;

use http::Uri;
use http::uri::Authority;

use crate::definition::diagnostic::Trouble;
use crate::definition::public::is_public;

/// A URL that was checked as far as it can be without asking for addresses.
#[derive(Clone, Debug)]
pub(crate) struct Url {
    pub(crate) uri: Uri,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) is_tls: bool,
    allow_private: bool,
}

impl Url {
    /// Reads a URL.
    ///
    /// # Errors
    /// What is wrong with it, also that it leads to an address that is not public, and what to write instead.
    pub(crate) fn parse(text: &str, allow_private: bool) -> Result<Url, Trouble> {
        // A text with a password would show it to whoever reads the log.
        let shown = if text.contains('@') { "what is given".to_owned() } else { format!("`{text}`") };
        let wrong = |problem: &str| (format!("{shown} is no URL: {problem}"), None);
        let uri: Uri = text.parse().map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(wrong("it begins with neither http:// nor https://")),
        };
        let authority = uri.authority().map(Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            let help = "write secrets into a file or an environment variable".to_owned();
            return Err(("the URL holds a name or a password".to_owned(), Some(help)));
        }
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if host.is_empty() || (has_port && uri.port_u16().is_none_or(|port| port == 0)) {
            return Err(wrong("its host or its port is missing"));
        }
        if authority.starts_with('[') && host.parse::<Ipv6Addr>().is_err() {
            return Err(wrong("what stands in brackets is no IPv6 address"));
        }
        if host.trim_end_matches('.').split('.').any(str::is_empty) {
            return Err(wrong("a part of its host is empty"));
        }
        if is_number_in_disguise(&host) {
            let help = "write it as a name or as 192.0.2.1".to_owned();
            return Err((format!("`{text}` names the host {host}, a number"), Some(help)));
        }
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let url = Url { uri, host, port, is_tls, allow_private };
        if let Some(address) = url.literal()
            && let Err(address) = url.check(address)
        {
            let help = "write allow_private = true if that is meant".to_owned();
            return Err((format!("`{text}` leads to {address}, which is not a public address"), Some(help)));
        }
        Ok(url)
    }

    /// Whether an address may be reached; the address if it may not.
    pub(crate) fn check(&self, address: IpAddr) -> Result<(), IpAddr> {
        if self.allow_private || is_public(address) { Ok(()) } else { Err(address) }
    }

    /// The address that stands in the URL itself.
    fn literal(&self) -> Option<IpAddr> {
        let name = self.host.trim_end_matches('.').to_ascii_lowercase();
        match name.parse() {
            Ok(address) => Some(address),
            Err(_) if name == "localhost" || name.ends_with(".localhost") => Some(Ipv4Addr::LOCALHOST.into()),
            Err(_) => None,
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
            "http://127.0.0.1.:9000/orders",
            "http://localhost/",
            "http://a.Localhost./",
            "http://0.0.0.0/",
            "http://100.64.0.1/",
            "https://169.254.169.254/latest/meta-data",
            "http://[::1]/",
            "http://[::]/",
            "http://[fd00::1]/",
            "http://[fe80::1]/",
            "http://[::ffff:10.0.0.1]/",
            "http://[::ffff:a00:1]/",
            "http://[64:ff9b::a00:1]/",
            "http://[2002:7f00:1::]/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0x7f.1/",
            "http://127.1/",
            "http://0177.0.0.1./",
        ] {
            assert!(Url::parse(url, false).is_err(), "{url}");
        }
        let (message, help) = Url::parse("http://localhost:9000/", false).unwrap_err();
        assert_eq!(message, "`http://localhost:9000/` leads to 127.0.0.1, which is not a public address");
        assert_eq!(help.as_deref(), Some("write allow_private = true if that is meant"));
        assert!(Url::parse("http://127.0.0.1:9000/", true).is_ok());
        assert!(Url::parse("http://2130706433/", true).is_err());
    }

    #[test]
    fn only_plain_urls_are_taken() {
        for url in [
            "",
            "example.com",
            "/path",
            "ftp://example.com/",
            "https://user:pass@example.com/",
            "https:///x",
            "http://",
            "http://:80",
            "http://a:99999/",
            "http://a:0/",
            "http://a..b/",
            "http://./",
            "http://[fe80::1%25eth0]/",
            "http://[v1.x]/",
            "http://[127.0.0.1]/",
        ] {
            assert!(Url::parse(url, true).is_err(), "{url}");
        }
        for url in
            ["https://user:hidden@example.com/", "ftp://user:hidden@host/", "https://user:hidden/@host:no/"]
        {
            let (message, _) = Url::parse(url, true).unwrap_err();
            assert!(!message.contains("hidden"), "{message}");
        }
        let url = Url::parse("https://example.com/hook?a=b", false).unwrap();
        assert_eq!((url.host.as_str(), url.port, url.is_tls), ("example.com", 443, true));
        assert_eq!(Url::parse("https://[2606:4700::1111]:8443/x", false).unwrap().port, 8443);
    }
}
