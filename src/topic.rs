//! Topics: the rules of their subscriptions, each a filter and perhaps an action.

use serde::Deserialize;
use serde::Serialize;

use crate::error::Misuse;
use crate::filter::Action;
use crate::filter::SqlFilter;
use crate::filter::with_values;
use crate::header::Properties;
use crate::header::PropertyValue;
use crate::id::RuleName;
use crate::limits;

/// The name of the rule that a subscription has from the start.
pub const DEFAULT_RULE: &str = "$Default";

/// A rule of a subscription: which messages it gets, and what is changed of its copies. A subscription gets a message when any
/// of its rules matches: one copy for all rules without an action, and one for each rule with one.
///
/// ```
/// use seriatim::topic::{Filter, Rule};
///
/// let rule = Rule::new("large", Filter::sql("amount > 100 AND sys.Subject = 'order'")).action("SET size = 'large'");
/// assert!(rule.check().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rule {
    name: String,
    filter: Filter,
    action: Option<String>,
}

/// Which messages a rule matches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Filter {
    /// Every message.
    #[default]
    True,
    /// None.
    False,
    /// Messages with exactly these values.
    Correlation(Correlation),
    /// Messages of which a condition in SQL is true.
    Sql {
        /// The condition; at most 4 KiB.
        expression: String,
        /// What `@name` in it means.
        parameters: Properties,
    },
}

/// Values that a message has to have, all of them, compared byte for byte. It is the quickest filter: thousands cost
/// about as much as one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Correlation {
    /// The correlation ID.
    pub correlation_id: Option<String>,
    /// The message ID.
    pub message_id: Option<String>,
    /// Whom it is for, as an AMQP sender says it.
    pub to: Option<String>,
    /// Where an answer is expected.
    pub reply_to: Option<String>,
    /// The subject.
    pub subject: Option<String>,
    /// The workflow ID, which is the session ID of Service Bus.
    pub workflow_id: Option<String>,
    /// The workflow an answer belongs to, as an AMQP sender says it.
    pub reply_to_workflow_id: Option<String>,
    /// MIME type of the body.
    pub content_type: Option<String>,
    /// The sender's own properties.
    pub properties: Properties,
}

impl Filter {
    /// A condition in SQL, without parameters.
    pub fn sql(expression: impl Into<String>) -> Filter {
        Filter::Sql { expression: expression.into(), parameters: Properties::new() }
    }
}

impl Correlation {
    /// The system fields it compares, by the names they have after `sys.` in SQL.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let fields = [
            ("correlationid", &self.correlation_id),
            ("messageid", &self.message_id),
            ("to", &self.to),
            ("replyto", &self.reply_to),
            ("subject", &self.subject),
            ("sessionid", &self.workflow_id),
            ("replytosessionid", &self.reply_to_workflow_id),
            ("contenttype", &self.content_type),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)))
    }

    /// Also asks for a property.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<PropertyValue>) -> Correlation {
        self.properties.insert(name.into(), value.into());
        self
    }

    /// Also asks for a subject.
    #[must_use]
    pub fn subject(mut self, subject: impl Into<String>) -> Correlation {
        self.subject = Some(subject.into());
        self
    }

    /// Also asks for a correlation ID.
    #[must_use]
    pub fn correlation_id(mut self, id: impl Into<String>) -> Correlation {
        self.correlation_id = Some(id.into());
        self
    }

    /// Also asks for a workflow ID.
    #[must_use]
    pub fn workflow(mut self, id: impl Into<String>) -> Correlation {
        self.workflow_id = Some(id.into());
        self
    }
}

impl Rule {
    /// A rule without an action.
    pub fn new(name: impl Into<String>, filter: Filter) -> Rule {
        Rule { name: name.into(), filter, action: None }
    }

    /// The rule of a subscription that says none: every message.
    pub fn everything() -> Rule {
        Rule::new(DEFAULT_RULE, Filter::True)
    }

    /// Lets it change its copies: `SET name = value` and `REMOVE name`, with `;` between them. The copy gets a property
    /// `RuleName`.
    #[must_use]
    pub fn action(mut self, action: impl Into<String>) -> Rule {
        self.action = Some(action.into());
        self
    }

    /// Lets it change its copies as [`Rule::action`] does, with values in place of `@name`.
    ///
    /// # Errors
    /// [`Misuse`] when there is no value of a name, or the text has what is no word.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only administration clients ask so"))]
    pub(crate) fn action_with(self, action: &str, values: &Properties) -> Result<Rule, Misuse> {
        let written = with_values(action, values);
        let written = written.map_err(|mistake| self.misuse("action", &mistake.to_string()))?;
        Ok(self.action(written))
    }

    /// The same rule under another name.
    #[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only administration clients ask so"))]
    pub(crate) fn named(mut self, name: &str) -> Rule {
        name.clone_into(&mut self.name);
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which messages it matches.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// What it changes of its copies.
    pub fn changes(&self) -> Option<&str> {
        self.action.as_deref()
    }

    /// Checks it as a subscription does.
    ///
    /// # Errors
    /// [`Misuse`] with what is wrong with its name, filter or action, and where.
    pub fn check(&self) -> Result<(), Misuse> {
        RuleName::new(&self.name)?;
        match &self.filter {
            Filter::True | Filter::False => {}
            Filter::Correlation(correlation) => {
                let count = correlation.fields().count() + correlation.properties.len();
                if count == 0 || count > limits::CORRELATION_CONDITIONS_MAX {
                    let max = limits::CORRELATION_CONDITIONS_MAX;
                    let problem =
                        format!("of rule {} compares {count} values; 1 to {max} are allowed", self.name);
                    return Err(Misuse::new("correlation filter", problem));
                }
            }
            Filter::Sql { expression, parameters } => {
                let read = SqlFilter::parse(expression, parameters);
                read.map_err(|mistake| self.misuse("filter", &mistake.to_string()))?;
            }
        }
        if let Some(action) = &self.action {
            let read = Action::parse(action, &Properties::new());
            read.map_err(|mistake| self.misuse("action", &mistake.to_string()))?;
        }
        Ok(())
    }

    fn misuse(&self, field: &'static str, mistake: &str) -> Misuse {
        Misuse::new(field, format!("of rule {}: {mistake}", self.name))
    }

    /// About how many bytes it takes.
    pub(crate) fn len(&self) -> usize {
        let of_properties = |properties: &Properties| -> usize {
            let value = |value: &PropertyValue| match value {
                PropertyValue::Text(text) => text.len(),
                PropertyValue::Binary(bytes) => bytes.len(),
                _ => 8,
            };
            properties.iter().map(|(name, given)| name.len() + value(given)).sum()
        };
        let filter = match &self.filter {
            Filter::True | Filter::False => 1,
            Filter::Correlation(values) => {
                of_properties(&values.properties)
                    + values.fields().map(|(_, value)| value.len()).sum::<usize>()
            }
            Filter::Sql { expression, parameters } => expression.len() + of_properties(parameters),
        };
        self.name.len() + filter + self.action.as_ref().map_or(0, String::len)
    }
}
