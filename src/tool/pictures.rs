//! Pictures in what a tool returned: found by their shape, taken out before the value becomes JSON, kept in the chat.
//! What a picture is and where it is kept is `service::images`'.

use crate::base::error::Result;
use crate::script::control::Stop;
use crate::script::ctx::Ctx;
use crate::service::digest;
use crate::service::images::{self, Audience, MAX_IMAGES, Stash};
use crate::service::picture::Image;
use rhai::{Array, Blob, Dynamic, Map};
use serde_json::Value;

/// Pictures beside a text, as they were returned.
#[derive(Debug, Default)]
pub(super) struct Given {
    pictures: Vec<(Vec<u8>, Audience)>,
    /// For the author: what was left out, and why.
    pub(super) warnings: Vec<String>,
}

/// Takes the pictures out of what a script returned: a map with just `text` and `images`, by itself or as the first of a pair
/// with a bool. In its place stays the text. Any other value is left as it is.
pub(super) fn take(value: Dynamic) -> (Dynamic, Given) {
    if value.is_map() {
        return match result_of(value) {
            Ok((text, given)) => (text, given),
            Err(other) => (other, Given::default()),
        };
    }
    let is_pair = value
        .read_lock::<Array>()
        .is_some_and(|pair| matches!(pair.as_slice(), [first, second] if first.is_map() && second.is_bool()));
    if !is_pair {
        return (value, Given::default());
    }
    let mut pair = value.cast::<Array>();
    let (first, given) = take(std::mem::take(&mut pair[0]));
    pair[0] = first;
    (pair.into(), given)
}

fn result_of(value: Dynamic) -> std::result::Result<(Dynamic, Given), Dynamic> {
    let fits = value.read_lock::<Map>().is_some_and(|map| {
        map.len() == 2
            && map.get("text").is_some_and(Dynamic::is_string)
            && map.get("images").and_then(|images| images.read_lock::<Array>().map(|all| all.iter().all(is_picture)))
                == Some(true)
    });
    if !fits {
        return Err(value);
    }
    let mut map = value.cast::<Map>();
    let list = map.remove("images").and_then(Dynamic::try_cast::<Array>).unwrap_or_default();
    let mut given = Given::default();
    for picture in list {
        let mut picture = picture.cast::<Map>();
        let display_only = picture.get("display_only").and_then(|only| only.as_bool().ok()).unwrap_or(false);
        if let Some(data) = picture.remove("data").and_then(Dynamic::try_cast::<Blob>) {
            given.add(data, display_only);
        }
    }
    Ok((map.remove("text").unwrap_or_default(), given))
}

fn is_picture(value: &Dynamic) -> bool {
    value.read_lock::<Map>().is_some_and(|map| map.get("data").is_some_and(Dynamic::is_blob))
}

/// As [`take`], for what a tool in Rust returned: `data` is base64 there.
pub(super) fn take_json(mut value: Value) -> (Value, Given) {
    let slot = match &mut value {
        Value::Array(pair) => match pair.as_mut_slice() {
            [first @ Value::Object(_), Value::Bool(_)] => first,
            _ => return (value, Given::default()),
        },
        other => other,
    };
    let Some((text, given)) = result_of_json(slot) else { return (value, Given::default()) };
    *slot = text;
    (value, given)
}

fn result_of_json(value: &mut Value) -> Option<(Value, Given)> {
    let map = value.as_object_mut().filter(|map| map.len() == 2 && map.get("text").is_some_and(Value::is_string))?;
    let mut given = Given::default();
    for picture in map.get("images")?.as_array()? {
        let data = digest::decode_base64(picture.get("data")?.as_str()?).ok()?;
        given.add(data, picture.get("display_only").and_then(Value::as_bool).unwrap_or(false));
    }
    Some((map.get_mut("text")?.take(), given))
}

impl Given {
    pub(super) fn is_empty(&self) -> bool {
        self.pictures.is_empty() && self.warnings.is_empty()
    }

    fn add(&mut self, data: Vec<u8>, display_only: bool) {
        if self.pictures.len() < MAX_IMAGES {
            self.pictures.push((data, if display_only { Audience::Person } else { Audience::Both }));
        } else {
            self.warnings.push(format!("more than {MAX_IMAGES} pictures were returned: this one was left out"));
        }
    }

    /// Makes the pictures fit and keeps them in the call's chat, in their order. One that cannot be kept is shown all the same,
    /// without a handle.
    ///
    /// # Errors
    /// The call's own stop.
    pub(super) fn keep(self, ctx: &Ctx) -> Result<(Vec<Image>, Vec<String>)> {
        let Given { pictures, mut warnings } = self;
        let check = || if ctx.control.stopped() == Stop::No { Ok(()) } else { Err(ctx.control.error()) };
        let shelf = ctx.services.shelf(ctx.chat.as_deref(), ctx.private);
        let mut images = Vec::with_capacity(pictures.len());
        for (data, audience) in pictures {
            if let Err(e) = images::media_type(&data) {
                warnings.push(format!("a picture was left out: {}", e.message()));
                continue;
            }
            let mut image = images::shown_image(data, audience, &check)?;
            let stash = Stash { visible: audience == Audience::Both, caption: None };
            match shelf.stash(&image.data, &stash) {
                Ok(handle) => image.id = Some(handle),
                Err(e) => warnings.push(format!("a picture was not kept: {}", e.message())),
            }
            images.push(image);
        }
        Ok((images, warnings))
    }
}

/// The picture behind a handle again, for a text that passes on what a nested call returned.
pub(super) fn again(ctx: &Ctx, image: Image) -> Result<Image> {
    let check = || if ctx.control.stopped() == Stop::No { Ok(()) } else { Err(ctx.control.error()) };
    let Some(id) = image.id.as_deref().and_then(crate::service::picture::id_of) else { return Ok(image) };
    let found = ctx.services.shelf(ctx.chat.as_deref(), ctx.private).kept(id, |_| Ok(()))?;
    let audience = if image.display_only { Audience::Person } else { Audience::Both };
    let fresh = images::shown_image(found.data, audience, &check)?;
    Ok(Image { id: image.id, caption: image.caption, ..fresh })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    fn picture(data: &[u8], display_only: Option<bool>) -> Dynamic {
        let mut map = Map::new();
        map.insert("data".into(), Dynamic::from_blob(data.to_vec()));
        if let Some(only) = display_only {
            map.insert("display_only".into(), only.into());
        }
        map.into()
    }

    fn result(images: Array) -> Dynamic {
        let mut map = Map::new();
        map.insert("text".into(), "look".into());
        map.insert("images".into(), images.into());
        map.into()
    }

    #[test]
    fn row_25_a_result_without_pictures_is_its_text() {
        let (value, given) = take(result(Array::new()));
        assert_eq!(value.cast::<String>(), "look");
        assert!(given.is_empty());
        let (value, given) = take(vec![result(Array::new()), false.into()].into());
        let pair = value.cast::<Array>();
        assert_eq!((pair[0].clone().cast::<String>().as_str(), pair[1].as_bool()), ("look", Ok(false)));
        assert!(given.is_empty());
    }

    #[test]
    fn pictures_are_taken_where_a_text_may_stand_and_nowhere_else() {
        let taken = |value: Dynamic| take(value).1.pictures.len();
        let two = || vec![picture(b"a", None), picture(b"b", Some(true))];
        assert_eq!(taken(result(two())), 2);
        assert_eq!(taken(vec![result(two()), true.into()].into()), 2);
        assert_eq!(taken(vec![result(two())].into()), 0);
        assert_eq!(taken(vec![result(two()), true.into(), 1_i64.into()].into()), 0);
        assert_eq!(taken(vec![true.into(), result(two())].into()), 0);
        assert_eq!(taken(vec![result(two()), 1_i64.into()].into()), 0);
        assert_eq!(taken("look".into()), 0);
        let audiences: Vec<Audience> = take(result(two())).1.pictures.into_iter().map(|p| p.1).collect();
        assert_eq!(audiences, [Audience::Both, Audience::Person]);
    }

    #[test]
    fn a_map_that_only_resembles_a_result_stays_a_map() {
        let mut more = result(Array::new()).cast::<Map>();
        more.insert("page".into(), 1_i64.into());
        let mut urls = result(Array::new()).cast::<Map>();
        urls.insert("images".into(), vec![Dynamic::from("https://example.org/a.png")].into());
        let mut number = result(Array::new()).cast::<Map>();
        number.insert("text".into(), 1_i64.into());
        for map in [more, urls, number, Map::new()] {
            let (value, given) = take(map.clone().into());
            assert_eq!(value.cast::<Map>().len(), map.len());
            assert!(given.is_empty());
        }
    }

    #[test]
    fn what_is_too_many_is_left_out_and_told() {
        let given = take(result(vec![picture(b"a", None); MAX_IMAGES + 2])).1;
        assert_eq!((given.pictures.len(), given.warnings.len()), (MAX_IMAGES, 2));
    }

    #[test]
    fn a_tool_in_rust_gives_base64() {
        let (value, given) =
            take_json(json!([{ "text": "t", "images": [{ "data": "YWI=", "display_only": true }] }, true]));
        assert_eq!(value, json!(["t", true]));
        assert_eq!(given.pictures, [(b"ab".to_vec(), Audience::Person)]);
        for other in [
            json!({ "text": "t", "images": [{ "data": "***" }] }),
            json!({ "text": "t", "images": ["a"] }),
            json!({ "text": "t" }),
            json!([{ "text": "t", "images": [] }, 1]),
            json!("t"),
            json!(null),
        ] {
            let (value, given) = take_json(other.clone());
            assert_eq!(value, other);
            assert!(given.is_empty());
        }
        assert_eq!(take_json(json!({ "text": "t", "images": [] })).0, json!("t"));
    }
}
