//! Whether what a definition names on this machine is there: programs, and files with secrets.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::path::PathBuf;

use crate::definition::diagnostic::Trouble;
use crate::definition::suggest::nearest;

/// The file of a program: in the folder when the name has a slash, on the PATH when it has none. That is the one that the program will
/// have: the given one, or the daemon's.
pub(crate) fn find_program(name: &str, folder: &Path, path: Option<&str>) -> Result<PathBuf, Trouble> {
    if name.is_empty() {
        return Err(("the program's name is empty".to_owned(), None));
    }
    if name.contains('/') {
        return runnable(&folder.join(name));
    }
    let folders = path.map(OsString::from).or_else(|| std::env::var_os("PATH")).unwrap_or_default();
    // As when it is started: the working folder of a handler is another than the daemon's.
    let mut folders = std::env::split_paths(&folders).filter(|folder| folder.is_absolute());
    let found = folders.find_map(|folder| runnable(&folder.join(name)).ok());
    found.ok_or_else(|| {
        let help = match folder.join(name).is_file() {
            true => format!("write ./{name} for the file in the definition's folder"),
            false => "write its path, or see that it is installed and on the PATH".to_owned(),
        };
        let whose = if path.is_some() { " of its `env`" } else { "" };
        (format!("there is no program `{name}` on the PATH{whose}"), Some(help))
    })
}

fn runnable(path: &Path) -> Result<PathBuf, Trouble> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Err((format!("{} is a folder", path.display()), None)),
        Ok(metadata) if !may_be_run(&metadata) => {
            let help = format!("chmod +x {}", path.display());
            Err((format!("{} may not be run", path.display()), Some(help)))
        }
        Ok(_) => Ok(std::path::absolute(path).unwrap_or_else(|_| path.to_owned())),
        Err(error) => Err(missing(path, &error)),
    }
}

#[cfg(unix)]
fn may_be_run(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn may_be_run(_: &std::fs::Metadata) -> bool {
    true
}

/// Programs that read a script, whose names may go on with a version.
const INTERPRETERS: &[&str] = &["python", "node", "ruby", "perl", "bash", "sh"];

/// How the names of scripts end.
const SCRIPTS: &[&str] = &[".py", ".js", ".mjs", ".rb", ".pl", ".sh"];

/// Whether the script is there that an interpreter is told to read: the mistake that is made most often.
pub(crate) fn check_script(argv: &[String], folder: &Path) -> Result<(), Trouble> {
    let Some((program, arguments)) = argv.split_first() else { return Ok(()) };
    let program = program.rsplit('/').next().unwrap_or_default();
    let program = program.trim_end_matches(|character: char| character.is_ascii_digit() || character == '.');
    if !INTERPRETERS.contains(&program) {
        return Ok(());
    }
    let Some(first) = arguments.iter().find(|argument| !argument.starts_with('-') || is_code(argument))
    else {
        return Ok(());
    };
    let path = folder.join(first);
    if is_code(first) || !SCRIPTS.iter().any(|end| first.ends_with(end)) {
        return Ok(());
    }
    path.metadata().map(drop).map_err(|error| missing(&path, &error))
}

/// Whether an argument says that what follows is no file: a piece of code, or a module.
fn is_code(argument: &str) -> bool {
    matches!(argument, "-c" | "-e" | "-m")
}

/// A file with a secret or a certificate: it has to be there and to be readable, and to hold something.
pub(crate) fn find_file(name: &str, folder: &Path) -> Result<PathBuf, Trouble> {
    let path = folder.join(name);
    match std::fs::metadata(&path) {
        Ok(metadata) if !metadata.is_file() => Err((format!("{} is no file", path.display()), None)),
        Ok(metadata) if metadata.len() == 0 => Err((format!("{} is empty", path.display()), None)),
        Ok(_) => match File::open(&path) {
            Ok(_) => Ok(std::path::absolute(&path).unwrap_or(path)),
            Err(error) => Err(missing(&path, &error)),
        },
        Err(error) => Err(missing(&path, &error)),
    }
}

/// That a file cannot be had; with the name of one that is like it.
fn missing(path: &Path, error: &std::io::Error) -> Trouble {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let folder = path.parent().unwrap_or(Path::new("."));
    let beside = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let beside: Vec<String> = beside.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let near = nearest(&name, beside.iter().map(String::as_str));
    let help = near.map(|near| format!("did you mean {}?", folder.join(near).display()));
    (format!("{} cannot be opened: {error}", path.display()), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_is_not_there_is_missed_and_nothing_else() {
        let check = |argv: &[&str]| {
            let argv: Vec<String> = argv.iter().map(|argument| (*argument).to_owned()).collect();
            check_script(&argv, Path::new("workflows"))
        };
        for argv in [
            &["python3", "orders.py"][..],
            &["python3", "-u", "orders.py", "missing.py"],
            &["/usr/bin/python3.12", "orders.py"],
            &["python3", "-m", "missing.py"],
            &["sh", "-c", "missing.sh"],
            &["sh", "run"],
            &["sh"],
            &["cat", "missing.py"],
        ] {
            assert!(check(argv).is_ok(), "{argv:?}");
        }
        let (message, help) = check(&["python3", "-u", "ordrs.py"]).unwrap_err();
        assert!(message.starts_with("workflows/ordrs.py cannot be opened: No such file"), "{message}");
        assert_eq!(help.as_deref(), Some("did you mean workflows/orders.py?"));
    }
}
