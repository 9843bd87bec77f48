//! One piece of work on one file, told as one line of JSON, so that programs in other languages can be set beside it on the same
//! input: `LAPIDARY_KIT="for_chat FILE"`, `"sheet FILE FILE ..."` or `"markdown FILE"`, and what was made goes to LAPIDARY_KIT_OUT.

use crate::measure::process_cpu;
use lapidary::service::html;
use lapidary::service::image::{self, ForModel, Sheet};
use std::num::NonZeroUsize;
use std::time::Instant;

/// Does what the environment asks for; tells whether it asked.
pub fn is_asked() -> bool {
    let Ok(asked) = std::env::var("LAPIDARY_KIT") else { return false };
    let words: Vec<&str> = asked.split_whitespace().collect();
    let Some((operation, files)) = words.split_first() else { return false };
    let files: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).expect("the file is there")).collect();
    let number = |name: &str, usual: usize| std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual);
    let threads = NonZeroUsize::new(number("LAPIDARY_KIT_THREADS", 1));
    let cell = 1536 / files.len().isqrt().max(1) as u32;
    let go_on = || Ok(());
    let work = || match *operation {
        "for_chat" => {
            let options = ForModel { max_side: 1536, quality: 85, ..ForModel::default() };
            image::for_model(&files[0], &options, &go_on).expect("a picture").bytes
        }
        "sheet" => {
            let pictures: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
            let sheet = Sheet { cell, quality: 85, threads, ..Sheet::default() };
            image::contact_sheet(&pictures, &sheet, &go_on).expect("a sheet").bytes
        }
        "markdown" => {
            let page = String::from_utf8_lossy(&files[0]);
            html::to_markdown(&page).expect("a page").into_bytes()
        }
        other => panic!("`{other}` is no work of this kit"),
    };
    let (mut wall, mut cpu, mut made) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..number("LAPIDARY_KIT_ROUNDS", 3) {
        let (clock, spent) = (Instant::now(), process_cpu());
        made = work();
        wall.push(clock.elapsed().as_secs_f64() * 1e3);
        cpu.push((process_cpu() - spent).as_secs_f64() * 1e3);
    }
    let middle = |values: &mut Vec<f64>| crate::measure::median(values);
    println!(
        "{}",
        serde_json::json!({
            "competitor": "lapidary", "op": operation, "threads": threads, "ms_p50": middle(&mut wall), "cpu_ms_p50": middle(&mut cpu),
            "peak_rss_mb": peak() / 1024.0, "out_bytes": made.len(),
        })
    );
    if let Ok(out) = std::env::var("LAPIDARY_KIT_OUT") {
        std::fs::write(out, made).expect("the file can be written");
    }
    true
}

/// The most that this process ever had resident, in KiB.
fn peak() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(f64::NAN)
}
