#![no_main]

#[path = "../../tests/fuzz/definition.rs"]
mod definition;

libfuzzer_sys::fuzz_target!(|data: &[u8]| definition::definition(data));
