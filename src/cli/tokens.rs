//! `tokens`: what programs show to be let in. A token is printed once, when it is made.

use super::context::{Context, Done, Verdict};
use super::print::{self, Table};
use crate::base::clock::Clock;
use crate::doors;
use crate::service::time;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

/// Tokens for programs: one for each, to be revoked alone
#[derive(Args)]
#[command(after_help = "\
Examples:
  lapidary tokens add laptop       prints the token, once
  lapidary tokens list             who has one, and when it was last used
  lapidary tokens revoke laptop    turns its holder away at once

The owner's own token, in user/webui/token or LAPIDARY_TOKEN, is none of these: it may also make and revoke them.")]
pub struct Tokens {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// All tokens, without what they are
    List,
    /// Make a token and print it; it is not to be had again
    Add {
        /// What you will call it, such as the program that uses it
        name: String,
    },
    /// Revoke a token
    Revoke {
        /// Its id or its name
        #[arg(value_name = "ID")]
        id: String,
    },
}

impl Tokens {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let tokens = doors::Tokens::of(&cx.workshop()?, Clock::system());
        match &self.what {
            What::List => list(&tokens, cx),
            What::Add { name } => {
                let (secret, token) = tokens.add(name)?;
                if cx.json {
                    print::json(&json!({ "id": token.id, "name": token.name, "token": secret }));
                } else {
                    print::line(&secret);
                    print::note(format_args!(
                        "{} is the token of {}; it is shown this once. lapidary tokens revoke {}",
                        token.id, token.name, token.id
                    ));
                }
            }
            What::Revoke { id } => {
                let token = tokens.revoke(id)?;
                if cx.json {
                    print::json(&json!({ "id": token.id, "name": token.name, "revoked": true }));
                } else {
                    print::line(format_args!("revoked {} ({})", token.name, token.id));
                }
            }
        }
        Ok(Verdict::Good)
    }
}

fn list(tokens: &doors::Tokens, cx: &Context) {
    let all = tokens.list();
    if cx.json {
        let all: Vec<Value> = all.iter().map(as_json).collect();
        print::json(&json!({ "tokens": all }));
        return;
    }
    if all.is_empty() {
        print::line("There are no tokens. lapidary tokens add NAME");
        return;
    }
    let mut table = Table::new(&["ID", "NAME", "MADE", "LAST USED"]);
    for token in all {
        let used = token.used_ms.map_or_else(|| "never".to_owned(), minute);
        table.row([token.id, token.name.to_string(), minute(token.made_ms), used]);
    }
    print::line(table.render(0));
}

fn as_json(token: &doors::Token) -> Value {
    json!({
        "id": token.id,
        "name": token.name,
        "created_at": time::from_unix_ms(token.made_ms),
        "last_used_at": token.used_ms.and_then(time::from_unix_ms),
    })
}

/// A moment to the minute, in UTC.
fn minute(unix_ms: i64) -> String {
    let text = time::from_unix_ms(unix_ms).unwrap_or_default();
    text.get(..16).map_or_else(|| text.clone(), |text| format!("{}Z", text.replace('T', " ")))
}
