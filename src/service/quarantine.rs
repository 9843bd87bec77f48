//! What happens to a user's file that cannot be read as what it should be: it is set aside under a name with the time in it,
//! never overwritten, and a notice says so. The notice names the place of the fault and none of the content.

use crate::base::clock::Clock;
use crate::base::event::{Bus, Event};
use crate::base::paths::Paths;
use std::path::{Path, PathBuf};

/// Renames `path` to `<file name>.bad-<UTC yyyymmddThhmmss>` and tells the bus. `fault` says what is wrong without quoting it.
/// Gives the new path, or `None` where the rename failed: the notice then says that the file is still there.
#[expect(clippy::disallowed_methods, reason = "the file is moved away as it is, not written")]
pub fn set_aside(path: &Path, fault: &str, paths: &Paths, clock: &Clock, bus: &Bus) -> Option<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stamped = format!("{name}.bad-{}", stamp(clock.unix_ms()));
    let free = (1..100)
        .map(|n| path.with_file_name(if n == 1 { stamped.clone() } else { format!("{stamped}-{n}") }))
        .find(|candidate| !candidate.exists());
    let moved = free.filter(|to| std::fs::rename(path, to).is_ok());
    let message = match &moved {
        Some(to) => format!(
            "{fault}; it was set aside as `{}` and an empty one is used: mend it and rename it back",
            to.file_name().unwrap_or_default().to_string_lossy()
        ),
        None => format!("{fault}; it could not be set aside, and an empty one is used"),
    };
    tracing::warn!(file = %paths.shown(path), "a file could not be read and was set aside");
    bus.publish(Event::Notice { subject: paths.shown(path), message });
    moved
}

/// `yyyymmddThhmmss` in UTC.
fn stamp(unix_ms: i64) -> String {
    jiff::Timestamp::from_millisecond(unix_ms).unwrap_or_default().strftime("%Y%m%dT%H%M%S").to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_name_carries_the_time_in_utc_and_never_hides_an_earlier_one() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        let (clock, bus) = (Clock::manual(1_700_000_000_000), Bus::default());
        let mut events = bus.subscribe();
        let path = dir.path().join("a.json");
        let mut kept = Vec::new();
        for content in ["{first", "{second"] {
            std::fs::write(&path, content).unwrap();
            let to = set_aside(&path, "not valid JSON", &paths, &clock, &bus).unwrap();
            assert_eq!(std::fs::read_to_string(&to).unwrap(), content);
            kept.push(to.file_name().unwrap().to_string_lossy().into_owned());
        }
        assert_eq!(kept, ["a.json.bad-20231114T221320", "a.json.bad-20231114T221320-2"]);
        assert!(!path.exists());
        let Event::Notice { subject, message } = events.try_recv().unwrap() else { panic!("a notice") };
        assert_eq!(subject, "a.json");
        assert!(message.contains("not valid JSON") && !message.contains("first"), "{message}");
    }

    #[test]
    fn a_file_that_cannot_be_moved_is_reported_too() {
        let dir = tempfile::tempdir().unwrap();
        let bus = Bus::default();
        let mut events = bus.subscribe();
        let gone = dir.path().join("gone.json");
        assert_eq!(set_aside(&gone, "not an object", &Paths::at(dir.path()), &Clock::manual(0), &bus), None);
        let Event::Notice { message, .. } = events.try_recv().unwrap() else { panic!("a notice") };
        assert!(message.contains("could not be set aside"), "{message}");
    }
}
