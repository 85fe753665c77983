//! URLs in a definition.

use crate::definition::diagnostic::Trouble;
use crate::definition::url::Url;
use crate::id::QueueName;

/// Checks that a text is a URL that can be posted to.
pub(crate) fn check_url(text: &str, allow_private: bool) -> Result<(), Trouble> {
    Url::parse(text, allow_private).map(drop)
}

/// Checks that a text is the URL of a queue of another daemon: `http://host:7700/orders`.
pub(crate) fn check_queue_url(text: &str, allow_private: bool) -> Result<(), Trouble> {
    let help = || Some("write http://host:7700/queue".to_owned());
    Url::parse(text, true)?;
    let (base, queue) = text.rsplit_once('/').unwrap_or((text, ""));
    if queue.is_empty() || base.ends_with(['/', ':']) {
        return Err((format!("`{text}` names no queue"), help()));
    }
    match QueueName::new(queue) {
        Ok(_) => check_url(text, allow_private),
        Err(misuse) => Err((format!("`{text}` names no queue: {misuse}"), help())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
