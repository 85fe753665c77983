//! Whoever has asked for work and waits no more.

use std::convert::Infallible;
use std::time::Duration;

use tokio::sync::Notify;

use crate::cluster::stop::pause;
use crate::engine::elsewhere::LetterHandle;

/// How long it takes until it is seen that somebody waits no more.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Ends the wait of somebody who waits no more, before something is handed out to nobody.
pub(crate) async fn hurry_when_left(letter: &LetterHandle, hurry: &Notify) -> Infallible {
    loop {
        seen_left(letter).await;
        hurry.notify_one();
    }
}

/// Looks now and then, for the first time after a while, until nobody waits for the answer.
pub(crate) async fn seen_left(letter: &LetterHandle) {
    pause(LOOK_EVERY).await;
    while !letter.is_left() {
        pause(LOOK_EVERY).await;
    }
}
