//! Git's `-z` output, piece by piece.

use std::io::BufRead;
use std::io::Read;

use crate::demo::git::error::GitError;
use crate::demo::git::limits::TOKEN_BYTES_MAX;

/// The pieces of an output in which each piece ends with a zero byte, read one at a time.
pub(crate) struct Tokens<R> {
    source: R,
    token: Vec<u8>,
}

impl<R: BufRead> Tokens<R> {
    /// Begins at the first piece.
    pub(crate) fn new(source: R) -> Tokens<R> {
        let token = Vec::new();
        Tokens { source, token }
    }

    /// The next piece without its zero byte, or `None` at the end of the output.
    ///
    /// # Errors
    ///
    /// When the output ends inside a piece, or a piece is longer than any path may be.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, GitError> {
        self.token.clear();
        // One byte more for the zero byte.
        let bytes_max = TOKEN_BYTES_MAX as u64 + 1;
        let mut bounded = self.source.by_ref().take(bytes_max);
        let bytes = bounded.read_until(0, &mut self.token).map_err(GitError::NotRun)?;
        if bytes == 0 {
            return Ok(None);
        }
        if self.token.pop() != Some(0) {
            let too_long = bytes > TOKEN_BYTES_MAX;
            return Err(if too_long { GitError::TokenTooLong } else { GitError::CutShort });
        }
        Ok(Some(&self.token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_without_their_end() {
        let mut tokens = Tokens::new(&b"a\nb\0\0c\0"[..]);
        for expected in [&b"a\nb"[..], b"", b"c"] {
            assert_eq!(tokens.next().unwrap(), Some(expected));
        }
        assert_eq!(tokens.next().unwrap(), None);
    }

    #[test]
    fn an_output_that_ends_inside_a_piece_is_refused() {
        let mut tokens = Tokens::new(&b"a\0b"[..]);
        assert!(tokens.next().is_ok());
        assert!(matches!(tokens.next(), Err(GitError::CutShort)));
    }

    #[test]
    fn a_piece_has_a_limit() {
        let mut longest = vec![b'a'; TOKEN_BYTES_MAX];
        longest.push(0);
        assert!(Tokens::new(&longest[..]).next().is_ok());
        longest.insert(0, b'a');
        assert!(matches!(Tokens::new(&longest[..]).next(), Err(GitError::TokenTooLong)));
    }
}
