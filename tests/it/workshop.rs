//! The page as a person uses it: a real browser, the real program, files that are written, broken and mended.

use super::browser::with_browser;
use super::workshop_bench::{
    Bench, GREET, STRANGER, TUNED, chip_says, drop_file, enter, gallery, go, paste, quiet, rests, run,
};
use serde_json::{Value, json};
use thirtyfour::Key;

#[test]
fn a_first_minute_is_one_link_and_enter() {
    with_browser(async |browser| {
        let bench = Bench::new(&[]);
        enter(browser, &bench).await;
        let address = browser.eval("location.href").await;
        assert!(!address.as_str().unwrap().contains("sign-in"), "the code leaves the address: {address}");
        browser.until("document.activeElement.id === 'run'").await;
        assert_eq!(browser.eval("document.querySelector('[aria-current=true]').dataset.plugin").await, "dice");
        browser.keys(Key::Enter.value().to_string()).await;
        browser.until("/rolled \\d/.test(document.querySelector('#result').textContent)").await;
        browser.until("document.querySelector('#result').textContent.includes('saving makes it live')").await;
        browser.shot("first-minute").await;
        quiet(browser).await;
    });
}

#[test]
fn a_mistake_shows_where_it_is_and_the_last_good_version_still_answers() {
    with_browser(async |browser| {
        let bench = Bench::new(&[("user/tools/greet.rhai", GREET)]);
        enter(browser, &bench).await;
        go(browser, "greet").await;
        chip_says(browser, "live 1").await;
        paste(browser, &GREET.replace("!` }", "!` ")).await;
        browser.ctrl("s").await;
        chip_says(browser, "disk 2 failed").await;
        // The line has the message, the drawer names the place, and nothing else went away.
        browser.until("document.querySelector('#problem-count').textContent > 0").await;
        browser.until("document.querySelector('.editor').textContent.includes('}')").await;
        let said = run(browser).await;
        assert!(said.contains("Hello, you!"), "{said}");
        assert!(
            browser.eval("document.querySelector('#result').textContent").await.as_str().unwrap().contains("ersion 1")
        );
        browser.shot("mistake").await;
        // F8 leads to it.
        browser.keys(Key::F8.value().to_string()).await;
        browser.until("document.activeElement.id === 'code'").await;
        paste(browser, &GREET.replace("Hello", "Welcome")).await;
        browser.ctrl("s").await;
        chip_says(browser, "live 3").await;
        browser.until("document.querySelector('#problem-count').textContent === ''").await;
        let said = run(browser).await;
        assert!(said.contains("Welcome, you!"), "{said}");
        assert_eq!(bench.shell.read("user/tools/greet.rhai"), GREET.replace("Hello", "Welcome"));
        quiet(browser).await;
    });
}

#[test]
fn the_form_follows_the_comment_that_was_saved() {
    with_browser(async |browser| {
        let bench = Bench::new(&[("user/tools/greet.rhai", GREET)]);
        enter(browser, &bench).await;
        go(browser, "greet").await;
        browser.until("document.querySelectorAll('#args [name], #args input, #args textarea').length >= 1").await;
        let more = GREET
            .replace("/// @local", "/// @param {integer 1..5} times=2 - How often.\n/// @local")
            .replace("greet(who) { `Hello, ${who}!` }", "greet(who, times) { `Hello, ${who}! `.repeat(times) }");
        let more = more.replace(".repeat(times)", " + times");
        paste(browser, &more).await;
        browser.ctrl("s").await;
        browser.until("document.querySelector('#args').textContent.includes('times')").await;
        let said = run(browser).await;
        assert!(said.contains("Hello, you! 2"), "{said}");
        quiet(browser).await;
    });
}

#[test]
fn two_tabs_in_conflict_lose_nothing() {
    with_browser(async |browser| {
        let bench = Bench::new(&[("user/tools/greet.rhai", GREET)]);
        enter(browser, &bench).await;
        go(browser, "greet").await;
        paste(browser, &GREET.replace("Hello", "Mine")).await;
        // Somebody else saves meanwhile, in a tab of their own.
        let other = browser.driver.new_tab().await.unwrap();
        browser.driver.switch_to_window(other).await.unwrap();
        browser.open(&format!("{}#/workshop/greet", bench.url())).await;
        browser.until("document.querySelector('#code')?.value.includes('Hello')").await;
        paste(browser, &GREET.replace("Hello", "Theirs")).await;
        browser.ctrl("s").await;
        chip_says(browser, "live 2").await;
        browser.driver.switch_to_window(browser.tab.clone()).await.unwrap();
        // The first tab still shows its own text and says that the disk has another.
        browser.until("!document.querySelector('#strip').hidden").await;
        assert!(browser.eval("document.querySelector('#code').value").await.as_str().unwrap().contains("Mine"));
        browser.ctrl("s").await;
        browser.find("dialog#conflict").await;
        browser.shot("conflict").await;
        assert!(bench.shell.read("user/tools/greet.rhai").contains("Theirs"), "nothing was overwritten");
        browser.click("dialog#conflict [data-answer=mine]").await;
        chip_says(browser, "live 3").await;
        assert!(bench.shell.read("user/tools/greet.rhai").contains("Mine"));
    });
}

#[test]
fn a_setting_shows_what_the_model_would_read_before_it_is_saved() {
    with_browser(async |browser| {
        let bench = Bench::new(&TUNED);
        enter(browser, &bench).await;
        go(browser, "tuned").await;
        browser.click("#tab-settings").await;
        let field = browser.find("#drawer-body input[name=style], #drawer-body [data-key=style] input").await;
        field.clear().await.unwrap();
        field.send_keys("baroque").await.unwrap();
        // The change as a difference, with what it costs, and nothing saved yet.
        browser.until("document.querySelector('#drawer-body').textContent.includes('Greets in baroque style')").await;
        browser.until("document.querySelector('#drawer-body').textContent.includes('token')").await;
        browser.shot("setting").await;
        assert!(!bench.shell.path("user/webui/plugins/tuned.json").exists());
        browser.click("#drawer-body [data-act=save]").await;
        browser.until("document.querySelector('#run-col').textContent.includes('Greets in baroque style')").await;
        let said = run(browser).await;
        assert!(said.contains("In baroque style."), "{said}");
        quiet(browser).await;
    });
}

#[test]
fn pictures_stand_in_a_numbered_row_and_the_lightbox_walks_by_arrow_keys() {
    with_browser(async |browser| {
        let bench = Bench::new(&[("user/tools/dots.rhai", &gallery())]);
        enter(browser, &bench).await;
        go(browser, "dots").await;
        let said = run(browser).await;
        assert!(said.contains("Four dots."), "{said}");
        assert!(!said.contains("gallery:"), "no marker is left in what a person sees: {said}");
        browser.until("[...document.querySelectorAll('#result .gallery img')].length === 4 && [...document.querySelectorAll('#result .gallery img')].every(i => i.complete && i.naturalWidth > 0)").await;
        browser.shot("gallery").await;
        browser.click("#result .gallery .tile").await;
        browser.until("document.querySelector('dialog[open]')?.textContent.includes('Dot 1')").await;
        browser.keys(Key::Right.value().to_string()).await;
        browser.until("document.querySelector('dialog[open]')?.textContent.includes('Dot 2')").await;
        browser.keys(Key::Escape.value().to_string()).await;
        browser.until("!document.querySelector('dialog[open]')").await;
        quiet(browser).await;
    });
}

#[test]
fn a_sound_is_fetched_when_it_is_played_and_not_before() {
    with_browser(async |browser| {
        let bench = Bench::new(&[]);
        enter(browser, &bench).await;
        go(browser, "recorder").await;
        browser.eval("location.hash = '#/workshop/recorder/recorder_play'").await;
        let notes = browser.find("#args [name=notes], #args #arg-notes").await;
        notes.send_keys("C4 E4 G4:2").await.unwrap();
        run(browser).await;
        let fetched =
            "performance.getEntriesByType('resource').filter(e => e.name.includes('/api/plugin/recorder/')).length";
        browser.until("document.querySelector('#result audio')").await;
        assert_eq!(browser.eval(fetched).await, 0);
        browser.shot("sound").await;
        browser.click("#result .player button").await;
        browser.until("document.querySelector('#result audio').duration > 1").await;
        browser.until(&format!("{fetched} > 0")).await;
        quiet(browser).await;
    });
}

#[test]
fn a_long_call_says_how_far_it_is_and_stops_when_told() {
    let slow = r#"/// Count slowly. Use it to see a bar.
///
/// @local
/// @timeout 60
fn count_slowly() {
    for page in 1..=1000 {
        progress::status(`page ${page} of 1000`);
        progress::step(page, 1000);
        time::sleep(0.05);
    }
    "counted"
}
"#;
    with_browser(async |browser| {
        let bench = Bench::new(&[("user/tools/slow.rhai", slow)]);
        enter(browser, &bench).await;
        go(browser, "slow").await;
        browser.click("#run").await;
        browser.until("/page \\d+ of 1000/.test(document.querySelector('#meta').textContent)").await;
        browser.until("document.querySelector('#meta progress').value > 0").await;
        browser.shot("slow").await;
        browser.click("#cancel").await;
        rests(browser).await;
        browser.until("/cancel/i.test(document.querySelector('#meta').textContent + document.querySelector('#result').textContent)").await;
    });
}

#[test]
fn a_call_of_yesterday_is_replayed_beside_the_version_of_today_and_a_version_comes_back() {
    with_browser(async |browser| {
        let bench = Bench::new(&[("user/tools/greet.rhai", GREET)]);
        enter(browser, &bench).await;
        go(browser, "greet").await;
        run(browser).await;
        paste(browser, &GREET.replace("Hello", "Welcome")).await;
        browser.ctrl("s").await;
        chip_says(browser, "live 2").await;
        browser.eval("location.hash = '#/journal'").await;
        browser.until("document.querySelector('#journal').textContent.includes('greet')").await;
        browser.shot("journal").await;
        browser.click("#journal [data-call]").await;
        browser.until("document.querySelector('#journal').textContent.includes('Hello, you!')").await;
        browser.click("#journal [data-act=replay]").await;
        browser.until("document.body.textContent.includes('Welcome, you!') && document.body.textContent.includes('Hello, you!')").await;
        browser.shot("replay").await;
        browser.keys(Key::Escape.value().to_string()).await;
        // And back to the version before, from its history.
        browser.eval("location.hash = '#/workshop/greet'").await;
        browser.click("#history").await;
        browser.find("dialog[open]").await;
        browser.shot("history").await;
        browser.click("dialog[open] [data-act=rollback]").await;
        browser.until("document.querySelector('#code').value.includes('Hello')").await;
        assert_eq!(bench.shell.read("user/tools/greet.rhai"), GREET);
        quiet(browser).await;
    });
}

#[test]
fn a_strangers_script_says_what_it_may_do_before_it_is_live() {
    with_browser(async |browser| {
        let bench = Bench::new(&[]);
        enter(browser, &bench).await;
        drop_file(browser, "stranger.rhai", STRANGER).await;
        browser.until("document.querySelector('dialog[open]')?.textContent.includes('api.example.org')").await;
        browser.shot("stranger").await;
        assert!(!bench.shell.path("user/tools/stranger.rhai").exists());
        browser.eval("(document.querySelector('dialog[open] [data-grant=EXTERNAL_HTTP]').click(), 1)").await;
        browser.click("dialog[open] button[type=submit]").await;
        browser.until("document.querySelector('[data-plugin=stranger]')").await;
        assert_eq!(bench.shell.read("user/tools/stranger.rhai"), STRANGER);
        let decided: Value = serde_json::from_str(&bench.shell.read("user/webui/grants.json")).unwrap();
        assert_eq!(decided["stranger"], json!({ "denied": ["EXTERNAL_HTTP"] }));
        let revoked =
            browser.eval("performance.getEntriesByType('resource').some((one) => one.name.includes('/revoke'))").await;
        assert_eq!(revoked, json!(false), "it went along, so there was no moment in which it could");
        quiet(browser).await;
    });
}

#[test]
fn a_link_lets_in_once_and_a_write_without_the_sessions_token_is_refused() {
    with_browser(async |browser| {
        let bench = Bench::new(&[("user/tools/greet.rhai", GREET)]);
        enter(browser, &bench).await;
        // Another page of this browser, or a form of somebody else's, has the cookie and not the token.
        let refused = "(async () => { const r = await fetch('/api/plugins/greet/disable', { method: 'POST' }); window.refused = r.status; })(), 1";
        browser.eval(refused).await;
        assert_eq!(browser.until("window.refused").await, 403);
        let call = "(async () => { const r = await fetch('/api/call', { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': 'guess' }, body: '{\"tool\": \"greet\", \"arguments\": {}}' }); window.called = r.status; })(), 1";
        browser.eval(call).await;
        assert_eq!(browser.until("window.called").await, 403);
        // A script of the page cannot read the cookie.
        assert_eq!(browser.eval("document.cookie").await, "");
        // The same link does nothing for a second browser.
        browser.driver.delete_all_cookies().await.unwrap();
        browser.open("about:blank").await;
        browser.open(&bench.link).await;
        browser.find("#signin").await;
        browser.until("document.querySelector('#signin').textContent.length > 20").await;
        browser.shot("sign-in").await;
        browser.open("about:blank").await;
        browser.open(&bench.another_link()).await;
        browser.find("#run").await;
    });
}
