//! The tutorial and the guides, played as they stand in their pages.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The commands of the page, in order; a document that a command reads stays with it.
fn commands(page: &str, done: &str) -> String {
    let page =
        std::fs::read_to_string(format!("{}/docs/{page}", env!("CARGO_MANIFEST_DIR"))).expect("a page");
    let (mut script, mut reads) = (String::new(), false);
    let blocks = page.split("```").skip(1).step_by(2);
    for line in blocks.flat_map(str::lines) {
        match line.strip_prefix("$ ") {
            Some(command) => {
                script.push_str(&with_waits(command, done));
                reads = command.contains("<<'END'");
            }
            None if reads => {
                script.push_str(&format!("{line}\n"));
                reads = line != "END";
            }
            None => {}
        }
    }
    script
}

/// A command, with waiting for what a person would see before typing it, or after.
fn with_waits(command: &str, done: &str) -> String {
    let until = |what: &str| format!("for try in $(seq 600); do {what} && break; sleep 0.05; done\n");
    match command {
        "seriatim run &" => format!("{command}\n{}", until("seriatim queues >/dev/null 2>&1")),
        "seriatim blocked" => format!("{}{command}\n", until("seriatim blocked | grep -q exhausted")),
        "cat handled" => format!("{}{command}\n", until(done)),
        _ => format!("{command}\n"),
    }
}

/// Plays a page in a new folder; what was printed, and what its handlers have written in the folder it makes.
fn play(page: &str, folder_name: &str, done: &str) -> (String, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).expect("a new folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_seriatim"), programs.join("seriatim")).expect("a link");
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|probe| probe.local_addr())
        .expect("a port")
        .port();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a path"));
    let script = format!("set -m\n{}\nkill -9 %1 %2 2>/dev/null; true\n", commands(page, done));
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path())
        .env("PATH", path)
        .env("SERIATIM_HTTP", format!("127.0.0.1:{port}"))
        .env("SERIATIM_URL", format!("http://127.0.0.1:{port}"))
        .process_group(0)
        .output()
        .expect("bash is there");
    let said = format!(
        "{}{}\n{script}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let handled =
        std::fs::read_to_string(folder.path().join(folder_name).join("handled")).unwrap_or_default();
    (said, handled)
}

#[test]
fn the_tutorial_goes_as_it_is_told() {
    let done =
        "grep -q created handled 2>/dev/null && { ! test -e bank-is-open || grep -q shipped handled; }";
    let (said, handled) = play("tutorial.md", "shop", done);
    let steps: Vec<&str> = handled.lines().filter_map(|line| line.split('"').nth(7)).collect();
    assert_eq!(steps, ["created", "paid", "shipped"], "{said}");
    assert!(said.contains("held: exhausted (3x)") && said.contains("the bank does not answer"), "{said}");
}

#[test]
fn webhooks_out_of_order_go_as_the_guide_tells() {
    let (said, handled) = play("guides/webhooks.md", "hooks", "grep -q paid handled 2>/dev/null");
    let events: Vec<&str> = handled.lines().filter_map(|line| line.split('"').nth(3)).collect();
    assert_eq!(events, ["e-1", "e-2"], "{said}");
}

#[test]
fn handlers_that_run_twice_book_once_as_the_guide_tells() {
    let (said, handled) = play("guides/idempotent-handlers.md", "bank", "grep -q 300 handled 2>/dev/null");
    assert_eq!(handled, "500\n300\n", "{said}");
}
