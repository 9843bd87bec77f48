//! Logs on stderr: `--log` and `LAPIDARY_LOG` decide the level, plain or JSON. Only our own lines are written: a library's
//! could hold an address or a body. What happens in a host is told with ids, counts and status.

use super::context::Stop;
use crate::app::Host;
use crate::base::event::Event;
use tokio::sync::broadcast::error::RecvError;
use tracing_subscriber::EnvFilter;

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// Starts the log, where somebody asked for one.
///
/// # Errors
/// [`Stop::Usage`] for a word that is no level.
#[expect(clippy::disallowed_methods, reason = "the level may be given by the environment")]
pub fn start(option: Option<&str>) -> Result<(), Stop> {
    let from_env = std::env::var("LAPIDARY_LOG").ok();
    let Some(wanted) = option.map(str::to_owned).or(from_env).filter(|w| !w.trim().is_empty()) else { return Ok(()) };
    let (level, is_json) = parse(&wanted).ok_or_else(|| {
        Stop::usage(
            format!("`{}` is not a log level", super::print::clip(&wanted, 40)),
            format!("one of {}, with `,json` behind it for JSON lines", LEVELS.join(", ")),
        )
    })?;
    let filter = EnvFilter::new(format!("lapidary={level}"));
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    // A second start in one process, as tests do, keeps the first.
    let _ = if is_json { lines.json().try_init() } else { lines.try_init() };
    Ok(())
}

fn parse(text: &str) -> Option<(&'static str, bool)> {
    let mut level = None;
    let mut is_json = false;
    for word in text.split(',').map(|w| w.trim().to_ascii_lowercase()) {
        match word.as_str() {
            "json" => is_json = true,
            "plain" => is_json = false,
            other => level = Some(*LEVELS.iter().find(|l| **l == other)?),
        }
    }
    level.or(is_json.then_some("info")).map(|level| (level, is_json))
}

/// Writes what happens in this host to the log, until it ends.
pub fn follow(host: &Host) {
    if !tracing::enabled!(tracing::Level::WARN) {
        return;
    }
    let mut events = host.events();
    host.services().runtime.spawn(async move {
        loop {
            match events.recv().await {
                Ok(event) => write(&event),
                Err(RecvError::Lagged(missed)) => tracing::warn!(missed, "events came faster than the log"),
                Err(RecvError::Closed) => return,
            }
        }
    });
}

fn write(event: &Event) {
    match event {
        Event::PluginLive { plugin, generation } => tracing::info!(plugin, generation, "live"),
        Event::PluginFailed { plugin, live, disk, summary } => tracing::warn!(plugin, live, disk, summary, "failed to load"),
        Event::PluginGone { plugin } => tracing::info!(plugin, "gone"),
        Event::ToolsChanged { revision } => tracing::info!(revision, "tools changed"),
        Event::SettingsChanged { plugin } => tracing::info!(plugin, "settings changed"),
        Event::CallEnded { call, tool, generation, ok, code, duration_us } => {
            tracing::info!(call, tool, generation, ok, code, duration_us, "call ended");
        }
        Event::Notice { subject, message } => tracing::warn!(subject, message, "notice"),
        Event::Stopping => tracing::info!("stopping"),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn a_level_may_come_with_a_form() {
        let rows = [
            ("info", Some(("info", false))),
            ("DEBUG", Some(("debug", false))),
            ("debug,json", Some(("debug", true))),
            ("json", Some(("info", true))),
            ("json, warn", Some(("warn", true))),
            ("plain", None),
            ("loud", None),
            ("info,xml", None),
        ];
        for (text, expected) in rows {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
