//! What holds for programs that run on.

use std::collections::BTreeMap;
use std::path::Path;

use crate::handlers::persistent::Persistent;
use crate::handlers::persistent::PersistentOptions;
use crate::handlers::tests::stage::LONG;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::has_python;
use crate::limits;
use crate::message::Message;
use crate::processor::Outcome;

/// Answers each request after looking at its body.
const ECHO: &str = r#"
import json, sys, os
for line in sys.stdin:
    request = json.loads(line)
    body = request["message"].get("body_text")
    if body == "die":
        sys.stderr.write("cannot go on\n")
        os._exit(3)
    if body == "garbage":
        print("hello", flush=True)
        continue
    print(json.dumps({"id": request["id"], "state": body}), flush=True)
"#;

fn python(folder: &Path, text: &str) -> PersistentOptions {
    PersistentOptions {
        argv: ["python3", "-c", text].map(str::to_owned).to_vec(),
        cwd: folder.to_owned(),
        env: BTreeMap::new(),
        pass_env: Vec::new(),
        processes: 1,
        in_flight_max: limits::IN_FLIGHT_DEFAULT,
        timeout: LONG,
    }
}

#[tokio::test]
async fn a_child_answers_one_message_after_the_other() {
    if !has_python() {
        return;
    }
    let stage = Stage::new().await;
    let persistent = Persistent::start(python(stage.folder.path(), ECHO), stage.site.clone());
    for _ in 0..100 {
        let outcome = stage.handle(&persistent, Message::new("hello").workflow("w")).await;
        assert!(matches!(outcome, Ok(Outcome::CompleteWith(_))), "{outcome:?}");
    }
    persistent.close().await;
}
