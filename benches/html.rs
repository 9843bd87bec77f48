//! A page as Markdown, beside `htmd` alone: the library that ours stands on, without what makes strangers' pages safe.
//! Speed counts only with what is kept: headings, links, tables, lists and code are looked for in what each converter made.

use crate::kept::{self, KINDS, Parts};
use crate::measure::{self, Pair, ratio, timed};
use lapidary::service::html;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where saved pages are, each a file that ends in `.html`; without it only the page made here is measured.
const PAGES: &str = "LAPIDARY_PAGES";
/// A Python that has html2text, markdownify or trafilatura; without it the peers are `htmd` alone.
const PYTHON: &str = "LAPIDARY_PEERS_PYTHON";

/// One line a library, which reads a page from stdin and writes Markdown and the CPU it took, in ms, on the last line.
const PEERS: [(&str, &str); 3] = [
    ("html2text", "import html2text\ndef g(s):\n h = html2text.HTML2Text(); h.body_width = 0\n return h.handle(s)"),
    ("markdownify", "from markdownify import markdownify\ng = lambda s: markdownify(s, heading_style='ATX')"),
    (
        "trafilatura",
        "import trafilatura\ng = lambda s: trafilatura.extract(s, output_format='markdown', include_links=True, include_tables=True) or ''",
    ),
];
const PEER_REST: &str = "
import sys, time
s = open(sys.argv[1], encoding='utf8').read()
best = 1e9
for _ in range(3):
    t = time.process_time(); out = g(s); best = min(best, time.process_time() - t)
sys.stdout.reconfigure(encoding='utf8')
sys.stdout.write(out); print(); print(best * 1e6)
";

/// Measures pages.
pub fn run() {
    let made = kept::made(if measure::is_measuring() { 1 << 20 } else { 1 << 14 });
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("made.html");
    std::fs::write(&file, &made).expect("a temporary folder is writable");
    measure_page("1 MiB made", &file, &made);
    for file in saved() {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match std::fs::read_to_string(&file) {
            Ok(page) => measure_page(&name, &file, &page),
            Err(e) => println!("html/{name}: {e}"),
        }
    }
}

fn measure_page(name: &str, file: &Path, page: &str) {
    let there = kept::of_page(page);
    let ours = html::to_markdown(page).expect("the page is converted");
    println!("html/{name}: {} KiB, {}", page.len() >> 10, listed(&there.counts().map(|n| n.to_string())));
    let shares = told("ours", &there, &ours, None);
    for (kind, share) in shares.iter().enumerate().filter(|(_, share)| **share < 0.99) {
        let made = kept::of_markdown(&ours);
        let lost = there.lost_in(&made, kind);
        let first: Vec<String> = lost.iter().take(3).map(|l| l.chars().take(80).collect()).collect();
        println!("  lost of {} ({:.1} % kept): {first:?}", KINDS[kind], share * 100.0);
    }
    told("htmd", &there, &plain(page), None);
    for (library, code) in PEERS {
        if let Some((made, cpu)) = by_python(code, file) {
            told(library, &there, &made, Some(cpu));
        }
    }
    let pair = Pair { name: &format!("html/{name}"), limit: 1.5, rounds: 15, of: 1 };
    ratio(&pair, || timed(|| _ = black_box(plain(page))), || timed(|| _ = black_box(html::to_markdown(page))));
}

fn plain(page: &str) -> String {
    let converter = htmd::HtmlToMarkdown::builder().skip_tags(vec!["script", "style", "head"]).build();
    converter.convert(page).expect("the page is converted")
}

fn told(who: &str, there: &Parts, markdown: &str, cpu: Option<f64>) -> [f64; 6] {
    let shares = shares(there, &kept::of_markdown(markdown));
    let cpu = cpu.map_or_else(String::new, |cpu| format!("; {cpu:.0} µs"));
    println!("  {who:<12} keeps {}{cpu}", listed(&shares.map(|s| format!("{:.1} %", s * 100.0))));
    shares
}

/// The share of each kind that is still there.
fn shares(there: &Parts, made: &Parts) -> [f64; 6] {
    let counts = there.counts();
    std::array::from_fn(|kind| match counts[kind] {
        0 => 1.0,
        wanted => 1.0 - there.lost_in(made, kind).len() as f64 / wanted as f64,
    })
}

fn listed(values: &[String; 6]) -> String {
    KINDS.iter().zip(values).map(|(kind, value)| format!("{kind} {value}")).collect::<Vec<_>>().join(", ")
}

fn by_python(code: &str, file: &Path) -> Option<(String, f64)> {
    let python = std::env::var_os(PYTHON)?;
    let out = Command::new(python).arg("-c").arg(format!("{code}{PEER_REST}")).arg(file).output().ok()?;
    let said = String::from_utf8(out.stdout).ok().filter(|_| out.status.success())?;
    let (markdown, cpu) = said.trim_end().rsplit_once('\n')?;
    Some((markdown.to_owned(), cpu.parse().ok()?))
}

fn saved() -> Vec<PathBuf> {
    let listing = std::env::var_os(PAGES).and_then(|folder| std::fs::read_dir(folder).ok());
    let files = listing.into_iter().flatten().flatten().map(|entry| entry.path());
    let mut pages: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "html")).collect();
    pages.sort();
    pages
}
