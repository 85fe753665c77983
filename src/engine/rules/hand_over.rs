//! What another partition hands over is stored once, however often and however late it is asked again: under the number that the
//! message has in the other's outbox, which is kept until the other says that it has settled it there, and no request with it is under
//! way any more.
//!
//! No time is looked at. What is kept stays small, because no more messages of an outbox are under way than it has to settle; and
//! an owner of the outbox that was deposed is refused once a later one has handed something over.

use std::sync::Arc;

use crate::engine::rules::change::Change;
use crate::engine::rules::command::HandoverAnswer;
use crate::engine::rules::command::HandoverSource;
use crate::engine::rules::record::HandoverMark;
use crate::engine::rules::record::KeptHandover;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::engine::rules::verbs::HandOver;
use crate::error::SendRefusal;
use crate::limits;

impl Step<'_> {
    /// Accepts a message that another partition hands over, unless it has it already.
    pub(crate) fn hand_over(&mut self, verb: HandOver) -> Ruling<HandoverAnswer, SendRefusal> {
        let HandOver { source, queue, message } = verb;
        let HandoverSource { partition, epoch, number, digest, settled, wants_kept } = source;
        let before = self.records.handover_mark(partition)?.unwrap_or_default();
        if epoch < before.epoch {
            return Ok(HandoverAnswer::Outdated);
        }
        let mut mark = HandoverMark { epoch, kept: before.kept.clone() };
        mark.kept.retain(|kept| kept.number == number || !settled.contains(&kept.number));
        let mut is_taken = true;
        match mark.kept.binary_search_by_key(&number, |kept| kept.number) {
            Ok(at) if mark.kept[at].digest == digest => {}
            // Another outbox than that of before, as when one was restored and the other was not.
            Ok(_) => return refuse(SendRefusal::KeyReused(format!("handover {number}"))),
            Err(_) if mark.kept.len() >= limits::HANDOVERS_KEPT_MAX => {
                if !wants_kept {
                    return refuse(SendRefusal::TooManyKeys { kept: mark.kept.len() as u64 });
                }
                // An owner that begins could tell nothing of them if it was just refused, and would be refused for ever.
                is_taken = false;
            }
            Err(at) => {
                self.send(&queue, vec![message])?;
                mark.kept.insert(at, KeptHandover { number, digest });
            }
        }
        let others = mark.kept.iter().map(|kept| kept.number).filter(|kept| *kept != number);
        let kept = if wants_kept { others.collect() } else { Vec::new() };
        if mark != *before {
            self.write(Change::Handovers(partition, Some(Arc::new(mark))))?;
        }
        Ok(match is_taken {
            true => HandoverAnswer::Taken { kept },
            false => HandoverAnswer::Full { kept },
        })
    }
}
