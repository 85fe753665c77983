//! Filters and actions of subscriptions.

use std::collections::BTreeMap;

use crate::filter::Action;
use crate::filter::ActionTarget;
use crate::filter::FilterInput;
use crate::filter::FilterValue;
use crate::filter::Name;
use crate::filter::SqlFilter;
use crate::header::Properties;
use crate::limits;

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

/// The same message, and what an action has set of it.
#[derive(Default)]
struct ActionResult(BTreeMap<Name, FilterValue<'static>>);

impl FilterInput for ActionResult {
    fn property(&self, name: &Name) -> FilterValue<'_> {
        self.0.get(name).cloned().unwrap_or_else(|| Everything.property(name).into_owned())
    }

    fn new_id(&self) -> String {
        Everything.new_id()
    }
}

impl ActionTarget for ActionResult {
    fn set(&mut self, name: &Name, value: FilterValue<'static>) {
        if let FilterValue::Text(text) = &value {
            assert!(text.len() <= 2 * limits::PROPERTIES_BYTES_MAX, "a text of {} bytes", text.len());
        }
        self.0.insert(name.clone(), value);
    }
}

/// Any text is a filter or an action, or refused with its place; and what is read says the same in parentheses.
pub fn filter(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let nothing = Properties::new();
    if let Ok(action) = Action::parse(text, &nothing) {
        action.apply(&mut ActionResult::default());
    }
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
