//! `seriatim cron`: schedules and their next ticks.

use crate::cli::arguments::look::CronArguments;
use crate::cli::connect::connect;
use crate::cli::failure::Failure;
use crate::cli::moment::Present;
use crate::cli::out::Out;
use crate::cli::table::Table;

/// Prints every schedule with its next ticks.
pub(crate) async fn run(arguments: CronArguments) -> Result<bool, Failure> {
    let remote = connect(&arguments.daemon)?;
    let out = Out::new(arguments.daemon.json);
    let schedules = remote.schedules().await.map_err(Failure::to("list the schedules"))?;
    let present = Present::here();
    let mut table = Table::new(&["queue", "schedule", "cron", "zone", "last", "next", "after that"]);
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
