//! What is read from a file without mistakes.

use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use crate::clock::Timestamp;
use crate::definition::Definition;
use crate::definition::ForwardTarget;
use crate::definition::HandlerSpec;
use crate::definition::Notice;
use crate::definition::SecretSource;
use crate::definition::read::read;
use crate::header::PropertyValue;
use crate::id::Position;
use crate::intake::FieldSource;
use crate::intake::HeaderName;
use crate::message::Message;
use crate::queue::Backoff;
use crate::queue::ExhaustedPolicy;
use crate::queue::ExpiryPolicy;
use crate::queue::GapAction;
use crate::queue::GapPolicy;
use crate::queue::LatePolicy;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::rate::Rate;
use crate::schedule::MissedTicks;
use crate::topic::Correlation;
use crate::topic::Filter;
use crate::topic::Rule;

pub(crate) const FULL: &str = concat!(
    r#"#:schema ./seriatim.schema.json
name = "orders"
order = "position"
key = "/order_id"
position = { pointer = "/version", first = 3 }
message_id = { header = "correlation_id" }
history = "7d"
[delivery]
lock = "1 min"
count_max = 8
concurrency = 4
renew_for = 120000
defer_for = "15m"
hold_on_defer = true
rate = "30/min"
burst = 5
[retry]
delays = ["1s", "PT10S", 60000]
then = "quarantine"
[gap]
wait = "1w"
then = "skip"
[expiry]
time_to_live = "2 days"
then = "drop"
keep_deferred = true
[duplicates]
window = "10m"
late = "refuse"
[idle]
forget_after = "1h30m"
remember_cursor = "90d"
delete_after = "30d"
delete_with_messages = true
[limits]
body_bytes_max = 0x1000
messages_max = 1_000
dead_letters_max = 50
early_max = 10
early_bytes_max = 20
history_max = 30
cursors_max = 40
[[handler]]
subject = "paid"
exec = ["sh", "-c", "exit 0"]
rate = "10/h"
timeout = "20s"
env = { NAME = "value" }
pass_env = ["HOME"]
output_bytes_max = 100
[[handler]]
subject = "packed"
persistent = ["sh"]
processes = 4
in_flight_max = 2
[[handler]]
subject = "sent"
http = "http://127.0.0.1:9000/orders"
secret_file = ""#,
    env!("CARGO_MANIFEST_DIR"),
    r#"/src/definition/testdata/secret"
allow_private = true
[[handler]]
forward = "https://host:7700/other"
key_env = "PATH"
keep_position = true
[notify]
after = "5m"
exec = ["sh"]
"#
);

pub(crate) fn definition(text: &str) -> Definition {
    read(Path::new("w/orders.toml"), text).result.unwrap_or_else(|mistakes| {
        panic!("{text}\n{}", mistakes.iter().map(|mistake| mistake.render(false)).collect::<String>())
    })
}

#[test]
fn an_empty_file_is_a_queue_with_the_files_name_and_the_defaults() {
    let definition = definition("");
    assert_eq!(definition.name.as_str(), "orders");
    assert_eq!(definition.options, QueueOptions::default());
    assert_eq!((definition.concurrency, definition.renew_for), (64, Duration::from_secs(300)));
    assert!(definition.handlers.is_empty() && definition.schedules.is_empty() && definition.notify.is_none());
}

#[test]
fn every_option_of_a_queue_can_be_said() {
    let definition = definition(FULL);
    let expected = QueueOptions {
        order: Order::Position { first: Position::new(3).unwrap() },
        lock: Duration::from_secs(60),
        delivery_count_max: 8,
        exhausted: Some(ExhaustedPolicy::Quarantine),
        backoff: Backoff::default(),
        gap: GapPolicy { wait: Duration::from_secs(7 * 86_400), then: GapAction::Skip },
        late: LatePolicy::Refuse,
        duplicate_window: Some(Duration::from_secs(600)),
        time_to_live: Some(Duration::from_secs(2 * 86_400)),
        expired: ExpiryPolicy::Drop,
        hold_on_defer: true,
        forget_after: Duration::from_secs(5_400),
        delete_when_idle: Some(Duration::from_secs(30 * 86_400)),
        delete_with_messages: true,
        body_bytes_max: 4_096,
        messages_max: 1_000,
        dead_letters_max: 50,
        early_max: 10,
        early_bytes_max: 20,
        keep_deferred: true,
        rate: Some(Rate { burst: Some(5), ..Rate::per_minute(30) }),
        history: Some(Duration::from_secs(7 * 86_400)),
        history_max: 30,
        remember_cursor: Duration::from_secs(90 * 86_400),
        cursors_max: 40,
    };
    assert_eq!(definition.options, expected);
    assert_eq!((definition.concurrency, definition.renew_for), (4, Duration::from_secs(120)));
    let delays: Vec<u64> =
        (1..=4).map(|count| definition.rule.retry_delay(count).unwrap().as_secs()).collect();
    assert_eq!(delays, [1, 10, 60, 60]);
    assert_eq!(definition.rule.defer_delay(), Some(Duration::from_secs(900)));
}

#[test]
fn sources_are_pointers_headers_and_properties() {
    let sources = |text: &str| definition(text).rule.sources().clone();
    let full = sources(FULL);
    assert_eq!(full.key.unwrap().to_string(), "/order_id");
    assert_eq!(full.position.unwrap().to_string(), "/version");
    assert_eq!(full.message_id, Some(FieldSource::Header(HeaderName::CorrelationId)));
    let after = sources("order = \"after\"\nafter = { property = \"previous\" }\n");
    assert_eq!(after.predecessor, Some(FieldSource::Property("previous".to_owned())));
    assert_eq!(sources("order = \"position\"\nposition = { first = 0x10 }\n").position, None);
}

#[test]
fn the_number_of_a_row_is_its_message_id_unless_a_column_or_the_queue_says_another() {
    let is_id = |before: &str, more: &str| {
        let source = "[source]\npostgres = \"postgres://app@localhost/shop\"\ntable = \"outbox\"\n";
        definition(&format!("key = \"/id\"\n{before}{source}{more}")).outbox.unwrap().numbers_are_ids
    };
    assert!(is_id("", ""));
    assert!(is_id("message_id = { header = \"message_id\" }\n", ""), "that is the one the row comes with");
    assert!(!is_id("message_id = \"/number\"\n", ""));
    assert!(!is_id("", "columns = { message_id = \"uid\" }\n"));
}

#[test]
fn a_backoff_grows_as_it_says() {
    let definition = definition("[retry]\nbackoff = { first = \"250ms\", factor = 3, max = \"1m\" }\n");
    let expected = Backoff { first: Duration::from_millis(250), factor: 3, max: Duration::from_secs(60) };
    assert_eq!(definition.options.backoff, expected);
    assert_eq!(definition.rule.retry_delay(1), None);
}

#[test]
fn a_subject_finds_its_handler_and_every_other_subject_the_one_without() {
    let definition = definition(FULL);
    let kind = |subject| definition.handler(subject).unwrap().spec.kind();
    assert_eq!(kind(Some("paid")), "exec");
    assert_eq!(kind(Some("packed")), "persistent");
    assert_eq!(kind(Some("sent")), "http");
    assert_eq!((kind(Some("Paid")), kind(None)), ("forward", "forward"));
}

#[test]
fn a_handler_has_all_that_it_was_given() {
    let definition = definition(FULL);
    let HandlerSpec::Exec { program, output_bytes_max: 100 } = &definition.handlers[0].spec else {
        panic!("exec")
    };
    assert!(program.path.is_absolute() && program.path.ends_with("sh"), "{}", program.path.display());
    assert_eq!(program.argv, ["sh", "-c", "exit 0"]);
    assert!(program.folder.is_absolute() && program.folder.ends_with("w"));
    assert_eq!((program.env["NAME"].as_str(), &program.pass_env[..]), ("value", &["HOME".to_owned()][..]));
    assert_eq!(definition.handlers[0].timeout, Duration::from_secs(20));
    let persistent = &definition.handlers[1];
    assert!(matches!(persistent.spec, HandlerSpec::Persistent { processes: 4, in_flight_max: 2, .. }));
    assert_eq!(persistent.timeout, Duration::from_secs(30));
    let HandlerSpec::Http { address, secret } = &definition.handlers[2].spec else { panic!("http") };
    assert!(
        matches!(secret, Some(SecretSource::File(path)) if path.ends_with("testdata/secret")),
        "{secret:?}"
    );
    assert!(address.allow_private);
    let HandlerSpec::Forward { target: ForwardTarget::Remote { address, key }, keep_position: true } =
        &definition.handlers[3].spec
    else {
        panic!("forward")
    };
    assert_eq!(
        (address.url.as_str(), key),
        ("https://host:7700/other", &Some(SecretSource::Env("PATH".to_owned())))
    );
    let notify = definition.notify.unwrap();
    assert!(matches!(notify.by, Notice::Exec(_)));
    assert_eq!(notify.after, Duration::from_secs(300));
}

#[test]
fn a_handler_never_has_longer_than_its_lock_is_renewed() {
    let definition = definition("[delivery]\nrenew_for = \"10s\"\n[[handler]]\nexec = [\"sh\"]\n");
    assert_eq!(definition.handlers[0].timeout, Duration::from_secs(10));
}

#[test]
fn a_tick_says_which_it_is() {
    let text = "key = \"/for\"\n[[schedule]]\nname = \"nightly\"\ncron = \"0 2 * * *\"\ntime_zone = \"europe/berlin\"\n\
                missed = \"all\"\nsubject = \"tick\"\nbody = { for = \"night\", at = 2027-01-01, n = [1, 2.5, true] }\n";
    let definition = definition(text);
    let schedule = &definition.schedules[0];
    assert_eq!((schedule.cron.time_zone(), schedule.missed), ("Europe/Berlin", MissedTicks::All));
    let tick = schedule.cron.next_after(Timestamp::from_millis(1_800_000_000_000)).unwrap();
    let message = definition.rule.place(schedule.message(tick)).unwrap();
    assert_eq!(message.body.as_ref(), br#"{"at":"2027-01-01","for":"night","n":[1,2.5,true]}"#);
    assert_eq!(message.workflow_id.as_deref(), Some("night"));
    assert_eq!(message.message_id.as_deref(), Some("nightly/2027-01-16T01:00:00.000Z"));
    assert_eq!(message.headers.content_type.as_deref(), Some("application/json"));
    let expected = PropertyValue::Text("2027-01-16T01:00:00.000Z".to_owned());
    assert_eq!(message.headers.properties["scheduled_for"], expected);
    assert!(message.check().is_ok());
}

#[test]
fn a_tick_without_a_body_is_empty() {
    let text = "[[schedule]]\nname = \"t\"\ncron = \"@daily\"\nworkflow_id = \"w\"\n";
    let message: Message = definition(text).schedules[0].message(Timestamp::default());
    assert_eq!((message.body.len(), message.workflow_id.as_deref()), (0, Some("w")));
    assert_eq!(message.headers.content_type, None);
}

proptest! {
    #[test]
    fn whatever_a_file_holds_it_is_read_or_its_mistakes_are_shown(
        cut in 0..FULL.len(), length in 0..200_usize, put in "[\"\\[\\]{}=.#a-z0-9\n\u{e9} ]{0,12}"
    ) {
        let end = (cut + length).min(FULL.len());
        let text = format!("{}{put}{}", &FULL[..cut], &FULL[end..]);
        if let Err(mistakes) = read(Path::new("w/orders.toml"), &text).result {
            prop_assert!(!mistakes.is_empty());
            for mistake in mistakes {
                prop_assert!(mistake.render(true).len() > mistake.message.len());
            }
        }
    }
}

#[test]
fn a_definition_makes_its_queue_a_subscription() {
    let text = "order = \"position\"\n[subscription]\ntopic = \"orders\"\n\
                rule = [{ name = \"a\", filter = \"amount > 100\" },\n\
                { name = \"b\", correlation = { subject = \"s\", properties = { tenant = 17 } }, action = \"SET a = 1\" }]\n";
    let definition = read(Path::new("billing.toml"), text).result.expect("it is right");
    assert_eq!(definition.name.as_str(), "orders/subscriptions/billing");
    let subscription = definition.subscription.expect("it is one");
    let correlation = Correlation::default().subject("s").property("tenant", 17_i64);
    let expected = [
        Rule::new("a", Filter::sql("amount > 100")),
        Rule::new("b", Filter::Correlation(correlation)).action("SET a = 1"),
    ];
    assert_eq!(subscription.rules, expected);
    let all = read(Path::new("x.toml"), "name = \"y\"\nsubscription = { topic = \"t\" }")
        .result
        .expect("it is right");
    assert_eq!(all.name.as_str(), "t/subscriptions/y");
    assert_eq!(all.subscription.expect("it is one").rules, [Rule::everything()]);
}

#[test]
fn what_is_wrong_with_a_subscription_is_told_with_its_place() {
    for (text, described) in [
        ("subscription = { topic = \"a b\" }", "1:26: topic: queue name has the character ' '"),
        (
            "key = \"/a\"\nsubscription = { topic = \"t\" }",
            "1:7: what comes through a topic has the workflow",
        ),
        ("subscription = { }", "1:16: [subscription] needs `topic`"),
        (
            "subscription = { topic = \"t\", filter = \"a >\" }",
            "1:40: filter of rule $Default: a value or a condition",
        ),
        ("name = \"a b\"\nsubscription = { topic = \"t\" }", "1:8: subscription name has the character ' '"),
        (
            "[subscription]\ntopic = \"t\"\nfilter = \"a = 1\"\nrule = [{ name = \"a\" }]",
            "3:10: a filter is given together with rules",
        ),
        (
            "[subscription]\ntopic = \"t\"\nrule = [{ name = \"a\" }, { name = \"a\" }]",
            "3:25: the rule `a` is there already",
        ),
    ] {
        let mistakes = read(Path::new("x.toml"), text).result.expect_err("it is wrong");
        let shown: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        assert!(shown.iter().any(|mistake| mistake.contains(described)), "{text}: {shown:?}");
    }
}
