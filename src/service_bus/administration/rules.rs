//! Rules of a subscription: added, changed, shown, removed.

use axum::response::Response;
use http::StatusCode;

use crate::clock::Timestamp;
use crate::engine::Topic;
use crate::service_bus::administration::atom::AtomEntry;
use crate::service_bus::administration::document;
use crate::service_bus::administration::entities::AdminCall;
use crate::service_bus::administration::entities::AdminSubscription;
use crate::service_bus::administration::entities::named;
use crate::service_bus::administration::refusal::AdminRefusal;
use crate::service_bus::administration::refusal::AdminResult;
use crate::service_bus::administration::rule_xml;
use crate::service_bus::changeable::check_rule_name;
use crate::service_bus::description::RuleSettings;
use crate::service_bus::slashed::subscription_path;
use crate::topic::Rule;

/// The element that describes a rule.
pub(crate) const ELEMENT: &str = "RuleDescription";

impl AdminSubscription {
    /// Its rules have no instant of their own: they are shown with that of the subscription.
    pub(crate) fn created_at(&self) -> Timestamp {
        self.queue.created_at
    }

    /// Where its rules are listed.
    pub(crate) fn rules_path(&self) -> String {
        format!("{}/Rules", subscription_path(&self.topic, &self.name))
    }

    pub(crate) fn rule_entry<'r>(&self, rule: &'r Rule) -> AtomEntry<'r> {
        AtomEntry {
            title: rule.name().into(),
            path: format!("{}/{}", self.rules_path(), rule.name()),
            published: self.created_at(),
            updated: self.created_at(),
            element: ELEMENT,
        }
    }

    fn answer_with_rule(&self, call: &AdminCall<'_>, rule: &Rule, status: StatusCode) -> Response {
        let created_at = self.created_at();
        let description = call.shared.descriptions.of(&self.queue.name, (&self.queue).into());
        let settings = description.rules.get(rule.name());
        self.rule_entry(rule)
            .answer(status, call.caller, |xml| rule_xml::write(xml, (rule, settings), created_at))
    }

    fn topic_of(&self, call: &AdminCall<'_>) -> Result<Topic, AdminRefusal> {
        Ok(call.access.acting(&call.shared.client)?.topic(&self.topic)?)
    }

    pub(crate) async fn rules(&self, call: &AdminCall<'_>) -> Result<Vec<Rule>, AdminRefusal> {
        Ok(self.topic_of(call)?.rules(&self.name).await?)
    }

    async fn rule(&self, call: &AdminCall<'_>, name: &str) -> Result<Rule, AdminRefusal> {
        let found = self.rule_like(call, name).await?;
        found.ok_or_else(|| AdminRefusal::not_found("rule", name))
    }

    /// The rule of a name; if there is none, one whose name is alike but for case.
    async fn rule_like(&self, call: &AdminCall<'_>, name: &str) -> Result<Option<Rule>, AdminRefusal> {
        let rules = self.rules(call).await?;
        Ok(named(&rules, name, Rule::name).cloned())
    }

    pub(crate) async fn show_rule(&self, call: &AdminCall<'_>, name: &str) -> AdminResult {
        Ok(self.answer_with_rule(call, &self.rule(call, name).await?, StatusCode::OK))
    }

    /// Adds a rule, or puts it in place of the one of its name.
    pub(crate) async fn put_rule(&self, call: &AdminCall<'_>, name: &str, text: &str) -> AdminResult {
        call.shared.check_undefined(&self.queue.name)?;
        let (rule, settings) = document::read(text, ELEMENT, rule_xml::read)?;
        if settings != RuleSettings::default() {
            call.check_whole(&self.queue)?;
        }
        let rule = rule.named(name);
        if !call.is_change {
            check_rule_name(name)?;
            if let Some(known) = self.rule_like(call, name).await? {
                return Err(AdminRefusal::exists("rule", known.name()));
            }
            self.topic_of(call)?.add_rule(&self.name, rule.clone()).await?;
            self.describe_rule(call, &rule, settings).await?;
            return Ok(self.answer_with_rule(call, &rule, StatusCode::CREATED));
        }
        let known = self.rule(call, name).await?;
        let rule = rule.named(known.name());
        self.topic_of(call)?.replace_rule(&self.name, rule.clone()).await?;
        self.describe_rule(call, &rule, settings).await?;
        Ok(self.answer_with_rule(call, &rule, StatusCode::OK))
    }

    async fn describe_rule(
        &self,
        call: &AdminCall<'_>,
        rule: &Rule,
        settings: RuleSettings,
    ) -> Result<(), AdminRefusal> {
        let (queue, rules) = ((&self.queue.name, (&self.queue).into()), self.rules(call).await?);
        Ok(call.shared.descriptions.describe_rule(queue, (&rules, rule.name()), settings).await?)
    }

    pub(crate) async fn remove_rule(&self, call: &AdminCall<'_>, name: &str) -> Result<(), AdminRefusal> {
        call.shared.check_undefined(&self.queue.name)?;
        let known = self.rule(call, name).await?;
        Ok(self.topic_of(call)?.remove_rule(&self.name, known.name()).await?)
    }
}
