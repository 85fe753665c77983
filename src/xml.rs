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

    /// An element with attributes, and others inside.
    pub(crate) fn within_named(
        &mut self,
        name: &str,
        attributes: &[(&str, &str)],
        inside: impl FnOnce(&mut Xml),
    ) {
        let attribute = |(name, value): &(&str, &str)| format!(" {name}=\"{}\"", escaped(value));
        self.open(name, &attributes.iter().map(attribute).collect::<String>());
        inside(self);
        self.close(name);
    }

    /// Text between elements.
    pub(crate) fn text(&mut self, text: &str) {
        self.0.push_str(&escaped(text));
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
    !text.chars().any(is_forbidden)
}

fn is_forbidden(c: char) -> bool {
    (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}')
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
            c if is_forbidden(c) => escaped.push(char::REPLACEMENT_CHARACTER),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read_again() {
        let mut xml = Xml::new();
        xml.within_named("a", &[("b", "1 < \"2\""), ("c", "&")], |xml| {
            xml.text("x\u{1}<y>");
            xml.leaf("d", "");
        });
        let text = xml.into_text();
        let document = roxmltree::Document::parse(&text).unwrap();
        let root = document.root_element();
        assert_eq!((root.attribute("b"), root.attribute("c")), (Some("1 < \"2\""), Some("&")));
        assert_eq!(root.text(), Some("x\u{fffd}<y>"));
    }
}
