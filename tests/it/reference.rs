//! The reference that is committed is the one that the sources render.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

#[test]
fn the_pages_of_the_reference_are_fresh() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let pages = lapidary::docs::render(&lapidary::host::all());
    let stale: Vec<&str> = pages
        .iter()
        .filter(|(path, text)| fs::read_to_string(root.join(path)).ok().as_deref() != Some(text))
        .map(|(path, _)| path.as_str())
        .collect();
    assert!(stale.is_empty(), "run `cargo run -- docs --out docs/ref`: {stale:?}");
    let known: BTreeSet<&str> = pages.iter().map(|(path, _)| path.as_str()).collect();
    for entry in fs::read_dir(root.join("docs/ref")).unwrap() {
        let path = format!("docs/ref/{}", entry.unwrap().file_name().to_string_lossy());
        assert!(known.contains(path.as_str()), "nothing renders {path}: delete it");
    }
}
