//! TLS to servers: a certificate is always verified, against the roots of the web or of a file.

use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio_rustls::TlsConnector;

use crate::error::Misuse;

/// Connects to servers whose certificate leads to a root of the web, or to one of a PEM file if there is one.
///
/// # Errors
/// [`Misuse`] when the file cannot be read or holds no certificate that can be.
pub(crate) fn tls_connector(ca_file: Option<&Path>) -> Result<TlsConnector, Misuse> {
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| Misuse::new("TLS", error.to_string()))?;
    let config = builder.with_root_certificates(roots(ca_file)?).with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The certificates of a PEM file.
///
/// # Errors
/// [`Misuse`] when it cannot be read or holds none.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Misuse> {
    let wrong = |problem: String| Misuse::new("ca_file", format!("{}: {problem}", path.display()));
    let all = CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))?;
    let all: Vec<_> = all.collect::<Result<_, _>>().map_err(|error| wrong(error.to_string()))?;
    if all.is_empty() { Err(wrong("it holds no certificate".to_owned())) } else { Ok(all) }
}

/// What cannot be parsed is passed over: the bundles of some systems hold such certificates.
fn roots(ca_file: Option<&Path>) -> Result<RootCertStore, Misuse> {
    let Some(path) = ca_file else {
        return Ok(RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() });
    };
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(path)?);
    match roots.is_empty() {
        true => Err(Misuse::new("ca_file", format!("{}: no certificate in it can be read", path.display()))),
        false => Ok(roots),
    }
}
