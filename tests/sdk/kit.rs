//! The SDKs: installed once for each list of pinned packages, into the build folder, and found there afterwards.

use std::fs;
use std::hash::DefaultHasher;
use std::hash::Hash;
use std::hash::Hasher;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

/// What a script is run with.
#[derive(Clone)]
pub(crate) struct Kit {
    /// The interpreter.
    pub(crate) program: PathBuf,
    /// Where the scripts are that it runs.
    pub(crate) scripts: PathBuf,
}

/// Where the scenarios are written.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sdk")
}

/// Where the examples for users are.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/service-bus")
}

impl Kit {
    /// A script of this name: a scenario, or an example.
    pub(crate) fn script(&self, name: &str) -> PathBuf {
        let scenario = self.scripts.join(name);
        if scenario.exists() { scenario } else { examples().join(name) }
    }
}

/// The kit of a folder of scenarios, or why it cannot be had.
pub(crate) fn kit(folder: &str) -> Result<Kit, String> {
    static PYTHON: OnceLock<Result<Kit, String>> = OnceLock::new();
    static NODE: OnceLock<Result<Kit, String>> = OnceLock::new();
    static RUST: OnceLock<Result<Kit, String>> = OnceLock::new();
    match folder {
        "python" => PYTHON.get_or_init(python).clone(),
        "rust" => RUST.get_or_init(rust).clone(),
        _ => NODE.get_or_init(node).clone(),
    }
}

fn python() -> Result<Kit, String> {
    let scripts = sources().join("python");
    let requirements = scripts.join("requirements.txt");
    let version = said(Command::new("python3").arg("--version"))?;
    let folder = folder("python", &[&read(&requirements)?, &version]);
    let program = folder.join("bin/python3");
    install(&folder, |folder| {
        said(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        said(Command::new(&program).args(["-m", "pip", "install", "--quiet", "-r"]).arg(&requirements))
    })?;
    Ok(Kit { program, scripts })
}

fn node() -> Result<Kit, String> {
    let sources = sources().join("js");
    let [manifest, lock] = ["package.json", "package-lock.json"].map(|name| sources.join(name));
    let version = said(Command::new("node").arg("--version"))?;
    let folder = folder("node", &[&read(&manifest)?, &read(&lock)?, &version]);
    install(&folder, |folder| {
        for file in [&manifest, &lock] {
            copy(file, folder)?;
        }
        let mut npm = Command::new("npm");
        said(npm.args(["ci", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(folder))
    })?;
    // A module finds packages only above itself, so the scripts are run beside them.
    for scripts in [sources, examples()] {
        for entry in fs::read_dir(scripts).map_err(|error| error.to_string())? {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.extension().is_some_and(|extension| extension == "mjs") {
                copy(&path, &folder)?;
            }
        }
    }
    Ok(Kit { program: PathBuf::from("node"), scripts: folder })
}

/// The program with all scenarios, built beside the other kits: what it needs is no dependency of this crate.
fn rust() -> Result<Kit, String> {
    let scripts = sources().join("rust");
    let [manifest, lock] = ["Cargo.toml", "Cargo.lock"].map(|name| scripts.join(name));
    let folder = folder("rust", &[&read(&manifest)?, &read(&lock)?]);
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--manifest-path"]).arg(manifest);
    said(cargo.arg("--target-dir").arg(&folder))?;
    Ok(Kit { program: folder.join("debug/azservicebus"), scripts })
}

/// A folder for exactly these packages.
fn folder(name: &str, about: &[&str]) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    about.hash(&mut hasher);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("sdk-{name}-{:016x}", hasher.finish()))
}

/// Installs into a folder, unless that was done before.
fn install(folder: &Path, packages: impl FnOnce(&Path) -> Result<String, String>) -> Result<(), String> {
    let done = folder.join("installed");
    if done.exists() {
        return Ok(());
    }
    // What another run left half done is no start.
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    packages(folder)?;
    fs::write(done, "").map_err(|error| error.to_string())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(file: &Path, folder: &Path) -> Result<(), String> {
    let to = folder.join(file.file_name().unwrap_or_default());
    fs::copy(file, to).map(drop).map_err(|error| format!("{}: {error}", file.display()))
}

/// Runs a command to its end; what it said, or why it failed.
fn said(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr))),
    }
}
