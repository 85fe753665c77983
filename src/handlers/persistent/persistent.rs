//! A handler that asks one of several children that run on.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::engine::ReceivedMessage;
use crate::handlers::ending::GIVEN_UP;
use crate::handlers::ending::LOCK_LOST;
use crate::handlers::persistent::child_pool::ChildPool;
use crate::handlers::persistent::child_pool::PersistentOptions;
use crate::handlers::persistent::child_supervisor::ChildSupervisor;
use crate::handlers::persistent::process_pool::ProcessPool;
use crate::handlers::site::Site;
use crate::limits;
use crate::mutex::Mutex;
use crate::processor::Assignment;
use crate::processor::Taker;
use crate::task;
use crate::task::boxed;

/// Children that run on, each of which takes requests in lines of JSON and answers them in any order.
///
/// A child that dies, answers garbage, or must not go on with one of its messages is ended with its whole group; what
/// it held has failed, and another takes its place. If it held several messages, nobody knows which of them is to blame: an
/// extra child gets them one by one, and is ended when it has had nothing to do for a while.
///
/// # Dropping
/// The children are killed; [`Persistent::close`] lets them finish.
pub(crate) struct Persistent {
    shared_pool: Arc<ChildPool>,
    stop: watch::Sender<bool>,
    child_supervisors: Mutex<JoinSet<()>>,
}

impl Persistent {
    /// Starts the children, on the present tokio runtime.
    pub(crate) fn start(options: PersistentOptions, site: Site) -> Persistent {
        let slots = options.processes.clamp(1, limits::PROCESSES_MAX);
        let shared_pool = Arc::new(ChildPool::new(options, slots, site));
        let (stop, stopping) = watch::channel(false);
        let mut child_supervisors = JoinSet::new();
        for slot in 0..=slots {
            let child_supervisor = ChildSupervisor {
                shared_pool: shared_pool.clone(),
                slot,
                is_extra: slot == slots,
                stop: stopping.clone(),
            };
            child_supervisors.spawn(boxed(child_supervisor.keep()));
        }
        Persistent { shared_pool, stop, child_supervisors: Mutex::new(child_supervisors) }
    }

    /// Until when no child can be started because the daemon lacks something for it, and why; none when one is up.
    pub(crate) fn cannot_start_until(&self) -> Option<(Duration, String)> {
        self.shared_pool.with_pool(|process_pool| process_pool.shortage())
    }

    /// Takes no more messages, and gives back those no child has begun; the others go on.
    pub(crate) fn turn_away(&self) {
        self.shared_pool.with_pool(ProcessPool::close);
    }

    /// Takes no more messages, closes the children's inputs, and waits until they have ended.
    pub(crate) async fn close(&self) {
        self.turn_away();
        self.stop.send_replace(true);
        let child_supervisors = std::mem::take(&mut *self.child_supervisors.lock());
        child_supervisors.join_all().await;
    }
}

impl Taker for Persistent {
    fn takes(&self, _message: &ReceivedMessage) -> bool {
        true
    }

    fn take(&self, assignments: Vec<Assignment>) {
        let mut requests = Vec::with_capacity(assignments.len());
        for assignment in assignments {
            if assignment.context().message().has_state() {
                task::spawn(self.shared_pool.clone().submit_with_state(assignment));
                continue;
            }
            requests.extend(self.shared_pool.request(assignment, None));
        }
        self.shared_pool.submit(requests);
    }

    fn is_waiting(&self, number: u64) -> bool {
        self.shared_pool.with_pool(|process_pool| process_pool.is_waiting(number))
    }

    fn give_back(&self, number: u64) {
        self.shared_pool.with_pool(|process_pool| process_pool.give_back(number));
    }

    fn cancel(&self, number: u64) {
        self.shared_pool.withdraw(number, LOCK_LOST, |_| ());
    }

    fn give_up(&self, number: u64) {
        self.shared_pool.give_up(number);
    }

    fn give_up_all(&self) {
        // Nothing may be begun any more, also what is still to come: its state is being looked up.
        let numbers = self.shared_pool.with_pool(|process_pool| {
            process_pool.close();
            process_pool.ids()
        });
        if !numbers.is_empty() {
            let (queue, program, messages) =
                (self.shared_pool.program.queue(), self.shared_pool.program.name(), numbers.len());
            tracing::warn!(
                queue,
                program,
                messages,
                "terminating programs that still run: the drain time is over"
            );
        }
        // Their keepers ask them to end, and kill them if they do not.
        numbers.into_iter().for_each(|number| self.shared_pool.withdraw(number, GIVEN_UP, |_| ()));
    }
}
