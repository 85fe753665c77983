//! Whether a table can be copied in order, looked up in the catalog of its server.

use tokio_postgres::Client;

use crate::postgres::connection::answered;
use crate::postgres::error::SourceError;
use crate::postgres::sql::OutboxColumns;
use crate::postgres::sql::TableName;

/// What is known of a table that can be copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableFacts {
    /// Its number in the server's catalog.
    pub(crate) oid: u32,
    /// Whether bodies are bytes; otherwise they are text of some kind.
    pub(crate) body: BodyKind,
}

/// How bodies are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyKind {
    Json,
    Text,
    Bytes,
}

const INTEGERS: &[&str] = &["bigint", "integer", "smallint"];
const TEXTS: &[&str] = &["text", "character varying", "character"];

/// Looks a table up.
///
/// # Errors
/// [`SourceError::Table`] with what is wrong with it, and what to do.
pub(crate) async fn check(
    client: &Client,
    table: &TableName,
    columns: &OutboxColumns,
    deletes: bool,
    copied_through: Option<i64>,
) -> Result<TableFacts, SourceError> {
    let wrong = |problem: String| SourceError::Table { table: table.to_string(), problem };
    let oid = find(client, table, deletes).await?.map_err(wrong)?;
    let types = types(client, table, oid).await?;
    let type_of = |column: &str| types.iter().find(|(name, _)| name == column).map(|(_, kind)| kind.as_str());
    for (what, column) in columns.named() {
        let Some(kind) = type_of(column) else {
            return Err(wrong(format!(
                "it has no column {column:?}, which the definition names as `{what}`"
            )));
        };
        let (fits, wanted) = match what {
            "id" | "position" => (INTEGERS.contains(&kind), "bigint"),
            "body" => (body_kind(kind).is_some(), "json, jsonb, text or bytea"),
            "properties" => (matches!(kind, "json" | "jsonb"), "jsonb"),
            _ => (!matches!(kind, "bytea" | "json" | "jsonb"), "text, uuid or a number"),
        };
        if !fits {
            return Err(wrong(format!("its column {column:?} (`{what}`) is {kind}; {wanted} is needed")));
        }
    }
    check_sequence(client, table, &columns.id, copied_through).await?;
    let body = type_of(&columns.body).and_then(body_kind).unwrap_or(BodyKind::Text);
    Ok(TableFacts { oid, body })
}

/// How bodies of a type of PostgreSQL are kept; `None` if a column of it has none.
pub(crate) fn body_kind(kind: &str) -> Option<BodyKind> {
    match kind {
        "json" | "jsonb" => Some(BodyKind::Json),
        "bytea" => Some(BodyKind::Bytes),
        text if TEXTS.contains(&text) => Some(BodyKind::Text),
        _ => None,
    }
}

/// The table's number, or why it is not one to copy.
async fn find(client: &Client, table: &TableName, deletes: bool) -> Result<Result<u32, String>, SourceError> {
    const FIND: &str = "select c.oid, c.relkind::text, pg_is_in_recovery(), \
        has_table_privilege(c.oid, 'select'), has_table_privilege(c.oid, 'delete') \
        from pg_class c where c.oid = to_regclass($1)";
    let row = read(table, answered(client.query_opt(FIND, &[&table.quoted()])).await)?;
    let Some(row) = row else {
        return Ok(Err("there is no such table for this user (a schema is written before it, as in \
                       `sales.outbox`)"
            .to_owned()));
    };
    let (oid, kind, is_replica): (u32, &str, bool) = (row.get(0), row.get(1), row.get(2));
    let (may_select, may_delete): (bool, bool) = (row.get(3), row.get(4));
    Ok(match kind {
        "r" | "p" if is_replica => {
            Err("the server is a replica, which does not know who writes: name the primary".to_owned())
        }
        "r" | "p" if !may_select => Err("the user may not read it: grant select".to_owned()),
        "r" | "p" if deletes && !may_delete => {
            Err("the user may not delete from it, as copied_rows = \"delete\" says: grant delete".to_owned())
        }
        "r" | "p" => Ok(oid),
        _ => Err("it is no table: name the table into which rows are inserted".to_owned()),
    })
}

/// Its columns, each with its type.
async fn types(client: &Client, table: &TableName, oid: u32) -> Result<Vec<(String, String)>, SourceError> {
    const TYPES: &str = "select attname::text, format_type(atttypid, null) from pg_attribute \
        where attrelid = $1 and attnum > 0 and not attisdropped";
    let rows = read(table, answered(client.query(TYPES, &[&oid])).await)?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Refuses numbers that are not given in order, one by one, while the row is inserted: of those it could never be said that no
/// lower one is still to come. So it refuses a sequence that has not come as far as rows were copied.
///
/// # Errors
/// As [`check`].
pub(crate) async fn check_sequence(
    client: &Client,
    table: &TableName,
    id: &str,
    copied_through: Option<i64>,
) -> Result<(), SourceError> {
    const SEQUENCE: &str = "select s.seqincrement, s.seqcache, s.seqcycle, s.seqrelid::regclass::text, \
        has_sequence_privilege(s.seqrelid, 'usage, select'), \
        case when has_sequence_privilege(s.seqrelid, 'usage, select') \
        then pg_sequence_last_value(s.seqrelid) end \
        from pg_sequence s where s.seqrelid = pg_get_serial_sequence($1, $2)::regclass";
    let wrong = |problem: String| SourceError::Table { table: table.to_string(), problem };
    let row = read(table, answered(client.query_opt(SEQUENCE, &[&table.quoted(), &id])).await)?;
    let Some(row) = row else {
        return Err(wrong(format!(
            "its column {id:?} (`id`) has no sequence of its own, so that a lower number may still come: \
             let it be `bigint generated always as identity`, or `alter sequence ... owned by {table}.{id}`"
        )));
    };
    let (increment, cache, cycles): (i64, i64, bool) = (row.get(0), row.get(1), row.get(2));
    let (name, may_look, last): (String, bool, Option<i64>) = (row.get(3), row.get(4), row.get(5));
    if increment != 1 || cache != 1 || cycles {
        return Err(wrong(format!(
            "its sequence {name} does not count one by one (increment {increment}, cache {cache}{}), so that \
             a lower number may still come: `alter sequence {name} increment 1 cache 1 no cycle`",
            if cycles { ", cycle" } else { "" }
        )));
    }
    match copied_through {
        Some(copied) if may_look && last.is_none_or(|last| last < copied) => Err(wrong(format!(
            "row {copied} was copied, but its sequence {name} has not come so far: the table was made anew or \
             restored from an older backup; give the source another `name` to copy it from its beginning"
        ))),
        _ => Ok(()),
    }
}

fn read<T>(table: &TableName, answer: Result<T, String>) -> Result<T, SourceError> {
    answer.map_err(|problem| SourceError::Read { table: table.to_string(), problem })
}
