#![no_main]

#[path = "../../tests/fuzz/send.rs"]
mod send;

libfuzzer_sys::fuzz_target!(|data: &[u8]| send::send(data));
