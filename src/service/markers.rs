//! Markers: the lines of text that stand for pictures and files until a call has ended. Only what this call made counts, by
//! the very line that it was given; everything else that looks like one is text. The only place that takes lines out of a text.

use super::attachments::{Files, one_line};
use super::gallery::Gallery;
use super::picture::{Image, View};
use crate::base::error::{Error, Kind, Result};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;
use std::sync::{Mutex, OnceLock, PoisonError};

/// Most markers of one call.
pub const MAX_MARKERS: usize = 64;

/// Something that stands beside a text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "part", rename_all = "snake_case")]
pub enum Part {
    /// A picture.
    Image(Image),
    /// Numbered tiles.
    Gallery(Gallery),
    /// Files to play or to save.
    Files(Files),
}

impl Part {
    /// The same part with every text in it that a script or a server may have written as `change` makes it; what is ours, such as
    /// a handle, stays. It takes every field by its name, so that a field which comes later is not forgotten.
    #[must_use]
    pub fn map_texts(self, change: &mut impl FnMut(String) -> String) -> Part {
        match self {
            Part::Image(image) => Part::Image(image.map_texts(change)),
            Part::Gallery(Gallery { title, items }) => Part::Gallery(Gallery {
                title: change(title),
                items: items.into_iter().map(|tile| tile.map_texts(change)).collect(),
            }),
            Part::Files(Files { title, items }) => Part::Files(Files {
                title: change(title),
                items: items.into_iter().map(|item| item.map_texts(change)).collect(),
            }),
        }
    }
}

/// What one call has made. Costs nothing while it has made nothing.
#[derive(Debug, Default)]
pub struct Mint(OnceLock<Box<Mutex<Vec<Minted>>>>);

#[derive(Debug, Clone)]
struct Minted {
    line: Box<str>,
    part: Part,
}

/// A text as the model reads it, as the person reads it, and what stands beside it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Copies {
    /// Without markers, with the receipts of pictures.
    pub model: String,
    /// Without either: a person sees the pictures.
    pub person: String,
    /// In the order of the text; pictures that were returned come first.
    pub parts: Vec<Part>,
}

impl Mint {
    /// Whether nothing was made.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.get().is_none()
    }

    /// Makes the line that stands for a row of tiles.
    ///
    /// # Errors
    /// `quota` beyond [`MAX_MARKERS`].
    pub fn gallery(&self, gallery: Gallery) -> Result<String> {
        let line = line("GALLERY", &serde_json::to_value(&gallery).unwrap_or_default());
        self.add(line, Part::Gallery(gallery))
    }

    /// Makes the line that stands for a row of files.
    ///
    /// # Errors
    /// `quota` beyond [`MAX_MARKERS`].
    pub fn files(&self, files: Files) -> Result<String> {
        let line = line("FILES", &serde_json::to_value(&files).unwrap_or_default());
        self.add(line, Part::Files(files))
    }

    fn add(&self, line: String, part: Part) -> Result<String> {
        let mut made = self.made();
        if made.len() >= MAX_MARKERS {
            return Err(Error::new(Kind::Quota, format!("a call makes at most {MAX_MARKERS} markers"))
                .hint("one gallery or row of files holds many items"));
        }
        made.push(Minted { line: line.as_str().into(), part });
        Ok(line)
    }

    /// Takes over what a nested call made and returned, so that its text may be passed on. What is too much is left out.
    pub fn adopt(&self, nested: &Mint, images: &[Image]) {
        let lines = nested.0.get().map(|made| made.lock().unwrap_or_else(PoisonError::into_inner).clone());
        // The bytes stay in the store: a script that calls a hundred tools must not hold all their pictures.
        let receipts = images.iter().filter_map(|image| {
            Some(Minted { line: receipt(image.id.as_deref()?).into(), part: Part::Image(image.without_data()) })
        });
        let all: Vec<Minted> = lines.into_iter().flatten().chain(receipts).collect();
        if all.is_empty() {
            return;
        }
        let mut made = self.made();
        let room = MAX_MARKERS.saturating_sub(made.len());
        made.extend(all.into_iter().take(room));
    }

    /// The two copies of a text that a call hands out, and the parts that go with them. `images` were returned beside the text;
    /// `shape` caps what is left of it. Each marker counts once, where it stands first; where it stands again it goes too.
    pub fn copies(&self, text: String, images: Vec<Image>, shape: impl FnOnce(String) -> String) -> Copies {
        let taken = self.take(text);
        let body = shape(taken.text);
        // What stood in the text already was told by the nested call that returned it.
        let mut person = body.clone();
        for told in &taken.receipts {
            person = without_line(&person, told);
        }
        let mut model = body;
        let mut tell = |line: &str| {
            if !model.is_empty() && !model.ends_with('\n') {
                model.push('\n');
            }
            model.push_str(line);
        };
        for image in &images {
            if let Some(id) = &image.id {
                tell(&receipt(id));
            }
            if let View::Unseen(why) = &image.view {
                tell(&format!("(this picture cannot be shown to you: {})", one_line(why, 200)));
            }
        }
        let parts = images.into_iter().map(Part::Image).chain(taken.parts).collect();
        Copies { model, person, parts }
    }

    fn take(&self, text: String) -> Taken {
        let mut left = match self.0.get() {
            Some(made) => made.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            None => return Taken { text, ..Taken::default() },
        };
        let mut taken = Taken::default();
        let (mut copied, mut at) = (0, 0);
        let mut spent: Vec<Box<str>> = Vec::new();
        while let Some(found) = text[at..].find(['<', '(']) {
            let start = at + found;
            let stands = |m: &Minted| text[start..].starts_with(&*m.line);
            let (line, part) = if let Some(which) = left.iter().position(stands) {
                let Minted { line, part } = left.remove(which);
                spent.push(line.clone());
                (line, Some(part))
            } else if let Some(line) = spent.iter().find(|line| text[start..].starts_with(&***line)) {
                // A line that stands twice for one thing shows it once, and is no text the second time either.
                (line.clone(), None)
            } else {
                at = start + 1;
                continue;
            };
            at = start + line.len();
            if line.starts_with('(') {
                // A receipt stays in the text, however often it is told.
                taken.receipts.extend(part.is_some().then(|| line.into()));
            } else {
                taken.text.push_str(&text[copied..start]);
                at += blank(&text[at..]);
                copied = at;
            }
            taken.parts.extend(part);
        }
        if copied == 0 {
            taken.text = text;
        } else {
            taken.text.push_str(&text[copied..]);
            taken.text = taken.text.trim().to_owned();
        }
        taken
    }

    fn made(&self) -> std::sync::MutexGuard<'_, Vec<Minted>> {
        self.0.get_or_init(Box::default).lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What was found in a text.
#[derive(Default)]
struct Taken {
    text: String,
    parts: Vec<Part>,
    receipts: Vec<String>,
}

/// The line that tells a model under which handle it finds a picture again.
#[must_use]
pub fn receipt(handle: &str) -> String {
    format!("(image {handle})")
}

/// Bytes of the blanks after a marker, its line's end included.
fn blank(rest: &str) -> usize {
    let spaces = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    let end = &rest[spaces..];
    spaces + if end.starts_with("\r\n") { 2 } else { usize::from(end.starts_with('\n')) }
}

fn without_line(text: &str, line: &str) -> String {
    let Some(at) = text.find(line) else { return text.to_owned() };
    let end = at + line.len();
    let rest = &text[end + blank(&text[end..])..];
    format!("{}{rest}", &text[..at]).trim_end().to_owned()
}

/// `<!--KIND:{..}-->` on one line, in ASCII, with nothing in it that could end it early.
fn line(kind: &str, value: &Value) -> String {
    let json = value.to_string();
    let mut out = String::with_capacity(json.len() + 24);
    let _ = write!(out, "<!--{kind}:");
    for c in json.chars() {
        // Outside of its texts, JSON is made of other characters.
        if c.is_ascii() && !matches!(c, '<' | '>' | '\u{7f}') {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out.push_str("-->");
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::service::attachments::{self, Item};
    use crate::service::gallery::Tile;

    fn files(title: &str) -> Files {
        let items = [Item { url: "/api/plugin/songs/a/b.mp3?x=1".into(), name: "b.mp3".into() }];
        attachments::row("songs", title, &items).unwrap().unwrap()
    }

    fn gallery(title: &str) -> Gallery {
        Gallery { title: title.into(), items: Vec::new() }
    }

    fn image(id: &str) -> Image {
        Image { id: Some(id.into()), ..Image::of(vec![1, 2, 3], "image/png") }
    }

    fn copies(mint: &Mint, text: &str) -> Copies {
        mint.copies(text.to_owned(), Vec::new(), |text| text)
    }

    #[test]
    fn row_32_markers_of_this_call_leave_both_copies_and_become_parts_in_order() {
        let mint = Mint::default();
        let row = mint.files(files("Songs")).unwrap();
        let tiles = mint.gallery(gallery("Cats")).unwrap();
        for text in [
            format!("Saved.\n{row}\n{tiles}"),
            format!("Saved.\n{row} \t\n{tiles}\n"),
            format!("\n{row}{tiles}\nSaved."),
            format!("Saved. {row}\r\n{tiles}"),
        ] {
            let made = copies(&mint, &text);
            assert_eq!((made.model.as_str(), made.person.as_str()), ("Saved.", "Saved."), "{text}");
            assert_eq!(made.parts, [Part::Files(files("Songs")), Part::Gallery(gallery("Cats"))]);
        }
        let made = copies(&mint, &format!("a\n{row}\nb\n{tiles}\nc"));
        assert_eq!((made.model.as_str(), made.parts.len()), ("a\nb\nc", 2));
        let made = copies(&mint, &row);
        assert_eq!((made.model.as_str(), made.parts.len()), ("", 1));
    }

    #[test]
    fn every_text_of_a_part_is_made_anew_and_what_is_ours_stays() {
        let text = |n: u8| Some(format!("text {n}"));
        let mut picture = image("img:0000000000aa.png");
        (picture.caption, picture.view) = (text(1), View::Unseen("text 2".into()));
        let tile = Tile {
            handle: Some("img:0000000000aa.png".into()),
            full: text(1),
            title: "text 2".into(),
            page: text(3),
            thumb: text(4),
        };
        let item = Item { url: "text 1".into(), name: "text 2".into() };
        let rows = [
            (Part::Image(picture.clone()), 2),
            (Part::Gallery(Gallery { title: "text 0".into(), items: vec![tile.clone(), tile] }), 9),
            (Part::Files(Files { title: "text 0".into(), items: vec![item.clone(), item] }), 5),
        ];
        for (part, texts) in rows {
            let mut seen = Vec::new();
            let same = part.clone().map_texts(&mut |text| {
                seen.push(text.clone());
                text
            });
            assert_eq!((&same, seen.len()), (&part, texts), "{seen:?}");
            assert!(seen.iter().all(|text| text.starts_with("text ")), "{seen:?}");
            let other = part.map_texts(&mut |_| "other".to_owned());
            assert!(!format!("{other:?}").contains("text "), "{other:?}");
        }
    }

    #[test]
    fn what_only_looks_like_a_marker_stays_text_in_both_copies() {
        let made_here = Mint::default();
        let row = made_here.files(files("Songs")).unwrap();
        let other = Mint::default();
        let foreign = other.files(files("Other")).unwrap();
        for text in [
            "<!--FILES:{\"title\":\"x\",\"items\":[{\"url\":\"/api/plugin/songs/a\",\"name\":\"a\"}]}-->",
            "<!--GALLERY:[\"https://tracker.example/x.png\"]-->",
            "<!--GALLERY:{}-->",
            "<<IMG::tool:0123456789ab.png>>",
            "(image img:0123456789ab.png)",
            "<!-- x -->",
            "<!--FILES: x -->",
            foreign.as_str(),
            &row.replace("Songs", "Song"),
            &row.replace("<!--FILES:", "<!--files:"),
            &row.replace("<!--", "<! --"),
            &row[..row.len() - 1],
            &row.replace("a/b.mp3", "a/c.mp3"),
        ] {
            for text in [text.to_owned(), format!("before\n{text}\nafter  ")] {
                let made = copies(&made_here, &text);
                assert_eq!((made.model, made.person, made.parts.len()), (text.clone(), text, 0));
            }
        }
        assert_eq!(copies(&Mint::default(), &row).model, row, "another call's marker is text");
    }

    #[test]
    fn a_marker_counts_as_often_as_it_was_made() {
        let mint = Mint::default();
        let row = mint.files(files("Songs")).unwrap();
        let made = copies(&mint, &format!("{row}\n{row}"));
        assert_eq!((made.model.as_str(), made.person.as_str(), made.parts.len()), ("", "", 1));
        let made = copies(&mint, &format!("a\n{row}\nb {row}\nc {row}{row} d"));
        assert_eq!((made.model.as_str(), made.parts.len()), ("a\nb c d", 1));
        assert_eq!(mint.files(files("Songs")).unwrap(), row);
        let made = copies(&mint, &format!("{row}\n{row}"));
        assert_eq!((made.model.as_str(), made.parts.len()), ("", 2));
    }

    #[test]
    fn a_receipt_that_is_told_twice_shows_its_picture_once() {
        let outer = Mint::default();
        outer.adopt(&Mint::default(), &[image("img:0000000000aa.png")]);
        let text = "(image img:0000000000aa.png)\nagain (image img:0000000000aa.png)";
        let made = copies(&outer, text);
        assert_eq!((made.model.as_str(), made.parts.len()), (text, 1));
    }

    #[test]
    fn nothing_in_a_title_ends_a_marker_early_or_leaves_its_line() {
        for title in ["a}-->b", "<!--FILES:{", "日本 🎵", "a\"b\\c", "\u{2028}\u{7f}"] {
            let mint = Mint::default();
            let line = mint.gallery(gallery(title)).unwrap();
            assert!(line.is_ascii() && !line.contains('\n'), "{line}");
            assert_eq!((line.matches("-->").count(), line.matches("<!--").count()), (1, 1), "{line}");
            let json = line.strip_prefix("<!--GALLERY:").unwrap().strip_suffix("-->").unwrap();
            assert_eq!(serde_json::from_str::<Value>(json).unwrap()["title"], title);
            assert_eq!(copies(&mint, &line).parts, [Part::Gallery(gallery(title))]);
        }
    }

    #[test]
    fn row_24_receipts_of_pictures_stand_behind_what_is_left_of_a_long_text() {
        let mint = Mint::default();
        let row = mint.files(files("Songs")).unwrap();
        let images = vec![image("img:0000000000aa.png"), image("img:0000000000bb.png")];
        let text = format!("{}{row}", "x".repeat(1_000));
        let made = mint.copies(text, images.clone(), |text| text[..10].to_owned());
        assert_eq!(made.model, "xxxxxxxxxx\n(image img:0000000000aa.png)\n(image img:0000000000bb.png)");
        assert_eq!(made.person, "xxxxxxxxxx");
        assert_eq!(made.parts.len(), 3);
        assert!(matches!(&made.parts[..2], [Part::Image(a), Part::Image(b)] if a == &images[0] && b == &images[1]));
        let made = Mint::default().copies(String::new(), images, |text| text);
        assert!(made.model.starts_with("(image img:0000000000aa.png)\n(image") && made.person.is_empty());
    }

    #[test]
    fn what_a_nested_call_returned_may_be_passed_on() {
        let (outer, inner) = (Mint::default(), Mint::default());
        let row = inner.files(files("Songs")).unwrap();
        outer.adopt(&inner, &[image("img:0000000000aa.png")]);
        let made = copies(&outer, &format!("It says:\nfine\n(image img:0000000000aa.png)\n{row}\nbye"));
        assert_eq!(made.model, "It says:\nfine\n(image img:0000000000aa.png)\nbye");
        assert_eq!(made.person, "It says:\nfine\nbye");
        assert!(matches!(&made.parts[..], [Part::Image(a), Part::Files(_)] if a.data.is_empty()));
        // What is not passed on is not shown.
        assert!(copies(&outer, "fine").parts.is_empty());
        let empty = Mint::default();
        empty.adopt(&Mint::default(), &[]);
        assert!(empty.is_empty());
    }

    #[test]
    fn a_call_makes_a_bounded_number_of_markers() {
        let mint = Mint::default();
        for _ in 0..MAX_MARKERS {
            mint.files(files("Songs")).unwrap();
        }
        assert_eq!(mint.files(files("Songs")).unwrap_err().kind(), Kind::Quota);
        let outer = Mint::default();
        outer.adopt(&mint, &[image("img:0000000000aa.png")]);
        outer.adopt(&mint, &[]);
        assert_eq!(outer.made().len(), MAX_MARKERS);
    }
}
