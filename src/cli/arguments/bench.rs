//! The arguments of `seriatim bench`.

use std::path::PathBuf;

use clap::Args;

use crate::bench::Workload;

#[derive(Debug, Args)]
pub(crate) struct BenchArguments {
    /// What to run; everything by default.
    #[arg(value_enum, value_name = "WORKLOAD")]
    pub(crate) workloads: Vec<Workload>,
    /// How many messages each workload sends, instead of its usual number.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    pub(crate) messages: Option<u32>,
    /// Folder on the disk to measure; by default where temporary files go. What is written there is removed.
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
    /// Print one line of JSON for each workload.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BenchRunArguments {
    #[arg(value_enum)]
    pub(crate) workload: Workload,
    #[arg(long)]
    pub(crate) messages: Option<u32>,
    #[arg(long)]
    pub(crate) dir: Option<PathBuf>,
}
