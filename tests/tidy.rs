//! The rules that neither the compiler nor a lint can say, as tests; each name is a promise.
//!
//! Only the standard library is used, and only text is read: nothing here compiles the crate. The rules about
//! who may name whom are one table, in `tidy/rooms.rs`. A check is a pure function from sources to violations,
//! and beside each check a test plants a violation, because a check that cannot fail protects nothing.

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/documents.rs"]
mod documents;
#[path = "tidy/functions.rs"]
mod functions;
#[path = "tidy/names.rs"]
mod names;
#[path = "tidy/paths.rs"]
mod paths;
#[path = "fixture/promises.rs"]
mod promises;
#[path = "tidy/rooms.rs"]
mod rooms;
#[path = "tidy/scenarios.rs"]
mod scenarios;
#[path = "tidy/shape.rs"]
mod shape;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/trespass.rs"]
mod trespass;

use crate::promises::promises;
use crate::source::Source;

/// The folders that hold Rust written by hand.
const RUST: &[&str] = &["src", "tests", "benches", "examples"];

#[test]
fn the_sources_are_really_read() {
    let sources = Source::all(RUST, "rs");
    for path in ["src/lib.rs", "tests/tidy.rs", "tests/tidy/rooms.rs"] {
        assert!(sources.iter().any(|source| source.path == path), "{path} was not read");
    }
}

promises! {
    imports_point_down_and_siblings_do_not_meet:
        expect_none(trespass::trespasses(&Source::all(&["src"], "rs"), rooms::TABLE));
    no_path_climbs_two_modules: expect_none(shape::double_climbs(&Source::all(RUST, "rs")));
    every_file_is_named_by_what_it_holds: expect_none(shape::empty_names(&Source::all(RUST, "rs")));
    every_type_has_a_name_of_its_own: expect_none(names::reused(&Source::all(&["src"], "rs")));
    no_type_is_named_by_what_happened_to_it: expect_none(names::no_nouns(&Source::all(&["src"], "rs")));
    files_import_each_other_only_where_they_are_one_thing:
        expect_none(circles::unknown_circles(&Source::all(&["src"], "rs"), circles::CIRCLES));
    what_a_test_does_not_try_is_said_where_somebody_reads_it:
        expect_none(shape::silent_skips(&Source::all(RUST, "rs")));
    every_file_has_at_most_500_lines: expect_none(shape::long_files(&Source::all(RUST, "rs")));
    the_crate_is_written_in_ascii:
        expect_none(shape::foreign_letters(&Source::all(&["src"], "rs"), shape::NOT_ASCII));
    mod_files_only_declare_and_lib_holds_no_function:
        expect_none(shape::logic_in_declarations(&Source::all(&["src"], "rs")));
    every_module_begins_with_a_sentence: expect_none(shape::untold_modules(&Source::all(RUST, "rs")));
    decisions_are_numbered_and_titled:
        expect_none(shape::loose_decisions(&Source::all(&["docs/decisions"], "md")));
    the_documents_name_files_that_exist:
        expect_none(documents::missing_files(&Source::all(&["docs"], "md"), &Source::all(RUST, "rs")));
}

#[test]
fn functions_fit_a_screen() {
    let measure = functions::measure(&Source::all(&["src"], "rs"));
    println!("{}", measure.summary());
    assert!(measure.is_within_share(), "{}\n{}", measure.summary(), measure.long.join("\n"));
}

#[test]
fn scenarios_that_are_covered_name_tests_that_are_there() {
    let tests: Vec<Source> = [("rs", RUST), ("py", &["tests/sdk"]), ("mjs", &["tests/sdk"])]
        .into_iter()
        .flat_map(|(extension, folders)| Source::all(folders, extension))
        .collect();
    for document in Source::all(&["docs"], "md") {
        if document.path.starts_with("docs/conformance-scenarios") {
            expect_none(scenarios::wrong_scenarios(&document, &tests));
        }
    }
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documents = Source::all(&["docs", "clients/python", "release", "examples"], "md");
    for page in ["README.md", "CHANGELOG.md"] {
        let text = std::fs::read_to_string(root.join(page)).expect("a page");
        documents.push(Source::new(page, &text));
    }
    expect_none(documents::broken_links(&documents, |path| root.join(path).exists()));
}

#[test]
fn no_word_is_private_to_this_code() {
    expect_none(documents::private_words(&Source::all(&["src", "examples"], "rs")));
    expect_none(documents::private_words(&Source::all(&["docs"], "md")));
}

/// Fails with one line for each violation.
fn expect_none(violations: Vec<String>) {
    assert!(violations.is_empty(), "{} violation(s):\n{}", violations.len(), violations.join("\n"));
}
