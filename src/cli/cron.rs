//! `seriatim cron`: schedules and their next ticks.

use crate::cli::arguments::look::CronArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::moment::LocalTime;
use crate::cli::out::Stdout;
use crate::cli::table::TextTable;

/// Prints every schedule with its next ticks.
pub(crate) async fn run(arguments: CronArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    let schedules = remote.schedules().await.map_err(CliFailure::to("list the schedules"))?;
    let present = LocalTime::here();
    let mut table = TextTable::new(&["queue", "schedule", "cron", "zone", "last", "next", "after that"]);
    let is_meant = |queue: &str| arguments.queue.as_deref().is_none_or(|meant| meant == queue);
    for schedule in schedules.into_iter().filter(|schedule| is_meant(&schedule.queue)) {
        out.json(&schedule)?;
        let mut next = schedule.next.iter();
        table.row([
            schedule.queue.clone(),
            schedule.name.clone(),
            schedule.cron.clone(),
            schedule.time_zone.clone(),
            schedule.last.map(|at| present.age(at)).unwrap_or_else(|| "never".to_owned()),
            next.next().map(|at| present.full(*at)).unwrap_or_else(|| "never".to_owned()),
            next.map(|at| present.local(*at)).collect::<Vec<_>>().join(" "),
        ]);
    }
    match table.is_empty() {
        true => out.say("there are no schedules")?,
        false => out.say(table.to_string())?,
    }
    Ok(true)
}
