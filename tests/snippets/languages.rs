//! Each language in which pages have snippets.

use std::collections::BTreeSet;

use crate::snippets::page::Snippet;
use crate::snippets::page::snippets;
use crate::snippets::runner;
use crate::snippets::runner::Runner;

/// Languages that are looked at elsewhere or by nobody: pictures.
const PICTURES: [&str; 1] = ["text"];

fn of(language: &str) -> Vec<Snippet> {
    let wanted = |snippet: &Snippet| snippet.language == language;
    let found: Vec<Snippet> = snippets().into_iter().filter(wanted).collect();
    assert!(
        !found.is_empty(),
        "there is no snippet in {language}: does the page still say what this test expects?"
    );
    found
}

#[test]
fn every_snippet_has_a_language_that_is_tried_and_those_that_are_not_run_say_why() {
    for snippet in snippets() {
        let Snippet { place, language, why_not, .. } = &snippet;
        match (language.as_str(), why_not) {
            (_, Some(why)) => println!("{place}: {language}, not run: {why}"),
            ("toml" | "rust,no_run" | "json" | "console", None) => {}
            (other, None) => assert!(PICTURES.contains(&other), "{place}: nothing tries {other:?}; mark it"),
        }
    }
}

#[test]
fn rust_in_pages_is_compiled_with_the_dependencies_the_page_names() {
    let rust = of("rust,no_run");
    // `src/lib.rs` makes the README a documentation test; another page has to be added there.
    assert!(rust.iter().all(|snippet| snippet.place.starts_with("README.md")));
    let tables = of("toml").into_iter().filter(|snippet| snippet.text.contains("[dependencies]"));
    let table: toml::Table = tables.map(|snippet| snippet.text).collect::<String>().parse().expect("TOML");
    let named: BTreeSet<&String> = table["dependencies"].as_table().expect("a table").keys().collect();
    for snippet in &rust {
        for crate_name in ["serde", "serde_json", "tokio", "seriatim", "bytes"] {
            let is_used = snippet.text.contains(&format!("{crate_name}::"));
            assert!(
                !is_used || named.contains(&crate_name.to_owned()),
                "{}: {crate_name} is missing",
                snippet.place
            );
        }
        let tokio = table["dependencies"]["tokio"]["features"].to_string();
        for (word, feature) in
            [("#[tokio::main]", "macros"), ("#[tokio::main]", "rt-multi-thread"), ("tokio::signal", "signal")]
        {
            assert!(!snippet.text.contains(word) || tokio.contains(feature), "tokio needs {feature}");
        }
        let serde = table["dependencies"]["serde"]["features"].to_string();
        assert!(!snippet.text.contains("derive(serde") || serde.contains("derive"), "serde needs derive");
    }
}

#[test]
fn every_definition_is_one_and_every_file_of_keys_is_taken() {
    for snippet in of("toml").iter().filter(|snippet| snippet.why_not.is_none()) {
        let Snippet { place, text, .. } = snippet;
        match (text.contains("[dependencies]"), text.contains("[[key]]")) {
            (true, _) => {}
            (false, true) => runner::try_keys(place, text),
            (false, false) => runner::check_definition(place, text),
        }
    }
}

#[test]
fn every_json_is_json() {
    for Snippet { place, text, .. } in of("json") {
        let read = serde_json::from_str::<serde_json::Value>(&text);
        assert!(read.is_ok(), "{place}: {}", read.unwrap_err());
    }
}

#[test]
fn every_python_program_can_be_compiled() {
    for Snippet { place, text, .. } in of("python") {
        runner::compile_python(&place, &text);
    }
}

#[test]
fn every_command_of_a_page_is_done_by_a_daemon() {
    let mut runner = Runner::start();
    for snippet in of("console").iter().filter(|snippet| snippet.why_not.is_none()) {
        runner.run(snippet);
    }
    assert!(runner.commands > 15, "only {} commands were run", runner.commands);
}
