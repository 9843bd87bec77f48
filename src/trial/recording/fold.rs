//! From what each test heard to what the file says: what was written by hand stays, what is the same for all tests stands once.

use super::page::{Exchange, Outcome};

/// The new exchanges, and what went.
pub struct Folded {
    /// In the order in which they answer.
    pub exchanges: Vec<Exchange>,
    /// Requests that no test asks for any more.
    pub dropped: Vec<String>,
}

/// What each test was answered, in order.
type Answers = Vec<(String, Vec<Outcome>)>;

/// `before` is what the file says, `heard` what each test heard, in order.
pub fn fold(before: &[Exchange], heard: Vec<(String, Vec<Exchange>)>) -> Folded {
    // By request, in order of appearance: what each test that asked was answered.
    let mut asked: Vec<(Exchange, Answers)> = Vec::new();
    for (test, exchanges) in heard {
        for exchange in exchanges {
            let at = match asked.iter().position(|(first, _)| first.request == exchange.request) {
                Some(at) => at,
                None => {
                    asked.push((exchange.clone(), Vec::new()));
                    asked.len() - 1
                }
            };
            let tests = &mut asked[at].1;
            match tests.last_mut().filter(|(name, _)| *name == test) {
                Some((_, outcomes)) => outcomes.push(exchange.outcome),
                None => tests.push((test.clone(), vec![exchange.outcome])),
            }
        }
    }
    let mut exchanges: Vec<Exchange> = before.iter().filter(|exchange| exchange.keep).cloned().collect();
    let mut dropped = Vec::new();
    for gone in before.iter().filter(|exchange| !exchange.keep) {
        let what = gone.request.shown();
        if !asked.iter().any(|(first, _)| first.request == gone.request) && !dropped.contains(&what) {
            dropped.push(what);
        }
    }
    for (first, mut tests) in asked {
        tests.iter_mut().for_each(|(_, outcomes)| shorten(outcomes));
        let alike = tests.iter().all(|(_, outcomes)| *outcomes == tests[0].1);
        let count = if alike { 1 } else { tests.len() };
        for (test, outcomes) in tests.into_iter().take(count) {
            exchanges.extend(outcomes.into_iter().map(|outcome| Exchange {
                test: (!alike).then(|| test.clone()),
                keep: false,
                request: first.request.clone(),
                outcome,
            }));
        }
    }
    Folded { exchanges, dropped }
}

/// The last answer repeats by itself.
fn shorten(outcomes: &mut Vec<Outcome>) {
    while let [.., before, last] = outcomes.as_slice()
        && before == last
    {
        outcomes.pop();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::compare::{Asked, Sent};
    use super::super::page::Reply;
    use super::*;

    fn exchange(path: &str, body: &str) -> Exchange {
        let url = format!("https://a.example/{path}");
        Exchange {
            test: None,
            keep: false,
            request: Asked { method: "GET".into(), url, headers: Default::default(), sent: Sent::Nothing },
            outcome: Outcome::Answer(Reply { status: 200, headers: Vec::new(), body: body.into(), file: None }),
        }
    }

    /// `test path body` of each, `-` for every test.
    fn shown(folded: &Folded) -> Vec<String> {
        let line = |e: &Exchange| {
            let Outcome::Answer(reply) = &e.outcome else { unreachable!() };
            let path = e.request.url.rsplit('/').next().unwrap();
            format!("{} {path} {}", e.test.as_deref().unwrap_or("-"), String::from_utf8_lossy(&reply.body))
        };
        folded.exchanges.iter().map(line).collect()
    }

    /// A test, and the paths it asked for with their answers.
    type Row = (&'static str, &'static [(&'static str, &'static str)]);

    fn heard(rows: &[Row]) -> Vec<(String, Vec<Exchange>)> {
        rows.iter().map(|(test, all)| ((*test).to_owned(), all.iter().map(|(p, b)| exchange(p, b)).collect())).collect()
    }

    #[test]
    fn what_is_answered_alike_in_every_test_stands_once() {
        let rows: [(&[Row], &[&str]); 5] = [
            (&[("a", &[("x", "1")]), ("b", &[("x", "1")])], &["- x 1"]),
            (&[("a", &[("x", "1"), ("x", "1"), ("x", "2"), ("x", "2")])], &["- x 1", "- x 1", "- x 2"]),
            (&[("a", &[("x", "1")]), ("b", &[("x", "2")])], &["a x 1", "b x 2"]),
            (&[("a", &[("x", "1"), ("y", "1")]), ("b", &[("y", "1"), ("x", "1"), ("x", "1")])], &["- x 1", "- y 1"]),
            (&[("a", &[]), ("b", &[("x", "1")])], &["- x 1"]),
        ];
        for (given, expected) in rows {
            assert_eq!(shown(&fold(&[], heard(given))), expected);
        }
    }

    #[test]
    fn what_was_written_by_hand_stays_and_what_nobody_asks_for_goes() {
        let by_hand = Exchange { keep: true, ..exchange("hand", "1") };
        let before = [exchange("old", "1"), by_hand, exchange("old", "2"), exchange("x", "1")];
        let folded = fold(&before, heard(&[("a", &[("x", "2")])]));
        assert_eq!(shown(&folded), ["- hand 1", "- x 2"]);
        assert_eq!(folded.dropped, ["GET https://a.example/old"]);
    }
}
