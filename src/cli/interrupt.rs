//! A person's Ctrl-C in the middle of many: what is under way is finished, and then it is said where to go on.

use tokio::signal::ctrl_c;
use tokio_util::sync::CancellationToken;

use crate::cli::failure::CANNOT_RUN;
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
            if ctrl_c().await.is_ok() {
                remark("stopping once what is under way is done; once more stops at once");
                interrupted.cancel();
            }
            if ctrl_c().await.is_ok() {
                std::process::exit(CANNOT_RUN.into());
            }
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
