//! A line on stderr for a person who waits; nothing when nobody looks.

use indicatif::ProgressBar;
use indicatif::ProgressStyle;

/// How far something has come.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Progress {
        let style = ProgressStyle::with_template("{pos} {prefix} {elapsed} {per_sec}");
        let bar = ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(what);
        Progress { bar }
    }

    /// Goes on with another part.
    pub(crate) fn begin(&self, what: &'static str) {
        self.bar.set_prefix(what);
    }

    pub(crate) fn show(&self, position: u64) {
        self.bar.set_position(position);
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
