//! Addresses of pictures elsewhere, as this host serves them itself: signed, so that nobody can make the host fetch what no
//! script of it asked for. Fetching and serving is the HTTP door's; what a script may fetch is not decided here.

use crate::base::error::{Error, Kind, Result, excerpt, io};
use crate::base::file;
use crate::base::paths::Paths;
use crate::net::lane::{self, Lane};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use std::sync::OnceLock;
use url::Url;
use url::form_urlencoded::byte_serialize;

/// Where the proxy stands; behind it `?u=<address>&s=<signature>`.
pub const PATH: &str = "/api/proxy";
/// Longest address that is signed, in bytes.
pub const MAX_URL: usize = 8 << 10;
/// Bytes of the key.
const KEY: usize = 32;

/// Signs addresses with this root's own key, which is made on first use and kept where only the owner reads it.
pub struct Signer {
    paths: Paths,
    key: OnceLock<[u8; KEY]>,
}

impl Signer {
    /// The signer of a root. Nothing is read before it is asked.
    #[must_use]
    pub fn new(paths: Paths) -> Signer {
        Signer { paths, key: OnceLock::new() }
    }

    /// The path on this host under which the picture at `url` is served.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no `http` or `https` address, names a user, or is longer than [`MAX_URL`];
    /// `permission_denied` for an address of the local network, which the proxy never fetches; what the file system says of the
    /// key.
    pub fn sign(&self, url: &str) -> Result<String> {
        let text = url;
        let url = admit(text)?;
        if is_local(&url) {
            return Err(Error::denied(format!("`{}` cannot be proxied: it is in the local network", shown(text)))
                .hint("fetch it in the tool and keep it with images::stash"));
        }
        let signature = URL_SAFE_NO_PAD.encode(self.mac(url.as_str())?.finalize().into_bytes());
        let address: String = byte_serialize(url.as_str().as_bytes()).collect();
        Ok(format!("{PATH}?u={address}&s={signature}"))
    }

    /// The address that a request for the proxy asks for, where this host has signed it: `u` and `s` as they stand in the
    /// query, decoded.
    ///
    /// # Errors
    /// `permission_denied` for everything else, with one text; what the file system says of the key.
    pub fn verify(&self, u: &str, s: &str) -> Result<Url> {
        let refused = || Error::denied("this address was not signed by this host");
        let url = admit(u).map_err(|_| refused())?;
        let signature = URL_SAFE_NO_PAD.decode(s).map_err(|_| refused())?;
        self.mac(u)?.verify_slice(&signature).map_err(|_| refused())?;
        Ok(url)
    }

    /// Whether `path` is an address that [`Signer::sign`] gave.
    #[must_use]
    pub fn is_signed(&self, path: &str) -> bool {
        let Some(query) = path.strip_prefix(PATH).and_then(|rest| rest.strip_prefix('?')) else { return false };
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        let (Some((u, address)), Some((s, signature)), None) = (pairs.next(), pairs.next(), pairs.next()) else {
            return false;
        };
        u == "u" && s == "s" && self.verify(&address, &signature).is_ok_and(|url| !is_local(&url))
    }

    fn mac(&self, url: &str) -> Result<Hmac<sha2::Sha256>> {
        let mut mac = Hmac::new_from_slice(self.key()?).expect("hmac takes a key of any length");
        // What a signature is for is part of it.
        mac.update(b"picture proxy 1\n");
        mac.update(url.as_bytes());
        Ok(mac)
    }

    fn key(&self) -> Result<&[u8; KEY]> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let made = kept(&self.paths)?;
        Ok(self.key.get_or_init(|| made))
    }
}

/// The address of the web that a path of the proxy stands for, signed or not.
#[must_use]
pub fn address_of(path: &str) -> Option<String> {
    let query = path.strip_prefix(PATH)?.strip_prefix('?')?;
    url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "u").map(|(_, address)| address.into_owned())
}

/// Whether an address lies where the proxy never goes.
fn is_local(url: &Url) -> bool {
    lane::classify(url.host_str().unwrap_or_default()) == Lane::Lan
}

fn shown(text: &str) -> String {
    excerpt(text, 80)
}

/// An address as it is signed: in the one form that the parser writes.
fn admit(text: &str) -> Result<Url> {
    let refuse = |why: &str| {
        Error::invalid(format!("`{}` cannot be proxied: {why}", shown(text)))
            .hint("give the whole address: https://host/path")
    };
    if text.len() > MAX_URL {
        return Err(refuse("it is too long"));
    }
    let url = Url::parse(text).map_err(|_| refuse("it is no address"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse("only http and https are"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refuse("it names a user"));
    }
    if url.as_str().len() > MAX_URL {
        return Err(refuse("it is too long"));
    }
    Ok(url)
}

/// The key in the file, made where there is none.
fn kept(paths: &Paths) -> Result<[u8; KEY]> {
    let path = paths.proxy_key();
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|e| io("cannot make the folder of the proxy's key", &e))?;
    }
    let read = file::with_lock(&path, || {
        match file::read_capped(&path, 4096) {
            Ok(bytes) => {
                if let Ok(key) = <[u8; KEY]>::try_from(bytes.as_slice()) {
                    file::close_to_others(&path)?;
                    return Ok(key);
                }
            }
            Err(e) if e.kind() == Kind::NotFound => {}
            Err(e) => return Err(e),
        }
        let mut key = [0; KEY];
        getrandom::fill(&mut key).map_err(|e| Error::internal(format!("no random numbers to make a key of: {e}")))?;
        file::write_private(&path, &key)?;
        Ok(key)
    });
    read.map_err(|e| paths.conceal(e))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn signer(dir: &tempfile::TempDir) -> Signer {
        Signer::new(Paths::at(dir.path()))
    }

    fn query(path: &str) -> (String, String) {
        let pairs: Vec<(String, String)> =
            url::form_urlencoded::parse(path.split_once('?').unwrap().1.as_bytes()).into_owned().collect();
        (pairs[0].1.clone(), pairs[1].1.clone())
    }

    #[test]
    fn what_was_signed_is_served_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let signer = signer(&dir);
        for url in ["https://example.org/a b.png?x=1&y=ž#f", "http://8.8.8.8/x", "https://example.org"] {
            let path = signer.sign(url).unwrap();
            assert!(path.starts_with("/api/proxy?u=http") && path.is_ascii(), "{path}");
            assert!(!path.contains(['"', '<', '>', ' ']), "{path}");
            let (u, s) = query(&path);
            assert_eq!(signer.verify(&u, &s).unwrap(), Url::parse(url).unwrap());
            assert!(signer.is_signed(&path));
            assert_eq!(address_of(&path), Some(u.clone()));
            for (u, s) in [
                (format!("{u}x"), s.clone()),
                (u.replace("http", "HTTP"), s.clone()),
                (u.clone(), s[1..].to_owned()),
                (u.clone(), String::new()),
                (u.clone(), format!("{s}=")),
                (String::new(), s.clone()),
            ] {
                assert_eq!(signer.verify(&u, &s).unwrap_err().kind(), Kind::PermissionDenied, "{u} {s}");
            }
        }
        assert!(!signer.is_signed("/api/proxy?u=x&s=y") && !signer.is_signed("https://example.org/"));
    }

    #[test]
    fn only_whole_addresses_of_the_web_are_signed() {
        let dir = tempfile::tempdir().unwrap();
        let signer = signer(&dir);
        let long = format!("https://example.org/{}", "x".repeat(MAX_URL));
        for bad in [
            "",
            "x",
            "/a.png",
            "//example.org/a",
            "data:image/png;base64,AA",
            "javascript:alert(1)",
            "file:///etc/passwd",
            "ftp://example.org/",
            "https://u:p@example.org/",
            &long,
        ] {
            let e = signer.sign(bad).unwrap_err();
            assert_eq!(e.kind(), Kind::InvalidArguments, "{bad}");
        }
        assert!(!Paths::at(dir.path()).proxy_key().exists(), "nothing is made before it is needed");
    }

    #[test]
    fn what_the_proxy_never_fetches_is_not_signed_however_it_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let signer = signer(&dir);
        for local in [
            "http://localhost/a.png",
            "http://LOCALHOST.:8080/a.png",
            "http://127.0.0.1/a.png",
            "http://127.1/a.png",
            "http://0x7f.0.0.1/a.png",
            "http://2130706433/a.png",
            "http://10.0.0.7/a.png",
            "http://192.168.1.1:81/a.png",
            "http://169.254.169.254/latest",
            "http://[::1]/a.png",
            "http://[::ffff:10.0.0.1]/a.png",
            "http://[fd00::1]/a.png",
            "https://printer.lan/a.png",
            "https://nas.local/a.png",
            "http://router/a.png",
        ] {
            let e = signer.sign(local).unwrap_err();
            assert_eq!(e.kind(), Kind::PermissionDenied, "{local}");
            assert!(e.hint_text().is_some_and(|hint| hint.contains("images::stash")), "{e}");
        }
        assert!(!Paths::at(dir.path()).proxy_key().exists(), "nothing is made before it is needed");
        // One that was signed before this was a rule.
        let url = "http://printer.lan/a.png";
        let signature = URL_SAFE_NO_PAD.encode(signer.mac(url).unwrap().finalize().into_bytes());
        assert!(!signer.is_signed(&format!("{PATH}?u=http%3A%2F%2Fprinter.lan%2Fa.png&s={signature}")));
    }

    #[test]
    fn the_key_outlives_the_process_and_is_another_in_every_root() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let path = signer(&one).sign("https://example.org/").unwrap();
        let (u, s) = query(&path);
        assert!(signer(&one).verify(&u, &s).is_ok());
        assert!(signer(&two).verify(&u, &s).is_err());
        let key = Paths::at(one.path()).proxy_key();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(std::fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::write(&key, b"half").unwrap();
        assert!(signer(&one).verify(&u, &s).is_err(), "a broken key is replaced");
    }
}
