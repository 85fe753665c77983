//! Messages that are found by what stands in their headers and properties. Nothing keeps an index of these, so it is a walk:
//! bounded in what one request looks at, and it says where to go on.

use crate::engine::MessageView;
use crate::engine::Queue;
use crate::id::SequenceNumber;
use crate::limits;
use crate::server::answer::HttpRefusal;

/// What a message has to have; a criterion that is not given does not matter.
#[derive(Debug, Default)]
pub(crate) struct MessageCriteria {
    /// A property, and its value as text.
    pub(crate) property: Option<(String, String)>,
    pub(crate) message_id: Option<String>,
    pub(crate) subject: Option<String>,
    pub(crate) correlation_id: Option<String>,
}

impl MessageCriteria {
    /// Reads a property as it is asked for: `name=value`.
    pub(crate) fn read_property(text: &str) -> Result<(String, String), HttpRefusal> {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(HttpRefusal::misuse("property", "is not like name=value")),
        }
    }

    /// Whether anything is asked for.
    pub(crate) fn is_narrow(&self) -> bool {
        let texts = [&self.message_id, &self.subject, &self.correlation_id];
        self.property.is_some() || texts.iter().any(|text| text.is_some())
    }

    fn is_met_by(&self, view: &MessageView) -> bool {
        let headers = &view.headers;
        let has = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_ref().is_none_or(|wanted| found == Some(wanted.as_str()))
        };
        let has_property = self.property.as_ref().is_none_or(|(name, value)| {
            headers.properties.get(name).is_some_and(|found| found.as_text().as_ref() == Ok(value))
        });
        has_property
            && has(&self.message_id, view.message_id.as_ref().map(|id| id.as_str()))
            && has(&self.subject, headers.subject.as_deref())
            && has(&self.correlation_id, headers.correlation_id.as_deref())
    }
}

/// Up to `limit` messages that are wanted, from a number on, and where the next search begins if there is more to look at.
pub(crate) async fn search(
    queue: &Queue,
    from: u64,
    limit: usize,
    wanted: &MessageCriteria,
) -> Result<(Vec<MessageView>, Option<u64>), HttpRefusal> {
    let (mut found, mut from, mut looks, mut bytes) = (Vec::new(), from, limits::SEARCH_LOOKS, 0);
    while looks > 0 && bytes < limits::RECEIVE_BYTES_MAX {
        let page_size = limits::SEARCH_PAGE.min(looks);
        let page = match queue.peek(SequenceNumber::new(from), page_size).await {
            Ok(page) => page,
            // Of a partition that is stopped the next request hears.
            Err(_) if !found.is_empty() => break,
            Err(error) => return Err(error.into()),
        };
        // A page may be shorter than it could be, for the bytes of its bodies, or because a partition ends.
        let is_last = page.is_empty();
        looks -= page.len();
        for view in page {
            from = view.sequence_number.get() + 1;
            bytes += view.body.len();
            if wanted.is_met_by(&view) {
                found.push(view);
            }
            if found.len() == limit {
                return Ok((found, Some(from)));
            }
        }
        if is_last {
            return Ok((found, None));
        }
    }
    Ok((found, Some(from)))
}
