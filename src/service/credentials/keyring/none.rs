//! Where this build knows no keyring: there is none, and values stay in their file.

use super::{Item, Refusal, Value};
use std::time::Duration;

/// How long a change may take.
pub(super) const WRITING: Duration = Duration::ZERO;

const ABSENT: Refusal = Refusal::Absent("this build knows none");

pub(super) fn get(_items: &[Item], _limit: Duration) -> Result<Vec<Option<Value>>, Refusal> {
    Err(ABSENT)
}

pub(super) fn put(_item: &Item, _value: &str, _limit: Duration) -> Result<(), Refusal> {
    Err(ABSENT)
}

pub(super) fn remove(_item: &Item, _limit: Duration) -> Result<(), Refusal> {
    Err(ABSENT)
}

pub(super) fn unlock(_limit: Duration) -> Result<(), Refusal> {
    Err(ABSENT)
}
