//! A picture beside a text, and the handles by which texts name pictures. It knows neither where pictures are kept nor how
//! they are decoded.

use crate::base::error::{Error, Result};
use crate::service::digest;
use serde::Serialize;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// What a handle begins with; the id follows.
pub const PREFIX: &str = "img:";
/// Longest id that is looked for.
const MAX_ID: usize = 64;

/// A picture that a call gives to a model and to a person.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Image {
    /// Its handle, `img:<id>`; `None` where it was not kept, as in a call without a chat.
    pub id: Option<String>,
    /// The media type of `data`.
    pub media_type: String,
    /// Pixels across when seen upright; 0 where that is not known.
    pub width: u32,
    /// Pixels down when seen upright; 0 where that is not known.
    pub height: u32,
    /// Only the person sees it.
    pub display_only: bool,
    /// What it shows, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caption: Option<String>,
    /// The file as the tool gave it, for the person. Empty where it has to be fetched by its handle.
    #[serde(skip)]
    pub data: Pixels,
    /// What the model is shown in its place.
    #[serde(skip)]
    pub view: View,
}

/// What a model is shown of a picture.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum View {
    /// The file itself.
    #[default]
    Same,
    /// A copy made of its pixels.
    Copy {
        /// The file.
        data: Pixels,
        /// Its media type.
        media_type: &'static str,
    },
    /// Nothing, for this reason: it cannot be decoded.
    Unseen(String),
}

/// The bytes of a picture, shared. They are content: debugging shows only how many there are.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Pixels(Arc<Vec<u8>>);

impl Pixels {
    /// Takes bytes in, without a copy.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Pixels {
        Pixels(Arc::new(bytes))
    }
}

impl Deref for Pixels {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Pixels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl Image {
    /// A picture that nothing more is known of.
    #[must_use]
    pub fn of(bytes: Vec<u8>, media_type: &str) -> Image {
        Image {
            id: None,
            media_type: media_type.to_owned(),
            width: 0,
            height: 0,
            display_only: false,
            caption: None,
            data: Pixels::new(bytes),
            view: View::Same,
        }
    }

    /// What a model is shown: the media type and the bytes.
    #[must_use]
    pub fn for_model(&self) -> Option<(&str, &[u8])> {
        match &self.view {
            View::Same if self.display_only || self.data.is_empty() => None,
            View::Same => Some((&self.media_type, &self.data)),
            View::Copy { data, media_type } => Some((media_type, data)),
            View::Unseen(_) => None,
        }
    }

    /// The same with its texts as `change` makes them: see [`Part::map_texts`](super::markers::Part::map_texts).
    #[must_use]
    pub fn map_texts(self, change: &mut impl FnMut(String) -> String) -> Image {
        let Image { id, media_type, width, height, display_only, caption, data, view } = self;
        let view = match view {
            View::Unseen(why) => View::Unseen(change(why)),
            View::Same | View::Copy { .. } => view,
        };
        Image { id, media_type, width, height, display_only, caption: caption.map(change), data, view }
    }

    /// The same without bytes, for whoever fetches them by the handle.
    #[must_use]
    pub fn without_data(&self) -> Image {
        Image { data: Pixels::default(), view: View::Same, ..self.clone() }
    }
}

/// A new id: 12 lower-case hex digits, and `.png` for a PNG or `.jpg` for everything else.
///
/// # Errors
/// `internal` where the system has no random numbers.
pub fn new_id(media_type: &str) -> Result<String> {
    let mut bytes = [0; 6];
    getrandom::fill(&mut bytes).map_err(|e| Error::internal(format!("no random numbers to make an id of: {e}")))?;
    Ok(format!("{}.{}", digest::hex(&bytes), if media_type.contains("png") { "png" } else { "jpg" }))
}

/// The id in a handle, where the whole text is one: `img:` and then an id as [`handles_in`] finds it.
#[must_use]
pub fn id_of(handle: &str) -> Option<&str> {
    let id = handle.strip_prefix(PREFIX)?;
    (id.len() <= MAX_ID && id_length(id) == id.len() && !id.is_empty()).then_some(id)
}

/// The ids of all handles that a text names, in its order. `img:` begins a word; a full stop that ends a sentence is no part.
pub fn handles_in(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(PREFIX).filter_map(move |(at, _)| {
        let begins_word = !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let id = &text[at + PREFIX.len()..];
        let length = id_length(id);
        (begins_word && (1..=MAX_ID).contains(&length)).then(|| &id[..length])
    })
}

/// Bytes of the id that a text begins with: a letter or digit, then letters, digits, `_` and `-`, then parts after single dots.
fn id_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let run = |from: usize, fits: fn(u8) -> bool| bytes[from..].iter().take_while(|b| fits(**b)).count();
    if !bytes.first().is_some_and(u8::is_ascii_alphanumeric) {
        return 0;
    }
    let mut end = run(0, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    while bytes.get(end) == Some(&b'.') {
        let part = run(end + 1, |b| b.is_ascii_alphanumeric());
        if part == 0 {
            break;
        }
        end += 1 + part;
    }
    end
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_twelve_hex_digits_and_say_whether_it_is_a_png() {
        for (media_type, end) in [
            ("image/png", ".png"),
            ("image/apng", ".png"),
            ("image/jpeg", ".jpg"),
            ("image/webp", ".jpg"),
            ("image/gif", ".jpg"),
        ] {
            let id = new_id(media_type).unwrap();
            let (hex, rest) = id.split_at(12);
            assert_eq!(rest, end);
            assert!(hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{id}");
            assert_ne!(new_id(media_type).unwrap(), id);
            assert_eq!(id_of(&format!("img:{id}")), Some(id.as_str()));
        }
    }

    #[test]
    fn row_29_handles_are_found_in_text_without_the_stop_of_a_sentence() {
        let long = format!("img:{}", "a".repeat(65));
        let rows: [(&str, &[&str]); 22] = [
            ("img:ab.jpg", &["ab.jpg"]),
            ("img:ab.jpg.", &["ab.jpg"]),
            ("see img:ab.jpg, img:cd.png; and img:ef", &["ab.jpg", "cd.png", "ef"]),
            ("(image img:0123456789ab.png)", &["0123456789ab.png"]),
            ("img:ab...", &["ab"]),
            ("img:a_b-c.tar.gz", &["a_b-c.tar.gz"]),
            ("img:ab.jpg/../x", &["ab.jpg"]),
            ("\"img:ab.jpg\"", &["ab.jpg"]),
            ("myimg:ab.jpg", &[]),
            ("_img:ab.jpg", &[]),
            ("éimg:ab.jpg", &[]),
            ("-img:ab.jpg", &["ab.jpg"]),
            ("img:", &[]),
            ("img: ab.jpg", &[]),
            ("img:.jpg", &[]),
            ("img:-a", &[]),
            ("img:../x", &[]),
            ("img:é", &[]),
            ("IMG:ab.jpg", &[]),
            ("img:abé", &["ab"]),
            (&long, &[]),
            ("img:img:ab", &["img", "ab"]),
        ];
        for (text, expected) in rows {
            // The last row's second handle stands behind a colon, which ends a word.
            assert_eq!(handles_in(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn only_a_whole_handle_is_one() {
        for (text, id) in [
            ("img:ab.jpg", Some("ab.jpg")),
            ("img:ab.jpg.", None),
            ("img:ab.jpg ", None),
            ("img:../x", None),
            ("img:a/b", None),
            ("img:a\\b", None),
            ("img:", None),
            ("ab.jpg", None),
            ("Img:ab.jpg", None),
            ("img:ab\0", None),
        ] {
            assert_eq!(id_of(text), id, "{text:?}");
        }
    }

    #[test]
    fn a_model_sees_what_is_meant_for_it_and_debugging_shows_no_bytes() {
        let mut image = Image::of(b"secret".to_vec(), "image/png");
        assert_eq!(image.for_model(), Some(("image/png", b"secret".as_slice())));
        assert!(format!("{image:?}").contains("6 bytes"));
        image.view = View::Copy { data: Pixels::new(b"small".to_vec()), media_type: "image/jpeg" };
        assert_eq!(image.for_model(), Some(("image/jpeg", b"small".as_slice())));
        image.view = View::Unseen("broken".into());
        assert_eq!(image.for_model(), None);
        image.view = View::Same;
        assert_eq!(image.without_data().for_model(), None);
        image.display_only = true;
        assert_eq!(image.for_model(), None);
    }
}
