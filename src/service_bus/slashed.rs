//! Names of entities with slashes, which no queue of ours has in its name: `a/b` is the queue `a_2F_b`.

use std::borrow::Cow;

use crate::id::QueueName;
use crate::id::SubscriptionName;

/// What stands for a slash in the name of a queue.
const SLASH: &str = "_2F_";

/// The name of the queue, or of the topic, that clients call so.
pub(crate) fn queue_name(name: &str) -> Cow<'_, str> {
    let queue = name.replace('/', SLASH);
    // One that another name could mean is left as it is, and no queue has that.
    match is_slashed(name) && queue.replace(SLASH, "/") == name {
        true => Cow::Owned(queue),
        false => Cow::Borrowed(name),
    }
}

/// What clients call a queue, a topic, or the queue of a subscription, of that name.
pub(crate) fn entity_name(queue: &str) -> Cow<'_, str> {
    if !queue.contains(SLASH) {
        return Cow::Borrowed(queue);
    }
    if let Some((topic, subscription)) = queue.split_once('/') {
        return Cow::Owned(format!("{}/{subscription}", entity_name(topic)));
    }
    let name = queue.replace(SLASH, "/");
    // One that clients could not say is called what it is called here.
    match queue_name(&name) == queue {
        true => Cow::Owned(name),
        false => Cow::Borrowed(queue),
    }
}

/// Where a topic's subscriptions are, as clients say it.
pub(crate) fn subscriptions_path(topic: &QueueName) -> String {
    format!("{}/Subscriptions", entity_name(topic.as_str()))
}

/// What clients call a subscription.
pub(crate) fn subscription_path(topic: &QueueName, name: &SubscriptionName) -> String {
    format!("{}/{name}", subscriptions_path(topic))
}

/// Whether it is made of several parts. One of a dot, or of two, would be taken out of a URL on its way.
fn is_slashed(name: &str) -> bool {
    name.contains('/') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_slashes_is_that_of_a_queue_and_comes_back() {
        for entity in ["orders", "txt/.-_123", "a/b/c", "a_b/2F.c", "a_2/F_b", "a/2F_b", "a_2", "_2F_"] {
            let queue = queue_name(entity);
            assert_eq!(entity_name(&queue), entity, "by way of {queue}");
            assert!(!queue.contains('/'));
        }
        assert!(QueueName::new(&*queue_name("txt/.-_123")).is_ok());
        assert_eq!(entity_name("a_2F_b/subscriptions/s_2F_"), "a/b/subscriptions/s_2F_");
    }

    #[test]
    fn what_is_no_name_stays_none() {
        for entity in ["a//b", "a/", "/a", "a/../b", "a/./b", "a/$b", "a/b c", "a_2F/b", "a/_2F_"] {
            assert!(QueueName::new(&*queue_name(entity)).is_err(), "{entity}");
        }
    }
}
