//! The answer to a batch as it grows: held back until it is whole or large, then sent as far as it goes.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::api::Problem;
use crate::inbound::inflow::BodyRefusal;
use crate::limits;
use crate::server::answer::HttpRefusal;

/// Where a batch puts its answers.
pub(crate) struct AnswerWriter {
    sender: mpsc::UnboundedSender<AnswerPart>,
    /// Room for answers that nobody has taken, in KiB.
    room: Arc<Semaphore>,
}

/// Why a batch ends before its end.
pub(crate) enum BatchStop {
    /// Nobody listens to its answers any more.
    Unheard,
    /// The rest of it cannot be read.
    Refused(HttpRefusal),
}

impl From<BodyRefusal> for BatchStop {
    fn from(refusal: BodyRefusal) -> BatchStop {
        BatchStop::Refused(refusal.into())
    }
}

impl From<HttpRefusal> for BatchStop {
    fn from(refused: HttpRefusal) -> BatchStop {
        BatchStop::Refused(refused)
    }
}

enum AnswerPart {
    Answers {
        answers: Bytes,
        _room: Option<OwnedSemaphorePermit>,
    },
    /// Nothing more comes, because this went wrong before the given line.
    Refused(u64, HttpRefusal),
}

/// The other end of an outbox.
pub(crate) struct AnswerStream {
    receiver: mpsc::UnboundedReceiver<AnswerPart>,
}

/// An outbox and its other end.
pub(crate) fn outbox() -> (AnswerWriter, AnswerStream) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let room = Arc::new(Semaphore::new(limits::HTTP_ANSWERS_BYTES / 1024));
    (AnswerWriter { sender, room }, AnswerStream { receiver })
}

impl AnswerWriter {
    /// Puts answers, waiting for room.
    pub(crate) async fn put(&self, answers: Vec<u8>) -> Result<(), BatchStop> {
        let kib = answers.len().div_ceil(1024).min(limits::HTTP_ANSWERS_BYTES / 1024);
        let kib = u32::try_from(kib).unwrap_or(u32::MAX);
        let room = tokio::select! {
            room = self.room.clone().acquire_many_owned(kib) => room.ok(),
            () = self.sender.closed() => return Err(BatchStop::Unheard),
        };
        self.sender
            .send(AnswerPart::Answers { answers: Bytes::from(answers), _room: room })
            .map_err(|_| BatchStop::Unheard)
    }

    /// Says that the batch has ended before its end.
    pub(crate) fn end_refused(&self, line: u64, refused: HttpRefusal) -> Result<(), BatchStop> {
        self.sender.send(AnswerPart::Refused(line, refused)).map_err(|_| BatchStop::Unheard)
    }
}

impl AnswerStream {
    /// The answer, once it is whole, or large enough that its first part should leave. What went wrong before any line
    /// was answered is the answer itself.
    pub(crate) async fn into_body(mut self, batch: AbortOnDropHandle<()>) -> Result<Body, HttpRefusal> {
        let mut held = VecDeque::new();
        let mut bytes = 0;
        while bytes < limits::HTTP_ANSWER_HELD_BYTES {
            match self.receiver.recv().await {
                Some(AnswerPart::Answers { answers, .. }) => {
                    bytes += answers.len();
                    held.push_back(answers);
                }
                Some(AnswerPart::Refused(_, refused)) if held.is_empty() => return Err(refused),
                Some(AnswerPart::Refused(line, refused)) => held.push_back(last_line(line, &refused)),
                None => {
                    let whole = held.make_contiguous().concat();
                    return Ok(Body::from(whole));
                }
            }
        }
        let rest = stream::unfold((self, held, batch), |(mut answers, mut held, batch)| async move {
            let next = match held.pop_front() {
                Some(next) => next,
                None => answers.next().await?,
            };
            Some((Ok::<_, Infallible>(next), (answers, held, batch)))
        });
        Ok(Body::from_stream(rest))
    }

    async fn next(&mut self) -> Option<Bytes> {
        match self.receiver.recv().await? {
            AnswerPart::Answers { answers, .. } => Some(answers),
            AnswerPart::Refused(line, refused) => Some(last_line(line, &refused)),
        }
    }
}

fn last_line(line: u64, refused: &HttpRefusal) -> Bytes {
    let mut text = Vec::new();
    write_problem(&mut text, line, &refused.0);
    Bytes::from(text)
}

/// Writes why a line was refused.
pub(crate) fn write_problem(answers: &mut Vec<u8>, line: u64, problem: &Problem) {
    write!(answers, "{{\"line\":{line},\"error\":").expect("a vector takes what is written");
    serde_json::to_writer(&mut *answers, problem).expect("a problem is JSON");
    answers.extend_from_slice(b"}\n");
}
