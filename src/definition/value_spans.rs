//! Where in its file each value stands.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::DeTable;
use toml::de::DeValue;

/// The spans of the values of a file by their path, such as `retry.backoff.first`; what is in lists is left out.
#[derive(Debug, Default)]
pub(crate) struct ValueSpans {
    right: BTreeMap<String, Range<usize>>,
    wrong: BTreeSet<String>,
}

impl ValueSpans {
    /// Where the values stand.
    pub(crate) fn of(table: &DeTable<'_>) -> ValueSpans {
        let mut spans = ValueSpans::default();
        spans.add(table, "");
        spans
    }

    fn add(&mut self, table: &DeTable<'_>, above: &str) {
        for (key, value) in table {
            let path = format!("{above}{}", key.get_ref());
            if let DeValue::Table(inner) = value.get_ref() {
                self.add(inner, &format!("{path}."));
            }
            self.right.insert(path, value.span());
        }
    }

    /// The spans of what is left of the file, once what is wrong has been taken out.
    pub(crate) fn without_what_is_wrong(self, left: &DeTable<'_>) -> ValueSpans {
        let ValueSpans { right, .. } = ValueSpans::of(left);
        let wrong = self.right.into_keys().filter(|path| !right.contains_key(path)).collect();
        ValueSpans { right, wrong }
    }

    /// Where the value stands, if the file has it.
    pub(crate) fn get(&self, path: &str) -> Option<&Range<usize>> {
        self.right.get(path)
    }

    /// Whether the file had a value there that was wrong, and is taken out.
    pub(crate) fn is_wrong(&self, path: &str) -> bool {
        self.wrong.contains(path)
    }
}
