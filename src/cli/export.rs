//! `seriatim export` and `import`: messages as lines of JSON, and back.

use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Read;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use seriatim::Clock;
use seriatim::SystemClock;
use seriatim::Timestamp;
use seriatim::api::MessagePage;
use seriatim::api::SendEnvelope;
use seriatim::api::WireDuration;
use seriatim::api::options::OrderWord;
use seriatim::api::views::MessageEnvelope;
use seriatim::api::views::MessageWord;
use seriatim::remote::Remote;
use seriatim::remote::RemoteError;

use crate::cli::arguments::keep::ExportArguments;
use crate::cli::arguments::keep::ImportArguments;
use crate::cli::chains::ExportedChains;
use crate::cli::connect::connect;
use crate::cli::cursors::WorkflowCursor;
use crate::cli::cursors::cursors_of;
use crate::cli::durable_file::private;
use crate::cli::durable_file::sync_folder_of;
use crate::cli::failure::CliFailure;
use crate::cli::feed::FeedLine;
use crate::cli::feed::LineFeed;
use crate::cli::feed::why_unread;
use crate::cli::import_source::import_source;
use crate::cli::limits;
use crate::cli::out::Stdout;
use crate::cli::out::remark;
use crate::cli::progress::Progress;
use crate::cli::word::counted;

/// Writes where the workflows of a queue stand, if it is in order of position, and every stored message, in order of number. Nothing
/// is taken: messages that come or go meanwhile may or may not be among them.
pub(crate) async fn export(arguments: ExportArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    // Read before the messages: nothing that is settled meanwhile is left out as settled and not sent either.
    let cursors = cursors_of(&remote, &arguments.queue).await;
    let cursors = cursors.map_err(CliFailure::to(format!("export {}", arguments.queue)))?;
    let (mut from, mut count) = (arguments.from, 0);
    let mut page = page_from(&remote, &arguments.queue, from).await?;
    // Once the daemon has answered: a name that was mistyped leaves no file.
    let file = arguments.output.as_deref().map(create).transpose()?;
    let mut output = ExportOutput::new(file.as_ref(), arguments.output.as_deref());
    if arguments.from == 1 {
        output.write_all(&cursors.plain)?;
    }
    let (progress, mut chains) = (Progress::new("messages"), ExportedChains::default());
    loop {
        for message in page.messages {
            if arguments.no_dead_letters && message.status == MessageWord::DeadLettered {
                continue;
            }
            output.write(&chains.pass(message.with_exact_body()?, arguments.no_dead_letters))?;
            count += 1;
        }
        progress.show(count);
        match page.from.filter(|next| *next > from) {
            Some(next) => from = next,
            None => break,
        }
        page = page_from(&remote, &arguments.queue, from).await?;
    }
    if arguments.from > 1 {
        // One of which messages were set aside in the run that goes on here, and are no more, was in none of its lists.
        output.write_all(&cursors.plain)?;
    }
    output.write_all(&cursors.around)?;
    output.end()?;
    progress.end();
    if let (Some(file), Some(path)) = (&file, &arguments.output) {
        file.sync_all().and_then(|()| sync_folder_of(path)).map_err(|error| named(path, &error))?;
        Stdout::new(arguments.daemon.json).say(format!("{} exported", counted(count, "message")))?;
    }
    Ok(true)
}

async fn page_from(remote: &Remote, queue: &str, from: u64) -> Result<MessagePage, CliFailure> {
    let page = remote.raw_messages(queue, from, limits::EXPORT_PAGE).await;
    let page = page.map_err(CliFailure::to(format!("export {queue}")));
    page.inspect_err(|_| remark(format!("go on with --from {from}")))
}

/// A new file for the lines.
fn create(path: &Path) -> io::Result<File> {
    private().create_new(true).open(path).map_err(|error| named(path, &error))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("export to {}: {error}", path.display()))
}

/// Where lines go: stdout or a file, which is named when it cannot be written.
struct ExportOutput<'a> {
    writer: Box<dyn Write + 'a>,
    path: Option<&'a Path>,
}

impl<'a> ExportOutput<'a> {
    fn new(file: Option<&'a File>, path: Option<&'a Path>) -> ExportOutput<'a> {
        let writer: Box<dyn Write + 'a> = match file {
            None => Box::new(BufWriter::new(io::stdout())),
            Some(file) => Box::new(BufWriter::new(file)),
        };
        ExportOutput { writer, path }
    }

    fn write(&mut self, line: &impl Serialize) -> io::Result<()> {
        // As what it is: that nobody reads any more is no failure, and a full disk is one of the file.
        let written = serde_json::to_writer(&mut self.writer, line).map_err(io::Error::from);
        let written = written.and_then(|()| self.writer.write_all(b"\n"));
        written.map_err(|error| self.explained(error))
    }

    fn write_all(&mut self, lines: &[impl Serialize]) -> io::Result<()> {
        lines.iter().try_for_each(|line| self.write(line))
    }

    /// Writes what is still to be written.
    fn end(&mut self) -> io::Result<()> {
        self.writer.flush().map_err(|error| self.explained(error))
    }

    fn explained(&self, error: io::Error) -> io::Error {
        match self.path {
            Some(path) => named(path, &error),
            None => error,
        }
    }
}

/// How long a message lives that has expired before it was imported.
const SHORTEST_LIFE: Duration = Duration::from_millis(1);

/// Sends the messages of an export.
pub(crate) async fn import(arguments: ImportArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::of_work(arguments.daemon.json);
    if let Some(folder) = &arguments.source {
        let (queue, from_line) = (arguments.queue, arguments.feed.from_line);
        let feed = LineFeed { remote, queue, from_line, sets_cursors_last: false, out };
        return import_source(folder, feed).await;
    }
    let input: Box<dyn Read + Send> = match &arguments.file {
        None => Box::new(io::stdin()),
        Some(path) => {
            let file = File::open(path);
            let file =
                file.map_err(|error| CliFailure::Argument(format!("open {}: {error}", path.display())))?;
            Box::new(file)
        }
    };
    let reading = ExportReader {
        revives: arguments.revive_dead_letters,
        order: order_of(&remote, &arguments.queue).await?,
        now: SystemClock::default().now(),
    };
    let (queue, from_line) = (arguments.queue, arguments.feed.from_line);
    // A dead letter is revived in its place, which is before the cursor.
    let feed = LineFeed { remote, queue, from_line, sets_cursors_last: arguments.revive_dead_letters, out };
    feed.run(input, &|line| read(line, reading)).await
}

/// The order of a queue; none for who may only send, and so may not ask: each line then has to say itself that it is the first.
async fn order_of(remote: &Remote, queue: &str) -> Result<Option<OrderWord>, CliFailure> {
    match remote.queue(queue).await {
        Ok(queue) => Ok(queue.options.order),
        Err(RemoteError::Problem(problem)) if problem.code == "forbidden" => Ok(None),
        Err(error) => Err(CliFailure::to(format!("look at the queue {queue}"))(error)),
    }
}

/// How lines of an export are read.
#[derive(Clone, Copy, Default)]
struct ExportReader {
    /// Dead letters are sent like the others.
    revives: bool,
    /// The order of the queue, if it is known.
    order: Option<OrderWord>,
    /// When this import began.
    now: Timestamp,
}

impl ExportReader {
    /// Whether messages wait for those of places before theirs.
    fn has_places(self) -> bool {
        matches!(self.order, Some(OrderWord::Position | OrderWord::After))
    }

    /// Which message one is sent after, and whether it is the first: what stood before it where it was exported is sent, too, and not
    /// what it names, if that was settled. One that the chain had not reached waits for what it names.
    fn place_of(self, message: &MessageEnvelope) -> (Option<String>, bool) {
        let place = message.chain_place.as_ref();
        if let Some(place) = place.filter(|_| matches!(self.order, None | Some(OrderWord::After))) {
            let follows = if self.revives { &place.follows } else { &place.follows_live };
            return (follows.clone(), follows.is_none());
        }
        let is_in_chain = self.order == Some(OrderWord::After) && message.workflow_id.is_some();
        (message.after.clone(), is_in_chain && message.after.is_none())
    }
}

/// A line of an export as a message to send: in its workflow and position, under its message ID. A scheduled message
/// stays scheduled, and one that expires does so at its instant; one that has expired is left out, unless others are behind it by their
/// places. Locks, counts and attempts stay behind.
fn read(line: &[u8], reading: ExportReader) -> Result<FeedLine, String> {
    if let Ok(cursor) = serde_json::from_slice::<WorkflowCursor>(line) {
        return Ok(FeedLine::Cursor(cursor));
    }
    Ok(read_message(line, reading)?.map_or(FeedLine::LeftOut, |message| FeedLine::Message(Box::new(message))))
}

fn read_message(line: &[u8], reading: ExportReader) -> Result<Option<SendEnvelope>, String> {
    let message: MessageEnvelope = serde_json::from_slice(line).map_err(|error| why_unread(&error))?;
    if message.status == MessageWord::DeadLettered && (!reading.revives || message.is_original()) {
        return Ok(None);
    }
    let schedule_at = message.until.filter(|_| message.status == MessageWord::Scheduled);
    // A time to live begins when the message could be handed out.
    let begins = schedule_at.map_or(reading.now, |due| due.0.max(reading.now));
    // A dead letter may be one because it expired: revived, it lives as long as the queue lets it.
    let expires_at = message.expires_at.filter(|_| message.status != MessageWord::DeadLettered);
    let left = expires_at.map(|expires_at| expires_at.0.since(begins));
    // It expires there at once, and what is behind it goes on.
    let left = left.map(|left| if reading.has_places() { left.max(SHORTEST_LIFE) } else { left });
    if left.is_some_and(|left| left.is_zero()) {
        return Ok(None);
    }
    let (after, first) = reading.place_of(&message);
    Ok(Some(SendEnvelope {
        queue: None,
        workflow_id: message.workflow_id,
        position: message.position,
        after,
        first,
        message_id: message.message_id,
        subject: message.subject,
        content_type: message.content_type,
        correlation_id: message.correlation_id,
        reply_to: message.reply_to,
        properties: message.properties,
        time_to_live: left.map(WireDuration),
        schedule_at,
        delay: None,
        body: message.body,
        body_text: message.body_text,
        body_base64: message.body_base64,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = br#"{"queue":"orders","sequence_number":7,"workflow_id":"order-17","position":3,
        "message_id":"m","accepted_at":1,"status":"dead_lettered","dead_letter":{"reason":"r","at":1},"delivery_count":3,
        "attempts":[{"delivery_count":1,"at":1,"lasted":"1s","reason":"no"}],"body":{"a":1.10},"properties":{"x":1}}"#;

    #[test]
    fn an_exported_message_goes_back_to_its_workflow_and_position() {
        let revives = ExportReader { revives: true, ..ExportReader::default() };
        let message = read_message(LINE, revives).unwrap().unwrap();
        assert_eq!((message.workflow_id.as_deref(), message.position), (Some("order-17"), Some(3)));
        assert_eq!((message.message_id.as_deref(), message.properties.len()), (Some("m"), 1));
        assert_eq!(message.body.unwrap().get(), r#"{"a":1.10}"#);
        assert!(!message.first);
        let in_chains = ExportReader { order: Some(OrderWord::After), ..revives };
        assert!(read_message(LINE, in_chains).unwrap().unwrap().first);
        assert!(read_message(LINE, ExportReader::default()).unwrap().is_none(), "a dead letter stays one");
    }

    #[test]
    fn the_original_of_an_edited_message_is_not_revived() {
        let revives = ExportReader { revives: true, ..ExportReader::default() };
        let line = |reason, property| {
            let line = String::from_utf8_lossy(LINE).replace("\"reason\":\"r\"", reason);
            line.replace("\"properties\":{\"x\":1}", property)
        };
        let (reason, property) = ("\"reason\":\"edited\"", "\"properties\":{\"seriatim-edited-as\":9}");
        let original = line(reason, property);
        assert!(matches!(read(original.as_bytes(), revives), Ok(FeedLine::LeftOut)));
        for sent in [line(reason, "\"properties\":{}"), line("\"reason\":\"r\"", property)] {
            assert!(matches!(read(sent.as_bytes(), revives), Ok(FeedLine::Message(_))), "{sent}");
        }
    }

    #[test]
    fn an_imported_message_expires_when_it_would_have_expired() {
        let line =
            br#"{"queue":"orders","sequence_number":7,"accepted_at":1,"status":"ready","delivery_count":0,
            "attempts":[],"expires_at":5000,"body":1}"#;
        let at = |millis| ExportReader { now: Timestamp::from_millis(millis), ..ExportReader::default() };
        let message = read_message(line, at(2_000)).unwrap().unwrap();
        assert_eq!(message.time_to_live, Some(WireDuration(Duration::from_secs(3))));
        assert!(read_message(line, at(5_000)).unwrap().is_none(), "it has expired meanwhile");
        for order in [OrderWord::Position, OrderWord::After] {
            let late = ExportReader { order: Some(order), ..at(5_000) };
            let message = read_message(line, late).unwrap().expect("nobody waits for its place");
            assert_eq!(message.time_to_live.map(|left| left.0), Some(SHORTEST_LIFE));
        }
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named_and_an_end_of_reading_stays_one() {
        struct FailingWriter(io::ErrorKind);
        impl Write for FailingWriter {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(self.0.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let written = |kind, path| {
            let mut output = ExportOutput { writer: Box::new(FailingWriter(kind)), path };
            CliFailure::from(output.write(&1).unwrap_err())
        };
        let full = written(io::ErrorKind::StorageFull, Some(Path::new("/data/orders.ndjson")));
        assert!(full.to_string().contains("export to /data/orders.ndjson: "), "{full}");
        assert!(written(io::ErrorKind::BrokenPipe, None).is_broken_pipe());
    }

    #[test]
    fn what_is_no_message_says_why() {
        assert!(read_message(b"{", ExportReader::default()).unwrap_err().contains("it ends too early"));
    }
}
