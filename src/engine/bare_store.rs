//! The store without rules or threads, for the benchmark that measures it alone.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::rules::change::Change;
use crate::engine::rules::record::MessageContent;
use crate::engine::rules::record::MessageKey;
use crate::engine::rules::record::MessageRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Status;
use crate::engine::rules::record::WorkflowKey;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::rules::records::MutableRecords;
use crate::engine::rules::workflow_record::WorkflowRecord;
use crate::engine::store::Store;
use crate::engine::store::StoreOptions;
use crate::error::Fault;
use crate::error::OpenError;
use crate::header::Headers;
use crate::id::SequenceNumber;
use crate::id::WorkflowId;
use crate::shown::shown;

/// A store that accepts messages as a send writes them, judged by nobody.
///
/// It is there for `benches/store`, and no part of what this library promises.
pub struct BareStore {
    store: Store,
    next_sequence: u64,
}

shown!(BareStore {});

impl BareStore {
    /// Opens a file, or makes it.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> Result<BareStore, OpenError> {
        Ok(BareStore { store: Store::open(path, StoreOptions::default())?, next_sequence: 1 })
    }

    /// Stores a batch in one commit: each message, its body, its place in its workflow's line, and its workflow.
    ///
    /// # Errors
    /// The fault that makes the store useless.
    pub fn append(&mut self, batch: impl Iterator<Item = (WorkflowId, Bytes)>) -> Result<(), Fault> {
        let first = self.next_sequence;
        let (count, job) = self.store.prepare(|turn| {
            let mut count = 0;
            for (workflow, body) in batch {
                for change in changes(SequenceNumber::new(first + count), workflow, body) {
                    turn.write(change)?;
                }
                count += 1;
            }
            Ok(count)
        })?;
        self.next_sequence += count;
        let Some(job) = job else { return Ok(()) };
        let position = job.position;
        self.store.committer().commit(&[job])?;
        self.store.mark_committed(position);
        Ok(())
    }
}

fn changes(sequence: SequenceNumber, workflow: WorkflowId, body: Bytes) -> [Change; 4] {
    let queue = QueueId(1);
    let (message, stream) = (MessageKey { queue, sequence }, WorkflowRef::Named(workflow.clone()));
    let key = WorkflowKey { queue, stream: stream.clone() };
    let record = MessageRecord {
        stream,
        rank: Some(sequence.get()),
        message_id: None,
        status: Status::Ready,
        accepted_at: Default::default(),
        bytes: body.len() as u64,
        delivery_count: 0,
        handed_out_at: Default::default(),
        rare: Default::default(),
    };
    let content = MessageContent { workflow_id: Some(workflow), headers: Headers::default().into(), body };
    let record_of_workflow = WorkflowRecord { line: sequence.get(), ..WorkflowRecord::default() };
    [
        Change::Message(message, Some(Arc::new(record))),
        Change::Content(message, Some(content)),
        Change::Line(key.clone(), sequence.get(), Some(sequence)),
        Change::Workflow(key, Some(Box::new(record_of_workflow))),
    ]
}
