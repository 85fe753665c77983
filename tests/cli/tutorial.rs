//! The tutorial, played as it stands in the page.

use std::os::unix::process::CommandExt;
use std::process::Command;

/// The commands of the page, in order; a document that a command reads stays with it.
fn commands() -> String {
    let page =
        std::fs::read_to_string(format!("{}/docs/tutorial.md", env!("CARGO_MANIFEST_DIR"))).expect("a page");
    let (mut script, mut reads) = (String::new(), false);
    let blocks = page.split("```").skip(1).step_by(2);
    for line in blocks.flat_map(str::lines) {
        match line.strip_prefix("$ ") {
            Some(command) => {
                script.push_str(&with_waits(command));
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
fn with_waits(command: &str) -> String {
    let until = |what: &str| format!("for try in $(seq 600); do {what} && break; sleep 0.05; done\n");
    match command {
        "seriatim run &" => format!("{command}\n{}", until("seriatim queues >/dev/null 2>&1")),
        "seriatim blocked" => format!("{}{command}\n", until("seriatim blocked | grep -q exhausted")),
        "cat handled" => {
            let seen = "grep -q created handled 2>/dev/null && { ! test -e bank-is-open || grep -q shipped handled; }";
            format!("{}{command}\n", until(seen))
        }
        _ => format!("{command}\n"),
    }
}

#[test]
fn the_tutorial_goes_as_it_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).expect("a new folder");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_seriatim"), programs.join("seriatim")).expect("a link");
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|probe| probe.local_addr())
        .expect("a port")
        .port();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").expect("a path"));
    let script = format!("set -m\n{}\nkill -9 %1 %2 2>/dev/null; true\n", commands());
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(folder.path())
        .env("PATH", path)
        .env("SERIATIM_HTTP", format!("127.0.0.1:{port}"))
        .env("SERIATIM_URL", format!("http://127.0.0.1:{port}"))
        .process_group(0)
        .output()
        .expect("bash is there");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let handled = std::fs::read_to_string(folder.path().join("shop/handled")).unwrap_or_default();
    let steps: Vec<&str> = handled.lines().filter_map(|line| line.split('"').nth(7)).collect();
    assert_eq!(steps, ["created", "paid", "shipped"], "{said}\n{script}");
    assert!(said.contains("held: exhausted (3x)") && said.contains("the bank does not answer"), "{said}");
}
