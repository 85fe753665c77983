//! Whether a file has the form of a definition: the schema is the grammar.
//!
//! Every part of a file that has not the form is recorded as a mistake and taken out, so that the rest can be read and
//! have its own mistakes found.

use std::ops::Range;

use serde_json::Map;
use serde_json::Value;
use toml::Spanned;
use toml::de::DeString;
use toml::de::DeTable;
use toml::de::DeValue;

use crate::api::DURATION_NOTATION;
use crate::api::NOTATION;
use crate::api::RATE_NOTATION;
use crate::api::WireDuration;
use crate::api::WireRate;
use crate::definition::diagnostic::Mistakes;
use crate::definition::suggest::nearest;

/// Takes out of a table what the schema does not allow.
pub(crate) fn prune(schema: &Value, table: &mut DeTable<'_>, mistakes: &mut Mistakes) {
    let empty = Map::new();
    let schema = schema.as_object().unwrap_or(&empty);
    Grammar { root: schema, mistakes }.table(schema, table, &(0..0), "");
}

struct Grammar<'a> {
    root: &'a Map<String, Value>,
    mistakes: &'a mut Mistakes,
}

impl Grammar<'_> {
    /// Checks the members of a table; `name` is how it is written, empty for the file itself.
    fn table(
        &mut self,
        schema: &Map<String, Value>,
        table: &mut DeTable<'_>,
        span: &Range<usize>,
        name: &str,
    ) {
        let fields = schema.get("properties").and_then(Value::as_object);
        let rest = schema.get("additionalProperties");
        let mut wrong: Vec<Spanned<DeString<'_>>> = Vec::new();
        for (key, value) in table.iter_mut() {
            let field = fields.and_then(|fields| fields.get(&**key.get_ref()));
            let is_right = match (field, rest) {
                (Some(field), _) => self.value(field, value, key.get_ref()),
                (None, Some(Value::Bool(false))) => {
                    self.unknown(fields, key, name);
                    false
                }
                (None, Some(any)) => self.value(any, value, key.get_ref()),
                (None, None) => true,
            };
            if !is_right {
                wrong.push(key.clone());
            }
        }
        self.required(schema, table, span, name);
        for key in &wrong {
            table.remove(key);
        }
    }

    fn required(
        &mut self,
        schema: &Map<String, Value>,
        table: &DeTable<'_>,
        span: &Range<usize>,
        name: &str,
    ) {
        for field in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            let field = field.as_str().unwrap_or_default();
            if !table.keys().any(|key| key.get_ref() == field) {
                self.mistakes.add(span, format!("{name} needs `{field}`"));
            }
        }
    }

    fn unknown(&mut self, fields: Option<&Map<String, Value>>, key: &Spanned<DeString<'_>>, name: &str) {
        let written = &**key.get_ref();
        let known: Vec<&str> = fields.into_iter().flat_map(Map::keys).map(String::as_str).collect();
        let help = match (self.owner_of(written), nearest(written, known.iter().copied())) {
            (_, Some(near)) => format!("did you mean `{near}`?"),
            (Some(owner), None) => format!("it belongs into {owner}"),
            (None, None) => format!("known are {}", known.join(", ")),
        };
        let place = if name.is_empty() { "a definition".to_owned() } else { name.to_owned() };
        self.mistakes.add_with_help(&key.span(), format!("`{written}` is not known in {place}"), help);
    }

    /// The tables of the file that have this field, or its top, if that does.
    fn owner_of(&self, field: &str) -> Option<String> {
        let fields = self.root.get("properties").and_then(Value::as_object)?;
        let owners = fields.iter().filter_map(|(name, schema)| {
            let (owner, schema) = match schema.get("items") {
                Some(items) => (format!("[[{name}]]"), items),
                None => (format!("[{name}]"), schema),
            };
            schema.get("properties")?.get(field).map(|_| owner)
        });
        let owners: Vec<String> = owners.collect();
        match owners.as_slice() {
            [] => fields.get(field).map(|_| "the top of the file".to_owned()),
            [owner] => Some(owner.clone()),
            [others @ .., last] => Some(format!("{} or {last}", others.join(", "))),
        }
    }

    /// Checks a value; true when it has the form, apart from what was taken out of it.
    fn value(&mut self, schema: &Value, value: &mut Spanned<DeValue<'_>>, name: &str) -> bool {
        let Some(schema) = schema.as_object() else { return true };
        let alternatives = schema.get("anyOf").or(schema.get("oneOf")).and_then(Value::as_array);
        if let Some(words) = words(schema, alternatives) {
            return self.word(&words, value, name);
        }
        let has_form = match (alternatives, schema.get("type")) {
            (Some(alternatives), _) => {
                let kind = kind(value.get_ref());
                match alternatives.iter().find(|alternative| alternative["type"] == kind) {
                    Some(alternative) => self.value(alternative, value, name),
                    None => self.wrong_kind(alternatives.iter(), value, name),
                }
            }
            (None, Some(expected)) if expected != kind(value.get_ref()) => {
                self.wrong_kind([&Value::Object(schema.clone())].into_iter(), value, name)
            }
            _ => self.content(schema, value, name),
        };
        has_form && self.notation(schema, value, name)
    }

    /// Checks what has a notation of its own: spans of time and rates.
    fn notation(&mut self, schema: &Map<String, Value>, value: &Spanned<DeValue<'_>>, name: &str) -> bool {
        let wrong = match schema.get(NOTATION).and_then(Value::as_str) {
            Some(DURATION_NOTATION) => wrong_duration(schema, value.get_ref(), name),
            Some(RATE_NOTATION) => {
                let rate = value.get_ref().as_str().unwrap_or_default().parse::<WireRate>();
                rate.err().map(|misuse| misuse.to_string())
            }
            _ => None,
        };
        match wrong {
            Some(message) => {
                self.mistakes.add(&value.span(), message);
                false
            }
            None => true,
        }
    }

    fn content(&mut self, schema: &Map<String, Value>, value: &mut Spanned<DeValue<'_>>, name: &str) -> bool {
        let span = value.span();
        match value.get_mut() {
            DeValue::Table(table) => {
                self.table(schema, table, &span, &format!("[{name}]"));
                true
            }
            DeValue::Array(elements) => self.elements(schema, elements, &span, name),
            DeValue::Integer(_) => self.range(schema, value, name),
            _ => true,
        }
    }

    fn elements(
        &mut self,
        schema: &Map<String, Value>,
        elements: &mut [Spanned<DeValue<'_>>],
        span: &Range<usize>,
        name: &str,
    ) -> bool {
        let length = elements.len() as u64;
        let bound = |bound: &str| schema.get(bound).and_then(Value::as_u64);
        if bound("minItems").is_some_and(|least| length < least) {
            self.mistakes.add(span, format!("`{name}` is empty"));
            return false;
        }
        if let Some(most) = bound("maxItems").filter(|most| length > *most) {
            self.mistakes.add(span, format!("`{name}` has {length} entries, at most {most} are allowed"));
            return false;
        }
        let Some(items) = schema.get("items") else { return true };
        let mut is_right = true;
        for element in elements {
            let span = element.span();
            is_right &= match (element.get_mut(), items.as_object()) {
                (DeValue::Table(table), Some(items)) if items.contains_key("properties") => {
                    self.table(items, table, &span, &format!("[[{name}]]"));
                    true
                }
                _ => self.value(items, element, name),
            };
        }
        is_right
    }

    fn word(&mut self, words: &[&str], value: &Spanned<DeValue<'_>>, name: &str) -> bool {
        let written = value.get_ref().as_str();
        if written.is_some_and(|written| words.contains(&written)) {
            return true;
        }
        let known = listed(words.iter().map(|word| format!("\"{word}\"")).collect());
        let help = written.and_then(|written| nearest(written, words.iter().copied()));
        let message = format!("`{name}` must be {known}");
        match help {
            Some(near) => {
                self.mistakes.add_with_help(&value.span(), message, format!("did you mean \"{near}\"?"));
            }
            None => self.mistakes.add(&value.span(), message),
        }
        false
    }

    fn wrong_kind<'s>(
        &mut self,
        expected: impl Iterator<Item = &'s Value>,
        value: &Spanned<DeValue<'_>>,
        name: &str,
    ) -> bool {
        let expected: Vec<&Value> = expected.collect();
        let is_list_of_tables = expected.iter().any(|schema| schema["items"]["properties"].is_object());
        let expected = expected.iter().map(|schema| described(schema["type"].as_str().unwrap_or_default()));
        let found = described(kind(value.get_ref()));
        let message =
            format!("`{name}` must be {}, not {found}", listed(expected.map(str::to_owned).collect()));
        match value.get_ref() {
            DeValue::Table(_) if is_list_of_tables => {
                self.mistakes.add_with_help(&value.span(), message, format!("write [[{name}]]"));
            }
            _ => self.mistakes.add(&value.span(), message),
        }
        false
    }

    fn range(&mut self, schema: &Map<String, Value>, value: &Spanned<DeValue<'_>>, name: &str) -> bool {
        let bound = |bound: &str| schema.get(bound).and_then(number);
        let written = value.get_ref().as_integer();
        let written =
            written.and_then(|integer| i128::from_str_radix(integer.as_str(), integer.radix()).ok());
        // What is beyond the range of TOML itself is beyond every range here.
        let (least, most) = (bound("minimum"), bound("maximum").unwrap_or(i128::from(i64::MAX)));
        match written {
            Some(number) if number <= most && least.is_none_or(|least| number >= least) => true,
            _ => {
                let least = least.unwrap_or(i128::from(i64::MIN));
                self.mistakes.add(&value.span(), format!("`{name}` must be from {least} to {most}"));
                false
            }
        }
    }
}

/// What is wrong with a span of time: none may be nothing or endless, and the schema may have closer bounds.
fn wrong_duration(schema: &Map<String, Value>, value: &DeValue<'_>, name: &str) -> Option<String> {
    let text = match value {
        DeValue::Integer(millis) => millis.as_str(),
        _ => value.as_str().unwrap_or_default(),
    };
    let duration = match text.parse::<WireDuration>() {
        Ok(duration) => duration,
        Err(misuse) => return Some(format!("`{name}`: {misuse}")),
    };
    let bound = |bound: &str| schema.get(bound)?.as_str()?.parse::<WireDuration>().ok();
    match (bound("x-min"), bound("x-max")) {
        (Some(least), Some(most)) if !(least..=most).contains(&duration) => {
            Some(format!("`{name}` must be from {least} to {most}"))
        }
        _ if duration.0.is_zero() => Some(format!("`{name}` must be more than zero and at most 100 years")),
        _ => None,
    }
}

/// The words a value is one of, if it is one of certain words.
fn words<'s>(schema: &'s Map<String, Value>, alternatives: Option<&'s Vec<Value>>) -> Option<Vec<&'s str>> {
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return Some(words.iter().filter_map(Value::as_str).collect());
    }
    alternatives?.iter().map(|alternative| alternative["const"].as_str()).collect()
}

fn number(value: &Value) -> Option<i128> {
    value.as_i64().map(i128::from).or(value.as_u64().map(i128::from))
}

/// The kind of a TOML value, in the words of a schema.
fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "string",
        DeValue::Integer(_) => "integer",
        DeValue::Float(_) => "number",
        DeValue::Boolean(_) => "boolean",
        DeValue::Datetime(_) => "date",
        DeValue::Array(_) => "array",
        DeValue::Table(_) => "object",
    }
}

/// A kind, in a person's words.
fn described(kind: &str) -> &'static str {
    match kind {
        "string" => "text in quotes",
        "integer" => "a whole number",
        "number" => "a floating-point number",
        "boolean" => "true or false",
        "date" => "a date",
        "array" => "a list in [ ]",
        _ => "a table",
    }
}

fn listed(mut parts: Vec<String>) -> String {
    match parts.pop() {
        Some(last) if !parts.is_empty() => format!("{} or {last}", parts.join(", ")),
        last => last.unwrap_or_default(),
    }
}
