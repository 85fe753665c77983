//! What was sent for good over a link, until it is on its way: then, never before, it is deleted.

use std::collections::VecDeque;

/// Things that were sent, in order.
pub(crate) struct OnTheirWay<T>(VecDeque<SentThing<T>>);

struct SentThing<T> {
    what: T,
    /// The byte of the connection after which it is on its way; unknown while it waits for the peer's window.
    until_byte: Option<u64>,
}

impl<T> Default for OnTheirWay<T> {
    fn default() -> OnTheirWay<T> {
        OnTheirWay(VecDeque::new())
    }
}

impl<T> OnTheirWay<T> {
    pub(crate) fn push(&mut self, what: T) {
        self.0.push_back(SentThing { what, until_byte: None });
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.iter_mut().map(|sent| &mut sent.what)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is on its way by now, given how many of the last wait for the peer's window, up to which byte the others were written,
    /// and how many bytes have left.
    pub(crate) fn take_out(&mut self, waiting: usize, written_to: u64, bytes_left: u64) -> Vec<T> {
        let known = self.0.len().saturating_sub(waiting);
        for sent in self.0.iter_mut().take(known) {
            sent.until_byte.get_or_insert(written_to);
        }
        let is_out = |sent: &SentThing<T>| sent.until_byte.is_some_and(|until| until <= bytes_left);
        let count = self.0.iter().take_while(|sent| is_out(sent)).count();
        self.0.drain(..count).map(|sent| sent.what).collect()
    }

    /// All of it, wherever it is.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> {
        self.0.drain(..).map(|sent| sent.what)
    }
}
