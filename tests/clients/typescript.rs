//! The TypeScript client: compiled, its own tests, and its package in an empty folder.

use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Stdio;
use std::sync::OnceLock;

use crate::fixture::daemon_process::ANYWHERE;
use crate::fixture::daemon_process::DaemonProcess;
use crate::fixture::promises::promises;
use crate::fixture::skip::skip_unless_ci;

/// Runs a program in a folder; what it has printed, or a failure with all it has said.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("SERIATIM_PROGRAM", env!("CARGO_BIN_EXE_seriatim"))
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let (printed, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success(),
        "{program} {arguments:?} ended with {}:\n{printed}{said}",
        output.status
    );
    printed.into_owned()
}

/// A copy of the client with its compiler beside it, compiled once; `None` where there is no Node.
fn compiled() -> Option<&'static PathBuf> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    FOLDER.get_or_init(compile).as_ref()
}

fn compile() -> Option<PathBuf> {
    if let Err(error) = Command::new("npm").arg("--version").output() {
        skip_unless_ci("the TypeScript client", &format!("npm: {error}"));
        return None;
    }
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/typescript");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("typescript");
    std::fs::create_dir_all(&folder).expect("the folder can be made");
    let lock = std::fs::read(client.join("package-lock.json")).expect("there is a lock file");
    let installed = folder.join("installed");
    if std::fs::read(&installed).ok().as_deref() != Some(&lock[..]) {
        for file in ["package.json", "package-lock.json"] {
            std::fs::copy(client.join(file), folder.join(file)).expect("a copy");
        }
        run(&folder, "npm", &["ci", "--no-audit", "--no-fund", "--ignore-scripts"]);
        std::fs::write(&installed, &lock).expect("the folder is there");
    }
    for part in ["src", "tests", "dist"] {
        let _ = std::fs::remove_dir_all(folder.join(part));
    }
    let folder_text = folder.to_string_lossy();
    for part in ["src", "tests", "package.json", "tsconfig.json", "README.md"] {
        run(&client, "cp", &["-r", part, &folder_text]);
    }
    run(&folder, "node_modules/.bin/tsc", &[]);
    Some(folder)
}

fn tests_of(file: &str) {
    if let Some(folder) = compiled() {
        run(folder, "node", &["--test", &format!("tests/{file}")]);
    }
}

promises! {
    the_client_does_what_the_api_offers: tests_of("client.test.mjs");
    handlers_are_called_in_order_by_a_worker_and_by_the_daemon: tests_of("app.test.mjs");
    what_is_not_known_is_asked_again: tests_of("answers.test.mjs");
    locks_are_renewed_in_time_and_known_to_be_lost: tests_of("locks.test.mjs");
    nothing_is_lost_doubled_or_overtaken_when_daemon_and_worker_are_killed: tests_of("kills.test.mjs");
}

#[test]
fn the_packages_bring_the_program_into_an_empty_folder() {
    let Some(client) = compiled() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (to, client) = (folder.path().to_string_lossy().into_owned(), client.to_string_lossy().into_owned());
    let binary = env!("CARGO_BIN_EXE_seriatim");
    let script = ["release/npm.py", "--binary", binary, "--client", &client, "--to", &to];
    let made = run(root, "python3", &script);
    let packages: Vec<&str> = made.lines().collect();
    assert_eq!(packages.len(), 2, "{made}");
    std::fs::write(folder.path().join("package.json"), r#"{"private":true}"#).expect("a new file");
    let install = ["install", "--no-audit", "--no-fund", "--offline", packages[0], packages[1]];
    run(folder.path(), "npm", &install);
    let alone = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(folder.path()).env_remove("SERIATIM_PROGRAM");
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(alone("npx", &["seriatim", "--version"]).starts_with("seriatim "));
    let modules = folder.path().join("node_modules");
    let mut installed = std::fs::read_dir(&modules).expect("a folder").flatten();
    let of_program = installed.find(|entry| entry.file_name().to_string_lossy().starts_with("seriatim-"));
    let of_program = of_program.expect("the program's package").path();
    assert!(modules.join("seriatim/LICENSE-MIT").exists() && of_program.join("THIRD-PARTY.txt").exists());
    let story = "import { DevDaemon } from \"seriatim/testing\";\nconst daemon = await DevDaemon.start();\n\
                 console.log(daemon.process.spawnfile);\nawait daemon.stop();\n";
    std::fs::write(folder.path().join("story.mjs"), story).expect("a new file");
    assert!(alone("node", &["story.mjs"]).contains("node_modules/seriatim-"));
}

#[test]
fn the_package_shows_its_first_result_in_an_empty_folder() {
    let Some(client) = compiled() else { return };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let to = folder.path().to_string_lossy().into_owned();
    let packed = run(client, "npm", &["pack", "--silent", "--ignore-scripts", "--pack-destination", &to]);
    std::fs::write(folder.path().join("package.json"), r#"{"private":true}"#).expect("a new file");
    run(
        folder.path(),
        "npm",
        &["install", "--no-audit", "--no-fund", "--offline", &format!("./{}", packed.trim())],
    );
    let page = std::fs::read_to_string(client.join("README.md")).expect("a page");
    let shown = |name: &str| {
        let (_, behind) = page.split_once(&format!("cat >{name} <<'END'\n")).expect("the page shows it");
        behind.split_once("END\n").expect("it ends").0.to_owned()
    };
    // As the page starts it: a folder without definitions has the demonstration, which defines queues.
    let mut dev = Command::new(env!("CARGO_BIN_EXE_seriatim"));
    dev.args(["dev", "--http", ANYWHERE, "--json"]).stderr(Stdio::null()).current_dir(folder.path());
    let daemon = DaemonProcess::start(&mut dev);
    let story = format!(
        "import {{ writeFileSync }} from \"node:fs\";\n\
         import {{ spawn, execFileSync }} from \"node:child_process\";\nimport {{ createInterface }} from \"node:readline\";\n\
         const env = {{ ...process.env, SERIATIM_URL: \"http://{address}\" }};\n\
         writeFileSync(\"send.mjs\", {send:?});\nwriteFileSync(\"handlers.mjs\", {handlers:?});\n\
         execFileSync(process.execPath, [\"send.mjs\"], {{ env }});\n\
         const worker = spawn(process.execPath, [\"handlers.mjs\"], {{ env }});\nconst lines = [];\n\
         for await (const line of createInterface({{ input: worker.stdout }})) if (lines.push(line) === 2) worker.kill();\n\
         console.log(lines.join(\"|\"));\n",
        address = daemon.address("http").expect("an address"),
        send = shown("send.mjs"),
        handlers = shown("handlers.mjs"),
    );
    std::fs::write(folder.path().join("story.mjs"), story).expect("a new file");
    let printed = run(folder.path(), "node", &["story.mjs"]);
    assert_eq!(printed.trim(), "order-42 { total: 5 }|order-42 { paid: 5 }");
}
