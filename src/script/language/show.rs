//! Values as text, the way the language writes them, but never deeper than [`super::DEEPEST`] and never longer than the
//! memory budget allows: many places may share one text, so a small value can have an endless rendering.

use super::super::control;
use super::super::value::type_name;
use super::DEEPEST;
use rhai::{Array, Blob, Dynamic, Engine, FnPtr, ImmutableString, Map, NativeCallContext};

/// A value as text for people and logs: a text as it is, everything else as the language writes it. Cut off with `…`
/// where it passes what the running call may hold.
#[must_use]
pub fn show(value: &Dynamic) -> String {
    if let Some(text) = value.read_lock::<ImmutableString>() {
        return if control::reserve(text.len()).is_ok() { text.to_string() } else { String::new() };
    }
    if value.is_unit() {
        return String::new();
    }
    let mut out = Out::default();
    out.value(value, 0, &mut |other| {
        let said = other.to_string();
        // Of a type of the host the language knows no more than its name.
        if said == other.type_name() { type_name(other).to_owned() } else { said }
    });
    out.text
}

/// The text so far, and whether it is cut off.
#[derive(Default)]
struct Out {
    text: String,
    full: bool,
}

impl Out {
    fn push(&mut self, text: &str) {
        let room = self.text.capacity() - self.text.len();
        if !self.full && text.len() > room {
            let grow = text.len().max(self.text.len() / 2).max(64);
            if control::may_hold(self.text.len(), grow) {
                self.text.reserve_exact(grow);
            } else {
                self.full = true;
                self.text.push('…');
            }
        }
        if !self.full {
            self.text.push_str(text);
        }
    }

    fn value(&mut self, value: &Dynamic, depth: usize, other: &mut dyn FnMut(&Dynamic) -> String) {
        if self.full {
            return;
        }
        if depth > DEEPEST {
            self.push("…");
        } else if let Some(list) = value.read_lock::<Array>() {
            self.list(&list, depth, other);
        } else if let Some(map) = value.read_lock::<Map>() {
            self.map(&map, depth, other);
        } else if let Some(text) = value.read_lock::<ImmutableString>() {
            self.quoted(&text);
        } else if let Ok(c) = value.as_char() {
            self.push(&format!("{c:?}"));
        } else if let Some(pointer) = value.read_lock::<FnPtr>() {
            let name = if pointer.is_anonymous() { "<closure>" } else { pointer.fn_name() };
            self.push(&format!("Fn({name})"));
        } else if let Some(blob) = value.read_lock::<Blob>() {
            // Each byte takes three characters.
            if control::may_hold(self.text.len(), blob.len().saturating_mul(3)) {
                self.push(&value.to_string());
            } else {
                self.full = true;
            }
        } else if value.is_unit() {
            self.push("()");
        } else if value.is_bool() || value.is_int() || value.is_float() {
            self.push(&value.to_string());
        } else {
            self.push(&other(value));
        }
    }

    fn list(&mut self, list: &Array, depth: usize, other: &mut dyn FnMut(&Dynamic) -> String) {
        self.push("[");
        for (i, item) in list.iter().enumerate() {
            if self.full {
                return;
            }
            if i > 0 {
                self.push(", ");
            }
            self.value(item, depth + 1, other);
        }
        self.push("]");
    }

    fn map(&mut self, map: &Map, depth: usize, other: &mut dyn FnMut(&Dynamic) -> String) {
        self.push("#{");
        for (i, (key, item)) in map.iter().enumerate() {
            if self.full {
                return;
            }
            if i > 0 {
                self.push(", ");
            }
            self.quoted(key);
            self.push(": ");
            self.value(item, depth + 1, other);
        }
        self.push("}");
    }

    fn quoted(&mut self, text: &str) {
        self.push("\"");
        let mut rest = text;
        // In pieces, because escapes make a text up to six times as long.
        while !rest.is_empty() && !self.full {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(4096));
            rest = after;
            if piece.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'"' && b != b'\\') {
                self.push(piece);
            } else {
                let quoted = format!("{piece:?}");
                self.push(&quoted[1..quoted.len() - 1]);
            }
        }
        self.push("\"");
    }
}

/// The language's own walk every value to its end, however deep, and answer a failure with yet another such walk; so
/// these never fail.
pub(super) fn register(engine: &mut Engine) {
    for name in ["to_string", "to_debug"] {
        super::pure(engine, name, |call: NativeCallContext, list: &mut Array| {
            let mut out = Out::default();
            out.list(list, 0, &mut |other| named(&call, other));
            ImmutableString::from(out.text)
        });
        super::pure(engine, name, |call: NativeCallContext, map: &mut Map| {
            let mut out = Out::default();
            out.map(map, 0, &mut |other| named(&call, other));
            ImmutableString::from(out.text)
        });
    }
    super::pure(engine, "to_debug", |text: &mut ImmutableString| {
        let mut out = Out::default();
        out.quoted(text);
        ImmutableString::from(out.text)
    });
}

/// A host's value as its own `to_debug` says it.
fn named(call: &NativeCallContext, value: &Dynamic) -> String {
    call.call_native_fn_raw("to_debug", true, &mut [&mut value.clone()])
        .ok()
        .and_then(|said| said.into_immutable_string().ok())
        .map_or_else(|| type_name(value).to_owned(), |said| said.to_string())
}

#[cfg(test)]
mod tests {
    use super::show;
    use crate::script::control::{Budget, Control, Stop, enter};
    use rhai::{Dynamic, FnPtr, ImmutableString, Map};

    #[test]
    fn a_value_is_shown_as_the_language_writes_it() {
        let mut map = Map::new();
        map.insert(
            "a".into(),
            Dynamic::from_array(vec![Dynamic::UNIT, 1.5.into(), "x\"'".into(), 'c'.into(), true.into()]),
        );
        assert_eq!(show(&Dynamic::from_map(map)), r#"#{"a": [(), 1.5, "x\"'", 'c', true]}"#);
        assert_eq!(show(&"plain".into()), "plain");
        assert_eq!(show(&Dynamic::from_blob(vec![1, 255])), "[01ff]");
        let pointer = FnPtr::new("roll").map(Dynamic::from).unwrap_or_default();
        assert_eq!(show(&pointer), "Fn(roll)");
        let long = "é\n".repeat(3000);
        assert_eq!(show(&Dynamic::from_array(vec![long.clone().into()])), format!("[{long:?}]"));
    }

    #[test]
    fn what_many_places_share_ends_the_call_before_it_explodes() {
        let many = vec![Dynamic::from(ImmutableString::from("x".repeat(1 << 20))); 100];
        let control = Control::start(Budget { memory: 8 << 20, ..Budget::CALL });
        let running = enter(control.clone());
        assert!(show(&Dynamic::from_array(many)).ends_with('…'));
        assert_eq!(control.stopped(), Stop::Memory);
        drop(running);
        let mut deep = Dynamic::UNIT;
        for _ in 0..1000 {
            deep = Dynamic::from_array(vec![deep]);
        }
        assert!(show(&deep).contains('…'));
    }
}
