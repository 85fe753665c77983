//! The disk and the power cuts, as the crash tests of the store have them.

#![allow(dead_code, reason = "only a part of them is needed")]

#[path = "../../../../../src/engine/crash/cut.rs"]
pub(crate) mod cut;
#[path = "../../../../../src/engine/crash/disk.rs"]
pub(crate) mod disk;
#[path = "../../../../../src/engine/crash/image.rs"]
pub(crate) mod image;
#[path = "../../../../model/random.rs"]
pub(crate) mod random;
