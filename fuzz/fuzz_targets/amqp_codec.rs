#![no_main]

#[path = "../../tests/fuzz/amqp.rs"]
mod amqp;

libfuzzer_sys::fuzz_target!(|data: &[u8]| amqp::codec(data));
