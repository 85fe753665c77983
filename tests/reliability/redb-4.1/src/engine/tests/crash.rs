//! The disk and the power cuts, as the crash tests of the store have them.

#![allow(dead_code, reason = "only a part of them is needed")]

#[path = "../../../../../../src/engine/tests/crash/cut.rs"]
pub(crate) mod cut;
#[path = "../../../../../../src/engine/tests/crash/disk.rs"]
pub(crate) mod disk;
#[path = "../../../../../../src/engine/tests/crash/image.rs"]
pub(crate) mod image;
#[path = "../../../../../model/random.rs"]
pub(crate) mod random;
