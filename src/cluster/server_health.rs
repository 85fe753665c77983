//! Whether so many NATS servers answer that they can agree on what they take.

use crate::mutex::Mutex;

/// Whether enough NATS servers answer, as was last heard of all of them.
#[derive(Default)]
pub(crate) struct ServerHealth(Mutex<Option<String>>);

impl ServerHealth {
    /// Notes how many of all have answered.
    pub(crate) fn note(&self, answered: usize, all: usize) {
        *self.0.lock() = (!is_majority(answered, all)).then(|| {
            format!("{answered} of {all} NATS servers answer, and nothing is acknowledged before more than half of them do")
        });
    }

    /// Why nothing may be acknowledged, if too few of them answer.
    pub(crate) fn problem(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

/// Whether so many servers can agree on something.
pub(crate) fn is_majority(answered: usize, all: usize) -> bool {
    answered * 2 > all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_servers_are_too_few() {
        let health = ServerHealth::default();
        assert_eq!(health.problem(), None, "nothing was heard yet");
        for (answered, all, is_enough) in
            [(1, 1, true), (2, 3, true), (1, 3, false), (2, 4, false), (0, 1, false)]
        {
            health.note(answered, all);
            assert_eq!(health.problem().is_none(), is_enough, "{answered} of {all}");
        }
    }
}
