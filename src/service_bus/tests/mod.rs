//! What the endpoint promises, as far as no client is needed to see it.

mod dead_letters;
mod translation;
