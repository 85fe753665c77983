//! What the prefetch window does for clients that buffer what they are sent, in random cases: speeds, handlers, links, delays,
//! lock lengths and credits; clients that look at their own clock and say nothing, that forget messages, renew, settle in
//! batches, pause, and begin again.
//!
//! `SERIATIM_SEED=n` plays one seed; `SERIATIM_WINDOW_SEEDS=n` sets how many.

use crate::service_bus::tests::buffers::Case;
use crate::service_bus::tests::buffers::Client;
use crate::service_bus::tests::buffers::Dice;
use crate::service_bus::tests::buffers::ENDS_AT;
use crate::service_bus::tests::buffers::Outcome;
use crate::service_bus::tests::buffers::play;

/// A case of a seed. Of a steady one, every handler's settlement arrives within the lock, and nothing is forgotten, paused
/// or begun again.
fn random(seed: u64, is_steady: bool) -> Case {
    let mut dice = Dice(seed);
    dice.below(1);
    let lock = [1_000, 3_000, 5_000, 30_000, 60_000][dice.below(5) as usize];
    let links = [1, 1, 2, 5, 12][dice.below(5) as usize];
    let alike = dice.below(2) == 0;
    let mut clients: Vec<Client> = Vec::new();
    for _ in 0..links {
        let client = match clients.first() {
            Some(first) if alike => first.clone(),
            _ => client(&mut dice, lock, is_steady),
        };
        clients.push(Client { start: dice.below(3) * dice.below(lock), ..client });
    }
    Case { seed, messages: 20 + dice.below(400) as usize, lock, clients }
}

fn client(dice: &mut Dice, lock: u64, is_steady: bool) -> Client {
    let credit = [1, 2, 10, 50, 100, 1_000][dice.below(6) as usize];
    let batch = [1, 1, 1, 10, 50][dice.below(5) as usize];
    let delay = [0, 0, lock / 100, lock / 10][dice.below(4) as usize];
    let longest = (lock * 90 / 100 - 2 * delay - 1) / batch;
    let high = match is_steady {
        true => 1 + dice.below(longest),
        false => {
            let longest = [lock / 50, lock / 5, lock, 3 * lock][dice.below(4) as usize];
            1 + dice.below(longest)
        }
    };
    let wild = |dice: &mut Dice, one_in: u64| !is_steady && dice.below(one_in) == 0;
    Client {
        credit,
        handlers: [1, 1, 4, 16][dice.below(4) as usize],
        lasts: (high - dice.below(high), high),
        delay,
        is_silent: dice.below(3) == 0,
        renews: (dice.below(4) == 0).then(|| 40 + dice.below(30)),
        forgets: if wild(dice, 4) { dice.below(300) } else { 0 },
        restarts: wild(dice, 6).then(|| lock + dice.below(6 * lock)),
        pause: wild(dice, 5).then(|| (dice.below(5 * lock), dice.below(2 * lock))),
        start: 0,
        batch: batch as usize,
    }
}

/// The cases that are played.
fn seeds() -> std::ops::Range<u64> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    match number("SERIATIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SERIATIM_WINDOW_SEEDS").unwrap_or(200),
    }
}

/// Plays a case without and with the window.
fn play_both(case: &Case) -> (Outcome, Outcome) {
    (play(case, false), play(case, true))
}

#[test]
fn a_message_that_is_settled_well_within_its_lock_is_never_dead_lettered_unseen() {
    for seed in seeds() {
        let case = random(seed, true);
        let (without, with) = play_both(&case);
        let described = format!("SERIATIM_SEED={seed}: {with:?}, without a window {without:?}: {case:?}");
        if with.slowest >= case.lock || with.ended_at >= ENDS_AT {
            // Its client has kept what it had handled, until it was sent more; or there were more than can be played.
            continue;
        }
        assert_eq!((with.dead_letters, with.completed), (0, case.messages), "{described}");
        assert!(case.clients.len() > 1 || with.lost_max <= 3, "{described}");
        // The first lock that is lost, the silence after it, and the way back to speed are a matter of a few locks.
        let longest = without.ended_at * 3 / 2 + 3 * case.lock;
        assert!(without.dead_letters > 0 || with.ended_at <= longest, "{described}");
        assert!(without.lost_max > 0 || with == without, "{described}");
    }
}

#[test]
fn clients_that_forget_pause_and_begin_again_lose_less_with_the_window() {
    let (mut dead_letters, mut dead_without) = (0, 0);
    for seed in seeds() {
        let case = random(seed, false);
        let (without, with) = play_both(&case);
        let described = format!("SERIATIM_SEED={seed}: {with:?}, without a window {without:?}: {case:?}");
        assert!(
            with.completed + with.dead_letters == case.messages || with.ended_at >= ENDS_AT,
            "{described}"
        );
        assert!(without.lost_max > 0 || with == without, "{described}");
        (dead_letters, dead_without) =
            (dead_letters + with.dead_letters, dead_without + without.dead_letters);
    }
    assert!(
        2 * dead_letters <= dead_without,
        "{dead_letters} dead letters with the window, {dead_without} without it"
    );
}

#[test]
fn twenty_messages_for_a_buffer_of_fifty_are_all_completed() {
    let client = Client {
        credit: 50,
        handlers: 1,
        lasts: (400, 400),
        delay: 0,
        is_silent: false,
        renews: None,
        forgets: 0,
        restarts: None,
        pause: None,
        start: 0,
        batch: 1,
    };
    let case = Case { seed: 0, messages: 20, lock: 3_000, clients: vec![client] };
    let (without, with) = play_both(&case);
    assert_eq!((without.completed, without.dead_letters), (7, 13), "{without:?}");
    assert_eq!((with.completed, with.dead_letters), (20, 0), "{with:?}");
    assert!(with.lost_max <= 2, "{with:?}");
}
