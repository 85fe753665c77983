//! What a page tells somebody to type, as one script of a shell.

use crate::packages::made::PROJECT;

/// The commands of a page under the comment that names these tests, without what they answer.
pub(crate) fn commands(page: &str) -> String {
    let text = std::fs::read_to_string(format!("{PROJECT}/{page}")).expect("the page is there");
    let (_, behind) = text.split_once("tests/packages runs this").expect("the page still has these commands");
    let snippet = behind.split("```").nth(1).expect("a block of code");
    let (mut found, mut is_text) = (String::new(), false);
    for line in snippet.lines() {
        // A text for a file goes to its last line; otherwise, what has no prompt is an answer.
        let typed = line.strip_prefix("$ ").or(is_text.then_some(line));
        let Some(typed) = typed else { continue };
        is_text = if is_text { line != "END" } else { typed.ends_with("<<'END'") };
        found.push_str(typed);
        found.push('\n');
        // Somebody who types sees that it is ready before the next line is there.
        if typed.ends_with(" &") {
            found.push_str(&until("seriatim queues"));
        }
    }
    found
}

/// A line of a shell script that waits until a command succeeds, for a minute at most.
pub(crate) fn until(command: &str) -> String {
    format!("timeout 60 sh -c \"until {command} >/dev/null 2>&1; do sleep 0.1; done\"\n")
}
