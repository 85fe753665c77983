//! `seriatim backup`: a consistent copy, written by the daemon while it runs.

use seriatim::Clock;
use seriatim::SystemClock;

use crate::cli::arguments::keep::BackupArguments;
use crate::cli::connect::connect;
use crate::cli::failure::CliFailure;
use crate::cli::out::Stdout;

/// Has the daemon write a copy of its file.
pub(crate) async fn run(arguments: BackupArguments) -> Result<bool, CliFailure> {
    let remote = connect(&arguments.daemon)?;
    let out = Stdout::new(arguments.daemon.json);
    let name = arguments.name.unwrap_or_else(|| name_of(SystemClock::default().now().as_millis()));
    let written = remote.backup(&name).await.map_err(CliFailure::to(format!("write the backup {name}")))?;
    out.json(&written)?;
    out.say(format!("{} records in {}, on the daemon's machine", written.records, written.path))?;
    out.say(format!("check it there with: seriatim verify {}", written.path))?;
    Ok(true)
}

/// A name that sorts by time.
fn name_of(millis: u64) -> String {
    let instant =
        i64::try_from(millis).ok().and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok());
    let when =
        instant.map_or_else(|| millis.to_string(), |instant| instant.strftime("%Y%m%dT%H%M%SZ").to_string());
    format!("seriatim-{when}.redb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backup_that_is_given_no_name_is_named_by_the_time() {
        assert_eq!(name_of(1_801_396_800_000), "seriatim-20270131T120000Z.redb");
    }
}
