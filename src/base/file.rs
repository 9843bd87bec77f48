//! Files as the host reads and writes them: atomic, under the file's own lock, capped, confined to a folder.
//! Promise 8: a reader sees the old bytes or the new ones, in this process and in any other.

#![expect(clippy::disallowed_methods, reason = "this is the room that writes files")]

use super::error::{Error, Kind, Result, excerpt, io};
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, SystemTime};

/// A file's bytes on disk beside their target, synced, not yet in place. Dropped without [`Staged::commit`], it is removed.
#[derive(Debug)]
pub struct Staged {
    target: PathBuf,
    temp: PathBuf,
    placed: bool,
}

impl Staged {
    /// Writes `bytes` beside `path` and syncs them. Takes no lock, so the slow part can happen before one is held.
    ///
    /// # Errors
    /// What the file system says, with the path: `permission_denied` for a read-only place, `quota` for a full disk.
    pub fn write(path: &Path, bytes: &[u8]) -> Result<Staged> {
        Staged::prepare(path, |staged| staged.fill(bytes))
    }

    fn prepare(path: &Path, fill: impl FnOnce(&Staged) -> std::io::Result<()>) -> Result<Staged> {
        // A person may have put a link in place of the file: the file behind it is meant, not the link.
        let target = match fs::symlink_metadata(path) {
            Ok(meta) if meta.is_symlink() => fs::canonicalize(path).map_err(|e| cannot("write", path, &e))?,
            _ => path.to_path_buf(),
        };
        let temp = beside(&target, &format!("{}.tmp", instance()));
        let staged = Staged { target, temp, placed: false };
        fill(&staged).map_err(|e| cannot("write", path, &e))?;
        Ok(staged)
    }

    fn fill_closed(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut file = closed_to_others().write(true).create_new(true).open(&self.temp)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn fill(&self, bytes: &[u8]) -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&self.temp)?;
        file.write_all(bytes)?;
        if let Ok(meta) = fs::metadata(&self.target) {
            file.set_permissions(meta.permissions())?;
        }
        file.sync_all()
    }

    /// Puts the bytes in place of the file in one step.
    ///
    /// # Errors
    /// What the file system says; the file is then unchanged and the temporary one removed.
    pub fn commit(mut self) -> Result<()> {
        fs::rename(&self.temp, &self.target).map_err(|e| cannot("write", &self.target, &e))?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if !self.placed {
            let _ = fs::remove_file(&self.temp);
        }
    }
}

/// Writes a whole file: a temporary one beside it, synced, renamed over it, and the folder synced.
/// It keeps the mode of the file it replaces. Nobody ever reads half of it.
///
/// # Errors
/// What the file system says, with the path. Then nothing was changed and no temporary file is left.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<()> {
    Staged::write(path, bytes)?.commit()?;
    sync_folder_of(path);
    Ok(())
}

/// As [`write_atomic`], for what nobody else on this machine may read: closed to them from the first byte on, whatever the old
/// file was.
///
/// # Errors
/// As [`write_atomic`].
pub fn write_atomic_private(path: &Path, bytes: &[u8]) -> Result<()> {
    Staged::prepare(path, |staged| staged.fill_closed(bytes))?.commit()?;
    sync_folder_of(path);
    Ok(())
}

/// Options for a file that is made closed to others.
fn closed_to_others() -> OpenOptions {
    #[allow(unused_mut)] // elsewhere than on Unix
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options
}

/// Writes a file that only its owner can read, also while it is being written. What stood there is removed first, because
/// others may have it open. The caller holds the file's lock.
///
/// # Errors
/// What the file system says, with the path.
pub fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let written = || {
        match fs::remove_file(path) {
            Err(e) if e.kind() != ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let mut file = closed_to_others().write(true).create_new(true).open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    };
    written().map_err(|e| cannot("write", path, &e))
}

/// Takes a file's permissions away from everybody but its owner, where the system has such.
///
/// # Errors
/// What the file system says, with the path.
pub fn close_to_others(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(path).map_err(|e| cannot("read", path, &e))?.permissions().mode();
        if mode & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(|e| cannot("close", path, &e))?;
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Makes a rename or a removal in the folder of `path` durable. A file system that cannot is left alone.
pub fn sync_folder_of(path: &Path) {
    if cfg!(unix)
        && let Some(folder) = path.parent()
        && let Ok(handle) = File::open(folder)
    {
        let _ = handle.sync_all();
    }
}

/// Runs `work` while nobody else, in this process or another, holds the lock of `path`.
/// The lock is a hidden file beside it, `.<file name>.lock`, made on first use and never removed: removing it would let two
/// holders in. Not reentrant: `work` must not ask for the same lock, nor run a script.
///
/// # Errors
/// Those of `work`, and when the lock file cannot be made.
pub fn with_lock<T>(path: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
    // Threads wait here first: some network file systems give locks to processes, not to handles.
    let gate = gate(path);
    let _turn = gate.lock().unwrap_or_else(PoisonError::into_inner);
    let lock_path = beside(path, "lock");
    let lock = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&lock_path)
        .map_err(|e| cannot("lock", path, &e))?;
    lock.lock().map_err(|e| cannot("lock", path, &e))?;
    let done = work();
    let _ = lock.unlock();
    done
}

/// Reads, changes and writes a file as one step under its lock. `change` gets the bytes, or `None` where there is no file;
/// it gives the new bytes, or `None` to leave everything as it is.
///
/// # Errors
/// Those of `change` and of the file system. The file is then unchanged.
pub fn update(path: &Path, change: impl FnOnce(Option<Vec<u8>>) -> Result<Option<Vec<u8>>>) -> Result<()> {
    with_lock(path, || {
        let old = match fs::read(path) {
            Ok(bytes) => Some(bytes),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(cannot("read", path, &e)),
        };
        match change(old)? {
            Some(bytes) => write_atomic(path, &bytes),
            None => Ok(()),
        }
    })
}

/// A mark that something is at work, for as long as this value lives. Any number may hold it; it ends with its process too.
#[derive(Debug)]
pub struct Held(#[expect(dead_code, reason = "the lock goes with the file")] File);

/// Puts the mark on `path`, which is made where it is missing. Never waits.
///
/// # Errors
/// What the file system says, such as for a place that cannot be written.
pub fn hold(path: &Path) -> Result<Held> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|e| cannot("lock", path, &e))?;
    // Somebody who looks whether it is held stands in the way for a moment only; then the mark is not worth a wait.
    let _ = file.try_lock_shared();
    Ok(Held(file))
}

/// Whether anybody holds the mark on `path` now, in this process or another.
#[must_use]
pub fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock))
}

/// Reads a whole file of at most `max_bytes`; a bigger one is refused by its size, before reading.
///
/// # Errors
/// `too_large` with both sizes, `not_found`, `invalid_arguments` for something that is not a file, or what the file system says.
pub fn read_capped(path: &Path, max_bytes: u64) -> Result<Vec<u8>> {
    // Before opening: opening a pipe would wait for its other end.
    let meta = fs::metadata(path).map_err(|e| cannot("read", path, &e))?;
    if !meta.is_file() {
        return Err(Error::invalid(format!("`{}` is not a file", path.display())));
    }
    let too_large = |size: String| {
        Error::new(Kind::TooLarge, format!("`{}` has {size} bytes, and at most {max_bytes} are read", path.display()))
    };
    if meta.len() > max_bytes {
        return Err(too_large(meta.len().to_string()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0));
    File::open(path)
        .and_then(|file| file.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|e| cannot("read", path, &e))?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large(format!("more than {max_bytes}")));
    }
    Ok(bytes)
}

/// As [`read_capped`], as text.
///
/// # Errors
/// As [`read_capped`], and `invalid_arguments` with the offset of the first byte that is not UTF-8.
pub fn read_text_capped(path: &Path, max_bytes: u64) -> Result<String> {
    String::from_utf8(read_capped(path, max_bytes)?).map_err(|e| {
        Error::invalid(format!("`{}` is not UTF-8 text: byte {}", path.display(), e.utf8_error().valid_up_to()))
            .hint("save it as UTF-8")
    })
}

/// The path of `relative` inside `base`, with links resolved as far as it exists.
/// `relative` is names with `/` between them; the folder itself is `base`, not `.`.
///
/// # Errors
/// `permission_denied` for an absolute path, `..`, `.`, an empty name, a NUL, a backslash, a drive letter, or a link that leads
/// out. The text is the same whether or not something is there.
pub fn confine(base: &Path, relative: &str) -> Result<PathBuf> {
    let outside = || {
        let shown = excerpt(relative, 120);
        Error::denied(format!("`{shown}` is not a path inside the folder"))
            .hint("give names with `/` between them, without `..`, from the folder down")
    };
    let drive = relative.as_bytes().get(1) == Some(&b':') && relative.as_bytes()[0].is_ascii_alphabetic();
    if drive || relative.contains(['\0', '\\']) || (cfg!(windows) && relative.contains(':')) {
        return Err(outside());
    }
    let names: Vec<&str> = relative.split('/').collect();
    if names.iter().any(|name| matches!(*name, "" | "." | "..")) {
        return Err(outside());
    }
    let Ok(root) = fs::canonicalize(base) else {
        // No folder yet, so nothing in it can be a link.
        return Ok(names.iter().fold(base.to_path_buf(), |path, name| path.join(name)));
    };
    let mut path = root.clone();
    for name in names {
        path.push(name);
        if fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_symlink()) {
            // A dangling link is refused too: writing through it would make a file elsewhere.
            path = fs::canonicalize(&path).ok().filter(|real| real.starts_with(&root)).ok_or_else(outside)?;
        }
    }
    Ok(path)
}

/// What tells one content of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    modified: SystemTime,
    changed: (i64, i64),
    len: u64,
    inode: (u64, u64),
}

impl Stamp {
    /// Clocks of file systems tick this slowly at worst that we rely on; a younger stamp may hide a second write.
    const TICK: Duration = Duration::from_millis(100);

    /// The stamp of the file, or `None` where there is no file.
    ///
    /// # Errors
    /// What the file system says.
    pub fn of(path: &Path) -> Result<Option<Stamp>> {
        let meta = match fs::metadata(path) {
            Ok(meta) => meta,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(cannot("read", path, &e)),
        };
        #[cfg(unix)]
        let (changed, inode) = {
            use std::os::unix::fs::MetadataExt;
            ((meta.ctime(), meta.ctime_nsec()), (meta.dev(), meta.ino()))
        };
        #[cfg(not(unix))]
        let (changed, inode) = ((0, 0), (0, 0));
        let modified = meta.modified().map_err(|e| cannot("read", path, &e))?;
        Ok(Some(Stamp { modified, changed, len: meta.len(), inode }))
    }

    /// Whether an equal stamp later proves equal content: the file was not written in the last moment.
    /// Two writes within one tick of the file system's clock can bear the same stamp.
    #[must_use]
    pub fn settled(&self) -> bool {
        let changed = u64::try_from(self.changed.0).map_or(SystemTime::UNIX_EPOCH, |s| {
            SystemTime::UNIX_EPOCH + Duration::new(s, u32::try_from(self.changed.1).unwrap_or(0))
        });
        let last = self.modified.max(changed);
        SystemTime::now().duration_since(last).is_ok_and(|age| age > Stamp::TICK)
    }
}

fn cannot(what: &str, path: &Path, e: &std::io::Error) -> Error {
    io(format_args!("cannot {what} `{}`", path.display()), e)
}

/// `.<file name>.<suffix>` in the same folder.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{suffix}"))
}

/// Differs for every call in every process, also between machines that share a folder.
fn instance() -> String {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static CALL: AtomicU64 = AtomicU64::new(0);
    let process = PROCESS.get_or_init(|| fastrand::u64(..));
    format!("{}-{process:x}-{}", std::process::id(), CALL.fetch_add(1, Ordering::Relaxed))
}

/// The lock that the threads of this process share for one path.
fn gate(path: &Path) -> Arc<Mutex<()>> {
    static GATES: OnceLock<Mutex<HashMap<PathBuf, Weak<Mutex<()>>>>> = OnceLock::new();
    let mut gates = GATES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(gate) = gates.get(path).and_then(Weak::upgrade) {
        return gate;
    }
    gates.retain(|_, gate| gate.strong_count() > 0);
    let gate = Arc::new(Mutex::new(()));
    gates.insert(path.to_path_buf(), Arc::downgrade(&gate));
    gate
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_mark_is_seen_while_somebody_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mark");
        assert!(!is_held(&path));
        let first = hold(&path).unwrap();
        let second = hold(&path).unwrap();
        assert!(is_held(&path));
        drop(first);
        assert!(is_held(&path));
        drop(second);
        assert!(!is_held(&path) && path.exists());
        assert!(hold(&path.join("not/a/folder")).is_err());
    }

    #[test]
    fn a_write_replaces_the_whole_file_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        write_atomic(&path, b"one").unwrap();
        write_atomic(&path, b"2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"2");
        assert_eq!(names(dir.path()), ["a.json"]);
    }

    #[test]
    fn a_failed_write_leaves_the_target_and_no_temporary_file() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("taken");
        fs::create_dir(&target).unwrap();
        fs::write(target.join("inside"), "x").unwrap();
        let e = write_atomic(&target, b"bytes").unwrap_err();
        assert!(e.message().contains("cannot write"), "{e}");
        assert_eq!(names(dir.path()), ["taken"]);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("file"), "").unwrap();
        let path = dir.path().join("file/a.json");
        assert!(write_atomic(&path, b"x").unwrap_err().message().contains("file/a.json"));
        assert!(with_lock(&path, || Ok(())).unwrap_err().message().contains("cannot lock"));
    }

    #[test]
    fn read_only_and_full_disks_have_their_own_words() {
        for (kind, code, word) in [
            (ErrorKind::ReadOnlyFilesystem, Kind::PermissionDenied, "read-only"),
            (ErrorKind::PermissionDenied, Kind::PermissionDenied, "owner and mode"),
            (ErrorKind::StorageFull, Kind::Quota, "disk is full"),
        ] {
            let e = cannot("write", Path::new("x.json"), &kind.into());
            assert_eq!(e.kind(), code);
            assert!(e.hint_text().unwrap().contains(word), "{e}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_read_only_folder_refuses_and_keeps_the_old_file() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.json");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
        // The superuser may write anywhere; then there is nothing to see here.
        let refused = File::create(dir.path().join("probe")).is_err();
        if refused {
            assert_eq!(write_atomic(&path, b"new").unwrap_err().kind(), Kind::PermissionDenied);
            assert_eq!(fs::read(&path).unwrap(), b"old");
        }
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_write_keeps_the_mode_and_goes_through_a_link() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let real = dir.path().join("real");
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
        let link = dir.path().join("link");
        symlink(&real, &link).unwrap();
        write_atomic(&link, b"new").unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn threads_that_update_one_file_lose_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("count");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        update(&path, |old| {
                            let n: u32 = old.map_or(0, |b| String::from_utf8(b).unwrap().parse().unwrap());
                            Ok(Some((n + 1).to_string().into_bytes()))
                        })
                        .unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_to_string(&path).unwrap(), "200");
        assert_eq!(names(dir.path()), [".count.lock", "count"]);
    }

    #[test]
    fn an_update_that_fails_or_declines_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        assert!(update(&path, |_| Err(Error::internal("no"))).is_err());
        update(&path, |old| {
            assert_eq!(old.as_deref(), Some(&b"old"[..]));
            Ok(None)
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[test]
    fn a_big_file_is_refused_by_its_size() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("big");
        File::create(&path).unwrap().set_len(20 << 20).unwrap();
        let e = read_capped(&path, 1 << 20).unwrap_err();
        assert_eq!(e.kind(), Kind::TooLarge);
        assert!(e.message().contains("20971520"), "{e}");
        assert_eq!(read_capped(&path, 20 << 20).unwrap().len(), 20 << 20);
        assert_eq!(read_capped(dir.path(), 10).unwrap_err().kind(), Kind::InvalidArguments);
        assert_eq!(read_capped(&dir.path().join("none"), 10).unwrap_err().kind(), Kind::NotFound);
    }

    #[test]
    fn text_that_is_not_utf8_is_located() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t");
        fs::write(&path, b"ab\xffcd").unwrap();
        assert!(read_text_capped(&path, 10).unwrap_err().message().contains("byte 2"));
    }

    #[test]
    fn confined_paths_stay_below_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap().join("base");
        for made in [false, true] {
            if made {
                fs::create_dir_all(base.join("sub")).unwrap();
            }
            for good in ["a", "a.txt", "sub/a", "new/deep/er", "..a", "a..", "日本", "a b", ".hidden"] {
                assert_eq!(confine(&base, good).unwrap(), base.join(good), "{good}");
            }
            for bad in [
                "",
                ".",
                "..",
                "/",
                "/etc/passwd",
                "../x",
                "a/../b",
                "a/..",
                "./a",
                "a//b",
                "a/",
                "/a",
                "a\0b",
                "a\\b",
                "..\\x",
                "C:/x",
                "c:x",
                "\\\\host\\share",
                "a/./b",
            ] {
                assert_eq!(confine(&base, bad).unwrap_err().kind(), Kind::PermissionDenied, "{bad:?}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_out_are_refused_with_one_text() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("base");
        fs::create_dir_all(base.join("in")).unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        fs::write(dir.path().join("out/there"), "secret").unwrap();
        fs::write(base.join("in/file"), "mine").unwrap();
        symlink(dir.path().join("out"), base.join("leak")).unwrap();
        symlink(base.join("in"), base.join("alias")).unwrap();
        symlink(dir.path().join("nowhere"), base.join("dangling")).unwrap();
        assert_eq!(confine(&base, "alias/file").unwrap(), base.canonicalize().unwrap().join("in/file"));
        let text = |relative: &str| confine(&base, relative).unwrap_err().to_string().replace(relative, "*");
        let first = text("leak/there");
        for other in ["leak/absent", "leak", "dangling", "dangling/x", "../out/there", "../out/absent", "/etc/passwd"] {
            assert_eq!(text(other), first, "{other}");
        }
    }

    #[test]
    fn a_stamp_tells_contents_apart_once_settled() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        assert_eq!(Stamp::of(&path).unwrap(), None);
        write_atomic(&path, b"one").unwrap();
        let first = Stamp::of(&path).unwrap().unwrap();
        assert!(!first.settled());
        write_atomic(&path, b"three").unwrap();
        assert_ne!(Stamp::of(&path).unwrap().unwrap(), first);
    }
}
