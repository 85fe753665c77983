//! A bar on stderr, for a person who waits.

use indicatif::ProgressBar;
use indicatif::ProgressStyle;

/// A bar that runs while messages are settled. A clone moves the same bar.
#[derive(Clone)]
pub(crate) struct BenchProgress {
    bar: ProgressBar,
}

impl BenchProgress {
    /// A bar for a terminal; elsewhere nothing is shown.
    pub(crate) fn new() -> BenchProgress {
        let style = ProgressStyle::with_template("{prefix} {bar:40} {pos}/{len}, {per_sec}, {eta} left");
        let bar = ProgressBar::no_length().with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        BenchProgress { bar }
    }

    /// Begins a part of the work.
    pub(crate) fn begin(&self, what: String, count: u64) {
        self.bar.set_prefix(what);
        self.bar.set_length(count);
        self.bar.reset();
    }

    pub(crate) fn go_on(&self, count: u64) {
        self.bar.inc(count);
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
