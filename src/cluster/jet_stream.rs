//! A stream of JetStream as the log of a partition: an entry is a message, and its position is its sequence in the stream.

use std::sync::Arc;
use std::time::Duration;

use async_nats::Client;
use async_nats::HeaderMap;
use async_nats::HeaderValue;
use async_nats::Message;
use async_nats::Request;
use async_nats::jetstream::Context;
use async_nats::jetstream::message::StreamMessage;
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::stream::DiscardPolicy;
use async_nats::jetstream::stream::RawMessageErrorKind;
use async_nats::jetstream::stream::RetentionPolicy;
use async_nats::jetstream::stream::StorageType;
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use futures_util::StreamExt;
use serde::Deserialize;
use serde_json::json;
use tokio::runtime::Handle;

use crate::clock::SystemClock;
use crate::cluster::connection::in_time;
use crate::cluster::connection::is_connected;
use crate::cluster::entry_version::EntryVersion;
use crate::cluster::error::ClusterError;
use crate::cluster::options::ClusterOptions;
use crate::cluster::signals::NodeSignal;
use crate::cluster::signals::NodeSignals;
use crate::cluster::stop::ClusterStop;
use crate::cluster::stop::STOPPED;
use crate::engine::CommitStats;
use crate::engine::log::AppendAnswer;
use crate::engine::log::Bounds;
use crate::engine::log::CommitMeter;
use crate::engine::log::EachEntry;
use crate::engine::log::Entry;
use crate::engine::log::LogServer;
use crate::engine::log::ReadError;
use crate::error::Fault;
use crate::limits;
use crate::mutex::Mutex;

/// How long an answer is waited for before the same is asked again.
const ANSWER: Duration = Duration::from_secs(2);

/// The pause before the first attempt after the first, and the longest; each is twice the one before.
const PAUSE: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Entries that are asked for at once at most.
const READ_ENTRIES: usize = 256;

/// Bytes of entries that are asked for at once: any entry fits.
const READ_BYTES: usize = limits::LOG_ENTRY_BYTES + 64 * 1024;

/// What JetStream takes of a message beside the entry.
const HEADERS_BYTES: usize = 1024;

/// The codes with which a server refuses an append that expects another sequence. They are matched by number, because the
/// client library has a name for the first of them only.
const WRONG_LAST_SEQUENCE: [u64; 2] = [10071, 10164];

/// A stream of JetStream.
pub(crate) struct JetStreamLog {
    runtime: Handle,
    client: Client,
    stream: Stream,
    name: String,
    subject: String,
    /// What is told whenever an entry is appended.
    signals: NodeSignals,
    node: String,
    partition: u16,
    version: EntryVersion,
    stop: ClusterStop,
    meter: CommitMeter,
    /// How often in a row the servers have not taken an entry, and what they last said.
    refused: Mutex<(u32, String)>,
}

/// What a server answers to a message for a stream.
#[derive(Debug, Deserialize)]
struct PubAck {
    #[serde(default)]
    seq: u64,
    error: Option<ApiError>,
}

#[derive(Debug, Deserialize)]
struct ApiError {
    #[serde(default)]
    err_code: u64,
    #[serde(default)]
    description: String,
}

impl JetStreamLog {
    /// Makes the stream of a partition, or opens it if it is there.
    ///
    /// # Errors
    /// [`ClusterError`] when the servers refuse, or when the stream is not as this would make it.
    pub(crate) async fn open(
        client: &Client,
        context: &Context,
        options: &ClusterOptions,
        partition: u16,
        version: EntryVersion,
        stop: ClusterStop,
    ) -> Result<JetStreamLog, ClusterError> {
        let wanted = config(options, partition);
        let name = wanted.name.clone();
        let refused =
            |error: &dyn std::fmt::Display| ClusterError::Servers(format!("stream {name}: {error}"));
        let stream = context.get_or_create_stream(wanted.clone()).await.map_err(|error| refused(&error))?;
        if let Some(what) = difference(&stream.cached_info().config, &wanted) {
            return Err(ClusterError::Different { cluster: options.cluster.clone(), what });
        }
        let (runtime, subject) = (Handle::current(), options.subject(partition));
        let (signals, node) = (NodeSignals::new(client.clone(), &options.cluster), options.node.clone());
        Ok(JetStreamLog {
            runtime,
            client: client.clone(),
            stream,
            name,
            subject,
            signals,
            node,
            partition,
            version,
            stop,
            meter: CommitMeter::new(Arc::new(SystemClock::default())),
            refused: Mutex::default(),
        })
    }

    /// How many entries there are, and how many bytes they take.
    ///
    /// # Errors
    /// What the servers say.
    pub(crate) async fn size(&self) -> Result<(u64, u64), String> {
        let info = self.asked(self.stream.get_info()).await?;
        Ok((info.state.messages, info.state.bytes))
    }

    async fn bounds(&self) -> Result<Bounds, String> {
        let info = self.asked(self.stream.get_info()).await?;
        Ok(Bounds { first: info.state.first_sequence.max(1), last: info.state.last_sequence })
    }

    /// What the servers say, if one is connected, and in time.
    async fn asked<T, E: std::fmt::Display>(
        &self,
        asked: impl Future<Output = Result<T, E>>,
    ) -> Result<T, String> {
        match is_connected(&self.client) {
            true => in_time(limits::NATS_ANSWER, asked).await,
            false => Err(NOT_CONNECTED.to_owned()),
        }
    }

    async fn message(&self, position: u64) -> Result<Option<StreamMessage>, String> {
        let found = async {
            match self.stream.get_raw_message(position).await {
                Ok(message) => Ok(Some(message)),
                Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(None),
                Err(error) => Err(error),
            }
        };
        self.asked(found).await
    }

    /// Reads as many entries from a position on as come in one answer. Any server with a copy of the stream gives it, and
    /// nobody has to remember a reader.
    async fn read(&self, position: u64, each: &mut EachEntry<'_>) -> Result<(), ReadError> {
        let server = |error: &dyn std::fmt::Display| ReadError::Server(error.to_string());
        if self.stop.is_said() {
            return Err(server(&STOPPED));
        }
        let inbox = self.client.new_inbox();
        let asked = self.asked(self.client.subscribe(inbox.clone())).await;
        let mut answers = asked.map_err(|error| server(&error))?;
        let ask = json!({ "seq": position, "batch": READ_ENTRIES, "max_bytes": READ_BYTES });
        let subject = format!("$JS.API.DIRECT.GET.{}", self.name);
        let asked = self.client.publish_with_reply(subject, inbox, ask.to_string().into());
        self.asked(asked).await.map_err(|error| server(&error))?;
        loop {
            let next = tokio::time::timeout(ANSWER, answers.next()).await;
            let message = next.ok().flatten().ok_or_else(|| server(&"no answer came in time"))?;
            match message.status.map(|status| status.as_u16()) {
                None => {}
                Some(END_OF_BATCH | NOTHING_THERE) => return Ok(()),
                Some(status) => return Err(server(&format!("status {status}"))),
            }
            let position = position_of(&message).ok_or_else(|| server(&"an entry has no position"))?;
            check_version(message.headers.as_ref(), position, &self.version).map_err(ReadError::Entry)?;
            each(Entry { position, bytes: &message.payload }).map_err(ReadError::Entry)?;
        }
    }
}

/// With what status a server ends what it gives at once, and says that there is nothing.
const END_OF_BATCH: u16 = 204;
const NOTHING_THERE: u16 = 404;

const NOT_CONNECTED: &str = "no server is connected";

/// The position of an entry that was read.
fn position_of(message: &Message) -> Option<u64> {
    message.headers.as_ref()?.get("Nats-Sequence")?.as_str().parse().ok()
}

/// The header that names the version of an entry; without it, it is the first.
const ENTRY_VERSION_HEADER: &str = "Seriatim-Version";

/// Sees to it that an entry is of a version that is read here.
fn check_version(headers: Option<&HeaderMap>, position: u64, version: &EntryVersion) -> Result<(), Fault> {
    let said = headers.and_then(|headers| headers.get(ENTRY_VERSION_HEADER));
    match said.map(HeaderValue::as_str) {
        None => Ok(()),
        Some(said) if said.parse().is_ok_and(|said| version.reads(said)) => Ok(()),
        Some(said) => Err(Fault::Log(format!(
            "entry {position} is of version {said}, and this node reads version {}: it needs a newer seriatim",
            version.newest()
        ))),
    }
}

/// The stream of a partition.
fn config(options: &ClusterOptions, partition: u16) -> Config {
    Config {
        name: options.stream(partition),
        subjects: vec![options.subject(partition)],
        description: Some(format!(
            "the log of partition {partition} of the seriatim cluster {}",
            options.cluster
        )),
        storage: StorageType::File,
        num_replicas: options.replicas,
        retention: RetentionPolicy::Limits,
        discard: DiscardPolicy::New,
        deny_delete: true,
        allow_direct: true,
        max_bytes: -1,
        max_messages: -1,
        max_messages_per_subject: -1,
        max_message_size: -1,
        ..Config::default()
    }
}

/// What of a stream that is there is not as it has to be.
fn difference(found: &Config, wanted: &Config) -> Option<String> {
    let unlimited = |limit: i64| limit <= 0;
    let problems = [
        (found.subjects != wanted.subjects, "it has other subjects"),
        (found.storage != StorageType::File, "it is not stored in files"),
        (found.num_replicas < wanted.num_replicas, "it has fewer replicas than are asked for"),
        (found.retention != RetentionPolicy::Limits, "it does not keep what was read"),
        (found.discard != DiscardPolicy::New, "it discards old messages when it is full"),
        (!found.deny_delete, "messages of it can be deleted"),
        (found.deny_purge, "it cannot be trimmed"),
        (!found.allow_direct, "its copies cannot be read directly"),
        (!found.max_age.is_zero(), "it drops messages by their age"),
        (!unlimited(found.max_bytes) || !unlimited(found.max_messages), "its size is limited"),
        (!unlimited(found.max_messages_per_subject), "its size is limited"),
        (!unlimited(found.max_message_size.into()), "the size of its messages is limited"),
        (found.no_ack, "it does not acknowledge what it takes"),
        (found.sealed, "it is sealed and takes nothing any more"),
        (found.sources.as_ref().is_some_and(|sources| !sources.is_empty()), "it has sources"),
        (found.mirror.is_some(), "it is a mirror"),
    ];
    let problem = problems.into_iter().find(|(is_so, _)| *is_so);
    problem.map(|(_, what)| format!("of the stream {}, {what}", wanted.name))
}

/// What a server's answer says of an entry.
fn read_answer(payload: &[u8]) -> AppendAnswer {
    match serde_json::from_slice(payload) {
        Ok(PubAck { error: None, seq }) if seq > 0 => AppendAnswer::Appended(seq),
        Ok(PubAck { error: Some(error), .. }) if WRONG_LAST_SEQUENCE.contains(&error.err_code) => {
            AppendAnswer::NotNext
        }
        Ok(PubAck { error: Some(error), .. }) => {
            AppendAnswer::Unknown(format!("{} (code {})", error.description, error.err_code))
        }
        _ => AppendAnswer::Unknown("the answer makes no sense".to_owned()),
    }
}

impl JetStreamLog {
    /// What attempts to append have cost.
    pub(crate) fn appends(&self) -> CommitStats {
        self.meter.read()
    }

    /// Why an entry waits for the servers, if one has waited for some time.
    pub(crate) fn trouble(&self) -> Option<String> {
        let refused = self.refused.lock();
        let (times, why) = &*refused;
        (*times >= limits::LOG_TROUBLE_ATTEMPTS)
            .then(|| format!("the servers have not taken an entry of its log, {times} times in a row: {why}"))
    }

    fn note_answer(&self, answer: &AppendAnswer) {
        let mut refused = self.refused.lock();
        *refused = match answer {
            AppendAnswer::Unknown(why) => (refused.0.saturating_add(1), why.clone()),
            _ => (0, String::new()),
        };
    }

    fn append_once(&self, entry: Entry<'_>) -> AppendAnswer {
        let max = self.client.server_info().max_payload.saturating_sub(HEADERS_BYTES);
        if max > 0 && entry.bytes.len() > max {
            return AppendAnswer::TooLarge { max };
        }
        let mut headers = HeaderMap::new();
        // The end of an entry is its checksum: no two entries have the same ID.
        let checksum = entry.bytes.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        headers.insert("Nats-Msg-Id", format!("{}-{checksum:016x}", entry.position));
        headers.insert("Nats-Expected-Stream", self.name.as_str());
        headers.insert("Nats-Expected-Last-Sequence", (entry.position - 1).to_string());
        if let Some(version) = self.version.in_header() {
            headers.insert(ENTRY_VERSION_HEADER, version.to_string());
        }
        if !is_connected(&self.client) {
            return AppendAnswer::Unknown(NOT_CONNECTED.to_owned());
        }
        let payload = Bytes::copy_from_slice(entry.bytes);
        let request = Request::new().headers(headers).payload(payload).timeout(Some(ANSWER));
        self.runtime.block_on(async {
            // The node may be stopping: what was asked of its engines before is still to be answered.
            let asked = in_time(ANSWER, self.client.send_request(self.subject.clone(), request)).await;
            let answer = match asked {
                Ok(answer) => read_answer(&answer.payload),
                Err(why) => AppendAnswer::Unknown(why),
            };
            if let AppendAnswer::Appended(position) = answer {
                let (node, partition) = (self.node.clone(), self.partition);
                self.signals.tell(&NodeSignal::Appended { node, partition, position }).await;
            }
            answer
        })
    }
}

impl LogServer for JetStreamLog {
    fn append(&self, entry: Entry<'_>) -> AppendAnswer {
        let answer = self.meter.measure(1, || self.append_once(entry));
        self.note_answer(&answer);
        answer
    }

    fn bounds(&self) -> Result<Bounds, String> {
        self.runtime.block_on(self.bounds())
    }

    fn entry_at(&self, position: u64) -> Result<Option<Vec<u8>>, String> {
        let found = self.runtime.block_on(self.message(position))?;
        Ok(found.map(|message| message.payload.to_vec()))
    }

    fn read_at(&self, position: u64) -> Result<Option<Vec<u8>>, ReadError> {
        let found = self.runtime.block_on(self.message(position)).map_err(ReadError::Server)?;
        let Some(message) = found else { return Ok(None) };
        check_version(Some(&message.headers), position, &self.version).map_err(ReadError::Entry)?;
        Ok(Some(message.payload.to_vec()))
    }

    fn read_from(&self, position: u64, each: &mut EachEntry<'_>) -> Result<(), ReadError> {
        self.runtime.block_on(self.read(position, each))
    }

    fn trim(&self, through: u64) -> Result<(), String> {
        let purge = self.stream.purge().sequence(through + 1);
        self.runtime.block_on(self.asked(async { purge.await })).map(drop)
    }

    fn pause(&self, attempt: u32) -> bool {
        let pause = PAUSE.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        !self.stop.wait(pause.min(PAUSE_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_does_not_take_every_entry_and_say_so_is_refused() {
        let options = ClusterOptions::new("orders", "first", "folder");
        let wanted = config(&options, 1);
        assert_eq!(difference(&wanted, &wanted), None);
        let found = [
            Config { max_message_size: 1_000, ..wanted.clone() },
            Config { no_ack: true, ..wanted.clone() },
            Config { sealed: true, ..wanted.clone() },
        ];
        for found in found {
            let what = difference(&found, &wanted).expect("it would wait for ever");
            assert!(what.starts_with("of the stream seriatim-orders-1, "), "{what}");
        }
    }

    #[test]
    fn an_entry_of_a_version_that_is_not_read_here_is_refused_by_its_header() {
        let version = EntryVersion::new(2);
        let says = |said: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ENTRY_VERSION_HEADER, said);
            check_version(Some(&headers), 7, &version).map_err(|fault| fault.to_string())
        };
        assert_eq!((says("1"), says("2")), (Ok(()), Ok(())));
        check_version(None, 7, &version).expect("without a header it is the first");
        check_version(Some(&HeaderMap::new()), 7, &version).expect("without a header it is the first");
        for newer in ["3", "later"] {
            let why = says(newer).unwrap_err();
            let said = format!("entry 7 is of version {newer}, and this node reads version 2");
            assert!(why.contains(&said), "{why}");
        }
    }

    #[test]
    fn only_an_answer_that_is_certain_counts() {
        let read = |text: &str| read_answer(text.as_bytes());
        assert_eq!(read(r#"{"stream": "s", "seq": 7}"#), AppendAnswer::Appended(7));
        assert_eq!(read(r#"{"stream": "s", "seq": 7, "duplicate": true}"#), AppendAnswer::Appended(7));
        for code in [10071, 10164] {
            let error =
                format!(r#"{{"error": {{"code": 400, "err_code": {code}, "description": "wrong last"}}}}"#);
            assert_eq!(read(&error), AppendAnswer::NotNext);
        }
        for text in [
            r#"{"error": {"code": 409, "err_code": 10158, "description": "duplicate message id is in process"}}"#,
            r#"{"error": {"code": 503, "err_code": 10008, "description": "not available"}}"#,
            r#"{"stream": "s"}"#,
            r#"{"seq": 0}"#,
            "{}",
            "",
        ] {
            assert!(matches!(read(text), AppendAnswer::Unknown(_)), "{text}");
        }
    }
}
