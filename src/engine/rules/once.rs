//! Sends that are done once: the answer is kept under the sender's key, in the same transaction, and given again to
//! whoever asks again.

use std::sync::Arc;

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::receipt::Receipt;
use crate::engine::rules::record::AnswerRecord;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::Remind;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::engine::rules::topic_record::Fanout;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::topics::queue_of;
use crate::error::SendRefusal;
use crate::id::IdempotencyKey;
use crate::id::QueueName;
use crate::id::SubscriptionName;
use crate::limits;
use crate::message::NewMessage;

/// What is known of a key.
enum KeyLookup {
    /// The same request was answered.
    Before(Arc<AnswerRecord>),
    /// It is new; where its answer will be kept.
    Anew(AnswerPlace),
}

/// Where an answer is kept.
struct AnswerPlace {
    /// The queue, or [`QueueId::OF_TOPICS`].
    of: QueueId,
    key: Arc<str>,
    digest: u64,
    /// Until when an older answer had to be kept, if one is still there.
    old: Option<Timestamp>,
    /// How many answers are kept beside it.
    kept: u64,
}

impl Step<'_> {
    /// Accepts all messages, or refuses all, or answers as it has answered the same request before. A refusal is not
    /// kept: whoever was refused may try again.
    pub(crate) fn send_once(
        &mut self,
        name: &QueueName,
        key: &IdempotencyKey,
        messages: Vec<NewMessage>,
    ) -> Ruling<Vec<Receipt>, SendRefusal> {
        let queue = self.queue_or(name, SendRefusal::QueueNotFound)?.id;
        match self.asked_before(queue, key.text().clone(), key)? {
            KeyLookup::Before(known) => Ok(known.receipts.clone()),
            KeyLookup::Anew(place) => {
                let receipts = self.send(name, messages)?;
                self.keep_answer(place, receipts.clone(), Vec::new())?;
                Ok(receipts)
            }
        }
    }

    /// The same of a send to a topic, whatever its rules have become since.
    pub(crate) fn publish_once(
        &mut self,
        name: &QueueName,
        key: &IdempotencyKey,
        fanout: Fanout,
    ) -> Ruling<Vec<(QueueName, Receipt)>, SendRefusal> {
        let Some(topic) = self.records.topic(name)? else {
            return refuse(SendRefusal::TopicNotFound(name.clone()));
        };
        // Another topic under this name has answered nothing.
        let text = Arc::from(format!("{}/{key}", topic.number, key = key.as_str()));
        let (receipts, shares) = match self.asked_before(QueueId::OF_TOPICS, text, key)? {
            KeyLookup::Before(known) => (known.receipts.clone(), known.shares.clone()),
            KeyLookup::Anew(place) => {
                let shares = shares_of(&fanout);
                let receipts = self.publish(name, fanout)?;
                self.keep_answer(place, receipts.clone(), shares.clone())?;
                (receipts, shares)
            }
        };
        Ok(with_queues(&topic, receipts, &shares))
    }

    /// Looks a request up by its key, kept under a text.
    fn asked_before(
        &self,
        of: QueueId,
        text: Arc<str>,
        key: &IdempotencyKey,
    ) -> Ruling<KeyLookup, SendRefusal> {
        let before = self.records.answer(of, &text)?;
        if let Some(known) = before.as_ref().filter(|known| self.now < known.until) {
            return match known.digest == key.digest() {
                true => Ok(KeyLookup::Before(known.clone())),
                false => refuse(SendRefusal::KeyReused(key.as_str().to_owned())),
            };
        }
        let kept = self.records.answer_count(of)?;
        if before.is_none() && kept >= limits::IDEMPOTENCY_KEYS_MAX {
            return refuse(SendRefusal::TooManyKeys { kept });
        }
        let old = before.map(|before| before.until);
        Ok(KeyLookup::Anew(AnswerPlace { of, key: text, digest: key.digest(), old, kept }))
    }

    fn keep_answer(
        &mut self,
        place: AnswerPlace,
        receipts: Vec<Receipt>,
        shares: Vec<(SubscriptionName, u32)>,
    ) -> Read<()> {
        let AnswerPlace { of, key, digest, old, kept } = place;
        match old {
            Some(old) => self.drop_reminder(old, of, Remind::Answer(key.clone()))?,
            None => self.write(Change::AnswerCount(of, Some(kept + 1)))?,
        }
        let until = self.now + limits::IDEMPOTENCY_WINDOW;
        let answered = AnswerRecord { digest, receipts, until, shares };
        self.write(Change::Answer(of, key.clone(), Some(Arc::new(answered))))?;
        self.set_reminder(until, of, Remind::Answer(key))
    }

    /// Forgets an answer whose window is over.
    pub(crate) fn forget_answer(&mut self, of: QueueId, key: Arc<str>) -> Read<()> {
        let known = self.records.answer(of, &key)?;
        if known.is_some_and(|known| known.until <= self.now) {
            let left = self.records.answer_count(of)?.checked_sub(1);
            let left = left.expect("every answer that is kept is counted");
            self.write(Change::Answer(of, key, None))?;
            self.write(Change::AnswerCount(of, (left > 0).then_some(left)))?;
        }
        Ok(())
    }
}

/// How many copies each subscription gets.
fn shares_of(fanout: &Fanout) -> Vec<(SubscriptionName, u32)> {
    let share = |(queue, copies): &(QueueName, Vec<NewMessage>)| {
        let (_, name) = queue.subscription().expect("copies go to subscriptions");
        (name, u32::try_from(copies.len()).expect("the copies are limited"))
    };
    fanout.copies.iter().map(share).collect()
}

fn with_queues(
    topic: &TopicRecord,
    receipts: Vec<Receipt>,
    shares: &[(SubscriptionName, u32)],
) -> Vec<(QueueName, Receipt)> {
    let queues =
        shares.iter().flat_map(|(name, count)| std::iter::repeat_n(queue_of(topic, name), *count as usize));
    queues.zip(receipts).collect()
}
