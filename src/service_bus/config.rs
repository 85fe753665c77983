//! The queues of an emulator's `Config.json`: names and properties are those of Service Bus.

use std::ops::Range;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Deserialize;
use thiserror::Error;

use crate::definition::Diagnostic;
use crate::error::Misuse;
use crate::id::QueueName;
use crate::limits;
use crate::queue::QueueOptions;
use crate::service_bus::config_properties::PropertiesForm;
use crate::service_bus::config_topics::ConfiguredTopic;
use crate::service_bus::config_topics::TopicForm;
use crate::service_bus::description::Description;
use crate::service_bus::plain_json::plain_json;
use crate::service_bus::slashed::queue_name;

/// A queue that a file declares.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ConfiguredQueue {
    pub(crate) name: QueueName,
    pub(crate) options: QueueOptions,
    pub(crate) description: Description,
}

/// What a file declares.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Configuration {
    pub(crate) queues: Vec<ConfiguredQueue>,
    pub(crate) topics: Vec<ConfiguredTopic>,
}

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub(crate) enum ConfigurationError {
    /// It cannot be read.
    #[error("cannot read {0}: {1}")]
    Read(PathBuf, #[source] std::io::Error),
    /// It is not what the emulator reads.
    #[error("cannot read {0}: {1}")]
    Form(PathBuf, #[source] serde_json::Error),
    /// Queues cannot be as it says.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<String>>().join("; "))]
    Mistakes(Vec<Diagnostic>),
}

impl Configuration {
    /// Reads a file.
    pub(crate) fn read(path: &Path) -> Result<Configuration, ConfigurationError> {
        let failed = |error| ConfigurationError::Read(path.to_owned(), error);
        let length = std::fs::metadata(path).map_err(failed)?.len();
        if length > limits::DEFINITION_BYTES_MAX {
            return Err(failed(std::io::Error::other(format!("it has {length} bytes"))));
        }
        Configuration::parse(path, &std::fs::read(path).map_err(failed)?)
    }

    fn parse(path: &Path, text: &[u8]) -> Result<Configuration, ConfigurationError> {
        let form: ConfigForm = serde_json::from_slice(&plain_json(text))
            .map_err(|error| ConfigurationError::Form(path.to_owned(), error))?;
        let (mut read, mut mistakes) = (Configuration::default(), Vec::new());
        let text: Arc<str> = String::from_utf8_lossy(text).into();
        for namespace in form.user_config.namespaces {
            for queue in namespace.queues {
                let span = place_of(&text, &queue.name);
                let about = format!("queue {:?}", queue.name);
                match queue.configured() {
                    Ok(queue) => read.queues.push(queue),
                    Err(misuse) => mistakes.push(mistake(path, &text, span, &about, &misuse)),
                }
            }
            for topic in namespace.topics {
                let (span, about) = (place_of(&text, &topic.name), format!("topic {:?}", topic.name));
                match topic.configured() {
                    Ok(topic) => read.topics.push(topic),
                    Err(misuse) => mistakes.push(mistake(path, &text, span, &about, &misuse)),
                }
            }
        }
        if mistakes.is_empty() { Ok(read) } else { Err(ConfigurationError::Mistakes(mistakes)) }
    }
}

fn mistake(path: &Path, text: &Arc<str>, span: Range<usize>, about: &str, misuse: &Misuse) -> Diagnostic {
    let message = format!("{about} cannot be made: {misuse}");
    let help = "change it here and in the programs that use it".to_owned();
    Diagnostic::at(path, text, span, message, Some(help))
}

/// Where a file names a queue.
fn place_of(text: &str, name: &str) -> Range<usize> {
    let quoted = serde_json::Value::from(name).to_string();
    text.find(&quoted).map_or(0..0, |at| at..at + quoted.len())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ConfigForm {
    user_config: UserForm,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct UserForm {
    #[serde(default)]
    namespaces: Vec<NamespaceForm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct NamespaceForm {
    #[serde(default)]
    queues: Vec<ConfigQueueForm>,
    #[serde(default)]
    topics: Vec<TopicForm>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ConfigQueueForm {
    name: String,
    #[serde(default)]
    properties: PropertiesForm,
}

impl ConfigQueueForm {
    fn configured(self) -> Result<ConfiguredQueue, Misuse> {
        let properties = &self.properties;
        properties.check()?;
        let options = properties.options();
        options.check()?;
        Ok(ConfiguredQueue {
            name: QueueName::new(queue_name(&self.name))?,
            options,
            description: properties.description(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::queue::ExhaustedPolicy;
    use crate::queue::ExpiryPolicy;
    use crate::queue::Order;

    const EXAMPLE: &str = r#"{"UserConfig": {"Namespaces": [{
        "Name": "sbemulatorns",
        "Queues": [
            {"Name": "queue.1", "Properties": {
                "DeadLetteringOnMessageExpiration": false, "DefaultMessageTimeToLive": "PT1H",
                "DuplicateDetectionHistoryTimeWindow": "PT20S", "ForwardDeadLetteredMessagesTo": "",
                "ForwardTo": "", "LockDuration": "PT1M", "MaxDeliveryCount": 3,
                "RequiresDuplicateDetection": true, "RequiresSession": true}},
            {"Name": "plain", "Properties": {"ForwardTo": "other"}}],
        "Topics": [{"Name": "topic.1", "Subscriptions": []}]}],
        "Logging": {"Type": "File"}}}"#;

    fn parse(text: &str) -> Result<Configuration, ConfigurationError> {
        Configuration::parse(Path::new("Config.json"), text.as_bytes())
    }

    #[test]
    fn the_emulators_properties_become_options() {
        let read = parse(EXAMPLE).unwrap();
        let [first, plain] = &read.queues[..] else { panic!("{read:?}") };
        assert!(first.description.requires_session && !plain.description.requires_session);
        let options = &first.options;
        assert_eq!(
            (options.order, options.exhausted, options.expired),
            (Order::Arrival, Some(ExhaustedPolicy::Skip), ExpiryPolicy::Drop)
        );
        assert_eq!((options.lock, options.delivery_count_max), (Duration::from_secs(60), 3));
        assert_eq!(options.duplicate_window, Some(Duration::from_secs(20)));
        assert_eq!(options.time_to_live, Some(Duration::from_secs(3_600)));
        assert_eq!((plain.options.order, plain.options.delivery_count_max), (Order::None, 10));
    }

    #[test]
    fn a_file_has_comments_and_commas_after_the_last() {
        let text = "\u{feff}{\"UserConfig\": {\"Namespaces\": [{\"Queues\": [ // those of the shop\n  {\"Name\": \"a//b\",},\n],}]}}";
        let Err(ConfigurationError::Mistakes(mistakes)) = parse(text) else { panic!("{:?}", parse(text)) };
        assert_eq!((mistakes[0].line, mistakes[0].column), (Some(2), Some(12)));
        assert_eq!(parse(&text.replace("a//b", "ab")).unwrap().queues[0].name.as_str(), "ab");
    }

    #[test]
    fn where_a_queue_forwards_to_is_read() {
        let read = parse(EXAMPLE).unwrap();
        assert_eq!(read.queues[1].description.forward_to.as_deref(), Some("other"));
        assert_eq!(read.queues[1].description.forward_dead_letters_to, None);
        let both = r#"{"UserConfig": {"Namespaces": [{"Queues": [
            {"Name": "q", "Properties": {"ForwardTo": "other", "RequiresSession": true}}]}]}}"#;
        assert!(parse(both).unwrap_err().to_string().contains("ForwardTo"));
    }

    #[test]
    fn queues_that_cannot_be_are_shown_where_the_file_names_them() {
        let text = "{\"UserConfig\": {\"Namespaces\": [{\"Queues\": [\n  {\"Name\": \"a//b\"}, {\"Name\": \"a/b\"},\n  \
                    {\"Name\": \"slow\", \"Properties\": {\"LockDuration\": \"PT0.1S\"}}]}]}}";
        let Err(ConfigurationError::Mistakes(mistakes)) = parse(text) else { panic!("{:?}", parse(text)) };
        let places: Vec<_> = mistakes.iter().map(|mistake| (mistake.line, mistake.column)).collect();
        assert_eq!(places, [(Some(2), Some(12)), (Some(3), Some(12))]);
        let shown = mistakes[0].render(false);
        assert!(shown.contains("a//b") && shown.contains("'/'") && shown.contains("help"), "{shown}");
        assert!(parse("{}").is_err());
    }
}
