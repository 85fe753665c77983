//! Packages, made by the scripts of `release/` of the binary that these tests have.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;

use crate::packages::room::succeeded;

/// The root of the project.
pub(crate) const PROJECT: &str = env!("CARGO_MANIFEST_DIR");

/// Makes a Debian package in this folder, the n-th of this version.
pub(crate) fn deb(folder: &Path, revision: u32) -> PathBuf {
    made("deb.sh", folder, &[("SERIATIM_DEB_REVISION", &revision.to_string())])
}

/// Makes the archive in this folder.
pub(crate) fn archive(folder: &Path) -> PathBuf {
    made("archive.sh", folder, &[])
}

/// Makes the image of a container in this folder, as an archive.
pub(crate) fn image(folder: &Path) -> PathBuf {
    made("container.sh", folder, &[])
}

/// Runs a script, which says last what it has made.
fn made(script: &str, folder: &Path, environment: &[(&str, &str)]) -> PathBuf {
    let mut command = Command::new(Path::new(PROJECT).join("release").join(script));
    let binary = std::env::var("SERIATIM_BINARY").unwrap_or(env!("CARGO_BIN_EXE_seriatim").to_owned());
    command.env("SERIATIM_BINARY", binary).env("SERIATIM_RELEASE_FILES", folder);
    // How well it is packed is no promise, and the program of a test is large.
    command.env("SERIATIM_PACK_LEVEL", "1");
    command.env("SERIATIM_DEB_COMPRESSION", "none").envs(environment.iter().copied());
    let printed = succeeded(script, command.output().expect("the script is there"));
    let line = printed.lines().last().expect("it says what it made");
    let path =
        line.strip_prefix("made ").and_then(|line| line.split_once(" (")).expect("a file and its size").0;
    PathBuf::from(path)
}
