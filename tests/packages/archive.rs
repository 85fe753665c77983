//! The archive, and the list of what the program is made of.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::packages::made;
use crate::packages::room::succeeded;

#[test]
fn the_archive_holds_a_program_that_runs_from_anywhere() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let archive = made::archive(folder.path());
    let unpacked = Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder.path()).output();
    succeeded("tar", unpacked.expect("tar is there"));
    let name = archive.file_name().expect("a file").to_string_lossy().replace(".tar.gz", "");
    let unpacked = folder.path().join(name);
    let notices = std::fs::read_to_string(unpacked.join("THIRD-PARTY.txt")).expect("it has those of others");
    for part in [
        "\nredb ",
        "\ntokio ",
        "\nring ",
        "Copyright (c) Tokio Contributors",
        "Julien Schmidt",
        "Permission is hereby granted",
    ] {
        assert!(notices.contains(part), "{part}");
    }
    assert!(unpacked.join("LICENSE-MIT").exists() && !notices.contains("\nproptest "));
    let program = unpacked.join("seriatim");
    let version = succeeded("seriatim", Command::new(program).arg("--version").output().expect("it runs"));
    assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
}

#[test]
fn the_list_of_crates_names_what_is_linked_and_nothing_else() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("sbom.json");
    let script = format!("{}/release/sbom.py", made::PROJECT);
    let made = Command::new("python3").arg(script).arg("--to").arg(&file).output();
    succeeded("sbom.py", made.expect("python3 is there"));
    let bom: Value = serde_json::from_str(&std::fs::read_to_string(&file).expect("a file")).expect("JSON");
    let components = bom["components"].as_array().expect("a list");
    let names: BTreeSet<&str> = components.iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(["redb", "tokio", "ring", "clap"].iter().all(|name| names.contains(name)), "{names:?}");
    assert!(
        ["proptest", "criterion", "rusqlite", "syn"].iter().all(|name| !names.contains(name)),
        "{names:?}"
    );
    for one in components {
        let checksum = one["hashes"][0]["content"].as_str().map(str::len);
        assert!(checksum == Some(64) && one["licenses"][0]["expression"].is_string(), "{one}");
    }
    assert_eq!(bom["metadata"]["component"]["version"], env!("CARGO_PKG_VERSION"));
}
