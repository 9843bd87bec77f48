//! The host in numbers, as Prometheus reads them: ids and counts, never content.

use crate::app::Host;
use std::fmt::Write as _;
use std::time::Duration;

/// The numbers of one moment.
#[derive(Debug, Clone, Default, PartialEq)]
struct Numbers {
    calls: u64,
    failures: Vec<(&'static str, u64)>,
    micros: u64,
    live: usize,
    failed: usize,
    off: usize,
    tools: usize,
    revision: u64,
    uptime: Duration,
}

/// The page of a host that has been up for `uptime`.
pub(super) fn page(host: &Host, uptime: Duration) -> String {
    let counted = host.counted();
    let statuses = host.plugins().statuses();
    let snapshot = host.dispatcher().snapshot();
    let count = |keep: fn(&crate::plugin::status::Status) -> bool| statuses.iter().filter(|s| keep(s)).count();
    render(&Numbers {
        calls: counted.calls,
        failures: counted.by_code.into_iter().collect(),
        micros: counted.micros,
        live: count(|s| s.live.is_some()),
        failed: count(|s| s.enabled && !s.waiting && (s.disk.is_some() || s.live.is_none())),
        off: count(|s| !s.enabled),
        tools: snapshot.len(),
        revision: snapshot.revision,
        uptime,
    })
}

fn render(n: &Numbers) -> String {
    let mut out = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        let _ = writeln!(out, "# HELP lapidary_{name} {help}\n# TYPE lapidary_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(out, "lapidary_{name}{labels} {value}");
        }
    };
    let one = |value: String| vec![(String::new(), value)];
    metric("calls_total", "counter", "Tool calls since the start.", &one(n.calls.to_string()));
    let failures: Vec<_> =
        n.failures.iter().map(|(code, count)| (format!("{{code=\"{code}\"}}"), count.to_string())).collect();
    metric("call_failures_total", "counter", "Tool calls that failed, by code.", &failures);
    #[expect(clippy::cast_precision_loss, reason = "seconds, to the microsecond for 285 years")]
    metric(
        "call_seconds_total",
        "counter",
        "Wall clock of all tool calls.",
        &one(format!("{:.6}", n.micros as f64 / 1e6)),
    );
    let plugins = [("live", n.live), ("failed", n.failed), ("off", n.off)]
        .map(|(state, count)| (format!("{{state=\"{state}\"}}"), count.to_string()));
    metric(
        "plugins",
        "gauge",
        "Plugins by state; one that answers while a newer version does not load is live and failed.",
        &plugins,
    );
    metric("tools", "gauge", "Tools that can be called.", &one(n.tools.to_string()));
    metric(
        "tools_revision",
        "gauge",
        "Counts changes of what a model reads about the tools.",
        &one(n.revision.to_string()),
    );
    metric(
        "uptime_seconds",
        "gauge",
        "Seconds since the server started.",
        &one(format!("{:.3}", n.uptime.as_secs_f64())),
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_comment_or_a_name_with_a_number() {
        let text = render(&Numbers {
            calls: 3,
            failures: vec![("not_found", 1), ("timeout", 2)],
            micros: 1_500_000,
            live: 2,
            uptime: Duration::from_millis(1500),
            ..Numbers::default()
        });
        for line in text.lines().filter(|l| !l.starts_with("# ")) {
            let (name, value) = line.rsplit_once(' ').unwrap_or_default();
            assert!(name.starts_with("lapidary_") && value.parse::<f64>().is_ok(), "{line}");
        }
        for line in [
            "lapidary_calls_total 3",
            "lapidary_call_failures_total{code=\"timeout\"} 2",
            "lapidary_call_seconds_total 1.500000",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
