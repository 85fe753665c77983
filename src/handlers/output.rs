//! What a program wrote, as it is kept with an attempt that failed.

use std::collections::VecDeque;

use crate::engine::Output;
use crate::handlers::tail::Tail;
use crate::limits;

/// Stands before what came from the standard output, when there is some.
const STDOUT: &str = "--- standard output:\n";

/// The ends of both outputs: the errors first and at least three quarters of the room for them, if they need it.
pub(crate) fn of_both(stdout: &mut Tail, stderr: &mut Tail) -> Output {
    let room = limits::OUTPUT_KEPT_BYTES_MAX;
    let (errors, errors_cut) = stderr.text(room);
    let (written, written_cut) = stdout.text(room);
    if written.is_empty() && written_cut == 0 {
        return Output { text: errors, cut_bytes: errors_cut };
    }
    let least = room / 4;
    let mut errors = Output { text: errors, cut_bytes: errors_cut };
    shorten(&mut errors, room - written.len().min(least));
    let mut written = Output { text: written, cut_bytes: written_cut };
    if !errors.text.is_empty() && !errors.text.ends_with('\n') {
        errors.text.push('\n');
    }
    shorten(&mut written, room.saturating_sub(errors.text.len() + STDOUT.len()));
    let text = format!("{}{STDOUT}{}", errors.text, written.text);
    let both = Output::end_of(text);
    Output { text: both.text, cut_bytes: both.cut_bytes + errors.cut_bytes + written.cut_bytes }
}

/// Lets go of the beginning.
fn shorten(output: &mut Output, bytes_max: usize) {
    let over = output.text.len().saturating_sub(bytes_max);
    let text = &output.text;
    let start = (over..=text.len()).find(|start| text.is_char_boundary(*start)).unwrap_or(text.len());
    output.text.drain(..start);
    output.cut_bytes += start as u64;
}

/// The last a child wrote that runs on, and how much it was altogether.
#[derive(Debug, Default)]
pub(crate) struct OutputTail {
    tail: VecDeque<u8>,
    /// All bytes so far.
    count: u64,
}

impl OutputTail {
    /// How many bytes were written so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, line: &str) {
        for part in [line.as_bytes(), b"\n"] {
            self.tail.extend(part);
            self.count += part.len() as u64;
        }
        let over = self.tail.len().saturating_sub(limits::OUTPUT_KEPT_BYTES_MAX);
        self.tail.drain(..over);
    }

    /// What was written since so many bytes had been.
    pub(crate) fn since(&self, count: u64) -> Output {
        let wanted = self.count.saturating_sub(count);
        let length = usize::try_from(wanted).unwrap_or(usize::MAX).min(self.tail.len());
        let bytes: Vec<u8> = self.tail.iter().skip(self.tail.len() - length).copied().collect();
        let output = Output::end_of(String::from_utf8_lossy(&bytes));
        Output { cut_bytes: wanted - length as u64 + output.cut_bytes, ..output }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn tail(text: &str) -> Tail {
        let mut tail = Tail::new(64 * 1024);
        tail.fill(Some(text.as_bytes())).await;
        tail
    }

    async fn both(stdout: &str, stderr: &str) -> Output {
        of_both(&mut tail(stdout).await, &mut tail(stderr).await)
    }

    #[tokio::test]
    async fn of_a_long_output_the_end_is_kept_and_the_rest_is_counted() {
        assert!(both("", "").await.is_empty());
        assert_eq!(both("", "a\nb\n").await, Output { text: "a\nb\n".into(), cut_bytes: 0 });
        assert_eq!(both("out", "err").await.text, "err\n--- standard output:\nout");
        let long = both(&"o".repeat(10_000), &"\u{fc}".repeat(10_000)).await;
        assert!(long.text.len() <= limits::OUTPUT_KEPT_BYTES_MAX);
        assert!(long.text.starts_with('\u{fc}') && long.text.ends_with('o'), "{}", long.text);
        let length = long.text.len() - STDOUT.len() - 1;
        assert_eq!(long.cut_bytes, 30_000 - length as u64);
    }

    #[test]
    fn of_a_child_that_runs_on_the_part_since_then_is_kept() {
        let mut written = OutputTail::default();
        written.push("before");
        let since = written.count();
        assert!(written.since(since).is_empty());
        written.push("after");
        assert_eq!(written.since(since), Output { text: "after\n".into(), cut_bytes: 0 });
        written.push(&"x".repeat(5_000));
        assert_eq!(written.since(since).cut_bytes, 5_007 - limits::OUTPUT_KEPT_BYTES_MAX as u64);
    }
}
