//! What happens to a user's file that cannot be read as what it should be: it is set aside under a name with the time in it,
//! never overwritten, and a notice says so. The notice names the place of the fault and none of the content.

use crate::base::clock::Clock;
use crate::base::event::{Bus, Event};
use crate::base::file;
use crate::base::json;
use crate::base::paths::Paths;
use std::path::{Path, PathBuf};

/// Files that were set aside are looked into up to this size, in bytes.
const MAX_LOOK: u64 = 64 << 20;

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
    tracing::warn!(file = %paths.shown(path), "{message}");
    bus.publish(Event::Notice { subject: paths.shown(path), message });
    moved
}

/// What was set aside of the JSON file `path` and still lies there, oldest first: each file with what is wrong with it.
#[must_use]
pub fn kept(path: &Path, paths: &Paths) -> Vec<String> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return Vec::new() };
    let start = format!("{}.bad-", name.to_string_lossy());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.filter(|e| e.file_name().to_string_lossy().starts_with(&start)).map(|e| e.path()).collect();
    files.sort_by_key(|file| (file.as_os_str().len(), file.clone()));
    let reason = |file: &Path| match file::read_capped(file, MAX_LOOK).map(|bytes| json::parse_object(&bytes)) {
        Ok(Ok(_)) => "it can be read now: rename it back".to_owned(),
        Ok(Err(fault)) => format!("{fault}; mend it and rename it back, or delete it"),
        Err(e) => e.message().to_owned(),
    };
    files.iter().map(|file| format!("{} was set aside: {}", paths.shown(file), reason(file))).collect()
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
    fn what_was_set_aside_is_listed_with_the_reason_and_none_of_the_content() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        let (clock, bus) = (Clock::manual(1_700_000_000_000), Bus::default());
        let path = dir.path().join("a.json");
        let rows: [(&[u8], &str); 5] = [
            (b"{\"key\": \"secret", "it is not valid JSON at line 1 column 16 (byte 15): the text ends too early"),
            (b"[1]", "it is not a JSON object but a list"),
            (b"{\"secret\": \"\xff\"}", "it is not valid JSON at line 1 column 13 (byte 12): not UTF-8 text"),
            (
                b"{\"n\": 99999999999999999999}",
                "it is not valid JSON at line 1 column 7 (byte 6): an integer outside 64 bits; send it as text, or with a decimal point",
            ),
            (b"7", "it is not a JSON object but a single value"),
        ];
        for (content, why) in rows {
            std::fs::write(&path, content).unwrap();
            let fault = json::parse_object(content).unwrap_err();
            assert_eq!(fault, why);
            set_aside(&path, &fault, &paths, &clock, &bus).unwrap();
        }
        std::fs::write(dir.path().join("b.json.bad-1"), "x").unwrap();
        let listed = kept(&path, &paths);
        assert_eq!(listed.len(), rows.len());
        assert!(listed[0].starts_with("a.json.bad-20231114T221320 was set aside: "), "{listed:#?}");
        assert!(listed[4].starts_with("a.json.bad-20231114T221320-5 was set aside: "), "{listed:#?}");
        for (line, (_, why)) in listed.iter().zip(rows) {
            assert!(line.contains(why) && !line.contains("secret") && !line.contains("999"), "{line}");
        }
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
