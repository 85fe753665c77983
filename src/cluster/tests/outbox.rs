//! What completions send to workflows of other partitions arrives once and in order, whoever dies meanwhile.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::time::Duration;

use crate::cluster::hashing::partition_of;
use crate::cluster::hashing::partition_of_text;
use crate::cluster::node::ClusterNode;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::PARTITIONS;
use crate::cluster::tests::router::close;
use crate::cluster::tests::router::nodes;
use crate::engine::Completion;
use crate::engine::Queue;
use crate::engine::Receipt;
use crate::engine::elsewhere::HandoverAnswer;
use crate::engine::elsewhere::HandoverSource;
use crate::engine::elsewhere::verbs;
use crate::error::OperationError;
use crate::error::SendError;
use crate::error::SendRefusal;
use crate::error::SettleRefusal;
use crate::id::QueueName;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::Message;
use crate::own_queues::OUTBOX_QUEUE;
use crate::queue::QueueOptions;

const TARGETS: u64 = 6;

/// Completes so many messages of a workflow, each of which sends one to every target. Returns the receipts.
async fn complete(queue: &Queue, from: u64, to: u64) -> Vec<Receipt> {
    let mut all = Vec::new();
    for number in from..to {
        queue.send(Message::new(number.to_string()).workflow("source")).await.unwrap();
        let mut delivery = queue.receive(Duration::from_secs(10)).await.unwrap().expect("it was sent");
        let mut completion = Completion::new();
        for target in 0..TARGETS {
            let message = Message::new(number.to_string()).workflow(format!("w{target}"));
            completion = completion.send("out", message);
        }
        let receipts = delivery.complete_with(completion).await.unwrap();
        assert_eq!(receipts.len() as u64, TARGETS);
        all.extend(receipts);
    }
    all
}

/// Receives so many messages for each target, which come in order; nothing else comes.
async fn expect(out: &Queue, count: u64) {
    let mut next: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..count * TARGETS {
        let delivery = out.receive(Duration::from_secs(20)).await.unwrap();
        let mut delivery = delivery.expect("everything that was sent arrives");
        let workflow = delivery.message().workflow_id.as_ref().unwrap().as_str().to_owned();
        let next = next.entry(workflow).or_default();
        assert_eq!(delivery.message().body, next.to_string(), "{:?}", delivery.message());
        *next += 1;
        delivery.complete().await.unwrap();
    }
    assert!(out.receive(Duration::from_millis(500)).await.unwrap().is_none(), "something arrived twice");
}

async fn two_queues(node: &ClusterNode) -> (Queue, Queue) {
    let client = node.client();
    let queue = client.create_queue("in", QueueOptions::default()).await.unwrap();
    (queue, client.create_queue("out", QueueOptions::default()).await.unwrap())
}

/// Waits until everything is handed over and acknowledged.
async fn wait_until_empty(node: &ClusterNode) {
    let is_empty = async { while left(node).await > 0 {} };
    let waited = tokio::time::timeout(Duration::from_secs(20), is_empty).await;
    waited.expect("nothing is kept once it was handed over");
}

/// Whether a target is of another partition than the source.
fn is_foreign(target: u64) -> bool {
    partition("in", "source") != partition("out", &format!("w{target}"))
}

/// The partition of a workflow.
fn partition(queue: &str, id: &str) -> u16 {
    partition_of(&QueueName::new(queue).unwrap(), &WorkflowId::new(id).unwrap(), PARTITIONS)
}

/// Hands over a message of the source's outbox to the partition of a target, as its owner does.
async fn hand_over(
    nodes: &[ClusterNode],
    target: u64,
    source: HandoverSource,
) -> Result<HandoverAnswer, SendError> {
    let workflow = format!("w{target}");
    let message = Message::new("again").workflow(&workflow).check().unwrap();
    let verb = verbs::HandOver { source, queue: QueueName::new("out").unwrap(), message };
    let to = partition("out", &workflow);
    nodes.iter().find_map(|node| node.engine(to)).unwrap().ask(verb).await
}

/// What names a message of the source's outbox.
fn source(nodes: &[ClusterNode], number: SequenceNumber) -> HandoverSource {
    let partition = partition("in", "source");
    let epochs = nodes.iter().map(|node| node.status()[usize::from(partition)].epoch);
    let (epoch, digest, settled) = (epochs.max().unwrap(), 0, Vec::new());
    HandoverSource { partition, epoch, number, digest, settled, wants_kept: true }
}

/// Whether a partition knows that it was handed a message, as it refuses another under its number.
async fn is_known(nodes: &[ClusterNode], target: u64, receipt: &Receipt) -> bool {
    let source = source(nodes, receipt.sequence_number().unwrap());
    let answer = hand_over(nodes, target, source).await;
    matches!(answer, Err(OperationError::Refused(SendRefusal::KeyReused(_))))
}

/// How many messages the outboxes have that are not handed over.
async fn left(node: &ClusterNode) -> u64 {
    let view = node.client().queue(OUTBOX_QUEUE).unwrap().view().await.unwrap();
    view.counts.stored() - view.counts.dead_lettered
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_completion_sends_to_other_partitions_arrives_once_and_in_order() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let (queue, out) = two_queues(&nodes[0]).await;
    let receipts = complete(&queue, 0, 8).await;
    expect(&out, 8).await;
    wait_until_empty(&nodes[1]).await;
    // Whoever hands one over again does so under the same number, which its partition knows until it hears that it is settled.
    let mut known = 0;
    for (index, receipt) in receipts.iter().enumerate() {
        let target = index as u64 % TARGETS;
        known += u64::from(is_foreign(target) && is_known(&nodes, target, receipt).await);
    }
    assert!(known > 0, "nothing that was handed over is known");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_an_outbox_arrives_when_its_owner_is_gone() {
    let Some(servers) = NatsServers::start(1) else { return };
    let mut nodes = nodes(&servers, &["first", "second"]).await;
    let (queue, _) = two_queues(&nodes[1]).await;
    complete(&queue, 0, 8).await;
    // It is gone in the midst of handing over, and whoever is next begins with what is not settled.
    nodes.remove(0).abandon();
    let has_all = || (0..4).all(|partition| nodes[0].engine(partition).is_some());
    tokio::task::block_in_place(|| wait_until("the other node has every partition", has_all));
    complete(&queue, 8, 12).await;
    expect(&nodes[0].client().queue("out").unwrap(), 12).await;
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_outbox_has_settled_is_forgotten_elsewhere_also_when_its_owner_is_gone() {
    let Some(servers) = NatsServers::start(1) else { return };
    let mut nodes = nodes(&servers, &["first", "second"]).await;
    let of_source = partition("in", "source");
    let owner = nodes.iter().position(|node| node.engine(of_source).is_some()).unwrap();
    let (owner, queue) = (nodes.remove(owner), two_queues(&nodes[0]).await.0);
    let before = complete(&queue, 0, 4).await;
    wait_until_empty(&nodes[0]).await;
    owner.abandon();
    let has_all = || (0..4).all(|partition| nodes[0].engine(partition).is_some());
    tokio::task::block_in_place(|| wait_until("the other node has every partition", has_all));
    complete(&queue, 4, 10).await;
    wait_until_empty(&nodes[0]).await;
    let last = before.iter().map(|receipt| receipt.sequence_number().unwrap()).max().unwrap();
    let mut asked = 0;
    for target in (0..TARGETS).filter(|target| is_foreign(*target)) {
        asked += 1;
        let number = SequenceNumber::new(last.get() + 1_000 + target);
        match hand_over(&nodes, target, source(&nodes, number)).await.unwrap() {
            HandoverAnswer::Taken { kept } => {
                assert!(
                    kept.iter().all(|kept| *kept > last),
                    "w{target}: {kept:?} are kept, and {last} was long ago"
                );
            }
            other => panic!("there is no later epoch, and room: {other:?}"),
        }
    }
    assert!(asked > 0, "no target is of another partition");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_room_waits_in_the_outbox_in_order() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let client = nodes[0].client();
    let queue = client.create_queue("in", QueueOptions::default()).await.unwrap();
    let few = QueueOptions { messages_max: 2, ..QueueOptions::default() };
    let out = client.create_queue("out", few).await.unwrap();
    let target = (0..40).find(|number| is_foreign(*number)).map(|number| format!("w{number}")).unwrap();
    queue.send(Message::new("x").workflow("source")).await.unwrap();
    let mut delivery = queue.receive(Duration::from_secs(10)).await.unwrap().unwrap();
    let sends = (0..20).map(|number| Message::new(number.to_string()).workflow(&target));
    let completion = sends.fold(Completion::new(), |completion, message| completion.send("out", message));
    delivery.complete_with(completion).await.unwrap();
    for number in 0..20 {
        let delivery = out.receive(Duration::from_secs(20)).await.unwrap();
        let mut delivery = delivery.expect("it arrives once there is room");
        assert_eq!(delivery.message().body, number.to_string(), "in the order in which they were sent");
        let there = client.queue("out").unwrap().view().await.unwrap().counts;
        assert!(there.ready + there.locked <= 2, "more were accepted than there is room for: {there:?}");
        if number < 15 {
            assert!(left(&nodes[0]).await > 0, "what finds no room is not kept");
        }
        delivery.complete().await.unwrap();
    }
    wait_until_empty(&nodes[0]).await;
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_without_a_workflow_that_find_no_room_let_others_pass() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let client = nodes[0].client();
    let (queue, out) = two_queues(&nodes[0]).await;
    let few = QueueOptions { messages_max: 2, ..QueueOptions::default() };
    let full = client.create_queue("full", few).await.unwrap();
    let foreign = |queue: &Queue| {
        let (own, queue) = (partition("in", "source"), queue.name().clone());
        let is_foreign = move |id: &String| partition_of_text(&queue, id, PARTITIONS) != own;
        (0..).map(|number: u32| number.to_string()).filter(is_foreign)
    };
    // More than there is room for and than are under way at once.
    let many = limits::OUTBOX_HANDOVERS + 2 * usize::from(PARTITIONS);
    let ids: BTreeSet<String> = foreign(&full).take(many).collect();
    queue.send(Message::new("x").workflow("source")).await.unwrap();
    let mut delivery = queue.receive(Duration::from_secs(10)).await.unwrap().unwrap();
    let sends = ids.iter().map(|id| Message::new(id.clone()).message_id(id));
    let completion = sends.fold(Completion::new(), |completion, message| completion.send("full", message));
    let last = Message::new("passes").message_id(foreign(&out).next().unwrap());
    delivery.complete_with(completion.send("out", last)).await.unwrap();
    let passed = out.receive(Duration::from_secs(20)).await.unwrap().expect("it passes those that wait");
    assert_eq!(passed.message().body, "passes");
    assert!(left(&nodes[0]).await > limits::OUTBOX_HANDOVERS as u64, "the others wait");
    client.change_queue("full", QueueOptions::default()).await.unwrap();
    let mut arrived = BTreeSet::new();
    while arrived.len() < many {
        let delivery = full.receive(Duration::from_secs(30)).await.unwrap();
        let mut delivery = delivery.expect("it arrives once there is room");
        arrived.insert(String::from_utf8(delivery.message().body.to_vec()).unwrap());
        delivery.complete().await.unwrap();
    }
    assert_eq!(arrived, ids);
    wait_until_empty(&nodes[0]).await;
    let counts = client.queue(OUTBOX_QUEUE).unwrap().view().await.unwrap().counts;
    assert_eq!((counts.dead_lettered, counts.completed), (0, many as u64 + 1));
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_sent_is_refused_at_once_or_is_a_dead_letter_of_the_outbox() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let client = nodes[0].client();
    let queue = client.create_queue("in", QueueOptions::default()).await.unwrap();
    let out = client.create_queue("out", QueueOptions::by_position()).await.unwrap();
    let target = (0..40).find(|number| is_foreign(*number)).map(|number| format!("w{number}")).unwrap();
    queue.send(Message::new("x").workflow("source")).await.unwrap();
    let mut delivery = queue.receive(Duration::from_secs(10)).await.unwrap().unwrap();
    let nowhere = Completion::new()
        .send("out", Message::new("x").workflow(&target).position(1))
        .send("nowhere", Message::new("x").workflow("w1"))
        .send("nowhere", Message::new("x").workflow("w2"));
    let refused = delivery.complete_with(nowhere).await.unwrap_err();
    let is_unknown = matches!(
        &refused,
        OperationError::Refused(SettleRefusal::Send(SendRefusal::QueueNotFound(name))) if name.as_str() == "nowhere"
    );
    assert!(is_unknown, "{refused:?}");
    // Only the other partition knows that a position is missing; what comes behind is handed over all the same.
    let wrong = Completion::new()
        .send("out", Message::new("no").workflow(&target))
        .send("out", Message::new("yes").workflow(&target).position(1));
    delivery.complete_with(wrong).await.unwrap();
    let mut arrived = out.receive(Duration::from_secs(20)).await.unwrap().expect("the second arrives");
    assert_eq!(arrived.message().body, "yes");
    arrived.complete().await.unwrap();
    let view = client.queue(OUTBOX_QUEUE).unwrap().view().await.unwrap();
    assert_eq!((view.counts.dead_lettered, view.counts.completed), (1, 1));
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_for_a_partition_that_has_not_heard_of_its_queue_yet_waits_in_the_outbox() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let (queue, out) = two_queues(&nodes[0]).await;
    let target = (0..40).find(|number| is_foreign(*number)).map(|number| format!("w{number}")).unwrap();
    let partition = partition_of(out.name(), &WorkflowId::new(&*target).unwrap(), 4);
    let engine = nodes.iter().find_map(|node| node.engine(partition)).unwrap();
    // As if whoever has taken it over had not heard of the queue.
    engine.delete_queue("out").await.unwrap();
    queue.send(Message::new("x").workflow("source")).await.unwrap();
    let mut delivery = queue.receive(Duration::from_secs(10)).await.unwrap().unwrap();
    let completion = Completion::new().send("out", Message::new("late").workflow(&target));
    delivery.complete_with(completion).await.unwrap();
    assert!(queue.receive(Duration::from_secs(1)).await.unwrap().is_none(), "it was completed");
    let view = nodes[0].client().queue(OUTBOX_QUEUE).unwrap().view().await.unwrap();
    assert_eq!((view.counts.dead_lettered, view.counts.completed), (0, 0), "it is kept");
    engine.create_queue("out", QueueOptions::default()).await.unwrap();
    let arrived = out.receive(Duration::from_secs(20)).await.unwrap();
    assert_eq!(arrived.expect("it arrives").message().body, "late");
    close(nodes).await;
}
