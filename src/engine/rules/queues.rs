//! Queues: created, changed, deleted, and deleted by themselves when they are idle.

use crate::clock::Timestamp;
use crate::engine::rules::change::Change;
use crate::engine::rules::effect::Effect;
use crate::engine::rules::effect::EventKind;
use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::record::Remind;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::error::QueueRefusal;
use crate::id::QueueName;
use crate::limits;
use crate::queue::QueueOptions;

impl Step<'_> {
    /// Creates a queue; false when there is one with the same options already.
    pub(crate) fn create_queue(
        &mut self,
        name: &QueueName,
        options: QueueOptions,
    ) -> Ruling<bool, QueueRefusal> {
        if self.records.topic(name)?.is_some() {
            return refuse(QueueRefusal::NameIsTopic(name.clone()));
        }
        if name.subscription().is_some() && self.queue_named(name)?.is_none() {
            return refuse(QueueRefusal::NotSubscribed(name.clone()));
        }
        self.create_queue_of_any_name(name, options)
    }

    /// The same, of a subscription too.
    pub(crate) fn create_queue_of_any_name(
        &mut self,
        name: &QueueName,
        options: QueueOptions,
    ) -> Ruling<bool, QueueRefusal> {
        if let Some(queue) = self.queue_named(name)? {
            return match queue.options == options {
                true => Ok(false),
                false => refuse(QueueRefusal::QueueExists(name.clone())),
            };
        }
        let count = self.records.queue_count()?;
        if count >= limits::QUEUES_MAX {
            return refuse(QueueRefusal::TooManyQueues(count));
        }
        self.add_queue(name, options)?;
        Ok(true)
    }

    /// The same, where it is known that there is none and may be one more.
    pub(crate) fn add_queue(&mut self, name: &QueueName, options: QueueOptions) -> Read<()> {
        let numbers = self.numbers()?;
        numbers.next_queue += 1;
        let id = QueueId(numbers.next_queue);
        let (name, created_at) = (name.clone(), self.wall);
        let record = QueueRecord { id, name, options, created_at, idle_check: None, paused: false };
        self.counters(id)?;
        self.write_queue(record)
    }

    /// Changes the options of a queue; false when they are the same.
    pub(crate) fn change_queue(
        &mut self,
        name: &QueueName,
        options: QueueOptions,
    ) -> Ruling<bool, QueueRefusal> {
        let queue = self.queue_or(name, QueueRefusal::QueueNotFound)?;
        if queue.options == options {
            return Ok(false);
        }
        let in_use = self.records.counters(queue.id)?.counts.stored() > 0
            || !self.records.workflows(queue.id, None, 1)?.is_empty()
            || self.records.cursor_count(queue.id)?.kept > 0;
        if queue.options.order != options.order && in_use {
            return refuse(QueueRefusal::OrderInUse(name.clone()));
        }
        if let Some(check) = queue.idle_check {
            self.drop_reminder(check, queue.id, Remind::Idle)?;
        }
        self.counters(queue.id)?;
        if queue.options.rate != options.rate {
            // Whoever waits for the rate as it was looks again.
            self.effects.push(Effect::Work(name.clone()));
            self.effects.extend(self.locks.of_queue(queue.id).into_iter().map(Effect::AcceptedWork));
        }
        self.change_history(&queue, &options)?;
        self.change_cursors(&queue, &options)?;
        self.write_queue(QueueRecord { options, ..(*queue).clone() })?;
        Ok(true)
    }

    /// Notes on a queue whether its handlers pause; false when that is known.
    pub(crate) fn pause_queue(&mut self, name: &QueueName, paused: bool) -> Ruling<bool, QueueRefusal> {
        let queue = self.queue_or(name, QueueRefusal::QueueNotFound)?;
        if queue.paused == paused {
            return Ok(false);
        }
        self.write(Change::Queue(Box::new(QueueRecord { paused, ..(*queue).clone() })))?;
        Ok(true)
    }

    fn write_queue(&mut self, mut record: QueueRecord) -> Read<()> {
        record.idle_check = record.options.delete_when_idle.map(|idle| self.now + idle);
        if let Some(check) = record.idle_check {
            self.set_reminder(check, record.id, Remind::Idle)?;
        }
        self.write(Change::Queue(Box::new(record)))
    }

    /// Deletes a queue with everything in it; deliveries of it can no longer be settled.
    pub(crate) fn delete_queue(&mut self, name: &QueueName) -> Ruling<bool, QueueRefusal> {
        let queue = self.queue_or(name, QueueRefusal::QueueNotFound)?;
        self.remove_queue(&queue)?;
        Ok(true)
    }

    pub(crate) fn remove_queue(&mut self, queue: &QueueRecord) -> Read<()> {
        self.unsubscribe(&queue.name)?;
        self.remove_queue_only(queue)
    }

    /// The same, where the topic whose subscription it may be says so already.
    pub(crate) fn remove_queue_only(&mut self, queue: &QueueRecord) -> Read<()> {
        self.note_locks_freed();
        for token in self.locks.of_queue(queue.id) {
            self.effects.push(Effect::AcceptedWork(token));
            self.locks.end(token);
        }
        self.forget_queue(queue.id);
        self.emit(&queue.name, None, None, EventKind::QueueDeleted);
        self.write(Change::QueueGone(queue.id))
    }

    /// Deletes the queue if it was idle for long enough, or looks again when it could be.
    pub(crate) fn check_idle(&mut self, id: QueueId, used_at: Timestamp) -> Read<()> {
        let queue = self.queue(id)?;
        let Some(idle) = queue.options.delete_when_idle else {
            return Ok(());
        };
        let counters = self.records.counters(id)?;
        // Who has a workflow may wait for its messages, and who has a message works on it.
        let used_at = if self.locks.has_some(id) { self.now } else { used_at };
        let due = used_at.max(counters.used_at) + idle;
        // A workflow is known as long as it has messages, a state, a hold, dead letters, or a cursor younger than
        // `forget_after`.
        let empty = counters.counts.stored() == 0 && self.records.workflows(id, None, 1)?.is_empty();
        if due <= self.now && (empty || queue.options.delete_with_messages) {
            return self.remove_queue(&queue);
        }
        // What it keeps may be there for ever: it is not asked again and again.
        let check = if due > self.now { due } else { self.now + idle.max(limits::LOCK_MIN) };
        self.set_reminder(check, id, Remind::Idle)?;
        self.write(Change::Queue(Box::new(QueueRecord { idle_check: Some(check), ..(*queue).clone() })))
    }
}
