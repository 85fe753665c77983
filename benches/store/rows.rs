//! The obvious layout: each message is a row under queue, workflow and number, and each workflow has its row.

use std::path::Path;

use bytes::Bytes;
use redb::Database;
use redb::Durability;
use redb::TableDefinition;
use seriatim::WorkflowId;

use crate::bench::BenchError;

const MESSAGES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("messages");
const WORKFLOWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("workflows");

/// What a message's record takes beside its body, and a workflow's.
const RECORD_LEN: usize = 40;

/// A file with a row for each message.
pub(crate) struct RowAMessage {
    database: Database,
    next_sequence: u64,
}

impl RowAMessage {
    pub(crate) fn create(path: &Path) -> Result<RowAMessage, BenchError> {
        let database = Database::create(path);
        let database = database.map_err(|error| BenchError::system("open the rows")(error))?;
        Ok(RowAMessage { database, next_sequence: 1 })
    }

    pub(crate) fn append(
        &mut self,
        batch: &mut dyn Iterator<Item = (WorkflowId, Bytes)>,
    ) -> Result<(), BenchError> {
        self.commit(batch).map_err(|error| BenchError::system("append a row a message")(error))
    }

    fn commit(&mut self, batch: &mut dyn Iterator<Item = (WorkflowId, Bytes)>) -> Result<(), redb::Error> {
        let mut transaction = self.database.begin_write()?;
        transaction.set_durability(Durability::Immediate)?;
        {
            let mut messages = transaction.open_table(MESSAGES)?;
            let mut workflows = transaction.open_table(WORKFLOWS)?;
            for (workflow, body) in batch {
                let mut key = vec![0, 0, 0, 1];
                key.extend(workflow.as_str().as_bytes());
                workflows.insert(&*key, &[0; RECORD_LEN][..])?;
                key.extend(self.next_sequence.to_be_bytes());
                let mut row = vec![0; RECORD_LEN];
                row.extend(&body);
                messages.insert(&*key, &*row)?;
                self.next_sequence += 1;
            }
        }
        Ok(transaction.commit()?)
    }
}
