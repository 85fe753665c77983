//! How much came and was completed in each minute of the last hour, of each queue; kept in memory only.

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::time::Duration;

use crate::api::views::QueueRatesView;
use crate::engine::QueueView;
use crate::id::QueueName;
use crate::limits;
use crate::mutex::Mutex;

/// The rates of the last hour.
#[derive(Default)]
pub(crate) struct HourlyRates {
    known: Mutex<KnownCounts>,
}

#[derive(Default)]
struct KnownCounts {
    series: BTreeMap<QueueName, Series>,
    /// Whether the queues that were there at the start have been looked at: all that a later one has is new.
    is_begun: bool,
}

/// One queue's last hour, a number for each minute, and its counters when they were looked at last.
struct Series {
    minute: u64,
    accepted: VecDeque<u64>,
    completed: VecDeque<u64>,
    accepted_before: u64,
    completed_before: u64,
}

impl Series {
    fn new(minute: u64, accepted_before: u64, completed_before: u64) -> Series {
        let empty = || VecDeque::from(vec![0; limits::RATE_MINUTES]);
        Series { minute, accepted: empty(), completed: empty(), accepted_before, completed_before }
    }

    fn note(&mut self, minute: u64, view: &QueueView) {
        for _ in 0..minute.saturating_sub(self.minute).min(limits::RATE_MINUTES as u64) {
            for values in [&mut self.accepted, &mut self.completed] {
                values.pop_front();
                values.push_back(0);
            }
        }
        self.minute = minute;
        let (accepted, completed) = (view.counts.accepted, view.counts.completed);
        let add = |values: &mut VecDeque<u64>, count: u64| {
            if let Some(last) = values.back_mut() {
                *last += count;
            }
        };
        add(&mut self.accepted, accepted.saturating_sub(self.accepted_before));
        add(&mut self.completed, completed.saturating_sub(self.completed_before));
        (self.accepted_before, self.completed_before) = (accepted, completed);
    }
}

impl HourlyRates {
    /// Notes what the counters of all queues are after so much time.
    pub(crate) fn note(&self, elapsed: Duration, queues: &[QueueView]) {
        let minute = elapsed.as_secs() / 60;
        let mut known = self.known.lock();
        let KnownCounts { series, is_begun } = &mut *known;
        series.retain(|name, _| queues.iter().any(|view| view.name == *name));
        for view in queues {
            if !series.contains_key(&view.name) {
                if series.len() >= limits::RATE_QUEUES {
                    continue;
                }
                let before = if *is_begun { (0, 0) } else { (view.counts.accepted, view.counts.completed) };
                series.insert(view.name.clone(), Series::new(minute, before.0, before.1));
            }
            if let Some(series) = series.get_mut(&view.name) {
                series.note(minute, view);
            }
        }
        *is_begun = true;
    }

    /// The rates of the last hour, oldest minute first.
    pub(crate) fn show(&self) -> Vec<QueueRatesView> {
        let known = self.known.lock();
        let show = |(name, series): (&QueueName, &Series)| QueueRatesView {
            queue: name.to_string(),
            accepted: series.accepted.iter().copied().collect(),
            completed: series.completed.iter().copied().collect(),
        };
        known.series.iter().map(show).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Client;
    use crate::message::Message;
    use crate::queue::QueueOptions;

    async fn note(rates: &HourlyRates, client: &Client, seconds: u64) {
        rates.note(Duration::from_secs(seconds), &client.queues(None, 10).await.unwrap());
    }

    #[tokio::test]
    async fn a_rate_is_of_the_minute_in_which_it_was_seen_and_is_forgotten_after_an_hour() {
        let (engine, _) = crate::testing::engine().await.unwrap();
        let (client, rates) = (engine.client(), HourlyRates::default());
        let queue = client.create_queue("q", QueueOptions::default()).await.unwrap();
        queue.send(Message::new("before").workflow("w")).await.unwrap();
        note(&rates, client, 0).await;
        for second in [30, 59, 60] {
            queue.send(Message::new("x").workflow("w")).await.unwrap();
            note(&rates, client, second).await;
        }
        queue.receive(Duration::ZERO).await.unwrap().unwrap().complete().await.unwrap();
        note(&rates, client, 61).await;
        let shown = rates.show().pop().unwrap();
        assert_eq!((shown.accepted.len(), &shown.accepted[58..], shown.completed[59]), (60, &[2, 1][..], 1));
        note(&rates, client, 60 * 61).await;
        assert!(rates.show()[0].accepted.iter().all(|count| *count == 0));
        let later = client.create_queue("later", QueueOptions::default()).await.unwrap();
        later.send(Message::new("x").workflow("w")).await.unwrap();
        note(&rates, client, 60 * 61).await;
        assert_eq!(rates.show()[0].accepted[59], 1, "all that a new queue has is new");
        client.delete_queue("later").await.unwrap();
        client.delete_queue("q").await.unwrap();
        note(&rates, client, 60 * 61).await;
        assert!(rates.show().is_empty());
    }
}
