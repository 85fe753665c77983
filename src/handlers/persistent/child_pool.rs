//! What a handler and the keepers of its children share: who has which message.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use memchr::memchr2_iter;
use rustix::process::Pid;
use rustix::process::Signal;
use serde::Serialize;
use tokio::sync::Notify;

use crate::api::DeliveryEnvelope;
use crate::api::OutcomeEnvelope;
use crate::definition::ProgramDefinition;
use crate::engine::Output;
use crate::handlers::answer;
use crate::handlers::group;
use crate::handlers::handler_program::HandlerProgram;
use crate::handlers::persistent::process_pool::Asker;
use crate::handlers::persistent::process_pool::ChildReply;
use crate::handlers::persistent::process_pool::ChildRequest;
use crate::handlers::persistent::process_pool::ProcessPool;
use crate::handlers::persistent::process_pool::Rest;
use crate::handlers::persistent::process_pool::Withdrawn;
use crate::handlers::site::Site;
use crate::handlers::trace::trace_in;
use crate::limits;
use crate::mutex::Mutex;
use crate::processor::Assignment;
use crate::processor::Failure;
use crate::processor::Outcome;
use crate::processor::guarded;

/// What runs on, and how.
#[derive(Clone, Debug)]
pub(crate) struct PersistentOptions {
    /// The program.
    pub(crate) program: ProgramDefinition,
    /// How many children there are.
    pub(crate) processes: usize,
    /// How many messages one child may hold.
    pub(crate) in_flight_max: usize,
    /// How long one attempt may take.
    pub(crate) timeout: Duration,
}

/// What the handler and the keepers of its children share.
pub(super) struct ChildPool {
    pub(super) program: HandlerProgram,
    process_pool: Mutex<ProcessPool<Assignment>>,
    /// For each slot.
    bells: Vec<ChildSignals>,
}

/// What a child wrote is kept with an attempt that failed, and with a dead letter that says nothing else.
fn with_output(result: Result<Outcome, Failure>, output: Output) -> Result<Outcome, Failure> {
    match result {
        Ok(Outcome::DeadLetter { reason, description }) if description.is_empty() => {
            Ok(Outcome::DeadLetter { reason, description: output.text })
        }
        Ok(outcome) => Ok(outcome),
        Err(failure) => Err(failure.output(output)),
    }
}

/// What wakes the supervisor of one child.
#[derive(Default)]
struct ChildSignals {
    written: Notify,
    killed: Notify,
    answers: AtomicU64,
}

/// Bytes of most lines beside the body.
const ENVELOPE_LEN: usize = 512;

/// A line for a child.
#[derive(Serialize)]
struct ChildLine<'a> {
    id: u64,
    /// The trace that is to be continued.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    message: &'a DeliveryEnvelope,
}

/// A value in a line of JSON of about this length.
fn to_line(value: &impl Serialize, len: usize) -> serde_json::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(len);
    serde_json::to_writer(&mut line, value)?;
    line = escape_separators(line);
    line.push(b'\n');
    Ok(line)
}

/// Writes U+0085, U+2028 and U+2029 as JSON may: they stand in texts only, and what reads lines in some languages takes them for the
/// end of one.
fn escape_separators(line: Vec<u8>) -> Vec<u8> {
    let mut escaped = Vec::new();
    let mut rest = &line[..];
    let separator = |rest: &[u8]| {
        memchr2_iter(0xC2, 0xE2, rest).find_map(|at| match rest[at..] {
            [0xC2, 0x85, ..] => Some((at, 2, br"\u0085")),
            [0xE2, 0x80, 0xA8, ..] => Some((at, 3, br"\u2028")),
            [0xE2, 0x80, 0xA9, ..] => Some((at, 3, br"\u2029")),
            _ => None,
        })
    };
    while let Some((at, len, text)) = separator(rest) {
        escaped.extend_from_slice(&rest[..at]);
        escaped.extend_from_slice(text);
        rest = &rest[at + len..];
    }
    if escaped.is_empty() {
        return line;
    }
    escaped.extend_from_slice(rest);
    escaped
}

impl Asker for Assignment {
    fn is_cancelled(&self) -> bool {
        self.context().is_lost()
    }

    fn is_suspect(&self) -> bool {
        self.context().message().is_suspect()
    }
}

impl ChildPool {
    /// Of so many children, and one more for those who may be to blame.
    pub(super) fn new(options: PersistentOptions, slots: usize, site: Site) -> ChildPool {
        let PersistentOptions { program, in_flight_max, timeout, .. } = options;
        ChildPool {
            program: HandlerProgram::new(program, timeout, site),
            process_pool: Mutex::new(ProcessPool::new(slots, in_flight_max, timeout)),
            bells: (0..=slots).map(|_| ChildSignals::default()).collect(),
        }
    }

    /// Does something with the pool, and then tells those whom it concerns.
    pub(super) fn with_pool<T>(&self, change: impl FnOnce(&mut ProcessPool<Assignment>) -> T) -> T {
        let mut process_pool = self.process_pool.lock();
        let changed = change(&mut process_pool);
        let described = process_pool.describe();
        drop(process_pool);
        for ChildReply { asker, verdict, output, since } in described {
            let result =
                verdict.and_then(|envelope| guarded(|| answer::result(&self.program.site, envelope)));
            let lasted = since.map(|since| self.program.now().saturating_sub(since));
            asker.end_after(with_output(result, output), lasted);
        }
        changed
    }

    /// Notes that the daemon lacks something to start a child; says how long it is not tried again.
    pub(super) fn note_shortage(&self, slot: usize, why: String) -> Duration {
        self.program.note_shortage(&why);
        let now = self.program.now();
        let pause = self.program.shortage.pauses_until(now);
        let until = pause.map_or(now + limits::START_PAUSE_MIN, |(until, _)| until);
        self.with_pool(|process_pool| {
            process_pool.rest_until(slot, Rest { until, why, is_shortage: true }, now)
        });
        until - now
    }

    /// The request an assignment makes; none if that cannot be written, which ends it.
    pub(super) fn request(
        &self,
        assignment: Assignment,
        state: Option<&Bytes>,
    ) -> Option<ChildRequest<Assignment>> {
        match self.line(&assignment, state) {
            Ok(line) => Some(ChildRequest { id: assignment.number(), line, asker: assignment }),
            Err(failure) => {
                assignment.end(Err(failure));
                None
            }
        }
    }

    fn line(&self, assignment: &Assignment, state: Option<&Bytes>) -> Result<Vec<u8>, Failure> {
        let context = assignment.context();
        let message =
            DeliveryEnvelope::show(context.queue().name(), context.message(), self.program.site.by_position);
        let mut message = message.with_state(state);
        message.lock_token = Some(context.lock_token().to_string());
        let traceparent = trace_in(assignment.span(), context);
        let line = ChildLine { id: assignment.number(), traceparent, message: &message };
        Ok(to_line(&line, ENVELOPE_LEN + context.message().body.len())?)
    }

    pub(super) async fn submit_with_state(self: Arc<ChildPool>, assignment: Assignment) {
        match assignment.context().state().await {
            Ok(state) => self.submit(self.request(assignment, state.as_ref())),
            Err(error) => assignment.end(Err(error.into())),
        }
    }

    pub(super) fn submit(&self, requests: impl IntoIterator<Item = ChildRequest<Assignment>>) {
        let now = self.program.now();
        self.with_pool(|process_pool| {
            requests.into_iter().for_each(|request| process_pool.submit(request, now))
        });
        self.bells.iter().for_each(|bells| bells.written.notify_one());
    }

    /// Ends a request, and the child that holds it, at once.
    pub(super) fn give_up(&self, id: u64) {
        self.withdraw(id, "it was given up", |group| group::signal(group, Signal::KILL));
    }

    /// Forgets a request, or condemns the child that holds it and does something to that one's group.
    pub(super) fn withdraw(&self, id: u64, why: &str, with_group: impl FnOnce(Pid)) {
        let withdrawn = self.with_pool(|process_pool| {
            let withdrawn = process_pool.withdraw(id, why);
            // The pool names a group only while its number is its own, and its lock is held.
            if let Withdrawn::Held { group: Some(group), .. } = withdrawn {
                with_group(group);
            }
            withdrawn
        });
        if let Withdrawn::Held { slot, .. } = withdrawn {
            self.bells[slot].killed.notify_one();
        }
    }

    pub(super) fn up(&self, slot: usize, group: Pid) {
        let now = self.program.now();
        self.with_pool(|process_pool| process_pool.up(slot, group, now));
        self.bells[slot].written.notify_one();
    }

    /// Waits for something to write.
    pub(super) async fn outgoing(&self, slot: usize, into: &mut Vec<u8>) {
        loop {
            let now = self.program.now();
            self.with_pool(|process_pool| process_pool.outgoing(slot, into, now));
            if !into.is_empty() {
                return;
            }
            self.bells[slot].written.notified().await;
        }
    }

    pub(super) fn answered(&self, slot: usize, answers: Vec<OutcomeEnvelope>) -> Result<(), String> {
        let (count, now) = (answers.len() as u64, self.program.now());
        let answered = self.with_pool(|process_pool| process_pool.answered(slot, answers, now));
        self.bells[slot].answers.fetch_add(count, Ordering::Relaxed);
        self.bells[slot].written.notify_one();
        answered
    }

    /// How often a slot's children have answered.
    pub(super) fn answers(&self, slot: usize) -> u64 {
        self.bells[slot].answers.load(Ordering::Relaxed)
    }

    /// Waits until a child must not go on.
    pub(super) async fn killed(&self, slot: usize) {
        while !self.with_pool(|process_pool| process_pool.is_killed(slot)) {
            self.bells[slot].killed.notified().await;
        }
    }

    /// How long the oldest request of a child may still take; none when its time is over.
    pub(super) fn check_time(&self, slot: usize, why: &str) -> Option<Duration> {
        let now = self.program.now();
        self.with_pool(|process_pool| {
            let due = process_pool.check_time(slot, self.program.timeout, now, why);
            (!process_pool.is_killed(slot)).then(|| due.saturating_sub(now))
        })
    }

    /// A child is given nothing more.
    pub(super) fn ending(&self, slot: usize) {
        self.with_pool(|process_pool| process_pool.ending(slot));
    }

    /// A child has written a line to its standard error.
    pub(super) fn complained(&self, slot: usize, line: &str) {
        self.with_pool(|process_pool| process_pool.complained(slot, line));
    }

    /// Fails all that a child held; says because of what it was ended, if because of one of these.
    pub(super) fn fail_held(&self, slot: usize, why: &str) -> Option<String> {
        self.with_pool(|process_pool| process_pool.down(slot, why))
    }

    /// Whether no more requests are taken, so that a child that is started now gets none.
    pub(super) fn is_closed(&self) -> bool {
        self.with_pool(|process_pool| process_pool.is_closed())
    }

    /// Waits until there is something for the extra child.
    pub(super) async fn suspects(&self, slot: usize) {
        while !self.with_pool(|process_pool| process_pool.has_suspects()) {
            self.bells[slot].written.notified().await;
        }
    }

    /// Gives the extra child nothing more, if there is nothing for it; says whether.
    pub(super) fn dismiss_extra(&self, slot: usize) -> bool {
        self.with_pool(|process_pool| {
            let is_idle = !process_pool.has_suspects();
            if is_idle {
                process_pool.ending(slot);
            }
            is_idle
        })
    }

    pub(super) fn fail_suspects(&self, why: &str) {
        self.with_pool(|process_pool| process_pool.fail_suspects(why));
    }

    pub(super) fn rest(&self, slot: usize, rest: Duration, why: String) {
        let now = self.program.now();
        let rest = Rest { until: now + rest, why, is_shortage: false };
        self.with_pool(|process_pool| process_pool.rest_until(slot, rest, now));
    }

    /// A slot has no child: there is no group that could be signalled.
    pub(super) fn starting(&self, slot: usize) {
        self.with_pool(|process_pool| process_pool.starting(slot));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_for_a_child_has_nothing_in_it_that_any_language_takes_for_its_end() {
        let value = json!({"\u{2028}": "a\u{2028}b\u{2029}\\\u{2029}\u{85}", "other": "\u{c2}\u{20ac} \u{201c}x\u{201d} \r\n"});
        let line = String::from_utf8(to_line(&value, 0).unwrap()).unwrap();
        let text = line.strip_suffix('\n').unwrap();
        assert!(!text.contains(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']), "{text}");
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value);
    }
}
