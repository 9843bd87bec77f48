//! Which of what waits in a chat has its turn next. Pure: items go in, a verdict comes out.

use crate::store::inbox::{Item, ItemState, Lane};

/// What is to be done next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pick {
    /// Nothing waits.
    Nothing,
    /// A turn that was broken off goes on; these tickets are its items.
    Resume(Vec<String>),
    /// These items become one turn, the first one giving it its name.
    Run(Vec<String>),
}

/// The items that have waited too long.
pub fn stale(items: &[Item], now: i64) -> impl Iterator<Item = &Item> {
    items.iter().filter(move |item| item.state == ItemState::Waiting && item.expires_at.is_some_and(|end| end <= now))
}

/// What comes next: what was broken off before all else, then people, then machines, each in the order in which they came. What
/// one person typed in a row is one turn; a machine's item is always one of its own.
#[must_use]
pub fn next(items: &[Item]) -> Pick {
    let running: Vec<String> = items.iter().filter(|item| item.state == ItemState::Running).map(ticket).collect();
    if !running.is_empty() {
        return Pick::Resume(running);
    }
    let waiting = |lane: Lane| items.iter().filter(move |item| item.state == ItemState::Waiting && item.lane == lane);
    let mut people = waiting(Lane::Now);
    if let Some(first) = people.next() {
        let folds = |item: &&Item| item.source == first.source && item.plugin.is_none() && item.header.is_empty();
        let is_typed = first.plugin.is_none() && first.header.is_empty();
        let more = people.take_while(folds).filter(|_| is_typed).map(ticket);
        return Pick::Run(std::iter::once(ticket(first)).chain(more).collect());
    }
    waiting(Lane::Later).next().map_or(Pick::Nothing, |first| Pick::Run(vec![ticket(first)]))
}

/// How many turns come up to and with an item, people first; 0 where it does not wait.
#[must_use]
pub fn position(items: &[Item], of: &str) -> usize {
    let waiting = |lane: Lane| items.iter().filter(move |item| item.state == ItemState::Waiting && item.lane == lane);
    waiting(Lane::Now).chain(waiting(Lane::Later)).position(|item| item.ticket == of).map_or(0, |n| n + 1)
}

fn ticket(item: &Item) -> String {
    item.ticket.clone()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `name` typed by a person (`u:`), by somebody else at another door (`s:`), or by a machine (`m:`); `!` marks one that runs.
    fn items(list: &str) -> Vec<Item> {
        let of = |(seq, word): (usize, &str)| {
            let (word, state) = match word.strip_suffix('!') {
                Some(word) => (word, ItemState::Running),
                None => (word, ItemState::Waiting),
            };
            let (who, name) = word.split_once(':').unwrap_or(("u", word));
            Item {
                ticket: name.to_owned(),
                chat: 1,
                seq: i64::try_from(seq).unwrap_or(0),
                lane: if who == "m" { Lane::Later } else { Lane::Now },
                state,
                source: if who == "u" { "user" } else { who }.to_owned(),
                plugin: (who == "m").then(|| "songs".to_owned()),
                header: if who == "m" { "[songs; not typed by the user]" } else { "" }.to_owned(),
                payload: "{}".to_owned(),
                put_at: 0,
                expires_at: name.strip_prefix("ttl").and_then(|n| n.parse().ok()),
                private_at_put: Some(false),
                on_drop: None,
                durable: true,
                attempts: 0,
            }
        };
        list.split_whitespace().enumerate().map(of).collect()
    }

    #[test]
    fn people_come_before_machines_and_only_what_one_person_typed_in_a_row_folds() {
        for (waiting, expected) in [
            ("", ""),
            ("u:a", "run a"),
            ("u:a u:b", "run a b"),
            ("u:a u:b s:c u:d", "run a b"),
            ("s:c u:a u:b", "run c"),
            ("m:x", "run x"),
            ("m:x m:y", "run x"),
            ("m:x u:a", "run a"),
            ("m:x u:a m:y u:b", "run a b"),
            ("u:a! m:x", "resume a"),
            ("m:x u:a! u:b!", "resume a b"),
            ("m:x! u:a", "resume x"),
        ] {
            let told = match next(&items(waiting)) {
                Pick::Nothing => String::new(),
                Pick::Run(tickets) => format!("run {}", tickets.join(" ")),
                Pick::Resume(tickets) => format!("resume {}", tickets.join(" ")),
            };
            assert_eq!(told, expected, "{waiting}");
        }
    }

    #[test]
    fn a_position_counts_people_first_and_from_one() {
        let waiting = items("m:x u:a m:y u:b u:c!");
        for (ticket, expected) in [("a", 1), ("b", 2), ("x", 3), ("y", 4), ("c", 0), ("none", 0)] {
            assert_eq!(position(&waiting, ticket), expected, "{ticket}");
        }
    }

    #[test]
    fn only_what_still_waits_grows_stale() {
        let waiting = items("m:ttl5 m:ttl9 u:ttl5 m:ttl4! m:x");
        let told: Vec<_> = stale(&waiting, 5).map(|item| (item.lane, item.ticket.as_str())).collect();
        assert_eq!(told, [(Lane::Later, "ttl5"), (Lane::Now, "ttl5")]);
    }
}
