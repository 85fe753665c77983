//! Asking a partition in the order in which requests came, also when it moves meanwhile.

use std::time::Duration;

use crate::cluster::lane::LaneRoute;
use crate::cluster::router::Router;
use crate::cluster::shifting::Shift;
use crate::cluster::wire::Ask;
use crate::cluster::wire::NodeReply;
use crate::engine::elsewhere::Reply;
use crate::error::Unavailable;
use crate::limits;

impl Router {
    /// Asks whoever has a partition, until somebody has it, or for long enough. What came before and has to be asked again is not
    /// overtaken. Nothing is asked twice that may have been done.
    pub(crate) async fn ask_in_order(&self, partition: u16, mut ask: Ask) -> Result<Reply, Unavailable> {
        let begun = self.clock.now();
        let mut place = self.lanes[usize::from(partition)].enter();
        let mut known = None;
        loop {
            let left = limits::ROUTE_WAIT.saturating_sub(self.clock.now().since(begun));
            let Ok(route) = tokio::time::timeout(left, place.turn()).await else {
                return Err(Unavailable::NotOwner);
            };
            ask.epoch = route.as_ref().map(|route| route.epoch);
            let node = match route {
                Some(route) if self.leads_on(partition, &route) => Some(route.node),
                Some(_) => {
                    place.undone();
                    continue;
                }
                None => self.who_has(partition, known.take()),
            };
            let asking = self.ask_at(node.as_deref(), &ask, Duration::ZERO);
            match (place.begin(asking).await.said()?, node) {
                (Ok(NodeReply::Reply(reply, now, Some(epoch))), Some(node)) => {
                    place.done_by(LaneRoute { node, epoch });
                    return Ok(Shift::new(now, self.clock.now()).reply(reply));
                }
                (Ok(_), _) => return Err(Unavailable::nonsense()),
                (Err(owner), _) => known = owner,
            }
            place.undone();
            self.pause_before_next(partition, begun).await?;
        }
    }

    /// Whether what goes to an owner may get there: it says itself when it is no owner any more.
    fn leads_on(&self, partition: u16, route: &LaneRoute) -> bool {
        match self.partition(partition).owned() {
            Some((_, epoch)) => route.node == self.node && route.epoch == epoch,
            None => route.node != self.node && self.leases.incarnation(&route.node).is_some(),
        }
    }
}
