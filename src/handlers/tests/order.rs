//! Order holds although children die: an engine, a processor, and programs that run on and fall over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::handlers::persistent::Persistent;
use crate::handlers::persistent::PersistentOptions;
use crate::handlers::tests::named_pipe::NamedPipe;
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
use crate::queue::Backoff;

const WORKFLOWS: usize = 20;
const EACH: u64 = 20;

/// Says what it has begun and what it has done; on some first attempts it dies between the two.
const CHILD: &str = r#"
import json, os, sys
pipe = os.open("pipe", os.O_WRONLY)
for line in sys.stdin:
    request = json.loads(line)
    message = request["message"]
    name = "%s %s" % (message["workflow_id"], message["body"]["number"])
    os.write(pipe, ("begun %s\n" % name).encode())
    if message["body"]["die"] and message["delivery_count"] < 2:
        os._exit(1)
    os.write(pipe, ("done %s\n" % name).encode())
    os.write(1, ("{\"id\":%d}\n" % request["id"]).encode())
"#;

/// The handler of what is not taken.
async fn nobody(_: Context, _: Raw) -> Result<Outcome, Failure> {
    Err(Failure::new("it was to be taken"))
}

#[tokio::test]
async fn messages_of_a_workflow_stay_in_order_although_children_die() {
    if !has_python() {
        return;
    }
    let stage = Stage::new().await;
    let path = stage.folder.path().join("pipe");
    let mut named_pipe = NamedPipe::new(&path);
    // Held open here too: for a moment all children may be dead.
    let _open = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    for number in 0..EACH {
        for workflow in 0..WORKFLOWS {
            let die = (number as usize * 7 + workflow).is_multiple_of(31);
            let body = serde_json::json!({ "number": number, "die": die });
            let message = Message::json(&body).unwrap().workflow(format!("w{workflow}"));
            stage.queue.send(message).await.unwrap();
        }
    }
    let options = PersistentOptions {
        program: program(stage.folder.path(), &["python3", "-c", CHILD]),
        processes: 3,
        in_flight_max: 8,
        timeout: LONG,
    };
    let persistent = Arc::new(Persistent::start(options, stage.site.clone()));
    let backoff =
        Backoff { first: Duration::from_millis(5), max: Duration::from_millis(20), ..Backoff::default() };
    let running = Processor::new(stage.queue.clone()).backoff(backoff).taker(persistent).start(nobody);
    let mut next: BTreeMap<String, u64> = BTreeMap::new();
    let mut left = WORKFLOWS as u64 * EACH;
    while left > 0 {
        let said_line = named_pipe.next_line().await.expect("the children go on until all is done");
        let [word, workflow, number] = said_line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{said_line}")
        };
        let number: u64 = number.parse().unwrap();
        let due = next.entry(workflow.to_owned()).or_default();
        match word {
            // What died with its child, or was done while its answer was lost, is done again.
            "begun" => assert!(number == *due || number + 1 == *due, "{said_line}, but {due} is due"),
            _ if number == *due => {
                *due += 1;
                left -= 1;
            }
            _ => assert_eq!(number + 1, *due, "{said_line}"),
        }
    }
    running.stop().await.unwrap();
}
