//! What an engine's native functions are called and how many arguments they take. Built once an engine, when first asked.

use rhai::{Dynamic, Engine, FnNamespace};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Numbers of arguments, as bits: bit `n` for `n` arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts(u32);

impl Counts {
    pub(super) const ANY: Counts = Counts(u32::MAX);

    pub(super) fn one(n: usize) -> Self {
        Counts(1 << n.min(31))
    }

    pub(super) fn add(&mut self, n: usize) {
        self.0 |= Counts::one(n).0;
    }

    pub(super) fn has(self, n: usize) -> bool {
        self.0 & Counts::one(n).0 != 0
    }

    pub(super) fn and(self, other: Counts) -> Self {
        Counts(self.0 | other.0)
    }

    /// `1 argument`, `2 or 3 arguments`.
    pub(super) fn words(self) -> String {
        let list: Vec<String> = (0..32).filter(|n| self.has(*n)).map(|n| n.to_string()).collect();
        match list.as_slice() {
            [] => "no arguments".to_owned(),
            [one] if one == "0" => "no arguments".to_owned(),
            [one] if one == "1" => "1 argument".to_owned(),
            [one] => format!("{one} arguments"),
            [first @ .., last] => format!("{} or {last} arguments", first.join(", ")),
        }
    }
}

type Names = HashMap<String, Counts>;

/// The index.
#[derive(Debug, Default)]
pub(super) struct Natives {
    /// Callable without a module; a method counts its object as the first argument.
    pub(super) plain: Names,
    /// Host modules by name.
    pub(super) modules: HashMap<String, Names>,
}

/// A place for the index, carried by the engine's default tag.
#[derive(Clone, Default)]
struct Slot(Arc<OnceLock<Natives>>);

/// Gives an engine its place for the index.
pub(in crate::script) fn prepare(engine: &mut Engine) {
    // Shared, because every evaluation starts with a copy of the default tag.
    engine.set_default_tag(Dynamic::from(Slot::default()).into_shared());
}

/// Looks at the index of `engine`, building it the first time.
pub(super) fn with<T>(engine: &Engine, look: impl FnOnce(&Natives) -> T) -> T {
    let slot = engine.default_tag().read_lock::<Slot>().map(|slot| slot.clone());
    match slot {
        Some(slot) => look(slot.0.get_or_init(|| build(engine))),
        // An engine that was built elsewhere.
        None => look(&build(engine)),
    }
}

fn build(engine: &Engine) -> Natives {
    let mut out = Natives::default();
    let all = engine.collect_fn_metadata(
        None,
        |f| {
            let m = f.metadata;
            Some((f.namespace.to_string(), m.name.to_string(), m.num_params, m.namespace == FnNamespace::Global))
        },
        true,
    );
    for (namespace, name, count, global) in all {
        if namespace.is_empty() || global {
            out.plain.entry(name.clone()).or_default().add(count);
        }
        if !namespace.is_empty() {
            out.modules.entry(namespace).or_default().entry(name).or_default().add(count);
        }
    }
    // What the engine itself answers.
    for (name, counts) in [
        ("Fn", Counts::one(1)),
        ("call", Counts::ANY),
        ("curry", Counts::ANY),
        ("is_shared", Counts::one(1)),
        ("is_def_var", Counts::one(1)),
        ("is_def_fn", Counts::one(2)),
        ("type_of", Counts::one(1)),
    ] {
        let entry = out.plain.entry(name.to_owned()).or_default();
        *entry = entry.and(counts);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::Counts;

    #[test]
    fn counts_read_as_words() {
        let table: [(&[usize], &str); 5] = [
            (&[], "no arguments"),
            (&[0], "no arguments"),
            (&[1], "1 argument"),
            (&[2, 3], "2 or 3 arguments"),
            (&[0, 1, 4], "0, 1 or 4 arguments"),
        ];
        for (list, words) in table {
            let mut counts = Counts::default();
            list.iter().for_each(|n| counts.add(*n));
            assert_eq!(counts.words(), words);
        }
    }
}
