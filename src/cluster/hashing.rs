//! Which partition a workflow belongs to, and which node a partition should have.

use xxhash_rust::xxh3::xxh3_64;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::id::QueueName;
use crate::id::WorkflowId;

/// The partition of a workflow: fixed for good, the same in every version. A workflow has the same one in all subscriptions of a
/// topic, so that all copies of a message can be stored together.
pub(crate) fn partition_of(queue: &QueueName, workflow: &WorkflowId, partitions: u16) -> u16 {
    let hash = xxh3_64_with_seed(placed_by(queue), workflow.partition_hash());
    u16::try_from(hash % u64::from(partitions)).expect("it is less than the number of partitions")
}

/// The partition of what has no workflow, but a text by which it is known when it is sent again.
pub(crate) fn partition_of_text(queue: &QueueName, text: &str, partitions: u16) -> u16 {
    let hash = xxh3_64_with_seed(placed_by(queue), xxh3_64(text.as_bytes()));
    u16::try_from(hash % u64::from(partitions)).expect("it is less than the number of partitions")
}

/// The name by which what is in a queue is placed: of a subscription, that of its topic.
fn placed_by(queue: &QueueName) -> &[u8] {
    queue.topic_of_subscription().unwrap_or(queue.as_str()).as_bytes()
}

/// The node that should own a partition: by rendezvous hashing, so that a node that comes or goes moves no partition but
/// those that it gets or had.
pub(crate) fn preferred<'a>(partition: u16, nodes: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let weight = |node: &str| xxh3_64(format!("{partition}/{node}").as_bytes());
    nodes.max_by_key(|node| (weight(node), *node))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SubscriptionName;

    #[test]
    fn the_partition_of_a_workflow_never_changes() {
        let queue = QueueName::new("orders").unwrap();
        let of = |id: &str| partition_of(&queue, &WorkflowId::new(id).unwrap(), 16);
        let partitions: Vec<u16> = (1..=8).map(|number| of(&format!("order-{number}"))).collect();
        assert_eq!(partitions, PARTITIONS);
    }

    const PARTITIONS: [u16; 8] = [2, 5, 11, 13, 11, 2, 2, 14];

    #[test]
    fn a_workflow_is_in_the_same_partition_in_every_subscription_of_a_topic() {
        let topic = QueueName::new("orders").unwrap();
        for subscription in ["billing", "review"] {
            let name = SubscriptionName::new(subscription).unwrap();
            let queue = QueueName::of_subscription(&topic, &name).unwrap();
            for number in 1..=8 {
                let id = WorkflowId::new(format!("order-{number}")).unwrap();
                assert_eq!(partition_of(&queue, &id, 16), partition_of(&topic, &id, 16));
                let text = id.as_str();
                assert_eq!(partition_of_text(&queue, text, 16), partition_of_text(&topic, text, 16));
            }
        }
    }

    #[test]
    fn a_node_that_goes_moves_only_what_it_had() {
        let all = ["a", "b", "c"];
        for partition in 0..64 {
            let before = preferred(partition, all.into_iter()).unwrap();
            let after = preferred(partition, all.into_iter().filter(|node| *node != "b")).unwrap();
            assert!(before == "b" || before == after);
        }
        let of_b = (0..64).filter(|partition| preferred(*partition, all.into_iter()) == Some("b")).count();
        assert!((10..33).contains(&of_b), "{of_b} of 64 partitions are b's");
    }
}
