//! Where workflow, place and ID of a message are read, from the form.

use std::ops::Range;

use crate::api::options::OrderWord;
use crate::definition::diagnostic::Mistakes;
use crate::definition::file_value::FileValue;
use crate::definition::file_value::TextOr;
use crate::definition::file_value::span;
use crate::definition::form::PositionForm;
use crate::definition::form::QueueForm;
use crate::definition::form::SourceForm;
use crate::definition::read_options::order_word;
use crate::intake::FieldSource;
use crate::intake::HeaderName;
use crate::intake::Pointer;
use crate::intake::Sources;

/// The sources, without those that are wrong.
pub(crate) fn sources(form: &QueueForm, mistakes: &mut Mistakes) -> Sources {
    let order = order_word(form);
    let fits = |word| order.is_none_or(|order| order == word);
    misplaced(&span(&form.position), "position", fits(OrderWord::Position), mistakes);
    misplaced(&span(&form.after), "after", fits(OrderWord::After), mistakes);
    if order == Some(OrderWord::None)
        && let Some(span) = span(&form.key)
    {
        mistakes.add_with_help(
            &span,
            "in a queue without order there are no workflows that a key could tell apart",
            "leave `key` out, or give the queue an order",
        );
    }
    let position = form.position.as_ref().and_then(|given| match &given.value {
        TextOr::Text(text) => pointer(text, &given.span, mistakes),
        TextOr::Table(table) => position_source(table, &given.span, mistakes),
    });
    Sources {
        key: source(&form.key, mistakes),
        position,
        predecessor: source(&form.after, mistakes),
        message_id: source(&form.message_id, mistakes),
    }
}

/// What is hidden of a message, without what is wrong.
pub(crate) fn redactions(
    given: &[FileValue<TextOr<SourceForm>>],
    mistakes: &mut Mistakes,
) -> Vec<FieldSource> {
    given.iter().filter_map(|given| of_text_or_table(given, mistakes)).collect()
}

fn misplaced(span: &Option<Range<usize>>, name: &str, fits: bool, mistakes: &mut Mistakes) {
    if let (Some(span), false) = (span, fits) {
        let help = format!("write order = \"{name}\", or leave `{name}` out");
        mistakes.add_with_help(
            span,
            format!("`{name}` is read only in a queue with order = \"{name}\""),
            help,
        );
    }
}

fn source(given: &Option<FileValue<TextOr<SourceForm>>>, mistakes: &mut Mistakes) -> Option<FieldSource> {
    of_text_or_table(given.as_ref()?, mistakes)
}

fn of_text_or_table(given: &FileValue<TextOr<SourceForm>>, mistakes: &mut Mistakes) -> Option<FieldSource> {
    match &given.value {
        TextOr::Text(text) => pointer(text, &given.span, mistakes),
        TextOr::Table(table) => one_of_three(table, &given.span, mistakes),
    }
}

fn position_source(
    table: &PositionForm,
    span: &Range<usize>,
    mistakes: &mut Mistakes,
) -> Option<FieldSource> {
    let PositionForm { pointer, header, property, first } = table.clone();
    if first.is_some() && pointer.is_none() && header.is_none() && property.is_none() {
        return None;
    }
    one_of_three(&SourceForm { pointer, header, property }, span, mistakes)
}

fn one_of_three(table: &SourceForm, span: &Range<usize>, mistakes: &mut Mistakes) -> Option<FieldSource> {
    match (&table.pointer, &table.header, &table.property) {
        (Some(given), None, None) => pointer(&given.value, &given.span, mistakes),
        (None, Some(given), None) => Some(FieldSource::Header(given.value)),
        (None, None, Some(given)) if given.value.is_empty() => {
            mistakes.add(&given.span, "a property has a name");
            None
        }
        (None, None, Some(given)) => Some(FieldSource::Property(given.value.clone())),
        // What it named may have been taken out as a mistake.
        (None, None, None) if mistakes.are_within(span) => None,
        _ => {
            mistakes.add(span, "name one of pointer, header and property");
            None
        }
    }
}

fn pointer(text: &str, span: &Range<usize>, mistakes: &mut Mistakes) -> Option<FieldSource> {
    match Pointer::new(text) {
        Ok(pointer) => Some(FieldSource::Pointer(pointer)),
        Err(misuse) => {
            let help = match HeaderName::ALL.iter().find(|header| header.as_str() == text) {
                Some(header) => format!("write {{ header = \"{}\" }} for the header", header.as_str()),
                // What is wrong says already how it is written.
                None if text.starts_with('/') => {
                    mistakes.add(span, misuse.to_string());
                    return None;
                }
                None if text.is_empty() => "write a pointer to one value, like /order_id".to_owned(),
                None => format!(
                    "write /{} for the member of the body",
                    text.trim_start_matches(['$', '.']).replace('.', "/")
                ),
            };
            mistakes.add_with_help(span, misuse.to_string(), help);
            None
        }
    }
}
