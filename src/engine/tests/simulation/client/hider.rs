//! Receivers that hold no lock: they hide messages, and end them or hide them anew by their claims, good or void.

use std::time::Duration;

use bytes::Bytes;

use crate::engine::rules::claim::Claim;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::simulation::client::clients::Clients;
use crate::id::QueueName;

/// How many claims are kept in mind.
const CLAIMS: usize = 8;

impl Clients {
    pub(crate) fn hide(&mut self, queue: usize) -> Command {
        let lasts = Duration::from_millis(self.random.pick(&[0, 999, 1_000, 1_001, 5_000]));
        Command::ReceiveHidden(verbs::ReceiveHidden {
            queue: self.queues[queue].0.clone(),
            max: self.random.pick(&[1, 1, 2, 4]),
            lasts,
        })
    }

    /// Does something with a claim, mostly with the last.
    pub(crate) fn use_claim(&mut self) -> Option<Command> {
        let last = self.claims.len().checked_sub(1)?;
        let index = if self.random.chance(60) { last } else { self.index(self.claims.len()) };
        let (queue, claim) = self.claims[index].clone();
        Some(match self.random.chance(50) {
            true => Command::EndHidden(verbs::EndHidden { queue, claim }),
            false => {
                let body =
                    self.random.chance(30).then(|| Bytes::from_static(self.random.pick(&[b"a", b"c"])));
                Command::HideAgain(verbs::HideAgain { queue, claim, lasts: self.delay(), body })
            }
        })
    }

    /// Takes note of the claims an answer brings.
    pub(crate) fn record_hidden(&mut self, command: &Command, reply: &Reply) {
        let (queue, shown) = match (command, reply) {
            (Command::ReceiveHidden(verbs::ReceiveHidden { queue, .. }), Reply::ReceiveHidden(Ok(shown))) => {
                (queue, shown.as_slice())
            }
            (Command::HideAgain(verbs::HideAgain { queue, .. }), Reply::HideAgain(Ok(shown))) => {
                (queue, std::slice::from_ref(&**shown))
            }
            _ => return,
        };
        for shown in shown {
            let (delivery_count, at) = (shown.record.delivery_count, shown.record.handed_out_at);
            self.keep_claim(queue, Claim { sequence_number: shown.sequence, delivery_count, at });
        }
    }

    pub(crate) fn keep_claim(&mut self, queue: &QueueName, claim: Claim) {
        if self.claims.len() == CLAIMS {
            self.claims.remove(0);
        }
        self.claims.push((queue.clone(), claim));
    }
}
