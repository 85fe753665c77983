//! An outbox: a table that is read from its first row on, each row once it is final.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use futures_util::TryStreamExt;
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_postgres::types::ToSql;

use crate::limits;
use crate::postgres::connection::ConnectOptions;
use crate::postgres::connection::ServerConnection;
use crate::postgres::connection::answered;
use crate::postgres::error::SourceError;
use crate::postgres::error::describe;
use crate::postgres::error::late;
use crate::postgres::row;
use crate::postgres::row::OutboxRow;
use crate::postgres::row::message;
use crate::postgres::sql;
use crate::postgres::sql::OutboxColumns;
use crate::postgres::sql::TableName;
use crate::postgres::table::BodyKind;
use crate::postgres::table::TableFacts;
use crate::postgres::table::check;
use crate::postgres::table::check_sequence;
use crate::postgres::watermark::Watermark;

/// An outbox, and the connection to its server while there is one.
pub(crate) struct Outbox {
    options: ConnectOptions,
    table: TableName,
    columns: OutboxColumns,
    /// Whether a row's number is its message ID.
    numbers_are_ids: bool,
    /// Whether rows are deleted that were copied.
    deletes: bool,
    /// Notifications on this channel are listened for.
    channel: Option<String>,
    woken: Arc<Notify>,
    rows_at_once: RowsAtOnce,
    open: Option<OutboxConnection>,
}

struct OutboxConnection {
    carried: ServerConnection,
    checked: TableFacts,
    watermark: Watermark,
}

/// How many rows are asked for at once. What was learned of it outlives the connection: over another one, rows are as large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RowsAtOnce(usize);

impl RowsAtOnce {
    /// What is cut off was sent for nothing: the next look asks for as much as this one could use. One that was to bring fewer, and
    /// has, says nothing of more.
    fn after(self, asked: RowsAtOnce, used: usize, stop: ReadStop) -> RowsAtOnce {
        match stop {
            ReadStop::Not if asked < self => self,
            ReadStop::Not => RowsAtOnce(self.0.saturating_mul(2).min(limits::SOURCE_ROWS_AT_ONCE)),
            ReadStop::Full | ReadStop::Waits => RowsAtOnce(used.max(1)),
        }
    }

    /// It may have been too much to be sent in time.
    fn after_failure(self) -> RowsAtOnce {
        RowsAtOnce((self.0 / 2).max(1))
    }
}

/// What one look has found.
#[derive(Debug, Default)]
pub(crate) struct OutboxLook {
    /// Rows that follow those that are copied, in order; no row between them will ever come.
    pub(crate) rows: Vec<OutboxRow>,
    /// Whether there are more that could be read at once.
    pub(crate) is_more: bool,
    /// How many open transactions keep rows back that are seen.
    pub(crate) waits_for: usize,
    /// A row that is no message, behind those that are.
    pub(crate) wrong: Option<SourceError>,
}

/// Tells when the server has said that there is something.
#[derive(Clone)]
pub(crate) struct Wakeup(pub(crate) Arc<Notify>);

impl Wakeup {
    pub(crate) async fn woken(&self) {
        self.0.notified().await;
    }

    /// Forgets what the server has said so far.
    pub(crate) fn forget(&self) {
        std::pin::pin!(self.0.notified()).as_mut().enable();
    }
}

impl Outbox {
    pub(crate) fn new(
        options: ConnectOptions,
        table: TableName,
        columns: OutboxColumns,
        numbers_are_ids: bool,
        (deletes, channel): (bool, Option<String>),
    ) -> Outbox {
        let (woken, open) = Default::default();
        let rows_at_once = RowsAtOnce(limits::SOURCE_ROWS_AT_ONCE);
        Outbox { options, table, columns, numbers_are_ids, deletes, channel, woken, rows_at_once, open }
    }

    /// What wakes when the server has notified of something, or the connection has ended.
    pub(crate) fn wakeup(&self) -> Wakeup {
        Wakeup(self.woken.clone())
    }

    /// Lets go of a connection on which something has failed, if there is one: the next look opens another one.
    fn let_go(&mut self) {
        if self.open.take().is_some() {
            self.rows_at_once = self.rows_at_once.after_failure();
        }
    }

    /// Reads what follows the row with this number, as far as it is final, and no more rows than `most`.
    ///
    /// # Errors
    /// [`SourceError`]; the connection is let go of then.
    pub(crate) async fn look(
        &mut self,
        copied_through: Option<i64>,
        most: usize,
    ) -> Result<OutboxLook, SourceError> {
        let looked = self.try_look(copied_through, RowsAtOnce(most)).await;
        if looked.is_err() {
            self.let_go();
        }
        looked
    }

    async fn try_look(
        &mut self,
        copied_through: Option<i64>,
        most: RowsAtOnce,
    ) -> Result<OutboxLook, SourceError> {
        if self.open.is_none() {
            self.open = Some(self.connect(copied_through).await?);
        }
        let Some(open) = &mut self.open else { return Ok(OutboxLook::default()) };
        let (table, columns) = (&self.table, &self.columns);
        let highest = open.note_transactions(table, columns).await?;
        if highest.is_some() && highest < copied_through {
            // The table may have been made anew meanwhile: its rows would be passed over as copied.
            check_sequence(&open.carried.client, table, &columns.id, copied_through).await?;
        }
        let asked = self.rows_at_once.min(most);
        let (look, stop) = open.read(table, columns, self.numbers_are_ids, copied_through, asked).await?;
        self.rows_at_once = self.rows_at_once.after(asked, look.rows.len(), stop);
        Ok(look)
    }

    async fn connect(&self, copied_through: Option<i64>) -> Result<OutboxConnection, SourceError> {
        let carried = self.options.connect(self.woken.clone()).await?;
        let (table, columns) = (&self.table, &self.columns);
        let checked = check(&carried.client, table, columns, self.deletes, copied_through).await?;
        if let Some(channel) = &self.channel {
            let listen = format!("listen {}", sql::quoted(channel));
            let listening = answered(carried.client.batch_execute(&listen)).await;
            listening.map_err(|problem| SourceError::Read { table: table.to_string(), problem })?;
        }
        Ok(OutboxConnection { carried, checked, watermark: Watermark::default() })
    }

    /// How many rows are behind a number; where there are more than [`limits::SOURCE_LAG_ROWS`], as many.
    ///
    /// # Errors
    /// As [`Outbox::look`].
    pub(crate) async fn behind(&mut self, copied_through: Option<i64>) -> Result<i64, SourceError> {
        let Some(open) = &self.open else { return Ok(0) };
        let statement = sql::behind(&self.table, &self.columns);
        let from = copied_through.unwrap_or(i64::MIN);
        let parameters: [&(dyn ToSql + Sync); 2] = [&from, &limits::SOURCE_LAG_ROWS];
        let answer = answered(open.carried.client.query_one(&statement, &parameters)).await;
        answer.map(|row| row.get(0)).map_err(|problem| {
            self.let_go();
            SourceError::Read { table: self.table.to_string(), problem }
        })
    }

    /// Deletes the rows of a run of numbers, which are copied: those above `from`, up to `through`.
    ///
    /// # Errors
    /// As [`Outbox::look`].
    pub(crate) async fn delete(&mut self, from: Option<i64>, through: i64) -> Result<(), SourceError> {
        if self.open.is_none() {
            self.open = Some(self.connect(Some(through)).await?);
        }
        let Some(open) = &self.open else { return Ok(()) };
        let statement = sql::delete(&self.table, &self.columns);
        let from = from.unwrap_or(i64::MIN);
        let deleted = answered(open.carried.client.execute(&statement, &[&from, &through])).await;
        deleted.map(drop).map_err(|problem| {
            self.let_go();
            SourceError::Delete { table: self.table.to_string(), problem }
        })
    }
}

impl OutboxConnection {
    /// Notes which transactions are open, and says the highest number that is seen.
    async fn note_transactions(
        &mut self,
        table: &TableName,
        columns: &OutboxColumns,
    ) -> Result<Option<i64>, SourceError> {
        let statement = sql::transactions(table, columns);
        let answer = answered(self.carried.client.query_one(&statement, &[&self.checked.oid])).await;
        let row = answer.map_err(|problem| SourceError::Read { table: table.to_string(), problem })?;
        let transactions: Vec<String> = row.get(1);
        if transactions.len() > limits::SOURCE_TRANSACTIONS_MAX {
            let problem = format!("{} transactions are open at once", transactions.len());
            return Err(SourceError::Read { table: table.to_string(), problem });
        }
        let highest = row.get(0);
        self.watermark.note(highest, BTreeSet::from_iter(transactions));
        Ok(highest)
    }

    /// Reads rows in order, as many as are copied at once, up to the first before which one may be missing; and why it stopped there.
    async fn read(
        &mut self,
        table: &TableName,
        columns: &OutboxColumns,
        numbers_are_ids: bool,
        copied_through: Option<i64>,
        RowsAtOnce(at_once): RowsAtOnce,
    ) -> Result<(OutboxLook, ReadStop), SourceError> {
        let failed = |problem: String| SourceError::Read { table: table.to_string(), problem };
        let body = self.checked.body;
        let statement = sql::select(table, columns, body == BodyKind::Bytes);
        let limit = i64::try_from(at_once).unwrap_or(i64::MAX);
        let from = copied_through.unwrap_or(i64::MIN);
        let parameters: [&(dyn ToSql + Sync); 2] = [&from, &limit];
        let (mut look, mut bytes, mut last) = (OutboxLook::default(), 0, copied_through);
        let reading = async {
            let said = |error: tokio_postgres::Error| describe(&error);
            let mut rows = pin!(self.carried.client.query_raw(&statement, parameters).await.map_err(said)?);
            while let Some(row) = rows.try_next().await.map_err(said)? {
                let content = (body, row::body(&row, body)?);
                let copied = match message(&row, content, columns.after.is_some(), numbers_are_ids) {
                    Ok(copied) => copied,
                    Err((id, _)) if !self.watermark.is_final(last, id) => return Ok(ReadStop::Waits),
                    Err((id, problem)) => {
                        look.wrong = Some(SourceError::Row { table: table.to_string(), id, problem });
                        return Ok(ReadStop::Not);
                    }
                };
                if !self.watermark.is_final(last, copied.id) {
                    return Ok(ReadStop::Waits);
                }
                if !look.rows.is_empty() && bytes + copied.bytes > limits::SOURCE_BYTES_AT_ONCE {
                    return Ok(ReadStop::Full);
                }
                (bytes, last) = (bytes + copied.bytes, Some(copied.id));
                look.rows.push(copied);
            }
            Ok(ReadStop::Not)
        };
        let stop = match timeout(limits::SOURCE_STATEMENT_MAX, reading).await {
            Ok(read) => read.map_err(failed)?,
            Err(_) => return Err(failed(late("a statement"))),
        };
        look.is_more = stop == ReadStop::Full || look.rows.len() == at_once;
        look.waits_for = if stop == ReadStop::Waits { self.watermark.waits_for() } else { 0 };
        Ok((look, stop))
    }
}

/// Why rows were read and not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadStop {
    /// All were used.
    Not,
    /// There are as many bytes as are copied at once.
    Full,
    /// A lower number may still come.
    Waits,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_rows_are_asked_for_as_could_be_used_and_fewer_where_that_has_failed() {
        let most = RowsAtOnce(limits::SOURCE_ROWS_AT_ONCE);
        assert_eq!(most.after(most, 80, ReadStop::Full), RowsAtOnce(80));
        assert_eq!(most.after(most, 0, ReadStop::Waits), RowsAtOnce(1));
        assert_eq!(RowsAtOnce(80).after(RowsAtOnce(80), 80, ReadStop::Not), RowsAtOnce(160));
        assert_eq!(most.after(most, 1_000, ReadStop::Not), most);
        assert_eq!(RowsAtOnce(80).after_failure(), RowsAtOnce(40));
        assert_eq!(RowsAtOnce(1).after_failure(), RowsAtOnce(1));
    }

    #[test]
    fn a_look_that_was_to_bring_few_rows_teaches_nothing_of_how_many_could_come() {
        let few = RowsAtOnce(1);
        assert_eq!(RowsAtOnce(80).after(few, 1, ReadStop::Not), RowsAtOnce(80));
        assert_eq!(RowsAtOnce(80).after(few, 1, ReadStop::Full), few);
    }
}
