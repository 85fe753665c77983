//! The part of a list that one screen shows, of lists that the API gives as a whole.

use crate::limits;
use crate::page::fields::FormFields;
use crate::remote::RequestPath;

/// The part of a list that one screen shows.
pub(crate) struct ScreenPart<'a, T> {
    pub(crate) rows: &'a [T],
    /// Where the next part is, if there is more.
    pub(crate) next: Option<String>,
}

impl<'a, T> ScreenPart<'a, T> {
    /// The part that the fields of a screen ask for: from the row with this number on.
    pub(crate) fn of(all: &'a [T], screen: RequestPath, fields: &FormFields) -> ScreenPart<'a, T> {
        let asked = fields.number("from").and_then(|from| usize::try_from(from).ok()).unwrap_or(0);
        let from = asked.min(all.len());
        let (rows, rest) = all[from..].split_at(limits::SCREEN_ROWS.min(all.len() - from));
        let next = (!rest.is_empty()).then(|| screen.query("from", Some(from + rows.len())));
        ScreenPart { rows, next: next.map(|route| route.as_str().to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_list_have_every_row_once_and_the_last_says_that_it_is_the_last() {
        let all: Vec<usize> = (0..2 * limits::SCREEN_ROWS + 1).collect();
        let (mut seen, mut query) = (Vec::new(), String::new());
        loop {
            let part = ScreenPart::of(&all, RequestPath::new("schedules"), &FormFields::read(&query));
            assert!(part.rows.len() <= limits::SCREEN_ROWS);
            seen.extend_from_slice(part.rows);
            let Some(next) = part.next else { break };
            query = next.strip_prefix("schedules?").unwrap().to_owned();
        }
        assert_eq!(seen, all);
    }

    #[test]
    fn a_part_behind_the_end_of_a_list_is_empty() {
        let fields = FormFields::read("from=18446744073709551615");
        let part = ScreenPart::of(&[1, 2, 3], RequestPath::new("schedules"), &fields);
        assert!(part.rows.is_empty() && part.next.is_none());
    }
}
