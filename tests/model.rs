//! The engine against a naive reference: random operations, and after each the same answer and the same state.

mod model {
    mod batch;
    mod chaos;
    mod drive;
    mod follow;
    mod random;
    mod reference;
    mod seeds;
    mod verified;
}
