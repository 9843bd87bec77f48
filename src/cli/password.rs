//! `password`: what signs a person in beside one-time links. It comes from stdin or a prompt, never from the words of a command,
//! which other programs can see.

use super::context::{Context, Done, Stop, Verdict};
use super::credentials::{Value, prompt, whole_stdin};
use super::print;
use crate::base::clock::Clock;
use crate::base::error::Error;
use crate::doors;
use clap::{Args, Subcommand};
use serde_json::json;
use std::io::IsTerminal;

/// Set or remove the password that signs you in to the page
#[derive(Args)]
#[command(after_help = "\
Examples:
  lapidary password set                  asks for it, twice
  lapidary password set < password.txt   takes it from a file

Without one, only the links of `lapidary sign-in` sign a person in. A new password signs everybody out.")]
pub struct Password {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Set it; it is asked for, or read from stdin
    Set,
    /// Remove it; links go on signing in
    Remove,
}

impl Password {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let password = doors::Password::of(&cx.workshop()?, Clock::system());
        let (value, said) = match self.what {
            What::Set => {
                password.set(&ask()?)?;
                (json!({ "password_set": true }), "the password is set, and everybody is signed out")
            }
            What::Remove => {
                let was_set = password.remove()?;
                let said = if was_set { "removed, and everybody is signed out" } else { "there was none" };
                (json!({ "password_set": false, "removed": was_set }), said)
            }
        };
        if cx.json {
            print::json(&value);
        } else {
            print::line(said);
        }
        Ok(Verdict::Good)
    }
}

fn ask() -> Result<Value, Stop> {
    if !std::io::stdin().is_terminal() {
        return whole_stdin();
    }
    let first = prompt("new password (not shown): ")?;
    let again = prompt("once more: ")?;
    if *first == *again {
        Ok(first)
    } else {
        Err(Stop::Failed(
            Error::invalid("the two are not the same, so nothing was changed")
                .hint("type it again: lapidary password set"),
        ))
    }
}
