//! Whole lifecycles as text: commands, and the engine's recorded answers under each.
//!
//! `SERIATIM_REWRITE=1` records the answers anew. Commit the difference only if you understand what changed.

mod scripts {
    mod line;
    mod stage;

    use std::path::PathBuf;

    use crate::scripts::stage::Stage;

    #[tokio::test]
    async fn every_lifecycle_goes_as_it_was_recorded() {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/scripts/data");
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
            .expect("the scripts are there")
            .map(|entry| entry.expect("a readable folder").path())
            .collect();
        files.sort();
        assert!(files.len() >= 10, "the scripts are found");
        for file in files {
            let recorded = std::fs::read_to_string(&file).expect("a readable script");
            let played = play(&file.display().to_string(), &recorded).await;
            if std::env::var_os("SERIATIM_REWRITE").is_some() {
                std::fs::write(&file, played).expect("a writable script");
                continue;
            }
            if let Some(difference) = difference(&recorded, &played) {
                panic!("{}: {difference}", file.display());
            }
        }
    }

    #[tokio::test]
    async fn a_wrong_answer_in_a_script_is_found() {
        let script = "queue order=arrival\n  created\nsend w a\n  accepted 2\n";
        let played = play("planted", script).await;
        let difference = difference(script, &played).unwrap();
        assert!(difference.contains("line 4") && difference.contains("accepted 1"), "{difference}");
    }

    /// Plays a script: keeps its commands and comments, and writes the engine's answers under the commands.
    async fn play(name: &str, script: &str) -> String {
        let mut stage = Stage::new().await;
        let mut played = String::new();
        for (number, line) in script.lines().enumerate() {
            if line.starts_with("  ") {
                continue;
            }
            played.push_str(line);
            played.push('\n');
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("{name}:{}", number + 1);
            for answer in stage.play(&place, line).await {
                played.push_str("  ");
                played.push_str(&answer);
                played.push('\n');
            }
        }
        played
    }

    fn difference(recorded: &str, played: &str) -> Option<String> {
        let (mut recorded, mut played) = (recorded.lines(), played.lines());
        for number in 1.. {
            match (recorded.next(), played.next()) {
                (None, None) => return None,
                (was, is) if was == is => {}
                (was, is) => return Some(format!("line {number} was {was:?}, is {is:?}")),
            }
        }
        None
    }
}
