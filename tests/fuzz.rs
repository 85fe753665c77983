//! The fuzz target on whole files, without a fuzzer; the others are inside the crate (`src/engine/fuzz`).

mod fuzz {
    mod replay;
    mod rich;
    mod store;
}
