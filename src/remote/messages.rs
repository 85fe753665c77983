//! Calls that send messages, cancel them and look at them.

use bytes::Bytes;

use crate::api::CancelQuery;
use crate::api::MessagePage;
use crate::api::MessagesQuery;
use crate::api::Problem;
use crate::api::ReceiptView;
use crate::api::RescheduleRequest;
use crate::api::SendEnvelope;
use crate::api::SendQuery;
use crate::api::SentLine;
use crate::api::WireTime;
use crate::api::views::MessageEnvelope;
use crate::error::Misuse;
use crate::remote::cause::malformed;
use crate::remote::error::RemoteError;
use crate::remote::exchange::NDJSON;
use crate::remote::exchange::RemoteCall;
use crate::remote::remote::Remote;
use crate::remote::route::RequestPath;

/// What became of each message of a batch, in its order.
pub type BatchAnswers = Vec<Result<ReceiptView, Box<Problem>>>;

impl Remote {
    /// Sends a message; once it is answered, the message is on disk.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem when the message is refused.
    pub async fn send(&self, queue: &str, message: &SendEnvelope) -> Result<ReceiptView, RemoteError> {
        let answers = self.send_batch(queue, std::slice::from_ref(message)).await?;
        match answers.into_iter().next() {
            Some(answer) => answer.map_err(RemoteError::Problem),
            None => Err(malformed(&format!("a message for {queue}"), "it is empty")),
        }
    }

    /// Sends messages in one request, each for itself: those that are refused do not stop the others. The answers come
    /// in the order of the messages.
    ///
    /// # Errors
    /// [`RemoteError`] when there is not an answer to each; how many of them were taken is then not known.
    pub async fn send_batch(
        &self,
        queue: &str,
        messages: &[SendEnvelope],
    ) -> Result<BatchAnswers, RemoteError> {
        self.send_lines(queue, lines_of(messages)?, messages.len()).await
    }

    /// Sends messages in one transaction: all of them are taken, or none.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem when one of them is refused.
    pub async fn send_together(
        &self,
        queue: &str,
        messages: &[SendEnvelope],
    ) -> Result<Vec<ReceiptView>, RemoteError> {
        let call = self.sending(queue, SendQuery { atomic: true, ..SendQuery::default() });
        all_accepted(post_lines(call, lines_of(messages)?.into(), messages.len()).await?)
    }

    /// Sends messages in one transaction, once: the same request with the same key is given the same answer for a while,
    /// and stores nothing again. So it is asked again for up to ten seconds when nobody answers.
    ///
    /// # Errors
    /// As [`Remote::send_together`].
    pub async fn send_once(
        &self,
        queue: &str,
        key: &str,
        messages: &[SendEnvelope],
    ) -> Result<Vec<ReceiptView>, RemoteError> {
        let call = self
            .sending(queue, SendQuery { atomic: true, ..SendQuery::default() })
            .header("idempotency-key", Some(key))?;
        let answer = call.bytes(NDJSON, lines_of(messages)?)?.repeatable().whole().await?;
        let answers: Result<BatchAnswers, RemoteError> =
            answer.lines().map(|line| read_answer(line, answer.request_line())).collect();
        all_accepted(one_each(answers?, messages.len(), answer.request_line())?)
    }

    /// Sends lines of JSON, each a [`SendEnvelope`], as they are.
    ///
    /// # Errors
    /// As [`Remote::send_batch`]; `count` is how many lines there are.
    pub async fn send_lines(
        &self,
        queue: &str,
        lines: impl Into<Bytes>,
        count: usize,
    ) -> Result<BatchAnswers, RemoteError> {
        post_lines(self.post(RequestPath::queue(queue).word("messages")), lines.into(), count).await
    }

    /// Sends messages in one request, each for itself, and in a queue in order of arrival none behind one that is refused
    /// for now, because there is no room, or of which nobody knows whether it was accepted: those that are may be sent again, and
    /// come in their order.
    ///
    /// # Errors
    /// As [`Remote::send_batch`].
    pub async fn send_in_order(
        &self,
        queue: &str,
        messages: &[SendEnvelope],
    ) -> Result<BatchAnswers, RemoteError> {
        let call = self.sending(queue, SendQuery { in_order: true, ..SendQuery::default() });
        post_lines(call, lines_of(messages)?.into(), messages.len()).await
    }

    fn sending(&self, queue: &str, query: SendQuery) -> RemoteCall<'_> {
        self.post(RequestPath::queue(queue).word("messages").asking(&query))
    }

    /// Cancels a scheduled message and gives its place back.
    ///
    /// # Errors
    /// [`RemoteError`]; a problem with the code `not_scheduled` when it is not scheduled any more.
    pub async fn cancel(&self, queue: &str, sequence_number: u64) -> Result<(), RemoteError> {
        let route = RequestPath::queue(queue).word("messages").data(sequence_number);
        self.delete(route).answer_nothing().await
    }

    /// Cancels a scheduled message and declares its place void, so that what waits behind it goes on.
    ///
    /// # Errors
    /// As [`Remote::cancel`].
    pub async fn cancel_and_void(&self, queue: &str, sequence_number: u64) -> Result<(), RemoteError> {
        let route = RequestPath::queue(queue)
            .word("messages")
            .data(sequence_number)
            .asking(&CancelQuery { void: true });
        self.delete(route).answer_nothing().await
    }

    /// Lets a scheduled message come at another instant; one that has passed makes it ready at once.
    ///
    /// # Errors
    /// As [`Remote::cancel`].
    pub async fn reschedule(
        &self,
        queue: &str,
        sequence_number: u64,
        at: WireTime,
    ) -> Result<(), RemoteError> {
        let route = RequestPath::queue(queue).word("messages").data(sequence_number).word("reschedule");
        self.post(route).json(&RescheduleRequest { at })?.answer_nothing().await
    }

    /// A page of a queue's messages of any status in order of number, from the given one on. Looking changes nothing.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn messages(&self, queue: &str, from: u64, limit: usize) -> Result<MessagePage, RemoteError> {
        let query = MessagesQuery { from, limit: Some(limit), ..MessagesQuery::default() };
        self.get(RequestPath::queue(queue).word("messages").asking(&query)).answer().await
    }

    /// The same with each body byte for byte, and none as a JSON value.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn raw_messages(
        &self,
        queue: &str,
        from: u64,
        limit: usize,
    ) -> Result<MessagePage, RemoteError> {
        let query = MessagesQuery { from, limit: Some(limit), raw: true, ..MessagesQuery::default() };
        self.get(RequestPath::queue(queue).word("messages").asking(&query)).answer().await
    }

    /// A message, `None` when it is not stored. One that has ended is `ended`, if its queue remembers it.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn message(
        &self,
        queue: &str,
        sequence_number: u64,
    ) -> Result<Option<MessageEnvelope>, RemoteError> {
        let route = RequestPath::queue(queue).word("messages").data(sequence_number);
        self.get(route).answer_if_any("message_not_found").await
    }
}

pub(crate) fn lines_of(messages: &[SendEnvelope]) -> Result<Vec<u8>, Misuse> {
    let mut lines = Vec::new();
    for message in messages {
        serde_json::to_writer(&mut lines, message).map_err(|error| Misuse::new("body", error.to_string()))?;
        lines.push(b'\n');
    }
    Ok(lines)
}

/// Sends lines and reads an answer to each.
async fn post_lines(call: RemoteCall<'_>, lines: Bytes, count: usize) -> Result<BatchAnswers, RemoteError> {
    let mut answer = call.bytes(NDJSON, lines)?.open_lines().await?;
    let mut answers = Vec::with_capacity(count);
    while let Some(line) = answer.next_filled().await? {
        answers.push(read_answer(&line, answer.request_line())?);
    }
    one_each(answers, count, answer.request_line())
}

/// What became of one message.
fn read_answer(line: &[u8], request_line: &str) -> Result<Result<ReceiptView, Box<Problem>>, RemoteError> {
    let sent: SentLine = serde_json::from_slice(line).map_err(|error| malformed(request_line, error))?;
    Ok(sent.receipt())
}

/// The answers, if there is one to each message.
fn one_each(
    mut answers: BatchAnswers,
    count: usize,
    request_line: &str,
) -> Result<BatchAnswers, RemoteError> {
    // What went wrong in the midst of the lines ends the answers; the lines behind it were not taken.
    if let Some(Err(problem)) = answers.last().filter(|_| answers.len() < count) {
        let rest = vec![Err(problem.clone()); count - answers.len()];
        answers.extend(rest);
    }
    match answers.len() == count {
        true => Ok(answers),
        false => Err(malformed(request_line, format!("{count} messages, {} answers", answers.len()))),
    }
}

fn all_accepted(answers: BatchAnswers) -> Result<Vec<ReceiptView>, RemoteError> {
    let answers: Result<Vec<ReceiptView>, Box<Problem>> = answers.into_iter().collect();
    answers.map_err(RemoteError::Problem)
}
