//! Partitions whose log takes nothing for a while: others go on, and it is said.

use std::sync::Arc;
use std::time::Duration;

use async_nats::jetstream;
use async_nats::jetstream::stream::Config;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::cluster::hashing::partition_of_text;
use crate::cluster::hashing::preferred;
use crate::cluster::node::ClusterNode;
use crate::cluster::options::ClusterOptions;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::HIDDEN_FOR;
use crate::cluster::tests::router::PARTITIONS;
use crate::cluster::tests::router::next_hidden;
use crate::cluster::tests::router::workflow_of;
use crate::engine::Completion;
use crate::engine::Queue;
use crate::error::QueueError;
use crate::error::SendError;
use crate::error::Unavailable;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::Message;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Outcome;
use crate::processor::Processor;
use crate::processor::Raw;
use crate::queue::QueueOptions;

fn options(servers: &NatsServers, node: &str) -> ClusterOptions {
    servers.options("stuck", node).partitions(PARTITIONS).lease(Duration::from_millis(500))
}

fn owned(node: &ClusterNode) -> Vec<u16> {
    (0..PARTITIONS).filter(|number| node.engine(*number).is_some()).collect()
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    tokio::task::block_in_place(|| wait_until(what, is_so));
}

/// A node that has all partitions.
async fn start(servers: &NatsServers) -> ClusterNode {
    let node = ClusterNode::start(options(servers, "first")).await.unwrap();
    wait_for("it has all partitions", || owned(&node).len() == usize::from(PARTITIONS));
    node
}

async fn send(queue: Queue, partition: u16) {
    queue.send(Message::new("").workflow(workflow_of(partition)).message_id("1")).await.unwrap();
}

/// Changes the stream of a partition, as an operator does.
async fn change(servers: &NatsServers, partition: u16, change: impl FnOnce(&mut Config)) {
    let options = options(servers, "operator");
    let context = jetstream::new(async_nats::connect(&options.servers).await.unwrap());
    let stream = context.get_stream(options.stream(partition)).await.unwrap();
    let mut config = stream.cached_info().config.clone();
    change(&mut config);
    context.update_stream(config).await.unwrap();
}

/// What comes in time.
async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    let ended = tokio::time::timeout(Duration::from_secs(10), work).await;
    ended.unwrap_or_else(|_| panic!("it was waited in vain until {what}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_waits_for_its_log_keeps_no_receiver_from_the_others() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers).await;
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    for partition in 1..PARTITIONS {
        send(queue.clone(), partition).await;
    }
    // It takes entries, and says nothing of it.
    change(&servers, 0, |config| config.no_ack = true).await;
    let stuck = tokio::spawn(send(queue.clone(), 0));
    let mut held = Vec::new();
    for _ in 1..PARTITIONS {
        let received = in_time("it is handed out", queue.receive(Duration::ZERO)).await.unwrap();
        held.push(received.expect("there is something in another partition"));
    }
    for wait in [Duration::ZERO, Duration::from_secs(1)] {
        let received = in_time("it is said that there is nothing", queue.receive(wait)).await.unwrap();
        assert!(received.is_none());
    }
    assert!(!stuck.is_finished());
    change(&servers, 0, |config| config.no_ack = false).await;
    in_time("it is acknowledged", stuck).await.unwrap();
    held.push(in_time("it is handed out", queue.receive(Duration::from_secs(10))).await.unwrap().unwrap());
    for delivery in &mut held {
        assert_eq!(delivery.message().delivery_count, 1);
        delivery.complete().await.unwrap();
    }
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_partition_hides_too_late_for_whoever_asked_is_offered_again() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers).await;
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    for partition in [0, 1] {
        send(queue.clone(), partition).await;
    }
    // It takes entries, and says nothing of it.
    change(&servers, 0, |config| config.no_ack = true).await;
    // The second asks it for certain, as nothing is left in the others.
    for found in [1, 0] {
        let hidden = in_time("it is answered", queue.receive_hidden(1, HIDDEN_FOR)).await.unwrap();
        assert_eq!(hidden.len(), found);
    }
    change(&servers, 0, |config| config.no_ack = false).await;
    let late = in_time("it is offered again", next_hidden(&queue)).await;
    assert_eq!(late.claim.sequence_number.get() / limits::NUMBER_END, 0);
    queue.end_hidden(late.claim).await.unwrap();
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_waits_for_its_log_keeps_no_other_from_being_given_away() {
    let Some(servers) = NatsServers::start(1) else { return };
    let names = ["first", "second"];
    let mut nodes = Vec::new();
    for name in names {
        nodes.push((name, ClusterNode::start(options(&servers, name)).await.unwrap()));
    }
    let of_name = |name: &str| {
        let preferred = |number: &u16| preferred(*number, names.into_iter()) == Some(name);
        (0..PARTITIONS).filter(preferred).collect::<Vec<_>>()
    };
    wait_for("they share", || nodes.iter().all(|(name, node)| owned(node) == of_name(name)));
    nodes.sort_by_key(|(_, node)| owned(node).len());
    let [(taker, taking), (_, giving)] = &nodes[..] else { unreachable!() };
    let others = owned(giving).split_off(1);
    assert!(!others.is_empty());
    let stuck = owned(giving)[0];
    let queue = giving.client().create_queue("q", QueueOptions::default()).await.unwrap();
    // What is larger is refused.
    change(&servers, stuck, |config| config.max_message_size = 1).await;
    let sent = tokio::spawn(send(queue.clone(), stuck));
    wait_for("the engine waits for its log", || giving.log_trouble(stuck).is_some());
    giving.handle().move_partition(stuck, Some(taker)).await.unwrap();
    wait_for("it is to be given away", || giving.engine(stuck).is_none());
    giving.drain();
    wait_for("the other node has the others", || {
        others.iter().all(|number| taking.engine(*number).is_some())
    });
    assert!(!sent.is_finished());
    change(&servers, stuck, |config| config.max_message_size = -1).await;
    wait_for("the other node has it, too", || owned(taking).len() == usize::from(PARTITIONS));
    in_time("it is acknowledged", sent).await.unwrap();
    for (_, node) in nodes {
        node.close().await;
    }
}

/// What a node says of partitions that it cannot go on with.
async fn stopped(node: &ClusterNode) -> Vec<(u16, String)> {
    node.handle().overview().await.nodes.remove(0).stopped
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_said_why_a_log_takes_nothing() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers).await;
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    assert_eq!(stopped(&node).await, []);
    change(&servers, 2, |config| config.max_message_size = 1).await;
    let sent = tokio::spawn(send(queue.clone(), 2));
    wait_for("the engine waits for its log", || node.log_trouble(2).is_some());
    let said = stopped(&node).await;
    let [(2, why)] = &said[..] else { panic!("{said:?}") };
    let expected = "the servers have not taken an entry of its log, ";
    assert!(why.starts_with(expected) && why.contains("message size exceeds maximum allowed"), "{why}");
    change(&servers, 2, |config| config.max_message_size = -1).await;
    in_time("it is acknowledged", sent).await.unwrap();
    assert_eq!(stopped(&node).await, []);
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_looks_at_what_a_node_has_does_not_wait_with_a_partition_that_waits_for_its_log() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers).await;
    let (queue, handle) =
        (node.client().create_queue("q", QueueOptions::default()).await.unwrap(), node.handle());
    for partition in 0..PARTITIONS {
        send(queue.clone(), partition).await;
    }
    let stored = async || {
        let queues = in_time("the queues are told", handle.queues()).await;
        queues.iter().find(|view| view.name.as_str() == "q").map_or(0, |view| view.counts.stored())
    };
    assert_eq!(stored().await, u64::from(PARTITIONS));
    change(&servers, 2, |config| config.max_message_size = 1).await;
    let sent = tokio::spawn(async move { queue.send(Message::new("").workflow(workflow_of(2))).await });
    wait_for("the engine waits for its log", || node.log_trouble(2).is_some());
    assert_eq!(stored().await, u64::from(PARTITIONS) - 1);
    let (name, workflow) = (QueueName::new("q").unwrap(), WorkflowId::new(workflow_of(2)).unwrap());
    assert!(handle.has(&name, &workflow) && !handle.answers_for(&name, &workflow));
    let waiting = in_time("it is said that it is not known", handle.outbox_of(&name, &workflow)).await;
    assert_eq!(waiting, None);
    change(&servers, 2, |config| config.max_message_size = -1).await;
    in_time("it is acknowledged", sent).await.unwrap().unwrap();
    assert_eq!(stored().await, u64::from(PARTITIONS) + 1);
    assert!(handle.answers_for(&name, &workflow));
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_waits_for_its_log_takes_no_places_of_the_others() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers).await;
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    change(&servers, 0, |config| config.no_ack = true).await;
    let mut sends = JoinSet::new();
    for number in 0..=limits::ROUTED_MAX {
        let (queue, workflow) = (queue.clone(), workflow_of(0));
        sends.spawn(async move { queue.send(Message::new(number.to_string()).workflow(workflow)).await });
    }
    let refused = in_time("one is refused", sends.join_next()).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(refused, SendError::Unavailable(Unavailable::Busy)), "{refused:?}");
    for partition in 1..PARTITIONS {
        in_time("another partition takes it", send(queue.clone(), partition)).await;
    }
    change(&servers, 0, |config| config.no_ack = false).await;
    while let Some(sent) = in_time("it is acknowledged", sends.join_next()).await {
        sent.unwrap().unwrap();
    }
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_go_to_any_partition_goes_to_none_that_waits_for_its_log() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers).await;
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    node.client().create_topic("t").await.unwrap();
    change(&servers, 0, |config| config.max_message_size = 1).await;
    let stuck = tokio::spawn(send(queue.clone(), 0));
    wait_for("the engine waits for its log", || node.log_trouble(0).is_some());
    for _ in 0..2 * PARTITIONS {
        in_time("another partition takes it", queue.send(Message::new(""))).await.unwrap();
        in_time("another partition shows it", node.client().topics(None, 1)).await.unwrap();
    }
    assert!(!stuck.is_finished());
    change(&servers, 0, |config| config.max_message_size = -1).await;
    in_time("it is acknowledged", stuck).await.unwrap();
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_of_several_partitions_takes_places_only_of_the_one_that_waits_for_its_log() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers).await;
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    let to = |partition: u16, body: String| Message::new(body).workflow(workflow_of(partition));
    change(&servers, 0, |config| config.no_ack = true).await;
    let mut sends = JoinSet::new();
    for number in 0..=limits::ROUTED_MAX {
        let (queue, both) = (queue.clone(), [0, 1].map(|partition| to(partition, number.to_string())));
        sends.spawn(async move { queue.send_each(both).await });
    }
    let refused = in_time("one is refused", sends.join_next()).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(refused, SendError::Unavailable(Unavailable::Busy)), "{refused:?}");
    let mut views = JoinSet::new();
    for _ in 0..=limits::ROUTED_MAX {
        let queue = queue.clone();
        views.spawn(async move { queue.view().await });
    }
    let refused = in_time("one is refused", views.join_next()).await.unwrap().unwrap().unwrap_err();
    assert!(matches!(refused, QueueError::Unavailable(Unavailable::Busy)), "{refused:?}");
    for partition in 1..PARTITIONS {
        let sending = queue.send_each([to(partition, "more".to_owned())]);
        let sent = in_time("another partition takes it", sending).await.unwrap();
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    }
    let received = in_time("it is handed out", queue.receive(Duration::ZERO)).await.unwrap();
    received.expect("there is something in another partition").complete().await.unwrap();
    change(&servers, 0, |config| config.no_ack = false).await;
    while in_time("it has ended", sends.join_next()).await.is_some() {}
    while let Some(view) = in_time("it is shown", views.join_next()).await {
        view.unwrap().unwrap();
    }
    node.close().await;
}

/// Completes a message of one partition, which sends one to another.
async fn pass_on(queue: &Queue, (from, to): (u16, u16)) {
    queue.send(Message::new("").workflow(workflow_of(from))).await.unwrap();
    let received = in_time("it is handed out", queue.receive(Duration::from_secs(10))).await.unwrap();
    let message = Message::new("passed on").workflow(workflow_of(to));
    let completing = async {
        received.expect("it was sent").complete_with(Completion::new().send("q", message)).await.unwrap();
        queue.receive(Duration::from_secs(10)).await.unwrap()
    };
    let mut arrived = in_time("it is completed and arrives", completing).await.expect("it arrives");
    assert_eq!(arrived.message().body, "passed on");
    arrived.complete().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_waits_for_its_log_keeps_no_completion_of_others_that_sends_to_others() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers).await;
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    pass_on(&queue, (1, 2)).await;
    node.close().await;
    // One that has just been started does not know yet that there are outboxes.
    let node = start(&servers).await;
    let queue = node.client().queue("q").unwrap();
    change(&servers, 0, |config| config.max_message_size = 1).await;
    let stuck = tokio::spawn(send(queue.clone(), 0));
    wait_for("the engine waits for its log", || node.log_trouble(0).is_some());
    pass_on(&queue, (1, 2)).await;
    change(&servers, 0, |config| config.max_message_size = -1).await;
    in_time("it is acknowledged", stuck).await.unwrap();
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_waits_for_its_log_keeps_nothing_from_being_handed_over_to_others() {
    let Some(servers) = NatsServers::start(1) else { return };
    let node = start(&servers).await;
    let queue = node.client().create_queue("q", QueueOptions::default()).await.unwrap();
    pass_on(&queue, (1, 2)).await;
    change(&servers, 0, |config| config.max_message_size = 1).await;
    let stuck = tokio::spawn(send(queue.clone(), 0));
    wait_for("the engine waits for its log", || node.log_trouble(0).is_some());
    queue.send(Message::new("").workflow(workflow_of(1))).await.unwrap();
    let received = in_time("it is handed out", queue.receive(Duration::from_secs(10))).await.unwrap();
    let is_of_stuck = |id: &String| partition_of_text(queue.name(), id, PARTITIONS) == 0;
    let ids = (0..).map(|number: u32| number.to_string()).filter(is_of_stuck);
    let late = ids.take(2 * limits::OUTBOX_HANDOVERS).map(|id| Message::new("late").message_id(id));
    let completion = late.fold(Completion::new(), |completion, message| completion.send("q", message));
    received.expect("it was sent").complete_with(completion).await.unwrap();
    pass_on(&queue, (1, 2)).await;
    change(&servers, 0, |config| config.max_message_size = -1).await;
    in_time("it is acknowledged", stuck).await.unwrap();
    for _ in 0..=2 * limits::OUTBOX_HANDOVERS {
        let arrived = in_time("it arrives", queue.receive(Duration::from_secs(10))).await.unwrap();
        arrived.expect("it was sent").complete().await.unwrap();
    }
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_most_servers_are_down_a_node_says_so_and_what_is_sent_ends_without_an_answer() {
    let Some(mut servers) = NatsServers::start(3) else { return };
    let node = start(&servers).await;
    let (queue, handle) =
        (node.client().create_queue("q", QueueOptions::default()).await.unwrap(), node.handle());
    assert_eq!(handle.problem(), None);
    servers.kill(1);
    servers.kill(2);
    let said = "1 of 3 NATS servers answer, and nothing is acknowledged before more than half of them do";
    wait_for("it says so", || handle.problem().as_deref() == Some(said));
    assert_eq!(handle.overview().await.problem.as_deref(), Some(said));
    let sending = queue.send(Message::new("").workflow(workflow_of(0)));
    let sent = tokio::time::timeout(limits::OWN_ANSWER * 2, sending).await.expect("it ends");
    let why = sent.unwrap_err();
    assert!(matches!(why, SendError::Unavailable(Unavailable::Unanswered(_))), "{why:?}");
    assert!(why.to_string().contains("whether it was done is not known"), "{why}");
    servers.start_again(1);
    servers.start_again(2);
    servers.wait();
    wait_for("it says no more", || handle.problem().is_none());
    let sending = queue.send(Message::new("").workflow(workflow_of(0)));
    tokio::time::timeout(limits::OWN_ANSWER, sending).await.expect("it is answered").unwrap();
    node.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_is_told_that_its_lock_is_lost_while_no_server_says_that_the_node_has_the_partition() {
    let Some(mut servers) = NatsServers::start(1) else { return };
    let node = start(&servers).await;
    let options = QueueOptions { lock: Duration::from_secs(2), ..QueueOptions::default() };
    let queue = node.client().create_queue("q", options).await.unwrap();
    send(queue.clone(), 0).await;
    let (begun, told) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let handler = {
        let (begun, told) = (begun.clone(), told.clone());
        move |context: Context, _: Raw| {
            let (begun, told) = (begun.clone(), told.clone());
            async move {
                begun.notify_one();
                context.cancelled().await;
                told.notify_one();
                Ok::<_, Failure>(Outcome::Complete)
            }
        }
    };
    let pool = Processor::new(queue).start(handler);
    in_time("it is handled", begun.notified()).await;
    servers.kill(0);
    in_time("the handler is told", told.notified()).await;
    servers.start_again(0);
    servers.wait();
    drop(pool);
    node.close().await;
}
