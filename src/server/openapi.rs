//! The OpenAPI document, made of the table of routes.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use schemars::Schema;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use crate::api::Problem;
use crate::api::Verb;
use crate::server::answer::PROBLEM_JSON;
use crate::server::answer::to_json;
use crate::server::route::Gives;
use crate::server::route::RequiredRight;
use crate::server::route::Route;
use crate::server::route::RouteFacts;
use crate::server::route::Takes;

/// The document of the routes there are, as JSON. It never changes while the process runs.
pub(crate) fn document(routes: fn() -> Vec<Route>) -> &'static [u8] {
    static DOCUMENT: OnceLock<Vec<u8>> = OnceLock::new();
    DOCUMENT.get_or_init(|| to_json(&describe(&routes())))
}

/// The document.
pub(crate) fn describe(routes: &[Route]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    let problem = generator.subschema_for::<Problem>();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in routes {
        let operation = describe_route(&route.facts, &mut generator);
        let method = route.facts.method.as_str().to_ascii_lowercase();
        paths.entry(route.facts.path).or_default().insert(method, operation);
    }
    json!({
        "openapi": "3.1.0",
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "info": {
            "title": "seriatim",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Messages of one workflow, one at a time, in order.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": generator.take_definitions(true),
            "responses": {
                "Problem": {
                    "description": "What went wrong: `code` says it to programs, `detail` to people",
                    "content": { PROBLEM_JSON: { "schema": problem } },
                },
            },
            "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } },
        },
    })
}

fn describe_route(facts: &RouteFacts, generator: &mut SchemaGenerator) -> Value {
    let mut operation = Map::new();
    operation.insert("operationId".to_owned(), operation_id(facts).into());
    operation.insert("summary".to_owned(), facts.says.into());
    operation.insert("tags".to_owned(), json!([tag(facts)]));
    let parameters = parameters(facts, generator);
    if !parameters.is_empty() {
        operation.insert("parameters".to_owned(), parameters.into());
    }
    match facts.takes {
        Takes::Nothing => {}
        Takes::Json(schema) => {
            let content = json!({ "application/json": { "schema": schema(generator) } });
            operation.insert("requestBody".to_owned(), json!({ "content": content }));
        }
        Takes::Bytes(media_types) => {
            let content: Map<String, Value> =
                media_types.iter().map(|media_type| ((*media_type).to_owned(), json!({}))).collect();
            operation.insert("requestBody".to_owned(), json!({ "content": content }));
        }
    }
    operation.insert("responses".to_owned(), responses(facts, generator));
    match facts.need {
        RequiredRight::Nothing => operation.insert("security".to_owned(), json!([])),
        RequiredRight::Right(right) => {
            operation.insert("x-right".to_owned(), right.as_str().into());
            // A server without keys needs none.
            operation.insert("security".to_owned(), json!([{ "key": [] }, {}]))
        }
    };
    Value::Object(operation)
}

/// `post_queues_receive` of `POST /v1/queues/{queue}/receive`.
fn operation_id(facts: &RouteFacts) -> String {
    let words = facts.path.split('/').filter(|word| !word.is_empty() && *word != "v1");
    let plain = words.map(|word| word.trim_matches(['{', '}']).replace('.', "_"));
    let words: Vec<String> = plain.filter(|word| word != "queue").collect();
    let one = if facts.path.ends_with("{queue}") { "_one" } else { "" };
    format!("{}_{}{one}", facts.method.as_str().to_ascii_lowercase(), words.join("_"))
}

fn tag(facts: &RouteFacts) -> &'static str {
    let rest = facts.path.strip_prefix("/v1/queues").unwrap_or_default();
    match rest.split('/').nth(2) {
        Some("messages" | "receive" | "receive_deferred" | "complete" | "deliveries" | "runs") => "messages",
        Some("workflow" | "workflows" | "operate") => "workflows",
        Some("dead_letters") => "dead letters",
        _ if facts.path.starts_with("/v1/queues") => "queues",
        _ => "daemon",
    }
}

fn parameters(facts: &RouteFacts, generator: &mut SchemaGenerator) -> Vec<Value> {
    let mut parameters = Vec::new();
    for word in facts.path.split('/') {
        if let Some(name) = word.strip_prefix('{').and_then(|word| word.strip_suffix('}')) {
            let schema = match name {
                "number" => json!({ "type": "integer", "minimum": 1 }),
                "verb" => generator.subschema_for::<Verb>().to_value(),
                _ => json!({ "type": "string" }),
            };
            parameters.push(json!({ "name": name, "in": "path", "required": true, "schema": schema }));
        }
    }
    if let Some(query) = facts.query {
        parameters.extend(query_parameters(&resolved(query(generator), generator)));
    }
    for (name, says) in facts.headers {
        let schema = json!({ "type": "string" });
        parameters.push(json!({ "name": name, "in": "header", "description": says, "schema": schema }));
    }
    parameters
}

/// The schema a reference leads to: parameters are listed one by one.
fn resolved(schema: Schema, generator: &SchemaGenerator) -> Value {
    let schema = schema.to_value();
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next());
    match name.and_then(|name| generator.definitions().get(name)) {
        Some(definition) => definition.clone(),
        None => schema,
    }
}

fn query_parameters(object: &Value) -> Vec<Value> {
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let describe = |(name, property): (&String, &Value)| {
        let mut schema = property.clone();
        let says = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        let required = required.contains(&name.as_str());
        json!({ "name": name, "in": "query", "required": required, "description": says, "schema": schema })
    };
    object["properties"].as_object().into_iter().flatten().map(describe).collect()
}

fn responses(facts: &RouteFacts, generator: &mut SchemaGenerator) -> Value {
    let mut responses: Map<String, Value> = Map::new();
    for Gives { status, says, media_type, schema } in &facts.gives {
        let response = responses
            .entry(status.as_str())
            .or_insert_with(|| json!({ "description": says }))
            .as_object_mut();
        let Some(response) = response else { continue };
        if media_type.is_empty() {
            continue;
        }
        let content = match schema {
            Some(schema) => json!({ "schema": schema(generator) }),
            None => json!({ "schema": { "type": "string" } }),
        };
        response.entry("content").or_insert_with(|| json!({}))[*media_type] = content;
    }
    responses.insert("default".to_owned(), json!({ "$ref": "#/components/responses/Problem" }));
    Value::Object(responses)
}
