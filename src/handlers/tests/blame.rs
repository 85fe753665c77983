//! What holds when a program that holds many messages dies of one of them.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Queue;
use crate::engine::WorkflowStatus;
use crate::handlers::persistent::Persistent;
use crate::handlers::persistent::PersistentOptions;
use crate::handlers::tests::stage::LONG;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::has_python;
use crate::handlers::tests::stage::program;
use crate::message::Message;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Outcome;
use crate::processor::Processor;
use crate::processor::Raw;
use crate::queue::ExhaustedPolicy;
use crate::queue::QueueOptions;

const WORKFLOWS: usize = 30;

/// Answers what it reads; of poison it dies, or hangs, once it may hold others, too.
const CHILD: &str = r#"
import json, os, sys, time
for line in sys.stdin:
    request = json.loads(line)
    word = request["message"].get("body_text")
    if word == "die":
        time.sleep(0.2)
        os._exit(3)
    if word == "hang":
        time.sleep(1000)
    print(json.dumps({"id": request["id"]}), flush=True)
"#;

/// A queue that allows one attempt, with a message in each of its workflows; the fifteenth is poison.
async fn poisoned(stage: &Stage, poison: &str) -> Queue {
    let options = QueueOptions {
        delivery_count_max: 1,
        exhausted: Some(ExhaustedPolicy::Hold),
        ..QueueOptions::default()
    };
    stage.queue.client().change_queue("orders", options).await.unwrap();
    let messages = (0..WORKFLOWS).map(|number| {
        let body = if number == 15 { poison.to_owned() } else { number.to_string() };
        Message::new(body).content_type("text/plain").workflow(format!("w{number}"))
    });
    stage.queue.send_batch(messages).await.unwrap();
    stage.queue.clone()
}

async fn only_the_poison_is_exhausted(poison: &str, timeout: Duration) {
    if !has_python() {
        return;
    }
    let stage = Stage::new().await;
    let queue = poisoned(&stage, poison).await;
    let options = PersistentOptions {
        program: program(stage.folder.path(), &["python3", "-c", CHILD]),
        processes: 1,
        in_flight_max: 8,
        timeout,
    };
    let persistent = Arc::new(Persistent::start(options, stage.site.clone()));
    let handler = |_: Context, _: Raw| async { Err::<Outcome, _>(Failure::new("nobody took it")) };
    let pool = Processor::new(queue.clone()).concurrency(8).taker(persistent.clone()).start(handler);
    let settled = async {
        loop {
            let counts = queue.view().await.unwrap().counts;
            if counts.completed + counts.exhausted == WORKFLOWS as u64 {
                return (counts.completed, counts.exhausted);
            }
            tokio::task::yield_now().await;
        }
    };
    let settled = tokio::time::timeout(LONG, settled).await.expect("all is settled");
    assert_eq!(settled, (WORKFLOWS as u64 - 1, 1), "nobody pays for another");
    let poisoned = queue.workflow("w15").unwrap().view().await.unwrap().unwrap();
    assert!(matches!(poisoned.status, WorkflowStatus::Held(_)));
    pool.stop().await.unwrap();
    persistent.close().await;
}

#[tokio::test]
async fn a_program_that_dies_of_one_of_thirty_workflows_burns_no_other() {
    only_the_poison_is_exhausted("die", LONG).await;
}

#[tokio::test]
async fn a_program_that_hangs_at_one_of_thirty_workflows_burns_no_other() {
    only_the_poison_is_exhausted("hang", Duration::from_secs(2)).await;
}
