//! Lines of an input, read by a thread of their own: reading stdin blocks.

use std::io;
use std::io::BufRead;
use std::io::Read;
use std::thread;

use tokio::sync::mpsc;

use crate::cli::limits;

/// A line of an input.
pub(crate) struct InputLine {
    /// The first is 1.
    pub(crate) number: u64,
    pub(crate) bytes: Vec<u8>,
}

/// Lines as they come.
pub(crate) struct InputLines {
    receiver: mpsc::Receiver<io::Result<InputLine>>,
}

impl InputLines {
    /// Begins to read.
    pub(crate) fn read(input: Box<dyn BufRead + Send>) -> io::Result<InputLines> {
        let (sender, receiver) = mpsc::channel(limits::FEED_LINES_AHEAD);
        // Not joined: nothing ends a read of stdin but the end of the process.
        thread::Builder::new().name("input".to_owned()).spawn(move || read_all(input, &sender))?;
        Ok(InputLines { receiver })
    }

    /// Waits for the next line; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<io::Result<InputLine>> {
        self.receiver.recv().await
    }

    /// The next line, if there is one already.
    pub(crate) fn next_at_once(&mut self) -> Option<io::Result<InputLine>> {
        self.receiver.try_recv().ok()
    }
}

fn read_all(mut input: Box<dyn BufRead + Send>, sender: &mpsc::Sender<io::Result<InputLine>>) {
    for number in 1.. {
        let line = read_one(&mut *input, number);
        let goes_on = matches!(line, Ok(Some(_)));
        let Some(line) = line.transpose() else { return };
        if sender.blocking_send(line).is_err() || !goes_on {
            return;
        }
    }
}

fn read_one(input: &mut (dyn BufRead + Send), number: u64) -> io::Result<Option<InputLine>> {
    let mut bytes = Vec::new();
    input.take(limits::LINE_BYTES_MAX).read_until(b'\n', &mut bytes)?;
    if bytes.len() as u64 == limits::LINE_BYTES_MAX {
        let problem = format!("line {number} has more than {} bytes", limits::LINE_BYTES_MAX);
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok((!bytes.is_empty()).then_some(InputLine { number, bytes }))
}
