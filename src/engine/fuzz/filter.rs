//! Filters and actions of subscriptions.

use crate::filter::Action;
use crate::filter::Known;
use crate::filter::Name;
use crate::filter::SqlFilter;
use crate::filter::Value;
use crate::header::Properties;

/// A message of which everything is known, and always the same.
struct Everything;

impl Known for Everything {
    fn property(&self, name: &Name) -> Value<'_> {
        match name.text.len() % 4 {
            0 => Value::Integer(7),
            1 => Value::Text(name.text.as_str().to_owned().into()),
            2 => Value::Boolean(true),
            _ => Value::Null,
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
