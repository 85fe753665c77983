//! Judges every hand-out: one at a time for each workflow, in order, never early after a failure.

use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use crate::bench::error::BenchError;

/// Instants of a queue may be whole milliseconds: so much earlier than asked is rounding.
const ROUNDING: Duration = Duration::from_millis(1);

/// What is known of every workflow of a run.
pub(crate) struct Checker {
    lanes: Vec<Mutex<WorkflowCheck>>,
    first_workflow: u32,
    each: u32,
}

/// What is known of one workflow.
#[derive(Default)]
struct WorkflowCheck {
    /// Whether a handler has something of it.
    is_held: bool,
    /// The index that is to come next.
    next: u32,
    /// How often that has failed.
    failures: u32,
    /// Before when it is not to come.
    not_before: Option<Duration>,
}

/// What a message that begins is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageStart {
    /// How often it has failed before.
    pub(crate) failures: u32,
    /// How long after the asked delay it came back, if it did.
    pub(crate) late: Option<Duration>,
}

impl Checker {
    pub(crate) fn new(first_workflow: u32, workflows: u32, each: u32) -> Checker {
        let lanes = (0..workflows).map(|_| Mutex::default()).collect();
        Checker { lanes, first_workflow, each }
    }

    /// A handler got something of a workflow: nobody else may have any of it.
    pub(crate) fn take(&self, workflow: u32) -> Result<(), BenchError> {
        let mut lane = self.lane(workflow)?;
        if lane.is_held {
            return Err(BenchError::Broken(format!("two handlers had workflow {workflow} at once")));
        }
        lane.is_held = true;
        Ok(())
    }

    /// A message begins: it must be the next of its workflow.
    pub(crate) fn begin(&self, workflow: u32, index: u32, now: Duration) -> Result<MessageStart, BenchError> {
        let mut lane = self.lane(workflow)?;
        if index != lane.next {
            let text = format!("workflow {workflow} went on with message {index}, {} was next", lane.next);
            return Err(BenchError::Broken(text));
        }
        let late = match lane.not_before.take() {
            Some(due) if now + ROUNDING < due => {
                let text = format!("message {index} of workflow {workflow} came {:?} early", due - now);
                return Err(BenchError::Broken(text));
            }
            due => due.map(|due| now.saturating_sub(due)),
        };
        Ok(MessageStart { failures: lane.failures, late })
    }

    /// It is about to be completed.
    pub(crate) fn completed(&self, workflow: u32) -> Result<(), BenchError> {
        let mut lane = self.lane(workflow)?;
        (lane.next, lane.failures) = (lane.next + 1, 0);
        Ok(())
    }

    /// It is about to be given back, to come again not before an instant.
    pub(crate) fn failed(&self, workflow: u32, not_before: Duration) -> Result<(), BenchError> {
        let mut lane = self.lane(workflow)?;
        (lane.failures, lane.not_before) = (lane.failures + 1, Some(not_before));
        Ok(())
    }

    /// The handler is about to settle: from now on another may get the next of this workflow.
    pub(crate) fn leave(&self, workflow: u32) -> Result<(), BenchError> {
        self.lane(workflow)?.is_held = false;
        Ok(())
    }

    /// All is handled, and nothing is in anybody's hands.
    pub(crate) fn check_end(&self) -> Result<(), BenchError> {
        for (workflow, lane) in self.lanes.iter().enumerate() {
            let lane = lane.lock().unwrap_or_else(PoisonError::into_inner);
            if lane.is_held || lane.next != self.each {
                let text = format!("workflow {workflow} ended after {} of {} messages", lane.next, self.each);
                return Err(BenchError::Broken(text));
            }
        }
        Ok(())
    }

    fn lane(&self, workflow: u32) -> Result<MutexGuard<'_, WorkflowCheck>, BenchError> {
        let lane = workflow.checked_sub(self.first_workflow).and_then(|at| self.lanes.get(at as usize));
        match lane {
            Some(lane) => Ok(lane.lock().unwrap_or_else(PoisonError::into_inner)),
            None => Err(BenchError::Broken(format!("workflow {workflow} came, and nothing of it was to"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_millis(100);

    #[test]
    fn a_run_in_order_passes() {
        let checker = Checker::new(5, 1, 2);
        for index in 0..2 {
            checker.take(5).unwrap();
            assert_eq!(checker.begin(5, index, NOW).unwrap(), MessageStart { failures: 0, late: None });
            assert!(checker.check_end().is_err());
            checker.completed(5).unwrap();
            checker.leave(5).unwrap();
        }
        checker.check_end().unwrap();
    }

    #[test]
    fn an_overtaking_message_is_found() {
        let checker = Checker::new(0, 1, 3);
        assert!(checker.begin(0, 1, NOW).is_err());
        checker.begin(0, 0, NOW).unwrap();
        checker.failed(0, NOW).unwrap();
        assert!(checker.begin(0, 1, NOW).is_err(), "what failed was overtaken");
    }

    #[test]
    fn a_second_holder_is_found() {
        let checker = Checker::new(0, 1, 3);
        checker.take(0).unwrap();
        assert!(checker.take(0).is_err());
    }

    #[test]
    fn a_retry_is_late_or_on_time_but_not_early() {
        let checker = Checker::new(0, 1, 3);
        checker.failed(0, NOW).unwrap();
        assert!(checker.begin(0, 0, NOW - Duration::from_millis(2)).is_err());
        checker.failed(0, NOW).unwrap();
        let begun = checker.begin(0, 0, NOW + Duration::from_millis(3)).unwrap();
        assert_eq!(begun, MessageStart { failures: 2, late: Some(Duration::from_millis(3)) });
    }

    #[test]
    fn a_foreign_workflow_is_found() {
        assert!(Checker::new(10, 2, 3).take(9).is_err());
        assert!(Checker::new(10, 2, 3).take(12).is_err());
    }
}
