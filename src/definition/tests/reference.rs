//! The page about definitions shows every field there is, and its examples are definitions.

use std::path::Path;
use std::path::PathBuf;

use serde_json::Map;
use serde_json::Value;

use crate::api::made_part;
use crate::definition::Definitions;
use crate::definition::LoadError;
use crate::definition::schema::SCHEMA;

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/definitions.md")
}

/// The tables of all fields, as Markdown.
fn reference() -> String {
    let mut text = String::from("### The top of the file\n\n");
    let fields = SCHEMA["properties"].as_object().unwrap();
    let (tables, plain): (Vec<_>, Vec<_>) = fields.iter().partition(|(_, field)| inner(field).is_some());
    text += &table(plain.into_iter());
    for (name, field) in tables {
        let header = if field["type"] == "array" { format!("[[{name}]]") } else { format!("[{name}]") };
        text += &format!("\n### `{header}`\n\n{}\n\n", text_of(field));
        text += &table(inner(field).unwrap().iter());
    }
    for (name, of) in [("key", "`key`, `after` and `message_id`"), ("position", "`position`")] {
        text += &format!("\n### The table of {of}\n\n");
        text += &table(fields[name]["anyOf"][1]["properties"].as_object().unwrap().iter());
    }
    text += "\n### The table of `backoff`\n\n";
    text += &table(fields["retry"]["properties"]["backoff"]["properties"].as_object().unwrap().iter());
    text
}

/// The fields of a table or of each table of a list.
fn inner(field: &Value) -> Option<&Map<String, Value>> {
    field["properties"].as_object().or(field["items"]["properties"].as_object())
}

fn table<'f>(fields: impl Iterator<Item = (&'f String, &'f Value)>) -> String {
    let mut text = String::from("| field | value | default | |\n|---|---|---|---|\n");
    for (name, field) in fields {
        let default = field.get("default").map(|default| format!("`{default}`")).unwrap_or_default();
        text += &format!("| `{name}` | {} | {default} | {} |\n", kind(field), text_of(field));
    }
    text
}

fn text_of(field: &Value) -> String {
    let mut text = field["description"].as_str().unwrap().to_owned();
    for word in words(field) {
        text += &format!(
            "<br>`\"{}\"`: {}",
            word["const"].as_str().unwrap(),
            word["description"].as_str().unwrap()
        );
    }
    text
}

fn words(field: &Value) -> Vec<&Value> {
    let words = field["oneOf"].as_array().into_iter().flatten();
    words.filter(|word| word.get("const").is_some()).collect()
}

fn kind(field: &Value) -> String {
    let range = match (field.get("minimum"), field.get("maximum")) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        _ => String::new(),
    };
    match field["type"].as_str() {
        _ if !words(field).is_empty() => "a word".to_owned(),
        _ if field["oneOf"].is_array() => "duration".to_owned(),
        _ if field["anyOf"].is_array() => "pointer or table".to_owned(),
        Some("string") => "text".to_owned(),
        Some("integer") => format!("number{range}"),
        Some("boolean") => "true or false".to_owned(),
        Some("array") => match (&field["items"], field["maxItems"].as_u64()) {
            (items, Some(most)) => format!("list of {}, at most {most}", kind(items)),
            (items, None) => format!("list of {}", kind(items)),
        },
        Some("object") => "table".to_owned(),
        _ => "any value".to_owned(),
    }
}

#[test]
fn the_page_shows_every_field_as_the_schema_has_it() {
    made_part::check("docs/definitions.md", ("the schema", "the_page"), &reference());
}

#[test]
fn every_example_of_the_page_is_a_definition() {
    let text = std::fs::read_to_string(page()).unwrap();
    let examples: Vec<&str> =
        text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() >= 4, "{}", examples.len());
    let folder = tempfile::tempdir().unwrap();
    // What the examples forward to, and the scripts they run.
    for file in ["invoices.toml", "paid.py", "page.sh", "thumbnail.py", "index.py", "nightly.py"] {
        std::fs::write(folder.path().join(file), "").unwrap();
    }
    for example in examples {
        std::fs::write(folder.path().join("example.toml"), example).unwrap();
        if let Err(LoadError::Mistakes(mut mistakes)) = Definitions::load(folder.path()) {
            // Secrets of the examples are in nobody's environment.
            mistakes.retain(|mistake| !mistake.message.contains("there is no environment variable"));
            assert!(
                mistakes.is_empty(),
                "{}",
                mistakes.iter().map(|mistake| mistake.render(false)).collect::<String>()
            );
        }
    }
}
