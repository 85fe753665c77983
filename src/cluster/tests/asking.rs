//! What nodes ask each other while partitions move, and processes hang or are gone.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;

use crate::cluster::hashing::partition_of;
use crate::cluster::node::ClusterNode;
use crate::cluster::nodes::NodeAnswer;
use crate::cluster::nodes::Nodes;
use crate::cluster::placing::ARBITER;
use crate::cluster::request_places::PlaceNeed;
use crate::cluster::request_places::RequestWay;
use crate::cluster::stop::pause;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::HIDDEN_FOR;
use crate::cluster::tests::router::PARTITIONS;
use crate::cluster::tests::router::close;
use crate::cluster::tests::router::has_all;
use crate::cluster::tests::router::nodes;
use crate::cluster::tests::router::workflow_of;
use crate::cluster::tests::router::workflows;
use crate::cluster::tests::router::workflows_of;
use crate::cluster::wire;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::cluster::wire::What;
use crate::engine::Queue;
use crate::engine::elsewhere::LookFor;
use crate::engine::elsewhere::LookScope;
use crate::engine::elsewhere::verbs;
use crate::error::QueueError;
use crate::error::ReceiveError;
use crate::error::SendError;
use crate::error::Unavailable;
use crate::id::IdempotencyKey;
use crate::id::WorkflowId;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::topic::Rule;

/// How many are under way at once.
const AT_ONCE: usize = 8;

/// How often the partitions move.
const MOVES: usize = 6;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_without_waiting_is_stored_in_its_order_while_its_partition_moves() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (names, is_over) = (["first", "second"], Arc::new(AtomicBool::new(false)));
    let nodes = nodes(&servers, &names).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let sending = tokio::spawn({
        let is_over = is_over.clone();
        async move {
            let numbers = stream::iter((0_u64..).take_while(|_| !is_over.load(Ordering::Relaxed)));
            let sends = numbers.map(|number| queue.send(Message::new(number.to_string()).workflow("w")));
            // What was not acknowledged has no place to keep.
            let sent = sends.buffered(AT_ONCE).filter_map(|sent| std::future::ready(sent.ok()));
            sent.map(|receipt| receipt.sequence_number()).collect::<Vec<_>>().await
        }
    });
    for turn in 0..MOVES {
        let (from, to) = (turn % 2, (turn + 1) % 2);
        nodes[to].handle().drain_node(names[to], false).await.unwrap();
        nodes[from].drain();
        tokio::task::block_in_place(|| wait_until("the other node has all", || has_all(&nodes[to])));
    }
    is_over.store(true, Ordering::Relaxed);
    let numbers = sending.await.unwrap();
    assert!(numbers.len() > MOVES * AT_ONCE, "{}", numbers.len());
    let overtaken: Vec<_> = numbers.windows(2).filter(|pair| pair[0] >= pair[1]).collect();
    assert!(overtaken.is_empty(), "of {}: {overtaken:?}", numbers.len());
    close(nodes).await;
}

/// The partition that is stopped on all nodes.
const STOPPED: u16 = 2;

/// Two nodes that have all partitions but one, which nobody has, and a queue that the first has not got a partition for.
async fn one_stopped(servers: &NatsServers, stopped: u16) -> (Vec<ClusterNode>, Queue) {
    let before = nodes(servers, &["first"]).await;
    before[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    close(before).await;
    let options = |name: &str| servers.options("router", name).partitions(PARTITIONS);
    // No node goes on with it.
    servers.append_of_later_version(&options("first"), stopped).await;
    let (first, second) = (ClusterNode::start(options("first")), ClusterNode::start(options("second")));
    let nodes = vec![first.await.unwrap(), second.await.unwrap()];
    nodes[0].drain();
    let has_all = || (0..PARTITIONS).all(|number| nodes[1].engine(number).is_some() || number == stopped);
    tokio::task::block_in_place(|| wait_until("the other node has all partitions but one", has_all));
    let is_known = || nodes.iter().all(|node| node.handle().missing() == [stopped]);
    tokio::task::block_in_place(|| wait_until("both know that the other has stopped it, too", is_known));
    let queue = nodes[0].client().queue("q").unwrap();
    (nodes, queue)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_which_some_was_done_is_not_said_to_be_undone() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (nodes, queue) = one_stopped(&servers, STOPPED).await;
    assert!(nodes[1].engine(STOPPED).is_none());
    let messages = workflows().into_iter().map(|workflow| Message::new("x").workflow(workflow));
    let failed = queue.send_each(messages).await.unwrap_err();
    assert!(matches!(failed, SendError::Unavailable(Unavailable::Unanswered(_))), "{failed:?}");
    let received = queue.receive_many(100, Duration::ZERO).await.unwrap();
    assert!(!received.is_empty(), "the other partitions have got theirs");
    let undone = queue.send_each([Message::new("x").workflow(workflow_of(STOPPED))]).await.unwrap_err();
    let is_named =
        matches!(undone, SendError::Unavailable(Unavailable::PartitionStopped { partition: STOPPED, .. }));
    assert!(is_named, "{undone:?}");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_options_of_a_queue_are_asked_of_one_partition_that_somebody_has() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (nodes, queue) = one_stopped(&servers, STOPPED).await;
    let router = nodes[0].handle().router;
    let look = LookFor::Queue { name: queue.name().clone() };
    for _ in 0..PARTITIONS {
        let need = router.need_of_look(&look, LookScope::Anywhere, &RequestWay::default());
        assert!(matches!(need, PlaceNeed::One(partition) if partition != STOPPED), "{need:?}");
        assert_eq!(queue.options().await.unwrap(), QueueOptions::default());
    }
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_process_that_hung_says_under_the_name_of_a_node_is_not_taken_for_its_answer() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let client = async_nats::connect(&servers.options("router", "second").servers).await.unwrap();
    // It has nothing, and says so faster than the other can append.
    let hung = Nodes::new(client.clone(), "router");
    let mut asked = hung.listen("second", 7).await.unwrap();
    client.flush().await.unwrap();
    let answering = tokio::spawn(async move {
        while let Some(message) = asked.next().await {
            let Some(to) = message.reply else { continue };
            hung.answer(to, wire::write(&NodeReply::NotOwner(None))).await;
        }
    });
    for workflow in workflows() {
        queue.send(Message::new("x").workflow(workflow)).await.unwrap();
    }
    answering.abort();
    assert_eq!(queue.view().await.unwrap().counts.accepted, workflows().len() as u64);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_stopped_is_not_asked() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let (first, second) = (nodes[0].handle().router, nodes[1].handle().router);
    let incarnation = first.leases.incarnation("second").unwrap();
    let ask = Ask::of_node(What::Overview);
    let asked = async || first.nodes.ask(("second", incarnation), &ask, Duration::ZERO).await;
    assert!(matches!(asked().await, NodeAnswer::Replied(_)));
    second.stop.say();
    let hears_nothing = async {
        while !matches!(asked().await, NodeAnswer::Nobody) {
            pause(limits::ROUTE_PAUSE).await;
        }
    };
    // What was asked while it stopped is not answered, and is waited for.
    let longest = limits::NODE_ANSWER * 2;
    tokio::time::timeout(longest, hears_nothing).await.expect("it listens no more");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_node_that_is_not_alive_it_is_known_that_nothing_was_done() {
    let Some(servers) = NatsServers::start(1) else { return };
    let mut nodes = nodes(&servers, &["first", "second"]).await;
    nodes.remove(1).abandon();
    let is_alone = || nodes[0].nodes() == ["first"];
    tokio::task::block_in_place(|| wait_until("the other is heard no more", is_alone));
    let router = nodes[0].handle().router;
    let ask = Ask::of_node(What::Overview);
    let heard = router.ask_at(Some("second"), &ask, Duration::ZERO).await;
    assert!(matches!(heard, NodeAnswer::Nobody), "{heard:?}");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_go_to_any_partition_goes_to_one_that_somebody_has() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (nodes, queue) = one_stopped(&servers, STOPPED).await;
    for _ in 0..2 * PARTITIONS {
        let sent = queue.send_each([Message::new("x")]).await.unwrap();
        assert!(sent[0].is_ok(), "{sent:?}");
    }
    close(nodes).await;
}

/// What comes before anybody has waited for a takeover.
async fn at_once<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(limits::ROUTE_WAIT / 2, work).await.expect("it takes no time")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_that_is_stopped_everywhere_keeps_no_queue_from_being_made_or_listed_and_is_named() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (nodes, queue) = one_stopped(&servers, STOPPED).await;
    let client = nodes[0].client();
    let made = at_once(client.create_queue("made", QueueOptions::default())).await.unwrap();
    at_once(made.send(Message::new("x").workflow("w"))).await.ok();
    let listed = at_once(client.queues(None, 10)).await.unwrap();
    let names: Vec<&str> = listed.iter().map(|view| view.name.as_str()).collect();
    assert_eq!(names, ["made", "q"]);
    assert!(listed.iter().all(|view| view.missing_partitions == [STOPPED]), "{listed:?}");
    assert_eq!(at_once(queue.view()).await.unwrap().missing_partitions, [STOPPED]);
    let why = at_once(queue.workflows(None, 10)).await.unwrap_err().to_string();
    let said = "partition 2 of the cluster is stopped on every node, and nothing was done: ";
    assert!(why.starts_with(said) && why.contains("it needs a newer seriatim"), "{why}");
    let why = at_once(client.delete_queue("made")).await.unwrap_err().to_string();
    assert!(why.starts_with(said), "it would be there again when the partition goes on: {why}");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_that_some_partitions_have_is_not_said_to_be_undone() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let has_some = |node: &ClusterNode| (0..PARTITIONS).any(|number| node.engine(number).is_some());
    assert!(nodes.iter().all(has_some), "the hash gives both something");
    let judge = nodes.iter().find(|node| node.engine(ARBITER).is_some()).expect("somebody has it");
    // It does not get a name to the other node that has as many bytes.
    judge.handle().router.nodes.bytes_allowed.set(limits::QUEUE_NAME_BYTES_MAX).unwrap();
    let name = "q".repeat(limits::QUEUE_NAME_BYTES_MAX);
    let failed = judge.client().create_queue(&name, QueueOptions::default()).await.expect_err("it fails");
    assert!(matches!(failed, QueueError::Unavailable(Unavailable::Unanswered(_))), "{failed:?}");
    assert!(judge.engine(ARBITER).unwrap().queue(&name).unwrap().view().await.is_ok(), "it is there");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_partition_is_stopped_a_deletion_is_refused_before_anything_is_gone() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (nodes, queue) = one_stopped(&servers, STOPPED).await;
    let client = nodes[0].client();
    let topic = client.create_topic("orders").await.unwrap();
    let all = topic.subscribe("all", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    let workflow = workflow_of(ARBITER);
    for _ in 0..2 {
        // So many that they would be purged before the deletion is asked.
        let batch = (0..limits::SWEEP_MAX).map(|_| Message::new("x").workflow(&workflow));
        queue.send_batch(batch).await.unwrap();
    }
    let refusals = [
        at_once(client.delete_queue("q")).await.unwrap_err().to_string(),
        at_once(client.delete_queue(all.name())).await.unwrap_err().to_string(),
        at_once(client.delete_topic("orders")).await.unwrap_err().to_string(),
    ];
    let said = "partition 2 of the cluster is stopped on every node, and nothing was done: ";
    assert!(refusals.iter().all(|why| why.starts_with(said)), "{refusals:?}");
    // Nor is it judged when somebody else has looked.
    let router = nodes[0].handle().router;
    let name = queue.name().clone();
    let judged = router.define(verbs::DeleteQueue { name }.into()).await.unwrap_err().to_string();
    assert!(judged.starts_with(said), "{judged}");
    assert_eq!(queue.view().await.unwrap().counts.stored(), 2 * limits::SWEEP_MAX as u64);
    assert_eq!(topic.view().await.unwrap().expect("it is there").subscriptions.len(), 1);
    queue.send(Message::new("x").workflow(&workflow)).await.unwrap();
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_partition_is_stopped_a_change_of_rules_keeps_nobody_from_sending_to_the_topic() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (nodes, _) = one_stopped(&servers, STOPPED).await;
    let topic = nodes[0].client().create_topic("orders").await.unwrap();
    let subscribe = async |name: &str| {
        topic.subscribe(name, QueueOptions::default(), [Rule::everything()]).await.unwrap();
    };
    let goes_on =
        |name: &String| partition_of(topic.name(), &WorkflowId::new(name).unwrap(), PARTITIONS) != STOPPED;
    let workflow = (0..).map(|number| format!("w{number}")).find(goes_on).unwrap();
    let other = nodes[1].client().topic("orders").unwrap();
    let message = || Message::new("x").workflow(&workflow);
    subscribe("first").await;
    assert_eq!(at_once(other.send(message())).await.unwrap().len(), 1);
    subscribe("second").await;
    assert_eq!(at_once(other.send(message())).await.unwrap().len(), 2);
    subscribe("third").await;
    let key = IdempotencyKey::of_request("key", b"x").unwrap();
    assert_eq!(at_once(other.send_batch_once(key, [message()])).await.unwrap().len(), 3);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_arbiter_is_stopped_what_there_is_can_be_said_again_and_nothing_new() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (nodes, _) = one_stopped(&servers, ARBITER).await;
    let client = nodes[0].client();
    at_once(client.create_queue("q", QueueOptions::default())).await.unwrap();
    let why = at_once(client.create_queue("new", QueueOptions::default())).await.err().unwrap().to_string();
    assert!(why.starts_with("partition 0 of the cluster is stopped on every node"), "{why}");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_which_nodes_can_give_a_part_at_a_time_only_leaves_nothing_out() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let mut names: Vec<String> = (0..60).map(|number| format!("w{number:02}")).collect();
    for name in &names {
        queue.send(Message::new("x").workflow(name)).await.unwrap();
        let mut delivery = queue.receive(Duration::from_secs(10)).await.unwrap().unwrap();
        delivery.dead_letter("poison", "y".repeat(100)).await.unwrap();
    }
    for name in &names {
        queue.send(Message::new("x").workflow(name)).await.unwrap();
    }
    for node in &nodes {
        node.handle().router.nodes.bytes_allowed.set(1_500).unwrap();
    }
    let (mut workflows, mut dead) = (Vec::new(), Vec::new());
    while let page = queue.workflows(workflows.last(), 25).await.unwrap()
        && !page.is_empty()
    {
        workflows.extend(page.into_iter().filter_map(|view| view.workflow_id));
        assert!(workflows.len() % 25 == 0 || workflows.len() == names.len(), "{}", workflows.len());
    }
    while let page = queue.dead_letters(dead.last(), 25).await.unwrap()
        && !page.is_empty()
    {
        dead.extend(page);
    }
    let workflows: Vec<&str> = workflows.iter().map(|id| id.as_str()).collect();
    assert_eq!(workflows, names);
    let mut dead: Vec<String> =
        dead.into_iter().filter_map(|view| Some(view.workflow_id?.to_string())).collect();
    dead.sort();
    names.sort();
    assert_eq!(dead, names);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_is_moved_to_no_node_that_would_not_take_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let (nodes, _) = one_stopped(&servers, STOPPED).await;
    let handle = nodes[1].handle();
    let refused = async |partition: u16, node: &str| {
        handle.move_partition(partition, Some(node)).await.unwrap_err().to_string()
    };
    let why = refused(0, "first").await;
    assert!(why.starts_with("node first gives its partitions to others and takes none"), "{why}");
    let why = refused(STOPPED, "second").await;
    assert!(why.starts_with("node second cannot go on with partition 2"), "{why}");
    let why = refused(0, "third").await;
    assert!(why.starts_with("there is no node third"), "{why}");
    handle.drain_node("first", false).await.unwrap();
    handle.move_partition(0, Some("first")).await.unwrap();
    tokio::task::block_in_place(|| wait_until("it has it", || nodes[0].engine(0).is_some()));
    close(nodes).await;
}

/// Two nodes, a queue as the first has it, and workflows of a partition that the second has.
async fn with_a_queue_of_two(
    servers: &NatsServers,
) -> (Vec<ClusterNode>, Queue, impl Iterator<Item = String>) {
    let nodes = nodes(servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let of_other = (0..PARTITIONS).find(|number| nodes[1].engine(*number).is_some()).unwrap();
    (nodes, queue, workflows_of(of_other))
}

/// Has the nodes take NATS for one that takes a few kilobytes at once.
fn allow_little(nodes: &[ClusterNode]) {
    for node in nodes {
        node.handle().router.nodes.bytes_allowed.set(4_000).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_hidden_beyond_what_nats_takes_at_once_is_offered_again_at_once() {
    const MESSAGES: usize = 12;
    let Some(servers) = NatsServers::start(1) else { return };
    let (nodes, queue, names) = with_a_queue_of_two(&servers).await;
    for workflow in names.take(MESSAGES) {
        queue.send(Message::new(vec![7; 1_000]).workflow(workflow)).await.unwrap();
    }
    allow_little(&nodes);
    let all = async {
        let mut ended = 0;
        while ended < MESSAGES {
            for hidden in queue.receive_hidden(32, HIDDEN_FOR).await.unwrap() {
                queue.end_hidden(hidden.claim).await.unwrap();
                ended += 1;
            }
            pause(limits::ROUTE_PAUSE).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), all).await.expect("none stays hidden");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_received_all_or_none_and_is_beyond_what_nats_takes_at_once_is_received_by_nobody() {
    const MESSAGES: usize = 6;
    let Some(servers) = NatsServers::start(1) else { return };
    let (nodes, queue, names) = with_a_queue_of_two(&servers).await;
    let mut numbers = Vec::new();
    for workflow in names.take(MESSAGES) {
        queue.send(Message::new(vec![7; 1_000]).workflow(workflow)).await.unwrap();
        let mut delivery = queue.receive(Duration::from_secs(20)).await.unwrap().expect("it was sent");
        numbers.push(delivery.sequence_number());
        delivery.defer().await.unwrap();
    }
    allow_little(&nodes);
    let refused = queue.receive_deferred(&numbers).await;
    assert!(
        matches!(refused, Err(ReceiveError::Misuse(_))),
        "{:?}",
        refused.map(|deliveries| deliveries.len())
    );
    for number in numbers {
        let mut deliveries = queue.receive_deferred(&[number]).await.unwrap();
        deliveries[0].complete().await.unwrap();
    }
    close(nodes).await;
}
