//! seriatim.
