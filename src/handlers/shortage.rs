//! Programs that cannot be started because the daemon itself is short of something: no fault of the message.

use std::io;
use std::time::Duration;

use rustix::io::Errno;

use crate::limits;
use crate::mutex::Mutex;

/// No more than one line of log in this time.
const LOG_EVERY: Duration = Duration::from_secs(1);

/// Whether a program was not started because the daemon, or its machine, has no file handles, processes or memory left.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let ours = [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM];
    error.raw_os_error().is_some_and(|code| ours.iter().any(|errno| errno.raw_os_error() == code))
}

/// For how long a handler pauses, because its program could not be started.
#[derive(Debug, Default)]
pub(crate) struct Shortage {
    state: Mutex<ShortageState>,
}

#[derive(Debug, Default)]
struct ShortageState {
    /// The last pause; the next is twice as long.
    pause: Duration,
    /// In the clock's elapsed time.
    until: Duration,
    logged_at: Option<Duration>,
    why: String,
}

impl Shortage {
    /// Notes that a program could not be started. Those that fail during a pause were handed out before it.
    pub(crate) fn note(&self, elapsed: Duration, (queue, program): (&str, &str), why: &str) {
        let mut state = self.state.lock();
        if state.until <= elapsed {
            state.pause = (state.pause * 2).clamp(limits::START_PAUSE_MIN, limits::START_PAUSE_MAX);
            state.until = elapsed + state.pause;
        }
        why.clone_into(&mut state.why);
        if state.logged_at.is_none_or(|logged| elapsed.saturating_sub(logged) >= LOG_EVERY) {
            state.logged_at = Some(elapsed);
            let pause = state.pause;
            tracing::error!(
                queue,
                program,
                why,
                ?pause,
                "the daemon cannot start a program for lack of something; messages lose no attempt by that"
            );
        }
    }

    /// Notes that a program was started.
    pub(crate) fn note_start(&self) {
        self.state.lock().pause = Duration::ZERO;
    }

    /// Until when nothing is to be handed out, and why.
    pub(crate) fn pauses_until(&self, elapsed: Duration) -> Option<(Duration, String)> {
        let state = self.state.lock();
        (state.until > elapsed).then(|| (state.until, state.why.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_grows_to_its_bound_and_begins_anew_after_a_start() {
        let (shortage, mut elapsed, mut pauses) = (Shortage::default(), Duration::from_secs(5), Vec::new());
        for _ in 0..12 {
            shortage.note(elapsed, ("q", "sh"), "no room");
            shortage.note(elapsed, ("q", "sh"), "no room");
            let (until, _) = shortage.pauses_until(elapsed).expect("it pauses");
            pauses.push((until - elapsed).as_millis());
            assert!(shortage.pauses_until(until).is_none());
            elapsed = until;
        }
        assert_eq!(pauses[..4], [100, 200, 400, 800], "failures of one hand-out count once");
        assert_eq!(pauses.last(), Some(&limits::START_PAUSE_MAX.as_millis()));
        shortage.note_start();
        shortage.note(elapsed, ("q", "sh"), "no room");
        assert_eq!(
            shortage.pauses_until(elapsed).map(|(until, _)| until),
            Some(elapsed + limits::START_PAUSE_MIN)
        );
    }

    #[test]
    fn only_what_the_daemon_lacks_is_a_shortage() {
        let of = |errno: Errno| is_shortage(&io::Error::from_raw_os_error(errno.raw_os_error()));
        assert!(of(Errno::MFILE) && of(Errno::NFILE) && of(Errno::AGAIN) && of(Errno::NOMEM));
        assert!(
            !of(Errno::NOENT) && !of(Errno::ACCESS) && !is_shortage(&io::Error::other("it has no number"))
        );
    }
}
