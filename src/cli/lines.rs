//! Lines of an input, read by a thread of their own: reading stdin blocks.

use std::io;
use std::io::BufRead;
use std::io::BufReader;
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

/// Lines that came together: as many as are there, so that slow input does not wait and fast input goes in large pieces.
pub(crate) type LineChunk = Vec<InputLine>;

/// Lines as they come.
pub(crate) struct InputLines {
    receiver: mpsc::Receiver<io::Result<LineChunk>>,
}

impl InputLines {
    /// Begins to read.
    pub(crate) fn read(input: Box<dyn Read + Send>) -> io::Result<InputLines> {
        let (sender, receiver) = mpsc::channel(1);
        let input = BufReader::with_capacity(limits::INPUT_BUFFER_BYTES, input);
        // Not joined: nothing ends a read of stdin but the end of the process.
        thread::Builder::new().name("input".to_owned()).spawn(move || read_all(input, &sender))?;
        Ok(InputLines { receiver })
    }

    /// Waits for the next lines; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<io::Result<LineChunk>> {
        self.receiver.recv().await
    }
}

fn read_all(mut input: BufReader<Box<dyn Read + Send>>, sender: &mpsc::Sender<io::Result<LineChunk>>) {
    let mut number = 0;
    loop {
        let chunk = read_chunk(&mut input, &mut number);
        let goes_on = matches!(&chunk, Ok(lines) if !lines.is_empty());
        if chunk.as_ref().is_ok_and(Vec::is_empty) || sender.blocking_send(chunk).is_err() || !goes_on {
            return;
        }
    }
}

/// Waits for a line, and takes those that have come with it.
fn read_chunk<R: Read>(input: &mut BufReader<R>, number: &mut u64) -> io::Result<LineChunk> {
    let (mut chunk, mut bytes) = (Vec::new(), 0);
    while let Some(line) = read_line(input, *number + 1)? {
        *number += 1;
        bytes += line.bytes.len();
        chunk.push(line);
        let is_full = chunk.len() >= limits::FEED_LINES_MAX || bytes >= limits::FEED_BYTES_MAX;
        if is_full || !input.buffer().contains(&b'\n') {
            break;
        }
    }
    Ok(chunk)
}

fn read_line<R: Read>(input: &mut BufReader<R>, number: u64) -> io::Result<Option<InputLine>> {
    let mut bytes = Vec::new();
    input.take(limits::LINE_BYTES_MAX).read_until(b'\n', &mut bytes)?;
    if bytes.len() as u64 == limits::LINE_BYTES_MAX {
        let problem = format!("line {number} has more than {} bytes", limits::LINE_BYTES_MAX);
        return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    }
    Ok((!bytes.is_empty()).then_some(InputLine { number, bytes }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An input that comes in pieces.
    struct Pieces(Vec<&'static [u8]>);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0);
            into[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    #[test]
    fn lines_that_are_there_are_taken_together_and_nobody_waits_for_more() {
        let mut input = BufReader::new(Pieces(vec![b"a\nb\nc", b"d\n", b"e"]));
        let mut number = 0;
        let mut chunks = Vec::new();
        loop {
            let chunk = read_chunk(&mut input, &mut number).unwrap();
            if chunk.is_empty() {
                break;
            }
            let lines = chunk.into_iter().map(|line| (line.number, String::from_utf8(line.bytes).unwrap()));
            chunks.push(lines.collect::<Vec<_>>());
        }
        let line = |number, text: &str| (number, text.to_owned());
        let expected = [vec![line(1, "a\n"), line(2, "b\n")], vec![line(3, "cd\n")], vec![line(4, "e")]];
        assert_eq!(chunks, expected);
    }
}
