//! An outbox, read from the form.

use std::ops::Range;
use std::path::Path;

use crate::api::options::OrderWord;
use crate::definition::diagnostic::Mistakes;
use crate::definition::file_value::FileValue;
use crate::definition::file_value::value;
use crate::definition::form_outbox::CopiedRowsWord;
use crate::definition::form_outbox::OutboxForm;
use crate::definition::handler::SecretSource;
use crate::definition::outbox::DEFAULT_NAME;
use crate::definition::outbox::OutboxDefinition;
use crate::definition::program::find_file;
use crate::definition::read_secret::secret_source;
use crate::definition::value_spans::ValueSpans;
use crate::error::Misuse;
use crate::id::QueueName;
use crate::limits;
use crate::postgres::OutboxColumns;
use crate::postgres::TableName;
use crate::postgres::check_name;
use crate::postgres::check_url;
use crate::tls_connector::certificates;

/// Reads the outbox of one file.
pub(crate) struct OutboxReader<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) order: Option<OrderWord>,
    /// Whether the queue reads the workflow out of the message itself.
    pub(crate) has_key: bool,
    /// Whether the queue reads the place, by its order, out of the message itself.
    pub(crate) has_place: bool,
    /// Whether the queue reads the message ID out of the message itself.
    pub(crate) reads_message_id: bool,
    pub(crate) spans: &'a ValueSpans,
    pub(crate) mistakes: &'a mut Mistakes,
}

impl OutboxReader<'_> {
    /// The outbox, unless it is wrong.
    pub(crate) fn outbox(&mut self, form: &FileValue<OutboxForm>) -> Option<OutboxDefinition> {
        let FileValue { value: outbox, span: at } = form;
        let url = outbox.postgres.as_ref();
        let is_local = url.and_then(|url| self.mistakes.checked(check_url(&url.value), &url.span));
        let table = outbox.table.as_ref();
        let is_table =
            table.and_then(|table| self.mistakes.checked(table.value.parse::<TableName>(), &table.span));
        let name = self.name(outbox.name.as_ref());
        let password = self.password(outbox);
        let ca_file = match &outbox.ca_file {
            Some(file) => Some(self.ca_file(file)?),
            None => None,
        };
        let channel = match &outbox.channel {
            Some(channel) => {
                self.mistakes.checked(check_name("channel", &channel.value), &channel.span).map(drop)
            }
            None => Some(()),
        };
        let columns = self.check_columns(&outbox.columns, at);
        is_table?;
        let tls = value(&outbox.tls).unwrap_or(!is_local?);
        if let (false, Some(file)) = (tls, &outbox.ca_file) {
            let message = "the server's certificate is not looked at without `tls`";
            self.mistakes.add_with_help(&file.span, message, "write tls = true, or leave `ca_file` out");
        }
        Some(OutboxDefinition {
            name: name?,
            url: url?.value.clone(),
            table: table?.value.clone(),
            password: password?,
            tls,
            ca_file,
            columns: columns.map(|()| outbox.columns.clone())?,
            numbers_are_ids: outbox.columns.message_id.is_none() && !self.reads_message_id,
            delete_copied: value(&outbox.copied_rows) == Some(CopiedRowsWord::Delete),
            poll: outbox.poll.map_or(limits::SOURCE_POLL_DEFAULT, |span| span.0),
            channel: channel.map(|()| outbox.channel.as_ref().map(|channel| channel.value.clone()))?,
        })
    }

    fn name(&mut self, given: Option<&FileValue<String>>) -> Option<String> {
        let Some(given) = given else { return Some(DEFAULT_NAME.to_owned()) };
        // It is made of the same letters as a queue's name.
        let name = QueueName::new(&given.value).map_err(|misuse| {
            Misuse::new("name", misuse.to_string().trim_start_matches(misuse.field()).trim().to_owned())
        });
        self.mistakes.checked(name, &given.span).map(|name| name.to_string())
    }

    fn password(&mut self, outbox: &OutboxForm) -> Option<Option<SecretSource>> {
        let given = (&outbox.password_file, &outbox.password_env);
        let Some((secret, at)) = secret_source(given, "password", self.folder, self.mistakes)? else {
            return Some(None);
        };
        self.mistakes.checked(secret.read("password"), at)?;
        Some(Some(secret))
    }

    fn ca_file(&mut self, file: &FileValue<String>) -> Option<std::path::PathBuf> {
        let found = self.mistakes.found(find_file(&file.value, self.folder), &file.span)?;
        self.mistakes.checked(certificates(&found), &file.span).map(|_| found)
    }

    fn check_columns(&mut self, columns: &OutboxColumns, at: &Range<usize>) -> Option<()> {
        for (what, column) in columns.named() {
            let column_at = self.spans.get(&format!("source.columns.{what}")).unwrap_or(at);
            self.mistakes.checked(check_name(what, column), column_at)?;
        }
        for (order, name) in [(OrderWord::Position, "position"), (OrderWord::After, "after")] {
            if let Some(column_at) = self.spans.get(&format!("source.columns.{name}"))
                && self.order.is_some_and(|of_queue| of_queue != order)
            {
                let message = format!("`{name}` is read only in a queue with order = \"{name}\"");
                self.mistakes.add(column_at, message);
            }
        }
        if columns.workflow_id.is_none() && !self.has_key && self.order != Some(OrderWord::None) {
            let message = "nothing says to which workflow a row belongs";
            let help = "name the column: columns = { workflow_id = \"order_id\" }, or give the queue a `key`";
            self.mistakes.add_with_help(at, message, help);
        }
        let (name, column) = match self.order {
            Some(OrderWord::Position) => ("position", &columns.position),
            Some(OrderWord::After) => ("after", &columns.after),
            _ => return Some(()),
        };
        if column.is_none() && !self.has_place {
            let message = format!("nothing says which place a row has, and order = \"{name}\" needs it");
            let help = format!("name the column in `columns`, as `{name}`, or give the queue `{name}`");
            self.mistakes.add_with_help(at, message, help);
        }
        Some(())
    }
}
