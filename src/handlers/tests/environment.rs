//! What a child knows, and what it does not.

use std::collections::BTreeMap;

use crate::handlers::exec::Exec;
use crate::handlers::exec::ExecOptions;
use crate::handlers::tests::stage::Stage;
use crate::handlers::tests::stage::reason;
use crate::handlers::tests::stage::script;
use crate::message::Message;

/// A variable of this process that no child gets by itself.
fn own_variable() -> (String, String) {
    let is_own =
        |name: &str| !ALLOWED.contains(&name) && !name.starts_with("SERIATIM_") && !SHELL.contains(&name);
    let mut variables = std::env::vars();
    variables
        .find(|(name, value)| is_own(name) && !value.contains('\n'))
        .expect("whoever runs tests has variables")
}

const ALLOWED: [&str; 4] = ["PATH", "HOME", "LANG", "TZ"];

/// What a shell adds itself.
const SHELL: [&str; 4] = ["PWD", "OLDPWD", "SHLVL", "_"];

/// The environment of a child that handles a message.
async fn environment(message: Message, change: impl FnOnce(&mut ExecOptions)) -> BTreeMap<String, String> {
    let stage = Stage::new().await;
    let mut options = script(stage.folder.path(), "env > env");
    change(&mut options);
    stage.handle(&Exec::new(options, stage.site.clone()), message).await.unwrap();
    let text = std::fs::read_to_string(stage.folder.path().join("env")).unwrap();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[tokio::test]
async fn nothing_of_the_daemon_leaks_into_a_child() {
    let (leak, _) = own_variable();
    let seen = environment(Message::new(""), |_| ()).await;
    assert!(!seen.contains_key(&leak));
    for name in seen.keys().map(String::as_str) {
        let is_expected = ALLOWED.contains(&name) || name.starts_with("SERIATIM_") || SHELL.contains(&name);
        assert!(is_expected, "{name}");
    }
}

#[tokio::test]
async fn a_child_gets_what_its_definition_passes_and_sets() {
    let (passed, value) = own_variable();
    let seen = environment(Message::new(""), |options| {
        options.program.pass_env = vec![passed.clone(), "NO_SUCH_VARIABLE".to_owned()];
        options.program.env = BTreeMap::from([("COLOUR".to_owned(), "blue = sky".to_owned())]);
    });
    let seen = seen.await;
    assert_eq!(seen["COLOUR"], "blue = sky");
    assert_eq!(seen[&passed], value);
    assert!(!seen.contains_key("NO_SUCH_VARIABLE"));
}

#[tokio::test]
async fn a_child_knows_its_message() {
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let message = Message::new("")
        .workflow("order-17")
        .message_id("m-1")
        .subject("paid; rm -rf /")
        .content_type("text/plain")
        .property("tenant-name", "blue")
        .property("traceparent", trace)
        .property("zero", "a\0b");
    let seen = environment(message, |_| ()).await;
    for (name, value) in [
        ("QUEUE", "orders"),
        ("WORKFLOW", "order-17"),
        ("SEQUENCE_NUMBER", "1"),
        ("MESSAGE_ID", "m-1"),
        ("SUBJECT", "paid; rm -rf /"),
        ("CONTENT_TYPE", "text/plain"),
        ("DELIVERY_COUNT", "1"),
        ("PROPERTY_TENANT_NAME", "blue"),
    ] {
        assert_eq!(seen[&format!("SERIATIM_{name}")], value);
    }
    assert_eq!(seen["TRACEPARENT"], trace);
    assert!(seen["SERIATIM_STORE"].starts_with("store-"));
    assert!(seen["SERIATIM_ACCEPTED_AT"].ends_with('Z'));
    assert_eq!(seen["SERIATIM_LOCK_TOKEN"].len(), 36);
    assert_eq!(seen["SERIATIM_PROPERTY_ZERO_BASE64"], "YQBi");
    for absent in ["SERIATIM_POSITION", "SERIATIM_STATE", "SERIATIM_PROPERTY_ZERO"] {
        assert!(!seen.contains_key(absent), "{absent}");
    }
}

#[tokio::test]
async fn odd_names_and_texts_are_not_lost() {
    let message = Message::new("")
        .workflow("a\0b")
        .property("tenant-name", "blue")
        .property("tenant_name", "red")
        .property("caf\u{e9}", 7_i64);
    let seen = environment(message, |_| ()).await;
    assert_eq!(seen["SERIATIM_WORKFLOW_BASE64"], "YQBi");
    assert!(!seen.contains_key("SERIATIM_PROPERTY_TENANT_NAME"), "whose it is would be a guess");
    assert_eq!(seen["SERIATIM_PROPERTY_CAF_"], "7");
    let all: serde_json::Value = serde_json::from_str(&seen["SERIATIM_PROPERTIES"]).unwrap();
    assert_eq!(all, serde_json::json!({ "tenant-name": "blue", "tenant_name": "red", "caf\u{e9}": 7 }));
}

#[tokio::test]
async fn a_trace_that_is_none_is_not_passed_on() {
    let seen = environment(Message::new("").property("traceparent", "\u{e9}"), |_| ()).await;
    assert!(!seen.contains_key("TRACEPARENT"));
}

#[tokio::test]
async fn a_child_gets_its_workflows_state_or_is_not_run() {
    let stage = Stage::new().await;
    let exec = Exec::new(script(stage.folder.path(), "[ \"$SERIATIM_STATE\" = seen ]"), stage.site.clone());
    let workflow = stage.queue.workflow("w").unwrap();
    workflow.set_state(Some("seen".into())).await.unwrap();
    stage.handle(&exec, Message::new("").workflow("w")).await.unwrap();
    workflow.set_state(Some("x".repeat(200_000).into())).await.unwrap();
    let why = reason(stage.handle(&exec, Message::new("").workflow("w")).await);
    assert!(why.starts_with("the workflow's state (200000 bytes) does not fit"), "{why}");
}
