//! What the stories of the page share: a host that serves it, and the moves of a person at it. It knows the page's ids and words.

use super::browser::{Browser, Look};
use super::shell::{Running, Shell};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

pub const PHONE: Look = Look { width: 390, height: 844, scheme: "light" };

pub const GREET: &str = r#"//! Greetings.

/// Greet somebody by name. Use it when someone arrives.
///
/// @param {string} who="you" - Whom to greet.
/// @local
fn greet(who) { `Hello, ${who}!` }
"#;

/// A plugin of one folder with one setting, which its tool's description shows.
pub const TUNED: [(&str, &str); 2] = [
    (
        "user/plugins/tuned/plugin.json",
        r#"{"name": "tuned", "version": "1.0.0", "description": "A greeting whose words are a setting.",
            "capabilities": {"settings": [{"key": "style", "type": "string", "label": "Style", "default": "plain"}]}}"#,
    ),
    (
        "user/plugins/tuned/tools/tuned.rhai",
        r#"fn get_tools() {
            let style = settings::get("style");
            [#{ "type": "function", is_local: true, function: #{ name: "tuned_greet", description: `Greets in ${style} style.`,
                parameters: #{ "type": "object", properties: #{} } } }]
        }
        fn execute(name, arguments, config) { [`In ${settings::get("style")} style.`, true] }"#,
    ),
];

/// A script that wants to talk to one host.
pub const STRANGER: &str = "const PERMISSIONS = [#{ EXTERNAL_HTTP: [\"api.example.org\"] }];\n\n/// Ask the stranger.\n///\n/// @endpoint\n/// @network\nfn ask_stranger() { net::get(\"https://api.example.org/\").text }\n";

/// A square of one pixel.
const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A tool that shows a gallery of four.
pub fn gallery() -> String {
    format!(
        r#"//! Pictures for looking at.

/// Show four dots. Use it when someone wants to see dots.
///
/// @local
fn show_dots() {{
    let dot = base64::decode("{DOT}");
    let shown = images::gallery("Dots", [1, 2, 3, 4].map(|n| #{{ raw: images::for_chat(dot), title: `Dot ${{n}}` }}), true);
    images::result("Four dots.\n" + shown.tail, shown.images)
}}
"#
    )
}

/// A host with its page, and the sign-in link that it printed.
pub struct Bench {
    pub shell: Shell,
    serving: Option<Running>,
    pub link: String,
}

impl Bench {
    /// Over a folder with these files.
    pub fn new(files: &[(&str, &str)]) -> Bench {
        Bench::prepared(files, |_| {})
    }

    /// As [`Bench::new`], after `prepare` did what a person does before the host starts.
    pub fn prepared(files: &[(&str, &str)], prepare: impl FnOnce(&Shell)) -> Bench {
        let shell = Shell::new();
        // With the shipped plugins, as a person has them.
        std::fs::remove_dir(shell.path("scripts")).unwrap();
        for (path, text) in files {
            shell.write(path, text);
        }
        prepare(&shell);
        let mut bench = Bench { shell, serving: None, link: String::new() };
        bench.serve("127.0.0.1:0");
        bench
    }

    fn serve(&mut self, address: &str) {
        let serving = self.shell.start(&["serve", "--addr", address]);
        let said = serving.until("#sign-in=");
        self.link = link_in(said.last().unwrap());
        self.serving = Some(serving);
    }

    /// The address without the code.
    pub fn url(&self) -> &str {
        self.link.split('#').next().unwrap()
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        self.url().trim_start_matches("http://").trim_end_matches('/')
    }

    /// Another link, as a person asks for one at the command line.
    pub fn another_link(&self) -> String {
        link_in(&self.shell.run(&["sign-in"]).ends(0).out)
    }

    /// The host is killed; its folder stays.
    pub fn goes_away(&mut self) {
        self.serving = None;
    }

    /// A host over the same folder, at the address of the one before.
    pub fn comes_back(&mut self) {
        let address = self.authority().to_owned();
        self.serve(&address);
    }
}

fn link_in(said: &str) -> String {
    said.split_whitespace().find(|word| word.contains("#sign-in=")).unwrap().to_owned()
}

/// Signs in and waits for the workbench.
pub async fn enter(browser: &Browser, bench: &Bench) {
    browser.open(&bench.link).await;
    browser.until("document.querySelector('#chip')?.textContent.startsWith('live')").await;
    browser.find("#run").await;
}

/// Goes to a plugin by its address.
pub async fn go(browser: &Browser, plugin: &str) {
    browser.eval(&format!("location.hash = '#/workshop/{plugin}'")).await;
    browser
        .until(&format!("document.querySelector('[data-plugin={plugin}]')?.getAttribute('aria-current') === 'true'"))
        .await;
    // A plugin of one file has its name at the head of the script, one of several the name in front of each.
    browser
        .until(&format!("(document.querySelector('#file-one').textContent || document.querySelector('#file-select').selectedOptions[0]?.textContent)?.startsWith('{plugin}')"))
        .await;
}

/// Replaces the text in the editor as pasting does, through the browser's own editing.
pub async fn paste(browser: &Browser, text: &str) {
    browser.eval(&format!("(() => {{ const code = document.querySelector('#code'); code.focus(); code.select(); return document.execCommand('insertText', false, {}); }})()", json!(text))).await;
    browser.until(&format!("document.querySelector('#code').value === {}", json!(text))).await;
}

/// Waits until the state of the open plugin has these words.
pub async fn chip_says(browser: &Browser, words: &str) {
    browser.until(&format!("document.querySelector('#chip').textContent.includes({})", json!(words))).await;
}

/// Waits until no call runs.
pub async fn rests(browser: &Browser) {
    browser.until("document.querySelector('#run').ariaDisabled !== 'true'").await;
}

/// Runs the tool in front and gives what a person sees of its result.
pub async fn run(browser: &Browser) -> String {
    browser.eval("window.before = document.querySelector('#result')?.firstElementChild, 1").await;
    browser.click("#run").await;
    result(browser).await
}

/// What a person sees of the result that takes the place of `window.before`.
pub async fn result(browser: &Browser) -> String {
    browser
        .until("document.querySelector('#run').ariaDisabled !== 'true' && document.querySelector('#result')?.firstElementChild !== window.before && document.querySelector('#result .half')")
        .await;
    browser
        .eval("document.querySelector('#result .half[data-half=you]').textContent")
        .await
        .as_str()
        .unwrap()
        .to_owned()
}

/// Drops a file on the page.
pub async fn drop_file(browser: &Browser, name: &str, bytes: impl AsRef<[u8]>) {
    let drop = format!(
        "(() => {{ const given = new DataTransfer();
           given.items.add(new File([Uint8Array.from(atob('{}'), (letter) => letter.charCodeAt(0))], {}));
           for (const name of ['dragover', 'drop']) document.body.dispatchEvent(new DragEvent(name, {{ dataTransfer: given, bubbles: true, cancelable: true }}));
           return 1; }})()",
        STANDARD.encode(bytes),
        json!(name)
    );
    browser.eval(&drop).await;
}

/// Nothing that the page's scripts or its content policy complain of.
pub async fn quiet(browser: &Browser) {
    let complaints = browser.complaints().await;
    assert!(complaints.is_empty(), "{complaints:#?}");
}
