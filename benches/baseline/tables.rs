//! The tables, and every statement, prepared once.

use rusqlite::Connection;
use rusqlite::Result;
use rusqlite::Statement;
use rusqlite::params;

/// WAL with an fsync for each commit; a cache as large as the engine's. Nobody else opens the file, so no lock is asked
/// for twice. Page size and checkpoint are what was fastest of 4, 8 and 16 KiB and of 1,000, 4,096 and 16,384 pages.
const TUNING: &str = "
    PRAGMA page_size = 8192;
    PRAGMA locking_mode = EXCLUSIVE;
    PRAGMA synchronous = FULL;
    PRAGMA wal_autocheckpoint = 4096;
    PRAGMA cache_size = -32768;
    PRAGMA temp_store = MEMORY;
";

/// Bodies stand in order of arrival, so that what is sent together is written together; the small index finds the
/// next of a workflow. A hand-out is counted in the workflow's row: `handed` messages from `cursor` on are out.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS workflow (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL, cursor INTEGER NOT NULL, handed INTEGER NOT NULL, due_ms INTEGER);
    CREATE TABLE IF NOT EXISTS message (
        number INTEGER PRIMARY KEY, workflow INTEGER NOT NULL, rank INTEGER NOT NULL,
        delivery_count INTEGER NOT NULL, body BLOB NOT NULL);
    CREATE UNIQUE INDEX IF NOT EXISTS place ON message (workflow, rank);
";

/// The statements.
pub(crate) struct Tables<'a> {
    pub(crate) begin: Statement<'a>,
    pub(crate) commit: Statement<'a>,
    insert_workflow: Statement<'a>,
    update_workflow: Statement<'a>,
    insert: Statement<'a>,
    next: Statement<'a>,
    delete: Statement<'a>,
    count: Statement<'a>,
}

/// A message that is handed out.
pub(crate) struct Stored {
    pub(crate) number: i64,
    pub(crate) rank: i64,
    pub(crate) body: bytes::Bytes,
}

/// A workflow's row, and the rank behind its last message.
pub(crate) struct WorkflowRow {
    pub(crate) name: String,
    pub(crate) cursor: i64,
    pub(crate) handed: i64,
    pub(crate) due_ms: Option<i64>,
    pub(crate) end: i64,
}

/// Tunes a connection and makes the tables.
pub(crate) fn prepare_file(connection: &Connection) -> Result<()> {
    connection.execute_batch(TUNING)?;
    let mode: String = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    let synchronous: i64 = connection.query_row("PRAGMA synchronous", [], |row| row.get(0))?;
    assert_eq!((mode.as_str(), synchronous), ("wal", 2), "a commit is on disk when it returns");
    connection.execute_batch(TABLES)
}

/// Every workflow, in order of ID, and the number of the last message.
pub(crate) fn load(connection: &Connection) -> Result<(Vec<WorkflowRow>, i64)> {
    let mut rows = connection.prepare(
        "SELECT name, cursor, handed, due_ms, coalesce((SELECT max(rank) + 1 FROM message WHERE workflow = id), cursor)
         FROM workflow ORDER BY id",
    )?;
    let rows = rows.query_map([], |row| {
        let (name, cursor, handed) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(WorkflowRow { name, cursor, handed, due_ms: row.get(3)?, end: row.get(4)? })
    })?;
    let last = "SELECT coalesce(max(number), 0) FROM message";
    Ok((rows.collect::<Result<_>>()?, connection.query_row(last, [], |row| row.get(0))?))
}

impl<'a> Tables<'a> {
    pub(crate) fn prepare(connection: &'a Connection) -> Result<Tables<'a>> {
        Ok(Tables {
            begin: connection.prepare("BEGIN IMMEDIATE")?,
            commit: connection.prepare("COMMIT")?,
            insert_workflow: connection.prepare("INSERT INTO workflow VALUES (?1, ?2, ?3, 0, NULL)")?,
            update_workflow: connection
                .prepare("UPDATE workflow SET cursor = ?2, handed = ?3, due_ms = ?4 WHERE id = ?1")?,
            insert: connection.prepare("INSERT INTO message VALUES (?1, ?2, ?3, 0, ?4)")?,
            next: connection.prepare(
                "SELECT number, rank, body FROM message WHERE workflow = ?1 AND rank >= ?2 ORDER BY rank LIMIT ?3",
            )?,
            delete: connection.prepare("DELETE FROM message WHERE number = ?1")?,
            count: connection.prepare(
                "UPDATE message SET delivery_count = delivery_count + 1
                 WHERE workflow = ?1 AND rank >= ?2 AND rank < ?2 + ?3",
            )?,
        })
    }

    pub(crate) fn insert_workflow(&mut self, id: i64, name: &str, cursor: i64) -> Result<()> {
        self.insert_workflow.execute(params![id, name, cursor]).map(drop)
    }

    pub(crate) fn update_workflow(
        &mut self,
        id: i64,
        cursor: i64,
        handed: i64,
        due_ms: Option<i64>,
    ) -> Result<()> {
        self.update_workflow.execute(params![id, cursor, handed, due_ms]).map(drop)
    }

    pub(crate) fn insert(&mut self, number: i64, workflow: i64, rank: i64, body: &[u8]) -> Result<()> {
        self.insert.execute(params![number, workflow, rank, body]).map(drop)
    }

    /// Up to `len` consecutive messages of a workflow from `rank` on.
    pub(crate) fn run_from(&mut self, workflow: i64, rank: i64, len: usize) -> Result<Vec<Stored>> {
        let mut rows = self.next.query(params![workflow, rank, len as i64])?;
        let mut run = Vec::new();
        while let Some(row) = rows.next()? {
            let stored = Stored {
                number: row.get(0)?,
                rank: row.get(1)?,
                body: bytes::Bytes::copy_from_slice(row.get_ref(2)?.as_blob()?),
            };
            if stored.rank != rank + run.len() as i64 {
                break;
            }
            run.push(stored);
        }
        Ok(run)
    }

    pub(crate) fn delete(&mut self, number: i64) -> Result<()> {
        self.delete.execute([number]).map(drop)
    }

    /// Adds one to the delivery counts of `len` messages from `rank` on.
    pub(crate) fn count(&mut self, workflow: i64, rank: i64, len: i64) -> Result<()> {
        self.count.execute(params![workflow, rank, len]).map(drop)
    }
}
