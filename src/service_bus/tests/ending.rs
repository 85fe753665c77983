//! Everything a client says before it ends something has been said: it is done before the end has any effect, and the end is
//! answered after it.
//!
//! `SERIATIM_ENDING_ROUNDS=1000` plays so many rounds of every pair, however long that takes.

use std::time::Duration;

use bytes::BytesMut;

use crate::amqp::Value;
use crate::amqp::message;
use crate::amqp::tests::peer;
use crate::amqp::tests::peer::ClosingFrame;
use crate::amqp::tests::peer::DeliveryOutcome;
use crate::amqp::tests::peer::Performative;
use crate::amqp::tests::peer::Role;
use crate::amqp::tests::peer::Transfer;
use crate::clock::Clock;
use crate::clock::SystemClock;
use crate::engine::MessageStatus;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::message::Message;
use crate::service_bus::tests::bare::Bare;
use crate::service_bus::tests::bare::Fixture;
use crate::service_bus::tests::bare::credit;
use crate::service_bus::tests::bare::detach;
use crate::service_bus::tests::bare::ends;
use crate::service_bus::tests::bare::payload;
use crate::service_bus::tests::bare::request;
use crate::service_bus::tests::bare::transfer;

/// How long all rounds of one test may take; the first of each pair is always played.
const ROUNDS_LAST: Duration = Duration::from_secs(4);
const ROUNDS_MAX: usize = 1_000;
/// Rounds on one engine, each with queues of its own.
const ROUNDS_TOGETHER: usize = 20;

/// What messages a client has to do with.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    Session,
    DeadLetters,
}

/// What the client says first.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sent {
    Send {
        settled: bool,
    },
    Batch,
    Accept {
        settled: bool,
    },
    Modified,
    /// Completed by token, over the management link.
    Request,
    State,
}

/// What it says in the same write.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    Detach,
    End,
    Close,
    Finish,
    Reset,
}

const ENDS: [Ends; 5] = [Ends::Detach, Ends::End, Ends::Close, Ends::Finish, Ends::Reset];
const SENDS: [Sent; 3] = [Sent::Send { settled: true }, Sent::Send { settled: false }, Sent::Batch];
const SETTLES: [Sent; 4] =
    [Sent::Accept { settled: true }, Sent::Accept { settled: false }, Sent::Modified, Sent::Request];

/// How many messages each pair is about.
const COUNT: u32 = 40;

struct Stage {
    fixture: Fixture,
    kind: Kind,
    queue: Queue,
    bare: Bare,
    /// Lock tokens of what was received.
    tokens: Vec<Value>,
}

impl Stage {
    async fn new(fixture: Fixture, name: &str, kind: Kind, claims: Sent) -> Stage {
        let queue = fixture.queue(name).await;
        let bare = Bare::connect(&fixture).await;
        let mut stage = Stage { fixture, kind, queue, bare, tokens: Vec::new() };
        if SENDS.contains(&claims) {
            stage.bare.attach_sender(0, name).await;
        } else {
            stage.receive(name).await;
        }
        stage
    }

    fn session(&self) -> Option<&'static str> {
        (self.kind == Kind::Session).then_some("s")
    }

    /// Messages are there, and the client has all of them.
    async fn receive(&mut self, name: &str) {
        for number in 0..COUNT {
            let message = Message::new(number.to_string());
            let message = if self.kind == Kind::Session { message.workflow("s") } else { message };
            self.queue.send(message).await.unwrap();
        }
        if self.kind == Kind::DeadLetters {
            for mut delivery in self.queue.receive_many(COUNT as usize, Duration::ZERO).await.unwrap() {
                delivery.dead_letter("bad", "").await.unwrap();
            }
        }
        let address = match self.kind {
            Kind::DeadLetters => format!("{name}/$deadletterqueue"),
            _ => name.to_owned(),
        };
        match self.session() {
            Some(session) => self.bare.attach_session(0, &address, session).await,
            None => self.bare.attach_receiver(0, &address).await,
        }
        let management = format!("{address}/$management");
        self.bare.attach_receiver(2, &management).await;
        self.bare.attach_sender(1, &management).await;
        self.bare.says([credit(0, 0, COUNT)]).await;
        while self.tokens.len() < COUNT as usize {
            let frames = self.bare.next_frame().await.unwrap();
            if let Performative::Transfer(Transfer { delivery_tag: Some(tag), .. }, _) = frames {
                let mut token: [u8; 16] = tag[..].try_into().unwrap();
                token[..4].reverse();
                token[4..6].reverse();
                token[6..8].reverse();
                self.tokens.push(Value::Uuid(token));
            }
        }
    }

    fn saying(&self, claims: Sent) -> Vec<Performative> {
        let body = |number: u32| payload(&number.to_string(), self.session());
        let last = COUNT - 1;
        match claims {
            Sent::Send { settled } => {
                (0..COUNT).map(|number| transfer(0, number, settled, &body(number))).collect()
            }
            Sent::Batch => {
                let mut batch = BytesMut::new();
                (0..COUNT).for_each(|number| message::encode_data(&mut batch, &body(number)));
                match transfer(0, 0, false, &batch.freeze()) {
                    Performative::Transfer(transfer, payload) => {
                        let message_format = Some(0x8001_3700);
                        vec![Performative::Transfer(Transfer { message_format, ..transfer }, payload)]
                    }
                    other => vec![other],
                }
            }
            Sent::Accept { settled } => vec![ends(0, last, settled, DeliveryOutcome::Accepted)],
            Sent::Modified => {
                let failed = || DeliveryOutcome::Modified {
                    delivery_failed: true,
                    undeliverable_here: false,
                    annotations: Vec::new(),
                };
                (0..COUNT).rev().map(|number| ends(number, number, false, failed())).collect()
            }
            Sent::Request => {
                let mut asked = vec![
                    (Value::string("disposition-status"), Value::from("completed")),
                    (Value::string("lock-tokens"), Value::Array(self.tokens.clone())),
                ];
                asked.extend(self.session().map(|id| (Value::string("session-id"), Value::from(id))));
                vec![transfer(1, 0, false, &request("com.microsoft:update-disposition", asked))]
            }
            Sent::State => {
                let asked = vec![
                    (Value::string("session-id"), Value::from("s")),
                    (Value::string("session-state"), Value::Binary("state".into())),
                ];
                vec![transfer(1, 0, false, &request("com.microsoft:set-session-state", asked))]
            }
        }
    }

    /// Says it, and the end, in one write; hears what there is to hear.
    async fn play(self, claims: Sent, how: Ends) -> (Fixture, Queue, Kind, Vec<Performative>) {
        let all = self.saying(claims);
        let frames = end(self.bare, all, how).await;
        (self.fixture, self.queue, self.kind, frames)
    }
}

/// Says something and an end in one write, and hears what there is to hear.
async fn end(mut bare: Bare, mut all: Vec<Performative>, how: Ends) -> Vec<Performative> {
    match how {
        Ends::Detach => all.push(detach(0)),
        Ends::End => all.push(Performative::End(ClosingFrame::default())),
        Ends::Close => all.push(Performative::Close(ClosingFrame::default())),
        Ends::Finish | Ends::Reset => {}
    }
    bare.says(all).await;
    match how {
        Ends::Detach => bare.frames_until(|frames| matches!(frames, Performative::Detach(_))).await,
        Ends::End => bare.frames_until(|frames| matches!(frames, Performative::End(_))).await,
        Ends::Close => bare.rest().await,
        Ends::Finish => bare.finish().await,
        Ends::Reset => {
            bare.reset();
            Vec::new()
        }
    }
}

/// Whether what was said is done.
async fn is_done(queue: &Queue, kind: Kind, claims: Sent) -> bool {
    let counts = queue.view().await.unwrap().counts;
    let count = u64::from(COUNT);
    match claims {
        Sent::Send { .. } | Sent::Batch => counts.ready + counts.locked == count,
        Sent::Accept { .. } | Sent::Request if kind == Kind::DeadLetters => counts.dead_lettered == 0,
        Sent::Accept { .. } | Sent::Request => counts.completed == count,
        // The failures of dead letters are counted in memory; that they are offered again is seen elsewhere.
        Sent::Modified if kind == Kind::DeadLetters => counts.dead_lettered == count,
        Sent::Modified => {
            let views = queue.peek(crate::id::SequenceNumber::new(0), COUNT as usize).await.unwrap();
            views.len() == COUNT as usize
                && views
                    .iter()
                    .all(|view| view.delivery_count == 1 && matches!(view.status, MessageStatus::Ready))
        }
        Sent::State => queue.workflow("s").unwrap().state().await.unwrap().as_deref() == Some(b"state"),
    }
}

/// How many deliveries the endpoint has settled in what was heard.
fn settled(frames: &[Performative], role: Role) -> u32 {
    let count = |frames: &Performative| match frames {
        Performative::Disposition(claims) if claims.role == role && claims.settled => {
            claims.last.unwrap_or(claims.first) - claims.first + 1
        }
        _ => 0,
    };
    frames.iter().map(count).sum()
}

/// Plays one pair, and says what was heard.
async fn play(fixture: Fixture, name: &str, kind: Kind, claims: Sent, how: Ends) -> Fixture {
    let stage = Stage::new(fixture, name, kind, claims).await;
    let (fixture, queue, kind, frames) = stage.play(claims, how).await;
    let began = SystemClock::default();
    while !is_done(&queue, kind, claims).await {
        let counts = queue.view().await.unwrap().counts;
        let may_wait = how == Ends::Reset && began.elapsed() < Duration::from_secs(10);
        assert!(
            may_wait,
            "{kind:?} {claims:?} {how:?}: not done when the end was answered: {counts:?} {frames:?}"
        );
        tokio::task::yield_now().await;
    }
    if how != Ends::Reset {
        let expected = match claims {
            Sent::Send { settled: false } => (Role::Receiver, COUNT),
            Sent::Batch => (Role::Receiver, 1),
            Sent::Accept { settled: false } | Sent::Modified => (Role::Sender, COUNT),
            _ => (Role::Receiver, settled(&frames, Role::Receiver)),
        };
        assert_eq!(settled(&frames, expected.0), expected.1, "{kind:?} {claims:?} {how:?}: {frames:?}");
    }
    fixture
}

async fn play_all(kind: Kind, saids: &[Sent]) {
    let asked = std::env::var("SERIATIM_ENDING_ROUNDS").ok().and_then(|text| text.parse::<usize>().ok());
    let mut fixture = Fixture::open().await;
    let (began, mut played) = (SystemClock::default(), 0);
    for round in 0..asked.unwrap_or(ROUNDS_MAX) {
        if asked.is_none() && round > 0 && began.elapsed() > ROUNDS_LAST {
            break;
        }
        if round % ROUNDS_TOGETHER == ROUNDS_TOGETHER - 1 {
            fixture = Fixture::open().await;
        }
        for claims in saids {
            for how in ENDS {
                fixture = play(fixture, &format!("q{played}"), kind, *claims, how).await;
                played += 1;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_sent_before_an_end_is_stored() {
    play_all(Kind::Plain, &SENDS).await;
    play_all(Kind::Session, &SENDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_settled_before_an_end_is_settled() {
    play_all(Kind::Plain, &SETTLES).await;
    play_all(Kind::DeadLetters, &SETTLES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_settled_in_a_session_before_an_end_is_settled() {
    play_all(Kind::Session, &SETTLES).await;
    play_all(Kind::Session, &[Sent::State]).await;
}

#[tokio::test]
async fn an_incomplete_message_is_dropped_at_the_end() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    for how in ENDS {
        let mut bare = Bare::connect(&fixture).await;
        bare.attach_sender(0, "q").await;
        let Performative::Transfer(part, bytes) = transfer(0, 0, true, &payload("half", None)) else {
            unreachable!("it is a transfer");
        };
        let part = Performative::Transfer(Transfer { more: true, ..part }, bytes.slice(..4));
        end(bare, vec![part], how).await;
        assert_eq!(queue.view().await.unwrap().counts.ready, 0, "{how:?}");
    }
}

#[tokio::test]
async fn a_session_can_be_taken_again_as_soon_as_its_end_is_answered() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    for number in 0..300 {
        queue.send(Message::new(number.to_string()).workflow("s")).await.unwrap();
    }
    for round in 0..50 {
        let (mut one, mut two) = (Bare::connect(&fixture).await, Bare::connect(&fixture).await);
        one.attach_session(0, "q", "s").await;
        // While it is being fed.
        one.says([credit(0, 0, 200), detach(0)]).await;
        one.frames_until(|frames| matches!(frames, Performative::Detach(_))).await;
        two.attach_session(0, "q", "s").await;
        two.says([credit(0, 0, 10)]).await;
        let expected: Vec<String> = (0..10).map(|number: u32| number.to_string()).collect();
        assert_eq!(two.bodies(10).await, expected, "round {round}");
        two.says([Performative::Close(ClosingFrame::default())]).await;
        two.rest().await;
    }
}

#[tokio::test]
async fn a_client_that_leaves_without_a_word_has_failed_the_first_message_of_its_session() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    for number in 0..3 {
        queue.send(Message::new(number.to_string()).workflow("s")).await.unwrap();
    }
    for (says_so, first) in [(true, (0, 0)), (false, (1, 1)), (true, (1, 1)), (false, (2, 2))] {
        let mut bare = Bare::connect(&fixture).await;
        bare.attach_session(0, "q", "s").await;
        bare.says([credit(0, 0, 3)]).await;
        assert_eq!(bare.bodies(3).await, ["0", "1", "2"]);
        if says_so {
            bare.says([Performative::Close(ClosingFrame::default())]).await;
        }
        bare.finish().await;
        let views = queue.peek(SequenceNumber::new(1), 3).await.unwrap();
        let counts: Vec<_> = views.iter().map(|view| (view.delivery_count, view.attempts.len())).collect();
        assert_eq!(counts, [first, (0, 0), (0, 0)], "the rest was not begun");
    }
}

#[tokio::test]
async fn a_handle_and_a_session_can_be_used_again_in_the_same_write() {
    let fixture = Fixture::open().await;
    fixture.queue("q").await.send(Message::new("first").workflow("s")).await.unwrap();
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_session(0, "q", "s").await;
    bare.says([credit(0, 0, 1)]).await;
    assert_eq!(bare.bodies(1).await, ["first"]);
    let again = || super::bare::attach(super::bare::session_receiver(0, "q", "s"));
    bare.says([ends(0, 0, true, DeliveryOutcome::Accepted), detach(0), again()]).await;
    let frames = bare.frames_until(|frames| matches!(frames, Performative::Attach(_))).await;
    assert!(matches!(frames[0], Performative::Detach(_)), "{frames:?}");
    assert!(
        matches!(frames.last(), Some(Performative::Attach(answer)) if answer.source.is_some()),
        "{frames:?}"
    );
    bare.says([Performative::End(ClosingFrame::default()), peer::begin(), again()]).await;
    let frames = bare.frames_until(|frames| matches!(frames, Performative::Attach(_))).await;
    assert!(matches!(frames[..2], [Performative::End(_), Performative::Begin(_)]), "{frames:?}");
    assert!(
        matches!(frames.last(), Some(Performative::Attach(answer)) if answer.source.is_some()),
        "{frames:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_kernel_has_taken_is_read_although_nobody_hears_the_answers() {
    let fixture = Fixture::open().await;
    let queue = fixture.queue("q").await;
    let mut bare = Bare::connect(&fixture).await;
    bare.attach_sender(0, "q").await;
    // Unsettled, so that the endpoint answers into a connection that was reset.
    bare.says((0..900).map(|number| transfer(0, number, false, &payload("x", None)))).await;
    bare.reset();
    let began = SystemClock::default();
    while queue.view().await.unwrap().counts.ready < 900 {
        let counts = queue.view().await.unwrap().counts;
        assert!(began.elapsed() < Duration::from_secs(10), "{counts:?}");
        tokio::task::yield_now().await;
    }
}
