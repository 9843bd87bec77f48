//! TLS with a certificate of the owner's: two files, read again when they change, so that a renewed certificate needs no restart.

use crate::base::error::{Error, Result};
use crate::base::file::{self, Stamp};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{ClientHello, ResolvesServerCert};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error as TlsError, ServerConfig};
use zeroize::Zeroizing;

/// Most bytes of either file.
const MAX: u64 = 1 << 20;

/// What accepts connections with the certificate in `certificate` (PEM, the server's own first) and its key in `key` (PEM).
///
/// # Errors
/// `invalid_arguments` for files that hold no certificate or no key, or a key that is another certificate's, and what the file
/// system says.
pub(super) fn acceptor(certificate: PathBuf, key: PathBuf) -> Result<TlsAcceptor> {
    let provider = Arc::new(ring::default_provider());
    let files = Files { certificate, key, provider: provider.clone(), last: Mutex::new(None) };
    files.current()?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| Error::internal(format!("TLS cannot be set up: {e}")))?;
    let mut config = config.with_no_client_auth().with_cert_resolver(Arc::new(files));
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    last: Mutex<Option<Last>>,
}

/// What was read last, and from which versions of the files.
struct Last {
    stamps: [Option<Stamp>; 2],
    key: Arc<CertifiedKey>,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl Files {
    /// The certificate of now. New files that do not go together, as while one of them is being written, leave the old one in use.
    fn current(&self) -> Result<Arc<CertifiedKey>> {
        let stamps = [&self.certificate, &self.key].map(|path| Stamp::of(path).unwrap_or(None));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = last.as_ref().filter(|last| last.stamps == stamps) {
            return Ok(last.key.clone());
        }
        // Files of this moment may be written again under the same dates.
        let settled = stamps.iter().flatten().all(Stamp::settled);
        let stamps = if settled { stamps } else { [None; 2] };
        match (self.load(), &mut *last) {
            (Ok(key), last) => {
                let key = Arc::new(key);
                *last = Some(Last { stamps, key: key.clone() });
                Ok(key)
            }
            (Err(e), Some(last)) => {
                tracing::warn!(code = e.code(), "the new certificate is not used");
                last.stamps = stamps;
                Ok(last.key.clone())
            }
            (Err(e), None) => Err(e),
        }
    }

    fn load(&self) -> Result<CertifiedKey> {
        let pem = file::read_capped(&self.certificate, MAX)?;
        let chain: Vec<CertificateDer<'static>> =
            CertificateDer::pem_slice_iter(&pem).collect::<Result<_, _>>().unwrap_or_default();
        if chain.is_empty() {
            return Err(Error::invalid(format!("`{}` holds no certificate", self.certificate.display()))
                .hint("it must be PEM: -----BEGIN CERTIFICATE-----, the server's own first"));
        }
        let pem = Zeroizing::new(file::read_capped(&self.key, MAX)?);
        // What the parser says could quote the file.
        let key = PrivateKeyDer::from_pem_slice(&pem).map_err(|_| {
            Error::invalid(format!("`{}` holds no private key", self.key.display()))
                .hint("it must be PEM: -----BEGIN PRIVATE KEY-----, without a password")
        })?;
        CertifiedKey::from_der(chain, key, &self.provider).map_err(|e| {
            let what = match e {
                TlsError::InconsistentKeys(_) => "belongs to another certificate than",
                _ => "cannot be used with",
            };
            Error::invalid(format!("the key in `{}` {what} `{}`", self.key.display(), self.certificate.display()))
                .hint("name the key that the certificate was made with, as `tls_key` under [server]")
        })
    }
}

impl ResolvesServerCert for Files {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current().ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Kind;

    fn files(dir: &tempfile::TempDir) -> Files {
        let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
        Files { certificate, key, provider: Arc::new(ring::default_provider()), last: Mutex::new(None) }
    }

    fn write(files: &Files, certificate: &str, key: &str) {
        std::fs::write(&files.certificate, certificate).unwrap();
        std::fs::write(&files.key, key).unwrap();
    }

    fn made() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn files_that_are_no_certificate_and_key_are_refused_and_not_quoted() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir);
        assert_eq!(files.current().unwrap_err().kind(), Kind::NotFound);
        let ((certificate, key), (_, other)) = (made(), made());
        for (certificate, key, part) in [
            ("", key.as_str(), "no certificate"),
            (key.as_str(), key.as_str(), "no certificate"),
            (&certificate, "", "no private key"),
            (&certificate, &certificate, "no private key"),
            (&certificate, &key.replace("\n", "\nAAAA"), "key"),
            (&certificate, &other, "another certificate"),
        ] {
            write(&files, certificate, key);
            let e = files.current().unwrap_err();
            assert!(e.kind() == Kind::InvalidArguments && e.message().contains(part), "{part}: {e}");
            let secret = key.lines().nth(1).unwrap_or("nothing");
            assert!(!e.to_string().contains(secret), "{e}");
        }
        write(&files, &certificate, &key);
        files.current().unwrap();
        acceptor(files.certificate.clone(), files.key.clone()).unwrap();
    }

    #[test]
    fn a_renewed_certificate_is_used_and_a_broken_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let files = files(&dir);
        let (first, second) = (made(), made());
        let used = || files.current().unwrap().cert[0].to_vec();
        write(&files, &first.0, &first.1);
        let before = used();
        std::fs::write(&files.certificate, &second.0).unwrap();
        assert_eq!(used(), before, "the key has not come yet");
        std::fs::write(&files.key, &second.1).unwrap();
        assert_ne!(used(), before);
        std::fs::remove_file(&files.key).unwrap();
        assert_ne!(used(), before);
    }
}
