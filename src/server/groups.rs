//! Dead letters in groups: those of one reason whose errors differ in nothing but numbers and IDs.

use std::collections::BTreeMap;

use crate::api::WireTime;
use crate::api::views::DeadLetterGroupView;
use crate::api::views::DeadLetterGroupsView;
use crate::engine::DeadLetterView;
use crate::engine::Queue;
use crate::limits;
use crate::server::answer::HttpRefusal;
use crate::server::answer::HttpResult;
use crate::server::answer::json;
use crate::server::extract::PathParams;

/// Groups that an answer has at most: a person looks at them.
const GROUPS_MAX: usize = 100;

pub(crate) async fn list(extract: PathParams) -> HttpResult {
    json(&look(&extract.queue()?).await?)
}

async fn look(queue: &Queue) -> Result<DeadLetterGroupsView, HttpRefusal> {
    let (mut groups, mut after, mut looks) = (ReasonGroups::default(), None, 0);
    while looks < limits::HTTP_LOOKS_MAX {
        let page = queue.dead_letters(after.as_ref(), limits::HTTP_PAGE).await?;
        let Some(last) = page.last() else { return Ok(groups.show()) };
        after = Some(last.clone());
        looks += page.len();
        page.iter().for_each(|dead_letter| groups.add(dead_letter));
    }
    groups.is_cut = true;
    Ok(groups.show())
}

#[derive(Default)]
struct ReasonGroups {
    known: BTreeMap<(String, String), DeadLetterGroupView>,
    is_cut: bool,
}

impl ReasonGroups {
    fn add(&mut self, dead_letter: &DeadLetterView) {
        let (reason, at) = (dead_letter.dead_letter.reason.clone(), WireTime(dead_letter.dead_letter.at));
        let key = (reason.clone(), fingerprint(&dead_letter.dead_letter.description));
        if self.known.len() >= GROUPS_MAX && !self.known.contains_key(&key) {
            self.is_cut = true;
            return;
        }
        let group = self.known.entry(key).or_insert_with(|| DeadLetterGroupView {
            reason,
            error: dead_letter.dead_letter.description.clone(),
            dead_letters: 0,
            first_at: at,
            last_at: at,
            sample: dead_letter.sequence_number.get(),
        });
        group.dead_letters += 1;
        group.first_at = group.first_at.min(at);
        group.last_at = group.last_at.max(at);
    }

    fn show(self) -> DeadLetterGroupsView {
        let mut groups: Vec<DeadLetterGroupView> = self.known.into_values().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.dead_letters));
        DeadLetterGroupsView { groups, is_cut: self.is_cut }
    }
}

/// What two errors of the same kind have in common: their first line without words in which there is a digit.
fn fingerprint(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    let is_part = |character: char| character.is_alphanumeric() || matches!(character, '-' | '_' | '.');
    let mut common = String::new();
    for word in line.split_inclusive(|character| !is_part(character)) {
        let bare = word.trim_end_matches(|character| !is_part(character));
        match bare.contains(|character: char| character.is_ascii_digit()) {
            true => {
                common.push('#');
                common.push_str(&word[bare.len()..]);
            }
            false => common.push_str(word),
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_differ_in_numbers_and_ids_are_of_one_kind() {
        let one = fingerprint("order-17: HTTP 503 from 10.0.0.7:80 (id 5f3a-9b)\nmore");
        assert_eq!(one, fingerprint("order-18: HTTP 502 from 10.0.0.8:81 (id 77aa)"));
        assert_eq!(one, "#: HTTP # from #:# (id #)");
        assert_ne!(one, fingerprint("order-17: connection refused"));
    }
}
