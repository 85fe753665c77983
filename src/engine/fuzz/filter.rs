//! Filters and actions of subscriptions.

use crate::filter::Action;
use crate::filter::FilterInput;
use crate::filter::FilterValue;
use crate::filter::Name;
use crate::filter::SqlFilter;
use crate::header::Properties;

/// A message of which everything is known, and always the same.
struct Everything;

impl FilterInput for Everything {
    fn property(&self, name: &Name) -> FilterValue<'_> {
        match name.text.len() % 4 {
            0 => FilterValue::Integer(7),
            1 => FilterValue::Text(name.text.as_str().to_owned().into()),
            2 => FilterValue::Boolean(true),
            _ => FilterValue::Null,
        }
    }

    fn new_id(&self) -> String {
        String::new()
    }
}

/// Any text is a filter or an action, or refused with its place; and what is read says the same in parentheses.
pub fn filter(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let nothing = Properties::new();
    let _ = Action::parse(text, &nothing);
    match SqlFilter::parse(text, &nothing) {
        Ok(filter) => {
            let matches = filter.matches(&Everything);
            if let Ok(same) = SqlFilter::parse(&format!("({text})"), &nothing) {
                assert_eq!(same.matches(&Everything), matches, "{text}");
            }
            let opposite = SqlFilter::parse(&format!("NOT ({text})"), &nothing);
            assert!(!(matches && opposite.is_ok_and(|opposite| opposite.matches(&Everything))), "{text}");
        }
        Err(mistake) => assert!(mistake.to_string().contains("at character"), "{text}"),
    }
}
