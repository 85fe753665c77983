//! The end of an output of any length.

use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;

/// Bytes one read of a pipe takes: what a pipe holds by default.
pub(crate) const READ_BYTES: usize = 64 * 1024;

/// The last bytes of an output; what came before is counted and let go.
pub(crate) struct Tail {
    bytes_max: usize,
    bytes: Vec<u8>,
    /// How many bytes were let go.
    cut_bytes: u64,
    /// The first byte that is no space, of the line that has not ended and of the last one that has.
    begun: Option<u8>,
    ended: Option<u8>,
}

/// The last line of an output that is not blank.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LastLine<'a> {
    /// Its first byte that is no space, even when it is cut.
    pub(crate) first: u8,
    /// The line, or what is kept of it.
    pub(crate) text: &'a [u8],
    /// Whether its beginning is lost.
    pub(crate) is_cut: bool,
}

impl Tail {
    pub(crate) fn new(bytes_max: usize) -> Tail {
        Tail { bytes_max, bytes: Vec::new(), cut_bytes: 0, begun: None, ended: None }
    }

    /// Reads a pipe to its end, so that whoever writes to it is never held up.
    pub(crate) async fn fill(&mut self, pipe: Option<impl AsyncRead + Unpin>) {
        let Some(mut pipe) = pipe else { return };
        let mut chunk = vec![0; READ_BYTES];
        // A pipe that cannot be read has come to its end, too.
        while let Ok(len @ 1..) = pipe.read(&mut chunk).await {
            self.push(&chunk[..len]);
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        for (index, part) in chunk.split(|byte| *byte == b'\n').enumerate() {
            if index > 0 {
                self.ended = self.begun.take().or(self.ended);
            }
            self.begun = self.begun.or_else(|| part.iter().copied().find(|byte| !byte.is_ascii_whitespace()));
        }
        self.bytes.extend_from_slice(chunk);
        // Cut seldom, so that each byte is moved once.
        if self.bytes.len() > self.bytes_max.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.bytes.len().saturating_sub(self.bytes_max);
        self.cut_bytes += over as u64;
        self.bytes.drain(..over);
    }

    /// The end of it as text, at most so many bytes, and how many bytes came before.
    pub(crate) fn text(&mut self, bytes_max: usize) -> (String, u64) {
        self.cut();
        let over = self.bytes.len().saturating_sub(bytes_max);
        // Not in the middle of a character.
        let start = (over..self.bytes.len()).find(|at| self.bytes[*at] & 0xC0 != 0x80).unwrap_or(over);
        (String::from_utf8_lossy(&self.bytes[start..]).into_owned(), self.cut_bytes + start as u64)
    }

    /// The last line that is not blank.
    pub(crate) fn last_line(&mut self) -> Option<LastLine<'_>> {
        self.cut();
        let first = self.begun.or(self.ended)?;
        let end = self.bytes.iter().rposition(|byte| !byte.is_ascii_whitespace()).map_or(0, |last| last + 1);
        let text = &self.bytes[..end];
        let start = text.iter().rposition(|byte| *byte == b'\n').map(|newline| newline + 1);
        let is_cut = self.cut_bytes > 0 && start.is_none();
        Some(LastLine { first, text: &text[start.unwrap_or(0)..], is_cut })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last(chunks: &[&str], bytes_max: usize) -> Option<(u8, String, bool)> {
        let mut tail = Tail::new(bytes_max);
        chunks.iter().for_each(|chunk| tail.push(chunk.as_bytes()));
        let line = tail.last_line()?;
        Some((line.first, String::from_utf8(line.text.to_vec()).unwrap(), line.is_cut))
    }

    #[test]
    fn the_last_line_is_the_last_that_is_not_blank() {
        assert_eq!(last(&[], 10), None);
        assert_eq!(last(&["\n \n"], 10), None);
        assert_eq!(last(&["one\ntwo"], 10), Some((b't', "two".into(), false)));
        assert_eq!(last(&["one\n tw", "o\r\n\n", " \n"], 20), Some((b't', " two".into(), false)));
    }

    #[test]
    fn a_line_that_is_cut_still_says_how_it_began() {
        assert_eq!(last(&["one\n{\"a\":", "123456789}", "\n\n"], 8), Some((b'{', "56789}".into(), true)));
        assert_eq!(last(&["{}\n123456789", "0"], 10), Some((b'1', "1234567890".into(), true)));
        assert_eq!(last(&["{}\n", "\n\n\n\n\n\n\n\n\n\n\n"], 4), Some((b'{', String::new(), true)));
    }
}
