//! The prefetch window, point by point.

use crate::id::SequenceNumber;
use crate::service_bus::window::DeliveryPlace;
use crate::service_bus::window::PrefetchWindow;

const LOCK: u64 = 1_000;

fn number(number: u64) -> SequenceNumber {
    SequenceNumber::new(number)
}

fn window() -> PrefetchWindow {
    let mut window = PrefetchWindow::new(0, LOCK, None);
    window.note_credit(100);
    window
}

/// Sends messages at an instant.
fn send(window: &mut PrefetchWindow, at: u64, messages: std::ops::Range<u64>) -> Vec<DeliveryPlace> {
    messages.map(|message| window.add(number(message), at + LOCK)).collect()
}

fn settle(window: &mut PrefetchWindow, at: u64, message: u64, place: DeliveryPlace) {
    window.note_activity(at, place);
    window.note_settled(at, number(message));
}

/// A window of four: of ten messages, eight are settled in time, and two lose their locks.
fn window_of_four() -> (PrefetchWindow, Vec<DeliveryPlace>) {
    let mut window = window();
    let places = send(&mut window, 0, 0..10);
    for message in 0..8 {
        settle(&mut window, 700, message, places[message as usize]);
    }
    assert_eq!(window.size(), None);
    window.expire(LOCK);
    assert_eq!(window.size(), Some(4));
    (window, places)
}

#[test]
fn there_is_no_window_until_a_lock_runs_out_in_the_buffer() {
    let mut window = window();
    let places = send(&mut window, 0, 0..100);
    assert_eq!(window.room(LOCK - 1), usize::MAX);
    // The first was overtaken: it is in a handler, or forgotten.
    settle(&mut window, LOCK - 1, 99, places[99]);
    window.expire(LOCK);
    assert_eq!((window.size(), window.losses()), (None, 0));
    send(&mut window, LOCK, 100..101);
    window.expire(2 * LOCK);
    assert_eq!((window.size(), window.losses()), (Some(1), 1), "half of one is at least one");
}

#[test]
fn the_window_is_half_of_what_was_settled_in_time_in_the_lock_duration_before_the_last() {
    let mut window = window();
    let places = send(&mut window, 0, 0..40);
    (0..10).for_each(|message| settle(&mut window, 0, message, places[message as usize]));
    let later = send(&mut window, 5_000 - LOCK / 2, 40..60);
    (40..48).for_each(|message| settle(&mut window, 5_000, message, later[message as usize - 40]));
    window.expire(100 * LOCK);
    assert_eq!(window.size(), Some(4), "the ten were settled long before");
}

#[test]
fn each_settlement_in_time_makes_it_larger_and_after_a_second_shrink_more_slowly() {
    let (mut window, _) = window_of_four();
    let places = send(&mut window, LOCK, 10..30);
    (10..16).for_each(|message| settle(&mut window, LOCK, message, places[message as usize - 10]));
    assert_eq!(window.size(), Some(10));
    // The six and the eight were settled within one lock duration.
    window.expire(2 * LOCK);
    assert_eq!(window.size(), Some(7));
    let mut size = Vec::new();
    for message in 30..46 {
        let place = window.add(number(message), 4 * LOCK);
        settle(&mut window, 3 * LOCK, message, place);
        size.extend(window.size());
    }
    assert_eq!(size, [7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 9, 9]);
}

#[test]
fn a_link_that_is_sent_one_at_a_time_has_no_window() {
    let mut window = PrefetchWindow::new(0, LOCK, Some(1));
    window.note_credit(1);
    for message in 0..5 {
        let [place] = send(&mut window, 2 * LOCK * message, message..message + 1)[..] else { unreachable!() };
        window.expire(2 * LOCK * message + LOCK);
        window.note_activity(2 * LOCK * message + LOCK, place);
    }
    assert_eq!(window.room(20 * LOCK), usize::MAX);
    assert!(window.admits(20 * LOCK, number(0), 9));
    assert_eq!((window.size(), window.losses()), (None, 0));
}

#[test]
fn a_link_that_asks_for_one_before_it_settles_one_has_a_window() {
    let mut window = PrefetchWindow::new(0, LOCK, None);
    window.note_credit(1);
    let places = send(&mut window, 0, 0..2);
    settle(&mut window, 700, 0, places[0]);
    // The second was in the buffer until then, and loses its lock in the handler.
    window.expire(LOCK);
    assert_eq!((window.size(), window.losses()), (Some(1), 1));
    window.note_activity(1_400, places[1]);
    assert_eq!(window.room(1_400), 1);
    send(&mut window, 1_400, 1..2);
    assert_eq!(window.room(1_400), 0, "the next is sent when this one is settled");
}

#[test]
fn what_was_overtaken_by_a_settlement_a_refusal_or_a_renewal_is_not_in_use() {
    let (mut window, places) = window_of_four();
    assert_eq!(window.room(LOCK), 2, "two have lost their lock, and are in the buffer");
    // Refused: the client has worked on both.
    window.note_activity(LOCK + 1, places[9]);
    assert_eq!(window.room(LOCK + 1), 4);
    let places = send(&mut window, LOCK + 1, 10..13);
    assert_eq!(window.room(LOCK + 1), 1);
    window.note_renewed(LOCK + 2, places[2], 3 * LOCK);
    assert_eq!(window.room(LOCK + 2), 3, "what is renewed counts, what is before it does not");
    window.take_back(places[2]);
    assert_eq!(window.room(LOCK + 2), 4, "what was not sent does not count");
}

#[test]
fn a_renewal_that_is_answered_after_the_end_that_the_lock_had_before_leaves_nothing_behind() {
    let (mut window, places) = window_of_four();
    window.note_activity(LOCK, places[9]);
    let place = window.add(number(10), 2 * LOCK);
    window.note_renewed(2 * LOCK + 1, place, 3 * LOCK);
    assert_eq!(window.wakes_at(), Some(3 * LOCK), "it is locked again");
    window.note_activity(2 * LOCK + 2, place);
    assert_eq!(window.wakes_at(), None, "nothing is in use, and nothing has lost its lock");
    assert!(window.admits(2 * LOCK + 2, number(77), 2));
}

#[test]
fn what_ran_out_counts_until_the_client_was_silent_for_longer_than_it_ever_was() {
    let (mut window, _) = window_of_four();
    // It settled first, and last, at 700.
    assert_eq!(window.wakes_at(), Some(700 + LOCK), "no longer than a lock duration");
    assert_eq!((window.room(700 + LOCK - 1), window.room(700 + LOCK)), (2, 4));
    let mut window = self::window();
    let places = send(&mut window, 0, 0..20);
    (0..10).for_each(|message| settle(&mut window, 99 * (message + 1), message, places[message as usize]));
    window.expire(LOCK);
    assert_eq!((window.size(), window.wakes_at()), (Some(5), Some(990 + 99 + 49)));
    assert_eq!(
        (window.room(1_137), window.room(1_138)),
        (0, 5),
        "its buffer is empty: it was never so quiet"
    );
    // It was not empty: now it is waited for as long as a lock lasts.
    window.note_activity(1_200, places[10]);
    send(&mut window, 1_200, 20..21);
    window.expire(1_200 + LOCK);
    assert_eq!(window.wakes_at(), Some(1_200 + LOCK));
}

#[test]
fn what_is_refused_after_it_was_written_off_doubles_the_wait_up_to_sixteen_times() {
    let (mut window, places) = window_of_four();
    let mut waited_for = places[8];
    for times in [1, 2, 4, 8, 16, 16] {
        let from = window.wakes_at().unwrap().max(10 * LOCK);
        window.room(from);
        window.note_activity(from, waited_for);
        waited_for = window.add(number(50), from + LOCK);
        window.expire(from + LOCK);
        assert_eq!(window.wakes_at(), Some(from + times * LOCK));
    }
}

#[test]
fn a_message_lost_here_before_goes_out_only_below_half_of_the_window() {
    let (mut window, places) = window_of_four();
    places[8..].iter().for_each(|place| window.note_activity(LOCK, *place));
    assert!(window.admits(LOCK, number(8), 1));
    send(&mut window, LOCK, 8..9);
    assert!(window.admits(LOCK, number(9), 1), "one of four is in use");
    send(&mut window, LOCK, 9..10);
    assert!(!window.admits(LOCK, number(8), 1), "two of four are in use");
    assert!(window.admits(LOCK, number(77), 1), "it was lost elsewhere");
    let settled = window.add(number(8), 2 * LOCK);
    settle(&mut window, LOCK, 8, settled);
    send(&mut window, LOCK, 20..23);
    assert!(window.admits(LOCK, number(8), 1), "it was settled here since");
}

#[test]
fn a_message_lost_twice_anywhere_goes_out_only_where_it_is_safe() {
    let (mut window, places) = window_of_four();
    assert!(!window.admits(LOCK, number(77), 2), "what ran out counts");
    places[8..].iter().for_each(|place| window.note_activity(LOCK, *place));
    send(&mut window, LOCK, 20..21);
    assert!(window.admits(LOCK, number(77), 2), "a quarter is in use");
    send(&mut window, LOCK, 21..22);
    assert!(window.admits(LOCK, number(77), 1) && !window.admits(LOCK, number(77), 2));
}

#[test]
fn a_new_link_starts_with_the_window_it_inherits() {
    let mut window = PrefetchWindow::new(0, LOCK, Some(3));
    assert_eq!(window.size(), None, "nobody has asked for more than one");
    window.note_credit(50);
    assert_eq!((window.size(), window.room(0)), (Some(3), 3));
    send(&mut window, 0, 0..3);
    assert_eq!(window.room(0), 0);
    assert!(!window.admits(0, number(9), 0));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut window = window();
    for message in 0..20_000 {
        window.add(number(message), message);
        window.room(message + 2 * LOCK);
        window.note_settled(message, number(message + 1_000_000));
    }
    let bytes = format!("{window:?}").len();
    assert!(bytes < 500_000, "{bytes}");
}
