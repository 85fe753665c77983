//! What the path of a request names.

use percent_encoding::percent_decode_str;

use crate::service_bus::administration::refusal::AdminRefusal;

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AdminTarget {
    Namespace,
    Queues,
    Topics,
    /// A queue or a topic.
    Entity(String),
    Subscriptions(String),
    Subscription(String, String),
    Rules(String, String),
    Rule(String, String, String),
}

impl AdminTarget {
    /// Reads a path; the words between names are said in any case.
    pub(crate) fn read(path: &str) -> Result<AdminTarget, AdminRefusal> {
        let parts: Result<Vec<String>, _> = path
            .split('/')
            .filter(|part| !part.is_empty())
            .map(|part| percent_decode_str(part).decode_utf8().map(String::from))
            .collect();
        let parts = parts.map_err(|_| AdminRefusal::bad("the path is not UTF-8"))?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let is = |at: usize, word: &str| parts.get(at).is_some_and(|part| part.eq_ignore_ascii_case(word));
        let owned = |at: usize| parts[at].to_owned();
        Ok(match parts.len() {
            0 => return Err(AdminRefusal::not_found("entity", "without a name")),
            1 if is(0, "$namespaceinfo") => AdminTarget::Namespace,
            2 if is(0, "$Resources") && is(1, "queues") => AdminTarget::Queues,
            2 if is(0, "$Resources") && is(1, "topics") => AdminTarget::Topics,
            1 => AdminTarget::Entity(owned(0)),
            2 if is(1, "subscriptions") => AdminTarget::Subscriptions(owned(0)),
            3 if is(1, "subscriptions") => AdminTarget::Subscription(owned(0), owned(2)),
            4 if is(1, "subscriptions") && is(3, "rules") => AdminTarget::Rules(owned(0), owned(2)),
            5 if is(1, "subscriptions") && is(3, "rules") => AdminTarget::Rule(owned(0), owned(2), owned(4)),
            _ => return Err(AdminRefusal::bad("nothing is at this path: a name has no '/'")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_an_entity_in_any_case_and_encoding() {
        let read = |path: &str| AdminTarget::read(path).unwrap();
        assert_eq!(read("/orders"), AdminTarget::Entity("orders".to_owned()));
        assert_eq!(read("/$Resources/Queues"), AdminTarget::Queues);
        assert_eq!(read("/$resources/topics"), AdminTarget::Topics);
        assert_eq!(read("/t/Subscriptions"), AdminTarget::Subscriptions("t".to_owned()));
        assert_eq!(
            read("/t/subscriptions/a%20b"),
            AdminTarget::Subscription("t".to_owned(), "a b".to_owned())
        );
        let rule = AdminTarget::Rule("t".to_owned(), "s".to_owned(), "$Default".to_owned());
        assert_eq!(read("/t/Subscriptions/s/Rules/%24Default"), rule);
        for wrong in ["/", "/a/b", "/t/subscriptions/s/x", "/%ff", "/a/b/c/d/e/f"] {
            assert!(AdminTarget::read(wrong).is_err(), "{wrong}");
        }
    }
}
