//! URLs in a definition.

use std::net::IpAddr;
use std::net::Ipv6Addr;

use http::Uri;

use crate::definition::program::Trouble;
use crate::id::QueueName;

/// Checks that a text is an http or https URL with a host; whether it may lead to a private address is said by the
/// definition.
pub(crate) fn check_url(text: &str, allow_private: bool) -> Result<(), Trouble> {
    let uri = parse(text)?;
    if !allow_private && uri.host().is_some_and(is_private) {
        let help = "write allow_private = true if that is meant".to_owned();
        return Err((format!("`{text}` leads to a private address"), Some(help)));
    }
    Ok(())
}

/// Checks that a text is the URL of a queue of another daemon: `http://host:7700/orders`.
pub(crate) fn check_queue_url(text: &str, allow_private: bool) -> Result<(), Trouble> {
    let help = || Some("write http://host:7700/queue".to_owned());
    parse(text)?;
    let (base, queue) = text.rsplit_once('/').unwrap_or((text, ""));
    if queue.is_empty() || base.ends_with(['/', ':']) {
        return Err((format!("`{text}` names no queue"), help()));
    }
    match QueueName::new(queue) {
        Ok(_) => check_url(text, allow_private),
        Err(misuse) => Err((format!("`{text}` names no queue: {misuse}"), help())),
    }
}

fn parse(text: &str) -> Result<Uri, Trouble> {
    let wrong = |problem: &str| (format!("`{text}` is no URL: {problem}"), None);
    let uri: Uri = text.parse().map_err(|error: http::uri::InvalidUri| wrong(&error.to_string()))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err(wrong("it begins with http:// or https://"));
    }
    let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    if authority.contains('@') {
        return Err(wrong("a name and a password do not belong into it"));
    }
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
    if uri.host().is_none_or(str::is_empty) || (has_port && uri.port_u16().is_none_or(|port| port == 0)) {
        return Err(wrong("its host or its port is missing"));
    }
    Ok(uri)
}

/// Whether a host is, by its name alone, one of this machine or of a private network.
fn is_private(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
    if host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost") {
        return true;
    }
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_unspecified()
        }
        Ok(IpAddr::V6(address)) => is_private_v6(address),
        Err(_) => false,
    }
}

fn is_private_v6(address: Ipv6Addr) -> bool {
    match address.to_ipv4_mapped() {
        Some(mapped) => is_private(&mapped.to_string()),
        None => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_unique_local()
                || address.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_a_scheme_and_a_host() {
        for url in ["https://example.com", "http://example.com:80/a?b=c", "https://[2001:db8::1]:8443/x"] {
            assert!(check_url(url, false).is_ok(), "{url}");
        }
        for url in [
            "",
            "example.com",
            "/orders",
            "ftp://example.com",
            "http://",
            "http://:80",
            "http://a:b@c/",
            "http://a:99999/",
        ] {
            assert!(check_url(url, true).is_err(), "{url}");
        }
    }

    #[test]
    fn a_private_address_has_to_be_allowed() {
        for host in [
            "localhost",
            "a.Localhost",
            "127.0.0.1",
            "10.1.2.3",
            "192.168.0.1",
            "172.16.0.1",
            "169.254.1.1",
            "0.0.0.0",
            "[::1]",
            "[fd00::1]",
            "[fe80::1]",
            "[::ffff:127.0.0.1]",
        ] {
            let url = format!("http://{host}:9000/orders");
            assert!(check_url(&url, false).is_err(), "{url}");
            assert!(check_url(&url, true).is_ok(), "{url}");
        }
    }

    #[test]
    fn a_queue_of_another_daemon_is_the_end_of_its_address() {
        for url in ["http://host:7700/orders", "https://a.example/b/orders"] {
            assert!(check_queue_url(url, false).is_ok(), "{url}");
        }
        for url in ["http://host:7700", "http://host:7700/", "http://host/a b", "http://host/orders?x=1"] {
            assert!(check_queue_url(url, true).is_err(), "{url}");
        }
        assert!(check_queue_url("http://10.0.0.1:7700/orders", false).is_err());
    }
}
