//! What nodes say to each other, as bytes: what is said otherwise has another version.

use std::time::Duration;

use crate::clock::Timestamp;
use crate::cluster::node_overview::NodeOverview;
use crate::cluster::wire;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::cluster::wire::What;
use crate::engine::elsewhere::Command;
use crate::engine::elsewhere::LookFor;
use crate::engine::elsewhere::Reply;
use crate::engine::elsewhere::commands;
use crate::engine::elsewhere::found;
use crate::engine::elsewhere::looks_for;
use crate::engine::elsewhere::replies;
use crate::id::QueueName;
use crate::token::LockToken;

fn asks() -> Vec<What> {
    let delete = || commands().swap_remove(2);
    let mut asks = vec![
        What::TryOut(delete()),
        What::Define(QueueName::new("q").unwrap(), 300),
        What::GiveBack(delete()),
        What::Withdraw(LockToken::new(1, [1; 12])),
        What::Overview,
        What::Drain(true),
    ];
    asks.extend(commands().into_iter().map(|command| What::Have(command, Duration::from_millis(1_500))));
    asks.extend(looks_for().into_iter().map(What::Look));
    asks
}

fn answers() -> Vec<NodeReply> {
    let overview = NodeOverview {
        node: "n".to_owned(),
        drains: true,
        problem: Some("p".to_owned()),
        heard_for: Duration::from_millis(1_500),
        owned: 2,
        positions: vec![3, 300],
        epochs: vec![4, 301],
        lags: vec![5, 302],
        stopped: vec![(6, "s".to_owned())],
    };
    let mut answers = vec![
        NodeReply::FoundBeginning(Box::new(found().swap_remove(0))),
        NodeReply::Defined,
        NodeReply::NotOwner(Some("n".to_owned())),
        NodeReply::TooLarge { bytes: 300, bytes_max: 2 },
        NodeReply::Busy,
        NodeReply::Failed("f".to_owned()),
        NodeReply::Overview(Box::new(overview)),
    ];
    let reply = |reply| NodeReply::Reply(reply, Timestamp::from_millis(300), Some(2));
    answers.extend(replies().into_iter().map(reply));
    answers.extend(found().into_iter().map(|found| NodeReply::Found(Box::new(found))));
    answers
}

/// A kind that is new does not compile here before it has a sample.
const _: fn(&What, &NodeReply, &Reply) = sampled;

fn sampled(ask: &What, answer: &NodeReply, reply: &Reply) {
    match ask {
        What::Have(..) | What::TryOut(_) | What::Look(_) | What::Define(..) => {}
        What::GiveBack(_) | What::Withdraw(_) | What::Overview | What::Drain(_) => {}
    }
    match answer {
        NodeReply::Reply(..) | NodeReply::Found(_) | NodeReply::FoundBeginning(_) | NodeReply::Defined => {}
        NodeReply::NotOwner(_) | NodeReply::TooLarge { .. } | NodeReply::Busy | NodeReply::Failed(_) => {}
        NodeReply::Overview(_) => {}
    }
    match reply {
        Reply::Queue(_) | Reply::Topic(_) | Reply::Send(_) | Reply::PublishOnce(_) | Reply::HandOver(_) => {}
        Reply::Receive(_) | Reply::AcceptWorkflow(_) | Reply::ReceiveHidden(_) | Reply::HideAgain(_) => {}
        Reply::Settle(_) | Reply::CompleteAll(_) | Reply::SendEach(_) | Reply::Operate(_) => {}
        Reply::Redrive(_) | Reply::Purge(_) | Reply::Transact(_) | Reply::Done { .. } => {}
    }
}

/// A line: the first words of what is said, and its bytes.
fn line(said: &str, bytes: &[u8]) -> String {
    let words: Vec<&str> = said.split(|c: char| !c.is_ascii_alphanumeric()).take(2).collect();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{} {hex}\n", words.join("."))
}

#[test]
fn the_bytes_of_what_nodes_say_to_each_other_are_what_they_were() {
    let mut golden = String::new();
    for what in asks() {
        let said = format!("{what:?}");
        golden += &line(&said, &wire::write(&Ask { partition: Some(3), epoch: Some(300), what }));
    }
    for answer in answers() {
        golden += &line(&format!("{answer:?}"), &wire::write(&answer));
    }
    let has =
        |kind: &str, name: &str| assert!(golden.contains(&format!("{kind}.{name} ")), "{name} has no sample");
    Command::NAMES.iter().for_each(|name| has("Have", name));
    LookFor::NAMES.iter().for_each(|name| has("Look", name));
    LookFor::NAMES.iter().for_each(|name| has("Found", name));
    if std::env::var_os("SERIATIM_REWRITE").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/cluster/tests/wire.txt"), &golden).unwrap();
        return;
    }
    let recorded = include_str!("wire.txt");
    let changed = "nodes of two versions would misread each other: raise VERSION in cluster/wire.rs, then write the bytes \
                   anew with SERIATIM_REWRITE=1";
    for (now, before) in golden.lines().zip(recorded.lines()) {
        assert_eq!(now, before, "{changed}");
    }
    assert_eq!(golden.lines().count(), recorded.lines().count(), "{changed}");
}
