//! What holds when programs that run on are slow.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::Outcome;
use crate::handlers::persistent::Persistent;
use crate::handlers::persistent::PersistentOptions;
use crate::handlers::tests::stage::LONG;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::has_python;
use crate::handlers::tests::stage::program;
use crate::limits;
use crate::message::Message;
use crate::processor::Context;
use crate::processor::Failure;
use crate::processor::Processor;
use crate::processor::Raw;
use crate::queue::QueueOptions;

const WORKFLOWS: usize = 8;

/// Takes so long for each that it is not given another before it has answered.
const CHILD: &str = r#"
import json, sys, time
for line in sys.stdin:
    time.sleep(0.6)
    print(json.dumps({"id": json.loads(line)["id"]}), flush=True)
"#;

#[tokio::test]
async fn what_waits_for_a_slow_program_is_handled_at_its_first_attempt_however_long_that_takes() {
    if !has_python() {
        return;
    }
    let stage = Stage::new().await;
    let options =
        QueueOptions { lock: Duration::from_secs(1), delivery_count_max: 1, ..QueueOptions::default() };
    let queue = stage.queue.clone();
    queue.client().change_queue("orders", options).await.unwrap();
    let messages = (0..WORKFLOWS).map(|number| Message::new("body").workflow(format!("w{number}")));
    queue.send_batch(messages).await.unwrap();
    let options = PersistentOptions {
        program: program(stage.folder.path(), &["python3", "-c", CHILD]),
        processes: 1,
        in_flight_max: limits::IN_FLIGHT_DEFAULT,
        timeout: Duration::from_secs(2),
    };
    let persistent = Arc::new(Persistent::start(options, stage.site.clone()));
    let handler = |_: Context, _: Raw| async { Err::<Outcome, _>(Failure::new("nobody took it")) };
    let processor = Processor::new(queue.clone()).renew_for(Duration::from_secs(2));
    let running = processor.taker(persistent.clone()).start(handler);
    let settled = async {
        loop {
            let counts = queue.view().await.unwrap().counts;
            if counts.completed + counts.exhausted + counts.dead_lettered == WORKFLOWS as u64 {
                return counts.completed;
            }
            tokio::task::yield_now().await;
        }
    };
    let completed = tokio::time::timeout(LONG, settled).await.expect("all is settled");
    assert_eq!(completed, WORKFLOWS as u64, "with one attempt each");
    running.stop().await.unwrap();
    persistent.close().await;
}
