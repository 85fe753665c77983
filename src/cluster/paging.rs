//! Pages of lists, of which a partition may give the beginning only: what is behind it is looked for, and put behind it.

use crate::engine::elsewhere::LookFor;
use crate::engine::elsewhere::LookResult;

/// What is looked for behind the beginning of what was found, if it is known where that ends and more was asked for.
pub(crate) fn look_behind(look: &LookFor, found: &LookResult) -> Option<LookFor> {
    match (look.clone(), found) {
        (LookFor::Queues { limit, .. }, LookResult::Queues(found)) => {
            let (last, limit) = rest(Some(found), limit)?;
            Some(LookFor::Queues { after: Some(last.name.clone()), limit })
        }
        (LookFor::Workflows { queue, limit, .. }, LookResult::Workflows(found)) => {
            let (last, limit) = rest(found.as_ref(), limit)?;
            Some(LookFor::Workflows { queue, after: Some(last.workflow_id.clone()?), limit })
        }
        (LookFor::Standing { queue, limit, .. }, LookResult::Standing(found)) => {
            let (last, limit) = rest(found.as_ref()?.as_ref(), limit)?;
            Some(LookFor::Standing { queue, after: Some(last.workflow_id.clone()?), limit })
        }
        (LookFor::DeadLetters { queue, limit, .. }, LookResult::DeadLetters(found)) => {
            let (last, limit) = rest(found.as_ref(), limit)?;
            let after = Some((last.dead_letter.reason.clone(), last.sequence_number));
            Some(LookFor::DeadLetters { queue, after, limit })
        }
        (LookFor::History { queue, id, limit, .. }, LookResult::History(found)) => {
            let (last, limit) = rest(found.as_ref(), limit)?;
            Some(LookFor::History { queue, id, before: Some(last.number), limit })
        }
        (LookFor::Alone { queue, limit, .. }, LookResult::Alone(found)) => {
            let ((last, _), limit) = rest(found.as_ref(), limit)?;
            Some(LookFor::Alone { queue, from: last.next(), limit })
        }
        _ => None,
    }
}

/// The last of what was found, and how many more were asked for.
fn rest<T>(found: Option<&Vec<T>>, limit: usize) -> Option<(&T, usize)> {
    let found = found?;
    let left = limit.saturating_sub(found.len());
    found.last().filter(|_| left > 0).map(|last| (last, left))
}

/// Puts what was found behind the beginning of it.
pub(crate) fn put_behind(beginning: LookResult, more: LookResult) -> Option<LookResult> {
    Some(match (beginning, more) {
        (LookResult::Queues(mut found), LookResult::Queues(more)) => {
            found.extend(more);
            LookResult::Queues(found)
        }
        (LookResult::Workflows(found), LookResult::Workflows(more)) => {
            LookResult::Workflows(joined(found, more))
        }
        (LookResult::Standing(found), LookResult::Standing(more)) => {
            LookResult::Standing(found.zip(more).map(|(found, more)| joined(found, more)))
        }
        (LookResult::DeadLetters(found), LookResult::DeadLetters(more)) => {
            LookResult::DeadLetters(joined(found, more))
        }
        (LookResult::History(found), LookResult::History(more)) => LookResult::History(joined(found, more)),
        (LookResult::Alone(found), LookResult::Alone(more)) => LookResult::Alone(joined(found, more)),
        _ => return None,
    })
}

/// Two lists as one; none if there was no queue for one of them.
pub(crate) fn joined<T>(all: Option<Vec<T>>, more: Option<Vec<T>>) -> Option<Vec<T>> {
    let mut all = all?;
    all.extend(more?);
    Some(all)
}
