//! `seriatim verify`.

use seriatim::error::OpenError;
use seriatim::store::Verification;
use seriatim::store::VerifyProgress;
use seriatim::store::VerifyStep;

use crate::cli::arguments::keep::VerifyArguments;
use crate::cli::failure::CliFailure;
use crate::cli::failure::unless_cut_off;
use crate::cli::out::Stdout;
use crate::cli::out::write_line;
use crate::cli::progress::Progress;
use crate::cli::word::counted;

/// Verifies a file; true when it is sound.
pub(crate) fn run(arguments: &VerifyArguments) -> Result<bool, CliFailure> {
    let progress = Progress::new("pages");
    let found = seriatim::store::verify(&arguments.file, |seen| show(&progress, seen));
    progress.end();
    let found = found.map_err(unopened)?;
    unless_cut_off(match arguments.json {
        true => write_line(&serde_json::to_vec(&found)?).map_err(CliFailure::from),
        false => print(arguments, &found),
    })?;
    Ok(found.is_sound())
}

/// Who verifies a file that is too damaged to be read is not told to verify it.
fn unopened(error: OpenError) -> CliFailure {
    match error {
        OpenError::Damaged { path, detail } => {
            let what = "what else it holds cannot be read; restore a backup";
            CliFailure::Other(format!("verify {}: it is damaged: {detail}; {what}", path.display()).into())
        }
        error => error.into(),
    }
}

fn print(arguments: &VerifyArguments, found: &Verification) -> Result<(), CliFailure> {
    let out = Stdout::new(false);
    for damage in found.damages.iter().take(arguments.limit) {
        out.say(damage.to_string())?;
    }
    let named = found.damages.len().min(arguments.limit) as u64;
    if named < found.damages_total {
        out.say(format!("... and {} more", found.damages_total - named))?;
    }
    let Verification { rows, commits, messages, .. } = found;
    let verdict = match found.damages_total {
        0 => "sound".to_owned(),
        1 => "DAMAGED in 1 place".to_owned(),
        total => format!("DAMAGED in {total} places"),
    };
    let compared = if found.compared { "" } else { "; rows were not compared with each other" };
    let file = arguments.file.display();
    let (rows, commits) = (counted(*rows, "row"), counted(*commits, "commit"));
    Ok(out.say(match found.compared {
        true => {
            format!("{file}: {verdict}; {}, {rows}, {commits} in the journal", counted(*messages, "message"))
        }
        false => format!("{file}: {verdict}; {rows}, {commits} in the journal{compared}"),
    })?)
}

fn show(progress: &Progress, seen: VerifyProgress) {
    progress.begin(match seen.step {
        VerifyStep::Pages => "pages",
        VerifyStep::Journal => "of the journal",
        VerifyStep::Rows => "rows",
        _ => "rows compared",
    });
    progress.show(seen.rows);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_damaged_to_be_read_is_not_said_to_need_verifying() {
        let described =
            unopened(OpenError::Damaged { path: "a.redb".into(), detail: "why".to_owned() }).to_string();
        assert!(described.starts_with("verify a.redb: it is damaged: why; "), "{described}");
        assert!(!described.contains("`seriatim verify`"), "{described}");
    }
}
