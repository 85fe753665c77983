//! The messages that storage queues are sent, as XML.

use crate::storage_queue::refusal::StorageRefusal;

/// The text of a message in the body of a request; `None` for a body without anything.
pub(crate) fn read_message(body: &[u8]) -> Result<Option<String>, StorageRefusal> {
    if body.is_empty() {
        return Ok(None);
    }
    let wrong = || StorageRefusal::bad("InvalidXmlDocument", "the body is not <QueueMessage><MessageText>..");
    let text = std::str::from_utf8(body).map_err(|_| wrong())?;
    let document = crate::xml::parse(text).map_err(|_| wrong())?;
    let root = document.root_element();
    let mut texts = root.children().filter(|child| child.has_tag_name("MessageText"));
    match (root.has_tag_name("QueueMessage"), texts.next(), texts.next()) {
        (true, Some(text), None) => {
            Ok(Some(text.children().filter(|part| part.is_text()).filter_map(|part| part.text()).collect()))
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xml::Xml;
    use crate::xml::can_be_written;

    #[test]
    fn a_text_survives_the_way_out_and_back() {
        for text in ["", "hello", "a<b>&\"c\"'", "line\r\nline\ttab", "\u{fc}\u{1f600}", "]]>", " spaces "] {
            let mut xml = Xml::new();
            xml.within("QueueMessage", |xml| xml.leaf("MessageText", text));
            assert_eq!(read_message(xml.into_text().as_bytes()).unwrap().as_deref(), Some(text), "{text:?}");
            assert!(can_be_written(text));
        }
        assert!(!can_be_written("\0") && !can_be_written("\u{ffff}"));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for wrong in [
            "x",
            "<a/>",
            "<QueueMessage/>",
            "<QueueMessage><MessageText>1</MessageText><MessageText>2</MessageText></QueueMessage>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><QueueMessage><MessageText>&b;</MessageText></QueueMessage>",
            "<QueueMessage><MessageText>",
        ] {
            assert_eq!(read_message(wrong.as_bytes()).unwrap_err().code, "InvalidXmlDocument", "{wrong}");
        }
        assert!(read_message(b"\xff").is_err());
        assert_eq!(read_message(b"").unwrap(), None);
    }

    #[test]
    fn sections_and_comments_are_read_as_text_around_them() {
        let body = "<QueueMessage><MessageText>a<![CDATA[<b>]]><!-- c -->d</MessageText></QueueMessage>";
        assert_eq!(read_message(body.as_bytes()).unwrap().as_deref(), Some("a<b>d"));
    }

    #[test]
    fn a_message_of_nested_namespaces_is_refused_unread_and_one_that_tells_of_them_is_not() {
        let most = crate::limits::XML_NAMESPACES_MAX;
        let nested: String = (0..=most).map(|at| format!("<a xmlns:b{at}=\"c\">")).collect();
        let told = nested.replace('<', "&lt;");
        let body = |inside: &str| format!("<QueueMessage><MessageText/>{inside}</QueueMessage>");
        let refused =
            read_message(body(&(nested.clone() + &"</a>".repeat(most + 1))).as_bytes()).unwrap_err();
        assert_eq!(refused.code, "InvalidXmlDocument");
        let body = format!("<QueueMessage><MessageText>{told}</MessageText></QueueMessage>");
        assert_eq!(read_message(body.as_bytes()).unwrap(), Some(nested));
    }
}
