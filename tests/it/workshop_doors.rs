//! What goes in and out through the page: plugins that are dropped on it and taken from it, who may sign in, programs with tokens,
//! and a host that goes away and comes back.

use super::browser::with_browser;
use super::own;
use super::shell::names;
use super::workshop_bench::{Bench, GREET, chip_says, drop_file, enter, go, paste, quiet, run};
use lapidary::plugin::package::packed;
use serde_json::{Value, json};
use std::io::{Cursor, Write};
use thirtyfour::{By, Key};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const PASSWORD: &str = "a long enough password";

/// A plugin of one folder that runs programs and talks to one host, if it may.
fn kit() -> Vec<(String, Vec<u8>)> {
    let manifest = json!({ "name": "kit", "version": "1.2.0", "description": "Says a word, for tests." }).to_string();
    let tool = "const PERMISSIONS = [\"RUN_COMMANDS\", #{ EXTERNAL_HTTP: [\"api.example.org\"] }];\n\n/// Give the kit's word. Use it in tests.\n///\n/// @local\nfn kit_word() { \"the word\" }\n";
    [("plugin.json", manifest.as_str()), ("tools/kit_word.rhai", tool)]
        .map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()))
        .to_vec()
}

/// What lies where plugins are.
fn plugins_of(bench: &Bench) -> Vec<String> {
    ["user/tools", "user/plugins"]
        .iter()
        .filter(|folder| bench.shell.path(folder).is_dir())
        .flat_map(|folder| names(&bench.shell.path(folder)))
        .collect()
}

#[test]
fn a_zip_says_what_it_may_do_and_is_live_with_what_it_was_let_and_no_more() {
    with_browser(async |browser| {
        let bench = Bench::new(&[]);
        enter(browser, &bench).await;
        drop_file(browser, "kit-1.2.zip", packed("kit", &kit()).unwrap()).await;
        browser.find("dialog#install-sheet").await;
        let offered = browser
            .eval("[...document.querySelectorAll('#install-sheet [data-grant]')].map((box) => [box.dataset.grant, box.checked])")
            .await;
        assert_eq!(offered, json!([["EXTERNAL_HTTP", true], ["RUN_COMMANDS", false]]), "what is harmless is on");
        let words = browser.eval("document.querySelector('#install-sheet').textContent").await;
        for word in ["kit 1.2.0", "api.example.org", "un programs on this machine", "kit_word", "Give the kit's word"] {
            assert!(words.as_str().unwrap().contains(word), "no {word} in {words}");
        }
        assert_eq!(plugins_of(&bench), Vec::<String>::new(), "nothing is there before the yes");
        // Leaving it leaves nothing; the second time both switches are turned over.
        browser.press(Key::Escape).await;
        browser.until("!document.querySelector('dialog[open]')").await;
        assert_eq!(plugins_of(&bench), Vec::<String>::new());
        drop_file(browser, "kit-1.2.zip", packed("kit", &kit()).unwrap()).await;
        browser.click("#install-sheet [data-grant=RUN_COMMANDS]").await;
        browser.click("#install-sheet [data-grant=EXTERNAL_HTTP]").await;
        browser.click("#install-sheet button[type=submit]").await;
        browser.until("document.querySelector('[data-plugin=kit]')?.getAttribute('aria-current') === 'true'").await;
        chip_says(browser, "live").await;
        // Without all that it asks for it does not run; the refusal leads to the switch.
        let said = run(browser).await;
        assert!(said.contains("permission_denied") && said.contains("EXTERNAL_HTTP"), "{said}");
        browser.click("#result .trouble button").await;
        let kept = "[...document.querySelectorAll('#drawer-body [data-grant]')].map((box) => [box.dataset.grant, box.checked]).sort()";
        browser.until(&format!("({kept}).length === 2")).await;
        assert_eq!(browser.eval(kept).await, json!([["EXTERNAL_HTTP", false], ["RUN_COMMANDS", true]]));
        browser.click("#drawer-body [data-grant=EXTERNAL_HTTP]").await;
        browser.until(&format!("({kept}).every(([, is]) => is)")).await;
        let said = run(browser).await;
        assert!(said.contains("the word"), "{said}");
        quiet(browser).await;
    });
}

#[test]
fn what_is_dropped_and_cannot_be_installed_says_why_and_changes_nothing() {
    let mut sly = ZipWriter::new(Cursor::new(Vec::new()));
    sly.start_file("../../outside.rhai", SimpleFileOptions::default()).unwrap();
    sly.write_all(GREET.as_bytes()).unwrap();
    let sly = sly.finish().unwrap().into_inner();
    let bare = packed("bare", &[("README.md".to_owned(), b"# Nothing".to_vec())]).unwrap();
    with_browser(async |browser| {
        let bench = Bench::new(&[("user/tools/greet.rhai", GREET)]);
        enter(browser, &bench).await;
        let before = plugins_of(&bench);
        let count = browser.eval("document.querySelectorAll('#plugins [data-plugin]').length").await;
        for (name, bytes, why) in [
            ("torn.zip", b"PK\x03\x04 and no more".as_slice(), "zip"),
            ("sly.zip", &sly, "outside"),
            ("bare.zip", &bare, "plugin"),
            ("notes.txt", b"a list", "no plugin"),
        ] {
            drop_file(browser, name, bytes).await;
            let said = browser.until("document.querySelector('.toast[data-kind=bad] p')?.textContent").await;
            let said = said.as_str().unwrap();
            assert!(said.contains(name) && said.contains(why), "{name}: {said}");
            assert_eq!(browser.eval("document.querySelectorAll('dialog[open]').length").await, 0, "{name}");
            browser.click(".toast[data-kind=bad] [aria-label=Dismiss]").await;
            browser.until("!document.querySelector('.toast')").await;
        }
        // A script that would not load is shown with its mistake, and the host does not take it.
        drop_file(browser, "broken.rhai", "fn broken( {").await;
        browser.until("document.querySelector('#install-sheet')?.textContent.includes('broken.rhai:1')").await;
        browser.click("#install-sheet button[type=submit]").await;
        browser.until("document.querySelector('#install-sheet [aria-live] .trouble')").await;
        browser.press(Key::Escape).await;
        assert_eq!(plugins_of(&bench), before);
        assert_eq!(browser.eval("document.querySelectorAll('#plugins [data-plugin]').length").await, count);
        assert!(!bench.shell.path("outside.rhai").exists() && !bench.shell.path("user/outside.rhai").exists());
    });
}

#[test]
fn a_download_is_the_file_on_disk_or_a_zip_that_installs_again() {
    with_browser(async |browser| {
        let mut files = vec![("user/tools/greet.rhai".to_owned(), GREET.as_bytes().to_vec())];
        files.extend(kit().into_iter().map(|(path, bytes)| (format!("user/plugins/kit/{path}"), bytes)));
        let files: Vec<(&str, &str)> =
            files.iter().map(|(path, bytes)| (path.as_str(), std::str::from_utf8(bytes).unwrap())).collect();
        let bench = Bench::new(&files);
        enter(browser, &bench).await;
        // By the palette, the one that is open.
        go(browser, "greet").await;
        browser.ctrl("k").await;
        browser.find("#palette-word").await;
        browser.keys("download greet").await;
        browser
            .until("document.querySelector('#palette [aria-selected=true]').textContent.includes('Download greet')")
            .await;
        browser.press(Key::Enter).await;
        assert_eq!(browser.downloaded("greet.rhai").await, GREET.as_bytes());
        // From its page, a folder: taken away after that, it comes back by the file.
        browser.eval("location.hash = '#/settings/kit'").await;
        browser.click("#plugin-tail a[download]").await;
        let zip = browser.download("kit.zip");
        assert!(browser.downloaded("kit.zip").await.starts_with(b"PK"));
        browser.click("#plugin-tail .danger").await;
        browser.click("#uninstall button[type=submit]").await;
        browser.until("!document.querySelector('#settings [data-setting=kit]')").await;
        assert!(!bench.shell.path("user/plugins/kit").exists());
        let chooser = browser.driver.find(By::Id("install-file")).await.unwrap();
        chooser.send_keys(zip.to_str().unwrap()).await.unwrap();
        browser.click("#install-sheet [data-grant=RUN_COMMANDS]").await;
        browser.click("#install-sheet button[type=submit]").await;
        browser.until("document.querySelector('[data-plugin=kit]')?.getAttribute('aria-current') === 'true'").await;
        for (path, bytes) in kit() {
            assert_eq!(std::fs::read(bench.shell.path(&format!("user/plugins/kit/{path}"))).unwrap(), bytes, "{path}");
        }
        let said = run(browser).await;
        assert!(said.contains("the word"), "{said}");
        quiet(browser).await;
    });
}

/// What a program gets that calls with a token.
fn called(bench: &Bench, token: &str) -> (u16, Value) {
    let program = own::Browser::at(bench.authority().parse().unwrap());
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
    let reply = program.send("POST", "/api/call", &headers, r#"{"tool": "greet", "arguments": {"who": "token"}}"#);
    (reply.status, reply.json())
}

#[test]
fn a_token_is_shown_once_and_opens_the_api_until_it_is_taken_back() {
    with_browser(async |browser| {
        let bench = Bench::new(&[("user/tools/greet.rhai", GREET)]);
        enter(browser, &bench).await;
        browser.eval("location.hash = '#/settings/-access'").await;
        browser.find("#token-name").await.send_keys("backup").await.unwrap();
        browser.click("form:has(#token-name) [type=submit]").await;
        browser.find("#token-text").await;
        let token = browser.eval("document.querySelector('#token-text').value").await.as_str().unwrap().to_owned();
        browser.click("#token [type=submit]").await;
        browser.until("document.querySelector('[data-token]')?.textContent.includes('backup')").await;
        assert!(
            !browser.eval("document.documentElement.outerHTML").await.as_str().unwrap().contains(&token),
            "it is shown once"
        );
        let (status, said) = called(&bench, &token);
        assert_eq!((status, &said["text"]), (200, &json!("Hello, token!")), "{said}");
        browser.click("[data-token] button").await;
        browser.click("#ask [type=submit]").await;
        browser.until("!document.querySelector('[data-token]')").await;
        let (status, said) = called(&bench, &token);
        assert_eq!((status, &said["error"]["code"]), (401, &json!("permission_denied")), "{said}");
        quiet(browser).await;
    });
}

#[test]
fn a_password_lets_in_who_knows_it_and_says_so_to_who_does_not() {
    with_browser(async |browser| {
        let bench = Bench::new(&[]);
        enter(browser, &bench).await;
        browser.eval("location.hash = '#/settings/-access'").await;
        // One that is too short is refused where it is typed.
        browser.find("#password-new").await.send_keys("short").await.unwrap();
        browser.click("form:has(#password-new) [type=submit]").await;
        browser.until("/10/.test(document.querySelector('form:has(#password-new) [role=alert]').textContent)").await;
        let field = browser.find("#password-new").await;
        field.clear().await.unwrap();
        field.send_keys(PASSWORD).await.unwrap();
        browser.click("form:has(#password-new) [type=submit]").await;
        browser.find("#password-now").await;
        browser.eval("[...document.querySelectorAll('#settings-detail button')].find((one) => one.textContent === 'Sign out').click(), 1").await;
        browser.find("#signin #password").await.send_keys("a wrong password").await.unwrap();
        browser.click("#signin [type=submit]").await;
        browser.until("document.querySelector('#signin-trouble').textContent.includes('not the password')").await;
        assert_eq!(browser.eval("document.activeElement.id").await, "password", "the next try is typed over it");
        browser.keys(PASSWORD).await;
        browser.press(Key::Enter).await;
        // One is where one was.
        browser.find("#password-now").await;
        assert!(browser.eval("document.querySelector('#signin').hidden").await.as_bool().unwrap());
    });
}

#[test]
fn a_host_that_goes_away_costs_no_text_and_what_changed_meanwhile_is_shown() {
    with_browser(async |browser| {
        let mut bench = Bench::new(&[("user/tools/greet.rhai", GREET)]);
        enter(browser, &bench).await;
        go(browser, "greet").await;
        bench.goes_away();
        browser.until("!document.querySelector('#gone').hidden").await;
        browser.until("document.querySelector('#link').dataset.state === 'off'").await;
        // What is typed and saved meanwhile is kept, and a call says what is wrong.
        let mine = GREET.replace("Hello", "Mine");
        paste(browser, &mine).await;
        browser.ctrl("s").await;
        browser.until("/not saved/i.test(document.querySelector('#strip').textContent)").await;
        browser.click("#run").await;
        browser.until("document.querySelector('#result').textContent.includes('host does not answer')").await;
        // The host comes back with another plugin, and nothing was done to the open file.
        bench.shell.write("user/tools/fresh.rhai", GREET.replace("greet", "fresh"));
        bench.comes_back();
        browser
            .until("document.querySelector('#gone').hidden && document.querySelector('#link').dataset.state === 'on'")
            .await;
        browser.until("document.querySelector('[data-plugin=fresh]')").await;
        assert_eq!(browser.eval("document.querySelector('#code').value").await, mine);
        browser.ctrl("s").await;
        browser.until("document.querySelector('#dirty').hidden").await;
        assert_eq!(bench.shell.read("user/tools/greet.rhai"), mine);
        let said = run(browser).await;
        assert!(said.contains("Mine, you!"), "{said}");
        // The second time the open file is another one after, and there is unsaved text.
        bench.goes_away();
        browser.until("!document.querySelector('#gone').hidden").await;
        paste(browser, &GREET.replace("Hello", "Also mine")).await;
        bench.shell.write("user/tools/greet.rhai", GREET.replace("Hello", "Theirs"));
        bench.comes_back();
        // Whether or not it came back by itself already.
        browser.eval("document.querySelector('#gone-now').click(), 1").await;
        browser.until("document.querySelector('#gone').hidden").await;
        browser.until("document.querySelector('#strip').textContent.includes('changed on the disk')").await;
        browser.until("document.activeElement !== document.body").await;
        assert!(browser.eval("document.querySelector('#code').value").await.as_str().unwrap().contains("Also mine"));
    });
}
