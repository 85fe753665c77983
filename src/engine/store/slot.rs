//! A row of the window, and where it stands.

/// Where a row of the window stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotStamp {
    /// The commit that has its last change; zero before its first.
    pub(crate) position: u64,
    /// Its place among what that turn has changed.
    pub(crate) index: u32,
    /// Whether a row with this key may be flushed, so that deleting it is worth remembering.
    pub(crate) based: bool,
    /// Whether a commit before that has put it into the journal.
    pub(crate) journaled: bool,
}

/// A row of the window.
pub(crate) struct WindowSlot<V> {
    pub(crate) stamp: SlotStamp,
    pub(crate) value: V,
}
