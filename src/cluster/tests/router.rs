//! A client of a node works for every workflow, whichever node has it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::cluster::hashing::partition_of;
use crate::cluster::hashing::preferred;
use crate::cluster::node::ClusterNode;
use crate::cluster::stop::pause;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::engine::Completion;
use crate::engine::Delivery;
use crate::engine::Hidden;
use crate::engine::Queue;
use crate::engine::elsewhere::verbs::HideAgain;
use crate::error::OperationError;
use crate::error::QueueRefusal;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;

pub(crate) const PARTITIONS: u16 = 4;

/// Nodes on one server, each with partitions.
pub(crate) async fn nodes(servers: &NatsServers, names: &[&str]) -> Vec<ClusterNode> {
    let mut nodes = Vec::new();
    for name in names {
        let options = servers.options("router", name).partitions(PARTITIONS);
        nodes.push(ClusterNode::start(options).await.unwrap());
    }
    // Where each is to stay: nothing is on its way to another node while a test looks.
    let is_settled = |number: u16| {
        let owner = preferred(number, names.iter().copied()).unwrap();
        names.iter().zip(&nodes).all(|(name, node)| node.engine(number).is_some() == (*name == owner))
    };
    let are_settled = || (0..PARTITIONS).all(is_settled);
    tokio::task::block_in_place(|| wait_until("every partition is where it is to be", are_settled));
    nodes
}

pub(crate) async fn close(nodes: Vec<ClusterNode>) {
    for node in nodes {
        node.close().await;
    }
}

pub(crate) fn workflows() -> Vec<String> {
    (0..12).map(|number| format!("w{number}")).collect()
}

/// Whether a node has every partition.
pub(crate) fn has_all(node: &ClusterNode) -> bool {
    node.status().iter().all(|status| node.engine(status.partition).is_some())
}

/// Workflows of the queue `q` that belong to a partition.
pub(crate) fn workflows_of(partition: u16) -> impl Iterator<Item = String> {
    let queue = QueueName::new("q").unwrap();
    let is_there =
        move |name: &String| partition_of(&queue, &WorkflowId::new(name).unwrap(), PARTITIONS) == partition;
    (0..).map(|number| format!("w{number}")).filter(is_there)
}

/// The first of them.
pub(crate) fn workflow_of(partition: u16) -> String {
    workflows_of(partition).next().unwrap()
}

/// For how long messages are hidden: no test waits for that.
pub(crate) const HIDDEN_FOR: Duration = Duration::from_secs(3_600);

/// Hides the next message, as soon as there is one.
pub(crate) async fn next_hidden(queue: &Queue) -> Hidden {
    loop {
        if let Some(hidden) = queue.receive_hidden(1, HIDDEN_FOR).await.unwrap().pop() {
            return hidden;
        }
        pause(limits::ROUTE_PAUSE).await;
    }
}

/// Sends three messages to each workflow through one node.
pub(crate) async fn send_all(queue: &Queue) {
    for position in 1..=3 {
        for workflow in workflows() {
            let text = format!("{workflow}/{position}");
            queue.send(Message::new(text).workflow(&workflow).position(position)).await.unwrap();
        }
    }
}

fn text(delivery: &Delivery) -> String {
    String::from_utf8(delivery.message().body.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_through_one_node_is_received_and_settled_through_another_in_order() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let sending = nodes[0].client().create_queue("q", QueueOptions::by_position()).await.unwrap();
    send_all(&sending).await;
    let queue = nodes[1].client().queue("q").unwrap();
    assert_eq!(queue.view().await.unwrap().counts.ready, 36);
    let mut received: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut numbers = std::collections::BTreeSet::new();
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.unwrap() {
        let workflow = delivery.message().workflow_id.as_ref().unwrap().as_str().to_owned();
        received.entry(workflow).or_default().push(text(&delivery));
        assert!(numbers.insert(delivery.sequence_number()), "a number is given twice");
        delivery.renew().await.unwrap();
        delivery.complete().await.unwrap();
    }
    for workflow in workflows() {
        let expected: Vec<String> = (1..=3).map(|position| format!("{workflow}/{position}")).collect();
        assert_eq!(received[&workflow], expected);
    }
    let counts = sending.view().await.unwrap().counts;
    assert_eq!((counts.completed, counts.stored()), (36, 0));
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_waits_is_handed_what_comes_to_any_partition() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let other = nodes[1].client().queue("q").unwrap();
    for workflow in workflows() {
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.receive(Duration::from_secs(20)).await.unwrap() }
        });
        other.send(Message::new(workflow.clone()).workflow(&workflow)).await.unwrap();
        let mut delivery = waiting.await.unwrap().expect("it was sent");
        assert_eq!(text(&delivery), workflow);
        assert_eq!(delivery.message().delivery_count, 1);
        delivery.complete().await.unwrap();
    }
    // Who waits no more keeps nothing.
    let left = tokio::time::timeout(Duration::from_millis(50), queue.receive(Duration::from_secs(20)));
    assert!(left.await.is_err());
    other.send(Message::new("late").workflow("w1")).await.unwrap();
    let mut late = other.receive(Duration::from_secs(20)).await.unwrap().expect("it was given back");
    assert_eq!((text(&late), late.message().delivery_count), ("late".to_owned(), 1));
    late.complete().await.unwrap();
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_whole_workflows_and_their_states_work_through_any_node() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::by_position()).await.unwrap();
    send_all(&queue).await;
    for node in &nodes {
        let queue = node.client().queue("q").unwrap();
        let mut run = queue.receive_run(10, Duration::ZERO).await.unwrap().expect("there are some");
        assert_eq!(run.messages().len(), 3);
        run.complete_all().await.unwrap();
        for workflow in ["w3", "w4", "w5"] {
            let Ok(mut taken) = queue.accept_workflow(workflow).await else { continue };
            taken.set_state(Some("known".into())).await.unwrap();
            taken.close().await.unwrap();
            let view = queue.workflow(workflow).unwrap().view().await.unwrap();
            assert!(view.is_none_or(|view| view.has_state));
            assert_eq!(
                queue.workflow(workflow).unwrap().state().await.unwrap().as_deref(),
                Some(&b"known"[..])
            );
        }
        let next = queue.accept_next_workflow(Duration::ZERO).await.unwrap().expect("there is one");
        let mut messages = next.receive(10, Duration::ZERO).await.unwrap();
        assert_eq!(messages.len(), 3);
        messages[0].complete().await.unwrap();
        next.close().await.unwrap();
    }
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_of_a_workflow_that_another_node_has_can_be_hurried() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    for node in &nodes {
        let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
        for workflow in workflows() {
            queue.send(Message::new("").workflow(&workflow)).await.unwrap();
            let taken = queue.accept_workflow(&workflow).await.unwrap();
            let mut first = taken.receive(1, Duration::ZERO).await.unwrap().remove(0);
            first.complete().await.unwrap();
            let enough = std::future::ready(());
            let received = taken.receive_until(1, Duration::from_secs(60), enough);
            let received = tokio::time::timeout(Duration::from_secs(10), received).await;
            assert!(received.expect("it is told that it has waited enough").unwrap().is_empty());
            taken.close().await.unwrap();
        }
    }
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receive_of_a_workflow_that_was_dropped_gets_nothing_of_it_whichever_node_has_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::by_position()).await.unwrap();
    for workflow in (0..PARTITIONS).map(workflow_of) {
        let taken = queue.accept_workflow(&workflow).await.unwrap();
        let left = tokio::time::timeout(Duration::from_millis(50), taken.receive(1, Duration::from_secs(60)));
        assert!(left.await.is_err());
        let next = taken.receive(1, Duration::from_secs(20));
        let send = async {
            let messages = [1, 2]
                .map(|position| Message::new(position.to_string()).workflow(&workflow).position(position));
            queue.send_batch(messages).await.unwrap();
        };
        let (received, ()) = tokio::join!(next, send);
        let mut delivery = received.unwrap().pop().expect("it was sent");
        assert_eq!((text(&delivery), delivery.message().delivery_count), ("1".to_owned(), 1));
        taken.close().await.unwrap();
        delivery.hold().note_settled();
    }
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_hidden_can_be_given_back_to_whichever_node_has_its_partition() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    for (partition, node) in
        (0..PARTITIONS).flat_map(|partition| nodes.iter().map(move |node| (partition, node)))
    {
        queue.send(Message::new("x").workflow(workflow_of(partition))).await.unwrap();
        let claim = next_hidden(&queue).await.claim;
        let (queue_name, lasts, body) = (queue.name().clone(), Duration::ZERO, None);
        node.client().give_back(HideAgain { queue: queue_name, claim, lasts, body });
        let again = tokio::time::timeout(Duration::from_secs(20), next_hidden(&queue)).await;
        let again = again.expect("it is offered again").claim;
        assert_eq!(again.sequence_number, claim.sequence_number);
        queue.end_hidden(again).await.unwrap();
    }
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_split_where_each_is_judged_for_itself_and_refused_where_all_are_together() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let messages = || workflows().into_iter().map(|workflow| Message::new("x").workflow(workflow));
    let refused = queue.send_batch(messages()).await.unwrap_err();
    assert!(refused.to_string().contains("has to be of workflows of one partition"), "{refused}");
    assert_eq!(queue.view().await.unwrap().counts.accepted, 0);
    let sent = queue.send_each(messages()).await.unwrap();
    assert_eq!(sent.iter().filter(|sent| sent.is_ok()).count(), 12);
    let mut deliveries = Vec::new();
    while let Some(delivery) = queue.receive(Duration::ZERO).await.unwrap() {
        deliveries.push(delivery);
    }
    let own = deliveries[0].message().workflow_id.as_ref().unwrap().as_str().to_owned();
    let completion = Completion::new().send("q", Message::new("next").workflow(&own));
    deliveries.remove(0).complete_with(completion).await.unwrap();
    let completed = queue.complete_all(&mut deliveries).await.unwrap();
    assert_eq!((completed.len(), completed.iter().filter(|done| done.is_ok()).count()), (11, 11));
    let again = queue.complete_all(&mut deliveries).await.unwrap();
    assert!(again.iter().all(|done| done.is_ok() || matches!(done, Err(SettleRefusal::LockLost))));
    assert_eq!(queue.view().await.unwrap().counts.completed, 12);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queues_are_the_same_in_every_partition_also_in_one_that_is_taken_over_later() {
    let Some(servers) = NatsServers::start(1) else { return };
    let mut nodes = nodes(&servers, &["first", "second"]).await;
    let first = nodes[0].client().clone();
    let queue = first.create_queue("q", QueueOptions::default()).await.unwrap();
    let other = first.create_queue("q", QueueOptions::by_position()).await.err().unwrap();
    assert!(matches!(other, OperationError::Refused(QueueRefusal::QueueExists(_))), "{other:?}");
    let options = QueueOptions::default().lock(Duration::from_secs(77));
    assert!(nodes[1].client().change_queue("q", options.clone()).await.unwrap());
    assert!(queue.set_paused(true).await.unwrap());
    first.create_queue("gone", QueueOptions::default()).await.unwrap();
    let gone = nodes[1].client().queue("gone").unwrap();
    gone.send_each(workflows().into_iter().map(|workflow| Message::new("x").workflow(workflow)))
        .await
        .unwrap();
    first.delete_queue("gone").await.unwrap();
    first.create_queue("gone", QueueOptions::by_position()).await.unwrap();
    assert_eq!(gone.view().await.unwrap().counts.stored(), 0, "the messages of the one before are gone");
    nodes.remove(1).close().await;
    let has_all = || (0..PARTITIONS).all(|number| nodes[0].engine(number).is_some());
    tokio::task::block_in_place(|| wait_until("one node has all partitions", has_all));
    for number in 0..PARTITIONS {
        let engine = nodes[0].engine(number).unwrap();
        let view = engine.queue("q").unwrap().view().await.unwrap();
        assert!(view.paused && view.options == options, "{view:?}");
        let gone = engine.queue("gone").unwrap().view().await.unwrap();
        assert_eq!(gone.options, QueueOptions::by_position());
    }
    let names: Vec<String> =
        first.queues(None, 10).await.unwrap().into_iter().map(|view| view.name.to_string()).collect();
    assert_eq!(names, ["gone", "q"]);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_whose_maker_has_died_half_way_is_finished_by_whoever_wants_another() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let client = nodes[0].client();
    // Whoever says whether it can be done has done it, and nobody else has heard of it.
    nodes[0].engine(0).unwrap().create_queue("q", QueueOptions::by_position()).await.unwrap();
    let refused = client.create_queue("q", QueueOptions::default()).await.err().unwrap();
    assert!(matches!(refused, OperationError::Refused(QueueRefusal::QueueExists(_))), "{refused}");
    let view = nodes[0].engine(3).unwrap().queue("q").unwrap().view().await.unwrap();
    assert_eq!(view.options, QueueOptions::by_position());
    client.delete_queue("q").await.unwrap();
    client.create_queue("q", QueueOptions::default()).await.unwrap();
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_add_up_over_partitions_and_operators_reach_each_workflow() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[1].client().create_queue("q", QueueOptions::default()).await.unwrap();
    for workflow in workflows() {
        queue.send(Message::new(workflow.clone()).workflow(&workflow)).await.unwrap();
    }
    let mut expected = workflows();
    expected.sort();
    let ids = |page: Vec<crate::engine::WorkflowView>| {
        page.into_iter().map(|view| view.workflow_id.unwrap()).collect::<Vec<_>>()
    };
    let page = ids(queue.workflows(None, 5).await.unwrap());
    let rest = ids(queue.workflows(page.last(), 100).await.unwrap());
    let listed: Vec<String> = page.iter().chain(&rest).map(|id| id.as_str().to_owned()).collect();
    assert_eq!(listed, expected);
    let (mut from, mut peeked) = (SequenceNumber::new(0), Vec::new());
    loop {
        let page = queue.peek(from, 5).await.unwrap();
        let Some(last) = page.last() else { break };
        from = last.sequence_number.next();
        peeked.extend(page.into_iter().map(|view| String::from_utf8(view.body.to_vec()).unwrap()));
    }
    peeked.sort();
    assert_eq!(peeked, expected);
    for workflow in workflows() {
        queue.workflow(&workflow).unwrap().hold("we look").await.unwrap();
    }
    assert!(queue.receive(Duration::ZERO).await.unwrap().is_none());
    queue.workflow("w7").unwrap().resume().await.unwrap();
    let mut delivery = queue.receive(Duration::ZERO).await.unwrap().expect("it was resumed");
    assert_eq!(text(&delivery), "w7");
    delivery.dead_letter("odd", "").await.unwrap();
    let dead = queue.dead_letters(None, 10).await.unwrap();
    assert_eq!(dead.len(), 1);
    queue.redrive(dead[0].sequence_number).await.unwrap();
    assert_eq!(queue.purge().await.unwrap(), 12);
    assert_eq!(queue.view().await.unwrap().counts.stored(), 0);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_goes_on_while_its_partitions_move_to_another_node() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::by_position()).await.unwrap();
    let sending = tokio::spawn({
        let queue = queue.clone();
        async move { send_all(&queue).await }
    });
    nodes[0].drain();
    sending.await.unwrap();
    let has_all = || (0..PARTITIONS).all(|number| nodes[1].engine(number).is_some());
    tokio::task::block_in_place(|| wait_until("the other node has all partitions", has_all));
    let mut count = 0;
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.unwrap() {
        delivery.complete().await.unwrap();
        count += 1;
    }
    assert_eq!(count, 36);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_nats_takes_at_once_comes_in_parts_and_nothing_of_it_counts_as_delivered_twice() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let options = QueueOptions::default().body_bytes_max(4 << 20);
    let queue = nodes[0].client().create_queue("q", options).await.unwrap();
    // Some six of them are in each partition, and three are as much as NATS takes.
    for number in 0..24 {
        let body = vec![7; 2_500_000];
        queue.send(Message::new(body).workflow(format!("w{number}"))).await.unwrap();
    }
    let mut count = 0;
    loop {
        let mut deliveries = queue.receive_many(10, Duration::ZERO).await.unwrap();
        if deliveries.is_empty() {
            break;
        }
        count += deliveries.len();
        assert!(deliveries.iter().all(|delivery| delivery.message().delivery_count == 1));
        assert!(deliveries.iter().all(|delivery| delivery.message().body.len() == 2_500_000));
        queue.complete_all(&mut deliveries).await.unwrap();
    }
    assert_eq!(count, 24);
    let refused = queue.send(Message::new(vec![0; (3 << 20) + 1]).workflow("w1")).await.unwrap_err();
    assert!(matches!(refused, OperationError::Misuse(_)), "{refused:?}");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_node_that_is_gone_has_handed_out_is_offered_by_the_next_owner_and_its_tokens_are_refused() {
    let Some(servers) = NatsServers::start(1) else { return };
    let mut nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::by_position()).await.unwrap();
    send_all(&queue).await;
    let mut held = queue.receive_many(100, Duration::ZERO).await.unwrap();
    while let Some(more) = queue.receive(Duration::ZERO).await.unwrap() {
        held.push(more);
    }
    assert_eq!(held.len(), 12, "one of each workflow");
    // Without a word, as a process that is killed.
    let gone: Vec<u16> = (0..PARTITIONS).filter(|number| nodes[1].engine(*number).is_some()).collect();
    nodes.remove(1).abandon();
    let has_all = || (0..PARTITIONS).all(|number| nodes[0].engine(number).is_some());
    tokio::task::block_in_place(|| wait_until("the other node has all partitions", has_all));
    for delivery in &mut held {
        let was_there = !gone.contains(&delivery.lock_token().partition());
        match delivery.complete().await {
            Ok(()) => assert!(was_there),
            Err(OperationError::Refused(SettleRefusal::LockLost)) => {
                assert!(!was_there);
                delivery.hold().note_settled();
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    let mut received: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    while let Some(mut delivery) = queue.receive(Duration::ZERO).await.unwrap() {
        let workflow = delivery.message().workflow_id.as_ref().unwrap().as_str().to_owned();
        received.entry(workflow).or_default().push(delivery.message().rank);
        delivery.complete().await.unwrap();
    }
    assert!(received.values().all(|ranks| *ranks == [1, 2, 3] || *ranks == [2, 3]), "{received:?}");
    assert_eq!(queue.view().await.unwrap().counts.completed, 36);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_comes_to_several_partitions_at_once_is_not_kept_by_a_receiver_that_takes_one() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let other = nodes[1].client().queue("q").unwrap();
    for _ in 0..15 {
        let waiting = tokio::spawn({
            let queue = queue.clone();
            async move { queue.receive(Duration::from_secs(20)).await.unwrap() }
        });
        let sends = workflows().into_iter().map(|workflow| other.send(Message::new("x").workflow(workflow)));
        for sent in futures_util::future::join_all(sends).await {
            sent.unwrap();
        }
        let mut deliveries = vec![waiting.await.unwrap().expect("something was sent")];
        while deliveries.len() < workflows().len() {
            let next = queue.receive(Duration::from_secs(10)).await.unwrap();
            deliveries.push(next.expect("what others had handed out was given back"));
        }
        assert!(deliveries.iter().all(|delivery| delivery.message().delivery_count == 1));
        queue.complete_all(&mut deliveries).await.unwrap();
    }
    close(nodes).await;
}
