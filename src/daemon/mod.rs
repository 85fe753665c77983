//! The daemon: definitions, handlers, schedules and servers around one engine.
