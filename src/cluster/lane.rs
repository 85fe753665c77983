//! The order in which requests of one partition are asked, so that none that has to be asked again is overtaken.
//!
//! As long as nothing comes back undone, requests are asked as they come, and are under way together: all of them to the one owner
//! whose epoch they name, which takes them as they come or refuses them all. When one comes back undone, no other is begun; once
//! those under way have ended, what is undone is asked again in the order in which it came, the first by itself, because whoever
//! does it says which epoch the others are to name.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use tokio::sync::Notify;

use crate::mutex::Mutex;

/// The owner that takes what is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaneRoute {
    pub(crate) node: String,
    pub(crate) epoch: u32,
}

#[derive(Default)]
struct LaneState {
    next: u64,
    /// What is to be asked, by the order in which it came.
    waiting: BTreeMap<u64, Arc<Notify>>,
    under_way: usize,
    /// Whether one has its turn and is not on its way yet.
    is_beginning: bool,
    route: Option<LaneRoute>,
}

impl LaneState {
    /// What has its turn, if something has.
    fn first(&self) -> Option<(u64, &Arc<Notify>)> {
        let may_begin = !self.is_beginning && (self.route.is_some() || self.under_way == 0);
        self.waiting.first_key_value().filter(|_| may_begin).map(|(number, turn)| (*number, turn))
    }

    fn call_first(&self) {
        if let Some((_, turn)) = self.first() {
            turn.notify_one();
        }
    }
}

/// The requests of one partition.
#[derive(Default)]
pub(crate) struct RequestLane(Mutex<LaneState>);

impl RequestLane {
    /// The place of a request behind all that came before.
    pub(crate) fn enter(self: &Arc<RequestLane>) -> LanePlace {
        let (turn, mut state) = (Arc::new(Notify::new()), self.0.lock());
        let number = state.next;
        state.next += 1;
        state.waiting.insert(number, turn.clone());
        LanePlace { lane: self.clone(), number, turn, stage: PlaceStage::Waiting, is_first: false }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PlaceStage {
    Waiting,
    /// It has its turn, and others wait until it is on its way.
    Beginning,
    UnderWay,
}

/// The place of one request, until it is dropped.
pub(crate) struct LanePlace {
    lane: Arc<RequestLane>,
    number: u64,
    turn: Arc<Notify>,
    stage: PlaceStage,
    /// Whether it is asked by itself, to know which epoch there is.
    is_first: bool,
}

impl LanePlace {
    /// Waits for the turn of the request. Which owner it is for, unless it is to find that out.
    pub(crate) async fn turn(&mut self) -> Option<LaneRoute> {
        loop {
            {
                let mut state = self.lane.0.lock();
                if state.first().is_some_and(|(number, _)| number == self.number) {
                    state.waiting.remove(&self.number);
                    state.under_way += 1;
                    state.is_beginning = true;
                    self.stage = PlaceStage::Beginning;
                    self.is_first = state.route.is_none();
                    return state.route.clone();
                }
            }
            self.turn.notified().await;
        }
    }

    /// Has it asked. The next has its turn once this is on its way.
    pub(crate) async fn begin<T>(&mut self, asking: impl Future<Output = T>) -> T {
        let mut asking = pin!(asking);
        let begun = std::future::poll_fn(|context| Poll::Ready(asking.as_mut().poll(context))).await;
        self.on_its_way();
        match begun {
            Poll::Ready(heard) => heard,
            Poll::Pending => asking.await,
        }
    }

    fn on_its_way(&mut self) {
        if self.stage == PlaceStage::Beginning {
            self.stage = PlaceStage::UnderWay;
            let mut state = self.lane.0.lock();
            state.is_beginning = false;
            state.call_first();
        }
    }

    /// Notes who has done it: the others are for the same owner.
    pub(crate) fn done_by(&self, route: LaneRoute) {
        if self.is_first {
            self.lane.0.lock().route = Some(route);
        }
    }

    /// Goes back to its place, as nothing was done: no other is begun before it.
    pub(crate) fn undone(&mut self) {
        let mut state = self.lane.0.lock();
        state.is_beginning &= self.stage != PlaceStage::Beginning;
        state.under_way -= usize::from(self.stage != PlaceStage::Waiting);
        state.route = None;
        state.waiting.insert(self.number, self.turn.clone());
        self.stage = PlaceStage::Waiting;
        state.call_first();
    }
}

impl Drop for LanePlace {
    fn drop(&mut self) {
        let mut state = self.lane.0.lock();
        state.waiting.remove(&self.number);
        state.is_beginning &= self.stage != PlaceStage::Beginning;
        state.under_way -= usize::from(self.stage != PlaceStage::Waiting);
        state.call_first();
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::task::Context;
    use std::task::Waker;

    use super::*;

    fn route(epoch: u32) -> LaneRoute {
        LaneRoute { node: "first".to_owned(), epoch }
    }

    /// Whether it has its turn now, and for which epoch.
    fn has_turn(place: &mut LanePlace) -> Option<Option<u32>> {
        let turn = pin!(place.turn());
        match turn.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(route) => Some(route.map(|route| route.epoch)),
            Poll::Pending => None,
        }
    }

    /// Begins something that is not answered.
    fn begin(place: &mut LanePlace) {
        assert!(
            pin!(place.begin(pending::<()>())).poll(&mut Context::from_waker(Waker::noop())).is_pending()
        );
    }

    /// A lane whose owner is known.
    fn open() -> Arc<RequestLane> {
        let lane = Arc::new(RequestLane::default());
        let mut first = lane.enter();
        assert_eq!(has_turn(&mut first), Some(None));
        begin(&mut first);
        first.done_by(route(1));
        lane
    }

    #[test]
    fn without_a_retry_nothing_waits() {
        let lane = open();
        let mut places = [lane.enter(), lane.enter(), lane.enter()];
        for place in &mut places {
            assert_eq!(has_turn(place), Some(Some(1)));
            begin(place);
        }
    }

    #[test]
    fn the_next_has_its_turn_when_the_one_before_is_on_its_way() {
        let lane = open();
        let (mut one, mut two) = (lane.enter(), lane.enter());
        assert_eq!(has_turn(&mut two), None);
        assert_eq!(has_turn(&mut one), Some(Some(1)));
        assert_eq!(has_turn(&mut two), None);
        drop(one);
        assert_eq!(has_turn(&mut two), Some(Some(1)));
    }

    #[test]
    fn what_comes_back_undone_in_any_order_is_asked_again_in_the_order_in_which_it_came() {
        let lane = open();
        let mut places = [lane.enter(), lane.enter(), lane.enter(), lane.enter()];
        for place in &mut places[..3] {
            assert_eq!(has_turn(place), Some(Some(1)));
            begin(place);
        }
        let [one, two, three, four] = &mut places;
        three.undone();
        assert_eq!(has_turn(four), None, "it came later");
        assert_eq!(has_turn(three), None, "others are under way");
        one.undone();
        two.undone();
        assert_eq!((has_turn(two), has_turn(three), has_turn(four)), (None, None, None));
        assert_eq!(has_turn(one), Some(None));
        begin(one);
        assert_eq!(has_turn(two), None, "it is not known yet who takes it");
        one.done_by(route(2));
        assert_eq!((has_turn(three), has_turn(four)), (None, None));
        for place in [two, three, four] {
            assert_eq!(has_turn(place), Some(Some(2)));
            begin(place);
        }
    }

    #[test]
    fn what_is_given_up_keeps_nobody_waiting() {
        let lane = open();
        let mut one = lane.enter();
        assert_eq!(has_turn(&mut one), Some(Some(1)));
        one.undone();
        let mut two = lane.enter();
        assert_eq!(has_turn(&mut two), None);
        drop(one);
        assert_eq!(has_turn(&mut two), Some(None));
        drop(two);
        assert_eq!(has_turn(&mut lane.enter()), Some(None));
    }
}
