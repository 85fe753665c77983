//! Instants as people read them: how long ago or ahead, with the exact time beside it.

use std::time::Duration;

use maud::Markup;
use maud::html;

use crate::api::WireTime;
use crate::clock::Timestamp;

/// The instant at which a screen is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Present(pub(crate) Timestamp);

impl Present {
    /// How far an instant is: `4m 12s ago`, `in 3h 5m`, `now`. The page's script says the same as time goes on.
    pub(crate) fn distance(self, at: Timestamp) -> String {
        let (now, at) = (self.0.as_millis(), at.as_millis());
        match (now.abs_diff(at) / 1_000, at < now) {
            (0, _) => "now".to_owned(),
            (seconds, true) => format!("{} ago", span(seconds)),
            (seconds, false) => format!("in {}", span(seconds)),
        }
    }

    /// An instant: how far it is, and when that is on hovering.
    pub(crate) fn show(self, at: WireTime) -> Markup {
        html! { time data-far="" datetime=(at) title=(exact(at)) { (self.distance(at.0)) } }
    }

    /// An instant: how far it is, and when.
    pub(crate) fn show_both(self, at: WireTime) -> Markup {
        html! { (self.show(at)) " " span.exact { (self.clock(at)) } }
    }

    /// The time of day, with the date where it is another day.
    pub(crate) fn clock(self, at: WireTime) -> String {
        let (now, text) = (WireTime(self.0).to_string(), at.to_string());
        let time = text.get(11..19).unwrap_or(&text);
        match text.get(..10) == now.get(..10) {
            true => format!("{time} UTC"),
            false => format!("{} {time} UTC", text.get(..10).unwrap_or_default()),
        }
    }
}

/// An instant in full.
pub(crate) fn exact(at: WireTime) -> String {
    at.to_string().replace('T', " ").replace('Z', " UTC")
}

/// A span in its two largest units that matter.
pub(crate) fn span(seconds: u64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match seconds {
        ..60 => format!("{seconds}s"),
        60..600 => format!("{minutes}m {}s", seconds % 60),
        600..3_600 => format!("{minutes}m"),
        3_600..86_400 => format!("{hours}h {}m", minutes % 60),
        _ => format!("{days}d {}h", hours % 24),
    }
}

/// How long something took.
pub(crate) fn lasted(span_of: Duration) -> String {
    match span_of.as_millis() {
        millis @ ..1_000 => format!("{millis} ms"),
        millis @ 1_000..10_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        _ => span(span_of.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distance_says_how_long_ago_or_ahead() {
        let present = Present(Timestamp::from_millis(1_000_000_000));
        let at = |seconds: i64| {
            let millis = 1_000_000_000_i64 + seconds * 1_000;
            present.distance(Timestamp::from_millis(u64::try_from(millis).unwrap()))
        };
        assert_eq!((at(0), at(-1), at(59)), ("now".into(), "1s ago".into(), "in 59s".into()));
        assert_eq!((at(-252), at(1_800)), ("4m 12s ago".to_owned(), "in 30m".to_owned()));
        assert_eq!((at(11_100), at(-360_000)), ("in 3h 5m".to_owned(), "4d 4h ago".to_owned()));
    }

    #[test]
    fn another_day_is_told_with_its_date() {
        let present = Present(Timestamp::from_millis(86_400_000));
        let clock = |millis| present.clock(WireTime(Timestamp::from_millis(millis)));
        assert_eq!(clock(86_400_000 + 11_520_000), "03:12:00 UTC");
        assert_eq!(clock(11_520_000), "1970-01-01 03:12:00 UTC");
    }

    #[test]
    fn short_spans_are_told_more_exactly() {
        let described = |millis| lasted(Duration::from_millis(millis));
        assert_eq!([described(7), described(1_250), described(61_000)], ["7 ms", "1.2 s", "1m 1s"]);
    }
}
