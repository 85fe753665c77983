//! Why a file could not be opened.

use std::path::PathBuf;

use thiserror::Error;

use crate::error::fault::Fault;

/// The failure to open or create an engine's file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// Another engine has the file open.
    #[error("cannot open {path}: {holder} has it open")]
    Held {
        /// The file.
        path: PathBuf,
        /// Who holds it, as `process 4711` or `this process`.
        holder: String,
    },
    /// The file is not an engine's file; it was not touched.
    #[error("cannot open {path}: it is not a seriatim file ({detail})")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The cause.
        detail: String,
    },
    /// The file is damaged, or a part of it is missing; it was not touched. [`verify`](crate::store::verify()) says what is damaged, and
    /// [`Check::Never`](crate::store::Check) opens it all the same.
    #[error(
        "cannot open {path}: it is damaged: {detail}; restore a backup, or see what `seriatim verify` finds in it"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        detail: String,
    },
    /// The file was written by a newer version; it was not touched.
    #[error("cannot open {path}: it has format {found}, this version reads up to {known}")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The file's format.
        found: u32,
        /// The newest format this version knows.
        known: u32,
    },
    /// The file was written by an older version and is too large to be looked at as it is; it was not touched.
    #[error(
        "cannot open {path}: it has format {found} and is large; let an engine open it, or a copy of it, which makes it format \
         {known}, and look then"
    )]
    Older {
        /// The file.
        path: PathBuf,
        /// The file's format.
        found: u32,
        /// The format of this version.
        known: u32,
    },
    /// The disk, or what is on it, failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}
