//! The rows in which places are kept, compared with what follows from the messages and from what was settled.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Debug;

use crate::engine::rules::record::QueueId;
use crate::engine::rules::record::SettlementKind;
use crate::engine::rules::record::WorkflowRef;
use crate::engine::tests::crash::rows::Rows;
use crate::engine::tests::simulation::reference::chain::Ended;
use crate::engine::tests::simulation::reference::chain::Link;
use crate::engine::tests::simulation::reference::naive::Flow;
use crate::engine::tests::simulation::reference::naive::Naive;
use crate::engine::tests::simulation::reference::naive::State;
use crate::engine::tests::simulation::view::Finding;
use crate::engine::tests::simulation::view::expect;
use crate::id::MessageId;
use crate::limits;

/// How a place was passed, as far as a late message is answered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Passed {
    Completed,
    Aside,
    GivenUp,
}

impl Passed {
    fn of(how: SettlementKind) -> Passed {
        match how {
            SettlementKind::Completed => Passed::Completed,
            SettlementKind::Aside => Passed::Aside,
            _ => Passed::GivenUp,
        }
    }
}

impl From<Ended> for Passed {
    fn from(ended: Ended) -> Passed {
        match ended {
            Ended::Completed => Passed::Completed,
            Ended::GivenUp => Passed::GivenUp,
        }
    }
}

/// A link as it is stored: the number and the ID of the follower, its place, and how it ended.
type Stored = (u64, Option<MessageId>, Option<u64>, Option<Passed>);

impl Naive {
    /// How places were settled that have been or are known; what was set aside is passed, and may come back.
    fn passed(&self, key: &WorkflowRef, flow: &Flow) -> BTreeMap<u64, Passed> {
        let mut passed: BTreeMap<u64, Passed> = BTreeMap::new();
        if self.chained(key) {
            let chain = (1..).zip(self.chain(key));
            passed.extend(chain.filter_map(|(place, link)| Some((place, Passed::from(link.ended?)))));
        } else {
            passed.extend(flow.completed.iter().map(|place| (*place, Passed::Completed)));
            passed.extend(flow.given_up.iter().map(|place| (*place, Passed::GivenUp)));
        }
        let is_aside = |state: &State| {
            matches!(state, State::ByConsumer { aside: true, .. } | State::Locked(Some((_, true))))
        };
        let aside = self.messages.iter().filter(|m| is_aside(&m.state) && m.key == *key);
        passed.extend(aside.filter_map(|message| Some((message.position?, Passed::Aside))));
        passed
    }

    /// The cursor passes what is settled, and never comes back.
    pub(crate) fn move_cursor(&mut self, key: &WorkflowRef) {
        if !self.placed(key) {
            return;
        }
        let from = self.flow(key).cursor.max(self.first());
        let passed = self.passed(key, &self.flows[key]);
        let next = (from..).find(|place| !passed.contains_key(place));
        self.flow(key).cursor = next.expect("places are endless");
    }

    /// Everything that is kept about places is what it has to be, and nothing else is kept.
    pub(crate) fn compare_places(&self, id: QueueId, rows: &Rows) -> Finding {
        self.compare_marks(id, rows)?;
        self.compare_links(id, rows)?;
        self.compare_waiting(id, rows)?;
        for (key, workflow) in rows.workflows.iter().filter(|(key, _)| key.queue == id) {
            let key = &key.stream;
            if !self.placed(key) {
                continue;
            }
            let cursor = self.flows.get(key).map_or(0, |flow| flow.cursor).max(self.first());
            let through = match self.chained(key) {
                true => self.chain(key).len() as u64,
                false => self.first_missing(key) - 1,
            };
            expect((workflow.cursor, workflow.through) == (cursor, through), || {
                format!("R {key:?} is at {cursor} and reaches to {through}: {workflow:?}")
            })?;
        }
        Ok(())
    }

    /// What was given up is marked for as long as its workflow is known; what was completed or set aside, ahead of the cursor.
    fn compare_marks(&self, id: QueueId, rows: &Rows) -> Finding {
        let mut expected: BTreeMap<(&WorkflowRef, u64), Passed> = BTreeMap::new();
        for (key, flow) in self.flows.iter().filter(|(key, _)| self.placed(key)) {
            let is_marked = |place: u64, how: Passed| how == Passed::GivenUp || place >= flow.cursor;
            let passed = self.passed(key, flow).into_iter().filter(|(place, how)| is_marked(*place, *how));
            expected.extend(passed.map(|(place, how)| ((key, place), how)));
            for (link, _) in self.beyond(key, flow) {
                let ended = link.ended.expect("it has ended");
                expected.insert((key, limits::NUMBER_END + link.seq), ended.into());
            }
        }
        let mut found: BTreeMap<(&WorkflowRef, u64), Passed> = BTreeMap::new();
        let mut before = None;
        for ((key, from), mark) in rows.marks.iter().filter(|((key, _), _)| key.queue == id) {
            expect(*from == mark.from && mark.from <= mark.to, || format!("R {key:?} at {from}: {mark:?}"))?;
            let is_joined = before != Some((key, mark.from, mark.how)) || *from >= limits::NUMBER_END;
            expect(is_joined, || format!("R {key:?}: {mark:?} is not joined with the one before"))?;
            before = Some((key, mark.to + 1, mark.how));
            for place in mark.from..=mark.to {
                let one = found.insert((&key.stream, place), Passed::of(mark.how));
                expect(one.is_none(), || format!("R {key:?}: {mark:?} is marked twice"))?;
            }
        }
        same_rows("marks", &found, &expected)
    }

    /// Links that have ended where the chain has not reached them.
    fn beyond<'a>(&self, key: &WorkflowRef, flow: &'a Flow) -> Vec<(&'a Link, Passed)> {
        let reached: BTreeSet<u64> = self.chain(key).into_iter().map(|link| link.seq).collect();
        let beyond = flow.links.iter().filter(|link| !reached.contains(&link.seq));
        beyond.filter_map(|link| Some((link, link.ended?.into()))).collect()
    }

    /// Every link is stored with its place, and every place with its predecessor.
    fn compare_links(&self, id: QueueId, rows: &Rows) -> Finding {
        let mut links: BTreeMap<(&WorkflowRef, &Option<MessageId>), Stored> = BTreeMap::new();
        let mut trails: BTreeMap<(&WorkflowRef, u64), &Option<MessageId>> = BTreeMap::new();
        for (key, flow) in self.flows.iter().filter(|(key, _)| self.chained(key)) {
            let chain = self.chain(key);
            for link in &flow.links {
                let place = (1..).zip(&chain).find(|(_, one)| one.seq == link.seq).map(|(place, _)| place);
                let stored = (link.seq, Some(link.id.clone()), place, link.ended.map(Passed::from));
                links.insert((key, &link.after), stored);
            }
            trails.extend((1..).zip(&chain).map(|(place, link)| ((key, place), &link.after)));
            let beyond = self.beyond(key, flow).into_iter();
            trails.extend(beyond.map(|(link, _)| ((key, limits::NUMBER_END + link.seq), &link.after)));
        }
        let found = rows.links.iter().filter(|((key, _), _)| key.queue == id);
        let found: BTreeMap<(&WorkflowRef, &Option<MessageId>), Stored> = found
            .map(|((key, after), link)| {
                let number = link.sequence.map_or(0, |sequence| sequence.get());
                let ended = link.settled.map(Passed::of);
                ((&key.stream, after), (number, link.message_id.clone(), link.rank, ended))
            })
            .collect();
        same_rows("links", &found, &links)?;
        let found = rows.trails.iter().filter(|((key, _), _)| key.queue == id);
        let found: BTreeMap<_, _> =
            found.map(|((key, place), trail)| ((&key.stream, *place), &trail.after)).collect();
        same_rows("trails", &found, &trails)
    }

    /// Whatever the chain has not reached is found by its ID, and what begins something among it as such.
    fn compare_waiting(&self, id: QueueId, rows: &Rows) -> Finding {
        let (mut waiting, mut roots) = (BTreeMap::new(), BTreeMap::new());
        for key in self.flows.keys().filter(|key| self.chained(key)) {
            waiting.extend(self.unreached(key).into_iter().map(|m| ((key, m.id.as_ref()), m.seq)));
            roots.extend(self.roots(key).into_iter().map(|m| ((key, m.seq), ())));
        }
        let found = rows.waiting.iter().filter(|((key, _), _)| key.queue == id);
        let found: BTreeMap<_, _> =
            found.map(|((key, id), sequence)| ((&key.stream, Some(id)), sequence.get())).collect();
        same_rows("waiting", &found, &waiting)?;
        let found = rows.roots.iter().filter(|(key, _)| key.queue == id);
        let found: BTreeMap<_, _> =
            found.map(|(key, sequence)| ((&key.stream, sequence.get()), ())).collect();
        same_rows("roots", &found, &roots)
    }
}

/// That rows are the expected ones; tells only of those that are not.
fn same_rows<K: Ord + Debug, V: PartialEq + Debug>(
    what: &str,
    found: &BTreeMap<K, V>,
    expected: &BTreeMap<K, V>,
) -> Finding {
    let wrong: Vec<_> = found.iter().filter(|(key, row)| expected.get(key) != Some(row)).collect();
    let missing: Vec<_> = expected.iter().filter(|(key, row)| found.get(key) != Some(row)).collect();
    expect(wrong.is_empty() && missing.is_empty(), || {
        format!("R of the {what} {wrong:?} are there, and expected: {missing:?}")
    })
}
