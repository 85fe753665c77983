//! The JSON schema of a definition: for editors, and for the check of every file.

use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::definition::form::QueueForm;

/// The schema, made once.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(|| {
    // Draft 7, and every part in its place: what all editors understand.
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<QueueForm>().to_value();
    forget_null(&mut schema);
    join_lines(&mut schema);
    schema
});

/// The schema as it is committed: without what only the check of a file knows, and with a line end.
pub(crate) fn schema_text() -> String {
    let mut schema = SCHEMA.clone();
    forget_extensions(&mut schema);
    format!("{schema:#}\n")
}

fn forget_extensions(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|name, _| !name.starts_with("x-"));
            members.values_mut().for_each(forget_extensions);
        }
        Value::Array(elements) => elements.iter_mut().for_each(forget_extensions),
        _ => {}
    }
}

/// Where a comment in the source breaks a line says nothing to a reader of the schema.
fn join_lines(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(description)) = members.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            members.values_mut().for_each(join_lines);
        }
        Value::Array(elements) => elements.iter_mut().for_each(join_lines),
        _ => {}
    }
}

/// TOML has no null: a field that is optional may be left out, that is all.
fn forget_null(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|name, value| name != "default" || !value.is_null());
            if let Some(Value::Array(kinds)) = members.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [kind] = &kinds[..] {
                    let kind = kind.clone();
                    members.insert("type".to_owned(), kind);
                }
            }
            if let Some(Value::Array(alternatives)) = members.get_mut("anyOf") {
                alternatives.retain(|alternative| alternative["type"] != "null");
                if let [Value::Object(only)] = &alternatives[..] {
                    let only = only.clone();
                    members.remove("anyOf");
                    for (name, value) in only {
                        // What the field says of itself comes before what its type says.
                        members.entry(name).or_insert(value);
                    }
                }
            }
            members.values_mut().for_each(forget_null);
        }
        Value::Array(elements) => elements.iter_mut().for_each(forget_null),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Written anew by `SERIATIM_WRITE_SCHEMA=1 cargo test the_committed_schema`.
    #[test]
    fn the_committed_schema_is_the_generated_one() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("seriatim.schema.json");
        if std::env::var_os("SERIATIM_WRITE_SCHEMA").is_some() {
            std::fs::write(&path, schema_text()).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == schema_text(),
            "write it anew: SERIATIM_WRITE_SCHEMA=1 cargo test the_committed_schema"
        );
    }

    #[test]
    fn every_field_says_what_it_is() {
        fn look(schema: &Value, path: &str) {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                let path = format!("{path}.{name}");
                assert!(field["description"].is_string(), "{path} has no description");
                look(field, &path);
                look(&field["items"], &path);
            }
        }
        look(&SCHEMA, "");
    }

    #[test]
    fn there_is_no_null_in_toml() {
        assert!(!schema_text().contains("null\""));
    }
}
