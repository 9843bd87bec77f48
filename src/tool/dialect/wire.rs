//! The names under which a model knows tools: what every provider takes, and back again. It knows no schema.

use crate::tool::names::MAX_NAME;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

/// Tools by the names that models use. Which tools there are decides; their order does not.
///
/// A name of 1 to 64 of `A-Z a-z 0-9 _ -` that starts with a letter or `_` stays. Any other becomes one: what is not allowed
/// turns into `_`, and where it was cut or would be another tool's name, it ends in a digest of the original.
#[derive(Debug, Clone, Default)]
pub struct WireNames {
    wire: BTreeMap<String, String>,
    back: HashMap<String, String>,
}

impl WireNames {
    /// The names for these tools. A name given twice counts once.
    #[must_use]
    pub fn new<'a>(tools: impl IntoIterator<Item = &'a str>) -> WireNames {
        let tools: BTreeSet<&str> = tools.into_iter().collect();
        let mut made = WireNames::default();
        let mut by_form: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for tool in tools {
            let form = form(tool);
            if form == tool && form.len() <= MAX_NAME {
                made.put(tool, form);
            } else {
                by_form.entry(form).or_default().push(tool);
            }
        }
        let mut crowded = Vec::new();
        for (form, tools) in by_form {
            match tools.as_slice() {
                [tool] if form.len() <= MAX_NAME && !made.back.contains_key(&form) => made.put(tool, form),
                _ => crowded.extend(tools.into_iter().map(|tool| (form.clone(), tool))),
            }
        }
        for (form, tool) in crowded {
            let digest = Sha256::digest(tool.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            // More of the digest where somebody has called a tool like the result.
            let free = (8..=60).step_by(4).map(|length| ending(&form, &digest[..length]));
            if let Some(name) = free.into_iter().find(|name| !made.back.contains_key(name)) {
                made.put(tool, name);
            }
        }
        made
    }

    fn put(&mut self, tool: &str, name: String) {
        self.back.insert(name.clone(), tool.to_owned());
        self.wire.insert(tool.to_owned(), name);
    }

    /// What a model calls this tool. A tool that was not among those given has no name.
    #[must_use]
    pub fn wire(&self, tool: &str) -> Option<&str> {
        self.wire.get(tool).map(String::as_str)
    }

    /// The tool that a model means by this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&str> {
        self.back.get(name).map(String::as_str)
    }

    /// Every tool with its name, sorted by tool.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.wire.iter().map(|(tool, name)| (tool.as_str(), name.as_str()))
    }
}

/// The name in allowed characters; it may still be too long.
fn form(tool: &str) -> String {
    let allowed = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name: String = tool.chars().map(allowed).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') { name } else { format!("_{name}") }
}

fn ending(form: &str, digest: &str) -> String {
    let most = MAX_NAME - digest.len() - 1;
    let head = &form[..form.len().min(most)];
    format!("{}_{digest}", head.trim_end_matches('_'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::tool::names;

    #[test]
    fn every_name_becomes_one_that_providers_take_and_leads_back() {
        let long = "x".repeat(70);
        let longer = "x".repeat(71);
        let tools = [
            "roll_dice",
            "roll-dice",
            "roll.dice",
            "roll dice",
            "9lives",
            "-x",
            "",
            "工具",
            "東京",
            "a/b",
            "a:b",
            "a_b",
            "naïve",
            &long,
            &longer,
            "_",
            "mcp.server/tool",
            "emoji🎲",
            "tab\t",
            "UPPER",
        ];
        let names = WireNames::new(tools);
        let mut seen = BTreeSet::new();
        for tool in tools {
            let name = names.wire(tool).unwrap();
            assert!(names::check(name).is_ok(), "{tool:?} became {name:?}");
            assert_eq!(names.tool(name), Some(tool), "{name}");
            assert!(seen.insert(name.to_owned()), "{name} stands for two");
        }
        assert_eq!(names.iter().count(), tools.len());
        assert_eq!((names.wire("nobody"), names.tool("nobody")), (None, None));
    }

    #[test]
    fn a_good_name_stays_and_another_steps_aside() {
        let names = WireNames::new(["a.b", "a_b", "a b", "solo.tool", "9x"]);
        let rows = [("a_b", "a_b"), ("solo.tool", "solo_tool"), ("9x", "_9x")];
        for (tool, name) in rows {
            assert_eq!(names.wire(tool), Some(name));
        }
        // Two that would be one name both carry their digest, so that neither depends on the other's order.
        for tool in ["a.b", "a b"] {
            let name = names.wire(tool).unwrap();
            assert!(name.starts_with("a_b_") && name.len() == "a_b_".len() + 8, "{name}");
        }
        let alone = WireNames::new(["a.b"]);
        assert_eq!(alone.wire("a.b"), Some("a_b"));
        // Somebody calls a tool like the digest: more of it is used.
        let taken = names.wire("a.b").unwrap().to_owned();
        let crowded = WireNames::new(["a.b", "a_b", &taken]);
        assert_eq!(crowded.wire(&taken), Some(taken.as_str()));
        assert_eq!(crowded.wire("a.b").map(str::len), Some(taken.len() + 4));
    }

    #[test]
    fn the_order_of_the_tools_changes_no_name() {
        let tools = ["a.b", "a_b", "a b", "a:b", "b.c", "b c", "x"];
        let forward = WireNames::new(tools);
        let backward = WireNames::new(tools.into_iter().rev().chain(["x"]));
        assert!(forward.iter().eq(backward.iter()));
    }

    #[test]
    fn a_long_name_is_cut_and_keeps_64_characters() {
        let tools = [format!("{}a", "long_".repeat(20)), format!("{}b", "long_".repeat(20))];
        let names = WireNames::new(tools.iter().map(String::as_str));
        let (a, b) = (names.wire(&tools[0]).unwrap(), names.wire(&tools[1]).unwrap());
        assert!(a != b && a.len() <= 64 && b.len() <= 64 && a.starts_with("long_long_"), "{a} {b}");
    }
}
