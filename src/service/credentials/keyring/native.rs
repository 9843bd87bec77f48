//! The Keychain of macOS and the Credential Manager of Windows. Both ask a person by themselves where they have to, so nothing
//! here unlocks anything, and a limit is kept by whoever waits.

use super::{Item, Refusal, Value};
#[cfg(target_os = "macos")]
use apple_native_keyring_store::keychain::Store;
use keyring_core::api::CredentialStoreApi;
use keyring_core::{Entry, Error};
use std::collections::HashMap;
use std::time::Duration;
#[cfg(windows)]
use windows_native_keyring_store::Store;
use zeroize::Zeroizing;

/// How long a change may take: the system may be asking a person, and what it does after that counts.
pub(super) const WRITING: Duration = super::PERSON;

pub(super) fn get(items: &[Item], _limit: Duration) -> Result<Vec<Option<Value>>, Refusal> {
    items.iter().map(value).collect()
}

fn value(item: &Item) -> Result<Option<Value>, Refusal> {
    match entry(item)?.get_secret().map(Zeroizing::new) {
        Ok(bytes) => match std::str::from_utf8(&bytes) {
            Ok(text) => Ok(Some(Zeroizing::new(text.to_owned()))),
            Err(_) => Err(Refusal::Failed("what it holds is not text".to_owned())),
        },
        Err(Error::NoEntry) => Ok(None),
        Err(e) => Err(refusal(e)),
    }
}

pub(super) fn put(item: &Item, value: &str, _limit: Duration) -> Result<(), Refusal> {
    entry(item)?.set_secret(value.as_bytes()).map_err(refusal)
}

pub(super) fn remove(item: &Item, _limit: Duration) -> Result<(), Refusal> {
    match entry(item)?.delete_credential() {
        Ok(()) | Err(Error::NoEntry) => Ok(()),
        Err(e) => Err(refusal(e)),
    }
}

pub(super) fn unlock(_limit: Duration) -> Result<(), Refusal> {
    Ok(())
}

fn entry(item: &Item) -> Result<Entry, Refusal> {
    let store = Store::new().map_err(refusal)?;
    // On this machine only: what belongs to its file must not wander to others without it.
    #[cfg(windows)]
    let how = HashMap::from([("persistence", "Local")]);
    #[cfg(not(windows))]
    let how = HashMap::new();
    store.build(&format!("lapidary {}", item.name), &item.id, Some(&how)).map_err(refusal)
}

/// Some of these errors carry the bytes of a value, so none is shown whole.
fn refusal(e: Error) -> Refusal {
    match e {
        Error::NoStorageAccess(_) => Refusal::Locked,
        Error::TooLong(..) => Refusal::TooLarge,
        Error::NoDefaultStore => Refusal::Absent("the system has none"),
        Error::PlatformFailure(why) => Refusal::Failed(why.to_string()),
        Error::BadEncoding(_) | Error::BadDataFormat(..) => Refusal::Failed("what it holds is not text".to_owned()),
        _ => Refusal::Failed("the system refused".to_owned()),
    }
}
