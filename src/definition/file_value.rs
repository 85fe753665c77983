//! What a file gives, with its place in the file.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use schemars::JsonSchema;
use schemars::Schema;
use schemars::SchemaGenerator;
use schemars::json_schema;
use serde::Deserialize;
use serde::Deserializer;
use serde::de;
use serde::de::MapAccess;
use serde::de::Visitor;
use serde::de::value::MapAccessDeserializer;

/// A value, and where in the file it stands.
#[derive(Clone, Debug)]
pub(crate) struct FileValue<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for FileValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FileValue<T>, D::Error> {
        let spanned = toml::Spanned::deserialize(deserializer)?;
        Ok(FileValue { span: spanned.span(), value: spanned.into_inner() })
    }
}

impl<T: JsonSchema> JsonSchema for FileValue<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}

/// The place of a value that may be missing.
pub(crate) fn span<T>(given: &Option<FileValue<T>>) -> Option<Range<usize>> {
    given.as_ref().map(|given| given.span.clone())
}

/// The value that may be missing.
pub(crate) fn value<T: Copy>(given: &Option<FileValue<T>>) -> Option<T> {
    given.as_ref().map(|given| given.value)
}

/// Text that says the usual thing, or a table that says more.
#[derive(Clone, Debug)]
pub(crate) enum TextOr<T> {
    Text(String),
    Table(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TextOr<T>, D::Error> {
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// Tells text from a table by itself: serde's own way would lose the places of what is in the table.
struct Either<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
    type Value = TextOr<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text or a table")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOr<T>, E> {
        Ok(TextOr::Text(text.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOr<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Table)
    }
}

impl<T: JsonSchema> JsonSchema for TextOr<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("TextOr{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<T>();
        json_schema!({ "anyOf": [{ "type": "string", "pattern": "^/" }, table] })
    }
}
