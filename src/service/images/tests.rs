//! What a source means and may reach, and what is kept where.

use super::*;
use crate::service::permissions::{Declared, Grant, GrantStore};
use std::path::PathBuf;

/// A PNG of `width` x `height` that says so in its head and has no pixels: enough for whoever only looks at heads.
fn head(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend([8, 0, 0, 0, 0, 0, 0, 0, 0]);
    bytes
}

fn go_on() -> Result<()> {
    Ok(())
}

struct Root {
    dir: tempfile::TempDir,
    paths: Paths,
    store: MainDb,
    clock: Clock,
}

impl Root {
    fn new() -> Root {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::at(dir.path());
        Root { store: MainDb::new(paths.main_db()), clock: Clock::manual(1_000), paths, dir }
    }

    fn shelf<'a>(&'a self, chat: Option<&'a str>) -> Shelf<'a> {
        Shelf { store: &self.store, clock: &self.clock, paths: &self.paths, chat, private: false }
    }

    fn write(&self, path: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// What the plugin `mine` holds: the folder `pictures`, where it is there.
    fn grants(&self) -> std::sync::Arc<Grants> {
        let store = GrantStore::new(self.paths.clone(), Default::default(), Default::default());
        let path = self.dir.path().join("pictures");
        if path.is_dir() {
            store.grant("mine", &Grant::Folder { name: "pictures".into(), path }).unwrap();
        }
        store.effective("mine", &Declared::default())
    }

    fn read(&self, text: &str) -> Result<Found> {
        match Source::of(text)? {
            Source::Kept(id) => self.shelf(Some("chat")).kept(id, |_| Ok(())),
            source => self.shelf(Some("chat")).file(&source, "mine", &self.grants(), |_| Ok(())),
        }
    }
}

#[test]
fn row_28_a_source_means_one_thing() {
    let rows = [
        ("img:0123456789ab.png", Ok(Source::Kept("0123456789ab.png"))),
        ("  img:ab \n", Ok(Source::Kept("ab"))),
        ("img:", Err(Kind::NotFound)),
        ("img:../x", Err(Kind::NotFound)),
        ("img:a/b", Err(Kind::NotFound)),
        ("img:ab.jpg.", Err(Kind::NotFound)),
        ("doc:7", Ok(Source::Library(7))),
        ("doc:abc", Err(Kind::InvalidArguments)),
        ("doc:", Err(Kind::InvalidArguments)),
        ("doc:-1", Err(Kind::InvalidArguments)),
        ("http://printer.lan/x", Ok(Source::Web("http://printer.lan/x"))),
        ("https://example.org/a.png", Ok(Source::Web("https://example.org/a.png"))),
        // The scheme is written small, as everywhere.
        ("HTTPS://example.org/a.png", Ok(Source::Own("HTTPS://example.org/a.png"))),
        ("root:music/a/b.png", Ok(Source::Granted("music", "a/b.png"))),
        ("root:music", Err(Kind::InvalidArguments)),
        ("root:/a", Err(Kind::InvalidArguments)),
        ("root:music/", Err(Kind::InvalidArguments)),
        ("/etc/passwd", Ok(Source::Absolute("/etc/passwd"))),
        ("a.png", Ok(Source::Own("a.png"))),
        ("../a.png", Ok(Source::Own("../a.png"))),
        ("file:///etc/passwd", Ok(Source::Own("file:///etc/passwd"))),
        ("", Err(Kind::InvalidArguments)),
        (" \t\n", Err(Kind::InvalidArguments)),
    ];
    for (text, expected) in rows {
        assert_eq!(Source::of(text).map_err(|e| e.kind()), expected, "{text:?}");
    }
    for text in ["", "doc:abc"] {
        assert!(Source::of(text).unwrap_err().hint_text().is_some());
    }
}

#[test]
fn row_28_a_file_is_read_in_the_own_folder_and_in_granted_ones_only() {
    let root = Root::new();
    let picture = head(3, 2);
    let own = root.write("user/plugin_state/mine_files/shots/a.png", &picture);
    let granted = root.write("pictures/b.png", &picture);
    let secret = root.write("user/plugin_state/other_files/c.png", &picture);
    root.write("pictures/page.png", b"<html>");
    for (source, label) in [
        ("shots/a.png", "a.png"),
        (own.to_str().unwrap(), "a.png"),
        ("root:pictures/b.png", "b.png"),
        (granted.to_str().unwrap(), "b.png"),
    ] {
        let found = root.read(source).unwrap();
        assert_eq!((found.label.as_str(), found.origin, found.media_type.as_str()), (label, "file", "image/png"));
        assert_eq!(found.data, picture);
    }
    let absent = root.dir.path().join("pictures/absent.png");
    let mut texts = std::collections::HashSet::new();
    for source in [
        secret.to_str().unwrap(),
        "/etc/passwd",
        "/etc/absent",
        absent.to_str().unwrap(),
        "../other_files/c.png",
        "../absent",
        "shots/../../other_files/c.png",
        "file:///etc/passwd",
        "C:\\a.png",
    ] {
        let e = root.read(source).unwrap_err();
        assert_eq!(e.kind(), Kind::PermissionDenied, "{source}: {e}");
        texts.insert(e.to_string());
    }
    assert_eq!(texts.len(), 1, "one text, whether or not something is there: {texts:?}");
    for (source, kind) in [
        ("root:music/b.png", Kind::PermissionDenied),
        ("root:pictures/../user/plugin_state/other_files/c.png", Kind::PermissionDenied),
        ("root:pictures/absent.png", Kind::NotFound),
        ("root:pictures/page.png", Kind::BadImage),
        ("absent.png", Kind::InvalidArguments),
        ("photo", Kind::InvalidArguments),
    ] {
        let e = root.read(source).unwrap_err();
        assert_eq!(e.kind(), kind, "{source}: {e}");
        assert!(!e.to_string().contains(&*root.dir.path().to_string_lossy()), "{e}");
    }
}

#[cfg(unix)]
#[test]
fn a_file_that_is_missing_is_said_to_be_missing_and_a_word_to_name_nothing() {
    let root = Root::new();
    for path in ["lens.png", "pictures/lens.png", "pictures/lens", "a b.jpeg"] {
        let e = root.read(path).unwrap_err();
        assert_eq!(
            (e.kind(), e.message()),
            (Kind::InvalidArguments, format!("there is no picture `{path}` in the plugin's own folder").as_str())
        );
    }
    for word in ["lens", "the last one", ".png", "lens.", "What is this. And that"] {
        let e = root.read(word).unwrap_err();
        assert_eq!((e.kind(), e.message()), (Kind::InvalidArguments, format!("`{word}` names no picture").as_str()));
    }
}

#[test]
fn a_link_leads_no_source_out_of_its_folder() {
    let root = Root::new();
    let secret = root.write("secret.png", &head(1, 1));
    root.write("user/plugin_state/mine_files/a.png", &head(1, 1));
    let link = root.dir.path().join("user/plugin_state/mine_files/link.png");
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    for source in ["link.png", link.to_str().unwrap()] {
        assert_eq!(root.read(source).unwrap_err().kind(), Kind::PermissionDenied, "{source}");
    }
}

#[test]
fn a_picture_is_found_by_its_handle_in_its_own_chat_only() {
    let root = Root::new();
    let picture = head(3, 2);
    let handle =
        root.shelf(Some("chat")).stash(&picture, &Stash { visible: false, caption: Some("a cat".into()) }).unwrap();
    let id = picture::id_of(&handle).unwrap();
    assert!(id.ends_with(".png") && id.len() == 16, "{handle}");
    let found = root.read(&handle).unwrap();
    assert_eq!((found.data, found.label, found.origin), (picture, handle.clone(), "chat"));
    let row = root.store.image("chat", id).unwrap().unwrap();
    assert_eq!((row.caption.as_deref(), row.visible, row.created_at), (Some("a cat"), false, 1_000));
    for chat in [Some("other"), None] {
        assert_eq!(root.shelf(chat).kept(id, |_| Ok(())).unwrap_err().kind(), Kind::NotFound);
    }
    let full = Error::new(Kind::Quota, "no room");
    assert_eq!(root.shelf(Some("chat")).kept(id, |_| Err(full.clone())).unwrap_err(), full);
}

#[test]
fn row_29_without_a_chat_nothing_is_kept_and_what_is_no_picture_never_is() {
    let root = Root::new();
    let e = root.shelf(None).stash(&head(1, 1), &Stash::default()).unwrap_err();
    assert_eq!(e.kind(), Kind::InvalidArguments);
    assert!(e.message().contains("no chat"), "{e}");
    for bytes in [&b""[..], b"<html>", b"GIF", &[0xff, 0xd8]] {
        let e = root.shelf(Some("chat")).stash(bytes, &Stash::default()).unwrap_err();
        assert_eq!(e.kind(), Kind::BadImage);
        assert!(e.message().contains("not an image"), "{e}");
    }
    assert!(!root.paths.main_db().exists());
}

#[test]
fn row_28_what_a_page_is_instead_of_a_picture_is_named() {
    let rows = [
        (Some("text/html; charset=utf-8"), "but text/html"),
        (Some("application/json"), "but application/json"),
        (Some(" ; x"), "but ?"),
        (None, "but ?"),
    ];
    for (kind, words) in rows {
        let e = fetched("https://example.org/a?key=secret", kind, b"<html>".to_vec()).unwrap_err();
        assert_eq!(e.kind(), Kind::BadImage);
        assert!(e.message().contains(words) && !e.message().contains("secret"), "{e}");
    }
    let long = format!("https://example.org/{}", "x".repeat(100));
    for (url, label) in [
        ("https://example.org/a/cat.png?size=1#x", "cat.png"),
        ("https://example.org/a/", "a"),
        ("https://example.org", "https://example.org"),
        ("https://example.org/", "https://example.org/"),
        (long.as_str(), &"x".repeat(80)),
    ] {
        let found = fetched(url, None, head(1, 1)).unwrap();
        assert_eq!((found.label.as_str(), found.origin), (label, "web"));
    }
}

/// A PNG of one grey pixel, with a word of its maker in it.
fn described() -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, 1, 1);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.add_text_chunk("Description".into(), "at home".into()).unwrap();
    encoder.write_header().unwrap().write_image_data(&[90]).unwrap();
    out
}

#[test]
fn a_model_is_shown_a_copy_of_the_pixels_and_the_person_has_the_file() {
    let image = shown_image(described(), Audience::Both, &go_on).unwrap();
    assert_eq!((image.width, image.height, &*image.data), (1, 1, described().as_slice()));
    let (media_type, seen) = image.for_model().unwrap();
    assert_eq!(media_type, "image/png");
    assert!(!seen.windows(4).any(|w| w == b"home" || w == b"tEXt"));
    let image = shown_image(head(2000, 20), Audience::Person, &go_on).unwrap();
    assert_eq!((image.width, image.display_only, image.for_model()), (2000, true, None));
    // Too large to be decoded, or broken: the person may still see it, the model is told.
    for bytes in [head(40_000, 40_000), head(0, 0), head(2000, 2000), head(20, 20)] {
        let image = shown_image(bytes, Audience::Both, &go_on).unwrap();
        assert!(matches!(image.view, View::Unseen(_)) && image.for_model().is_none(), "{:?}", image.view);
    }
    assert_eq!(shown_image(b"<html>".to_vec(), Audience::Both, &go_on).unwrap_err().kind(), Kind::BadImage);
    let stopped = || Err(Error::new(Kind::Timeout, "over"));
    for side in [20, 2000] {
        assert!(shown_image(head(side, side), Audience::Both, &stopped).is_err());
    }
}
