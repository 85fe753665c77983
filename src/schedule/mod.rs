//! Schedules: messages that are sent at the instants a cron line names.
