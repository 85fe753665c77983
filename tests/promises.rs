//! The promises, each proved by a test of its name.

mod promises {
    mod smoke;
}
