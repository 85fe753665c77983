//! Whether what a definition names on this machine is there: programs, and files with secrets.

use std::fs::File;
use std::path::Path;
use std::path::PathBuf;

use crate::definition::suggest::nearest;

/// What is wrong with a file, and what to do about it.
pub(crate) type Trouble = (String, Option<String>);

/// The file of a program: in the folder when the name has a slash, on the PATH when it has none.
pub(crate) fn find_program(name: &str, folder: &Path) -> Result<PathBuf, Trouble> {
    if name.is_empty() {
        return Err(("the program's name is empty".to_owned(), None));
    }
    if name.contains('/') {
        return runnable(&folder.join(name));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).find_map(|folder| runnable(&folder.join(name)).ok());
    found.ok_or_else(|| {
        let help = match folder.join(name).is_file() {
            true => format!("write ./{name} for the file in the definition's folder"),
            false => "write its path, or see that it is installed and on the PATH".to_owned(),
        };
        (format!("there is no program `{name}` on the PATH"), Some(help))
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

/// A file with a secret or a certificate: it has to be there and to be readable, and to hold something.
pub(crate) fn find_file(name: &str, folder: &Path) -> Result<PathBuf, Trouble> {
    let path = folder.join(name);
    let length = File::open(&path).and_then(|file| file.metadata());
    match length {
        Ok(metadata) if !metadata.is_file() => Err((format!("{} is no file", path.display()), None)),
        Ok(metadata) if metadata.len() == 0 => Err((format!("{} is empty", path.display()), None)),
        Ok(_) => Ok(std::path::absolute(&path).unwrap_or(path)),
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
