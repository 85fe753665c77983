//! How a node shows the NATS servers who it is, and whom it trusts.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::ConnectOptions;

use crate::cluster::error::ClusterError;
use crate::limits;

/// How a node shows the NATS servers who it is, and whom it trusts; nothing of it by default.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct NatsAccess {
    /// A file of credentials, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// A user and a password.
    pub login: Option<(String, String)>,
    /// A file of certificates that are trusted beside those of the system; the connection is encrypted then.
    pub ca_file: Option<PathBuf>,
    /// The files of the certificate that the node shows, and of its key; the connection is encrypted then.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl fmt::Debug for NatsAccess {
    /// Says no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NatsAccess { credentials, login, ca_file, certificate } = self;
        let mut shown = f.debug_struct("NatsAccess");
        shown.field("credentials", credentials).field("login", &login.as_ref().map(|(user, _)| user));
        shown.field("ca_file", ca_file).field("certificate", certificate).finish()
    }
}

impl NatsAccess {
    /// The options of a connection with all of it. A server whose machine vanishes is missed after three leases, and after some seconds
    /// at most if these are short.
    ///
    /// # Errors
    /// [`ClusterError::Options`] when there are two ways to say who the node is; [`ClusterError::System`] when a file cannot be read.
    pub(crate) async fn connect_options(
        &self,
        name: String,
        lease: Duration,
    ) -> Result<ConnectOptions, ClusterError> {
        if self.credentials.is_some() && self.login.is_some() {
            let what = "there are credentials, and a user with a password: one of both is enough";
            return Err(ClusterError::Options(what.to_owned()));
        }
        let mut options = ConnectOptions::new().name(name).connection_timeout(limits::NATS_CONNECT);
        options = options.ping_interval(lease.max(limits::NATS_PING_MIN));
        if let Some(file) = &self.credentials {
            options = options.credentials_file(file).await?;
        }
        if let Some((user, password)) = &self.login {
            options = options.user_and_password(user.clone(), password.clone());
        }
        if let Some(file) = &self.ca_file {
            options = options.add_root_certificates(file.clone()).require_tls(true);
        }
        if let Some((certificate, key)) = &self.certificate {
            options = options.add_client_certificate(certificate.clone(), key.clone()).require_tls(true);
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let access =
            NatsAccess { login: Some(("ada".to_owned(), "hunter2".to_owned())), ..NatsAccess::default() };
        let shown = format!("{access:?}");
        assert!(shown.contains("ada") && !shown.contains("hunter2"), "{shown}");
    }
}
