//! `seriatim import --source`: the rows of a table, once.

use std::io;
use std::io::Read;
use std::path::Path;

use seriatim::api::SendEnvelope;
use seriatim::daemon::OutboxRows;
use seriatim::definition::Definitions;
use tokio::sync::mpsc;

use crate::cli::failure::CliFailure;
use crate::cli::feed::FeedLine;
use crate::cli::feed::LineFeed;
use crate::cli::feed::why_unread;

/// Sends every row of the table that the queue's definition names, as lines are sent: in order, in batches, counted.
pub(crate) async fn import_source(folder: &Path, feed: LineFeed) -> Result<bool, CliFailure> {
    let definitions = Definitions::load(folder).map_err(|error| CliFailure::Argument(error.to_string()))?;
    let definition = definitions.get(&feed.queue);
    let source = definition.and_then(|definition| Some((definition.outbox.as_ref()?, &definition.rule)));
    let Some((outbox, rule)) = source else {
        let (folder, queue) = (folder.display(), &feed.queue);
        return Err(CliFailure::Argument(format!(
            "no definition in {folder} names a [source] for queue {queue}"
        )));
    };
    let rows = OutboxRows::new(outbox, rule).map_err(|misuse| CliFailure::Argument(misuse.to_string()))?;
    let (sender, receiver) = mpsc::channel(1);
    // Ends when the table does, or when nobody reads any more.
    tokio::spawn(write_lines(rows, sender));
    let input = Box::new(SourceLines { receiver, piece: Vec::new(), at: 0 });
    let read = |line: &[u8]| serde_json::from_slice(line).map(FeedLine::Message);
    feed.run(input, &|line| read(line).map_err(|error| why_unread(&error))).await
}

/// Writes rows as lines of JSON; an error is what a reader gets instead of the end.
async fn write_lines(mut rows: OutboxRows, sender: mpsc::Sender<io::Result<Vec<u8>>>) {
    loop {
        let piece = match rows.next().await {
            Ok(messages) if messages.is_empty() => return,
            Ok(messages) => messages.iter().try_fold(Vec::new(), |mut piece, message| {
                serde_json::to_writer(&mut piece, &SendEnvelope::show(message))?;
                piece.push(b'\n');
                Ok(piece)
            }),
            Err(error) => Err(io::Error::other(error)),
        };
        let is_over = piece.is_err();
        if sender.send(piece).await.is_err() || is_over {
            return;
        }
    }
}

/// Lines that another task writes.
struct SourceLines {
    receiver: mpsc::Receiver<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
    at: usize,
}

impl Read for SourceLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.piece.len() {
            let Some(piece) = self.receiver.blocking_recv() else { return Ok(0) };
            (self.piece, self.at) = (piece?, 0);
        }
        let count = buffer.len().min(self.piece.len() - self.at);
        buffer[..count].copy_from_slice(&self.piece[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
