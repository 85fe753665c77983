//! The arguments of the verbs that look after files: verify, compact, backup, restore, export, import.

use std::path::PathBuf;

use clap::Args;

use crate::cli::arguments::daemon::DaemonArguments;

#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The file.
    pub(crate) file: PathBuf,
    /// How many damages are printed; the total always is.
    #[arg(long, default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print the result as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompactArguments {
    /// The file.
    pub(crate) file: PathBuf,
    /// Print the result as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// The name of the copy, in the folder on its machine in which the daemon keeps backups; by default one made of the
    /// time.
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArguments {
    /// The backup.
    pub(crate) file: PathBuf,
    /// The data folder it is restored to; no daemon may have it open.
    #[arg(long, env = "SERIATIM_DATA", default_value = "seriatim-data")]
    pub(crate) data: PathBuf,
    /// Replaces the file that is there; it is kept beside the new one.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the result as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// The queue.
    pub(crate) queue: String,
    /// File for the lines; by default stdout.
    #[arg(long, short)]
    pub(crate) output: Option<PathBuf>,
    /// Leaves dead letters out.
    #[arg(long)]
    pub(crate) no_dead_letters: bool,
    /// Goes on from the message with this number; the first has 1.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) from: u64,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ImportArguments {
    /// The queue.
    pub(crate) queue: String,
    /// The file of lines, as `seriatim export` writes them; by default stdin.
    pub(crate) file: Option<PathBuf>,
    /// Instead of lines, the rows of the table that the queue's definition in this folder names under [source]. How far that is is not
    /// kept, and no row is deleted.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["file", "revive_dead_letters"])]
    pub(crate) source: Option<PathBuf>,
    /// Sends dead letters too, to be handled like the others; otherwise they are left out.
    #[arg(long)]
    pub(crate) revive_dead_letters: bool,
    #[command(flatten)]
    pub(crate) feed: FeedArguments,
    #[command(flatten)]
    pub(crate) daemon: DaemonArguments,
}

/// How lines are sent.
#[derive(Debug, Args)]
pub(crate) struct FeedArguments {
    /// Goes on from this line, the first is 1.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) from_line: u64,
}
