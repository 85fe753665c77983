//! What the fuzzer has found, and what was made up by hand, on every compiler.

use std::path::Path;

use super::store::store;

#[test]
fn a_file_of_which_bytes_were_changed_is_refused_or_serves_what_was_sent() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/store");
    // The published package has no corpus.
    for file in corpus.read_dir().into_iter().flatten() {
        let file = file.expect("the folder can be read").path();
        println!("{}", file.display());
        store(&std::fs::read(file).expect("it is there"));
    }
}

#[test]
fn bits_flipped_all_over_are_refused_or_serve_what_was_sent() {
    for which in 0..2 {
        for n in 0..40_u32 {
            let place = n.wrapping_mul(2_654_435_761).to_le_bytes();
            store(&[&[which], &[0; 4][..], &place, &[1 << (n % 8)]].concat());
        }
    }
}
