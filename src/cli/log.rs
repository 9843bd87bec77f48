//! Logs on stderr: `--log` and `LAPIDARY_LOG` decide the level, plain or JSON. Only our own lines are written: a library's
//! could hold an address or a body, and ours hold ids, counts and status.

use super::context::Stop;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{fmt, registry};

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// Starts the log, where somebody asked for one.
///
/// # Errors
/// [`Stop::Usage`] for a word that is no level.
#[expect(clippy::disallowed_methods, reason = "the level may be given by the environment")]
pub fn start(option: Option<&str>) -> Result<(), Stop> {
    let from_env = std::env::var("LAPIDARY_LOG").ok();
    let wanted = option.map(str::to_owned).or(from_env).filter(|w| !w.trim().is_empty());
    let Some(wanted) = wanted else {
        // Nobody asked for a log, but a file that had to be set aside is something to know.
        let lines = fmt::layer().with_writer(std::io::stderr).without_time().with_target(false);
        let _ = registry().with(lines).with(ours(LevelFilter::WARN)).try_init();
        return Ok(());
    };
    let (level, is_json) = parse(&wanted).ok_or_else(|| {
        Stop::usage(
            format!("`{}` is not a log level", super::print::clip(&wanted, 40)),
            format!("one of {}, with `,json` behind it for JSON lines", LEVELS.join(", ")),
        )
    })?;
    let lines = fmt::layer().with_writer(std::io::stderr);
    let ours = ours(level.parse().unwrap_or(LevelFilter::INFO));
    // A second start in one process, as tests do, keeps the first.
    let _ = if is_json {
        registry().with(lines.json()).with(ours).try_init()
    } else {
        registry().with(lines).with(ours).try_init()
    };
    Ok(())
}

/// Lets our own lines through, from `level` on.
fn ours(level: LevelFilter) -> Targets {
    Targets::new().with_target("lapidary", level)
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
