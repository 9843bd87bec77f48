//! A real Chromium under tests: started through chromedriver with a profile of its own, told to wait for what a page shows and
//! never for a time. It knows no page of ours.

use super::shell::lines;
use futures_util::FutureExt;
use serde_json::{Value, json};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use thirtyfour::prelude::*;

/// How long a page may take to show what it is waited for. Only a test that fails waits that long.
const PATIENCE: Duration = Duration::from_secs(30);

/// Browsers are heavy: one at a time, however many tests run beside.
static TURN: Mutex<()> = Mutex::new(());

/// A window of a browser.
pub struct Browser {
    pub driver: WebDriver,
    /// The id of the tab that this is.
    pub tab: WindowHandle,
    /// Where what it downloads lies.
    downloads: PathBuf,
}

/// The size of a window in CSS pixels, and its colours.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub width: u32,
    pub height: u32,
    pub scheme: &'static str,
}

/// A desk.
pub const DESK: Look = Look { width: 1280, height: 800, scheme: "light" };

/// Runs `work` with a browser, or says why there is none: a run that must not skip sets `LAPIDARY_BROWSER=required`.
pub fn with_browser(work: impl AsyncFnOnce(&Browser)) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some((chromium, chromedriver)) = programs() else {
        let missing =
            "no browser: chromium and chromedriver are needed (Debian: apt-get install chromium chromium-driver)";
        assert!(std::env::var_os("LAPIDARY_BROWSER").is_none_or(|word| word != "required"), "{missing}");
        // Past the capture of the test harness, so that nobody takes a skipped test for one that passed.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("\nSKIPPED, {missing}\n").as_bytes());
        return;
    };
    // The client of the driver builds itself with whatever a process has as its provider, though it speaks no TLS here.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let profile = tempfile::tempdir().unwrap();
    let downloads = profile.path().join("downloads");
    std::fs::create_dir(&downloads).unwrap();
    let driver = Driver::start(&chromedriver);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let driver = WebDriver::new(driver.address(), wishes(&chromium, profile.path(), &downloads)).await.unwrap();
        driver.set_script_timeout(PATIENCE + Duration::from_secs(5)).await.unwrap();
        let tab = driver.window().await.unwrap();
        let browser = Browser { driver: driver.clone(), tab, downloads };
        browser.look(DESK).await;
        // A session that nobody ends would hold the test that failed.
        let done = AssertUnwindSafe(work(&browser)).catch_unwind().await;
        let _ = driver.quit().await;
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
}

fn programs() -> Option<(PathBuf, PathBuf)> {
    let find = |names: &[&str]| {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).flat_map(|folder| names.iter().map(move |n| folder.join(n))).find(|p| p.is_file())
    };
    Some((find(&["chromium", "chromium-browser", "google-chrome"])?, find(&["chromedriver"])?))
}

fn wishes(chromium: &Path, profile: &Path, downloads: &Path) -> Capabilities {
    let mut wishes = DesiredCapabilities::chrome();
    wishes.set_binary(chromium.to_str().unwrap()).unwrap();
    let profile = format!("--user-data-dir={}", profile.display());
    for word in [
        "--headless=new",
        // In a container there is no other sandbox to be had, and only our own pages are shown.
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--force-color-profile=srgb",
        "--disable-background-networking",
        "--no-first-run",
        "--mute-audio",
        &profile,
    ] {
        wishes.add_arg(word).unwrap();
    }
    let keeping = json!({
        "download.default_directory": downloads,
        "download.prompt_for_download": false,
        "profile.default_content_setting_values.automatic_downloads": 1,
    });
    wishes.add_experimental_option("prefs", keeping).unwrap();
    wishes.set("goog:loggingPrefs", json!({ "browser": "ALL" })).unwrap();
    wishes.into()
}

/// A running chromedriver.
struct Driver {
    child: Child,
    port: u16,
}

impl Driver {
    fn start(program: &Path) -> Driver {
        // It takes a free port of one family of addresses, and ends where that of the other is taken.
        (0..5).find_map(|_| Driver::once(program)).expect("chromedriver says its port")
    }

    fn once(program: &Path) -> Option<Driver> {
        let mut child = Command::new(program)
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let said = lines(child.stdout.take().unwrap());
        // From here on it ends with this value.
        let mut driver = Driver { child, port: 0 };
        while driver.port == 0 {
            let line = said.recv_timeout(PATIENCE).ok()?;
            let port = line.rsplit_once("successfully on port ").map(|(_, rest)| rest.trim_end_matches('.'));
            driver.port = port.and_then(|port| port.parse().ok()).unwrap_or_default();
        }
        // What else it says is nobody's to read, and a full pipe would hold it.
        std::thread::spawn(move || said.iter().count());
        Some(driver)
    }

    fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Browser {
    /// Sets size and colours.
    pub async fn look(&self, look: Look) {
        let tools = self.driver.cdp();
        let size =
            json!({ "width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": look.width < 600 });
        tools.send_raw("Emulation.setDeviceMetricsOverride", size).await.unwrap();
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": look.scheme }] });
        tools.send_raw("Emulation.setEmulatedMedia", media).await.unwrap();
    }

    /// Opens an address.
    pub async fn open(&self, address: &str) {
        self.driver.goto(address).await.unwrap();
    }

    /// What an expression of JavaScript gives.
    pub async fn eval(&self, expression: &str) -> Value {
        let script = format!("return ({expression});");
        let given = self.driver.execute(script, Vec::<Value>::new()).await;
        given.unwrap_or_else(|e| panic!("{expression}: {e}")).json().clone()
    }

    /// Waits until an expression of JavaScript is true, and gives its value.
    #[track_caller]
    pub fn until<'a>(&'a self, expression: &'a str) -> impl Future<Output = Value> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let script = "
                const [expression, patience, done] = arguments;
                const look = new Function('return (' + expression + ');');
                const end = performance.now() + patience;
                (function again() {
                    let value = null, error = null;
                    try { value = look(); } catch (e) { error = String(e); }
                    if (value) return done({ value });
                    if (performance.now() > end) return done({ error, shown: document.body.innerText.slice(0, 4000) });
                    setTimeout(again, 15);
                })();";
            let patience = u64::try_from(PATIENCE.as_millis()).unwrap();
            let arguments = vec![json!(expression), json!(patience)];
            let mut given = self.driver.execute_async(script, arguments.clone()).await;
            // A page that goes while it is asked, as when somebody signs out, takes the question with it: the next one is asked.
            for _ in 0..5 {
                if given.is_err() {
                    given = self.driver.execute_async(script, arguments.clone()).await;
                }
            }
            let mut given = given.unwrap_or_else(|e| panic!("{place}: {expression}: {e}")).json().clone();
            assert!(given.get("value").is_some(), "{place}: never: {expression}\n{given:#}");
            given["value"].take()
        }
    }

    /// The element of a selector, once it is there and can be seen.
    #[track_caller]
    pub fn find<'a>(&'a self, selector: &'a str) -> impl Future<Output = WebElement> + 'a {
        let seen = format!(
            "[...document.querySelectorAll({})].some(e => e.checkVisibility({{ visibilityProperty: true }}))",
            json!(selector)
        );
        let place = std::panic::Location::caller();
        async move {
            self.until(&seen).await;
            for element in self.driver.find_all(By::Css(selector)).await.unwrap() {
                if element.is_displayed().await.unwrap_or(false) {
                    return element;
                }
            }
            panic!("{place}: {selector} went away");
        }
    }

    /// Clicks what a selector finds.
    pub async fn click(&self, selector: &str) {
        let element = self.find(selector).await;
        element.click().await.unwrap_or_else(|e| panic!("{selector}: {e}"));
    }

    /// Types into whatever has the focus, as a keyboard does.
    pub async fn keys(&self, keys: impl AsRef<str>) {
        self.driver
            .action_chain_with_delay(Some(Duration::ZERO), None)
            .send_keys(keys.as_ref())
            .perform()
            .await
            .unwrap();
    }

    /// Presses one key.
    pub async fn press(&self, key: Key) {
        self.keys(key.value().to_string()).await;
    }

    /// A key with Ctrl held.
    pub async fn ctrl(&self, key: &str) {
        let chain = self.driver.action_chain_with_delay(Some(Duration::ZERO), None);
        chain.key_down(Key::Control).send_keys(key).key_up(Key::Control).perform().await.unwrap();
    }

    /// What a file holds that was downloaded under this name, once all of it is there.
    #[track_caller]
    pub fn downloaded<'a>(&'a self, name: &'a str) -> impl Future<Output = Vec<u8>> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let end = Instant::now() + PATIENCE;
            // A download has another name until it is whole.
            loop {
                if let Ok(bytes) = std::fs::read(self.downloads.join(name)) {
                    return bytes;
                }
                assert!(Instant::now() < end, "{place}: {name} was never downloaded");
                self.eval("1").await;
            }
        }
    }

    /// Where a downloaded file lies.
    pub fn download(&self, name: &str) -> PathBuf {
        self.downloads.join(name)
    }

    /// Keeps a picture of the window where `LAPIDARY_SHOTS` names a folder.
    pub async fn shot(&self, name: &str) {
        if let Some(folder) = std::env::var_os("LAPIDARY_SHOTS") {
            let png = self.driver.screenshot_as_png().await.unwrap();
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(Path::new(&folder).join(format!("{name}.png")), png).unwrap();
        }
    }

    /// What the page complained of since it was last asked: errors of its scripts, what its content policy stopped, answers that
    /// it did not get.
    pub async fn complaints(&self) -> Vec<String> {
        let said = self.driver.browser_log().await.unwrap();
        said.into_iter().filter(|entry| entry.level == "SEVERE").map(|entry| entry.message).collect()
    }
}
