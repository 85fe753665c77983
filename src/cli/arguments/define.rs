//! The arguments of the verbs about definition files: check.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The folder with the definitions.
    #[arg(default_value = "workflows")]
    pub(crate) folder: PathBuf,
    /// Print lines of JSON: one for each mistake, or one for each definition when there is none.
    #[arg(long)]
    pub(crate) json: bool,
}
