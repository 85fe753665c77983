//! How many messages one child may hold.

use std::time::Duration;

/// How many messages one child may hold.
///
/// It begins with one: a child that died, perhaps of a message, is not given many others to fail with it. It grows with
/// each answer that comes soon, so that a quick child always has its next lines in the pipe, and shrinks with each that
/// comes late: messages that wait inside a slow child could be handled by another, and their locks must be kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildWindow {
    len: usize,
    len_max: usize,
    late: Duration,
}

impl ChildWindow {
    /// A window for a child whose attempts may take `timeout`.
    pub(super) fn new(len_max: usize, timeout: Duration) -> ChildWindow {
        ChildWindow { len: 1, len_max: len_max.max(1), late: timeout / 4 }
    }

    /// How many it may hold now.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// An answer came so long after its message was handed over.
    pub(super) fn answered(&mut self, after: Duration) {
        self.len = match after > self.late {
            true => (self.len / 2).max(1),
            false => (self.len + 1).min(self.len_max),
        };
    }

    /// The child died.
    pub(super) fn close(&mut self) {
        self.len = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quick_child_gets_more_and_a_slow_one_less() {
        let mut window = ChildWindow::new(8, Duration::from_secs(4));
        assert_eq!(window.len(), 1);
        (0..20).for_each(|_| window.answered(Duration::from_millis(1)));
        assert_eq!(window.len(), 8);
        window.answered(Duration::from_secs(2));
        assert_eq!(window.len(), 4);
        (0..20).for_each(|_| window.answered(Duration::from_secs(2)));
        assert_eq!(window.len(), 1);
    }

    #[test]
    fn a_child_that_died_begins_with_one_message() {
        let mut window = ChildWindow::new(8, Duration::from_secs(4));
        window.answered(Duration::ZERO);
        window.close();
        assert_eq!(window.len(), 1);
    }
}
