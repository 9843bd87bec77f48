//! How the page looks to those who see it and to those who do not: every view, dialog and state, wide and narrow, light and dark.

use super::browser::{Browser, DESK, Look, with_browser};
use super::workshop_bench::{Bench, GREET, PHONE, STRANGER, TUNED, chip_says, enter, gallery, go, paste, result, run};
use serde_json::{Value, json};

/// A state of the page worth looking at: its name, its address, what one does there, and what is seen then.
struct Sight {
    name: &'static str,
    address: &'static str,
    /// A script's body, with `seek(selector)` to wait for what it does next and `page` for the shell's module.
    act: &'static str,
    there: &'static str,
}

const fn sight(name: &'static str, address: &'static str, act: &'static str, there: &'static str) -> Sight {
    Sight { name, address, act, there }
}

/// What a host shows before anything was done with it.
const FRESH: &[Sight] = &[
    sight("first", "#/workshop/dice", "", "#run"),
    sight("journal-empty", "#/journal", "", "#journal .empty"),
    sight("filter-empty", "#/workshop/dice", "type('#list-filter', 'xyzzy')", "#plugins .empty"),
    sight(
        "list",
        "#/workshop/dice",
        "type('#list-filter', ''); (await seek('.bottom [data-pane=list]')).click()",
        "#plugins [data-plugin]",
    ),
    sight("removed-empty", "#/settings/-removed", "", "#settings-detail h2"),
    sight("toolsets", "#/settings/-toolsets", "", "#settings-detail .sets"),
    sight("about", "#/settings/-about", "", "#theme"),
];

/// What one with plugins of one's own shows.
const USED: &[Sight] = &[
    sight("workshop", "#/workshop/greet", "(await seek('.bottom [data-pane=script]')).click()", "#run-col, #code"),
    sight(
        "run",
        "#/workshop/greet",
        "(await seek('.bottom [data-pane=run]')).click(); (await seek('#tab-log')).click()",
        "#run",
    ),
    sight(
        "error",
        "#/workshop/broken",
        "(await seek('.bottom [data-pane=script]')).click(); (await seek('#tab-problems')).click()",
        "#bubble",
    ),
    sight(
        "held",
        "#/workshop/runner",
        "(await seek('.bottom [data-pane=script]')).click(); (await seek('#tab-permissions')).click()",
        "#drawer-body .wishes",
    ),
    sight("schema", "#/workshop/greet", "(await seek('#tab-schema')).click()", "#drawer-body .json"),
    sight(
        "drawer-settings",
        "#/workshop/tuned",
        "(await seek('#tab-settings')).click(); await seek('#drawer-body [data-key=style] input'); type('#drawer-body [data-key=style] input', 'baroque and very long-winded')",
        "#drawer-body .diff",
    ),
    sight(
        "find",
        "#/workshop/greet",
        "page.open('find', 'replace'); await seek('#find-word'); type('#find-word', 'greet')",
        "#find",
    ),
    sight(
        "complete",
        "#/workshop/greet",
        "document.querySelector('#find [aria-label=Close]')?.click(); const code = await seek('#code'); code.focus(); code.setSelectionRange(code.value.length - 3, code.value.length - 3); document.execCommand('insertText', false, ' ' ); document.execCommand('insertText', false, 't')",
        ".complete",
    ),
    sight(
        "model",
        "#/workshop/greet",
        "const code = await seek('#code'); code.focus(); for (let n = 0; n < 4 && !document.querySelector('#dirty').hidden; n += 1) document.execCommand('undo'); code.blur(); (await seek('.bottom [data-pane=run]')).click(); (await seek('#result [role=tab][data-half=model]')).click()",
        "#result .half[data-half=model]",
    ),
    sight(
        "gallery",
        "#/workshop/dots",
        "(await seek('.bottom [data-pane=run]')).click(); (await seek('#run')).click(); (await seek('#result [role=tab][data-half=you]')).click()",
        "#result .gallery img",
    ),
    sight("lightbox", "#/workshop/dots", "(await seek('#result .gallery .tile')).click()", "#lightbox img"),
    sight("failed", "#/workshop/fails", "(await seek('#run')).click()", "#result .trouble"),
    sight("journal", "#/journal", "", "#journal [data-call]"),
    sight("call", "#/journal", "(await seek('#journal [data-call]')).click()", "#journal-call .facts"),
    sight(
        "replay",
        "#/journal",
        "(await seek('#journal [data-call]')).click(); (await seek('#journal-replay')).click()",
        "#replay .sides .half",
    ),
    sight(
        "settings",
        "#/settings/tuned",
        "await seek('#settings [data-key=style] input'); type('#settings [data-key=style] input', 'baroque')",
        "#settings .preview .diff",
    ),
    sight("settings-shipped", "#/settings/web_search", "", "#plugin-head h2"),
    sight("uninstall", "#/settings/tuned", "(await seek('#plugin-tail .danger')).click()", "#uninstall"),
    sight("access", "#/settings/-access", "", "#token-name"),
    sight(
        "token",
        "#/settings/-access",
        "await seek('#token-name'); type('#token-name', 'backup at night'); document.querySelector('#token-name').form.requestSubmit()",
        "#token",
    ),
    sight("take-back", "#/settings/-access", "(await seek('[data-token] button')).click()", "#ask"),
    sight(
        "toolset",
        "#/settings/-toolsets",
        "await seek('#set-name'); type('#set-name', 'evening'); document.querySelector('#set-name').form.requestSubmit()",
        "#toolset",
    ),
    sight("history", "#/workshop/greet", "(await seek('#history')).click()", "#history-sheet .diff"),
    sight(
        "conflict",
        "#/workshop/greet",
        "page.open('conflict', { path: 'user/tools/greet.rhai', mine: 'let a = 1;\\nlet word = \"Mine\";\\nlet c = 3;', disk: 'let a = 1;\\nlet word = \"Theirs\";\\nlet c = 3;\\nlet d = 4;' })",
        "#conflict",
    ),
    sight("install", "#/workshop/greet", "drop('stranger.rhai')", "#install-sheet"),
    sight(
        "palette",
        "#/workshop/greet",
        "page.open('palette'); await seek('#palette-word'); type('#palette-word', 'gr')",
        "#palette [role=option]",
    ),
    sight("new", "#/workshop/greet", "page.open('new')", "#new"),
    sight("help", "#/workshop/greet", "page.open('help')", "#help"),
    sight("notice", "#/workshop/greet", "drop('notes.txt')", ".toast"),
];

/// What the acts are made of. A page that is loaded anew needs it anew.
async fn prepare(browser: &Browser) {
    let script = format!(
        "(() => {{
            window.seek = async (selector) => {{
                for (;;) {{
                    const one = [...document.querySelectorAll(selector)].find((e) => e.isConnected);
                    if (one) return one;
                    await new Promise((soon) => setTimeout(soon, 10));
                }}
            }};
            window.type = (selector, text) => {{ const field = document.querySelector(selector); field.value = text; field.dispatchEvent(new InputEvent('input', {{ bubbles: true }})); }};
            window.drop = (name) => {{
                const given = new DataTransfer();
                given.items.add(new File([{}], name));
                for (const kind of ['dragover', 'drop']) document.body.dispatchEvent(new DragEvent(kind, {{ dataTransfer: given, bubbles: true, cancelable: true }}));
            }};
            import('/page/main.js').then((module) => {{ window.page = module; }});
            return 1;
        }})()",
        json!(STRANGER)
    );
    browser.eval(&script).await;
    browser.until("window.page").await;
}

/// Goes from sight to sight and lets `look` look at each.
async fn tour(browser: &Browser, sights: &[Sight], mut look: impl AsyncFnMut(&str)) {
    prepare(browser).await;
    for Sight { name, address, act, there } in sights {
        let go = format!(
            "(async () => {{
                for (const dialog of document.querySelectorAll('dialog[open]')) dialog.close();
                for (const note of document.querySelectorAll('.toast')) note.remove();
                history.replaceState(null, '', '{address}');
                await page.route();
                {act}
                window.acted = {name};
            }})().catch((error) => {{ window.acted = {name}; console.error('{name}: ' + error); }}), 1",
            name = json!(name)
        );
        browser.eval(&go).await;
        browser.until(&format!("window.acted === {}", json!(name))).await;
        browser
            .until(&format!(
                "[...document.querySelectorAll({there})].some((e) => e.checkVisibility()) || innerWidth < 600",
                there = json!(there)
            ))
            .await;
        look(name).await;
        browser.look(DESK).await;
    }
}

const RUNNER: &str = "/// Run. Use it when something must run.\n/// @local\nfn run_it() { \"ran\" }\n";

/// A host with everything that there is to see.
fn furnished() -> Bench {
    let fails = "/// Take the fourth of three. Use it to see a failure.\n///\n/// @local\nfn fail() {\n    let three = [1, 2, 3];\n    three[3] + 1\n}\n";
    let broken = "/// Add two numbers. Use it when two are to be added.\n///\n/// @param {integer} a - One of them.\n/// @param {integer} b - The other.\n/// @local\nfn add(a, b) {\n    let sum = a + b\n    sum\n}\n";
    let dots = gallery();
    let files = [
        ("user/tools/greet.rhai", GREET),
        ("user/tools/dots.rhai", &dots),
        ("user/tools/broken.rhai", broken),
        ("user/tools/fails.rhai", fails),
        ("user/tools/runner.rhai", RUNNER),
        TUNED[0],
        TUNED[1],
    ];
    Bench::new(&files)
}

/// Does what leaves something to see in every view: calls, versions, a version that is held.
async fn use_it(browser: &Browser, bench: &Bench) {
    bench.shell.write("user/tools/runner.rhai", format!("const PERMISSIONS = [\"RUN_COMMANDS\"];\n{RUNNER}"));
    browser.until("document.querySelector('[data-plugin=runner] .chip').textContent.includes('held')").await;
    go(browser, "greet").await;
    run(browser).await;
    paste(browser, &GREET.replace("Hello", "Welcome")).await;
    browser.ctrl("s").await;
    chip_says(browser, "live 2").await;
    browser.eval("(window.before = document.querySelector('#result')?.firstElementChild, document.querySelector('#run').click(), 1)").await;
    result(browser).await;
}

/// The screens that stand before signing in.
async fn doors(browser: &Browser, bench: &Bench, mut look: impl AsyncFnMut(&str)) {
    let leave = async || {
        browser.driver.delete_all_cookies().await.unwrap();
        browser.open("about:blank").await;
    };
    leave().await;
    browser.open(bench.url()).await;
    browser.until("document.querySelector('#signin h2')").await;
    look("sign-in").await;
    browser.look(DESK).await;
    bench.shell.run_with(&["password", "set"], b"a long enough password\n").ends(0);
    leave().await;
    // A link that was used tells what became of it.
    browser.open(&bench.link).await;
    browser.until("document.querySelector('#signin #password')").await;
    browser.until("document.querySelector('#signin-trouble').textContent.length > 10").await;
    look("sign-in-password").await;
    browser.look(DESK).await;
}

#[test]
fn every_view_and_dialog_fits_a_desk_and_a_phone_in_light_and_dark() {
    with_browser(async |browser| {
        let mut wide = Vec::new();
        let mut look = async |name: &str| {
            for scheme in ["light", "dark"] {
                for (size, look) in [("1280", DESK), ("390", PHONE)] {
                    browser.look(Look { scheme, ..look }).await;
                    browser.eval("document.getAnimations().forEach((motion) => motion.finish())").await;
                    browser.shot(&format!("{name}-{size}-{scheme}")).await;
                    // Neither the window nor a dialog may need to be moved sideways.
                    let over = "[document.documentElement, ...document.querySelectorAll('dialog[open], dialog[open] .body, .detail, .view')].map((e) => e.scrollWidth - e.clientWidth).reduce((a, b) => Math.max(a, b))";
                    let over = browser.eval(over).await;
                    if over != 0 {
                        wide.push(format!("{name} at {size} px in {scheme} is {over} px too wide"));
                    }
                }
            }
        };
        let mut bench = Bench::new(&[]);
        enter(browser, &bench).await;
        tour(browser, FRESH, &mut look).await;
        bench.goes_away();
        browser.until("!document.querySelector('#gone').hidden").await;
        look("gone").await;
        browser.look(DESK).await;
        let bench = furnished();
        enter(browser, &bench).await;
        use_it(browser, &bench).await;
        tour(browser, USED, &mut look).await;
        doors(browser, &bench, &mut look).await;
        assert!(wide.is_empty(), "{wide:#?}");
    });
}

/// The accessibility checker's script, from its own package.
fn axe() -> Option<String> {
    let path = std::env::var_os("LAPIDARY_AXE")
        .map_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/target/axe/axe.min.js").into(), std::path::PathBuf::from);
    std::fs::read_to_string(path).ok()
}

#[test]
fn no_view_or_dialog_has_a_fault_for_those_who_cannot_see_or_point() {
    let Some(axe) = axe() else {
        let missing = "no axe-core: docs/adding.md says where it is looked for";
        assert!(std::env::var_os("LAPIDARY_BROWSER").is_none_or(|word| word != "required"), "{missing}");
        eprintln!("SKIPPED, {missing}");
        return;
    };
    with_browser(async |browser| {
        let mut found = Vec::new();
        let mut look = async |name: &str| {
            // By the debugger's door, which the page's own content policy does not bind.
            if browser.eval("typeof axe").await == "undefined" {
                browser.driver.cdp().send_raw("Runtime.evaluate", json!({ "expression": axe })).await.unwrap();
            }
            for scheme in ["light", "dark"] {
                browser.look(Look { scheme, ..DESK }).await;
                browser.eval("document.getAnimations().forEach((motion) => motion.finish())").await;
                browser.eval("window.faults = null, axe.run(document, { resultTypes: ['violations'] }).then((r) => { window.faults = r.violations; }), 1").await;
                for fault in browser.until("window.faults").await.as_array().unwrap() {
                    // The script keeps the focus while its arrow keys walk the completions.
                    if fault["id"] == "scrollable-region-focusable" && name == "complete" {
                        continue;
                    }
                    let places: Vec<&Value> = fault["nodes"].as_array().unwrap().iter().map(|n| &n["html"]).collect();
                    let impact = fault["impact"].as_str().unwrap_or_default();
                    found.push(format!("{impact}: {name} {scheme}: {} {} {places:?}", fault["id"], fault["help"]));
                }
            }
        };
        let bench = Bench::new(&[]);
        enter(browser, &bench).await;
        tour(browser, FRESH, &mut look).await;
        drop(bench);
        let bench = furnished();
        enter(browser, &bench).await;
        use_it(browser, &bench).await;
        tour(browser, USED, &mut look).await;
        doors(browser, &bench, &mut look).await;
        assert!(found.is_empty(), "{found:#?}");
    });
}

#[test]
fn a_page_load_asks_for_few_and_small_files() {
    with_browser(async |browser| {
        let bench = Bench::new(&[]);
        enter(browser, &bench).await;
        let files = browser
            .eval("performance.getEntriesByType('resource').filter(e => e.name.includes('/page/')).concat(performance.getEntriesByType('navigation')).map(e => [e.name, e.decodedBodySize])")
            .await;
        let files = files.as_array().unwrap();
        let bytes: u64 = files.iter().filter_map(|file| file[1].as_u64()).sum();
        assert!(files.len() <= 10, "{files:#?}");
        assert!(bytes <= 200 << 10, "{bytes} bytes: {files:#?}");
    });
}
