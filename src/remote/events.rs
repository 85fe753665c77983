//! What happens in a daemon, as server-sent events.

use bytes::Bytes;

use crate::api::MissedEvents;
use crate::api::views::EventView;
use crate::remote::cause::malformed;
use crate::remote::error::RemoteError;
use crate::remote::lines::ResponseLines;
use crate::shown::shown;

/// What happens, from the moment of the call on. Events are not stored: who does not listen has to look.
pub struct EventStream<'r> {
    lines: ResponseLines<'r>,
    fields: EventFields,
}

shown!(EventStream<'_> {});

/// Something from the stream.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Happening {
    /// Something happened.
    Event(Box<EventView>),
    /// This reader was too slow: the daemon did not keep so many events for it.
    Missed(u64),
}

impl<'r> EventStream<'r> {
    pub(crate) fn new(lines: ResponseLines<'r>) -> EventStream<'r> {
        EventStream { lines, fields: EventFields::default() }
    }

    /// Waits for what happens next; `None` once the daemon has ended the stream.
    ///
    /// # Errors
    /// [`RemoteError`].
    pub async fn next(&mut self) -> Result<Option<Happening>, RemoteError> {
        while let Some(line) = self.lines.next().await? {
            let Some((name, data)) = self.fields.read(&line) else { continue };
            let malformed = |error: serde_json::Error| malformed(self.lines.request_line(), error);
            let happening = match name.as_str() {
                "missed" => {
                    let missed: MissedEvents = serde_json::from_str(&data).map_err(malformed)?;
                    Happening::Missed(missed.missed)
                }
                _ => Happening::Event(Box::new(serde_json::from_str(&data).map_err(malformed)?)),
            };
            return Ok(Some(happening));
        }
        Ok(None)
    }
}

/// The fields of the event that is being read.
#[derive(Default)]
struct EventFields {
    name: String,
    data: String,
}

impl EventFields {
    /// Takes a line in; the name and data of an event when the line ended one.
    fn read(&mut self, line: &Bytes) -> Option<(String, String)> {
        let line = String::from_utf8_lossy(line);
        if line.is_empty() {
            let (name, data) = (std::mem::take(&mut self.name), std::mem::take(&mut self.data));
            return (!data.is_empty()).then_some((name, data));
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" if self.data.is_empty() => self.data.push_str(value),
            "data" => {
                self.data.push('\n');
                self.data.push_str(value);
            }
            // A comment keeps the connection alive; numbers are of no use where nothing is stored.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_ends_with_an_empty_line_and_comments_are_not_events() {
        let mut fields = EventFields::default();
        let lines = [": alive", "", "event: held", "id: 7", "data: {\"a\":", "data:1}", "", "data: 2", ""];
        let read: Vec<_> = lines.iter().filter_map(|line| fields.read(&Bytes::from(*line))).collect();
        assert_eq!(read, [("held".to_owned(), "{\"a\":\n1}".to_owned()), (String::new(), "2".to_owned())]);
    }

    // Only the client of NATS brings a clock of tokio's that can be moved.
    #[cfg(feature = "cluster")]
    #[tokio::test]
    async fn a_daemon_that_says_nothing_any_more_is_gone() {
        use std::time::Duration;

        use tokio::io::AsyncReadExt;
        use tokio::io::AsyncWriteExt;

        use crate::remote::Remote;

        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let remote = Remote::connect(&format!("http://{}", listener.local_addr().unwrap()), None).unwrap();
        let begin = async {
            let (mut socket, _) = listener.accept().await.unwrap();
            assert!(socket.read(&mut [0; 1024]).await.unwrap() > 0);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: listening\n\n";
            socket.write_all(head.as_bytes()).await.unwrap();
            socket
        };
        let (events, _silent) = tokio::join!(remote.events(None), begin);
        let mut events = events.unwrap();
        tokio::time::pause();
        let waited = tokio::time::timeout(Duration::from_secs(3_600), events.next()).await;
        let gone = waited.expect("it is not waited for any longer").unwrap_err();
        assert!(matches!(gone, RemoteError::Unreachable { .. }), "{gone}");
    }
}
