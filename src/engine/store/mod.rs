//! The bytes on disk. Knows rows, no rule.
//!
//! A turn changes rows in memtables (`memtable`, `change`), its commit appends them to the journal (`journal`), and a flush
//! takes what has come to rest to its tables (`flush`, paced by `window`). Opening reads the journal again (`replay`).

pub(crate) mod all_rows;
#[cfg(feature = "head-room")]
mod ballast;
pub(crate) mod base;
pub(crate) mod block;
pub(crate) mod block_changes;
pub(crate) mod blocks;
pub(crate) mod caught;
mod change;
mod changed_keys;
pub(crate) mod checksum;
pub(crate) mod codec;
pub(crate) mod compact;
#[cfg(test)]
mod content;
#[cfg(test)]
mod content_hash;
pub(crate) mod copy_room;
pub(crate) mod create;
pub(crate) mod definition;
mod encoder;
mod flush;
pub(crate) mod flushed_row;
mod flushed_rows;
#[cfg(any(test, feature = "cluster"))]
mod follow;
pub(crate) mod format3;
mod groups;
pub(crate) mod header;
#[cfg_attr(
    not(any(test, feature = "cluster")),
    allow(dead_code, reason = "who follows a log needs the feature")
)]
pub(crate) mod in_place;
pub(crate) mod in_words;
pub(crate) mod inspect;
pub(crate) mod job;
pub(crate) mod journal;
pub(crate) mod journal_row;
pub(crate) mod key;
pub(crate) mod leftover;
#[cfg_attr(
    not(any(test, feature = "cluster")),
    allow(dead_code, reason = "who follows a log needs the feature")
)]
mod line_rows;
pub(crate) mod local_log;
pub(crate) mod lock_file;
#[cfg_attr(
    not(any(test, feature = "cluster")),
    allow(dead_code, reason = "who follows a log needs the feature")
)]
pub(crate) mod log;
pub(crate) mod margin;
mod memtable;
mod memtables;
pub(crate) mod merged_tables;
mod message_slots;
pub(crate) mod meta;
mod missing;
mod neighbours;
mod one_row;
mod open;
mod options;
mod pages;
mod prefix_group;
mod queue_pages;
mod rare_rows;
mod read_pace;
mod recognize;
mod records;
mod replay;
#[cfg_attr(not(feature = "head-room"), allow(dead_code, reason = "who asks for head room needs the feature"))]
pub(crate) mod room;
mod row_room;
mod row_write;
pub(crate) mod rows;
pub(crate) mod schema;
mod shared_file;
#[cfg(any(test, feature = "cluster"))]
pub(crate) mod shared_log;
mod slot;
mod slots;
pub(crate) mod snapshot;
#[cfg(any(test, feature = "cluster"))]
pub(crate) mod snapshot_file;
mod sorted_chunks;
#[cfg_attr(not(feature = "head-room"), allow(dead_code, reason = "who asks for head room needs the feature"))]
pub(crate) mod space;
mod stamp;
mod standing;
mod standing_page;
#[expect(clippy::module_inception, reason = "the file is named by the type it holds")]
mod store;
pub(crate) mod table;
mod table_book;
mod table_changes;
pub(crate) mod table_rows;
mod table_trial;
pub(crate) mod transaction;
mod trial;
mod try_out;
mod turn;
pub(crate) mod upgrade;
mod watch;
mod weight;
mod window;
pub(crate) mod words;
mod workflow_slots;
mod write;
mod write_barrier;

pub(crate) use crate::engine::store::job::Committer;
pub(crate) use crate::engine::store::job::Job;
pub(crate) use crate::engine::store::options::StoreOptions;
pub(crate) use crate::engine::store::room::DiskRoom;
pub(crate) use crate::engine::store::stamp::Stamp;
pub(crate) use crate::engine::store::stamp::WallRecord;
pub(crate) use crate::engine::store::store::Store;
pub(crate) use crate::engine::store::turn::Turn;
