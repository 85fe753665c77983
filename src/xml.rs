//! XML: elements, attributes, text, as they are written; and what is asked of a document before `roxmltree` reads it.

use roxmltree::Document;

use crate::limits;

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

/// Reads a document that somebody sent. What would take long to read is refused before, with the reason.
pub(crate) fn parse(text: &str) -> Result<Document<'_>, String> {
    let text = text.trim_start_matches('\u{feff}');
    check_tags(text)?;
    Document::parse(text).map_err(|error| error.to_string())
}

/// Refuses a document with too many names in its tags: the reader compares each namespace with all around it, and each
/// attribute with all of its element. What stands in texts, comments and sections costs nothing.
fn check_tags(text: &str) -> Result<(), String> {
    let (mut attributes, mut namespaces) = (0, 0);
    let mut rest = text;
    while let Some((_, behind)) = rest.split_once('<') {
        let passed_over = [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")];
        let inside = passed_over.iter().find_map(|(begin, end)| Some((behind.strip_prefix(begin)?, end)));
        if let Some((inside, end)) = inside {
            rest = inside.split_once(end).map_or("", |(_, behind)| behind);
            continue;
        }
        let tag = Tag::read(behind).ok_or("a tag does not end")?;
        attributes += tag.attributes;
        namespaces += tag.namespaces;
        if attributes > limits::XML_ATTRIBUTES_MAX || namespaces > limits::XML_NAMESPACES_MAX {
            let (attributes, namespaces) = (limits::XML_ATTRIBUTES_MAX, limits::XML_NAMESPACES_MAX);
            return Err(format!("it has more than {attributes} attributes or {namespaces} namespaces"));
        }
        rest = tag.behind;
    }
    Ok(())
}

/// A tag, as far as it is looked at before a document is read.
struct Tag<'a> {
    attributes: usize,
    /// How many of the attributes declare a namespace.
    namespaces: usize,
    /// What comes after it.
    behind: &'a str,
}

impl Tag<'_> {
    /// Reads a tag from behind its first character to its end. One that another begins in is none.
    fn read(text: &str) -> Option<Tag<'_>> {
        let (mut attributes, mut namespaces) = (0, 0);
        let (mut quote, mut name_begin) = (None, 0);
        for (at, byte) in text.bytes().enumerate() {
            match (quote, byte) {
                (_, b'<') => return None,
                (Some(open), _) if byte == open => {
                    (quote, name_begin) = (None, at);
                }
                (Some(_), _) => {}
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => {
                    attributes += 1;
                    namespaces += usize::from(text[name_begin..at].contains("xmlns"));
                    name_begin = at;
                }
                (None, b'>') => return Some(Tag { attributes, namespaces, behind: &text[at + 1..] }),
                (None, _) => {}
            }
        }
        None
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
        let document = parse(&text).unwrap();
        let root = document.root_element();
        assert_eq!((root.attribute("b"), root.attribute("c")), (Some("1 < \"2\""), Some("&")));
        assert_eq!(root.text(), Some("x\u{fffd}<y>"));
    }

    #[test]
    fn a_document_that_would_take_long_is_refused_before_it_is_read() {
        let most = limits::XML_NAMESPACES_MAX;
        let nested = |count: usize| {
            let open: String = (0..count).map(|at| format!("<a xmlns:b{at} = \"c\">")).collect();
            format!("{open}{}", "</a>".repeat(count))
        };
        parse(&nested(most)).unwrap();
        assert!(parse(&nested(most + 1)).unwrap_err().contains("namespaces"));
        let most = limits::XML_ATTRIBUTES_MAX;
        let wide =
            |count: usize| format!("<a{}/>", (0..count).map(|at| format!(" b{at}='c>'")).collect::<String>());
        parse(&wide(most)).unwrap();
        assert!(parse(&wide(most + 1)).unwrap_err().contains("attributes"));
    }

    #[test]
    fn nothing_hides_a_tag_from_the_count() {
        let open: String =
            (0..=limits::XML_NAMESPACES_MAX).map(|at| format!("<a xmlns:b{at}='c'>")).collect();
        for before in [
            "<!--><a b='--><c>",
            "<c><![CDATA[<a b=']]>",
            "<?a <b c='?><c>",
            "<c d='<!--' e=\"'\">",
            "<c d=\"'>\">",
        ] {
            assert!(parse(&format!("{before}{open}")).is_err(), "{before}");
            assert!(check_tags(&format!("{before}{open}")).is_err(), "{before}");
        }
    }

    #[test]
    fn what_stands_outside_of_tags_is_not_counted() {
        let many = "xmlns:a='b' ".repeat(limits::XML_ATTRIBUTES_MAX + 1);
        for text in [
            many.clone(),
            format!("<!--{many}-->"),
            format!("<![CDATA[<a {many}>]]>"),
            format!("<?a {many}?>"),
        ] {
            parse(&format!("\u{feff}<a b=\"{many}\">{text}</a>")).unwrap();
        }
    }
}
