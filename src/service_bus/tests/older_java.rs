//! What the older SDK for Java says: tags of 36 bytes, and a request and its answer in two AMQP sessions.

use bytes::Bytes;

use crate::amqp::Value;
use crate::amqp::tests::peer;
use crate::amqp::tests::peer::Attach;
use crate::amqp::tests::peer::DeliveryOutcome;
use crate::amqp::tests::peer::Performative;
use crate::amqp::tests::peer::Role;
use crate::amqp::tests::peer::Source;
use crate::amqp::tests::peer::Target;
use crate::amqp::tests::peer::Transfer;
use crate::message::Message;
use crate::queue::QueueOptions;
use crate::service_bus::tests::bare::Bare;
use crate::service_bus::tests::bare::Fixture;
use crate::service_bus::tests::bare::attach;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::ends;
use crate::service_bus::tests::bare::payload;
use crate::service_bus::tests::bare::request;
use crate::service_bus::tests::bare::sections;
use crate::service_bus::tests::bare::transfer;

/// The text of a UUID, which this SDK takes for a tag.
const UUID: &[u8; 36] = b"0b6de87a-3f0c-4e43-9d2e-0f7b2a9f7d11";

fn tagged(transferred: Performative, tag: &'static [u8]) -> Performative {
    match transferred {
        Performative::Transfer(claims, payload) => {
            let delivery_tag = Some(Bytes::from_static(tag));
            Performative::Transfer(Transfer { delivery_tag, ..claims }, payload)
        }
        other => other,
    }
}

#[tokio::test]
async fn a_tag_of_36_bytes_is_taken() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_sender(0, "q").await;
    bare.says([tagged(transfer(0, 0, false, &payload("a", None)), UUID)]).await;
    let frames = bare.frames_until(|frames| matches!(frames, Performative::Disposition(_))).await;
    let is_accepted = |frames: &Performative| match frames {
        Performative::Disposition(claims) => {
            claims.settled && claims.state == Some(DeliveryOutcome::Accepted)
        }
        _ => false,
    };
    assert!(frames.iter().any(is_accepted), "{frames:?}");
    assert_eq!(queue.view().await.unwrap().counts.ready, 1);
}

#[tokio::test]
async fn a_request_is_answered_in_another_session_of_its_connection() {
    let fixture = Fixture::open().await;
    fixture.queue("q").await.send(Message::new("a")).await.unwrap();
    let mut bare = Bare::connect(&fixture).await;
    // The link of answers is in the session of channel 1, that of requests in the one of channel 0.
    let answers = Attach {
        source: Some(Source { address: Some("q/$management".into()), ..Source::default() }),
        target: Some(Target { address: Some("there".into()), ..Target::default() }),
        ..peer::attach("answers", 0, Role::Receiver)
    };
    let claims = [peer::begin(), attach(answers), credit(0, 0, 10)];
    let bytes: Vec<u8> = claims.iter().flat_map(|claims| peer::frame(1, claims)).collect();
    bare.says_bytes(&bytes).await;
    bare.frames_until(|frames| matches!(frames, Performative::Attach(_))).await;
    bare.attach_sender(0, "q/$management").await;
    let count = vec![(Value::from("message-count"), Value::Int(1))];
    let asked = request("com.microsoft:peek-message", count);
    bare.says([tagged(transfer(0, 0, false, &asked), UUID)]).await;
    let frames = bare.frames_until(|frames| matches!(frames, Performative::Transfer(..))).await;
    let answer = frames.last().and_then(sections).expect("it was waited for");
    let application = answer.application_properties().unwrap();
    let status = crate::amqp::lookup(&application, "statusCode").and_then(Value::as_i64);
    assert_eq!(status, Some(200), "{application:?}");
}

#[tokio::test]
async fn messages_that_are_received_together_have_tags_that_differ_as_text() {
    let fixture = Fixture::open().await;
    let queue = fixture.client().create_queue("q", QueueOptions::default()).await.unwrap();
    for number in 0..200 {
        queue.send(Message::new(number.to_string())).await.unwrap();
    }
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_receiver(0, "q").await;
    bare.says([credit(0, 0, 200)]).await;
    let mut tags = std::collections::BTreeSet::new();
    for _ in 0..200 {
        let frames = bare.frames_until(|frames| matches!(frames, Performative::Transfer(..))).await;
        let Some(Performative::Transfer(Transfer { delivery_tag: Some(tag), .. }, _)) = frames.last() else {
            panic!("{frames:?} has no tag")
        };
        assert_eq!(tag.len(), 16, "it is a GUID");
        tags.insert(String::from_utf8_lossy(tag).into_owned());
    }
    assert_eq!(tags.len(), 200);
    bare.says([ends(0, 199, false, DeliveryOutcome::Accepted)]).await;
    bare.frames_until(|frames| matches!(frames, Performative::Disposition(claims) if claims.settled)).await;
}
