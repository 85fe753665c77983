//! A definition file of any bytes: it is read, or every mistake has a place that can be shown; nothing panics.

use std::path::Path;

use seriatim::definition::Definitions;
use seriatim::definition::LoadError;

/// Reads a definition, as if it stood among those that ship.
pub(crate) fn definition(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    // A fuzzer's package is a folder below the one that they ship with.
    let mut folders =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("workflows"));
    let file = folders.find(|folder| folder.is_dir()).expect("definitions ship").join("fuzzed.toml");
    let Err(LoadError::Mistakes(mistakes)) = Definitions::from_texts([(file.as_path(), &*text)]) else {
        return;
    };
    assert!(!mistakes.is_empty(), "what is refused has a mistake");
    for mistake in mistakes {
        assert!(!mistake.render(false).is_empty());
        assert!(!mistake.message.is_empty(), "{mistake}");
    }
}
