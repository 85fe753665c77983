#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| seriatim::fuzz_administration(data));
