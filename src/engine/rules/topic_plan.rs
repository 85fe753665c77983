//! Making a topic what it is to be, with its subscriptions and their queues: every partition of a cluster has the same.

use std::sync::Arc;

use crate::engine::rules::change::Change;
use crate::engine::rules::record::QueueRecord;
use crate::engine::rules::step::Ruling;
use crate::engine::rules::step::Step;
use crate::engine::rules::step::refuse;
use crate::engine::rules::topic_record::SubscriptionPlan;
use crate::engine::rules::topic_record::TopicPlan;
use crate::engine::rules::topic_record::TopicRecord;
use crate::engine::rules::topics::queue_of;
use crate::error::QueueRefusal;
use crate::error::TopicRefusal;
use crate::id::QueueName;

impl Step<'_> {
    /// Makes a topic what it is to be, whatever it was, unless that is later; its limits were judged by whoever has planned it.
    pub(crate) fn put_topic(
        &mut self,
        name: &QueueName,
        revision: u64,
        plan: &TopicPlan,
    ) -> Ruling<bool, TopicRefusal> {
        let (before, topic) = (self.records.topic(name)?, plan.record(name, revision));
        // What was put is put again, as its queues may have been changed.
        if before.as_ref().is_some_and(|before| before.revision > revision) {
            return Ok(false);
        }
        if before.is_none() && self.queue_named(name)?.is_some() {
            return refuse(TopicRefusal::NameIsQueue(name.clone()));
        }
        // Those of another topic under this name are others, though they have the same names.
        let is_same = before.as_ref().is_some_and(|before| before.number == topic.number);
        if is_same {
            self.check_orders(&topic, plan)?;
        }
        let mut is_changed = before.as_ref().is_none_or(|before| **before != topic);
        if is_changed {
            self.write(Change::Topic(name.clone(), Some(Arc::new(topic.clone()))))?;
        }
        for known in before.iter().flat_map(|before| &before.subscriptions) {
            if (!is_same || topic.subscription(&known.name).is_none())
                && let Some(queue) = self.queue_named(&queue_of(&topic, &known.name))?
            {
                self.remove_queue_only(&queue)?;
            }
        }
        for subscription in &plan.subscriptions {
            is_changed |= self.put_queue(&queue_of(&topic, &subscription.name), subscription)?;
        }
        Ok(is_changed)
    }

    /// Refuses another order before anything is written.
    fn check_orders(&self, topic: &TopicRecord, plan: &TopicPlan) -> Ruling<(), TopicRefusal> {
        for subscription in &plan.subscriptions {
            let name = queue_of(topic, &subscription.name);
            let queue = self.queue_named(&name)?;
            if queue.is_some_and(|queue| queue.options.order != subscription.options.order) {
                let why = QueueRefusal::OrderInUse(name.clone()).to_string();
                return refuse(TopicRefusal::OptionsRefused(name, why));
            }
        }
        Ok(())
    }

    fn put_queue(&mut self, name: &QueueName, plan: &SubscriptionPlan) -> Ruling<bool, TopicRefusal> {
        let options = (*plan.options).clone();
        let is_changed = match self.queue_named(name)? {
            None => {
                self.add_queue(name, options)?;
                true
            }
            Some(_) => {
                let impossible =
                    |refusal| -> TopicRefusal { unreachable!("its order is what it was: {refusal}") };
                self.change_queue(name, options).map_err(|stop| stop.map(impossible))?
            }
        };
        match self.queue_named(name)? {
            Some(queue) if queue.paused != plan.paused => {
                let paused = plan.paused;
                self.write(Change::Queue(Box::new(QueueRecord { paused, ..(*queue).clone() })))?;
                Ok(true)
            }
            _ => Ok(is_changed),
        }
    }
}
