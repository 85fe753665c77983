//! Schedules: messages that are sent at the instants a cron line names.

pub(crate) mod cron;
pub(crate) mod cron_civil;
pub(crate) mod cron_line;
#[cfg(test)]
mod cron_tests;
pub(crate) mod missed;

pub use crate::schedule::cron::Cron;
pub(crate) use crate::schedule::cron::forget_time_zones;
pub use crate::schedule::cron::time_zones;
pub use crate::schedule::cron_line::CronError;
pub use crate::schedule::missed::DueTicks;
pub use crate::schedule::missed::MissedTicks;
