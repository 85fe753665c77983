//! The table that a definition names, opened; and its rows as messages, for a copy that is made once.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use crate::definition::OutboxDefinition;
use crate::error::Misuse;
use crate::intake::IntakeRule;
use crate::limits;
use crate::message::Message;
use crate::postgres::ConnectOptions;
use crate::postgres::Outbox;
use crate::postgres::OutboxRow;
use crate::postgres::TlsMode;
use crate::shown::shown;

/// The rows of an outbox as messages, from the first to the last that is committed. Nothing is kept of how far it was read, and no
/// row is deleted.
pub struct OutboxRows {
    table: Outbox,
    /// What reads message IDs out of rows, if anything does.
    reads_ids: Option<Arc<IntakeRule>>,
    read_through: Option<i64>,
}

shown!(OutboxRows {});

impl OutboxRows {
    /// Begins before the first row; the server is connected to with the first look.
    ///
    /// # Errors
    /// [`Misuse`] when the definition names no table.
    pub fn new(outbox: &OutboxDefinition, rule: &Arc<IntakeRule>) -> Result<OutboxRows, Misuse> {
        let reads_ids = outbox.ids_are_read().then(|| rule.clone());
        Ok(OutboxRows { table: open(outbox)?, reads_ids, read_through: None })
    }

    /// The next messages, in order; none at the end. Waits for transactions that may still bring a row between.
    ///
    /// # Errors
    /// What is wrong with the server, the table or a row, in a sentence.
    pub async fn next(&mut self) -> Result<Vec<Message>, Box<dyn Error + Send + Sync>> {
        loop {
            let look = self.table.look(self.read_through, limits::SOURCE_ROWS_AT_ONCE).await?;
            if let Some(last) = look.rows.last() {
                self.read_through = Some(last.id);
                return Ok(look.rows.into_iter().map(|row| self.message(row)).collect());
            }
            match look.wrong {
                Some(wrong) => return Err(wrong.into()),
                None if look.waits_for > 0 => pause_for(limits::SOURCE_HELD_POLL).await,
                None => return Ok(Vec::new()),
            }
        }
    }

    /// The message of a row. Where the queue finds no message ID in it, its number is one.
    fn message(&self, row: OutboxRow) -> Message {
        let finds_none = |rule: &Arc<IntakeRule>| {
            rule.place(row.message.clone()).is_err_and(|misuse| misuse.field() == "message ID")
        };
        match self.reads_ids.as_ref().is_some_and(finds_none) {
            true => row.message.message_id(row.id.to_string()),
            false => row.message,
        }
    }
}

/// The table that a definition names, as it is read.
pub(crate) fn open(outbox: &OutboxDefinition) -> Result<Outbox, Misuse> {
    let tls = match outbox.tls {
        true => TlsMode::Verify(outbox.ca_file.clone()),
        false => TlsMode::Off,
    };
    let password = outbox.password.clone();
    let password = move || password.as_ref().map(|secret| secret.read("password")).transpose();
    let options = ConnectOptions { url: outbox.url.clone(), password: Arc::new(password), tls };
    let (deletes, channel) = (outbox.delete_copied, outbox.channel.clone());
    let (table, columns) = (outbox.table.parse()?, outbox.columns.clone());
    Ok(Outbox::new(options, table, columns, outbox.numbers_are_ids, (deletes, channel)))
}

/// Waits between two looks.
#[expect(
    clippy::disallowed_methods,
    reason = "between two looks at a table of another program, which gives no sign"
)]
pub(crate) async fn pause_for(wait: Duration) {
    tokio::time::sleep(wait).await;
}
