//! The fuzz target on whole files, without a fuzzer; the others are inside the crate (`src/engine/fuzz`).

mod fuzz {
    mod amqp;
    mod definition;
    mod replay;
    mod rich;
    mod send;
    mod store;
}
