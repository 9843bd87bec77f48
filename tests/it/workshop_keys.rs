//! The page without a pointer: everything is reached by keys, what has the focus is always seen, and no dialog loses it.

use super::browser::{Browser, with_browser};
use super::workshop_bench::{
    Bench, GREET, STRANGER, TUNED, chip_says, drop_file, enter, gallery, go, paste, quiet, result, run,
};
use serde_json::json;
use thirtyfour::Key;

const PASSWORD: &str = "a long enough password";

/// Presses Tab until the focus is on what a selector finds.
async fn tab_to(browser: &Browser, selector: &str) {
    for _ in 0..60 {
        if browser.eval(&format!("document.activeElement.matches({})", json!(selector))).await == true {
            return;
        }
        // In the script Tab indents, and Escape lets it go.
        if browser.eval("document.activeElement.id").await == "code" {
            browser.press(Key::Escape).await;
        }
        browser.press(Key::Tab).await;
    }
    panic!("Tab does not lead to {selector}");
}

/// Opens the palette, types, and takes the first that fits.
async fn command(browser: &Browser, words: &str) {
    browser.ctrl("k").await;
    browser.until("document.activeElement.id === 'palette-word'").await;
    browser.keys(words).await;
    browser.press(Key::Enter).await;
    browser.until("!document.querySelector('#palette')").await;
}

/// What has the focus, and what is wrong with how it is seen; nothing is wrong where the text is empty.
const SEEN: &str = "(() => {
    const one = document.activeElement;
    const name = one.tagName.toLowerCase() + (one.id ? '#' + one.id : '') + ' ' + (one.getAttribute('aria-label') ?? one.textContent).trim().slice(0, 40);
    if (one === document.body) return [name, 'the focus is nowhere'];
    const style = getComputedStyle(one);
    const box = one.getBoundingClientRect();
    const ring = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 1;
    const bar = one.id === 'code' ? getComputedStyle(one.closest('.editor')).boxShadow !== 'none' : one.matches('.edge') && style.backgroundImage !== 'none';
    if (!ring && !bar) return [name, 'nothing shows that it has the focus'];
    if (box.bottom <= 0 || box.right <= 0 || box.top >= innerHeight || box.left >= innerWidth || !box.width || !box.height) return [name, 'it is out of sight'];
    return [name, ''];
})()";

async fn is_seen(browser: &Browser) -> String {
    let seen = browser.eval(SEEN).await;
    let name = seen[0].as_str().unwrap().to_owned();
    assert_eq!(seen[1], "", "{name}");
    name
}

#[test]
fn a_new_tool_is_one_word_in_the_palette() {
    with_browser(async |browser| {
        let bench = Bench::new(&[]);
        enter(browser, &bench).await;
        command(browser, "new tool").await;
        browser.until("document.activeElement.id === 'new-name'").await;
        // A name that cannot be one says why, and what is typed stays.
        browser.keys("9 lives").await;
        browser.press(Key::Enter).await;
        browser.until("document.querySelector('#new .trouble')").await;
        browser.eval("document.activeElement.select()").await;
        browser.keys("again").await;
        browser.press(Key::Enter).await;
        browser
            .until(
                "document.activeElement.id === 'code' && document.querySelector('#code').value.includes('fn again(')",
            )
            .await;
        chip_says(browser, "live 1").await;
        assert!(bench.shell.read("user/tools/again.rhai").contains("fn again("));
        // Its form is made from its comment, and it runs.
        browser.find("#arg-text").await.send_keys("hi").await.unwrap();
        let said = run(browser).await;
        assert!(said.contains("hi hi"), "{said}");
        // With the name in the palette it is one line.
        command(browser, "new tool once").await;
        browser.until("document.activeElement.id === 'new-name' && document.activeElement.value === 'once'").await;
        browser.press(Key::Enter).await;
        browser.until("document.querySelector('#code').value.includes('fn once(')").await;
    });
}

#[test]
fn from_signing_in_to_a_changed_setting_nothing_needs_a_pointer() {
    with_browser(async |browser| {
        let bench = Bench::prepared(&TUNED, |shell| {
            shell.run_with(&["password", "set"], format!("{PASSWORD}\n").as_bytes()).ends(0);
        });
        browser.open(bench.url()).await;
        browser.until("document.activeElement.id === 'password'").await;
        browser.keys(PASSWORD).await;
        browser.press(Key::Enter).await;
        browser.until("document.activeElement.id === 'run'").await;
        is_seen(browser).await;
        // A tool is made, changed, saved and run.
        command(browser, "new tool shout").await;
        browser.until("document.activeElement.value === 'shout'").await;
        browser.press(Key::Enter).await;
        browser
            .until(
                "document.activeElement.id === 'code' && document.querySelector('#code').value.includes('fn shout(')",
            )
            .await;
        is_seen(browser).await;
        chip_says(browser, "live 1").await;
        browser.ctrl("h").await;
        browser.until("document.activeElement.id === 'find-word'").await;
        browser.keys("line += \" \" + text;").await;
        browser.press(Key::Tab).await;
        tab_to(browser, "#find-instead").await;
        browser.keys("line += \" and \" + text;").await;
        browser.press(Key::Enter).await;
        browser.until("document.querySelector('#code').value.includes('\" and \"')").await;
        browser.press(Key::Escape).await;
        browser.until("document.activeElement.id === 'code'").await;
        browser.ctrl("s").await;
        chip_says(browser, "live 2").await;
        // Escape lets Tab out of the script.
        browser.press(Key::Escape).await;
        browser.press(Key::Tab).await;
        browser.until("document.activeElement.id !== 'code'").await;
        tab_to(browser, "#arg-text").await;
        browser.keys("ho").await;
        browser.eval("window.before = document.querySelector('#result')?.firstElementChild, 1").await;
        browser.press(Key::Enter).await;
        let said = result(browser).await;
        assert!(said.contains("ho and ho"), "{said}");
        is_seen(browser).await;
        // Run keeps the focus: the next Enter runs again.
        tab_to(browser, "#run").await;
        browser.eval("window.before = document.querySelector('#result')?.firstElementChild, 1").await;
        browser.press(Key::Enter).await;
        result(browser).await;
        assert_eq!(browser.eval("document.activeElement.id").await, "run");
        // A setting.
        command(browser, "tuned").await;
        browser.until("document.querySelector('#run-col').textContent.includes('tuned_greet')").await;
        command(browser, "settings of tuned").await;
        browser.until("document.querySelector('#settings [data-key=style] input')").await;
        is_seen(browser).await;
        tab_to(browser, "#settings [data-key=style] input").await;
        browser.keys("baroque").await;
        browser.until("document.querySelector('#settings .preview').textContent.includes('baroque')").await;
        tab_to(browser, "#settings [data-act=save]").await;
        browser.press(Key::Enter).await;
        browser.until("document.querySelector('#settings-detail').textContent.includes('Saved')").await;
        is_seen(browser).await;
        // And what was done stands in the journal.
        command(browser, "journal").await;
        browser.until("document.querySelector('#journal [data-call]')").await;
        is_seen(browser).await;
        tab_to(browser, "#journal [data-call]").await;
        browser.press(Key::Enter).await;
        browser.until("document.querySelector('#journal-call').textContent.includes('ho and ho')").await;
        is_seen(browser).await;
    });
}

#[test]
fn every_stop_of_the_tab_key_is_seen() {
    with_browser(async |browser| {
        let dots = gallery();
        let files = [("user/tools/greet.rhai", GREET), ("user/tools/dots.rhai", &dots), TUNED[0], TUNED[1]];
        let bench = Bench::new(&files);
        enter(browser, &bench).await;
        go(browser, "dots").await;
        run(browser).await;
        for (address, there, least) in [
            ("#/workshop/dots", "#result .tile", 30),
            ("#/journal", "#journal [data-call]", 7),
            ("#/settings/tuned", "#settings [data-key=style] input", 20),
            ("#/settings/-access", "#token-name", 12),
        ] {
            browser.eval(&format!("location.hash = '{address}'")).await;
            browser.until(&format!("document.querySelector('{there}')?.checkVisibility()")).await;
            if there == "#result .tile" {
                browser.click("#tab-problems").await;
                browser.until("!document.querySelector('#drawer-body').hidden").await;
            }
            // Once around, from the page's first stop to it.
            browser.eval("(document.querySelector('.skip').focus(), 1)").await;
            let mut names = Vec::new();
            while names.len() < 200 {
                browser.press(Key::Tab).await;
                if browser.eval("document.activeElement === document.body").await == true {
                    break;
                }
                names.push(is_seen(browser).await);
                if names.last().unwrap().starts_with("textarea#code") {
                    browser.press(Key::Escape).await;
                }
                if browser.eval("document.activeElement.matches('.skip')").await == true {
                    break;
                }
            }
            assert!((least..200).contains(&names.len()), "{address}: {names:#?}");
        }
    });
}

#[test]
fn the_focus_comes_back_from_every_dialog() {
    with_browser(async |browser| {
        let dots = gallery();
        let files = [("user/tools/greet.rhai", GREET), ("user/tools/dots.rhai", &dots), TUNED[0], TUNED[1]];
        let bench = Bench::new(&files);
        enter(browser, &bench).await;
        go(browser, "dots").await;
        run(browser).await;
        // Where one is, what has the focus, and the key that opens something from there.
        for (address, from, key, dialog) in [
            ("#/workshop/dots", "#run", "?", "#help"),
            ("#/workshop/dots", "#new-tool", "\u{e007}", "#new"),
            ("#/workshop/dots", "#history", "\u{e007}", "#history-sheet"),
            ("#/workshop/dots", "#commands", "\u{e007}", "#palette"),
            ("#/workshop/dots", "#result .tile", "\u{e007}", "#lightbox"),
            ("#/workshop/dots", "#recent button", "\u{e007}", "#replay"),
            ("#/settings/tuned", "#plugin-tail .danger", "\u{e007}", "#uninstall"),
            ("#/journal", "#journal [data-call]", "?", "#help"),
        ] {
            browser.eval(&format!("location.hash = '{address}'")).await;
            browser.until(&format!("document.querySelector('{from}')?.checkVisibility()")).await;
            browser.eval(&format!("(document.querySelector('{from}').focus(), 1)")).await;
            browser.keys(key).await;
            browser
                .until(&format!("document.querySelector('dialog{dialog}[open]')?.contains(document.activeElement)"))
                .await;
            browser.press(Key::Escape).await;
            browser.until("!document.querySelector('dialog')").await;
            assert_eq!(
                browser.eval(&format!("document.activeElement === document.querySelector('{from}')")).await,
                true,
                "{dialog}: {}",
                browser.eval("document.activeElement.outerHTML.slice(0, 200)").await
            );
        }
        // From a token that is made, from one that is taken back, and from a file that was dropped where nothing had the focus.
        browser.eval("location.hash = '#/settings/-access'").await;
        browser.find("#token-name").await.send_keys("backup\n").await.unwrap();
        browser.until("document.querySelector('#token[open]')").await;
        browser.press(Key::Enter).await;
        browser.until("!document.querySelector('dialog') && document.querySelector('[data-token] button')").await;
        is_seen(browser).await;
        browser.eval("(document.querySelector('[data-token] button').focus(), 1)").await;
        browser.press(Key::Enter).await;
        browser.until("document.querySelector('#ask[open]')").await;
        // Enter alone takes nothing back for good.
        browser.press(Key::Tab).await;
        browser.until("document.activeElement.matches('#ask .danger')").await;
        browser.press(Key::Enter).await;
        browser.until("!document.querySelector('dialog') && !document.querySelector('[data-token]')").await;
        is_seen(browser).await;
        browser.eval("(location.hash = '#/workshop/greet', document.activeElement.blur(), 1)").await;
        drop_file(browser, "stranger.rhai", STRANGER).await;
        browser.until("document.querySelector('#install-sheet[open]')").await;
        browser.press(Key::Escape).await;
        browser.until("!document.querySelector('dialog')").await;
        is_seen(browser).await;
    });
}

#[test]
fn undo_goes_back_to_what_the_file_was_and_never_into_another_file() {
    with_browser(async |browser| {
        let other = GREET.replace("greet", "other");
        let bench = Bench::new(&[("user/tools/greet.rhai", GREET), ("user/tools/other.rhai", &other)]);
        enter(browser, &bench).await;
        go(browser, "greet").await;
        paste(browser, &GREET.replace("Hello", "Welcome")).await;
        browser.ctrl("s").await;
        chip_says(browser, "live 2").await;
        go(browser, "other").await;
        browser.eval("(document.querySelector('#code').focus(), 1)").await;
        for key in ["z", "z", "y"] {
            browser.ctrl(key).await;
        }
        assert_eq!(browser.eval("document.querySelector('#code').value").await, other);
        // What is done here is undone and done again.
        browser.keys("!").await;
        let mine = browser.eval("document.querySelector('#code').value").await;
        assert_ne!(mine, other);
        for (key, text) in [("z", json!(other)), ("z", json!(other)), ("y", mine.clone()), ("y", mine.clone())] {
            browser.ctrl(key).await;
            browser.until(&format!("document.querySelector('#code').value === {text}")).await;
        }
        quiet(browser).await;
    });
}
