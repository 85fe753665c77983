//! A message on its way through a topic, and what actions change of its copies.

use std::collections::BTreeMap;

use crate::error::Misuse;
use crate::filter::Action;
use crate::filter::ActionTarget;
use crate::filter::FilterInput;
use crate::filter::FilterValue;
use crate::filter::Name;
use crate::filter::PropertyScope;
use crate::header::PropertyValue;
use crate::header::is_internal;
use crate::id::WorkflowId;
use crate::message::NewMessage;

/// The property by which a copy says which rule has changed it.
const RULE_NAME: &str = "RuleName";

/// Brings what an endpoint keeps of a message in line with what an action has changed.
pub(crate) type Mend = fn(&mut NewMessage, &ActionChanges);

/// What an action has changed, by names as SQL has them.
#[derive(Debug, Default)]
pub(crate) struct ActionChanges {
    /// Fields of the message.
    pub(crate) fields: BTreeMap<String, Option<String>>,
    /// Properties that are no more, also those for which there is no word here.
    pub(crate) removed: Vec<String>,
}

/// A message that is sent to a topic.
#[derive(Clone, Debug)]
pub(crate) struct TopicMessage {
    pub(crate) message: NewMessage,
    /// Fields that only an endpoint knows, by their names after `sys.` in small letters.
    pub(crate) extra: BTreeMap<&'static str, String>,
    pub(crate) mend: Option<Mend>,
}

impl From<NewMessage> for TopicMessage {
    fn from(message: NewMessage) -> TopicMessage {
        TopicMessage { message, extra: BTreeMap::new(), mend: None }
    }
}

impl TopicMessage {
    pub(crate) fn property(&self, name: &Name) -> FilterValue<'_> {
        let (message, headers) = (&self.message, &self.message.headers);
        if name.scope == PropertyScope::User {
            let known = headers.properties.get(&name.text).filter(|_| !is_internal(&name.text));
            return known.map_or(FilterValue::Null, FilterValue::from);
        }
        match name.text.as_str() {
            "contenttype" => FilterValue::of_text(headers.content_type.as_deref()),
            "correlationid" => FilterValue::of_text(headers.correlation_id.as_deref()),
            "label" | "subject" => FilterValue::of_text(headers.subject.as_deref()),
            "replyto" => FilterValue::of_text(headers.reply_to.as_deref()),
            "messageid" => FilterValue::of_text(message.message_id.as_ref().map(AsRef::as_ref)),
            "sessionid" => FilterValue::of_text(message.workflow_id.as_ref().map(AsRef::as_ref)),
            "deliverycount" => FilterValue::Integer(0),
            other => FilterValue::of_text(self.extra.get(other).map(String::as_str)),
        }
    }

    /// A copy with what an action changes of it.
    pub(crate) fn changed_by(
        &self,
        action: &Action,
        rule: &str,
        new_id: &dyn Fn() -> String,
    ) -> Result<NewMessage, Misuse> {
        let (published, changes) = (self.clone(), ActionChanges::default());
        let mut copy = Copy { published, changes, unfit: None, new_id };
        let name = Name { scope: PropertyScope::User, text: RULE_NAME.to_owned() };
        copy.set(&name, FilterValue::Text(rule.to_owned().into()));
        action.apply(&mut copy);
        let Copy { published, changes, unfit, .. } = copy;
        let mut message = published.message;
        if let Some(mend) = published.mend {
            mend(&mut message, &changes);
        }
        let too_large = |misuse: Misuse| {
            Misuse::new(misuse.field().to_owned(), format!("as rule {rule} has changed it: {misuse}"))
        };
        unfit.map_or_else(|| message.headers.check(), Err).map_err(too_large)?;
        Ok(message)
    }
}

struct Copy<'a> {
    published: TopicMessage,
    changes: ActionChanges,
    /// Why the workflow ID that was set last is none.
    unfit: Option<Misuse>,
    new_id: &'a dyn Fn() -> String,
}

impl FilterInput for Copy<'_> {
    fn property(&self, name: &Name) -> FilterValue<'_> {
        self.published.property(name)
    }

    fn new_id(&self) -> String {
        (self.new_id)()
    }
}

impl ActionTarget for Copy<'_> {
    fn set(&mut self, name: &Name, value: FilterValue<'static>) {
        if name.scope == PropertyScope::System {
            return self.set_field(&name.text, value);
        }
        let properties = &mut self.published.message.headers.properties;
        match value.to_property() {
            _ if is_internal(&name.text) => {}
            Some(value) => {
                properties.insert(name.text.clone(), value);
                self.changes.removed.retain(|removed| *removed != name.text);
            }
            None => {
                properties.remove(&name.text);
                self.changes.removed.push(name.text.clone());
            }
        }
    }
}

impl Copy<'_> {
    /// Sets a field to a text; numbers are written, and nothing clears it.
    fn set_field(&mut self, name: &str, value: FilterValue<'static>) {
        let said = value.to_property().and_then(|value| match value {
            PropertyValue::Text(text) => Some(text),
            PropertyValue::Integer(number) => Some(number.to_string()),
            PropertyValue::Float(number) => Some(number.to_string()),
            PropertyValue::Boolean(truth) => Some(truth.to_string()),
            PropertyValue::Binary(_) => None,
        });
        // An empty text is no workflow ID.
        let said = said.filter(|said| name != "sessionid" || !said.is_empty());
        let (message, extra) = (&mut self.published.message, &mut self.published.extra);
        match name {
            "contenttype" => message.headers.content_type.clone_from(&said),
            "correlationid" => message.headers.correlation_id.clone_from(&said),
            "label" | "subject" => message.headers.subject.clone_from(&said),
            "replyto" => message.headers.reply_to.clone_from(&said),
            "sessionid" => {
                let read = said.as_ref().map(WorkflowId::new).transpose();
                (message.workflow_id, self.unfit) =
                    read.map_or_else(|unfit| (None, Some(unfit)), |id| (id, None));
            }
            "to" | "replytosessionid" => {
                let field = if name == "to" { "to" } else { "replytosessionid" };
                match said.clone() {
                    Some(said) => drop(extra.insert(field, said)),
                    None => drop(extra.remove(field)),
                }
            }
            _ => {}
        }
        self.changes.fields.insert(name.to_owned(), said);
    }
}
