//! What a handler wrote during an attempt that failed.

use serde::Deserialize;
use serde::Serialize;

use crate::limits;

/// What a handler wrote during an attempt that failed, as far as it is kept: the standard output and error of a program, the
/// response of a webhook, an error with its causes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// The text; of a long one the end, of a response the beginning.
    pub text: String,
    /// How many bytes of it are not kept.
    pub cut_bytes: u64,
}

impl Output {
    /// A text, of which the end is kept: at most 4 KiB.
    pub fn end_of(text: impl Into<String>) -> Output {
        let mut text = text.into();
        let over = text.len().saturating_sub(limits::OUTPUT_KEPT_BYTES_MAX);
        let start = (over..=text.len()).find(|start| text.is_char_boundary(*start)).unwrap_or(text.len());
        text.drain(..start);
        Output { text, cut_bytes: start as u64 }
    }

    /// A text, of which the beginning is kept: at most 4 KiB.
    pub fn start_of(text: impl Into<String>) -> Output {
        let mut text = text.into();
        let whole = text.len();
        let most = whole.min(limits::OUTPUT_KEPT_BYTES_MAX);
        let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        Output { text, cut_bytes: (whole - end) as u64 }
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.cut_bytes == 0
    }

    /// Lets go of the text; how long it was is still known.
    pub(crate) fn cut(&mut self) {
        self.cut_bytes += self.text.len() as u64;
        self.text = String::new();
    }
}
