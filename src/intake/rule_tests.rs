//! A message finds its place by what it says, and never by a guess.

use std::time::Duration;

use proptest::prelude::*;

use crate::error::Misuse;
use crate::intake::rule::IntakeRule;
use crate::intake::rule::Sources;
use crate::intake::source::FieldSource;
use crate::intake::source::HeaderName;
use crate::intake::source::Pointer;
use crate::message::Message;

fn pointer(text: &str) -> Option<FieldSource> {
    Some(FieldSource::Pointer(Pointer::new(text).unwrap()))
}

fn orders() -> IntakeRule {
    let sources = Sources { key: pointer("/order_id"), position: pointer("/version"), ..Sources::default() };
    IntakeRule::new(sources, Vec::new())
}

fn chain() -> IntakeRule {
    let sources = Sources {
        key: pointer("/doc"),
        predecessor: pointer("/previous"),
        message_id: pointer("/id"),
        ..Sources::default()
    };
    IntakeRule::new(sources, Vec::new())
}

/// Workflow and position of a body, or what is wrong.
fn placed(rule: &IntakeRule, body: &'static str) -> Result<(String, u64), String> {
    let placed = rule.place(Message::new(body));
    placed
        .map(|message| (message.workflow_id.unwrap_or_default(), message.position.unwrap_or_default()))
        .map_err(|error| error.to_string())
}

fn refused(placed: Result<Message, Misuse>) -> String {
    placed.unwrap_err().to_string()
}

#[test]
fn workflow_and_position_are_read_from_the_body() {
    let rule = orders();
    assert_eq!(placed(&rule, r#"{"order_id":"o-1","version":3}"#), Ok(("o-1".into(), 3)));
    assert_eq!(placed(&rule, r#"{"version":"3","order_id":"\u00e9\n"}"#), Ok(("\u{e9}\n".into(), 3)));
}

#[test]
fn a_number_is_a_key_as_it_is_written() {
    let key = |body| placed(&orders(), body).unwrap().0;
    assert_eq!(key(r#"{"order_id":18446744073709551617,"version":1}"#), "18446744073709551617");
    assert_eq!(key(r#"{"order_id":1.10,"version":1}"#), "1.10");
    assert_eq!(key(r#"{"order_id":-1E5,"version":1}"#), "-1E5");
}

#[test]
fn what_is_missing_or_wrong_is_named_by_its_pointer() {
    let rule = orders();
    for (body, problem) in [
        (r#"{"version":3}"#, "workflow ID is read from /order_id, which is missing"),
        (r#"{"order_id":null,"version":3}"#, "workflow ID is read from /order_id, which is null"),
        (r#"{"order_id":true,"version":3}"#, "workflow ID is read from /order_id, which is a boolean"),
        (r#"{"order_id":{},"version":3}"#, "workflow ID is read from /order_id, which is an object"),
        (r#"{"order_id":[1],"version":3}"#, "workflow ID is read from /order_id, which is an array"),
        (r#"{"order_id":"","version":3}"#, "workflow ID is read from /order_id, which is empty text"),
        (
            r#"{"order_id":1,"order_id":1,"version":3}"#,
            "workflow ID is read from /order_id, which is there twice",
        ),
        (r#"{"order_id":1}"#, "position is read from /version, which is missing"),
        (
            r#"{"order_id":1,"version":-3}"#,
            "position is read from /version, which is \"-3\", no whole number above zero",
        ),
        (
            r#"{"order_id":1,"version":3.0}"#,
            "position is read from /version, which is \"3.0\", no whole number above zero",
        ),
        (
            r#"{"order_id":1,"version":"+3"}"#,
            "position is read from /version, which is \"+3\", no whole number above zero",
        ),
        (
            r#"{"order_id":1,"version":0}"#,
            "position is read from /version, which is 0, not from 1 to 281474976710655",
        ),
        (
            r#"{"order_id":1,"version":99999999999999999999}"#,
            "position is read from /version, which is 99999999999999999999, not from 1 to 281474976710655",
        ),
        (
            "order 17",
            "workflow ID is read from /order_id, which cannot be read: the body is not JSON (expected value at line 1 \
             column 1)",
        ),
    ] {
        assert_eq!(placed(&rule, body).unwrap_err(), problem, "{body}");
    }
}

#[test]
fn what_the_sender_says_has_to_agree_with_what_is_read() {
    let rule = orders();
    let body = r#"{"order_id":"o-1","version":3}"#;
    assert!(rule.place(Message::new(body).workflow("o-1").position(3)).is_ok());
    let other = rule.place(Message::new(body).workflow("o-2"));
    assert_eq!(refused(other), "workflow ID is given as o-2, but /order_id says o-1");
    let other = rule.place(Message::new(body).position(4));
    assert_eq!(refused(other), "position is given as 4, but /version says 3");
}

#[test]
fn what_the_sender_says_need_not_be_in_the_message_too() {
    for body in ["{}", "no JSON", "", r#"{"order_id":null}"#] {
        let placed = orders().place(Message::new(body).workflow("o-1").position(3)).unwrap();
        assert_eq!((placed.workflow_id.as_deref(), placed.position), (Some("o-1"), Some(3)));
    }
    assert!(orders().place(Message::new(r#"{"order_id":true}"#).workflow("o-1").position(3)).is_err());
}

#[test]
fn a_predecessor_may_be_null_or_empty_for_the_first() {
    let after = |body: &'static str| chain().place(Message::new(body)).map(|message| message.after);
    assert_eq!(after(r#"{"doc":1,"id":"b","previous":"a"}"#).unwrap(), Some(Some("a".to_owned())));
    assert_eq!(after(r#"{"doc":1,"id":"a","previous":null}"#).unwrap(), Some(None));
    assert_eq!(after(r#"{"doc":1,"id":"a","previous":""}"#).unwrap(), Some(None));
    let missing = after(r#"{"doc":1,"id":"a"}"#).unwrap_err();
    assert_eq!(missing.to_string(), "predecessor is read from /previous, which is missing");
    let first = chain().place(Message::new(r#"{"doc":1,"id":"a","previous":"b"}"#).first());
    assert_eq!(
        refused(first),
        "predecessor is given as none, the first of its workflow, but /previous says b"
    );
}

#[test]
fn headers_and_properties_are_sources_too() {
    let sources = Sources {
        key: Some(FieldSource::Header(HeaderName::MessageId)),
        position: Some(FieldSource::Property("nr".to_owned())),
        message_id: pointer("/id"),
        ..Sources::default()
    };
    let rule = IntakeRule::new(sources, Vec::new());
    let message = || Message::new(r#"{"id":"m-1"}"#);
    let placed = rule.place(message().property("nr", 7_i64)).unwrap();
    assert_eq!((placed.workflow_id.as_deref(), placed.position), (Some("m-1"), Some(7)));
    assert_eq!(rule.place(message().property("nr", "8")).unwrap().position, Some(8));
    for (placed, problem) in [
        (rule.place(message()), "is missing"),
        (rule.place(message().property("nr", 7.0)), "is a floating-point number"),
        (rule.place(message().property("nr", true)), "is a boolean"),
    ] {
        assert_eq!(refused(placed), format!("position is read from the property nr, which {problem}"));
    }
}

#[test]
fn without_a_pointer_the_body_is_not_read() {
    let sources = Sources { key: Some(FieldSource::Header(HeaderName::Subject)), ..Sources::default() };
    let placed = IntakeRule::new(sources, Vec::new()).place(Message::new(vec![0xff, 0xfe]).subject("s"));
    assert_eq!(placed.unwrap().workflow_id.as_deref(), Some("s"));
    assert!(IntakeRule::default().place(Message::new(vec![0xff])).is_ok());
}

#[test]
fn exact_delays_follow_each_other_and_the_last_repeats() {
    let delays = [1, 10, 60].map(Duration::from_secs);
    let rule = IntakeRule::new(Sources::default(), delays.to_vec());
    let found = [0, 1, 2, 3, 4, u32::MAX].map(|count| rule.retry_delay(count).unwrap().as_secs());
    assert_eq!(found, [1, 1, 10, 60, 60, 60]);
    assert_eq!(IntakeRule::default().retry_delay(1), None);
}

/// JSON values that nest a little and often have the members that are looked for.
fn values() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        ".{0,4}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let members = prop::collection::btree_map("[ab01~/]{1,2}", inner.clone(), 0..4);
        prop_oneof![
            members.prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
            prop::collection::vec(inner, 0..3).prop_map(Into::into),
        ]
    })
}

proptest! {
    #[test]
    fn a_value_is_found_exactly_where_its_pointer_leads(
        body in values(), tokens in prop::collection::vec("[ab01~/]{1,2}", 1..4)
    ) {
        let path: Vec<String> =
            tokens.iter().map(|token| token.replace('~', "~0").replace('/', "~1")).collect();
        let path = format!("/{}", path.join("/"));
        let sources = Sources { key: pointer(&path), predecessor: pointer(&path), ..Sources::default() };
        let placed = IntakeRule::new(sources, Vec::new()).place(Message::new(body.to_string()));
        match body.pointer(&path) {
            Some(serde_json::Value::String(text)) if !text.is_empty() => {
                let placed = placed.unwrap();
                prop_assert_eq!(placed.workflow_id.as_ref(), Some(text));
                prop_assert_eq!(placed.after, Some(Some(text.clone())));
            }
            Some(serde_json::Value::Number(number)) => {
                prop_assert_eq!(placed.unwrap().workflow_id, Some(number.to_string()));
            }
            _ => prop_assert!(placed.unwrap_err().to_string().contains(&path)),
        }
    }
}
