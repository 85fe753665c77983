//! Names of tables and columns, and the statements that are made of them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::error::Misuse;
use crate::limits;

/// A table, with its schema if that is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableName {
    schema: Option<String>,
    name: String,
}

impl FromStr for TableName {
    type Err = Misuse;

    fn from_str(text: &str) -> Result<TableName, Misuse> {
        let (schema, name) = match text.split_once('.') {
            Some((schema, name)) => (Some(schema.to_owned()), name.to_owned()),
            None => (None, text.to_owned()),
        };
        for part in schema.iter().chain([&name]) {
            check_name("table", part)?;
        }
        Ok(TableName { schema, name })
    }
}

impl TableName {
    /// As SQL takes it, whatever is in it.
    pub(crate) fn quoted(&self) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", quoted(schema), quoted(&self.name)),
            None => quoted(&self.name),
        }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// Which column of an outbox holds what.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct OutboxColumns {
    /// The number of a row, given by a sequence: rows are copied in its order.
    pub id: String,
    /// The body: json, jsonb, text or bytea.
    pub body: String,
    /// The workflow ID. Without it, the queue's key says it, if it has one.
    pub workflow_id: Option<String>,
    /// The position, in a queue ordered by position.
    pub position: Option<String>,
    /// The message ID of the predecessor, in a queue with order = "after"; null is the first of a workflow.
    pub after: Option<String>,
    /// The message ID. Without it, it is what the queue reads, or else the number of the row.
    pub message_id: Option<String>,
    /// The subject.
    pub subject: Option<String>,
    /// The properties, a JSON object of text, numbers, true and false.
    pub properties: Option<String>,
}

impl Default for OutboxColumns {
    fn default() -> OutboxColumns {
        OutboxColumns {
            id: "id".to_owned(),
            body: "body".to_owned(),
            workflow_id: None,
            position: None,
            after: None,
            message_id: None,
            subject: None,
            properties: None,
        }
    }
}

impl OutboxColumns {
    /// The columns that are named, each with its name in a definition.
    pub(crate) fn named(&self) -> Vec<(&'static str, &str)> {
        let optional = [
            ("workflow_id", &self.workflow_id),
            ("position", &self.position),
            ("after", &self.after),
            ("message_id", &self.message_id),
            ("subject", &self.subject),
            ("properties", &self.properties),
        ];
        let mut named = vec![("id", self.id.as_str()), ("body", self.body.as_str())];
        named.extend(optional.into_iter().filter_map(|(what, column)| Some((what, column.as_deref()?))));
        named
    }
}

/// Refuses what PostgreSQL would cut off, or no name can hold.
pub(crate) fn check_name(what: &'static str, name: &str) -> Result<(), Misuse> {
    let max = limits::POSTGRES_NAME_BYTES_MAX;
    match name.len() {
        0 => Err(Misuse::new(what, "is empty")),
        length if length > max => {
            Err(Misuse::new(what, format!("has {length} bytes, at most {max} are allowed")))
        }
        _ if name.contains('\0') => Err(Misuse::new(what, "has a zero byte")),
        _ => Ok(()),
    }
}

/// A name as SQL takes it, whatever is in it.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Reads the rows behind a number, in order. The body stays as it is; everything else comes as text. What no message can have is left
/// out, so that it need not be sent; the last columns have the length of each of the others in bytes, and the type of the body.
pub(crate) fn select(table: &TableName, columns: &OutboxColumns, is_body_bytes: bool) -> String {
    let text = |column: &Option<String>| match column {
        Some(column) => format!("o.{}::text", quoted(column)),
        None => "null::text".to_owned(),
    };
    let body = match is_body_bytes {
        true => format!("o.{}", quoted(&columns.body)),
        false => format!("o.{}::text", quoted(&columns.body)),
    };
    let others = [
        &columns.workflow_id,
        &columns.position,
        &columns.after,
        &columns.message_id,
        &columns.subject,
        &columns.properties,
    ];
    let read: Vec<String> = std::iter::once(body).chain(others.map(text)).collect();
    let each = |write: &dyn Fn(usize, &str) -> String| {
        read.iter().enumerate().map(|(at, column)| write(at, column)).collect::<Vec<_>>().join(", ")
    };
    let named = each(&|at, column| format!("{column} as c{at}"));
    let bounded = each(&|at, _| {
        let max = if at == 0 { limits::BODY_BYTES_CEILING } else { limits::SOURCE_TEXT_BYTES_MAX };
        format!("case when octet_length(r.c{at}) <= {max} then r.c{at} end")
    });
    let lengths = each(&|at, _| format!("octet_length(r.c{at})"));
    let (id, body_column, table) = (quoted(&columns.id), quoted(&columns.body), table.quoted());
    // With an offset, what is made text is made so once.
    format!(
        "select o.{id}::int8, {bounded}, array[{lengths}], pg_typeof(o.{body_column})::text from {table} o \
         cross join lateral (select {named} offset 0) r where o.{id} > $1::int8 order by o.{id} limit $2::int8"
    )
}

/// The highest number that can be seen, and the transactions that may still bring a lower one: those that are open in this
/// database, and those that were prepared and hold the table, or one whose rows are read with it: who inserts into a partition itself holds
/// nothing else. Autovacuum inserts nothing, and is known by having no user: what kind of process it is, only some users are told.
pub(crate) fn transactions(table: &TableName, columns: &OutboxColumns) -> String {
    let (id, table) = (quoted(&columns.id), table.quoted());
    format!(
        "select (select max({id})::int8 from {table}), \
         array(select distinct l.virtualtransaction from pg_locks l left join pg_stat_activity a on a.pid = l.pid \
         where l.granted and ((l.locktype = 'virtualxid' and l.pid <> pg_backend_pid() \
         and a.datname = current_database() and a.usesysid is not null) \
         or (l.locktype = 'relation' and l.mode = 'RowExclusiveLock' \
         and l.database = (select oid from pg_database where datname = current_database()) \
         and l.relation in (with recursive parts as (select $1::oid as part union \
         select i.inhrelid from pg_inherits i join parts on i.inhparent = parts.part) select part from parts))))"
    )
}

/// How many rows there are behind a number, up to a bound.
pub(crate) fn behind(table: &TableName, columns: &OutboxColumns) -> String {
    let (id, table) = (quoted(&columns.id), table.quoted());
    format!("select count(*) from (select 1 from {table} where {id} > $1::int8 limit $2::int8) as behind")
}

/// Deletes the rows of a run of numbers.
pub(crate) fn delete(table: &TableName, columns: &OutboxColumns) -> String {
    let (id, table) = (quoted(&columns.id), table.quoted());
    format!("delete from {table} where {id} > $1::int8 and {id} <= $2::int8")
}
