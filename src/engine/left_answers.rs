//! Answers that nobody waits for any more, of which it matters when they have been given back.

use std::future::poll_fn;
use std::sync::PoisonError;
use std::task::Context;
use std::task::Poll;

// Named from here, because the tests compile this file among other threads (`handoff`).
use super::letter::LeftAnswer;
use super::threads::Mutex;

/// The answers that one who asks has left. There are few: whoever asks again waits for those that are under way.
#[derive(Default)]
pub(crate) struct LeftAnswers(Mutex<Vec<LeftAnswer>>);

/// Notes an answer as left when this is dropped, unless it has come.
pub(crate) struct LeavingGuard<'a> {
    noted_in: &'a LeftAnswers,
    answer: Option<LeftAnswer>,
    pub(crate) is_answered: bool,
}

impl LeftAnswers {
    pub(crate) fn note_unless_answered(&self, answer: LeftAnswer) -> LeavingGuard<'_> {
        LeavingGuard { noted_in: self, answer: Some(answer), is_answered: false }
    }

    /// Waits until all that they hand out is asked to be given back: what is asked from then on comes behind that. If that takes time,
    /// `hurry` is called, once, to end what is still waited for in vain.
    pub(crate) async fn end(&self, hurry: impl FnOnce()) {
        let mut hurry = Some(hurry);
        let ended = poll_fn(|context| {
            if !self.are_under_way(context) {
                return Poll::Ready(());
            }
            if let Some(hurry) = hurry.take() {
                hurry();
            }
            Poll::Pending
        });
        ended.await;
    }

    fn are_under_way(&self, context: &Context<'_>) -> bool {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        answers.retain(|answer| answer.is_under_way(context));
        !answers.is_empty()
    }
}

impl Drop for LeavingGuard<'_> {
    fn drop(&mut self) {
        if let Some(answer) = self.answer.take().filter(|_| !self.is_answered) {
            self.noted_in.0.lock().unwrap_or_else(PoisonError::into_inner).push(answer);
        }
    }
}
