//! What the path of a request names.

use percent_encoding::percent_decode_str;

use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::slashed::queue_name;

/// What a request is about. Queues and topics are named as they are called here.
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
        // A name may come with its slashes as they are, or encoded.
        let path = parts.join("/");
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let is = |at: usize, word: &str| parts.get(at).is_some_and(|part| part.eq_ignore_ascii_case(word));
        let word = (1..parts.len()).find(|at| is(*at, "subscriptions")).unwrap_or(parts.len());
        let owned = |at: usize| parts[at].to_owned();
        let entity = || queue_name(&parts[..word].join("/")).into_owned();
        Ok(match parts.len() - word {
            _ if parts.is_empty() => return Err(AdminRefusal::not_found("entity", "without a name")),
            0 if word == 1 && is(0, "$namespaceinfo") => AdminTarget::Namespace,
            0 if word == 2 && is(0, "$Resources") && is(1, "queues") => AdminTarget::Queues,
            0 if word == 2 && is(0, "$Resources") && is(1, "topics") => AdminTarget::Topics,
            0 => AdminTarget::Entity(entity()),
            1 => AdminTarget::Subscriptions(entity()),
            2 => AdminTarget::Subscription(entity(), owned(word + 1)),
            3 if is(word + 2, "rules") => AdminTarget::Rules(entity(), owned(word + 1)),
            4 if is(word + 2, "rules") => AdminTarget::Rule(entity(), owned(word + 1), owned(word + 3)),
            _ => return Err(AdminRefusal::bad("nothing is at this path")),
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
        for path in ["/a/b", "/a%2Fb", "/a%2fb/"] {
            assert_eq!(read(path), AdminTarget::Entity("a_2F_b".to_owned()));
        }
        assert_eq!(
            read("/a/b/subscriptions/s"),
            AdminTarget::Subscription("a_2F_b".to_owned(), "s".to_owned())
        );
        for wrong in ["/", "/t/subscriptions/s/x", "/%ff", "/t/subscriptions/s/rules/a/b"] {
            assert!(AdminTarget::read(wrong).is_err(), "{wrong}");
        }
    }
}
