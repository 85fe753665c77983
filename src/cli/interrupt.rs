//! A person's Ctrl-C in the middle of many: what is under way is finished, and then it is said where to go on.

use tokio::signal::ctrl_c;
use tokio_util::sync::CancellationToken;

use crate::cli::failure::CANNOT_RUN;
use crate::cli::failure::CliFailure;
use crate::cli::insistence::asked_again;
use crate::cli::out::remark;
use crate::cli::shell;

/// Whether somebody wants to stop.
pub(crate) struct Interrupt {
    token: CancellationToken,
}

impl Interrupt {
    /// Listens from now on.
    pub(crate) fn listen() -> Interrupt {
        let token = CancellationToken::new();
        let interrupted = token.clone();
        // Ends with the runtime.
        tokio::spawn(async move {
            pressed().await;
            remark("stopping once what is under way is done; once more stops at once");
            interrupted.cancel();
            asked_again(pressed).await;
            std::process::exit(CANNOT_RUN.into());
        });
        Interrupt { token }
    }

    /// Whether somebody wanted to stop.
    pub(crate) fn came(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Waits until somebody wants to stop.
    pub(crate) async fn wait(&self) {
        self.token.cancelled().await;
    }
}

/// Refuses to do what was not counted to its end: it would be more than a person was told.
pub(crate) fn check_counted(after: Option<&str>) -> Result<(), CliFailure> {
    let refusal = "go on: interrupted while counting; nothing was changed";
    after.map_or(Ok(()), |_| Err(CliFailure::Refused(refusal.to_owned())))
}

/// Says of what ended before its end where to go on.
pub(crate) fn check_finished(after: Option<&str>) -> Result<(), CliFailure> {
    let refusal = |after| format!("go on: interrupted; go on with {}", shell::after(after));
    after.map_or(Ok(()), |after| Err(CliFailure::Refused(refusal(after))))
}

/// Waits for Ctrl-C; for ever where nobody can be told of it.
async fn pressed() {
    if ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
