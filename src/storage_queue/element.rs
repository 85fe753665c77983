//! Documents as requests send them, read strictly: what is not known is refused, so that nothing is dropped unseen.

use roxmltree::Node;

use crate::storage_queue::refusal::StorageRefusal;

/// An element of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Element<'a>(Node<'a, 'a>);

/// Reads a document whose root has this name.
pub(crate) fn read<T>(
    body: &[u8],
    root: &str,
    inside: impl FnOnce(Element<'_>) -> Result<T, StorageRefusal>,
) -> Result<T, StorageRefusal> {
    let wrong = || StorageRefusal::bad("InvalidXmlDocument", format!("the body is not a document <{root}>"));
    let text = std::str::from_utf8(body).map_err(|_| wrong())?;
    let document = crate::xml::parse(text).map_err(|_| wrong())?;
    match document.root_element() {
        element if element.has_tag_name(root) => inside(Element(element)),
        _ => Err(wrong()),
    }
}

impl<'a> Element<'a> {
    fn name(self) -> &'a str {
        self.0.tag_name().name()
    }

    /// The elements in it, all of which must have this name.
    pub(crate) fn all(self, name: &str) -> Result<Vec<Element<'a>>, StorageRefusal> {
        let inside: Vec<Element<'a>> = self.0.children().filter(Node::is_element).map(Element).collect();
        match inside.iter().find(|element| element.name() != name) {
            Some(other) => Err(other.unknown()),
            None => Ok(inside),
        }
    }

    /// The elements of these names in it, in this order; it may have no others, and each only once.
    pub(crate) fn parts<const N: usize>(
        self,
        names: [&str; N],
    ) -> Result<[Option<Element<'a>>; N], StorageRefusal> {
        let mut parts = [None; N];
        for element in self.0.children().filter(Node::is_element).map(Element) {
            let part = names.iter().position(|name| *name == element.name());
            match part.map(|at| &mut parts[at]) {
                Some(part) if part.is_none() => *part = Some(element),
                _ => return Err(element.unknown()),
            }
        }
        Ok(parts)
    }

    /// The same, where all of them must be there.
    pub(crate) fn all_parts<const N: usize>(
        self,
        names: [&str; N],
    ) -> Result<[Element<'a>; N], StorageRefusal> {
        let parts = self.parts(names)?;
        if let Some(at) = parts.iter().position(Option::is_none) {
            return Err(self.lacks(names[at]));
        }
        Ok(parts.map(|part| part.unwrap_or(self)))
    }

    pub(crate) fn text(self) -> String {
        self.0
            .children()
            .filter(Node::is_text)
            .filter_map(|part| part.text())
            .collect::<String>()
            .trim()
            .to_owned()
    }

    /// Its text as something else.
    pub(crate) fn value<T>(self, read: impl FnOnce(&str) -> Option<T>) -> Result<T, StorageRefusal> {
        read(&self.text()).ok_or_else(|| {
            StorageRefusal::bad(
                "InvalidXmlNodeValue",
                format!("what <{}> says is not possible there", self.name()),
            )
        })
    }

    /// `true` or `false`.
    pub(crate) fn flag(self) -> Result<bool, StorageRefusal> {
        self.value(|text| text.to_ascii_lowercase().parse().ok())
    }

    /// The refusal for something that has to be in it and is not.
    pub(crate) fn lacks(self, name: &str) -> StorageRefusal {
        StorageRefusal::bad("MissingRequiredXmlNode", format!("<{}> lacks <{name}>", self.name()))
    }

    fn unknown(self) -> StorageRefusal {
        let message = format!("<{}> is not possible there, or not twice", self.name());
        StorageRefusal::bad("UnsupportedXmlNode", message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code<T>(read: Result<T, StorageRefusal>) -> &'static str {
        read.err().map_or("", |refused| refused.code)
    }

    #[test]
    fn a_document_is_read_by_the_names_of_its_parts() {
        let body = b"\xef\xbb\xbf<a><c> true </c><b>x<!-- y -->z</b></a>";
        let [b, c, d] =
            read(body, "a", |a| Ok(a.parts(["b", "c", "d"])?.map(|part| part.map(Element::text)))).unwrap();
        assert_eq!((b.as_deref(), c.as_deref(), d), (Some("xz"), Some("true"), None));
        assert!(read(body, "a", |a| a.parts(["b", "c"])?[1].unwrap().flag()).unwrap());
    }

    #[test]
    fn what_is_not_known_missing_or_wrong_is_refused_by_name() {
        let parts = |body: &str| code(read(body.as_bytes(), "a", |a| a.all_parts(["b", "c"]).map(|_| ())));
        assert_eq!(parts("<a><b/><c/></a>"), "");
        assert_eq!(parts("<a><b/></a>"), "MissingRequiredXmlNode");
        for unknown in ["<a><b/><c/><d/></a>", "<a><b/><c/><b/></a>"] {
            assert_eq!(parts(unknown), "UnsupportedXmlNode", "{unknown}");
        }
        for wrong in ["", "<b/>", "<a>", "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "x"] {
            assert_eq!(parts(wrong), "InvalidXmlDocument", "{wrong}");
        }
        assert_eq!(code(read(b"\xff", "a", |_| Ok(()))), "InvalidXmlDocument");
        assert_eq!(code(read(b"<a>yes</a>", "a", |a| a.flag())), "InvalidXmlNodeValue");
        assert_eq!(code(read(b"<a><b/><c/></a>", "a", |a| a.all("b").map(|_| ()))), "UnsupportedXmlNode");
    }

    #[test]
    fn a_document_of_nested_namespaces_is_refused_unread() {
        let nested = |count: usize| {
            let open: String = (0..count).map(|at| format!("<a xmlns:b{at}=\"c\">")).collect();
            code(read(format!("{open}{}", "</a>".repeat(count)).as_bytes(), "a", |_| Ok(())))
        };
        let most = crate::limits::XML_NAMESPACES_MAX;
        assert_eq!((nested(most), nested(most + 1)), ("", "InvalidXmlDocument"));
    }
}
