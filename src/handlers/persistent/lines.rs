//! Lines from a pipe, many at a time.

use memchr::memrchr;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;

use crate::handlers::tail::READ_BYTES;

/// Cuts what comes from a pipe into lines.
pub(super) struct PipeLines<P> {
    pipe: P,
    read: Vec<u8>,
    /// Where the line begins that has not ended.
    start: usize,
    len_max: usize,
}

/// Why there is no line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PipeEnd {
    /// The pipe is closed.
    Closed,
    /// A line is longer than allowed: [`PipeLines::cut`] shows what came of it, and the next one begins in its middle.
    TooLong,
}

impl<P: AsyncRead + Unpin> PipeLines<P> {
    pub(super) fn new(pipe: P, len_max: usize) -> PipeLines<P> {
        PipeLines { pipe, read: Vec::with_capacity(READ_BYTES), start: 0, len_max }
    }

    /// Waits for lines, and shows all that have come whole, without their ends. Blank ones are left out.
    ///
    /// Nothing is lost when it is dropped while it waits.
    pub(super) async fn next(&mut self, mut show: impl FnMut(&[u8])) -> Result<(), PipeEnd> {
        self.read.drain(..self.start);
        self.start = 0;
        loop {
            let from = self.read.len();
            self.read.reserve(READ_BYTES);
            match self.pipe.read_buf(&mut self.read).await {
                Ok(0) | Err(_) => return self.rest(show),
                Ok(_) => {}
            }
            if let Some(end) = memrchr(b'\n', &self.read[from..]) {
                self.start = from + end + 1;
                shown(&self.read[..self.start], &mut show);
                return Ok(());
            }
            if self.read.len() > self.len_max {
                self.start = self.read.len();
                return Err(PipeEnd::TooLong);
            }
        }
    }

    /// Shows what came of a line that is too long.
    pub(super) fn cut(&self, mut show: impl FnMut(&[u8])) {
        shown(&self.read[..self.start], &mut show);
    }

    /// The last line of a pipe that is closed may lack its end.
    fn rest(&mut self, mut show: impl FnMut(&[u8])) -> Result<(), PipeEnd> {
        if self.read.is_empty() {
            return Err(PipeEnd::Closed);
        }
        self.start = self.read.len();
        shown(&self.read, &mut show);
        Ok(())
    }
}

fn shown(lines: &[u8], show: &mut impl FnMut(&[u8])) {
    let lines = lines.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.filter(|line| !line.is_empty()).for_each(show);
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str, len_max: usize) -> (Vec<String>, PipeEnd) {
        let mut lines = PipeLines::new(text.as_bytes(), len_max);
        let mut all = Vec::new();
        loop {
            let show = |line: &[u8]| all.push(String::from_utf8(line.to_vec()).unwrap());
            if let Err(end) = lines.next(show).await {
                return (all, end);
            }
        }
    }

    #[tokio::test]
    async fn lines_come_whole_and_without_their_ends() {
        assert_eq!(read("", 9).await, (vec![], PipeEnd::Closed));
        assert_eq!(read("one\r\n\ntwo", 9).await, (vec!["one".into(), "two".into()], PipeEnd::Closed));
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_not_collected_for_ever() {
        assert_eq!(read(&"x".repeat(100), 10).await, (vec![], PipeEnd::TooLong));
        let mut lines = PipeLines::new(&b"xxxxxxxxxx"[..], 5);
        assert_eq!(lines.next(|_| ()).await, Err(PipeEnd::TooLong));
        let mut cut = Vec::new();
        lines.cut(|part| cut.extend_from_slice(part));
        assert_eq!(cut, b"xxxxxxxxxx");
        assert_eq!(lines.next(|_| ()).await, Err(PipeEnd::Closed));
    }
}
