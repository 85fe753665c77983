//! The rule of a queue: where a message's workflow, place and ID are read.

use std::borrow::Cow;
use std::time::Duration;

use crate::error::Misuse;
use crate::header::PropertyValue;
use crate::id::Position;
use crate::intake::body::PointerTree;
use crate::intake::body::PointerValue;
use crate::intake::source::FieldSource;
use crate::limits;
use crate::message::Message;

/// Where in a message its workflow, its place and its ID are read. What has no source, the sender says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// The workflow ID: text, or a number as it is written.
    pub key: Option<FieldSource>,
    /// The position: a whole number, or text of one.
    pub position: Option<FieldSource>,
    /// The message ID of the predecessor; `null` or empty text for the first of a workflow.
    pub predecessor: Option<FieldSource>,
    /// The message ID: text, or a number as it is written.
    pub message_id: Option<FieldSource>,
}

/// The rule of a queue: where a message's workflow, place and ID are read, and after which delays it is tried again.
///
/// Nothing is ever guessed. What a source names has to be there, unless the sender says the same thing explicitly; when
/// both say it, they have to agree.
#[derive(Clone, Debug, Default)]
pub struct IntakeRule {
    sources: Sources,
    retry_delays: Vec<Duration>,
    defer_for: Option<Duration>,
    wanted: PointerTree,
}

impl PartialEq for IntakeRule {
    fn eq(&self, other: &IntakeRule) -> bool {
        self.sources == other.sources
            && self.retry_delays == other.retry_delays
            && self.defer_for == other.defer_for
    }
}

impl Eq for IntakeRule {}

/// Numbers of the answers that are looked for in a body.
const MESSAGE_ID: usize = 0;
const KEY: usize = 1;
const POSITION: usize = 2;
const PREDECESSOR: usize = 3;

impl IntakeRule {
    /// A rule; `retry_delays` are exact, the last one repeats, none leaves the delay to the queue's backoff.
    pub fn new(sources: Sources, retry_delays: Vec<Duration>) -> IntakeRule {
        let mut wanted = PointerTree::default();
        let each = [
            (&sources.message_id, MESSAGE_ID),
            (&sources.key, KEY),
            (&sources.position, POSITION),
            (&sources.predecessor, PREDECESSOR),
        ];
        for (source, answer) in each {
            if let Some(FieldSource::Pointer(pointer)) = source {
                wanted.add(pointer, answer);
            }
        }
        IntakeRule { sources, retry_delays, defer_for: None, wanted }
    }

    /// Says after how long a message comes back by itself that was deferred without saying until when.
    #[must_use]
    pub fn defer_for(mut self, defer_for: Option<Duration>) -> IntakeRule {
        self.defer_for = defer_for;
        self
    }

    /// Where things are read.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    /// Exact delays between attempts, the last of which repeats; none leaves them to the queue's backoff.
    pub fn retry_delays(&self) -> &[Duration] {
        &self.retry_delays
    }

    /// The exact delay after the attempt with this delivery count has failed (1 is the first); `None` leaves it to the
    /// queue's backoff.
    pub fn retry_delay(&self, delivery_count: u32) -> Option<Duration> {
        let attempt = usize::try_from(delivery_count.saturating_sub(1)).unwrap_or(usize::MAX);
        self.retry_delays.get(attempt).or(self.retry_delays.last()).copied()
    }

    /// After how long a deferred message comes back by itself; `None` leaves it until it is fetched by number.
    pub fn defer_delay(&self) -> Option<Duration> {
        self.defer_for
    }

    /// Fills in the message's workflow, place and ID.
    ///
    /// # Errors
    /// [`Misuse`] when a value is missing, is of the wrong kind, or differs from what the sender says; it names the
    /// source.
    pub fn place(&self, mut message: Message) -> Result<Message, Misuse> {
        let body = message.body.clone();
        let mut found = [PointerValue::Nothing; 4];
        let mut trouble = None;
        if !self.wanted.is_empty() {
            trouble = self.wanted.find(&body, &mut found).err();
        }
        let look = BodyLook { found, trouble };
        // The message ID first: it is a header, of which the others may be read.
        if let Some(source) = &self.sources.message_id {
            let value = look.value("message ID", source, MESSAGE_ID, &message);
            let id = value.id(message.message_id.is_some())?.map(Cow::into_owned);
            agree("message ID", source, &mut message.message_id, id)?;
        }
        if let Some(source) = &self.sources.key {
            let value = look.value("workflow ID", source, KEY, &message);
            let id = value.id(message.workflow_id.is_some())?.map(Cow::into_owned);
            agree("workflow ID", source, &mut message.workflow_id, id)?;
        }
        if let Some(source) = &self.sources.position {
            let value = look.value("position", source, POSITION, &message);
            let position = value.position(message.position.is_some())?;
            agree("position", source, &mut message.position, position)?;
        }
        if let Some(source) = &self.sources.predecessor {
            let value = look.value("predecessor", source, PREDECESSOR, &message);
            let after = value.predecessor(message.after.is_some())?;
            agree_on_predecessor(source, &mut message.after, after)?;
        }
        Ok(message)
    }
}

/// Takes what was read, or checks that it is what the sender says.
fn agree<T: PartialEq + std::fmt::Display>(
    field: &'static str,
    source: &FieldSource,
    stated: &mut Option<T>,
    read: Option<T>,
) -> Result<(), Misuse> {
    match (&*stated, read) {
        (Some(stated), Some(read)) if *stated != read => {
            Err(Misuse::new(field, format!("is given as {stated}, but {source} says {read}")))
        }
        (None, Some(read)) => {
            *stated = Some(read);
            Ok(())
        }
        _ => Ok(()),
    }
}

fn agree_on_predecessor(
    source: &FieldSource,
    stated: &mut Option<Option<String>>,
    read: Option<Option<String>>,
) -> Result<(), Misuse> {
    let shown = |after: Option<Option<String>>| {
        after.map(|id| id.unwrap_or_else(|| "none, the first of its workflow".to_owned()))
    };
    agree("predecessor", source, &mut shown(stated.clone()), shown(read.clone()))?;
    *stated = stated.take().or(read);
    Ok(())
}

/// What was found in a body.
struct BodyLook<'body> {
    found: [PointerValue<'body>; 4],
    /// Why the body could not be read.
    trouble: Option<serde_json::Error>,
}

impl BodyLook<'_> {
    /// What a source says, in one of the kinds a value can have.
    fn value<'look>(
        &'look self,
        field: &'static str,
        source: &'look FieldSource,
        answer: usize,
        message: &'look Message,
    ) -> SourceValue<'look> {
        let content = match source {
            FieldSource::Pointer(_) => match (&self.trouble, self.found[answer]) {
                (Some(error), _) => BodyContent::NotJson(error),
                (None, PointerValue::Nothing) => BodyContent::Missing,
                (None, PointerValue::Value(value)) => BodyContent::of_json(value.get()),
                (None, PointerValue::Twice) => BodyContent::Wrong("is there twice"),
            },
            FieldSource::Header(header) => header.of(message).map_or(BodyContent::Missing, text),
            FieldSource::Property(name) => match message.headers.properties.get(name) {
                None => BodyContent::Missing,
                Some(PropertyValue::Text(value)) => text(value),
                Some(PropertyValue::Integer(value)) => BodyContent::Number(value.to_string().into()),
                Some(PropertyValue::Float(_)) => BodyContent::Wrong("is a floating-point number"),
                Some(PropertyValue::Boolean(_)) => BodyContent::Wrong("is a boolean"),
                Some(PropertyValue::Binary(_)) => BodyContent::Wrong("is binary"),
            },
        };
        SourceValue { field, source, content }
    }
}

fn text(text: &str) -> BodyContent<'_> {
    BodyContent::Text(text.into())
}

enum BodyContent<'look> {
    Missing,
    NotJson(&'look serde_json::Error),
    Null,
    Text(Cow<'look, str>),
    Number(Cow<'look, str>),
    Wrong(&'static str),
}

impl BodyContent<'_> {
    fn of_json(json: &str) -> BodyContent<'_> {
        let quoted = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        match (quoted, json.bytes().next()) {
            (Some(plain), _) if !plain.contains('\\') => text(plain),
            (Some(_), _) => match serde_json::from_str(json) {
                Ok(unescaped) => BodyContent::Text(Cow::Owned(unescaped)),
                Err(_) => BodyContent::Wrong("is text with a broken escape"),
            },
            (None, Some(b'n')) => BodyContent::Null,
            (None, Some(b't' | b'f')) => BodyContent::Wrong("is a boolean"),
            (None, Some(b'{')) => BodyContent::Wrong("is an object"),
            (None, Some(b'[')) => BodyContent::Wrong("is an array"),
            (None, _) => BodyContent::Number(json.into()),
        }
    }
}

/// What a source says of a field.
struct SourceValue<'look> {
    field: &'static str,
    source: &'look FieldSource,
    content: BodyContent<'look>,
}

impl<'look> SourceValue<'look> {
    /// An ID: text, or a number as it is written. Nothing when it is missing and the sender says it.
    fn id(self, is_given: bool) -> Result<Option<Cow<'look, str>>, Misuse> {
        match self.content {
            BodyContent::Text(ref text) if text.is_empty() => Err(self.wrong("is empty text")),
            BodyContent::Text(text) | BodyContent::Number(text) => Ok(Some(text)),
            _ => self.unless_given(is_given),
        }
    }

    fn position(self, is_given: bool) -> Result<Option<u64>, Misuse> {
        let (BodyContent::Text(text) | BodyContent::Number(text)) = &self.content else {
            return self.unless_given(is_given);
        };
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.wrong(&format!("is {text:.40?}, no whole number above zero")));
        }
        let position = text.parse().ok().and_then(|number| Position::new(number).ok());
        match position {
            Some(position) => Ok(Some(position.get())),
            None => Err(self.wrong(&format!("is {text:.40}, not from 1 to {}", limits::NUMBER_END - 1))),
        }
    }

    /// The predecessor's ID, or that there is none.
    fn predecessor(self, is_given: bool) -> Result<Option<Option<String>>, Misuse> {
        match self.content {
            BodyContent::Null => Ok(Some(None)),
            BodyContent::Text(text) | BodyContent::Number(text) => {
                Ok(Some(Some(text.into_owned()).filter(|id| !id.is_empty())))
            }
            _ => self.unless_given(is_given),
        }
    }

    /// Nothing to read is no mistake when the sender says it.
    fn unless_given<T>(&self, is_given: bool) -> Result<Option<T>, Misuse> {
        match &self.content {
            BodyContent::Missing | BodyContent::Null | BodyContent::NotJson(_) if is_given => Ok(None),
            BodyContent::Missing => Err(self.wrong("is missing")),
            BodyContent::Null => Err(self.wrong("is null")),
            BodyContent::NotJson(error) => {
                Err(self.wrong(&format!("cannot be read: the body is not JSON ({error})")))
            }
            BodyContent::Wrong(problem) => Err(self.wrong(problem)),
            BodyContent::Text(_) | BodyContent::Number(_) => Err(self.wrong("is of the wrong kind")),
        }
    }

    fn wrong(&self, problem: &str) -> Misuse {
        Misuse::new(self.field, format!("is read from {}, which {problem}", self.source))
    }
}
