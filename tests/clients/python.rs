//! The Python client: its own tests, and its types.

use std::path::Path;
use std::process::Command;

use crate::fixture::promises::promises;
use crate::fixture::skip::skip;
use crate::fixture::skip::skip_unless_ci;

/// Runs Python in the client's folder; fails with what it has said.
fn run(program: &Path, arguments: &[&str]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python");
    let output = Command::new(program)
        .args(arguments)
        .current_dir(&folder)
        .env("PYTHONPATH", folder.join("src"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("SERIATIM_PROGRAM", env!("CARGO_BIN_EXE_seriatim"))
        .output()
        .expect("Python runs");
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?} ended with {}:\n{said}", output.status);
    if let Some(count) = said.lines().find(|line| line.contains("skipped=")) {
        skip(&arguments.join(" "), count);
    }
}

/// Whether there is a Python here.
fn has_python() -> bool {
    let asked = Command::new("python3").arg("--version").output();
    asked.inspect_err(|error| skip_unless_ci("the Python client", &format!("python3: {error}"))).is_ok()
}

fn tests_of(file: &str) {
    if has_python() {
        let arguments = ["-W", "error::ResourceWarning", "-m", "unittest", &format!("tests/{file}")];
        run(Path::new("python3"), &arguments);
    }
}

promises! {
    the_client_does_what_the_api_offers: tests_of("test_client.py");
    handlers_are_called_in_order_by_a_worker_and_by_the_daemon: tests_of("test_app.py");
    what_is_not_known_is_asked_again_and_no_answer_ends_a_worker: tests_of("test_answers.py");
    connections_that_have_ended_keep_nobody_waiting: tests_of("test_connections.py");
    locks_are_renewed_in_time_and_known_to_be_lost: tests_of("test_locks.py");
    nothing_is_lost_doubled_or_overtaken_when_daemon_and_worker_are_killed: tests_of("test_kills.py");
    the_readme_shows_what_happens: tests_of("test_readme.py");
    the_wheel_brings_the_client_and_the_program: tests_of("test_wheel.py");
}

#[test]
fn the_client_is_typed() {
    if !has_python() {
        return;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mypy-1.18.2");
    let installed = folder.join("installed");
    if !installed.exists() {
        let _ = std::fs::remove_dir_all(&folder);
        let venv = folder.to_string_lossy().into_owned();
        run(Path::new("python3"), &["-m", "venv", &venv]);
        run(&folder.join("bin/python3"), &["-m", "pip", "install", "--quiet", "mypy==1.18.2"]);
        std::fs::write(installed, "").expect("the folder is there");
    }
    run(&folder.join("bin/python3"), &["-m", "mypy", "--strict", "--no-incremental", "src/seriatim"]);
}
