//! Sends that are done once: the answer is kept under the sender's key, in the same transaction, and given again to
//! whoever asks again.

use std::sync::Arc;

use crate::engine::rules::change::Change;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::AnswerRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::SendRefusal;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::limits;
use crate::message::NewMessage;

impl Step<'_> {
    /// Accepts all messages, or refuses all, or answers as it has answered the same request before. A refusal is not
    /// kept: whoever was refused may try again.
    pub(crate) fn send_once(
        &mut self,
        name: &QueueName,
        key: &IdempotencyKey,
        messages: Vec<NewMessage>,
    ) -> Ruling<Vec<Receipt>, SendRefusal> {
        let Some(queue) = self.queue_named(name)?.map(|queue| queue.id) else {
            return refuse(SendRefusal::QueueNotFound(name.clone()));
        };
        let before = self.records.answer(queue, key.text())?;
        if let Some(known) = before.as_ref().filter(|known| self.now < known.until) {
            return match known.digest == key.digest() {
                true => Ok(known.receipts.clone()),
                false => refuse(SendRefusal::KeyReused(key.as_str().to_owned())),
            };
        }
        let kept = self.records.answer_count(queue)?;
        if before.is_none() && kept >= limits::IDEMPOTENCY_KEYS_MAX {
            return refuse(SendRefusal::TooManyKeys { kept });
        }
        let receipts = self.send(name, messages)?;
        match before {
            Some(old) => self.drop_reminder(old.until, queue, Remind::Answer(key.text().clone()))?,
            None => self.write(Change::AnswerCount(queue, Some(kept + 1)))?,
        }
        self.keep_answer(queue, key, receipts.clone())?;
        Ok(receipts)
    }

    fn keep_answer(&mut self, queue: QueueId, key: &IdempotencyKey, receipts: Vec<Receipt>) -> Read<()> {
        let until = self.now + limits::IDEMPOTENCY_WINDOW;
        let answered = AnswerRecord { digest: key.digest(), receipts, until };
        self.write(Change::Answer(queue, key.text().clone(), Some(Arc::new(answered))))?;
        self.set_reminder(until, queue, Remind::Answer(key.text().clone()))
    }

    /// Forgets an answer whose window is over.
    pub(crate) fn forget_answer(&mut self, queue: QueueId, key: Arc<str>) -> Read<()> {
        let known = self.records.answer(queue, &key)?;
        if known.is_some_and(|known| known.until <= self.now) {
            let left = self.records.answer_count(queue)?.checked_sub(1);
            let left = left.expect("every answer that is kept is counted");
            self.write(Change::Answer(queue, key, None))?;
            self.write(Change::AnswerCount(queue, (left > 0).then_some(left)))?;
        }
        Ok(())
    }
}
