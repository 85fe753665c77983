//! One connection to a server, and the task that carries it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::poll_fn;
use tokio::io::AsyncRead;
use tokio::io::AsyncWrite;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::AsyncMessage;
use tokio_postgres::Client;
use tokio_postgres::Config;
use tokio_postgres::Connection;
use tokio_postgres::NoTls;
use tokio_postgres::config::Host;
use tokio_postgres::config::SslMode;

use crate::error::Misuse;
use crate::limits;
use crate::postgres::error::SourceError;
use crate::postgres::error::late;
use crate::postgres::error::refused;
use crate::postgres::tls::Encryption;
use crate::task;

/// Whether a connection is encrypted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TlsMode {
    /// It is not.
    Off,
    /// It is, and the server's certificate is verified, against the authorities of a PEM file instead of the public ones.
    Verify(Option<PathBuf>),
}

/// Reads the password, if one is needed: each time a server is connected to, so that it can be changed.
pub(crate) type ReadPassword = Arc<dyn Fn() -> Result<Option<String>, Misuse> + Send + Sync>;

/// How a server is reached.
#[derive(Clone)]
pub(crate) struct ConnectOptions {
    /// `postgres://user@host:port/database`, without a password.
    pub(crate) url: String,
    /// Reads the password.
    pub(crate) password: ReadPassword,
    /// Whether the connection is encrypted.
    pub(crate) tls: TlsMode,
}

/// A connection that is carried until it is dropped.
pub(crate) struct ServerConnection {
    pub(crate) client: Client,
    task: JoinHandle<()>,
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ConnectOptions {
    /// Connects; every notification of the connection, and its end, wakes `woken`.
    ///
    /// # Errors
    /// [`SourceError::Connect`] with what the server says; never with the password.
    pub(crate) async fn connect(&self, woken: Arc<Notify>) -> Result<ServerConnection, SourceError> {
        let config = self.config()?;
        let server = server(&config);
        match timeout(limits::SOURCE_CONNECT_MAX, self.open(&config, woken)).await {
            Ok(Ok(connected)) => Ok(connected),
            Ok(Err(Unready::Misuse(misuse))) => Err(misuse.into()),
            Ok(Err(Unready::Refused(error))) => {
                Err(SourceError::Connect { server, problem: refused(&error) })
            }
            Err(_) => Err(SourceError::Connect { server, problem: late("connecting") }),
        }
    }

    async fn open(&self, config: &Config, woken: Arc<Notify>) -> Result<ServerConnection, Unready> {
        let (client, task) = match &self.tls {
            TlsMode::Off => {
                let (client, connection) = config.connect(NoTls).await?;
                (client, task::spawn(carry(connection, woken)))
            }
            TlsMode::Verify(roots) => {
                let encryption = Encryption::new(roots.as_deref()).map_err(Unready::Misuse)?;
                let (client, connection) = config.connect(encryption).await?;
                (client, task::spawn(carry(connection, woken)))
            }
        };
        let opened = ServerConnection { client, task };
        // A server does not see that nobody waits for an answer any more: what hangs behind a lock would pile up.
        let most_ms = limits::SOURCE_STATEMENT_MAX.as_millis();
        opened.client.batch_execute(&format!("set statement_timeout = {most_ms}")).await?;
        Ok(opened)
    }

    fn config(&self) -> Result<Config, Misuse> {
        let mut config: Config =
            self.url.parse().map_err(|_| Misuse::new("postgres", "is not a URL of a PostgreSQL database"))?;
        if let Some(password) = (self.password)()? {
            config.password(password);
        }
        config.ssl_mode(match self.tls {
            TlsMode::Off => SslMode::Disable,
            TlsMode::Verify(_) => SslMode::Require,
        });
        config
            .application_name("seriatim")
            .connect_timeout(limits::SOURCE_CONNECT_MAX)
            .keepalives_idle(limits::SOURCE_KEEPALIVE);
        Ok(config)
    }
}

enum Unready {
    Misuse(Misuse),
    Refused(tokio_postgres::Error),
}

impl From<tokio_postgres::Error> for Unready {
    fn from(error: tokio_postgres::Error) -> Unready {
        Unready::Refused(error)
    }
}

/// Checks the address of a database, and says whether its server is on this machine.
///
/// # Errors
/// [`Misuse`] says what is wrong, and nothing of a password.
pub(crate) fn check_url(url: &str) -> Result<bool, Misuse> {
    let wrong = |problem: &'static str| Misuse::new("postgres", problem);
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(wrong("is not a URL of a PostgreSQL database: write postgres://user@host:port/database"));
    }
    let config: Config = url.parse().map_err(|_| {
        wrong("is not a URL of a PostgreSQL database: write postgres://user@host:port/database")
    })?;
    if config.get_password().is_some() {
        return Err(wrong("has a password in it: leave it out, and name `password_file` or `password_env`"));
    }
    if config.get_hosts().is_empty() {
        return Err(wrong("names no host"));
    }
    if config.get_user().is_none() {
        return Err(wrong("names no user: write postgres://user@host:port/database"));
    }
    if config.get_dbname().is_none() {
        return Err(wrong("names no database: write postgres://user@host:port/database"));
    }
    let is_local = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    };
    // Where an address is given, the name of the host is not looked up.
    let is_near = config.get_hostaddrs().iter().all(IpAddr::is_loopback);
    Ok(is_near && config.get_hosts().iter().all(is_local))
}

/// Host and port of the first server a configuration names.
fn server(config: &Config) -> String {
    let port = config.get_ports().first().copied().unwrap_or(5432);
    match config.get_hosts().first() {
        Some(Host::Tcp(host)) => format!("{host}:{port}"),
        Some(Host::Unix(folder)) => folder.join(format!(".s.PGSQL.{port}")).display().to_string(),
        None => format!("port {port}"),
    }
}

/// Carries a connection until it ends.
async fn carry<S, T>(mut connection: Connection<S, T>, woken: Arc<Notify>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
        if matches!(message, AsyncMessage::Notification(_)) {
            woken.notify_one();
        }
    }
    woken.notify_one();
}

/// Waits for an answer of the server, as long as one statement may take.
pub(crate) async fn answered<T>(
    asking: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, String> {
    answered_within(limits::SOURCE_STATEMENT_MAX, asking).await
}

async fn answered_within<T>(
    most: Duration,
    asking: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, String> {
    match timeout(most, asking).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(crate::postgres::error::describe(&error)),
        Err(_) => Err(late("a statement")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_user_host_and_database_and_no_password() {
        assert_eq!(check_url("postgres://app@localhost/shop"), Ok(true));
        assert_eq!(check_url("postgres://app@[::1]:5433/shop"), Ok(true));
        assert_eq!(check_url("postgresql://app@%2Fvar%2Frun%2Fpostgresql/shop"), Ok(true));
        assert_eq!(check_url("postgres://app@db.example:5433/shop"), Ok(false));
        assert_eq!(check_url("postgres://app@localhost/shop?hostaddr=10.0.0.5"), Ok(false));
        for (url, problem) in [
            ("mysql://app@db/shop", "is not a URL"),
            ("postgres://app@db:port/shop", "is not a URL"),
            ("postgres://app:secret@db/shop", "has a password"),
            ("postgres://app@db", "names no database"),
            ("postgres://db/shop", "names no user"),
        ] {
            let wrong = check_url(url).unwrap_err().to_string();
            assert!(wrong.contains(problem) && !wrong.contains("secret"), "{url}: {wrong}");
        }
    }
}
