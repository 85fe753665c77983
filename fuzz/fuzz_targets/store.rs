#![no_main]

#[path = "../../tests/fuzz/rich.rs"]
mod rich;
#[path = "../../tests/fuzz/store.rs"]
mod store;

libfuzzer_sys::fuzz_target!(
    init: {
        // redb may panic on a damaged page; the engine catches that, so it must not end the fuzzer.
        std::panic::set_hook(Box::new(|panic| eprintln!("{panic}")));
    },
    |data: &[u8]| {
        // What is caught nowhere is what is looked for.
        if std::panic::catch_unwind(|| store::store(data)).is_err() {
            std::process::abort();
        }
    }
);
