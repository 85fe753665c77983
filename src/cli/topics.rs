//! `seriatim topics`.

use seriatim::api::RuleEnvelope;
use seriatim::api::TopicEnvelope;
use seriatim::remote::Remote;

use crate::cli::arguments::daemon::DaemonArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::listing::listed;
use crate::cli::out::Stdout;
use crate::cli::table::TextTable;

/// Prints every topic with its subscriptions and their rules.
pub(crate) async fn run(arguments: DaemonArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments)?;
    let out = Stdout::new(arguments.json);
    let topics = all(&remote).await?;
    for topic in &topics {
        out.json(topic)?;
    }
    match topics.is_empty() {
        true => out.say("there are no topics")?,
        false => out.say(table(&topics).to_string())?,
    }
    Ok(true)
}

/// All topics, in order of name.
pub(crate) async fn all(remote: &Remote) -> Result<Vec<TopicEnvelope>, CliFailure> {
    // There are at most so many, so that a daemon that repeats itself is not listened to for ever.
    let all = listed(seriatim::limits::TOPICS_MAX, None, async |after, limit| {
        let page = remote.topics(after, limit).await?;
        Ok((page.topics, page.after))
    });
    Ok(all.await.map_err(CliFailure::to("list the topics"))?.0)
}

/// One row for each rule.
fn table(topics: &[TopicEnvelope]) -> TextTable {
    let mut table = TextTable::new(&["topic", "subscription", "rule", "matches", "changes"]);
    for topic in topics {
        if topic.subscriptions.is_empty() {
            table.row([topic.name.clone(), String::new(), String::new(), String::new(), String::new()]);
        }
        for subscription in &topic.subscriptions {
            let names = || [topic.name.clone(), subscription.name.clone()];
            if subscription.rules.is_empty() {
                let [topic, name] = names();
                table.row([topic, name, String::new(), "nothing: it has no rule".to_owned(), String::new()]);
            }
            for rule in &subscription.rules {
                let [topic, name] = names();
                let changes = rule.action.clone().unwrap_or_default();
                table.row([topic, name, rule.name.clone().unwrap_or_default(), matches(rule), changes]);
            }
        }
    }
    table
}

/// What a rule matches, in a line.
fn matches(rule: &RuleEnvelope) -> String {
    match (&rule.filter, &rule.correlation) {
        (Some(filter), _) => filter.clone(),
        (None, Some(correlation)) => serde_json::to_string(correlation).unwrap_or_default(),
        (None, None) => "TRUE".to_owned(),
    }
}
