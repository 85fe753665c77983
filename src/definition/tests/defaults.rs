//! What the schema says is the default is the default.

use serde_json::Value;

use crate::api::options::OptionsEnvelope;
use crate::definition::schema::SCHEMA;
use crate::definition::tests::readings::definition;

/// What a table needs besides, so that a field of it can be given.
fn around(table: &str, field: &str) -> (&'static str, &'static str) {
    match (table, field) {
        ("gap", _) | ("duplicates", "late") => ("order = \"position\"\n", ""),
        ("handler", "keep_position") => ("", "forward = \"https://example.com/orders\"\n"),
        ("handler", "processes" | "in_flight_max") => ("", "persistent = [\"sh\"]\n"),
        ("handler" | "notify", "allow_private") => ("", "http = \"https://example.com\"\n"),
        ("handler" | "notify", _) => ("", "exec = [\"sh\"]\n"),
        ("schedule", _) => ("", "name = \"t\"\ncron = \"@daily\"\n"),
        ("source", _) => {
            ("key = \"/order\"\n", "postgres = \"postgres://shop@localhost/shop\"\ntable = \"outbox\"\n")
        }
        _ => ("", ""),
    }
}

fn assignment(field: &str, default: &Value) -> String {
    // Text, numbers and truth look the same in JSON and in TOML.
    format!("{field} = {default}\n")
}

#[test]
fn what_the_schema_calls_a_default_is_what_happens_without() {
    let mut compared = 0;
    for (table, schema) in SCHEMA["properties"].as_object().unwrap() {
        if let Some(default) = schema.get("default").filter(|default| !default.is_array()) {
            assert_eq!(definition(&assignment(table, default)), definition(""), "{table}");
            compared += 1;
        }
        let (header, schema) = match schema.get("items") {
            Some(items) => (format!("[[{table}]]\n"), items),
            None => (format!("[{table}]\n"), schema),
        };
        for (field, schema) in schema["properties"].as_object().into_iter().flatten() {
            let Some(default) = schema.get("default") else { continue };
            let (before, inside) = around(table, field);
            let without = definition(&format!("{before}{header}{inside}"));
            let with = definition(&format!("{before}{header}{inside}{}", assignment(field, default)));
            assert_eq!(with, without, "{table}.{field}");
            compared += 1;
        }
    }
    assert!(compared > 20, "only {compared} defaults were compared");
}

#[test]
fn a_backoff_and_a_first_position_have_their_defaults_too() {
    let backoff = "[retry]\nbackoff = { first = \"1s\", factor = 2, max = \"5m\" }\n";
    assert_eq!(definition(backoff), definition(""));
    let first = "order = \"position\"\nposition = { first = 1 }\n";
    assert_eq!(definition(first), definition("order = \"position\"\n"));
}

#[test]
fn the_columns_of_a_source_have_their_names_too() {
    let source =
        "key = \"/order\"\n[source]\npostgres = \"postgres://shop@localhost/shop\"\ntable = \"outbox\"\n";
    let columns = &SCHEMA["properties"]["source"]["properties"]["columns"]["properties"];
    for column in ["id", "body"] {
        let with = format!("{source}columns = {{ {column} = {} }}\n", columns[column]["default"]);
        assert_eq!(definition(&with), definition(source), "{column}");
    }
}

#[test]
fn a_definition_takes_every_option_that_the_api_has_in_the_same_words() {
    let api = schemars::schema_for!(OptionsEnvelope).to_value();
    let resolved = |schema: &Value| match schema["$ref"].as_str() {
        Some(path) => api.pointer(path.trim_start_matches('#')).unwrap().clone(),
        None => schema.clone(),
    };
    let mut compared = 0;
    for (table, schema) in api["properties"].as_object().unwrap() {
        let of_file = &SCHEMA["properties"][table];
        assert!(of_file.is_object(), "{table}");
        for field in resolved(schema)["properties"].as_object().into_iter().flat_map(|fields| fields.keys()) {
            assert!(of_file["properties"][field].is_object(), "{table}.{field}");
            compared += 1;
        }
    }
    assert!(compared > 20, "only {compared} options were compared");
}
