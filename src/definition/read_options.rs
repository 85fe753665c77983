//! Options of a queue, read from the form.

use std::ops::Range;
use std::time::Duration;

use crate::api::WireDuration;
use crate::api::WireRate;
use crate::api::options::OptionsEnvelope;
use crate::api::options::OrderWord;
use crate::api::options::PositionFields;
use crate::api::options::read_rate;
use crate::definition::diagnostic::Mistakes;
use crate::definition::file_value::FileValue;
use crate::definition::file_value::TextOr;
use crate::definition::file_value::value;
use crate::definition::form::PositionForm;
use crate::definition::form::QueueForm;
use crate::queue::ExhaustedPolicy;
use crate::queue::QueueOptions;
use crate::rate::Rate;

/// The options, or the defaults when something is wrong.
pub(crate) fn options(form: &QueueForm, mistakes: &mut Mistakes) -> QueueOptions {
    check_order(form, mistakes);
    check_retry(form, mistakes);
    let delivery = form.delivery.options;
    rate(delivery.rate, delivery.burst, form.spans.get("delivery.burst"), mistakes);
    let order = order_word(form).unwrap_or(OrderWord::Arrival);
    let given = OptionsEnvelope {
        order: Some(order),
        position: first(form).filter(|_| order == OrderWord::Position),
        delivery,
        retry: form.retry.options,
        gap: form.gap.unwrap_or_default(),
        expiry: form.expiry.unwrap_or_default(),
        duplicates: form.duplicates.unwrap_or_default(),
        limits: form.limits.unwrap_or_default(),
        idle: form.idle.unwrap_or_default(),
        history: form.history,
    };
    match given.read().and_then(|options| options.check().map(|()| options)) {
        Ok(options) => options,
        Err(misuse) => {
            // Everything has been checked where it stands; should a limit of the queue be forgotten there, it is found here.
            if mistakes.is_empty() {
                mistakes.add_of_file(misuse.to_string(), "the queue could not be created like this");
            }
            QueueOptions::default()
        }
    }
}

/// The order, as its word says. Nothing when its word is wrong: then nobody can say what does not go with it.
pub(crate) fn order_word(form: &QueueForm) -> Option<OrderWord> {
    if form.spans.is_wrong("order") { None } else { Some(form.order.unwrap_or(OrderWord::Arrival)) }
}

fn first(form: &QueueForm) -> Option<PositionFields> {
    match &form.position {
        Some(FileValue { value: TextOr::Table(PositionForm { first, .. }), .. }) => {
            value(first).map(|first| PositionFields { first })
        }
        _ => None,
    }
}

/// A rate with its burst.
pub(crate) fn rate(
    rate: Option<WireRate>,
    burst: Option<u32>,
    burst_at: Option<&Range<usize>>,
    mistakes: &mut Mistakes,
) -> Option<Rate> {
    read_rate(rate, burst).unwrap_or_else(|_| {
        mistakes.add(burst_at.unwrap_or(&(0..0)), "`burst` goes with a `rate`");
        None
    })
}

/// The exact delays.
pub(crate) fn retry_delays(form: &QueueForm) -> Vec<Duration> {
    form.retry.delays.iter().flatten().map(|delay| delay.0).collect()
}

/// What has no effect in the queue's order.
fn check_order(form: &QueueForm, mistakes: &mut Mistakes) {
    let has_places = !matches!(order_word(form), Some(OrderWord::None | OrderWord::Arrival));
    if let (Some(gap), false) = (form.spans.get("gap"), has_places) {
        mistakes.add_with_help(
            gap,
            "in this order no message can be missing",
            "leave [gap] out, or write order = \"position\" or \"after\"",
        );
    }
    if let (Some(late), false) = (form.spans.get("duplicates.late"), has_places) {
        mistakes.add_with_help(
            late,
            "in this order no message can be late",
            "leave `late` out, or write order = \"position\" or \"after\"",
        );
    }
}

fn check_retry(form: &QueueForm, mistakes: &mut Mistakes) {
    let then = form.retry.options.then.filter(|then| *then != ExhaustedPolicy::Skip);
    if let (Some(OrderWord::None), Some(_), Some(at)) = (order_word(form), then, form.spans.get("retry.then"))
    {
        mistakes.add_with_help(
            at,
            "a queue without order has no workflow that could stand still",
            "write then = \"skip\", or give the queue an order",
        );
    }
    let Some(at) = form.spans.get("retry.backoff") else { return };
    if form.spans.get("retry.delays").is_some() {
        mistakes.add(at, "`backoff` and `delays` both say when a message is tried again: leave one out");
    }
    let backoff = form.retry.options.backoff.unwrap_or_default().read();
    if backoff.first > backoff.max {
        let (first, max) = (WireDuration(backoff.first), WireDuration(backoff.max));
        mistakes.add(at, format!("the first delay, {first}, is longer than the longest, {max}"));
    }
}
