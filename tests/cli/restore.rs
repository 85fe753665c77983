//! `seriatim restore`: only what is sound goes into a folder, and nothing is overwritten unasked.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use seriatim::Engine;
use seriatim::Message;
use seriatim::QueueOptions;

use crate::cli::fake::Ran;
use crate::cli::fake::run_command;
use crate::cli::fake::seriatim;

/// A file with so many messages.
async fn file_with(path: &Path, messages: usize) {
    let engine = Engine::open(path).await.expect("a new file");
    let queue = engine.client().create_queue("orders", QueueOptions::default()).await.expect("a new queue");
    queue
        .send_batch((0..messages).map(|n| Message::new(format!("body number {n}"))))
        .await
        .expect("accepted");
    engine.close().await;
}

fn restore(backup: &Path, data: &Path, arguments: &[&str]) -> Ran {
    run_command(seriatim(&["restore"]).arg(backup).arg("--data").arg(data).args(arguments), "")
}

fn messages(file: &Path) -> u64 {
    seriatim::store::verify(file, |_| {}).expect("it can be looked at").messages
}

#[tokio::test]
async fn a_sound_backup_takes_its_place() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (backup, data) = (folder.path().join("backup"), folder.path().join("data"));
    file_with(&backup, 7).await;
    let ran = restore(&backup, &data, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("7 messages, restored and verified"), "{ran:?}");
    assert_eq!(messages(&data.join("seriatim.redb")), 7);
    let names: Vec<_> =
        data.read_dir().expect("it is there").map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(names.iter().all(|name| !name.to_string_lossy().contains("part")), "{names:?}");
}

#[tokio::test]
async fn what_is_there_is_kept_and_only_replaced_when_that_was_said() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (backup, data) = (folder.path().join("backup"), folder.path().join("data"));
    std::fs::create_dir(&data).expect("a folder");
    file_with(&backup, 7).await;
    file_with(&data.join("seriatim.redb"), 3).await;
    let ran = restore(&backup, &data, &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("--force"), "{ran:?}");
    assert_eq!(messages(&data.join("seriatim.redb")), 3);
    let ran = restore(&backup, &data, &["--force", "--json"]);
    assert_eq!((ran.code, ran.json()[0]["messages"].as_u64()), (Some(0), Some(7)), "{ran:?}");
    assert_eq!(messages(&data.join("seriatim.redb")), 7);
    let kept = ran.json()[0]["kept"].as_str().map(ToOwned::to_owned).expect("it is named");
    assert_eq!(messages(Path::new(&kept)), 3);
    let holder = std::fs::read_to_string(data.join("seriatim.redb.lock")).expect("it is there");
    assert_ne!(holder, std::process::id().to_string(), "a restore says who has the file, as an engine does");
    assert!(holder.parse::<u32>().is_ok(), "{holder:?}");
}

#[tokio::test]
async fn where_the_store_is_a_link_its_file_is_replaced_where_it_is() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let [backup, data, elsewhere] = ["backup", "data", "elsewhere"].map(|name| folder.path().join(name));
    std::fs::create_dir(&data).expect("a folder");
    std::fs::create_dir(&elsewhere).expect("a folder");
    file_with(&backup, 7).await;
    let (target, place) = (data.join("seriatim.redb"), elsewhere.join("a.redb"));
    std::os::unix::fs::symlink(&place, &target).expect("a link");
    let ran = restore(&backup, &data, &["--force"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("a link to a file that is not there"), "{ran:?}");
    assert!(!place.exists());
    file_with(&place, 3).await;
    assert_eq!(restore(&backup, &data, &[]).code, Some(1), "it is there already");
    let ran = restore(&backup, &data, &["--force"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(target.is_symlink() && messages(&place) == 7 && messages(&target) == 7);
    assert_eq!(messages(&elsewhere.join("a.redb.replaced-1")), 3);
}

#[tokio::test]
async fn a_file_that_is_open_is_not_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (backup, data) = (folder.path().join("backup"), folder.path().join("data"));
    std::fs::create_dir(&data).expect("a folder");
    file_with(&backup, 7).await;
    let engine = Engine::open(data.join("seriatim.redb")).await.expect("a new file");
    let ran = restore(&backup, &data, &["--force"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(&format!("process {} has it open", std::process::id())), "{ran:?}");
    // Nor if it is known by another name there.
    let linked = folder.path().join("linked");
    std::fs::create_dir(&linked).expect("a folder");
    std::os::unix::fs::symlink(data.join("seriatim.redb"), linked.join("seriatim.redb")).expect("a link");
    let ran = restore(&backup, &linked, &["--force"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(&format!("process {} has it open", std::process::id())), "{ran:?}");
    engine.close().await;
}

#[tokio::test]
async fn what_a_restore_that_was_ended_has_left_is_restored_under_another_name_only_and_kept_until_then() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let left = data.join("seriatim.redb.part");
    file_with(&left, 7).await;
    let ran = restore(&left, &data, &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("give it another name first"), "{ran:?}");
    assert_eq!(messages(&left), 7);
    let backup = folder.path().join("backup");
    std::fs::rename(&left, &backup).expect("it is there");
    // What another has left is readable for all.
    std::fs::write(&left, "part").expect("it can be written");
    std::fs::set_permissions(&left, Permissions::from_mode(0o644)).expect("it is ours");
    let ran = restore(&backup, &data, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let restored = data.join("seriatim.redb");
    assert_eq!(messages(&restored), 7);
    let mode = restored.metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "it is for nobody else");
}

#[tokio::test]
async fn a_damaged_backup_changes_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (backup, data) = (folder.path().join("backup"), folder.path().join("data"));
    file_with(&backup, 100).await;
    let mut bytes = std::fs::read(&backup).expect("it is there");
    let text = b"body number 17";
    let places = 0..bytes.len() - text.len();
    // One of them may be in pages that nothing uses any more.
    let places: Vec<usize> = places.filter(|at| bytes[*at..].starts_with(text)).collect();
    assert!(!places.is_empty(), "it is in the file");
    for place in places {
        bytes[place] = b'B';
    }
    std::fs::write(&backup, bytes).expect("it can be written");
    let ran = restore(&backup, &data, &[]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("is damaged in"), "{ran:?}");
    assert!(!data.exists(), "not even a folder");
    let ran = restore(&folder.path().join("nowhere"), &data, &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(!data.exists(), "not even a folder");
}

#[tokio::test]
async fn a_backup_that_is_no_file_of_ours_is_named_as_it_was_given() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (backup, data) = (folder.path().join("backup"), folder.path().join("data"));
    std::fs::write(&backup, [7; 100_000]).expect("it can be written");
    let ran = restore(&backup, &data, &[]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let named = format!("cannot open {}: it is not a seriatim file", backup.display());
    assert!(ran.stderr.contains(&named) && !ran.stderr.contains(".part"), "{ran:?}");
    assert!(!data.exists(), "not even a folder");
}
