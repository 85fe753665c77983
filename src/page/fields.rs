//! The fields of a query or a form: names and values, some of them more than once.

use percent_encoding::percent_decode_str;

/// The fields of a query or a form. What is no UTF-8 is replaced.
#[derive(Clone, Debug, Default)]
pub(crate) struct FormFields(Vec<(String, String)>);

impl FormFields {
    /// Reads `application/x-www-form-urlencoded`.
    pub(crate) fn read(text: &str) -> FormFields {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        FormFields(pairs.collect())
    }

    /// The first value of a field that is not empty.
    pub(crate) fn one(&self, name: &str) -> Option<&str> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// As [`FormFields::one`], as an owned text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.one(name).map(str::to_owned)
    }

    /// A field that is a whole number.
    pub(crate) fn number(&self, name: &str) -> Option<u64> {
        self.one(name)?.trim().parse().ok()
    }

    /// The queue and the number of a message.
    pub(crate) fn message(&self) -> (String, u64) {
        (self.text("queue").unwrap_or_default(), self.number("number").unwrap_or_default())
    }

    /// Every value of a field.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_read_as_browsers_write_it() {
        let fields = FormFields::read("a=1&pick=x%2F1&pick=y+2&empty=&b=%C3%A9%ff&&lone");
        assert_eq!((fields.number("a"), fields.one("empty"), fields.one("lone")), (Some(1), None, None));
        assert_eq!(fields.all("pick").collect::<Vec<_>>(), ["x/1", "y 2"]);
        assert_eq!(fields.one("b"), Some("\u{e9}\u{fffd}"));
    }
}
