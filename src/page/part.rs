//! The part of a list that one screen shows, of lists that the API gives as a whole.

use crate::limits;
use crate::page::fields::FormFields;
use crate::remote::RequestPath;

/// The part of a list that one screen shows.
pub(crate) struct ScreenPart<'a, T> {
    pub(crate) rows: &'a [T],
    /// How many rows the whole list has.
    pub(crate) all: usize,
    /// Where the next part is, if there is more.
    pub(crate) next: Option<String>,
}

impl<'a, T> ScreenPart<'a, T> {
    /// The part that the fields of a screen ask for, of a list that is brought in order of `name`: what is behind the row of this name.
    /// What comes or goes before it meanwhile hides no other.
    pub(crate) fn of(
        all: &'a mut [T],
        name: impl Fn(&T) -> String,
        screen: RequestPath,
        fields: &FormFields,
    ) -> ScreenPart<'a, T> {
        all.sort_by_cached_key(&name);
        let from = fields.one("after").map_or(0, |after| all.partition_point(|row| *name(row) <= *after));
        let (rows, rest) = all[from..].split_at(limits::SCREEN_ROWS.min(all.len() - from));
        let last = rows.last().filter(|_| !rest.is_empty()).map(name);
        let next = last.map(|last| screen.query("after", Some(last)).as_str().to_owned());
        ScreenPart { rows, all: all.len(), next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every row of these that is shown when one screen after the other is looked at, with something done between.
    fn seen(mut all: Vec<usize>, between: impl Fn(&mut Vec<usize>)) -> Vec<usize> {
        let (mut seen, mut query) = (Vec::new(), String::new());
        loop {
            let name = |row: &usize| format!("{row:04}");
            let part =
                ScreenPart::of(&mut all, name, RequestPath::new("schedules"), &FormFields::read(&query));
            assert!(part.rows.len() <= limits::SCREEN_ROWS);
            seen.extend_from_slice(part.rows);
            let Some(next) = part.next else { return seen };
            query = next.strip_prefix("schedules?").unwrap().to_owned();
            between(&mut all);
        }
    }

    #[test]
    fn the_parts_of_a_list_have_every_row_once_and_the_last_says_that_it_is_the_last() {
        let all: Vec<usize> = (0..2 * limits::SCREEN_ROWS + 1).collect();
        assert_eq!(seen(all.clone(), |_| ()), all);
    }

    #[test]
    fn what_goes_between_two_parts_hides_no_other() {
        let all: Vec<usize> = (0..2 * limits::SCREEN_ROWS).collect();
        let of_first_part = |left: &mut Vec<usize>| left.retain(|row| *row != limits::SCREEN_ROWS - 1);
        assert_eq!(seen(all.clone(), of_first_part), all);
    }

    #[test]
    fn a_part_behind_the_end_of_a_list_is_empty() {
        let (mut all, fields) = (["a", "b"], FormFields::read("after=zzz"));
        let part = ScreenPart::of(&mut all, |row| (*row).to_owned(), RequestPath::new("x"), &fields);
        assert!(part.rows.is_empty() && part.next.is_none());
    }
}
