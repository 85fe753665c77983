//! Schedules, read from the form.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use crate::api::options::OrderWord;
use crate::clock::Timestamp;
use crate::definition::diagnostic::Mistakes;
use crate::definition::diagnostic::line_and_column;
use crate::definition::file_value::FileValue;
use crate::definition::file_value::value;
use crate::definition::form_handler::ScheduleForm;
use crate::definition::schedule::ScheduleDefinition;
use crate::definition::suggest::nearest;
use crate::id::QueueName;
use crate::id::WorkflowId;
use crate::intake::IntakeRule;
use crate::limits;
use crate::schedule::Cron;
use crate::schedule::CronError;
use crate::schedule::time_zones;

/// Reads the schedules of one file.
pub(crate) struct ScheduleReader<'a> {
    pub(crate) order: Option<OrderWord>,
    pub(crate) rule: &'a IntakeRule,
    /// How many bytes a body of the queue may have.
    pub(crate) bytes_max: usize,
    pub(crate) mistakes: &'a mut Mistakes,
}

impl ScheduleReader<'_> {
    /// The schedules, without those that are wrong.
    pub(crate) fn schedules(&mut self, forms: &[FileValue<ScheduleForm>]) -> Vec<ScheduleDefinition> {
        let mut schedules = Vec::new();
        let mut seen: BTreeMap<&str, Range<usize>> = BTreeMap::new();
        for form in forms {
            if let Some(name) = &form.value.name {
                if let Some(first) = seen.get(name.value.as_str()) {
                    let (line, _) = line_and_column(self.mistakes.text(), first.start);
                    let message = format!("there is a schedule `{}` already, on line {line}", name.value);
                    self.mistakes.add(&name.span, message);
                }
                seen.entry(&name.value).or_insert_with(|| name.span.clone());
            }
            schedules.extend(self.schedule(form));
        }
        schedules
    }

    fn schedule(&mut self, form: &FileValue<ScheduleForm>) -> Option<ScheduleDefinition> {
        let FileValue { value: schedule, span: at } = form;
        let cron = self.cron(schedule);
        let name = self.name(schedule.name.as_ref());
        let workflow_id = self.workflow_id(schedule.workflow_id.as_ref());
        let body = self.body(schedule.body.as_ref());
        if matches!(self.order, Some(OrderWord::Position | OrderWord::After)) {
            self.mistakes.add_with_help(
                at,
                "a tick has no place in a queue ordered by position or by predecessor",
                "let it tick in a queue of its own, whose handler sends the messages",
            );
            return None;
        }
        let schedule = ScheduleDefinition {
            name: name?,
            cron: cron?,
            missed: value(&schedule.missed).unwrap_or_default(),
            workflow_id: workflow_id?,
            subject: schedule.subject.as_ref().map(|subject| subject.value.clone()),
            body: body?,
        };
        self.can_be_sent(&schedule, at)?;
        Some(schedule)
    }

    fn name(&mut self, given: Option<&FileValue<String>>) -> Option<String> {
        let given = given?;
        let name = QueueName::new(&given.value).map(|name| name.to_string());
        let problem = match name {
            Ok(name) if name.len() <= limits::SCHEDULE_NAME_BYTES_MAX => return Some(name),
            Ok(_) => format!("has more than {} bytes", limits::SCHEDULE_NAME_BYTES_MAX),
            // It is made of the same letters as a queue's name.
            Err(misuse) => misuse.to_string().trim_start_matches(misuse.field()).trim().to_owned(),
        };
        self.mistakes.add(&given.span, format!("the schedule's name {problem}"));
        None
    }

    fn cron(&mut self, schedule: &ScheduleForm) -> Option<Cron> {
        let line = schedule.cron.as_ref()?;
        let Some(zone) = &schedule.time_zone else {
            return self.parsed(line, Cron::parse(&line.value, "UTC"));
        };
        match Cron::parse(&line.value, &zone.value) {
            // The line may be wrong as well.
            Err(error) if error.part.is_none() => {
                self.time_zone(zone, &error);
                self.parsed(line, Cron::parse(&line.value, "UTC"))?;
                None
            }
            parsed => self.parsed(line, parsed),
        }
    }

    fn parsed(&mut self, line: &FileValue<String>, parsed: Result<Cron, CronError>) -> Option<Cron> {
        let error = match parsed {
            Ok(cron) => return Some(cron),
            Err(error) => error,
        };
        let at = self.part_of(line, &error);
        match error.help {
            Some(help) => self.mistakes.add_with_help(&at, format!("cron: {}", error.message), help),
            None => self.mistakes.add(&at, format!("cron: {}", error.message)),
        }
        None
    }

    /// Where the wrong part of a line stands: in the quotes of the file, if it is written there as it is.
    fn part_of(&self, line: &FileValue<String>, error: &CronError) -> Range<usize> {
        let start = line.span.start + 1;
        let is_plain = self.mistakes.text().get(start..).is_some_and(|rest| rest.starts_with(&line.value));
        match &error.part {
            Some(part) if is_plain => start + part.start..start + part.end,
            _ => line.span.clone(),
        }
    }

    fn time_zone(&mut self, zone: &FileValue<String>, error: &CronError) {
        let known = time_zones();
        let help = match nearest(&zone.value, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => error.help.clone().unwrap_or_default(),
        };
        self.mistakes.add_with_help(&zone.span, error.message.clone(), help);
    }

    fn workflow_id(&mut self, given: Option<&FileValue<String>>) -> Option<Option<WorkflowId>> {
        let Some(given) = given else { return Some(None) };
        match WorkflowId::new(&given.value) {
            Ok(id) => Some(Some(id)),
            Err(misuse) => {
                self.mistakes.add(&given.span, misuse.to_string());
                None
            }
        }
    }

    fn body(&mut self, given: Option<&FileValue<toml::Value>>) -> Option<Bytes> {
        let Some(given) = given else { return Some(Bytes::new()) };
        match json(&given.value).map(|json| json.to_string()) {
            Some(json) => Some(Bytes::from(json)),
            None => {
                self.mistakes.add(&given.span, "the body holds inf or nan, for which JSON has no word");
                None
            }
        }
    }

    /// Tries what every tick will do: a message that could not be placed is a mistake now, not at two in the morning.
    fn can_be_sent(&mut self, schedule: &ScheduleDefinition, at: &Range<usize>) -> Option<()> {
        let message = self.rule.place(schedule.message(Timestamp::default()));
        let (bytes, bytes_max) = (schedule.body.len(), self.bytes_max);
        match message.and_then(|message| message.check()) {
            Ok(_) if bytes > bytes_max => {
                let problem = format!(
                    "a tick could not be sent: its body has {bytes} bytes, the queue takes {bytes_max}"
                );
                self.mistakes.add_with_help(
                    at,
                    problem,
                    "give it a smaller body, or raise limits.body_bytes_max",
                );
                None
            }
            Ok(_) => Some(()),
            Err(misuse) => {
                let help = "the queue takes its messages like this; give the schedule a workflow_id or a body that fits";
                self.mistakes.add_with_help(at, format!("a tick could not be sent: {misuse}"), help);
                None
            }
        }
    }
}

/// A TOML value as JSON; a date is text. Nothing for what JSON cannot say.
fn json(value: &toml::Value) -> Option<serde_json::Value> {
    Some(match value {
        toml::Value::String(text) => text.as_str().into(),
        toml::Value::Integer(number) => (*number).into(),
        toml::Value::Float(number) => serde_json::Number::from_f64(*number)?.into(),
        toml::Value::Boolean(truth) => (*truth).into(),
        toml::Value::Datetime(instant) => instant.to_string().into(),
        toml::Value::Array(elements) => elements.iter().map(json).collect::<Option<Vec<_>>>()?.into(),
        toml::Value::Table(members) => {
            let members = members.iter().map(|(name, value)| Some((name.clone(), json(value)?)));
            serde_json::Value::Object(members.collect::<Option<_>>()?)
        }
    })
}
