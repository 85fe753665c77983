//! One definition file, read: every mistake it has, or what it says.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use toml::de::DeTable;

use crate::definition::definition::Definition;
use crate::definition::diagnostic::Diagnostic;
use crate::definition::diagnostic::Mistakes;
use crate::definition::file_value::span;
use crate::definition::form::QueueForm;
use crate::definition::grammar::prune;
use crate::definition::outbox::DEFAULT_NAME;
use crate::definition::read_handlers::HandlerReader;
use crate::definition::read_options::options;
use crate::definition::read_options::order_word;
use crate::definition::read_options::retry_delays;
use crate::definition::read_outbox::OutboxReader;
use crate::definition::read_schedules::ScheduleReader;
use crate::definition::read_sources::redactions;
use crate::definition::read_sources::sources;
use crate::definition::read_subscription::SubscriptionDefinition;
use crate::definition::read_subscription::subscription;
use crate::definition::schema::SCHEMA;
use crate::definition::value_spans::ValueSpans;
use crate::id::QueueName;
use crate::intake::FieldSource;
use crate::intake::HeaderName;
use crate::intake::IntakeRule;
use crate::limits;
use crate::own_queues::kept_in;

/// What was read of one file.
pub(crate) struct FileReading {
    /// The file's text.
    pub(crate) text: Arc<str>,
    /// The queue's name, if it has one that can be read; even when other things are wrong, but not where nothing can be read: the
    /// file may say another name than its own.
    pub(crate) name: Option<QueueName>,
    /// Where the name stands; `None` when it is the file's.
    pub(crate) name_span: Option<Range<usize>>,
    /// The topic whose subscription the queue is, if it is one, and where it is named.
    pub(crate) topic: Option<(QueueName, Range<usize>)>,
    /// Where handlers stand that forward, each with the number of the handler.
    pub(crate) forward_spans: Vec<Option<Range<usize>>>,
    /// What the file says, or every mistake it has.
    pub(crate) result: Result<Definition, Vec<Diagnostic>>,
}

/// Reads the text of a file.
pub(crate) fn read(file: &Path, text: &str) -> FileReading {
    let mut mistakes = Mistakes::of(file, text);
    let mut reading = FileReading {
        text: mistakes.text().clone(),
        name: None,
        name_span: None,
        topic: None,
        forward_spans: Vec::new(),
        result: Err(Vec::new()),
    };
    let Some(form) = form(text, &mut mistakes) else {
        reading.result = Err(mistakes.into_sorted());
        return reading;
    };
    reading.name_span = span(&form.name);
    let subscription = subscription_of(file, &form, &mut mistakes);
    let topic_span = form.subscription.as_ref().and_then(|given| span(&given.value.topic));
    reading.topic = subscription.as_ref().map(|known| known.topic.clone()).zip(topic_span);
    reading.name = match &subscription {
        _ if form.spans.is_wrong("name") => None,
        Some(known) => QueueName::of_subscription(&known.topic, &known.name).ok(),
        None if form.subscription.is_some() => None,
        None => name(file, &form, &mut mistakes),
    };
    if let Some(name) = &reading.name
        && let Some(what) = kept_in(name.as_str())
    {
        let message = format!("the daemon keeps {what} in the queue `{name}`");
        match &form.name {
            Some(given) => mistakes.add(&given.span, message),
            None => mistakes.add_of_file(message, "rename the file, or write another `name` into it"),
        }
    }
    reading.forward_spans = form.handler.iter().map(|handler| span(&handler.value.forward)).collect();
    let definition = definition(file, &form, (reading.name.clone(), subscription), &mut mistakes);
    if let Some(name) = &reading.name {
        check_names_below(name, &form, &mut mistakes);
    }
    reading.result = match definition {
        Some(definition) if mistakes.is_empty() => Ok(definition),
        _ => Err(mistakes.into_sorted()),
    };
    reading
}

/// The form of a file, without what is wrong in it.
fn form(text: &str, mistakes: &mut Mistakes) -> Option<QueueForm> {
    let (mut table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        for error in errors {
            let at = error.span().unwrap_or(0..0);
            mistakes.add(&at, format!("not TOML: {}", error.message()));
        }
        return None;
    }
    let spans = ValueSpans::of(table.get_ref());
    prune(&SCHEMA, table.get_mut(), mistakes);
    let spans = spans.without_what_is_wrong(table.get_ref());
    match QueueForm::deserialize(toml::de::Deserializer::from(table)) {
        Ok(form) => Some(QueueForm { spans, ..form }),
        Err(error) => {
            let at = error.span().unwrap_or(0..0);
            mistakes.add(&at, error.message().to_owned());
            None
        }
    }
}

fn name_of_file(file: &Path) -> Option<QueueName> {
    QueueName::new(file.file_stem()?.to_str()?).ok()
}

fn name(file: &Path, form: &QueueForm, mistakes: &mut Mistakes) -> Option<QueueName> {
    let Some(given) = &form.name else {
        let name = name_of_file(file);
        if name.is_none() {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            let message = format!("the file's name, `{stem}`, cannot be the name of a queue");
            mistakes.add_of_file(message, "rename the file, or write a `name` into it");
        }
        return name;
    };
    match QueueName::new(&given.value) {
        Ok(name) => Some(name),
        Err(misuse) => {
            mistakes.add(&given.span, misuse.to_string());
            None
        }
    }
}

fn subscription_of(file: &Path, form: &QueueForm, mistakes: &mut Mistakes) -> Option<SubscriptionDefinition> {
    let given = form.subscription.as_ref()?;
    if let Some(source) = &form.source {
        let message = "a subscription gets what is sent to its topic, and nothing else";
        mistakes.add_with_help(&source.span, message, "copy the table into a queue of its own");
    }
    let read = [span(&form.key), span(&form.position), span(&form.after), span(&form.message_id)];
    for at in read.into_iter().flatten() {
        mistakes.add_with_help(
            &at,
            "what comes through a topic has the workflow, place and ID that its sender has given it",
            "leave this out, and let the senders say it",
        );
    }
    match &form.name {
        Some(name) => subscription(given, (&name.value, Some(&name.span)), mistakes),
        None => subscription(given, (file.file_stem()?.to_str()?, None), mistakes),
    }
}

fn definition(
    file: &Path,
    form: &QueueForm,
    (name, subscription): (Option<QueueName>, Option<SubscriptionDefinition>),
    mistakes: &mut Mistakes,
) -> Option<Definition> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let options = options(form, mistakes);
    let sources = sources(form, mistakes);
    let redact = redactions(&form.redact, mistakes);
    let delivery = &form.delivery;
    let defer_for = delivery.defer_for.map(|span| span.0);
    let rule = Arc::new(IntakeRule::new(sources, retry_delays(form)).defer_for(defer_for));
    // One that is wrong is no bound for the attempts.
    let renew_for_default = match form.spans.is_wrong("delivery.renew_for") {
        true => limits::DURATION_MAX,
        false => limits::RENEW_FOR_DEFAULT,
    };
    let renew_for = delivery.renew_for.map_or(renew_for_default, |span| span.0);
    let mut reader = HandlerReader { folder, renew_for, mistakes };
    let handlers = reader.handlers(&form.handler);
    let notify = form.notify.as_ref().and_then(|notify| reader.notify(notify));
    let bytes_max = options.body_bytes_max;
    let mut reader = ScheduleReader { order: order_word(form), rule: &rule, bytes_max, mistakes };
    let schedules = reader.schedules(&form.schedule);
    let (order, has_key) = (order_word(form), form.key.is_some());
    let has_place = form.position.is_some() || form.after.is_some();
    let reads_message_id = reads_message_id(&rule);
    let mut reader =
        OutboxReader { folder, order, has_key, has_place, reads_message_id, spans: &form.spans, mistakes };
    let outbox = form.source.as_ref().and_then(|source| reader.outbox(source));
    Some(Definition {
        name: name?,
        file: file.to_owned(),
        subscription,
        options,
        rule,
        concurrency: delivery.concurrency.unwrap_or(limits::CONCURRENCY_DEFAULT),
        renew_for,
        handlers,
        schedules,
        outbox,
        redact,
        notify,
    })
}

/// Whether a message ID has to be found in the message; as a header, it is what the sender says.
fn reads_message_id(rule: &IntakeRule) -> bool {
    let stated = FieldSource::Header(HeaderName::MessageId);
    rule.sources().message_id.as_ref().is_some_and(|source| *source != stated)
}

/// Schedules and the source are workflows whose IDs are made of the queue's name and theirs.
fn check_names_below(queue: &QueueName, form: &QueueForm, mistakes: &mut Mistakes) {
    let schedules =
        form.schedule.iter().filter_map(|schedule| Some(("schedule", schedule.value.name.as_ref()?)));
    let named = schedules.map(|(what, name)| (what, name.value.as_str(), &name.span));
    let source = form.source.as_ref().map(|source| match &source.value.name {
        Some(name) => ("source", name.value.as_str(), &name.span),
        None => ("source", DEFAULT_NAME, &source.span),
    });
    for (what, name, at) in named.chain(source) {
        let (length, most) = (queue.as_str().len() + "/".len() + name.len(), limits::WORKFLOW_ID_CHARS_MAX);
        // One that is wrong by itself is told so.
        if length > most && !mistakes.are_within(at) {
            let message = format!(
                "the name of the queue and that of the {what} have {} bytes together, at most {} are allowed",
                length - 1,
                most - 1
            );
            mistakes.add_with_help(at, message, "write a shorter name for one of them");
        }
    }
}
