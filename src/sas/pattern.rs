//! Which queues a key reaches.

use crate::id::QueueName;

/// Which queues a key reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum QueuePattern {
    /// `*`: all.
    All,
    /// `orders`: this one.
    One(String),
    /// `orders.*` or `orders-*`: those whose names begin with these whole segments.
    Below(String),
}

impl QueuePattern {
    pub(crate) fn read(text: &str) -> Result<QueuePattern, String> {
        let wrong = || {
            format!("{text:?} is no pattern of queues: `*`, a name, or a name that ends with `.*` or `-*`")
        };
        match text.strip_suffix('*') {
            Some("") => Ok(QueuePattern::All),
            Some(prefix) if !prefix.contains('*') && prefix.len() > 1 && prefix.ends_with(['.', '-']) => {
                Ok(QueuePattern::Below(prefix.to_owned()))
            }
            None if QueueName::new(text).is_ok() => Ok(QueuePattern::One(text.to_owned())),
            _ => Err(wrong()),
        }
    }

    pub(crate) fn fits(&self, queue: &str) -> bool {
        match self {
            QueuePattern::All => true,
            QueuePattern::One(name) => name == queue,
            QueuePattern::Below(prefix) => queue.len() > prefix.len() && queue.starts_with(prefix),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_ends_where_a_segment_ends() {
        let fits = |pattern: &str, queue: &str| QueuePattern::read(pattern).unwrap().fits(queue);
        assert!(fits("*", "anything") && fits("orders", "orders"));
        assert!(fits("orders.*", "orders.eu") && fits("orders-*", "orders-eu.west"));
        for other in ["orders2", "orders.eu", "order", "Orders"] {
            assert!(!fits("orders", other), "{other}");
        }
        for other in ["orders", "orders.", "ordersx.eu", "orders-eu"] {
            assert!(!fits("orders.*", other), "{other}");
        }
        for wrong in ["", "or*", "*.eu", "a.*.b", ".*", "**"] {
            assert!(QueuePattern::read(wrong).is_err(), "{wrong}");
        }
    }
}
