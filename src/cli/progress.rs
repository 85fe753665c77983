//! A line on stderr for a person who waits; nothing when nobody looks.

use std::io::IsTerminal;

use indicatif::ProgressBar;
use indicatif::ProgressDrawTarget;
use indicatif::ProgressStyle;

/// How far something has come.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(what: &'static str) -> Progress {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{pos} {prefix} {elapsed} {per_sec}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(what);
        Progress { bar }
    }

    pub(crate) fn show(&self, position: u64) {
        self.bar.set_position(position);
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
