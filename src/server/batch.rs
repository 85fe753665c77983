//! Many messages in one request, one a line: read, sent and answered at the same time, in order.

use std::collections::VecDeque;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;

use bytes::Buf;
use bytes::Bytes;
use bytes::BytesMut;
use futures_util::FutureExt;
use memchr::memchr;

use crate::api::Problem;
use crate::api::SendEnvelope;
use crate::engine::Queue;
use crate::engine::Receipt;
use crate::error::SendError;
use crate::inbound::inflow::BodyRefusal;
use crate::inbound::inflow::BodyRoom;
use crate::inbound::inflow::Inflow;
use crate::limits;
use crate::message::Message;
use crate::server::answer::HttpRefusal;
use crate::server::answer_writer::AnswerWriter;
use crate::server::answer_writer::BatchStop;
use crate::server::answer_writer::write_problem;
use crate::server::extract::read_json;
use crate::server::shared::SharedServer;

/// A batch that is being read and sent.
pub(crate) struct Batch {
    shared: SharedServer,
    queue: Queue,
    inflow: Inflow,
    lines: BatchLines,
    chunk: BatchChunk,
    /// Room for the chunk.
    room: BodyRoom,
    flights: VecDeque<Flight>,
    outbox: AnswerWriter,
    /// Lines that were answered.
    answered: u64,
    /// Whether no line is sent behind one that is refused for now, or of which it is not known whether it was accepted.
    in_order: bool,
    /// Why the rest is refused unread.
    refuses_rest: Option<Box<Problem>>,
}

/// Lines that go to the engine together.
#[derive(Default)]
struct BatchChunk {
    messages: Vec<Message>,
    /// What became of each line: `None` for one whose message is in the chunk.
    lines: Vec<Option<Box<Problem>>>,
    bytes: usize,
}

/// A chunk on its way to the disk.
struct Flight {
    lines: Vec<Option<Box<Problem>>>,
    sent: Pin<Box<dyn Future<Output = BatchReceipts> + Send>>,
    _room: BodyRoom,
}

type BatchReceipts = Result<Vec<Result<Receipt, SendError>>, SendError>;

/// What a step of a batch came upon.
enum Came {
    Data(Result<Option<Bytes>, BodyRefusal>),
    Sent(BatchReceipts),
}

impl Batch {
    pub(crate) fn new(
        shared: SharedServer,
        queue: Queue,
        inflow: Inflow,
        outbox: AnswerWriter,
        in_order: bool,
    ) -> Batch {
        let lines = BatchLines::new(&shared);
        let room = BodyRoom::new(&shared.reading.room);
        let (chunk, flights) = (BatchChunk::default(), VecDeque::new());
        let (answered, refuses_rest) = (0, None);
        Batch { shared, queue, inflow, lines, chunk, room, flights, outbox, answered, in_order, refuses_rest }
    }

    /// Reads, sends and answers until all is done, or until nobody listens any more.
    pub(crate) async fn run(mut self) {
        let ended = match self.read().await {
            Ok(()) => self.finish().await,
            Err(BatchStop::Refused(refused)) => match self.finish().await {
                Ok(()) => self.outbox.end_refused(self.answered + 1, refused),
                Err(stop) => Err(stop),
            },
            Err(stop) => Err(stop),
        };
        if ended.is_err() {
            tracing::debug!(queue = %self.queue.name(), "end a batch that nobody listens to any more");
        }
    }

    /// Reads to the end.
    async fn read(&mut self) -> Result<(), BatchStop> {
        loop {
            match self.came().await {
                Came::Data(data) => match data? {
                    Some(data) => {
                        self.lines.add(data)?;
                        self.take_lines(false).await?;
                    }
                    None => return self.take_lines(true).await,
                },
                Came::Sent(sent) => self.answer_lines(sent).await?,
            }
        }
    }

    /// Waits for more of the body, or for the first chunk to land. While one is under way, the next one fills up: a
    /// sender that is slow is not kept waiting, and one that is fast makes few commits.
    async fn came(&mut self) -> Came {
        if let Some(data) = self.inflow.next().now_or_never() {
            return Came::Data(data);
        }
        if self.flights.is_empty() && !self.chunk.lines.is_empty() {
            self.take_off();
        }
        match self.flights.front_mut() {
            None => Came::Data(self.inflow.next().await),
            Some(flight) => tokio::select! {
                biased;
                sent = &mut flight.sent => Came::Sent(sent),
                data = self.inflow.next() => Came::Data(data),
            },
        }
    }

    /// Takes all whole lines, the last one even without its end, if nothing comes behind it.
    async fn take_lines(&mut self, is_end: bool) -> Result<(), BatchStop> {
        while let Some(line) = self.lines.next(is_end) {
            let bytes = line.len();
            match self.read_line(&line) {
                Ok(message) => {
                    self.chunk.messages.push(message);
                    self.chunk.lines.push(None);
                    self.chunk.bytes += bytes;
                    self.room.grow_to(self.chunk.bytes)?;
                }
                Err(HttpRefusal(problem)) => self.chunk.lines.push(Some(problem)),
            }
            let is_full = self.chunk.lines.len() >= limits::SEND_BATCH_MAX
                || self.chunk.bytes >= limits::HTTP_CHUNK_BYTES;
            if is_full {
                self.take_off_in_turn().await?;
            }
        }
        Ok(())
    }

    fn read_line(&self, line: &[u8]) -> Result<Message, HttpRefusal> {
        match &self.refuses_rest {
            None => read_line(&self.shared, &self.queue, line),
            Some(problem) => Err(HttpRefusal(problem.clone())),
        }
    }

    /// Sends the chunk on its way once not too many others are. In order, one waits for the other: what becomes of it
    /// decides whether the next is sent.
    async fn take_off_in_turn(&mut self) -> Result<(), BatchStop> {
        let others_max = if self.in_order { 0 } else { limits::HTTP_CHUNKS_UNDER_WAY - 1 };
        while self.flights.len() > others_max {
            self.wait_for_first().await?;
        }
        self.take_off();
        Ok(())
    }

    /// Sends the chunk on its way. It is asked of the engine at once, so that chunks come there in order.
    fn take_off(&mut self) {
        let BatchChunk { messages, lines, .. } = std::mem::take(&mut self.chunk);
        let room = std::mem::replace(&mut self.room, BodyRoom::new(&self.shared.reading.room));
        let queue = self.queue.clone();
        let mut sent: Pin<Box<dyn Future<Output = BatchReceipts> + Send>> = match messages.is_empty() {
            true => Box::pin(std::future::ready(Ok(Vec::new()))),
            false => Box::pin(async move { queue.send_each(messages).await }),
        };
        if let Some(landed) = (&mut sent).now_or_never() {
            sent = Box::pin(std::future::ready(landed));
        }
        self.flights.push_back(Flight { lines, sent, _room: room });
    }

    async fn wait_for_first(&mut self) -> Result<(), BatchStop> {
        match self.flights.front_mut() {
            Some(flight) => {
                let sent = (&mut flight.sent).await;
                self.answer_lines(sent).await
            }
            None => Ok(()),
        }
    }

    /// Answers the lines of the first chunk under way.
    async fn answer_lines(&mut self, sent: BatchReceipts) -> Result<(), BatchStop> {
        let Some(flight) = self.flights.pop_front() else { return Ok(()) };
        let mut answers = Vec::with_capacity(28 * flight.lines.len());
        let mut sent = match sent {
            Ok(sent) => sent.into_iter(),
            // All of them came to the same end.
            Err(error) => vec![Err(error); flight.lines.len()].into_iter(),
        };
        for problem in flight.lines {
            self.answered += 1;
            let answer = match problem {
                Some(problem) => Err(problem),
                None => match sent.next().expect("every message has its answer") {
                    Ok(receipt) => Ok(receipt),
                    Err(error) => Err(Box::new(Problem::from(error))),
                },
            };
            match answer {
                Ok(receipt) => write_receipt(&mut answers, receipt),
                Err(problem) => {
                    write_problem(&mut answers, self.answered, &problem);
                    self.note_refused(problem);
                }
            }
        }
        self.outbox.put(answers).await
    }

    /// In order, what is behind a line that may be sent again is refused like it: one of which nobody knows whether it was
    /// accepted may be, too.
    fn note_refused(&mut self, problem: Box<Problem>) {
        if !self.in_order || !problem.may_come_again() || self.refuses_rest.is_some() {
            return;
        }
        self.chunk.messages.clear();
        for line in self.chunk.lines.iter_mut().filter(|line| line.is_none()) {
            *line = Some(problem.clone());
        }
        self.refuses_rest = Some(problem);
    }

    async fn finish(&mut self) -> Result<(), BatchStop> {
        if !self.chunk.lines.is_empty() {
            self.take_off_in_turn().await?;
        }
        while !self.flights.is_empty() {
            self.wait_for_first().await?;
        }
        Ok(())
    }
}

/// Reads one line: a message to send, placed as the queue's definition says.
pub(crate) fn read_line(shared: &SharedServer, queue: &Queue, line: &[u8]) -> Result<Message, HttpRefusal> {
    let envelope: SendEnvelope = read_json(line)?;
    if envelope.queue.as_deref().is_some_and(|other| other != queue.name().as_str()) {
        return Err(HttpRefusal::misuse("queue", "is another than the one that is sent to"));
    }
    Ok(shared.place.place(queue.name(), envelope.into_message()?)?)
}

/// Writes what became of a message.
pub(crate) fn write_receipt(answers: &mut Vec<u8>, receipt: Receipt) {
    let written = match receipt {
        Receipt::Accepted(number) => {
            writeln!(answers, "{{\"sequence_number\":{number},\"status\":\"accepted\"}}")
        }
        Receipt::Duplicate(number) => {
            writeln!(answers, "{{\"sequence_number\":{number},\"status\":\"duplicate\"}}")
        }
        Receipt::AlreadySettled => writeln!(answers, "{{\"status\":\"already_settled\"}}"),
        Receipt::DeadLettered(number) => {
            writeln!(answers, "{{\"sequence_number\":{number},\"status\":\"dead_lettered\"}}")
        }
    };
    written.expect("a vector takes what is written");
}

/// Lines as they come in.
pub(crate) struct BatchLines {
    bytes: BytesMut,
    /// Bytes in which no line's end was found.
    searched: usize,
    room: BodyRoom,
}

impl BatchLines {
    pub(crate) fn new(shared: &SharedServer) -> BatchLines {
        BatchLines { bytes: BytesMut::new(), searched: 0, room: BodyRoom::new(&shared.reading.room) }
    }

    pub(crate) fn add(&mut self, data: Bytes) -> Result<(), HttpRefusal> {
        self.room.grow_to(self.bytes.len() + data.len())?;
        self.bytes.extend_from_slice(&data);
        Ok(())
    }

    /// The next line that is not blank. At the end, what is left is a line.
    pub(crate) fn next(&mut self, is_end: bool) -> Option<Bytes> {
        loop {
            let end = memchr(b'\n', &self.bytes[self.searched..]);
            let line = match end {
                Some(at) => {
                    let line = self.bytes.split_to(self.searched + at).freeze();
                    self.bytes.advance(1);
                    line
                }
                None if is_end && !self.bytes.is_empty() => self.bytes.split().freeze(),
                None => {
                    self.searched = self.bytes.len();
                    return None;
                }
            };
            self.searched = 0;
            if !line.trim_ascii().is_empty() {
                return Some(line);
            }
        }
    }
}
