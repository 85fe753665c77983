//! Files that older versions have written: they open, show what they showed, and go on in order.
//!
//! The files are in `older/`, packed, each beside the listing of what the version that wrote it saw in it. A new format
//! is a new set: `SERIATIM_WRITE_OLDER=FOLDER cargo test --test older` writes the present one into a folder, to be
//! committed before the format changes. A listing may say less than today's: what it says must still be so.

mod older {
    mod listing;
    mod opened;
    mod packed;
    mod story;
}
