//! What queues there are, where nodes hear late of what others define.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::jetstream::kv;
use futures_util::FutureExt;
use futures_util::future::join;
use futures_util::future::join_all;

use crate::actor::Actor;
use crate::cluster::definitions::QueueDefinition;
use crate::cluster::node::ClusterNode;
use crate::cluster::placing::ARBITER;
use crate::cluster::stop::ClusterStop;
use crate::cluster::stop::pause;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::PARTITIONS;
use crate::cluster::tests::router::close;
use crate::cluster::tests::router::has_all;
use crate::cluster::tests::router::nodes;
use crate::cluster::tests::router::workflow_of;
use crate::cluster::tests::router::workflows;
use crate::cluster::topic_changes::topic_revision;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::cluster::wire::What;
use crate::engine::Queue;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::TopicChange;
use crate::engine::elsewhere::verbs;
use crate::error::QueueRefusal;
use crate::id::QueueName;
use crate::limits;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::topic::Rule;

/// Sends a message to each workflow, and with them to each partition.
async fn send_to_all(queue: &Queue) {
    for workflow in workflows() {
        queue.send(Message::new("kept").workflow(&workflow)).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_has_heard_late_of_a_queue_made_anew_takes_over_without_deleting_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let mut nodes = nodes(&servers, &["first", "second"]).await;
    let client = nodes[0].client();
    client.create_queue("q", QueueOptions::default()).await.unwrap();
    client.delete_queue("q").await.unwrap();
    nodes[1].read_definitions().await;
    nodes[1].drain();
    tokio::task::block_in_place(|| wait_until("the first node has all", || has_all(&nodes[0])));
    nodes[1].set_deaf(true);
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    send_to_all(&queue).await;
    nodes[1].come_back_without(PARTITIONS);
    nodes.remove(0).abandon();
    tokio::task::block_in_place(|| wait_until("the second node has all", || has_all(&nodes[0])));
    let queue = nodes[0].client().queue("q").unwrap();
    assert_eq!(queue.view().await.unwrap().counts.ready, workflows().len() as u64);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_everywhere_though_a_node_makes_another_before_it_hears_of_it() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    nodes[1].set_deaf(true);
    let client = nodes[0].client().clone();
    let other = tokio::spawn(async move { client.create_queue("q1", QueueOptions::default()).await });
    let first_knows = || nodes[0].knows_queue("q1");
    tokio::task::block_in_place(|| wait_until("the first node has put it", first_knows));
    nodes[1].client().create_queue("q2", QueueOptions::default()).await.unwrap();
    nodes[1].set_deaf(false);
    nodes[1].read_definitions().await;
    let queue = tokio::time::timeout(Duration::from_secs(30), other).await.unwrap().unwrap().unwrap();
    send_to_all(&queue).await;
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_deleted_queues_and_topics_count_and_can_be_had_again() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let client = nodes[0].client();
    nodes[0].handle().router.definitions.names_allowed.set(2).unwrap();
    for _ in 0..2 {
        client.create_queue("q", QueueOptions::default()).await.unwrap();
        client.delete_queue("q").await.unwrap();
        client.create_topic("t").await.unwrap();
        client.delete_topic("t").await.unwrap();
    }
    let queue = client.create_queue("q2", QueueOptions::default()).await.err().unwrap().to_string();
    let topic = client.create_topic("t2").await.err().unwrap().to_string();
    for why in [queue, topic] {
        assert!(why.contains("no further name can be had"), "{why}");
    }
    client.create_topic("q").await.unwrap();
    close(nodes).await;
}

/// Has a command done in the first partition as if it had waited for an owner until this moment.
async fn come_late(node: &ClusterNode, command: Command) -> Reply {
    let ask = Ask::of_partition(ARBITER, What::Have(command, Duration::ZERO));
    match node.handle().router.do_here(&ask).await {
        NodeReply::Reply(reply, ..) => reply,
        other => panic!("{other:?}"),
    }
}

fn on_record(command: Command) -> Command {
    let actor = Arc::new(Actor::new("ada").unwrap());
    Command::OnRecord(Box::new(verbs::OnRecord { actor, begun: None, command }))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_of_a_topic_that_comes_late_takes_nothing_back_in_the_first_partition() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let client = nodes[0].client();
    let name = QueueName::new("t").unwrap();
    let topic = client.create_topic("t").await.unwrap();
    let a = topic.subscribe("a", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    let definitions = nodes[0].handle().router.definitions.clone();
    let Some((revision, QueueDefinition::Topic { plan, .. })) =
        definitions.due(|known, _| *known == name).pop()
    else {
        panic!("it was put")
    };
    let b = topic.subscribe("b", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    for workflow in workflows() {
        assert_eq!(topic.send(Message::new("kept").workflow(workflow)).await.unwrap().len(), 2);
    }
    let of_topic = |change| Command::ChangeTopic(verbs::ChangeTopic { name: name.clone(), change });
    let of_a = || a.name().clone();
    let late = [
        of_topic(TopicChange::Put { revision: topic_revision(revision), plan }),
        of_topic(TopicChange::Delete),
        Command::DeleteQueue(verbs::DeleteQueue { name: of_a() }),
        Command::PauseQueue(verbs::PauseQueue { name: of_a(), paused: true }),
        Command::ChangeQueue(verbs::ChangeQueue {
            name: of_a(),
            options: Box::new(QueueOptions::default().messages_max(7)),
        }),
    ];
    let before = nodes[0].engine(ARBITER).unwrap().topic("t").unwrap().view().await.unwrap();
    for command in late {
        come_late(&nodes[0], on_record(command)).await;
        let after = nodes[0].engine(ARBITER).unwrap().topic("t").unwrap().view().await.unwrap();
        assert_eq!(after, before);
        for queue in [&a, &b] {
            let view = queue.view().await.unwrap();
            let is_kept = view.counts.ready == workflows().len() as u64;
            assert!(is_kept && !view.paused && view.options == QueueOptions::default(), "{view:?}");
        }
    }
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_comes_late_does_not_delete_a_queue_that_was_made_anew() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    send_to_all(&queue).await;
    let command = Command::DeleteQueue(verbs::DeleteQueue { name: queue.name().clone() });
    for command in [command.clone(), on_record(command)] {
        let reply = come_late(&nodes[0], command).await;
        assert!(matches!(reply, Reply::Queue(Err(QueueRefusal::QueueNotFound(_)))), "{reply:?}");
        assert_eq!(queue.view().await.unwrap().counts.ready, workflows().len() as u64);
    }
    nodes[0].client().delete_queue("q").await.unwrap();
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_that_somebody_else_has_ended_is_done_and_does_not_delete_a_queue_that_was_made_anew() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let (client, router) = (nodes[0].client(), nodes[0].handle().router);
    let name = client.create_queue("q", QueueOptions::default()).await.unwrap().name().clone();
    let going = QueueDefinition::Going { name: name.clone() };
    let (revision, _) = router.definitions.entry(&name).await.unwrap();
    let revision = router.definitions.put(going, revision).await.unwrap().expect("nobody was faster");
    // Whoever makes another one ends it before.
    let queue = client.create_queue("q", QueueOptions::default()).await.unwrap();
    send_to_all(&queue).await;
    let command = Command::DeleteQueue(verbs::DeleteQueue { name: name.clone() });
    let reply = router.have_deleted(command, &name, revision).await.unwrap();
    assert!(matches!(reply, Reply::Queue(Ok(true))), "{reply:?}");
    assert_eq!(queue.view().await.unwrap().counts.ready, workflows().len() as u64);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_is_everywhere_soon_though_the_watch_of_a_node_hangs() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    nodes[1].set_deaf(true);
    let making = nodes[0].client().create_queue("q", QueueOptions::default());
    let queue = tokio::time::timeout(limits::ROUTE_WAIT / 2, making).await.expect("it is asked for").unwrap();
    send_to_all(&queue).await;
    close(nodes).await;
}

/// Waits until the first partition takes back that a queue is paused, which only it knows.
async fn wait_until_taken_back(engine: &Queue) {
    let is_taken_back = async {
        while engine.view().await.unwrap().paused {
            pause(limits::ROUTE_PAUSE).await;
        }
    };
    tokio::time::timeout(limits::DEFINITION_AHEAD * 2, is_taken_back).await.expect("it is taken back");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_first_partition_has_changed_alone_is_taken_back() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    queue.send(Message::new("kept").workflow(workflow_of(ARBITER))).await.unwrap();
    // As by a node that has ended before it has put that into the bucket.
    let pausing = Command::PauseQueue(verbs::PauseQueue { name: queue.name().clone(), paused: true });
    come_late(&nodes[0], pausing).await;
    let engine = nodes[0].engine(ARBITER).unwrap().queue("q").unwrap();
    assert!(engine.view().await.unwrap().paused);
    wait_until_taken_back(&engine).await;
    assert_eq!(engine.view().await.unwrap().counts.ready, 1);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_first_partition_has_changed_for_whoever_did_not_wait_for_it_is_taken_back() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let (router, client) = (nodes[0].handle().router, nodes[0].engine(ARBITER).unwrap());
    let pausing = Command::PauseQueue(verbs::PauseQueue { name: queue.name().clone(), paused: true });
    // It is asked, and given up before the engine answers, as when that waits for its log for too long.
    let given_up = router.partition(ARBITER).enforced.arbitrate(&client, pausing).now_or_never();
    assert!(given_up.is_none(), "{given_up:?}");
    let engine = client.queue("q").unwrap();
    let is_done = async {
        while !engine.view().await.unwrap().paused {
            pause(limits::ROUTE_PAUSE).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), is_done).await.expect("it is done all the same");
    wait_until_taken_back(&engine).await;
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_definition_that_was_put_without_an_answer_is_not_refused_for_being_there() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let router = nodes[0].handle().router;
    let definition = |paused| QueueDefinition::There {
        name: QueueName::new("q").unwrap(),
        options: Box::default(),
        paused,
    };
    let put = async |paused| router.definitions.put(definition(paused), 0).await.unwrap();
    let revision = put(true).await.expect("nobody was faster");
    // Behind what was there before, as if nobody had heard that it was put.
    assert_eq!(put(true).await, Some(revision));
    assert_eq!(put(false).await, None, "another was faster");
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_watches_who_has_what_is_not_told_which_queues_there_are() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    // What is told comes in the order in which it was put: this is behind the queue.
    nodes[0].handle().move_partition(0, Some("first")).await.unwrap();
    let partitions = (0..PARTITIONS).map(|number| format!("partition.{number}"));
    let others = ["node.first", "pin.0"].map(str::to_owned);
    let wanted: BTreeSet<String> = partitions.chain(others).collect();
    let (leases, stop) = (nodes[0].handle().router.leases.clone(), ClusterStop::default());
    let heard = Mutex::new(BTreeSet::new());
    let note = |entry: &kv::Entry| {
        let mut heard = heard.lock().unwrap();
        heard.insert(entry.key.clone());
        if wanted.is_subset(&heard) {
            stop.say();
        }
    };
    let following = async { leases.bucket_watch().follow(&leases.bucket(), &stop, note).await };
    tokio::time::timeout(Duration::from_secs(30), following).await.expect("all is told");
    assert_eq!(*heard.lock().unwrap(), wanted);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partition_looks_at_what_queues_there_are_when_one_has_changed_and_at_no_other_time() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let (router, engine) = (nodes[0].handle().router, nodes[0].engine(ARBITER).unwrap());
    let walks = || router.definitions.walks.load(Ordering::Relaxed);
    let before = walks();
    for _ in 0..8 {
        router.partition(ARBITER).enforced.go_on(&engine).await.unwrap();
    }
    assert_eq!(walks(), before);
    // As another node does: nobody asks this one to have it.
    let (name, options) = (QueueName::new("other").unwrap(), Box::default());
    let other = QueueDefinition::There { name: name.clone(), options, paused: true };
    router.definitions.put(other, 0).await.unwrap().expect("nobody was faster");
    router.partition(ARBITER).enforced.go_on(&engine).await.unwrap();
    assert!(engine.queue(&name).unwrap().view().await.unwrap().paused);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_waits_for_others_to_read_all_queues_takes_their_failure() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let router = nodes[0].handle().router;
    let definitions = &router.definitions;
    // What nobody can read.
    router.leases.bucket().put("queue.00", "x".into()).await.unwrap();
    let held = definitions.loading.lock().await;
    let waiting = join_all((0..8).map(|_| definitions.load_unless(|| false)));
    // The first of both is polled first, and so all wait by then.
    let (loaded, ()) = join(waiting, async { drop(held) }).await;
    assert!(loaded.iter().all(Result::is_err), "{loaded:?}");
    assert_eq!(definitions.failed_loads.load(Ordering::Relaxed), 1);
    close(nodes).await;
}
