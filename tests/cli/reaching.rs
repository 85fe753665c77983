//! How a daemon is found and spoken to: URL, key, exit codes when nobody answers or nobody understands.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;

use serde_json::json;

use crate::cli::fake::Answer;
use crate::cli::fake::Fake;
use crate::cli::fake::run_command;
use crate::cli::fake::seriatim;
use crate::fixture::daemon_process::ANYWHERE;
use crate::fixture::daemon_process::DaemonProcess;
use crate::fixture::daemon_process::daemon_command;

#[test]
fn nobody_there_is_said_in_one_line_with_how_to_start_it() {
    // Nothing listens on port 1.
    let ran = run_command(seriatim(&["blocked"]).env("SERIATIM_URL", "http://127.0.0.1:1"), "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("seriatim: cannot reach the daemon at http://127.0.0.1:1: "), "{ran:?}");
    assert!(ran.stderr.contains("`seriatim run`") && ran.stderr.lines().count() == 1, "{ran:?}");
}

#[test]
fn who_speaks_http_where_tls_is_spoken_is_told_so() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let answering = std::thread::Builder::new().name("tls".to_owned()).spawn(move || {
        for mut stream in listener.incoming().flatten() {
            if stream.read(&mut [0; 1024]).is_ok_and(|bytes| bytes > 0) {
                // The alert of TLS with which everything else is answered: an unexpected message.
                let _ = stream.write_all(b"\x15\x03\x03\x00\x02\x02\x0a");
            }
        }
    });
    answering.expect("a thread");
    let ran = run_command(&mut seriatim(&["blocked", "--url", &url]), "");
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("a daemon with TLS is at https://"), "{ran:?}");
    let ran = run_command(&mut seriatim(&["doctor", "--url", &url]), "");
    assert!(ran.stdout.contains("-> say https:// in --url"), "{ran:?}");
}

#[test]
fn a_daemon_without_a_folder_of_definitions_says_how_to_make_one() {
    let empty = tempfile::tempdir().expect("a temporary folder");
    let ran = run_command(seriatim(&["run", "--http", "127.0.0.1:0"]).current_dir(empty.path()), "");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    assert!(ran.stderr.starts_with("seriatim: cannot start: there is no folder of definitions"), "{ran:?}");
    assert!(ran.stderr.contains("`mkdir workflows`") && ran.stderr.contains("`seriatim dev`"), "{ran:?}");
}

#[test]
fn a_daemon_with_a_certificate_says_that_it_is_reached_by_https() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::create_dir(folder.path().join("workflows")).expect("a folder for definitions");
    let certificate = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/testdata/certificate.pem");
    let key = concat!(env!("CARGO_MANIFEST_DIR"), "/src/server/testdata/key.pem");
    let mut command = daemon_command(folder.path(), ANYWHERE);
    command.args(["--tls-certificate", certificate, "--tls-key", key, "--storage-queue", ANYWHERE]);
    let daemon = DaemonProcess::start(&mut command);
    for server in ["http", "storage_queue", "page"] {
        let url = daemon.url(server).expect("it is served");
        assert!(url.starts_with("https://127.0.0.1:"), "{server}: {url}");
    }
}

#[test]
fn what_is_no_answer_of_a_daemon_is_not_taken_for_one() {
    for status in [200, 404, 500] {
        let fake = Fake::new(move |_| Answer::garbage(status));
        let ran = fake.run(&["blocked"]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
        assert!(ran.stderr.contains("understand the answer to GET /v1/blocked"), "{ran:?}");
    }
}

#[test]
fn whoever_answers_everything_has_done_nothing() {
    let fake = Fake::new(|_| Answer::garbage(200));
    for arguments in [
        &["health"][..],
        &["cancel", "orders#7"],
        &["cancel", "orders#7", "--void"],
        &["definitions", "pause", "orders"],
        &["settle", "orders", "17.3.ab", "complete"],
        &["settle", "orders", "17.3.ab", "release"],
    ] {
        let ran = fake.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{arguments:?}: {ran:?}");
        assert!(ran.stderr.contains("cannot understand the answer to "), "{arguments:?}: {ran:?}");
    }
    assert_eq!(fake.asked().len(), 6, "none of them is asked again");
}

#[test]
fn a_variable_that_is_set_to_nothing_is_not_set() {
    let fake = Fake::new(|_| Answer::text("ok\n"));
    let variables = [("SERIATIM_HTTP", fake.url.trim_start_matches("http://"))];
    let nothing =
        ["SERIATIM_URL", "SERIATIM_CA_FILE", "SERIATIM_KEY", "SERIATIM_KEY_FILE"].map(|name| (name, ""));
    let mut command = seriatim(&["health"]);
    let ran = run_command(command.envs(variables).envs(nothing), "");
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

#[test]
fn health_is_one_question_to_the_daemon_whose_settings_are_in_the_environment() {
    let fake = Fake::new(|_| Answer::text("ok\n"));
    let address = fake.url.trim_start_matches("http://");
    let ran = run_command(seriatim(&["health", "--json"]).env("SERIATIM_HTTP", address), "");
    assert_eq!((ran.code, &ran.json()[0]["url"]), (Some(0), &json!(fake.url)), "{ran:?}");
    assert_eq!(fake.asked_lines(), ["GET /healthz"]);
    let failed = Fake::new(|_| Answer::problem(503, "stopped", "the engine has stopped: the disk"));
    let ran = failed.run(&["health"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(3), ""), "{ran:?}");
    assert!(ran.stderr.contains("cannot find the daemon healthy: the engine has stopped"), "{ran:?}");
    let nobody = run_command(seriatim(&["health"]).env("SERIATIM_HTTP", "127.0.0.1:1"), "");
    assert_eq!(nobody.code, Some(3), "{nobody:?}");
}

#[test]
fn a_key_comes_from_a_file_or_the_environment() {
    let fake = Fake::always(json!({ "blocked": [] }));
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), "from-file\n").expect("it can be written");
    let path = file.path().to_str().expect("text");
    let blocked = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = seriatim(&["blocked", "--url", &fake.url]);
        command.args(arguments).envs(variables.iter().copied());
        assert_eq!(run_command(&mut command, "").code, Some(0));
        fake.asked().pop().expect("it was asked").authorization
    };
    let bearer = |key: &str| Some(format!("Bearer {key}"));
    assert_eq!(blocked(&[], &[]), None);
    assert_eq!(blocked(&["--key-file", path], &[("SERIATIM_KEY", "from-env")]), bearer("from-file"));
    assert_eq!(
        blocked(&[], &[("SERIATIM_KEY", "from-env"), ("SERIATIM_KEY_FILE", path)]),
        bearer("from-env")
    );
    assert_eq!(blocked(&[], &[("SERIATIM_KEY_FILE", path)]), bearer("from-file"));
}

#[test]
fn a_key_file_that_cannot_be_used_is_a_wrong_argument() {
    let empty = tempfile::NamedTempFile::new().expect("a temporary file");
    for path in [empty.path().to_str().expect("text"), "/nowhere/key"] {
        let ran = run_command(&mut seriatim(&["blocked", "--key-file", path]), "");
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(path), "{ran:?}");
    }
}

#[test]
fn wrong_arguments_end_with_two_before_anybody_is_asked() {
    let fake = Fake::always(json!({}));
    for arguments in [
        &["send"][..],
        &["send", "or ders", "a", "--workflow"],
        &["send", "q", "a", "--ndjson", "--position", "1"],
        &["send", "q", "a", "--first", "--after", "m"],
        &["show", "orders#x"],
        &["retry", "orders"],
        &["retry", "orders#1"],
        &["retry", "orders", "--prefix", "a"],
        &["skip", "orders/1"],
        &["purge", "orders/1"],
        &["gap", "void", "orders/1", "3..2", "--reason", "r"],
        &["gap", "void", "orders/1", "3"],
        &["dlq", "purge", "orders"],
        &["receive", "orders", "--wait", "1s"],
        &["receive", "orders", "--complete", "--keep"],
        &["receive", "orders", "--dead-letters"],
        &["receive", "orders", "--dead-letters", "--run", "--keep"],
        &["redrive", "orders"],
        &["redrive", "orders", "--all", "--position", "1"],
        &["blocked", "--url", "127.0.0.1:7700"],
        &["blocked", "--key", "secret"],
    ] {
        let ran = fake.run(arguments);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ran:?}");
    }
    assert_eq!(fake.asked_lines(), Vec::<String>::new());
}

#[test]
fn a_refusal_ends_with_one_and_trouble_of_the_daemon_with_three() {
    for (status, code, exit) in [(401, "unauthorized", 1), (404, "queue_not_found", 1), (503, "stopped", 3)] {
        let fake = Fake::new(move |_| Answer::problem(status, code, "say why"));
        let ran = fake.run(&["queues"]);
        assert_eq!(ran.code, Some(exit), "{ran:?}");
        assert_eq!(ran.stderr, format!("seriatim: cannot list the queues: say why ({code})\n"));
    }
}

#[test]
fn every_shell_can_complete_the_verbs() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = run_command(&mut seriatim(&["completions", shell]), "");
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("blocked") && ran.stdout.contains("redrive"), "{shell}");
    }
}
