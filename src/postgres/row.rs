//! A row as a message.

use bytes::Bytes;
use serde_json::Value;
use tokio_postgres::Row;

use crate::header::PropertyValue;
use crate::limits;
use crate::message::Message;
use crate::postgres::table::BodyKind;
use crate::postgres::table::body_kind;

/// A row that was read.
#[derive(Debug)]
pub(crate) struct OutboxRow {
    /// Its number.
    pub(crate) id: i64,
    /// What it says.
    pub(crate) message: Message,
    /// How large it is, roughly.
    pub(crate) bytes: usize,
}

/// The body of a row of [`crate::postgres::sql::select`].
///
/// # Errors
/// The column is of another kind than when the table was checked.
pub(crate) fn body(row: &Row, kind: BodyKind) -> Result<Bytes, String> {
    let now: &str = row.get(9);
    if body_kind(now) != Some(kind) {
        return Err(format!("its column of bodies has become {now}"));
    }
    let bytes = match kind {
        BodyKind::Bytes => row.get::<_, Option<&[u8]>>(1).map(Bytes::copy_from_slice),
        BodyKind::Json | BodyKind::Text => {
            row.get::<_, Option<&str>>(1).map(|text| Bytes::copy_from_slice(text.as_bytes()))
        }
    };
    Ok(bytes.unwrap_or_default())
}

/// Makes a message of a row of [`crate::postgres::sql::select`].
///
/// # Errors
/// The row's number, and what is wrong with it.
pub(crate) fn message(
    row: &Row,
    (kind, body): (BodyKind, Bytes),
    names_predecessor: bool,
    numbers_are_ids: bool,
) -> Result<OutboxRow, (i64, String)> {
    let id: i64 = row.get(0);
    let bytes = length(&row.get::<_, Vec<Option<i32>>>(8)).map_err(|problem| (id, problem))?;
    let text = |column: usize| row.get::<_, Option<&str>>(column);
    let mut message = Message::new(body);
    if kind == BodyKind::Json {
        message = message.content_type("application/json");
    }
    if let Some(workflow) = text(2) {
        message = message.workflow(workflow);
    }
    if let Some(position) = text(3) {
        let number =
            position.parse::<u64>().map_err(|_| (id, format!("its position {position} is below 1")))?;
        message = message.position(number);
    }
    if names_predecessor {
        message = match text(4) {
            Some(after) if !after.is_empty() => message.after(after),
            _ => message.first(),
        };
    }
    match text(5) {
        Some(message_id) => message = message.message_id(message_id),
        None if numbers_are_ids => message = message.message_id(id.to_string()),
        None => {}
    }
    if let Some(subject) = text(6) {
        message = message.subject(subject);
    }
    if let Some(written) = text(7) {
        for (name, value) in properties(written).map_err(|problem| (id, problem))? {
            message = message.property(name, value);
        }
    }
    Ok(OutboxRow { id, message, bytes })
}

/// What the columns of a row that is no number are, in their order.
const COLUMNS: [&str; 7] =
    ["body", "workflow ID", "position", "predecessor", "message ID", "subject", "properties"];

/// How many bytes the columns have together, each of which has so many; what is wrong with one that was left out.
fn length(lengths: &[Option<i32>]) -> Result<usize, String> {
    let mut all = 0;
    for (what, length) in COLUMNS.iter().zip(lengths) {
        let length = usize::try_from(length.unwrap_or_default()).unwrap_or(usize::MAX);
        let (max, who) = match *what {
            "body" => (limits::BODY_BYTES_CEILING, "no queue takes"),
            _ => (limits::SOURCE_TEXT_BYTES_MAX, "no message can have"),
        };
        if length > max {
            return Err(format!("{what} has {length} bytes; {who} that many"));
        }
        all += length;
    }
    Ok(all)
}

/// Properties are an object of text, numbers and truths; what is null is not there.
fn properties(written: &str) -> Result<Vec<(String, PropertyValue)>, String> {
    let value: Value = serde_json::from_str(written).map_err(|error| format!("its properties: {error}"))?;
    let Value::Object(members) = value else { return Err("its properties are no JSON object".to_owned()) };
    let mut properties = Vec::new();
    for (name, value) in members {
        let value = match value {
            Value::Null => continue,
            Value::String(text) => PropertyValue::Text(text),
            Value::Bool(truth) => PropertyValue::Boolean(truth),
            Value::Number(number) => match (number.as_i64(), number.as_f64()) {
                (Some(whole), _) => PropertyValue::Integer(whole),
                (None, Some(float)) => PropertyValue::Float(float),
                (None, None) => return Err(format!("its property {name:?} is too large a number")),
            },
            Value::Array(_) | Value::Object(_) => {
                return Err(format!("its property {name:?} is neither text, number, true nor false"));
            }
        };
        properties.push((name, value));
    }
    Ok(properties)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_keep_their_kinds_and_what_is_nested_is_refused_by_name() {
        let read = properties(r#"{"a":"x","b":3,"c":1.5,"d":true,"e":null}"#).unwrap();
        let expected = [
            ("a", PropertyValue::Text("x".to_owned())),
            ("b", PropertyValue::Integer(3)),
            ("c", PropertyValue::Float(1.5)),
            ("d", PropertyValue::Boolean(true)),
        ];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value)));
        assert!(properties(r#"{"tags":["a"]}"#).unwrap_err().contains("\"tags\""));
        assert!(properties("[]").unwrap_err().contains("no JSON object"));
    }
}
