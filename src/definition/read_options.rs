//! Options of a queue, read from the form.

use std::time::Duration;

use crate::api::WireDuration;
use crate::api::options::OrderWord;
use crate::definition::diagnostic::Mistakes;
use crate::definition::file_value::DurationText;
use crate::definition::file_value::FileValue;
use crate::definition::file_value::TextOr;
use crate::definition::file_value::span;
use crate::definition::file_value::value;
use crate::definition::form::BackoffForm;
use crate::definition::form::PositionForm;
use crate::definition::form::QueueForm;
use crate::definition::form::RetryForm;
use crate::id::Position;
use crate::limits;
use crate::queue::Backoff;
use crate::queue::ExhaustedPolicy;
use crate::queue::GapPolicy;
use crate::queue::Order;
use crate::queue::QueueOptions;
use crate::rate::Rate;

const SHORTEST: Duration = Duration::from_millis(1);

/// The options, with the defaults in the place of what is wrong.
pub(crate) fn options(form: &QueueForm, mistakes: &mut Mistakes) -> QueueOptions {
    let mut options = QueueOptions { order: order(form), ..QueueOptions::default() };
    delivery(form, &mut options, mistakes);
    retry(form, &mut options, mistakes);
    gap(form, &mut options, mistakes);
    expiry(form, &mut options, mistakes);
    idle(form, &mut options, mistakes);
    options.history = duration(&form.history, "history", mistakes);
    if let Some(limits) = &form.limits {
        set(&mut options.body_bytes_max, value(&limits.body_bytes_max));
        set(&mut options.messages_max, value(&limits.messages_max));
        set(&mut options.early_max, value(&limits.early_max));
        set(&mut options.dead_letters_max, value(&limits.dead_letters_max));
        set(&mut options.early_bytes_max, value(&limits.early_bytes_max));
        set(&mut options.history_max, value(&limits.history_max));
        set(&mut options.cursors_max, value(&limits.cursors_max));
    }
    // Everything has been checked where it stands; should a limit of the queue be forgotten there, it is found here.
    if mistakes.is_empty()
        && let Err(misuse) = options.check()
    {
        mistakes.add_of_file(misuse.to_string(), "the queue could not be created like this");
    }
    options
}

/// The order, as its word says. Nothing when its word is wrong: then nobody can say what does not go with it.
pub(crate) fn order_word(form: &QueueForm) -> Option<OrderWord> {
    if form.is_order_wrong { None } else { Some(value(&form.order).unwrap_or(OrderWord::Arrival)) }
}

/// Whether messages of a workflow have places, so that one can be missing or late.
fn has_places(form: &QueueForm) -> bool {
    !matches!(order_word(form), Some(OrderWord::None | OrderWord::Arrival))
}

fn order(form: &QueueForm) -> Order {
    match order_word(form) {
        Some(OrderWord::None) => Order::None,
        Some(OrderWord::Arrival) | None => Order::Arrival,
        Some(OrderWord::Position) => Order::Position { first: first(form) },
        Some(OrderWord::After) => Order::After,
    }
}

fn first(form: &QueueForm) -> Position {
    let first = match &form.position {
        Some(FileValue { value: TextOr::Table(PositionForm { first, .. }), .. }) => value(first),
        _ => None,
    };
    first.and_then(|first| Position::new(first).ok()).unwrap_or(Position::FIRST)
}

fn delivery(form: &QueueForm, options: &mut QueueOptions, mistakes: &mut Mistakes) {
    let Some(delivery) = &form.delivery else { return };
    let lock = duration_within(&delivery.lock, "lock", limits::LOCK_MIN, limits::LOCK_MAX, mistakes);
    set(&mut options.lock, lock);
    set(&mut options.delivery_count_max, value(&delivery.count_max));
    set(&mut options.hold_on_defer, delivery.hold_on_defer);
    options.rate = rate(&delivery.rate, &delivery.burst, mistakes);
}

/// A rate with its burst.
pub(crate) fn rate(
    rate: &Option<FileValue<String>>,
    burst: &Option<FileValue<u32>>,
    mistakes: &mut Mistakes,
) -> Option<Rate> {
    let Some(rate) = rate else {
        if let Some(burst) = burst {
            mistakes.add(&burst.span, "`burst` goes with a `rate`");
        }
        return None;
    };
    let read = rate.value.parse::<Rate>().map(|rate| Rate { burst: value(burst), ..rate });
    match read.and_then(|rate| rate.check().map(|()| rate)) {
        Ok(rate) => Some(rate),
        Err(misuse) => {
            let of_burst = burst.as_ref().filter(|_| misuse.field() == "burst");
            mistakes.add(of_burst.map_or(&rate.span, |burst| &burst.span), misuse.to_string());
            None
        }
    }
}

fn retry(form: &QueueForm, options: &mut QueueOptions, mistakes: &mut Mistakes) {
    let Some(retry) = &form.retry else { return };
    options.exhausted = value(&retry.then);
    if order_word(form) == Some(OrderWord::None)
        && let Some(then) = retry.then.as_ref().filter(|then| then.value != ExhaustedPolicy::Skip)
    {
        mistakes.add_with_help(
            &then.span,
            "a queue without order has no workflow that could stand still",
            "write then = \"skip\", or give the queue an order",
        );
    }
    if let (Some(backoff), Some(_)) = (&retry.backoff, &retry.delays) {
        mistakes.add(
            &backoff.span,
            "`backoff` and `delays` both say when a message is tried again: leave one out",
        );
    }
    if let Some(given) = &retry.backoff {
        options.backoff = backoff(given, mistakes);
    }
}

fn backoff(given: &FileValue<BackoffForm>, mistakes: &mut Mistakes) -> Backoff {
    let mut backoff = Backoff::default();
    set(&mut backoff.first, duration(&given.value.first, "first", mistakes));
    set(&mut backoff.factor, value(&given.value.factor));
    set(&mut backoff.max, duration(&given.value.max, "max", mistakes));
    if backoff.first > backoff.max {
        let (first, max) = (WireDuration(backoff.first), WireDuration(backoff.max));
        mistakes.add(&given.span, format!("the first delay, {first}, is longer than the longest, {max}"));
    }
    backoff
}

/// The exact delays.
pub(crate) fn retry_delays(retry: Option<&RetryForm>, mistakes: &mut Mistakes) -> Vec<Duration> {
    let Some(delays) = retry.and_then(|retry| retry.delays.as_ref()) else { return Vec::new() };
    let delays = delays.value.iter();
    delays
        .filter_map(|delay| within(delay, "each of `delays`", SHORTEST, limits::DURATION_MAX, mistakes))
        .collect()
}

fn gap(form: &QueueForm, options: &mut QueueOptions, mistakes: &mut Mistakes) {
    let Some(gap) = &form.gap else { return };
    if !has_places(form) {
        mistakes.add_with_help(
            &gap.span,
            "in this order no message can be missing",
            "leave [gap] out, or write order = \"position\" or \"after\"",
        );
    }
    let default = options.gap;
    let then = value(&gap.value.then).unwrap_or(default.then);
    let wait = duration(&gap.value.wait, "wait", mistakes).unwrap_or(default.wait);
    options.gap = GapPolicy { wait, then };
}

fn expiry(form: &QueueForm, options: &mut QueueOptions, mistakes: &mut Mistakes) {
    if let Some(expiry) = &form.expiry {
        options.time_to_live = duration(&expiry.time_to_live, "time_to_live", mistakes);
        let then = value(&expiry.then);
        set(&mut options.expired, then);
        set(&mut options.keep_deferred, expiry.keep_deferred);
    }
    let Some(duplicates) = &form.duplicates else { return };
    options.duplicate_window = duration(&duplicates.window, "window", mistakes);
    let late = value(&duplicates.late);
    set(&mut options.late, late);
    if let (Some(span), false) = (span(&duplicates.late), has_places(form)) {
        mistakes.add_with_help(
            &span,
            "in this order no message can be late",
            "leave `late` out, or write order = \"position\" or \"after\"",
        );
    }
}

fn idle(form: &QueueForm, options: &mut QueueOptions, mistakes: &mut Mistakes) {
    let Some(idle) = &form.idle else { return };
    set(&mut options.forget_after, duration(&idle.forget_after, "forget_after", mistakes));
    set(&mut options.remember_cursor, duration(&idle.remember_cursor, "remember_cursor", mistakes));
    options.delete_when_idle = duration(&idle.delete_after, "delete_after", mistakes);
    set(&mut options.delete_with_messages, idle.delete_with_messages);
}

fn set<T>(option: &mut T, given: Option<T>) {
    if let Some(given) = given {
        *option = given;
    }
}

/// A span of time that is neither nothing nor endless.
pub(crate) fn duration(
    given: &Option<FileValue<DurationText>>,
    name: &str,
    mistakes: &mut Mistakes,
) -> Option<Duration> {
    duration_within(given, name, SHORTEST, limits::DURATION_MAX, mistakes)
}

/// A span of time within bounds.
pub(crate) fn duration_within(
    given: &Option<FileValue<DurationText>>,
    name: &str,
    least: Duration,
    most: Duration,
    mistakes: &mut Mistakes,
) -> Option<Duration> {
    within(given.as_ref()?, &format!("`{name}`"), least, most, mistakes)
}

fn within(
    given: &FileValue<DurationText>,
    what: &str,
    least: Duration,
    most: Duration,
    mistakes: &mut Mistakes,
) -> Option<Duration> {
    match given.value.read() {
        Ok(duration) if (least..=most).contains(&duration) => return Some(duration),
        Ok(_) if least == SHORTEST => {
            mistakes.add(&given.span, format!("{what} must be more than zero and at most 100 years"));
        }
        Ok(_) => {
            let (least, most) = (WireDuration(least), WireDuration(most));
            mistakes.add(&given.span, format!("{what} must be from {least} to {most}"));
        }
        Err(misuse) => mistakes.add(&given.span, format!("{what}: {misuse}")),
    }
    None
}
