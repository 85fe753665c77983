//! XML that is written: elements, attributes, text. Read it is by `roxmltree`.

/// A document that is being written.
#[derive(Debug)]
pub(crate) struct Xml(String);

impl Xml {
    pub(crate) fn new() -> Xml {
        Xml("<?xml version=\"1.0\" encoding=\"utf-8\"?>".to_owned())
    }

    /// An element with others inside.
    pub(crate) fn within(&mut self, name: &str, inside: impl FnOnce(&mut Xml)) {
        self.open(name, "");
        inside(self);
        self.close(name);
    }

    /// An element with an attribute, and others inside.
    pub(crate) fn within_named(
        &mut self,
        name: &str,
        (attribute, value): (&str, &str),
        inside: impl FnOnce(&mut Xml),
    ) {
        self.open(name, &format!(" {attribute}=\"{}\"", escaped(value)));
        inside(self);
        self.close(name);
    }

    /// An element with text. Without any it is an empty element: there are clients that read a beginning and an end as
    /// something that is there.
    pub(crate) fn leaf(&mut self, name: &str, text: &str) {
        if text.is_empty() {
            return self.0.push_str(&format!("<{name} />"));
        }
        self.open(name, "");
        self.0.push_str(&escaped(text));
        self.close(name);
    }

    fn open(&mut self, name: &str, attributes: &str) {
        self.0.push_str(&format!("<{name}{attributes}>"));
    }

    fn close(&mut self, name: &str) {
        self.0.push_str(&format!("</{name}>"));
    }

    pub(crate) fn into_text(self) -> String {
        self.0
    }
}

/// Whether every character may stand in a document, be it as a reference.
pub(crate) fn can_be_written(text: &str) -> bool {
    let forbidden =
        |c: char| (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}');
    !text.chars().any(forbidden)
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // A reader would take it for the end of a line.
            '\r' => escaped.push_str("&#xD;"),
            c => escaped.push(c),
        }
    }
    escaped
}
