//! Many messages, one a line: sent in batches, counted, and resumable.

use std::io;
use std::io::Read;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use serde::Serialize;
use serde_json::json;
use seriatim::api::Problem;
use seriatim::api::ReceiptStatus;
use seriatim::api::ReceiptView;
use seriatim::api::SendEnvelope;
use seriatim::api::options::OrderWord;
use seriatim::api::plain;
use seriatim::remote::BatchAnswers;
use seriatim::remote::Remote;
use seriatim::remote::RemoteError;
use tokio::time::timeout;

use crate::cli::cursors::WorkflowCursor;
use crate::cli::cursors::set_cursor;
use crate::cli::failure::CliFailure;
use crate::cli::failure::without_place;
use crate::cli::interrupt::Interrupt;
use crate::cli::limits;
use crate::cli::lines::InputLine;
use crate::cli::lines::InputLines;
use crate::cli::out::Stdout;
use crate::cli::out::remark;
use crate::cli::progress::Progress;
use crate::cli::word::counted;

/// What a line says.
pub(crate) enum FeedLine {
    /// A message that is to be sent.
    Message(Box<SendEnvelope>),
    /// Where a workflow stands.
    Cursor(WorkflowCursor),
    /// A message that is not to be sent.
    LeftOut,
}

/// How a line is read, or why it is none.
pub(crate) type ReadLine<'r> = dyn Fn(&[u8]) -> Result<FeedLine, String> + 'r;

/// Where lines are sent.
pub(crate) struct LineFeed {
    pub(crate) remote: Remote,
    pub(crate) queue: String,
    /// Lines before it were sent by an earlier run.
    pub(crate) from_line: u64,
    /// Whether workflows are told where they stand when all messages were sent, and not when it is read.
    pub(crate) sets_cursors_last: bool,
    pub(crate) out: Stdout,
}

/// What became of the lines.
#[derive(Default, Serialize)]
struct FeedSummary {
    lines: u64,
    accepted: u64,
    duplicate: u64,
    already_settled: u64,
    dead_lettered: u64,
    refused: u64,
    left_out: u64,
    /// Workflows that were told where they stand.
    cursors: u64,
    /// The first line that was refused because there was no room: its place is still wanted, whatever is behind it.
    #[serde(skip)]
    first_without_room: Option<u64>,
}

/// Messages that are sent in one request, with the numbers of their lines.
#[derive(Default)]
struct SendBatch {
    numbers: Vec<u64>,
    messages: Vec<SendEnvelope>,
    /// Where workflows stand, from lines before the first message.
    cursors: Vec<(u64, WorkflowCursor)>,
    /// The same from lines behind it.
    cursors_behind: Vec<(u64, WorkflowCursor)>,
}

impl LineFeed {
    /// Sends every line; true when none was refused.
    pub(crate) async fn run(
        &self,
        input: Box<dyn Read + Send>,
        read: &ReadLine<'_>,
    ) -> Result<bool, CliFailure> {
        let mut lines = InputLines::read(input)?;
        let progress = Progress::new("lines");
        let mut summary = FeedSummary::default();
        let (interrupt, mut late) = (Interrupt::listen(), Vec::new());
        loop {
            let chunk = tokio::select! {
                chunk = lines.next() => chunk,
                () = interrupt.wait() => {
                    progress.end();
                    return Err(self.stopped(&summary));
                }
            };
            let Some(chunk) = chunk else { break };
            let mut batch = SendBatch::default();
            for line in chunk.map_err(|error| unreadable(&error, &summary))? {
                self.add(&mut batch, line, read, &mut summary)?;
            }
            let (cursors, behind) =
                (std::mem::take(&mut batch.cursors), std::mem::take(&mut batch.cursors_behind));
            if self.sets_cursors_last {
                late.extend(cursors.into_iter().chain(behind));
                self.send(&batch, &interrupt, &mut summary).await?;
            } else {
                self.set_cursors(cursors, &mut summary).await?;
                self.send(&batch, &interrupt, &mut summary).await?;
                self.set_cursors(behind, &mut summary).await?;
            }
            progress.show(summary.lines);
        }
        self.set_cursors(late, &mut summary).await?;
        progress.end();
        self.out.json(&summary)?;
        self.out.say(summary.describe())?;
        Ok(summary.refused == 0)
    }

    fn add(
        &self,
        batch: &mut SendBatch,
        line: InputLine,
        read: &ReadLine<'_>,
        summary: &mut FeedSummary,
    ) -> Result<(), CliFailure> {
        summary.lines += 1;
        if line.bytes.trim_ascii().is_empty() {
            return Ok(());
        }
        if line.number < self.from_line {
            // The run that was broken off has set none of those that are set last.
            if let (true, Ok(FeedLine::Cursor(cursor))) = (self.sets_cursors_last, read(&line.bytes)) {
                batch.cursors.push((line.number, cursor));
            }
            return Ok(());
        }
        match read(&line.bytes) {
            Ok(FeedLine::Message(message)) => {
                batch.numbers.push(line.number);
                batch.messages.push(*message);
            }
            Ok(FeedLine::Cursor(cursor)) => match batch.messages.is_empty() {
                true => batch.cursors.push((line.number, cursor)),
                false => batch.cursors_behind.push((line.number, cursor)),
            },
            Ok(FeedLine::LeftOut) => summary.left_out += 1,
            Err(detail) => self.refuse(line.number, &Problem::new("malformed", detail), summary)?,
        }
        Ok(())
    }

    /// Has workflows wait for nothing that was settled before: not if a message may be missing yet that stands before a cursor.
    async fn set_cursors(
        &self,
        cursors: Vec<(u64, WorkflowCursor)>,
        summary: &mut FeedSummary,
    ) -> Result<(), CliFailure> {
        if let (Some((first, _)), Some(_)) = (cursors.first(), summary.first_without_room) {
            summary.first_without_room = Some(summary.goes_on_at(*first));
            remark(format!(
                "where {} stand is not said, as there was no room for a line: go on with --from-line {} once there is",
                counted(cursors.len() as u64, "workflow"),
                summary.goes_on_at(*first)
            ));
            summary.refused += cursors.len() as u64;
            return Ok(());
        }
        let set = |(number, cursor): (u64, WorkflowCursor)| async move {
            (number, set_cursor(&self.remote, &self.queue, &cursor).await)
        };
        let mut set = stream::iter(cursors).map(set).buffered(limits::CURSORS_AT_ONCE);
        while let Some((number, set)) = set.next().await {
            match set {
                Ok(()) => summary.cursors += 1,
                // Nothing is sent before it is known: what stands behind it might wait for what was settled.
                Err(error) if error.problem().is_none_or(Problem::is_unanswered) => {
                    return Err(not_known(number, number, summary, error));
                }
                Err(RemoteError::Problem(problem)) => self.refuse(number, &problem, summary)?,
                Err(error) => return Err(CliFailure::to("say where a workflow stands")(error)),
            }
        }
        Ok(())
    }

    async fn send(
        &self,
        batch: &SendBatch,
        interrupt: &Interrupt,
        summary: &mut FeedSummary,
    ) -> Result<(), CliFailure> {
        let (Some(first), Some(last)) = (batch.numbers.first(), batch.numbers.last()) else { return Ok(()) };
        let answers =
            self.send_with_retries(batch, interrupt).await.map_err(|error| match error.problem() {
                Some(_) => CliFailure::to(format!("send lines {first} to {last}"))(error),
                None => not_known(*first, *last, summary, error),
            })?;
        let unanswered = answers.iter().find_map(not_answered).cloned();
        let is_open = |answer: &Result<_, _>| refused_for_now(answer).or(not_answered(answer)).is_some();
        let open = answers.iter().position(is_open);
        let order = if open.is_some() { self.order().await } else { None };
        let stops_at = match open {
            Some(at) if unanswered.is_some() || goes_by_arrival(order) => at,
            _ => answers.len(),
        };
        let no_room = answers.get(stops_at).and_then(refused_for_now).cloned();
        for (number, answer) in batch.numbers.iter().zip(answers).take(stops_at) {
            match answer.map(|receipt| receipt.status) {
                Ok(ReceiptStatus::Accepted) => summary.accepted += 1,
                Ok(ReceiptStatus::Duplicate) => summary.duplicate += 1,
                Ok(ReceiptStatus::AlreadySettled) => summary.already_settled += 1,
                Ok(ReceiptStatus::DeadLettered) => summary.dead_lettered += 1,
                Err(problem) => self.refuse(*number, &problem, summary)?,
            }
        }
        if order == Some(OrderWord::None) {
            // No line has a place that anything behind it could take away.
            summary.first_without_room = None;
        }
        match (unanswered, no_room) {
            (Some(problem), _) => {
                let error = RemoteError::Problem(Box::new(problem));
                Err(not_known(batch.numbers[stops_at], *last, summary, error))
            }
            (None, Some(problem)) => Err(stopped_without_room(batch.numbers[stops_at], summary, &problem)),
            (None, None) => Ok(()),
        }
    }

    /// The order of the queue, unless whoever sends may not ask for it.
    async fn order(&self) -> Option<OrderWord> {
        self.remote.queue(&self.queue).await.ok().and_then(|queue| queue.options.order)
    }

    /// Sends a batch; what the daemon has no room for is sent again, in its order, when it says so, unless it is not known of a
    /// line whether it was accepted: nothing may overtake that.
    async fn send_with_retries(
        &self,
        batch: &SendBatch,
        interrupt: &Interrupt,
    ) -> Result<BatchAnswers, RemoteError> {
        let mut answers = self.send_once(batch.messages.clone()).await?;
        let (mut tries, mut waited_for) = (0, answers.len());
        while tries < limits::FEED_RETRIES_MAX && answers.iter().find_map(not_answered).is_none() {
            let again: Vec<usize> =
                (0..answers.len()).filter(|&at| refused_for_now(&answers[at]).is_some()).collect();
            let refused = again.iter().filter_map(|&at| refused_for_now(&answers[at]));
            let Some(seconds) = refused.map(|problem| problem.retry_after_seconds.unwrap_or(1)).max() else {
                break;
            };
            tries = if again.len() < waited_for { 1 } else { tries + 1 };
            waited_for = again.len();
            let wait_time = Duration::from_secs(seconds).min(limits::FEED_RETRY_WAIT_MAX);
            if timeout(wait_time, interrupt.wait()).await.is_ok() {
                break;
            }
            let messages = again.iter().map(|&at| batch.messages[at].clone()).collect();
            // What was accepted before stays accepted, whatever becomes of these.
            let of_all = |error: RemoteError| {
                let problem = match error {
                    RemoteError::Problem(problem) => problem,
                    error => Box::new(Problem::new("unanswered", error.to_string())),
                };
                vec![Err(problem); again.len()]
            };
            let answered = self.send_once(messages).await.unwrap_or_else(of_all);
            for (at, answer) in again.iter().zip(answered) {
                answers[*at] = answer;
            }
        }
        Ok(answers)
    }

    async fn send_once(&self, messages: Vec<SendEnvelope>) -> Result<BatchAnswers, RemoteError> {
        match self.remote.send_in_order(&self.queue, &messages).await {
            // The whole request came too early, or was not answered: so is it with each of its messages.
            Err(RemoteError::Problem(problem)) if is_for_now(&problem) || problem.is_unanswered() => {
                Ok(vec![Err(problem); messages.len()])
            }
            // Nothing can become of the lines that follow either.
            Ok(answers) => match answers
                .iter()
                .find_map(|answer| answer.as_ref().err().filter(|problem| is_final(problem)))
            {
                Some(problem) => Err(RemoteError::Problem(problem.clone())),
                None => Ok(answers),
            },
            Err(error) => Err(error),
        }
    }

    fn refuse(&self, number: u64, problem: &Problem, summary: &mut FeedSummary) -> Result<(), CliFailure> {
        summary.refused += 1;
        if is_for_now(problem) {
            summary.first_without_room = Some(summary.goes_on_at(number));
        }
        remark(format!("line {number}: {} ({})", without_place(&problem.detail), problem.code));
        self.out.json(&json!({ "line": number, "error": problem }))?;
        Ok(())
    }

    fn stopped(&self, summary: &FeedSummary) -> CliFailure {
        CliFailure::Refused(format!(
            "go on: stopped after line {}; all that were not refused are on disk; go on with --from-line {}",
            summary.lines,
            summary.goes_on_at(summary.lines + 1)
        ))
    }
}

/// Why a line is not read; which line it is stands before it.
pub(crate) fn why_unread(error: &serde_json::Error) -> String {
    plain(error)
}

/// The code of what a daemon did not wait for any longer.
const TOO_SLOW: &str = "too_slow";

/// Why a message was refused, if it may be sent again. Of a daemon of an older version, one whose engine has stopped says so, too.
fn refused_for_now(answer: &Result<ReceiptView, Box<Problem>>) -> Option<&Problem> {
    answer.as_ref().err().map(Box::as_ref).filter(|problem| is_for_now(problem))
}

/// Whether the same may be accepted later: there is no room yet, or it came too slowly, and was not taken.
fn is_for_now(problem: &Problem) -> bool {
    (problem.retry_after_seconds.is_some() || problem.code == TOO_SLOW) && !problem.is_unanswered()
}

/// Whether what is sent later is handled later, so that no line may be left behind. Where the order is not known it is taken to be so.
fn goes_by_arrival(order: Option<OrderWord>) -> bool {
    matches!(order, None | Some(OrderWord::Arrival))
}

/// Why no line could be read any more, and how far it came.
fn unreadable(error: &io::Error, summary: &FeedSummary) -> CliFailure {
    remark(format!(
        "{}; go on with --from-line {}",
        summary.describe(),
        summary.goes_on_at(summary.lines + 1)
    ));
    CliFailure::Other(format!("cannot read the input: {error}").into())
}

fn stopped_without_room(line: u64, summary: &FeedSummary, problem: &Problem) -> CliFailure {
    let (detail, goes_on_at) = (without_place(&problem.detail), summary.goes_on_at(line));
    CliFailure::Refused(format!(
        "go on: line {line} and those behind it were not accepted, so that none overtakes another: {detail} ({}); go on \
         with --from-line {goes_on_at}",
        problem.code
    ))
}

/// Why nobody knows whether a message was accepted, if that is so.
fn not_answered(answer: &Result<ReceiptView, Box<Problem>>) -> Option<&Problem> {
    answer.as_ref().err().map(Box::as_ref).filter(|problem| problem.is_unanswered())
}

/// What is said of lines that may have been accepted.
fn not_known(first: u64, last: u64, summary: &FeedSummary, error: RemoteError) -> CliFailure {
    remark(format!(
        "whether lines {first} to {last} were accepted is not known; go on with --from-line {}: messages with an ID or \
         a position are not stored twice",
        summary.goes_on_at(first)
    ));
    CliFailure::to("send")(error)
}

fn is_final(problem: &Problem) -> bool {
    problem.code == "queue_not_found"
}

impl FeedSummary {
    /// From which line to go on, if all from this one are still to be sent: a line that found no room is not passed over, as what
    /// goes on knows nothing of it and would say where its workflow stands.
    fn goes_on_at(&self, line: u64) -> u64 {
        self.first_without_room.map_or(line, |first| first.min(line))
    }

    fn describe(&self) -> String {
        let FeedSummary { lines, accepted, duplicate, already_settled, dead_lettered, .. } = self;
        let FeedSummary { refused, left_out, cursors, .. } = self;
        let others = [
            (duplicate, "sent before"),
            (already_settled, "settled before"),
            (dead_lettered, "dead-lettered"),
            (cursors, "set ahead"),
            (left_out, "left out"),
            (refused, "REFUSED"),
        ];
        let others = others.iter().filter(|(count, _)| **count > 0);
        let others: String = others.map(|(count, what)| format!(", {count} {what}")).collect();
        format!("{}: {accepted} accepted{others}", counted(*lines, "line"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_names_what_there_was() {
        let summary =
            FeedSummary { lines: 5, accepted: 3, duplicate: 1, refused: 1, ..FeedSummary::default() };
        assert_eq!(summary.describe(), "5 lines: 3 accepted, 1 sent before, 1 REFUSED");
    }
}
