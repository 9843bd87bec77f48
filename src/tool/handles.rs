//! The rest of long results, kept in memory under a handle until newer ones need the room.
//! It stores text and knows nothing of calls; who may read a handle is whoever was given it, for it cannot be guessed.

use crate::base::error::{Error, Result, excerpt};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What a handle begins with.
pub const PREFIX: &str = "result:";
/// Most bytes of one text; what is beyond is not kept.
pub const MAX_ONE: usize = 8 << 20;
/// Most bytes of all texts; the least recently used go first.
pub const MAX_ALL: usize = 32 << 20;

/// Most characters of a handle that an error tells.
const SHOWN: usize = 2_000;

/// Texts by handle. Cheap when empty.
#[derive(Debug, Default)]
pub struct Handles(Mutex<Shelf>);

#[derive(Debug, Default)]
struct Shelf {
    texts: HashMap<String, Kept>,
    bytes: usize,
    clock: u64,
}

#[derive(Debug)]
struct Kept {
    text: Arc<str>,
    used: u64,
}

/// A piece of a kept text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The piece.
    pub text: String,
    /// Where the next piece begins, in characters; `None` at the end.
    pub next: Option<usize>,
    /// Characters of the whole text.
    pub total: usize,
}

impl Handles {
    /// Keeps a text, up to [`MAX_ONE`] bytes of it, and returns its handle: `result:` and 16 hex digits.
    pub fn keep(&self, text: &str) -> String {
        let text: Arc<str> = text[..text.floor_char_boundary(MAX_ONE)].into();
        let random = uuid::Uuid::new_v4().simple().to_string();
        let handle = format!("{PREFIX}{}", &random[16..]);
        let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while shelf.bytes + text.len() > MAX_ALL {
            let Some(oldest) = shelf.texts.iter().min_by_key(|(_, kept)| kept.used).map(|(handle, _)| handle.clone())
            else {
                break;
            };
            if let Some(gone) = shelf.texts.remove(&oldest) {
                shelf.bytes -= gone.text.len();
            }
        }
        shelf.bytes += text.len();
        shelf.clock += 1;
        let used = shelf.clock;
        shelf.texts.insert(handle.clone(), Kept { text, used });
        handle
    }

    /// Reads at most `max` characters from the character `offset` on.
    ///
    /// # Errors
    /// `not_found` for a handle that was never given, or whose text made room for newer ones.
    pub fn read(&self, handle: &str, offset: usize, max: usize) -> Result<Part> {
        let text = {
            let mut shelf = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            shelf.clock += 1;
            let now = shelf.clock;
            shelf.texts.get_mut(handle).map(|kept| {
                kept.used = now;
                Arc::clone(&kept.text)
            })
        };
        let Some(text) = text else {
            // An address of another kind is told whole, so that who sent it knows it again.
            let shown = excerpt(handle, SHOWN);
            return Err(Error::not_found(format!("there is no text behind `{shown}` any more"))
                .hint("call the tool again, with a narrower request"));
        };
        let total = text.chars().count();
        let start = text.char_indices().nth(offset).map_or(text.len(), |(at, _)| at);
        let piece = &text[start..];
        let end = piece.char_indices().nth(max).map_or(piece.len(), |(at, _)| at);
        let next = (start + end < text.len()).then_some(offset + max);
        Ok(Part { text: piece[..end].to_owned(), next, total })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::base::error::Kind;

    #[test]
    fn pieces_join_to_the_whole_text() {
        let handles = Handles::default();
        let text = "aé日😀".repeat(100);
        let handle = handles.keep(&text);
        assert!(handle.starts_with(PREFIX) && handle.len() == PREFIX.len() + 16);
        for max in [1, 7, 399, 400, 401] {
            let (mut read, mut offset) = (String::new(), Some(0));
            while let Some(at) = offset {
                let part = handles.read(&handle, at, max).unwrap();
                assert_eq!(part.total, 400);
                read.push_str(&part.text);
                offset = part.next;
            }
            assert_eq!(read, text, "{max}");
        }
        let beyond = handles.read(&handle, 4_000, 10).unwrap();
        assert_eq!((beyond.text.as_str(), beyond.next), ("", None));
    }

    #[test]
    fn an_unknown_handle_is_not_found() {
        for handle in ["result:0000000000000000", "", "other", "result:"] {
            assert_eq!(Handles::default().read(handle, 0, 1).unwrap_err().kind(), Kind::NotFound);
        }
    }

    #[test]
    fn the_least_recently_used_text_makes_room() {
        let handles = Handles::default();
        let big = "x".repeat(MAX_ONE);
        let all: Vec<String> = (0..4).map(|_| handles.keep(&big)).collect();
        handles.read(&all[0], 0, 1).unwrap();
        let newest = handles.keep(&big);
        assert!(handles.read(&all[0], 0, 1).is_ok());
        assert!(handles.read(&all[1], 0, 1).is_err());
        assert!(handles.read(&newest, 0, 1).is_ok());
        assert!(handles.0.lock().unwrap().bytes <= MAX_ALL);
    }

    #[test]
    fn a_text_beyond_the_limit_is_cut_at_a_character() {
        let handles = Handles::default();
        let handle = handles.keep(&"é".repeat(MAX_ONE));
        assert_eq!(handles.read(&handle, 0, 1).unwrap().total, MAX_ONE / 2);
    }
}
