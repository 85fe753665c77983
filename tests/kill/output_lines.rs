//! How a process that may be killed speaks and hears: whole lines, given to the system before it goes on.

use std::io::BufRead;
use std::io::Write;
use std::path::PathBuf;

use serde::Deserialize;
use serde::Serialize;
use serde::de::DeserializeOwned;
use seriatim::Delivery;
use seriatim::QueueName;
use seriatim::ReceivedMessage;
use seriatim::Timestamp;
use seriatim::id::LockToken;

use crate::kill::report::Report;
use crate::kill::report::Seen;

/// The variable that tells the test binary to be such a process.
const TASK_VARIABLE: &str = "SERIATIM_KILL_TASK";

/// What such a process is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) role: Role,
    pub(crate) file: PathBuf,
    pub(crate) seed: u64,
    /// Which start of a process on this file it is; the load differs from one to the next.
    pub(crate) start: u64,
}

/// How such a process behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Works until it is killed.
    Worker,
    /// Works, and sends more than it handles, without end.
    Filler,
    /// Works, and says that a send was acknowledged before it has asked.
    HastySender,
    /// Works, and says that a settle was acknowledged before it has asked.
    HastySettler,
    /// Handles all that is there, and ends.
    Drainer,
    /// Holds deliveries while it is stopped, and settles them when it goes on.
    Zombie,
}

impl Task {
    /// The task of this process; none when it is an ordinary run of the tests.
    pub(crate) fn of_this_process() -> Option<Task> {
        let text = std::env::var(TASK_VARIABLE).ok()?;
        Some(serde_json::from_str(&text).expect("the parent writes tasks"))
    }

    /// The variable and its value for the process that is to do it.
    pub(crate) fn variable(&self) -> (&'static str, String) {
        (TASK_VARIABLE, serde_json::to_string(self).expect("a task is JSON"))
    }
}

/// Says a line. When this returns, the parent will hear it, whatever happens to this process.
pub(crate) fn say(said: &Report) {
    let mut line = serde_json::to_string(said).expect("what is said is JSON");
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    if stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).is_err() {
        std::process::exit(3);
    }
}

/// The next line the parent says; none when it is gone.
pub(crate) fn hear<T: DeserializeOwned>() -> Option<T> {
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(read) if read > 0 => Some(serde_json::from_str(&line).expect("the parent says JSON")),
        _ => None,
    }
}

/// Says what was handed out under one lock.
pub(crate) fn say_received(
    queue: &QueueName,
    token: LockToken,
    until: Timestamp,
    messages: &[ReceivedMessage],
    lock_ms: u64,
) {
    say(&Report::Received {
        hold: hold(token),
        seen: messages.iter().map(|message| seen(queue, message)).collect(),
        locked_until_ms: until.as_millis(),
        lock_ms,
    });
}

/// Says what one delivery brought.
pub(crate) fn say_delivered(delivery: &Delivery, lock_ms: u64) {
    let message = std::slice::from_ref(delivery.message());
    say_received(delivery.queue(), delivery.lock_token(), delivery.locked_until(), message, lock_ms);
}

/// What a hold is called.
pub(crate) fn hold(token: LockToken) -> String {
    token.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seen(queue: &QueueName, message: &ReceivedMessage) -> Seen {
    Seen {
        queue: queue.to_string(),
        workflow_id: message.workflow_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        message_id: message.message_id.as_ref().map(ToString::to_string).unwrap_or_default(),
        sequence: message.sequence_number.get(),
        delivery_count: message.delivery_count,
        body: String::from_utf8_lossy(&message.body).into_owned(),
    }
}
