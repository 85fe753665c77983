//! Definitions: files that declare a queue and what handles its messages.
