//! Processors on a cluster: every workflow is handled in order, and what one request comes to ends no other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::sync::Semaphore;

use crate::cluster::nodes::Nodes;
use crate::cluster::stop::pause;
use crate::cluster::tests::nats::NatsServers;
use crate::cluster::tests::nats::wait_until;
use crate::cluster::tests::router::close;
use crate::cluster::tests::router::nodes;
use crate::cluster::tests::router::send_all;
use crate::cluster::tests::router::workflows;
use crate::cluster::wire;
use crate::cluster::wire::NodeReply;
use crate::engine::Completion;
use crate::limits;
use crate::message::Message;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Outcome;
use crate::processor::Processor;
use crate::processor::Raw;
use crate::queue::QueueOptions;

#[tokio::test(flavor = "multi_thread")]
async fn processors_on_each_node_handle_every_workflow_in_order() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::by_position()).await.unwrap();
    let handled: Arc<Mutex<BTreeMap<String, Vec<u64>>>> = Arc::default();
    let mut pools = Vec::new();
    for node in &nodes {
        let handled = handled.clone();
        let handler = move |context: Context, _: Raw| {
            let message = context.message();
            let workflow = message.workflow_id.as_ref().unwrap().as_str().to_owned();
            // What was handed out to nobody has to come back uncounted, and before its lock runs out.
            let place = message.rank + 100 * u64::from(context.attempt() - 1);
            handled.lock().unwrap().entry(workflow).or_default().push(place);
            async { Ok::<_, Failure>(Outcome::Complete) }
        };
        pools.push(Processor::new(node.client().queue("q").unwrap()).start(handler));
    }
    send_all(&queue).await;
    let is_done = || handled.lock().unwrap().values().map(Vec::len).sum::<usize>() == 36;
    tokio::task::block_in_place(|| wait_until("all are handled", is_done));
    for pool in pools {
        pool.stop().await.unwrap();
    }
    assert!(handled.lock().unwrap().values().all(|ranks| *ranks == [1, 2, 3]));
    assert_eq!(queue.view().await.unwrap().counts.completed, 36);
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_processor_goes_on_when_it_is_not_known_whether_what_it_handled_is_completed() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first", "second"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let (begun, gate) = (Arc::new(AtomicUsize::new(0)), Arc::new(Semaphore::new(0)));
    let running = Processor::new(queue.clone()).start({
        let (begun, gate) = (begun.clone(), gate.clone());
        move |_: Context, _: Raw| {
            begun.fetch_add(1, Ordering::Relaxed);
            let gate = gate.clone();
            async move {
                gate.acquire().await.expect("it is not closed").forget();
                Ok::<_, Failure>(Outcome::Complete)
            }
        }
    });
    for workflow in workflows() {
        queue.send(Message::new("x").workflow(&workflow)).await.unwrap();
    }
    let all_begun = || begun.load(Ordering::Relaxed) == 12;
    tokio::task::block_in_place(|| wait_until("all have begun", all_begun));
    // Says under the name of the other node, and before it, that there is no answer.
    let incarnation = nodes[0].handle().router.leases.incarnation("second").unwrap();
    let client = async_nats::connect(&servers.options("router", "second").servers).await.unwrap();
    let fails = Nodes::new(client.clone(), "router");
    let mut asked = fails.listen("second", incarnation).await.unwrap();
    client.flush().await.unwrap();
    let unanswered = Arc::new(AtomicUsize::new(0));
    let failing = tokio::spawn({
        let unanswered = unanswered.clone();
        async move {
            while let Some(message) = asked.next().await {
                let Some(to) = message.reply else { continue };
                fails.answer(to, wire::write(&NodeReply::Failed("it is stopping".to_owned()))).await;
                unanswered.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    gate.add_permits(1_000);
    let is_unanswered = || unanswered.load(Ordering::Relaxed) > 0;
    tokio::task::block_in_place(|| wait_until("it is not known what was completed", is_unanswered));
    failing.abort();
    for workflow in workflows() {
        queue.send(Message::new("x").workflow(&workflow)).await.unwrap();
    }
    let all_done = async {
        while queue.view().await.map_or(0, |view| view.counts.completed) < 24 {
            pause(limits::ROUTE_PAUSE).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all_done).await.expect("all are completed");
    assert!(!running.is_finished());
    running.stop().await.unwrap();
    close(nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_completion_that_is_too_large_for_a_log_fails_its_message_and_not_the_processor() {
    let Some(servers) = NatsServers::start(1) else { return };
    let nodes = nodes(&servers, &["first"]).await;
    let queue = nodes[0].client().create_queue("q", QueueOptions::default()).await.unwrap();
    let running = Processor::new(queue.clone()).start(move |context: Context, body: Raw| async move {
        let workflow = context.message().workflow_id.as_ref().unwrap().as_str().to_owned();
        let mut completion = Completion::new();
        if body.0 == "large" {
            for _ in 0..8 {
                completion = completion.send("q", Message::new(vec![0; 500_000]).workflow(&workflow));
            }
        }
        Ok::<_, Failure>(Outcome::CompleteWith(completion))
    });
    queue.send(Message::new("large").workflow("a")).await.unwrap();
    queue.send(Message::new("small").workflow("b")).await.unwrap();
    let both_ended = async {
        loop {
            let counts = queue.view().await.unwrap().counts;
            if counts.completed == 1 && counts.retry >= 1 {
                return;
            }
            pause(limits::ROUTE_PAUSE).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), both_ended).await.expect("one fails, and one is done");
    let messages = queue.workflow("a").unwrap().messages(0, 1).await.unwrap();
    let reason = &messages[0].attempts[0].reason;
    assert!(reason.contains("4000000 bytes"), "{reason}");
    running.stop().await.unwrap();
    close(nodes).await;
}
