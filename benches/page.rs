//! The page in a real browser: how soon the Workshop is painted, what a load asks for, and how long a frame is while one types in the
//! middle of a long script. It drives the browser as the tests do; without one it says so.

use crate::browser::{Browser, with_browser};
use crate::measure::{self, rounds};
use crate::workshop_bench::{Bench, enter, go};
use serde_json::{Value, json};

const LOADS: usize = 20;
/// Lines of the script that is typed into.
const LINES: usize = 5_000;
const KEYS: usize = 100;
const TYPINGS: usize = 7;

/// Measures the page.
pub fn run() {
    with_browser(async |browser| {
        let long = script(LINES);
        let bench = Bench::new(&[("user/tools/long.rhai", &long)]);
        enter(browser, &bench).await;
        loads(browser, &bench).await;
        typing(browser).await;
        let complaints = browser.complaints().await;
        assert!(complaints.is_empty(), "{complaints:#?}");
    });
}

/// Loads the Workshop again and again, signed in and with nothing kept by the browser.
async fn loads(browser: &Browser, bench: &Bench) {
    let tools = browser.driver.cdp();
    // A moment that the browser names for no page: the frame after the form of the first tool is there.
    let watch = "new MutationObserver((_, watch) => {
        if (!document.querySelector('#run')) return;
        watch.disconnect();
        requestAnimationFrame(() => setTimeout(() => { window.ready = performance.now(); }));
    }).observe(document, { childList: true, subtree: true });";
    tools
        .send_raw("Page.addScriptToEvaluateOnNewDocument", json!({ "source": watch }))
        .await
        .expect("the browser takes a script");
    let (mut painted, mut ready) = (Vec::new(), Vec::new());
    for _ in 0..rounds(LOADS) {
        browser.open("about:blank").await;
        tools.send_raw("Network.clearBrowserCache", json!({})).await.expect("the browser forgets");
        browser.open(&format!("{}#/workshop/dice", bench.url())).await;
        ready.push(number(&browser.until("window.ready").await));
        let paint = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime";
        painted.push(number(&browser.until(paint).await));
    }
    let worst = measure::quantile(&mut painted, 1.0);
    measure::value("page/first contentful paint, wall p50", measure::median(&mut painted), "ms", 200.0);
    println!("page/first contentful paint, slowest of {} = {worst:.2} ms", painted.len());
    println!("page/form and Run painted, wall p50 = {:.2} ms", measure::median(&mut ready));
    let files = "performance.getEntriesByType('resource').filter((e) => e.name.includes('/page/')).concat(performance.getEntriesByType('navigation')).map((e) => e.decodedBodySize)";
    let files = browser.eval(files).await;
    let sizes = numbers(&files);
    measure::value("page/files of a load", sizes.len() as f64, "files", 10.0);
    measure::value("page/bytes of a load", sizes.iter().sum::<f64>() / 1024.0, "KiB", 200.0);
}

/// Types a hundred keys in the middle of the long script, as fast as they are taken, and watches the frames.
async fn typing(browser: &Browser) {
    go(browser, "long").await;
    // Every frame's moment, every task of 50 ms and more, and for each key how long until the frame that shows it.
    let watch = "(() => {
        const seen = window.seen = { frames: [], tasks: [], keys: [], on: false };
        (function frame(at) { if (seen.on) seen.frames.push(at); requestAnimationFrame(frame); })(performance.now());
        new PerformanceObserver((list) => { if (seen.on) seen.tasks.push(...list.getEntries().map((one) => one.duration)); }).observe({ type: 'longtask' });
        document.querySelector('#code').addEventListener('keydown', (event) => {
            if (seen.on) requestAnimationFrame(() => setTimeout(() => seen.keys.push(performance.now() - event.timeStamp)));
        }, { capture: true });
        return 1;
    })()";
    browser.eval(watch).await;
    let (mut gaps, mut tasks, mut keys, mut all) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds(TYPINGS) {
        let start = format!(
            "(() => {{
                const code = document.querySelector('#code');
                const middle = code.value.indexOf('\\n', code.value.length / 2) + 1;
                code.focus();
                code.setSelectionRange(middle, middle);
                document.querySelector('#editor').scrollTop = parseFloat(getComputedStyle(code).lineHeight) * {};
                return 1;
            }})()",
            LINES / 2 - 10
        );
        browser.eval(&start).await;
        browser.eval("(seen.drawn = false, requestAnimationFrame(() => requestAnimationFrame(() => { seen.drawn = true; })), 1)").await;
        browser.until("seen.drawn").await;
        browser.eval("(Object.assign(seen, { frames: [], tasks: [], keys: [], on: true }), 1)").await;
        for key in typed(round).chars() {
            browser.keys(key.to_string()).await;
        }
        // The last key's frame, and what follows it once the keys rest: the draft, and the host's check of the text.
        browser.until(&format!("seen.keys.length >= {KEYS}")).await;
        browser.until("(window.rested ??= performance.now() + 1200) < performance.now()").await;
        let seen = browser
            .eval(
                "(delete window.rested, seen.on = false, { frames: seen.frames, tasks: seen.tasks, keys: seen.keys })",
            )
            .await;
        let frames = numbers(&seen["frames"]);
        let mut between: Vec<f64> = frames.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.push(measure::quantile(&mut between, 1.0));
        all.extend(between);
        tasks.push(numbers(&seen["tasks"]).into_iter().fold(0.0, f64::max));
        keys.extend(numbers(&seen["keys"]));
    }
    let (worst, task) = (measure::quantile(&mut gaps, 1.0), measure::quantile(&mut tasks, 1.0));
    measure::value(
        "page/typing, longest time between two frames, p50 of the rounds",
        measure::median(&mut gaps),
        "ms",
        50.0,
    );
    println!("page/typing, the same, worst of {} rounds = {worst:.2} ms", gaps.len());
    println!("page/typing, time between two frames, p50 = {:.2} ms", measure::median(&mut all));
    // The browser names none that is shorter than 50 ms.
    measure::value(
        "page/typing, longest task of 50 ms and more, p50 of the rounds",
        measure::median(&mut tasks),
        "ms",
        50.0,
    );
    println!("page/typing, the same, worst of {} rounds = {task:.2} ms", tasks.len());
    println!(
        "page/typing, from a key to after its frame, p50 = {:.2} ms, p99 = {:.2} ms",
        measure::median(&mut keys),
        measure::quantile(&mut keys, 0.99)
    );
}

/// A script of so many lines with all that is coloured: comments, texts, numbers, calls, nested blocks.
fn script(lines: usize) -> String {
    let mut text = String::from(
        "//! A long script, for measuring.\n\n/// Count. Use it to measure.\n///\n/// @local\nfn long() { part_0(1) }\n",
    );
    let mut part = 0;
    while text.lines().count() < lines {
        text += &format!(
            "\n// Part {part}: what it does is of no use.\nfn part_{part}(n) {{\n    let words = [\"one\", \"two\\n\", `three ${{n + 1}}`];\n    for word in words {{\n        if word.len() > {part} && n != 0x1f {{\n            return word.to_upper() + n;\n        }}\n    }}\n    n * 2.5\n}}\n"
        );
        part += 1;
    }
    text
}

/// What is typed: a hundred keys of a script, with brackets, texts, a name of the host and new lines.
fn typed(round: usize) -> String {
    let text = format!(
        "\u{e007}fn fresh_{round}(n) {{\u{e007}let made = json::parse(text);\u{e007}for one in made {{\u{e007}print(one.name);\u{e007}"
    );
    let filler = "// and so on, a comment of some length to the end of what is typed here in the middle";
    text.chars().chain(filler.chars()).take(KEYS).collect()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().map(number).collect()
}
