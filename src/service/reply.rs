//! What a route of a plugin answers: a status, a kind, and bytes or a file. It knows neither sockets nor scripts; which ranges
//! of a file are sent is the door's.

use super::files::{Folder, Opened};
use super::secret::Redactor;
use crate::base::error::{Error, Kind, Result, excerpt};
use std::sync::Arc;

/// An answer, checked: nothing in it can break out of the header that it becomes.
#[derive(Debug, Clone)]
pub struct Reply {
    /// 200 to 599.
    pub status: u16,
    /// The content type; `None` where there is no content.
    pub media_type: Option<&'static str>,
    /// Where a redirect leads: a path on this host.
    pub location: Option<String>,
    /// What the file is called when it is saved; the person is asked to save it then.
    pub save_as: Option<String>,
    /// The content.
    pub content: Content,
}

/// The content of an answer.
#[derive(Debug, Clone)]
pub enum Content {
    /// Bytes that were made for it.
    Bytes(Arc<Vec<u8>>),
    /// A file, open: what is sent is what was opened, whatever happens to its name.
    File(Arc<Opened>),
}

impl Reply {
    /// Without the values of credentials, in what was made for it: files hold what scripts could read.
    #[must_use]
    pub fn without(mut self, redactor: &Redactor) -> Reply {
        self.location = self.location.map(|path| redactor.text(&path).into_owned());
        if let Content::Bytes(bytes) = self.content {
            self.content = Content::Bytes(Arc::new(redactor.bytes(Arc::unwrap_or_clone(bytes))));
        }
        self
    }

    /// Bytes of a kind.
    ///
    /// # Errors
    /// `invalid_arguments` for a status outside 200 to 599.
    pub fn of(bytes: Vec<u8>, media_type: &'static str, status: i64) -> Result<Reply> {
        let Some(status) = u16::try_from(status).ok().filter(|status| (200..=599).contains(status)) else {
            return Err(Error::invalid(format!("`status` is {status}, and must be from 200 to 599")));
        };
        let content = Content::Bytes(Arc::new(bytes));
        Ok(Reply { status, media_type: Some(media_type), location: None, save_as: None, content })
    }

    /// No content.
    #[must_use]
    pub fn nothing() -> Reply {
        let content = Content::Bytes(Arc::default());
        Reply { status: 204, media_type: None, location: None, save_as: None, content }
    }

    /// A way to another path of this host.
    ///
    /// # Errors
    /// `invalid_arguments` for what could lead anywhere else, and for a status that is no redirect.
    pub fn redirect(path: &str, status: i64) -> Result<Reply> {
        let own = path.starts_with('/')
            && !path.starts_with("//")
            && path.bytes().all(|b| b.is_ascii_graphic() && !matches!(b, b'\\' | b'"' | b'<' | b'>'));
        if !own {
            let shown = excerpt(path, 80);
            return Err(Error::invalid(format!("`{shown}` is no path on this host"))
                .hint("a redirect leads to a path here, written out: /api/plugin/<name>/.."));
        }
        if !matches!(status, 302 | 303 | 307 | 308) {
            return Err(Error::invalid(format!("`status` is {status}, and must be 302, 303, 307 or 308")));
        }
        let status = u16::try_from(status).unwrap_or(303);
        Ok(Reply { status, location: Some(path.to_owned()), media_type: None, ..Reply::nothing() })
    }

    /// A file of a folder, its kind by its extension.
    ///
    /// # Errors
    /// Those of [`Folder::open`], and of [`Reply::saved_as`].
    pub fn file(folder: &Folder, path: &str, save_as: Option<&str>) -> Result<Reply> {
        let content = Content::File(Arc::new(folder.open(path)?));
        let reply = Reply { status: 200, media_type: Some(media_type(path)), content, ..Reply::nothing() };
        reply.saved_as(save_as)
    }

    /// The same, to be saved under a name.
    ///
    /// # Errors
    /// `invalid_arguments` for what is no name of a file.
    pub fn saved_as(self, name: Option<&str>) -> Result<Reply> {
        let Some(name) = name else { return Ok(self) };
        let fits = !name.is_empty()
            && name.len() <= 200
            && !name.starts_with('.')
            && !name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\' | '"' | '<' | '>'));
        if !fits {
            let shown = excerpt(name, 80);
            return Err(Error::new(Kind::InvalidArguments, format!("`{shown}` is no name for a file"))
                .hint("a name on one line without / \\ \" < >, such as song.mp3"));
        }
        Ok(Reply { save_as: Some(name.to_owned()), ..self })
    }
}

/// The content type of a file by the extension of its name.
#[must_use]
pub fn media_type(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()).unwrap_or_default();
    match extension.as_str() {
        "mp3" => "audio/mpeg",
        "wav" => "audio/wav",
        "ogg" | "oga" => "audio/ogg",
        "opus" => "audio/opus",
        "m4a" => "audio/mp4",
        "flac" => "audio/flac",
        "mid" | "midi" => "audio/midi",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "bmp" => "image/bmp",
        "tif" | "tiff" => "image/tiff",
        "ico" => "image/x-icon",
        "avif" => "image/avif",
        "svg" => "image/svg+xml",
        "txt" | "log" => "text/plain; charset=utf-8",
        "md" => "text/markdown; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "html" | "htm" => "text/html; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "zip" => "application/zip",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_stays_on_this_host() {
        for good in ["/", "/api/plugin/p/a?x=1", "/a/b#c", "/a:b"] {
            assert_eq!(Reply::redirect(good, 303).unwrap().location.as_deref(), Some(good));
        }
        for bad in ["", "a", "//evil.example/", "/\\evil.example", "https://evil.example", "/a\r\nx: y", "/a b", "/é"]
        {
            assert_eq!(Reply::redirect(bad, 303).unwrap_err().kind(), Kind::InvalidArguments, "{bad:?}");
        }
        for status in [200, 301, 304, 404, -1, 70_000] {
            assert!(Reply::redirect("/a", status).is_err(), "{status}");
        }
    }

    #[test]
    fn a_name_to_save_under_cannot_leave_its_header() {
        let saved = |name: &str| Reply::nothing().saved_as(Some(name)).map(|reply| reply.save_as.unwrap());
        for good in ["song.mp3", "Žlutý kůň.mp3", "a b;c=d.mid"] {
            assert_eq!(saved(good).unwrap(), good);
        }
        for bad in ["", ".hidden", "..", "a/b", "a\\b", "a\r\nset-cookie: x", "a\"b", "a\0", &"x".repeat(201)] {
            assert!(saved(bad).is_err(), "{bad:?}");
        }
        for status in [0, 100, 199, 600, -200, i64::MAX] {
            assert!(Reply::of(Vec::new(), "text/plain", status).is_err(), "{status}");
        }
    }

    #[test]
    fn the_kind_of_a_file_is_its_extensions() {
        for (path, kind) in [
            ("a.mp3", "audio/mpeg"),
            ("x/Song.WAV", "audio/wav"),
            ("a.tar.gz", "application/octet-stream"),
            ("mp3", "application/octet-stream"),
            ("a.mp3/b", "application/octet-stream"),
            ("n.md", "text/markdown; charset=utf-8"),
        ] {
            assert_eq!(media_type(path), kind, "{path}");
        }
    }
}
