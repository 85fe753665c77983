//! A person's Ctrl-C in the middle of many: what is under way is finished, and then it is said where to go on.

use tokio::signal::ctrl_c;
use tokio_util::sync::CancellationToken;

use crate::cli::failure::CANNOT_RUN;
use crate::cli::insistence::asked_again;
use crate::cli::out::remark;

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

/// Waits for Ctrl-C; for ever where nobody can be told of it.
async fn pressed() {
    if ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
