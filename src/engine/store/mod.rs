//! The bytes on disk. Knows rows, no rule.
