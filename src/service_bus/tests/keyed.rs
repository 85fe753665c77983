//! What a connection may do where there are keys.

use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use crate::amqp::Value;
use crate::clock::Clock;
use crate::inbound::live_value::LiveValue;
use crate::limits;
use crate::queue::QueueOptions;
use crate::sas::Keys;
use crate::sas::signatures::tests::KEY;
use crate::sas::signatures::tests::token;
use crate::service_bus::endpoint::EndpointOptions;
use crate::service_bus::tests::source::Source;
use crate::service_bus::tests::wire::ACCEPTED;
use crate::service_bus::tests::wire::ATTACH;
use crate::service_bus::tests::wire::DETACH;
use crate::service_bus::tests::wire::Host;
use crate::service_bus::tests::wire::Wire;
use crate::service_bus::tests::wire::data;
use crate::service_bus::tests::wire::map;
use crate::topic::Rule;

/// The code of the frame that ends a connection.
const CLOSE: u64 = 0x18;

const LATER: u64 = 10_000_000_000;

/// The key `shop` of this text, which reaches the queue `q` and one that is not there.
fn keys(rights: &str, text: &str) -> Keys {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(
        file,
        "[[key]]\nname = \"shop\"\nkey_env = \"K\"\nrights = [{rights}]\nqueues = [\"q\", \"gone\", \"a_2F_b\"]\n"
    )
    .unwrap();
    Keys::read(file.path(), |_| Some(text.to_owned())).unwrap()
}

/// An endpoint with the key `shop`, and another queue than that reaches.
async fn host(rights: &str) -> Host {
    host_with(&LiveValue::new(Some(keys(rights, KEY)))).await
}

impl Host {
    /// An endpoint with keys.
    pub(super) async fn keyed(keys: Keys) -> Host {
        let (engine, clock) = crate::testing::engine().await.unwrap();
        let options = EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
        Host::with(engine, clock, EndpointOptions { keys: LiveValue::new(Some(keys)), ..options }).await
    }
}

async fn host_with(keys: &LiveValue<Keys>) -> Host {
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let options = EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let host = Host::with(engine, clock, EndpointOptions { keys: keys.clone(), ..options }).await;
    for name in ["q", "other"] {
        host.queue(name, QueueOptions::default()).await;
    }
    host
}

fn plain(name: &str, text: &str) -> Vec<u8> {
    [b"\0", name.as_bytes(), b"\0", text.as_bytes()].concat()
}

#[tokio::test]
async fn a_token_for_the_management_of_a_queue_gives_its_rights_there_and_nowhere_else() {
    let host = host("\"send\", \"listen\"").await;
    let mut client = host.client().await;
    let resource = "amqp://localhost/q/$management";
    let taken = client.put_token(resource, &token(KEY, "shop", resource, LATER)).await;
    assert_eq!((taken.status, taken.condition.as_str()), (202, ""), "{taken:?}");
    client.manage("q").await;
    let entry = map(vec![("message", Value::Binary(data(b"x")))]);
    let scheduled = client.ask("schedule-message", &map(vec![("messages", Value::List(vec![entry]))])).await;
    assert_eq!(scheduled.status, 200, "{scheduled:?}");
    assert_eq!(client.ask("peek-message", &map(vec![("message-count", Value::Int(1))])).await.status, 200);
    for (handle, address) in ["q", "q/$deadletterqueue", "other"].into_iter().enumerate() {
        let attached = client.attach_receiver(u32::try_from(handle).unwrap(), Source::of(address)).await;
        assert_eq!(client.refusal(&attached).await.0, "amqp:unauthorized-access", "{address}");
    }
}

#[tokio::test]
async fn a_token_for_a_name_with_a_slash_gives_its_rights_there() {
    let host = host("\"send\", \"listen\"").await;
    host.queue("a_2F_b", QueueOptions::default()).await;
    let mut client = host.client().await;
    let resource = "amqp://localhost/a/b";
    assert_eq!(client.put_token(resource, &token(KEY, "shop", resource, LATER)).await.status, 202);
    let attached = client.attach_sender(0, vec![Value::from("a/b")]).await;
    assert_eq!(attached.code, ATTACH);
    assert_ne!(*attached.field(6), Value::Null, "it has a target, and is not refused");
    client.manage("a/b").await;
    assert_eq!(client.ask("peek-message", &map(vec![("message-count", Value::Int(1))])).await.status, 204);
    let attached = client.attach_receiver(1, Source::of("a/b/$DeadLetterQueue")).await;
    assert_ne!(*attached.field(5), Value::Null);
    let attached = client.attach_receiver(2, Source::of("a")).await;
    assert_eq!(client.refusal(&attached).await.0, "amqp:unauthorized-access");
}

#[tokio::test]
async fn who_says_the_text_of_a_key_may_what_the_key_allows() {
    let host = host("\"send\"").await;
    let mut client = host.client_as("PLAIN", &plain("shop", KEY)).await.unwrap();
    assert_eq!(client.attach_sender(0, vec![Value::from("q")]).await.code, ATTACH);
    client.transfer(0, 0, &data(b"x")).await;
    assert_eq!(client.another_answer().await.state(4), ACCEPTED);
    let attached = client.attach_receiver(1, Source::of("q")).await;
    assert_eq!(client.refusal(&attached).await.0, "amqp:unauthorized-access", "the key only sends");
    let attached = client.attach_sender(2, vec![Value::from("other")]).await;
    assert_eq!(client.refusal(&attached).await.0, "amqp:unauthorized-access", "and to one queue");
}

#[tokio::test]
async fn who_says_another_text_is_sent_away_at_once() {
    let host = host("\"send\"").await;
    for response in
        [plain("shop", "wrong"), plain("nobody", KEY), plain("", ""), b"shop".to_vec(), Vec::new()]
    {
        assert_eq!(host.client_as("PLAIN", &response).await.err(), Some(1), "{response:?}");
    }
    assert!(host.client_as("ANONYMOUS", b"").await.is_ok(), "it may show a token");
}

#[tokio::test]
async fn a_connection_with_as_many_tokens_as_it_may_have_shows_new_ones_for_the_same_places() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, "[[key]]\nname = \"all\"\nkey_env = \"K\"\nrights = [\"send\"]\n").unwrap();
    let host = Host::keyed(Keys::read(file.path(), |_| Some(KEY.to_owned())).unwrap()).await;
    host.queue("q", QueueOptions::default()).await;
    for number in 0..limits::SERVICE_BUS_TOKENS_MAX {
        host.queue(&format!("many.{number}"), QueueOptions::default()).await;
    }
    let mut client = host.client().await;
    let show = async |client: &mut Wire, name: &str| {
        let resource = format!("amqp://localhost/{name}");
        client.put_token(&resource, &token(KEY, "all", &resource, LATER)).await.status
    };
    for number in 0..limits::SERVICE_BUS_TOKENS_MAX {
        assert_eq!(show(&mut client, &format!("many.{number}")).await, 202, "{number}");
    }
    assert_eq!(show(&mut client, "many.7").await, 202);
    assert_eq!(show(&mut client, "q").await, 401, "it is one more");
}

#[tokio::test]
async fn a_token_for_a_queue_that_is_not_there_is_answered_with_404_and_a_sentence() {
    let host = host("\"manage\"").await;
    let mut client = host.client().await;
    let resource = "amqp://localhost/gone";
    let refused = client.put_token(resource, &token(KEY, "shop", resource, LATER)).await;
    assert_eq!((refused.status, refused.condition.as_str()), (404, "amqp:not-found"));
    assert!(refused.description.starts_with("The messaging entity"), "{refused:?}");
    let wrong = client.put_token("amqp://localhost/q", "SharedAccessSignature x").await;
    assert_eq!((wrong.status, wrong.condition.as_str()), (401, "amqp:unauthorized-access"));
}

#[tokio::test]
async fn who_has_no_right_for_a_queue_does_not_hear_whether_there_is_one() {
    let host = host("\"send\", \"listen\"").await;
    let mut client = host.client_as("PLAIN", &plain("shop", KEY)).await.unwrap();
    let mut handle = 0;
    let mut frames = Vec::new();
    for address in ["other", "nope", "gone"] {
        for management in ["", "/$management"] {
            let attached =
                client.attach_sender(handle, vec![Value::from(&*format!("{address}{management}"))]).await;
            let (condition, text) = client.refusal(&attached).await;
            frames.push((condition, text.replace(address, "NAME")));
            handle += 1;
        }
        let resource = format!("amqp://localhost/{address}");
        let taken = client.put_token(&resource, &token(KEY, "shop", &resource, LATER)).await;
        frames.push((taken.condition.clone(), taken.status.to_string()));
    }
    assert_eq!(frames[0].0, "amqp:unauthorized-access");
    assert_eq!(frames[..3], frames[3..6], "one that is there and one that is not");
    assert_eq!(
        (frames[6].0.as_str(), frames[7].0.as_str()),
        ("amqp:not-found", "amqp:not-found"),
        "who has one hears it"
    );
    assert_eq!(frames[8].0, "amqp:not-found");
}

#[tokio::test]
async fn a_link_lasts_as_long_as_the_last_token_that_was_shown_for_it() {
    let host = host("\"send\", \"listen\"").await;
    let mut client = host.client().await;
    let (resource, now) = ("amqp://localhost/q", host.clock.now().as_millis() / 1_000);
    for until in [now + 61, now + 121] {
        assert_eq!(client.put_token(resource, &token(KEY, "shop", resource, until)).await.status, 202);
    }
    client.attach_receiver(0, Source::of("q")).await;
    host.clock.advance(Duration::from_secs(100));
    assert!(client.drained(0, 1).await.is_empty(), "the first has ended, the second has not");
    host.clock.advance(Duration::from_secs(100));
    let ended = client.another_answer().await;
    assert_eq!((ended.code, ended.error(2).0.as_str()), (DETACH, "amqp:unauthorized-access"));
}

#[tokio::test]
async fn who_waits_for_a_session_waits_no_longer_than_its_token_lasts() {
    let host = host("\"send\", \"listen\"").await;
    let mut client = host.client().await;
    let (resource, now) = ("amqp://localhost/q", host.clock.now().as_millis() / 1_000);
    assert_eq!(client.put_token(resource, &token(KEY, "shop", resource, now + 61)).await.status, 202);
    let day = Value::Uint(24 * 60 * 60 * 1_000);
    let next = Source::of("q").filter("com.microsoft:session-filter", Value::Null);
    client.ask_for_receiver(0, next.property("com.microsoft:timeout", day)).await;
    // What is asked later is answered when the link waits.
    assert_eq!(client.put_token(resource, &token(KEY, "shop", resource, now + 61)).await.status, 202);
    host.clock.advance(Duration::from_secs(100));
    let attached = client.another_answer().await;
    assert_eq!(client.refusal(&attached).await.0, "amqp:unauthorized-access");
}

#[tokio::test]
async fn a_link_ends_when_its_key_is_taken_out_or_may_less() {
    let current = LiveValue::new(Some(keys("\"send\", \"listen\"", KEY)));
    let host = host_with(&current).await;
    let mut sending = host.client_as("PLAIN", &plain("shop", KEY)).await.unwrap();
    assert_eq!(sending.attach_sender(0, vec![Value::from("q")]).await.code, ATTACH);
    let (mut listening, resource) = (host.client().await, "amqp://localhost/q");
    assert_eq!(listening.put_token(resource, &token(KEY, "shop", resource, LATER)).await.status, 202);
    listening.attach_receiver(0, Source::of("q")).await;
    let is_unauthorized = ("amqp:unauthorized-access".to_owned(), DETACH);

    current.replace(Some(keys("\"listen\"", KEY)));
    let ended = sending.another_answer().await;
    assert_eq!((ended.error(2).0, ended.code), is_unauthorized, "it may send no more");
    assert!(listening.drained(0, 1).await.is_empty(), "it may still listen");

    current.replace(Some(keys("\"listen\"", &format!("{KEY}-other"))));
    let ended = listening.another_answer().await;
    assert_eq!((ended.error(2).0, ended.code), is_unauthorized, "its key is gone");
    let mut anew = host.client().await;
    assert_eq!(anew.put_token(resource, &token(KEY, "shop", resource, LATER)).await.status, 401);
}

#[tokio::test]
async fn who_listens_to_a_subscription_says_its_rules() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let keys = ["listen", "send"].map(|right| {
        format!(
            "[[key]]\nname = \"{right}\"\nkey_env = \"{right}\"\nrights = [\"{right}\"]\nqueues = [\"*\"]\n"
        )
    });
    file.write_all(keys.concat().as_bytes()).unwrap();
    let keys = Keys::read(file.path(), |name| Some(format!("{KEY}-{name}"))).unwrap();
    let (engine, clock) = crate::testing::engine().await.unwrap();
    let options = EndpointOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    let host =
        Host::with(engine, clock, EndpointOptions { keys: LiveValue::new(Some(keys)), ..options }).await;
    let topic = host.engine.client().create_topic("t").await.unwrap();
    topic.subscribe("s", QueueOptions::default(), [Rule::everything()]).await.unwrap();
    for (right, status) in [("send", 401), ("listen", 200)] {
        let mut client = host.client_as("PLAIN", &plain(right, &format!("{KEY}-{right}"))).await.unwrap();
        client.manage("t/Subscriptions/s").await;
        let removed = client.ask("remove-rule", &map(vec![("rule-name", Value::from("$Default"))])).await;
        assert_eq!(removed.status, status, "{right}: {removed:?}");
    }
    assert!(topic.rules("s").await.unwrap().is_empty());
}

#[tokio::test]
async fn who_has_shown_no_token_has_few_links_and_is_sent_away_after_a_while() {
    let host = host("\"listen\"").await;
    let (mut stranger, mut known) = (host.client().await, host.client().await);
    let resource = "amqp://localhost/q";
    assert_eq!(known.put_token(resource, &token(KEY, "shop", resource, LATER)).await.status, 202);
    let most = u32::try_from(limits::SERVICE_BUS_STRANGER_LINKS_MAX).unwrap();
    for (client, is_stranger) in [(&mut stranger, true), (&mut known, false)] {
        for handle in 0..most {
            let attached = client.attach_receiver(100 + handle, Source::of("q/$management")).await;
            assert_ne!(*attached.field(5), Value::Null, "link {handle}");
        }
        let attached = client.attach_receiver(100 + most, Source::of("q/$management")).await;
        assert_eq!(*attached.field(5) == Value::Null, is_stranger);
        if is_stranger {
            assert_eq!(client.refusal(&attached).await.0, "amqp:resource-limit-exceeded");
        }
    }
    host.clock.advance(limits::SERVICE_BUS_STRANGER_MAX);
    // Its timer goes by another clock: it looks at this one when it hears something.
    stranger.ask_for_receiver(50, Source::of("q")).await;
    let mut closed = stranger.another_answer().await;
    while closed.code != CLOSE {
        closed = stranger.another_answer().await;
    }
    assert_eq!(closed.error(0).0, "amqp:connection:forced");
    let attached = known.attach_receiver(50, Source::of("q")).await;
    assert_ne!(*attached.field(5), Value::Null, "{attached:?}");
}

#[tokio::test]
async fn what_nobody_needs_a_right_for_keeps_little() {
    let host = host("\"listen\"").await;
    let mut client = host.client().await;
    let attached = client.attach_sender(0, vec![Value::from("$cbs")]).await;
    assert_eq!(attached.field(10).as_u64(), Some(limits::SERVICE_BUS_SMALL_REQUEST_BYTES_MAX));
    let long = "a".repeat(limits::SERVICE_BUS_ADDRESS_BYTES_MAX);
    let attached = client.attach_receiver(1, Source::of(&format!("{long}/$management"))).await;
    assert_eq!(client.refusal(&attached).await.0, "amqp:resource-limit-exceeded");
}
