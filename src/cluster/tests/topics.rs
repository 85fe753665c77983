//! Topics are the same in every partition, and what is sent to one reaches its subscriptions once and in order, through any node.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::actor::Actor;
use crate::cluster::hashing::partition_of;
use crate::cluster::node::ClusterNode;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::PARTITIONS;
use crate::cluster::tests::router::close;
use crate::cluster::tests::router::nodes;
use crate::cluster::tests::router::workflows;
use crate::engine::Queue;
use crate::engine::Topic;
use crate::error::OperationError;
use crate::error::QueueRefusal;
use crate::error::SendRefusal;
use crate::error::TopicRefusal;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::message::Message;
use crate::own_queues::OUTBOX_QUEUE;
use crate::queue::QueueOptions;
use crate::topic::Correlation;
use crate::topic::Filter;
use crate::topic::Rule;

/// A topic with a subscription that wants everything, and one that wants what is large.
async fn topic(node: &ClusterNode) -> Topic {
    let topic = node.client().create_topic("orders").await.unwrap();
    let large = Rule::new("large", Filter::sql("amount > 100"));
    topic.subscribe("all", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    topic.subscribe("large", QueueOptions::default(), [large]).await.unwrap();
    topic
}

fn message(workflow: &str, number: i64) -> Message {
    Message::new(number.to_string()).workflow(workflow).property("amount", number)
}

/// Everything that a queue has, by workflow, received through a node and completed.
async fn drain(node: &ClusterNode, queue: &str) -> BTreeMap<String, Vec<i64>> {
    let queue = node.client().queue(queue).unwrap();
    let mut received: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.unwrap() {
        let workflow = delivery.message().workflow_id.as_ref().unwrap().as_str().to_owned();
        let body = String::from_utf8(delivery.message().body.to_vec()).unwrap();
        received.entry(workflow).or_default().push(body.parse().unwrap());
        delivery.complete().await.unwrap();
    }
    received
}

async fn accepted(queue: &Queue) -> u64 {
    queue.view().await.unwrap().counts.accepted
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_to_a_topic_reaches_every_subscription_that_wants_it_once_and_in_order() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    topic(&nodes[0]).await;
    let sending = nodes[1].client().topic("orders").unwrap();
    for number in [7, 700, 8, 800] {
        for workflow in workflows() {
            let copies = sending.send(message(&workflow, number)).await.unwrap();
            assert_eq!(copies.len(), if number > 100 { 2 } else { 1 });
        }
    }
    let everything = drain(&nodes[0], "orders/subscriptions/all").await;
    let large = drain(&nodes[1], "orders/subscriptions/large").await;
    for workflow in workflows() {
        assert_eq!(everything[&workflow], [7, 700, 8, 800]);
        assert_eq!(large[&workflow], [700, 800]);
    }
    assert_eq!((everything.len(), large.len()), (12, 12));
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_is_stored_together_where_it_is_of_one_partition_and_refused_where_it_is_of_several() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let topic = topic(&nodes[0]).await;
    let several = workflows();
    let several = several.iter().map(|workflow| message(workflow, 700));
    let refused = topic.send_batch(several).await.unwrap_err();
    assert!(refused.to_string().contains("has to be of workflows of one partition"), "{refused}");
    assert_eq!(accepted(&topic.subscription("all").unwrap()).await, 0);
    let copies = topic.send_batch((0..8).map(|number| message("w1", number * 50))).await.unwrap();
    let of = |name: &str| copies.iter().filter(|(queue, _)| queue.as_str().ends_with(name)).count();
    assert_eq!((of("/all"), of("/large")), (8, 5));
    // What has no workflow can be anywhere, but is together.
    let copies = topic.send(Message::new("x").property("amount", 700_i64)).await.unwrap();
    assert_eq!(copies.len(), 2);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_the_same_in_every_partition_also_in_one_that_is_taken_over_later() {
    let Some(servers) = NatsServers::start(1) else { return };
    let mut nodes = nodes(&servers, &["first", "second"]).await;
    let topic = topic(&nodes[0]).await;
    let other = nodes[1].client().topic("orders").unwrap();
    let options = QueueOptions::default().lock(Duration::from_secs(77));
    let review = other.subscribe("review", options.clone(), [Rule::everything()]).await.unwrap();
    assert!(review.set_paused(true).await.unwrap());
    assert!(topic.set_rules("large", [Rule::new("huge", Filter::sql("amount > 500"))]).await.unwrap());
    let again = topic.subscribe("review", QueueOptions::default(), [Rule::everything()]).await;
    let is_refused = matches!(again, Err(OperationError::Refused(TopicRefusal::SubscriptionExists(..))));
    assert!(is_refused);
    let expected = topic.view().await.unwrap().unwrap();
    assert_eq!(other.view().await.unwrap().unwrap(), expected);
    assert_eq!(nodes[1].client().topics(None, 10).await.unwrap(), std::slice::from_ref(&expected));
    nodes.remove(1).close().await;
    let has_all = || (0..PARTITIONS).all(|number| nodes[0].engine(number).is_some());
    tokio::task::block_in_place(|| wait_until("one node has all partitions", has_all));
    for number in 0..PARTITIONS {
        let engine = nodes[0].engine(number).unwrap();
        assert_eq!(engine.topic("orders").unwrap().view().await.unwrap().unwrap(), expected);
        let view = engine.queue(review.name()).unwrap().view().await.unwrap();
        assert!(view.paused && view.options == options, "{view:?}");
    }
    for workflow in workflows() {
        assert_eq!(topic.send(message(&workflow, 300)).await.unwrap().len(), 2, "it is not huge");
    }
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_that_were_changed_through_one_node_are_those_of_every_other_at_once() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let topic = topic(&nodes[0]).await;
    let other = nodes[1].client().topic("orders").unwrap();
    for number in 0..20 {
        let workflow = format!("w{number}");
        let rule = Rule::new(format!("r{number}"), Filter::sql(format!("amount = {number}")));
        topic.add_rule("large", rule).await.unwrap();
        assert_eq!(other.send(message(&workflow, number)).await.unwrap().len(), 2);
        topic.remove_rule("large", format!("r{number}")).await.unwrap();
        assert_eq!(other.send(message(&workflow, number)).await.unwrap().len(), 1);
    }
    let changing = tokio::spawn({
        let other = other.clone();
        async move {
            for number in 0..10 {
                other.add_rule("all", Rule::new(format!("a{number}"), Filter::True)).await.unwrap();
            }
        }
    });
    for number in 0..10 {
        topic.add_rule("all", Rule::new(format!("b{number}"), Filter::True)).await.unwrap();
    }
    changing.await.unwrap();
    assert_eq!(topic.rules("all").await.unwrap().len(), 21, "a change was lost");
    let refused = topic.add_rule("all", Rule::new("a1", Filter::True)).await.unwrap_err();
    assert!(matches!(refused, OperationError::Refused(TopicRefusal::RuleExists(..))), "{refused:?}");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_go_on_while_rules_are_changed_and_each_is_by_the_rules_of_one_moment() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let topic = topic(&nodes[0]).await;
    let sending = tokio::spawn({
        let other = nodes[1].client().topic("orders").unwrap();
        async move {
            let mut copies = 0;
            for number in 0..200 {
                let sent = other.send(message(&format!("w{}", number % 12), number)).await.unwrap();
                let of = |name: &str| sent.iter().filter(|(queue, _)| queue.as_str().ends_with(name)).count();
                assert_eq!(of("/all"), 1, "{sent:?}");
                copies += of("/large");
            }
            copies
        }
    });
    for _ in 0..20 {
        topic.set_rules("large", [Rule::everything()]).await.unwrap();
        topic.set_rules("large", []).await.unwrap();
    }
    let copies = sending.await.unwrap();
    assert_eq!(accepted(&topic.subscription("all").unwrap()).await, 200);
    assert_eq!(accepted(&topic.subscription("large").unwrap()).await, copies as u64);
    let correlation = Correlation::default().property("x", f64::NAN);
    let refused =
        topic.set_rules("all", [Rule::new("r", Filter::Correlation(correlation))]).await.unwrap_err();
    assert!(refused.to_string().contains("infinite or no number"), "{refused}");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_that_is_repeated_under_its_key_is_done_once_whatever_the_rules_have_become() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let topic = topic(&nodes[0]).await;
    let other = nodes[1].client().topic("orders").unwrap();
    let key = |workflow: &str| IdempotencyKey::of_request(workflow, b"same").unwrap();
    let mut first = Vec::new();
    for workflow in workflows() {
        first.push(topic.send_batch_once(key(&workflow), [message(&workflow, 700)]).await.unwrap());
    }
    other.set_rules("all", []).await.unwrap();
    nodes[0].client().delete_queue("orders/subscriptions/large").await.unwrap();
    for (workflow, first) in workflows().into_iter().zip(first) {
        assert_eq!(first.len(), 2);
        let again = other.send_batch_once(key(&workflow), [message(&workflow, 700)]).await.unwrap();
        assert_eq!(again, first);
    }
    assert_eq!(accepted(&topic.subscription("all").unwrap()).await, 12);
    // Another topic of the same name knows nothing of it.
    other.send(message("w1", 1)).await.unwrap();
    nodes[1].client().delete_topic("orders").await.unwrap();
    nodes[0].client().create_topic("orders").await.unwrap();
    topic.subscribe("all", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    assert_eq!(other.send_batch_once(key("w1"), [message("w1", 700)]).await.unwrap().len(), 1);
    assert_eq!(accepted(&topic.subscription("all").unwrap()).await, 1);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_is_deleted_is_gone_everywhere_with_what_its_subscriptions_have() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let topic = topic(&nodes[0]).await;
    let other = nodes[1].client().topic("orders").unwrap();
    for workflow in workflows() {
        other.send(message(&workflow, 700)).await.unwrap();
    }
    nodes[1].client().delete_queue("orders/subscriptions/large").await.unwrap();
    assert_eq!(topic.send(message("w1", 700)).await.unwrap().len(), 1);
    let large = nodes[0].client().queue("orders/subscriptions/large").unwrap();
    assert!(matches!(large.view().await, Err(OperationError::Refused(QueueRefusal::QueueNotFound(_)))));
    nodes[1].client().delete_topic("orders").await.unwrap();
    let refused = topic.send(message("w1", 700)).await.unwrap_err();
    assert!(matches!(refused, OperationError::Refused(SendRefusal::TopicNotFound(_))), "{refused:?}");
    assert!(topic.view().await.unwrap().is_none());
    assert!(nodes[0].client().queues(None, 10).await.unwrap().is_empty());
    let gone = nodes[0].client().delete_topic("orders").await.unwrap_err();
    assert!(matches!(gone, OperationError::Refused(TopicRefusal::TopicNotFound(_))), "{gone:?}");
    // The name is free for a queue, and that of a queue is not for a topic.
    nodes[0].client().create_queue("orders", QueueOptions::default()).await.unwrap();
    let refused = nodes[1].client().create_topic("orders").await.err().unwrap();
    assert!(matches!(refused, OperationError::Refused(TopicRefusal::NameIsQueue(_))), "{refused:?}");
    nodes[1].client().delete_queue("orders").await.unwrap();
    let anew = nodes[0].client().create_topic("orders").await.unwrap();
    let all = anew.subscribe("all", QueueOptions::by_position(), [Rule::everything()]).await.unwrap();
    assert_eq!(all.view().await.unwrap().counts.stored(), 0, "it has what the one before had");
    let refused = nodes[1].client().create_queue("orders", QueueOptions::default()).await.err().unwrap();
    assert!(matches!(refused, OperationError::Refused(QueueRefusal::NameIsTopic(_))), "{refused:?}");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_that_a_rule_moves_to_a_workflow_of_another_partition_arrives_through_the_outbox() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let topic = topic(&nodes[0]).await;
    let all = topic.subscription("all").unwrap();
    let of = |id: &str| partition_of(all.name(), &WorkflowId::new(id).unwrap(), PARTITIONS);
    let target = workflows().into_iter().find(|id| of(id) != of("source")).unwrap();
    let moves = Rule::everything().action(format!("SET sys.SessionId = '{target}'"));
    topic.set_rules("all", [moves]).await.unwrap();
    let other = nodes[1].client().topic("orders").unwrap();
    for number in 700..710 {
        let placed = message("source", number).position(number.unsigned_abs());
        let copies = other.send(placed).await.unwrap();
        let queues: Vec<&str> = copies.iter().map(|(queue, _)| queue.as_str()).collect();
        assert_eq!(queues, ["orders/subscriptions/all", "orders/subscriptions/large"]);
    }
    for number in 700..710 {
        let delivery = all.receive(Duration::from_secs(20)).await.unwrap();
        let mut delivery = delivery.expect("every copy arrives");
        assert_eq!(delivery.message().body, number.to_string(), "in the order in which they were sent");
        assert_eq!(delivery.message().workflow_id.as_ref().unwrap().as_str(), target);
        delivery.complete().await.unwrap();
    }
    let outbox = nodes[0].client().queue(OUTBOX_QUEUE).unwrap();
    assert_eq!(accepted(&outbox).await, 10, "it is stored where its workflow does not belong");
    let key = IdempotencyKey::of_request("k", b"same").unwrap();
    let refused = other.send_batch_once(key, [message("source", 1)]).await.unwrap_err();
    assert!(refused.to_string().contains("moves it to a workflow of another partition"), "{refused}");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_completes_in_one_partition_and_sends_to_queues_and_topics_of_any() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let topic = topic(&nodes[0]).await;
    let client = nodes[1].client();
    let queue = client.create_queue("in", QueueOptions::default()).await.unwrap();
    let out = client.create_queue("out", QueueOptions::default()).await.unwrap();
    for workflow in workflows() {
        queue.send(Message::new("x").workflow("source")).await.unwrap();
        let delivery = queue.receive(Duration::from_secs(10)).await.unwrap().expect("it was sent");
        let mut transaction = crate::engine::Transaction::new(client.clone());
        transaction.send(out.name(), message(&workflow, 700)).unwrap();
        transaction.publish(&topic, message(&workflow, 700).check().unwrap().into());
        transaction.complete(queue.name(), delivery.keep()).unwrap();
        transaction.commit().await.unwrap();
    }
    assert_eq!(queue.view().await.unwrap().counts.completed, 12);
    for name in ["out", "orders/subscriptions/all", "orders/subscriptions/large"] {
        let queue = client.queue(name).unwrap();
        let mut arrived = std::collections::BTreeSet::new();
        for _ in 0..12 {
            let delivery = queue.receive(Duration::from_secs(20)).await.unwrap();
            let mut delivery = delivery.expect("everything arrives");
            assert!(arrived.insert(delivery.message().workflow_id.clone()), "it arrives twice");
            delivery.complete().await.unwrap();
        }
    }
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_operator_changes_of_topics_is_in_the_audit_of_the_first_partition() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let ada = nodes[0].client().acting_as(Actor::new("ada").unwrap());
    let topic = ada.create_topic("orders").await.unwrap();
    let all = topic.subscribe("all", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    topic.add_rule("all", Rule::new("more", Filter::True)).await.unwrap();
    ada.delete_queue(all.name()).await.unwrap();
    ada.delete_topic("orders").await.unwrap();
    let audit = nodes[0].engine(0).unwrap().audit(0, 100).await.unwrap();
    let verbs: Vec<_> = audit.iter().map(|entry| (entry.verb, entry.queue.clone())).collect();
    let name = |text: &str| QueueName::new(text).unwrap();
    use crate::engine::AuditVerb;
    assert_eq!(
        verbs,
        [
            (AuditVerb::CreateTopic, name("orders")),
            (AuditVerb::ChangeTopic, name("orders")),
            (AuditVerb::ChangeTopic, name("orders")),
            (AuditVerb::DeleteQueue, name("orders/subscriptions/all")),
            (AuditVerb::DeleteTopic, name("orders")),
        ]
    );
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_would_be_deleted_by_being_idle_is_refused() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let topic = topic(&nodes[0]).await;
    let idle = QueueOptions { delete_when_idle: Some(Duration::from_secs(300)), ..QueueOptions::default() };
    let client = nodes[0].client();
    let refusals = [
        client.create_queue("q", idle.clone()).await.err().unwrap().to_string(),
        client.change_queue("orders/subscriptions/all", idle.clone()).await.unwrap_err().to_string(),
        topic.subscribe("idle", idle, [Rule::everything()]).await.err().unwrap().to_string(),
    ];
    assert!(refusals.iter().all(|refusal| refusal.contains("not deleted by being idle")), "{refusals:?}");
    close(nodes).await;
}
