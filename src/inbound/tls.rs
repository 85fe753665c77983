//! TLS: certificates and keys from PEM files.

use std::io;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use thiserror::Error;

/// Where a server's certificate is.
#[derive(Clone, Debug)]
pub(crate) struct TlsFiles {
    /// The certificate and those above it, as PEM.
    pub(crate) certificate: PathBuf,
    /// Its private key, as PEM.
    pub(crate) key: PathBuf,
    /// Who must have signed the certificates of clients, as PEM; without it, clients need none.
    pub(crate) client_ca: Option<PathBuf>,
}

/// Why TLS cannot be set up.
#[derive(Debug, Error)]
pub(crate) enum TlsError {
    /// A file is not what it should be.
    #[error("cannot read {path} as PEM: {problem}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// Certificate and key do not go together, or one of them cannot be used.
    #[error("cannot use the certificate: {0}")]
    Certificate(String),
}

impl TlsFiles {
    /// Reads the files. TLS 1.2 and 1.3; HTTP/1.1 is what is spoken.
    pub(crate) fn read(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let unusable = |error: &dyn std::error::Error| TlsError::Certificate(error.to_string());
        let certificates = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| wrong(&self.key, error))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(&error))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = rustls::RootCertStore::empty();
                roots.add_parsable_certificates(self::certificates(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().map_err(|error| unusable(&error))?)
            }
        };
        let mut config = builder.with_single_cert(certificates, key).map_err(|error| unusable(&error))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_file_iter(path).map_err(|error| wrong(path, error))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| wrong(path, error))?;
    match all.is_empty() {
        true => Err(wrong(path, pem::Error::NoItemsFound)),
        false => Ok(all),
    }
}

/// The problem in words; an I/O error in those of the operating system. Nothing of the content is shown.
fn wrong(path: &Path, error: pem::Error) -> TlsError {
    let problem = match error {
        pem::Error::Io(error) => io::Error::from(error.kind()).to_string(),
        pem::Error::NoItemsFound => "nothing of the expected kind is in it".to_owned(),
        _ => "it is not PEM".to_owned(),
    };
    TlsError::File { path: path.to_owned(), problem }
}
