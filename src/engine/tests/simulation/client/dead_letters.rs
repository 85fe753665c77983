//! Receivers of dead letters: they settle them in every way, in time or too late, twice, or never.

use crate::engine::rules::command::CompletionCommand;
use crate::engine::rules::command::Retry;
use crate::engine::rules::command::Settlement;
use crate::engine::rules::due::DeferralEnd;
use crate::engine::rules::output::Output;
use crate::engine::rules::record::Status;
use crate::engine::rules::reply::Reply;
use crate::engine::rules::verbs;
use crate::engine::rules::verbs::Command;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::simulation::client::clients::Clients;
use crate::engine::tests::simulation::client::clients::Delivery;
use crate::header::Properties;

/// How many deliveries are kept in mind; the oldest are void for long.
const KEPT: usize = 6;

impl Clients {
    pub(crate) fn use_dead_letters(&mut self, rows: &Rows, queue: usize) -> Command {
        let name = self.queues[queue].0.clone();
        match self.random.below(100) {
            0..55 if !self.dead_letters.is_empty() => self.end_dead_letter(),
            55..70 => {
                let (token, asked) = (self.token(), self.random.pick(&[1, 1, 2]));
                let is_set_aside =
                    |status: &Status| matches!(status, Status::DeadLettered(letter) if letter.deferred);
                let sequences = (0..asked).map(|_| self.number(rows, queue, is_set_aside)).collect();
                Command::ReceiveDeferredDeadLetters(verbs::ReceiveDeferredDeadLetters {
                    queue: name,
                    sequences,
                    token,
                })
            }
            _ => {
                let (max, token) = (self.random.pick(&[1, 1, 2, 4]), self.token());
                Command::ReceiveDeadLetters(verbs::ReceiveDeadLetters { queue: name, max, token })
            }
        }
    }

    fn end_dead_letter(&mut self) -> Command {
        let index = self.index(self.dead_letters.len());
        let Delivery { queue, token, sequence, delivery_count } = match self.random.chance(70) {
            true => self.dead_letters.remove(index),
            false => self.dead_letters[index].clone(),
        };
        let (properties, output, reason) = (Properties::new(), Output::default(), "failed".to_owned());
        let settlement = match self.random.below(10) {
            0..2 => return Command::Renew(verbs::Renew { queue, token }),
            2..4 => Settlement::Complete(CompletionCommand::default()),
            4..6 => Settlement::Abandon { retry: Retry::Now, reason, properties, output },
            6..8 => Settlement::Defer { until: DeferralEnd::ByConsumer, properties },
            8 => Settlement::Release,
            _ => Settlement::DeadLetter { reason, description: String::new(), properties },
        };
        Command::Settle(verbs::Settle { queue, token, sequence, delivery_count, settlement })
    }

    /// Takes note of the dead letters an answer brings.
    pub(crate) fn record_dead_letters(&mut self, command: &Command, reply: &Reply) {
        let (
            Command::ReceiveDeadLetters(verbs::ReceiveDeadLetters { queue, .. })
            | Command::ReceiveDeferredDeadLetters(verbs::ReceiveDeferredDeadLetters { queue, .. }),
            Reply::Receive(Ok(handed)),
        ) = (command, reply)
        else {
            return;
        };
        for handed in handed {
            if self.dead_letters.len() == KEPT {
                self.dead_letters.remove(0);
            }
            self.dead_letters.push(Delivery {
                queue: queue.clone(),
                token: handed.token,
                sequence: handed.sequence,
                delivery_count: handed.record.delivery_count,
            });
        }
    }
}
