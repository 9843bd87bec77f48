//! What the pages show is what happens: their files are saved, their commands run, their snippets hold.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A fenced block of a page.
pub struct Block {
    pub line: usize,
    pub language: String,
    /// What stands behind the language: `file=..`, `broken`, `run`.
    pub words: Vec<String>,
    pub text: String,
}

impl Block {
    pub fn file(&self) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix("file="))
    }

    fn is(&self, word: &str) -> bool {
        self.words.iter().any(|w| w == word)
    }
}

pub fn blocks(page: &str) -> Vec<Block> {
    let mut out: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in page.lines().enumerate() {
        match (line.strip_prefix("```"), open) {
            (Some(info), false) => {
                let mut words = info.split_whitespace().map(str::to_owned);
                let language = words.next().unwrap_or_default();
                out.push(Block { line: number + 1, language, words: words.collect(), text: String::new() });
                open = true;
            }
            (Some(_), true) => open = false,
            (None, true) => {
                if let Some(block) = out.last_mut() {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            }
            (None, false) => {}
        }
    }
    assert!(!open, "a block is not closed");
    out
}

/// Splits a command line at spaces outside quotes, as a shell does.
fn split(line: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), _) if open == c => quote = None,
            (None, ' ') => out.push(String::new()),
            _ => out.last_mut().unwrap().push(c),
        }
    }
    out.retain(|word| !word.is_empty());
    out
}

/// Whether `text` is what was announced, where `…` stands for anything.
pub fn fits(expected: &str, text: &str) -> bool {
    let parts: Vec<&str> = expected.split('…').collect();
    let [first, rest @ ..] = parts.as_slice() else { return false };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let Some((last, middle)) = rest.split_last() else { return left.is_empty() };
    for part in middle {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// Runs the commands of a block in `root` and compares what they print.
fn console(root: &Path, block: &Block, wrong: &mut Vec<String>) {
    let mut commands: Vec<(String, String)> = Vec::new();
    for line in block.text.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => commands.push((command.to_owned(), String::new())),
            None => {
                let (_, expected) = commands.last_mut().expect("a block of console begins with a command");
                expected.push_str(line);
                expected.push('\n');
            }
        }
    }
    for (command, expected) in commands {
        let words = split(&command);
        if words[0] != "lapidary" {
            continue;
        }
        // `< file` at the end is what a shell would make of it.
        let (words, stdin) = match words.as_slice() {
            [before @ .., sign, file] if sign == "<" => (before, Stdio::from(fs::File::open(root.join(file)).unwrap())),
            all => (all, Stdio::null()),
        };
        let output = Command::new(env!("CARGO_BIN_EXE_lapidary"))
            .args(&words[1..])
            .stdin(stdin)
            .env("XDG_CONFIG_HOME", root.join("config"))
            .current_dir(root)
            .env("LAPIDARY_ROOT", root)
            .env("LAPIDARY_CREDENTIALS_STORE", "file")
            .env_remove("LAPIDARY_LOG")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &*String::from_utf8_lossy(&output.stderr);
        if !fits(expected.trim(), text.trim()) {
            wrong.push(format!("line {}: $ {command}\n--- shown\n{expected}--- printed\n{text}", block.line));
        }
    }
}

fn follow(page: &Path) -> Vec<String> {
    let mut text = fs::read_to_string(page).unwrap();
    if text.contains("localhost:8080/") {
        let port = crate::host_api::server();
        text = text.replace("localhost:8080/", &format!("localhost:{port}/"));
        text = text.replace("127.0.0.1:8080/", &format!("127.0.0.1:{port}/"));
    }
    let dir = tempfile::tempdir().unwrap();
    // A folder is a workshop by what is in it.
    fs::create_dir(dir.path().join("user")).unwrap();
    let mut wrong = Vec::new();
    for block in blocks(&text) {
        if let Some(file) = block.file() {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &block.text).unwrap();
        } else if block.language == "console" {
            console(dir.path(), &block, &mut wrong);
        } else if block.is("run") {
            let test = format!("fn test_block() {{\n{}}}\n", block.text);
            let report = lapidary::trial::run_text(&format!("line {}", block.line), &test);
            wrong.extend(report.tests.iter().filter(|t| !t.ok).map(|t| t.render()));
        } else if block.language == "rhai" {
            wrong.push(format!("line {}: nothing runs this block", block.line));
        }
    }
    wrong
}

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut out = vec![root.join("README.md")];
    for folder in ["docs/guide", "scripts"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let page = if path.is_dir() { path.join("README.md") } else { path };
            if page.is_file() && page.extension().is_some_and(|e| e == "md") {
                out.push(page);
            }
        }
    }
    out.sort();
    out
}

#[test]
fn what_the_pages_show_is_what_happens() {
    let pages = pages();
    assert!(pages.len() > 5, "{pages:?}");
    let wrong: Vec<String> = pages
        .iter()
        .flat_map(|page| follow(page).into_iter().map(|w| format!("{}, {w}", page.display())).collect::<Vec<_>>())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn every_link_between_the_pages_leads_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = pages();
    for folder in ["docs", "user", "stdlib"] {
        let found = fs::read_dir(root.join(folder)).unwrap().map(|e| e.unwrap().path());
        pages.extend(found.filter(|p| p.extension().is_some_and(|e| e == "md")));
    }
    let mut wrong = Vec::new();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap_or_default();
            let path = target.split('#').next().unwrap_or_default();
            if !path.is_empty() && !target.contains("://") && !page.parent().unwrap().join(path).exists() {
                wrong.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_ellipsis_stands_for_anything() {
    for (expected, text, fit) in [
        ("a", "a", true),
        ("a", "ab", false),
        ("a…", "ab", true),
        ("…b", "ab", true),
        ("a…c", "abc", true),
        ("a…c", "abd", false),
        ("…b…", "abc", true),
        ("…", "", true),
        ("", "x", false),
    ] {
        assert_eq!(fits(expected, text), fit, "{expected} {text}");
    }
}
