//! Workflows that a command works on one after the other, and closes together.

use crate::engine::rules::open_workflow::OpenWorkflow;
use crate::engine::rules::records::Read;
use crate::engine::rules::step::Step;

/// So many are open at most: few enough that they are still in a processor's cache when they are closed.
const OPEN_MAX: usize = 16;

/// Workflows that are open, none of them twice. What is done to each, and closing it, are two loops: the code of either fits into a
/// processor's cache, and that of both together does not.
#[derive(Default)]
#[must_use = "workflows that were opened have to be closed"]
#[expect(clippy::vec_box, reason = "they come in boxes, and are handed on in them")]
pub(crate) struct OpenWorkflows(Vec<Box<OpenWorkflow>>);

impl OpenWorkflows {
    /// Adds a workflow; those that are open are closed first when they are too many.
    pub(crate) fn push(&mut self, step: &mut Step<'_>, workflow: Box<OpenWorkflow>) -> Read<()> {
        if self.0.len() == OPEN_MAX {
            self.close(step)?;
        }
        self.0.push(workflow);
        Ok(())
    }

    /// Closes all, in the order in which they came.
    pub(crate) fn close(&mut self, step: &mut Step<'_>) -> Read<()> {
        self.0.drain(..).try_for_each(|workflow| workflow.close(step))
    }
}
