//! The command line: one file per command, one renderer of errors, four exit codes.
//! It parses, opens a host where a command needs one, and prints; what a command does lives in the rooms below.

mod call;
mod check;
mod context;
mod credentials;
mod definitions;
mod dev;
mod docs;
mod doctor;
mod grant;
mod history;
mod info;
mod install;
mod journal;
mod log;
mod mcp;
mod new;
mod parts;
mod password;
mod preview;
mod print;
mod reference;
mod replay;
mod resident;
mod rollback;
mod serve;
mod settings;
mod sign_in;
mod switch;
mod test;
mod tokens;
mod tools;

pub use context::{Context, Done, Stop, Verdict};
pub use reference::page as reference;

use crate::base::error::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

/// Commands of later versions: known words, so that the answer is better than "unknown".
const LATER: [&str; 9] = ["agents", "ais", "approvals", "chat", "chats", "people", "rooms", "vault", "toolsets"];

const ABOUT: &str = "A workshop for tools that an AI can call: save a .rhai script, and it is live.";
const AFTER: &str = "\
Without a command it runs the host: lapidary serve.

Start here:
  lapidary new greet         writes a first tool, with a test
  lapidary dev               watches your files and shows what is wrong
  lapidary call <tool> a=1   runs a tool
  lapidary mcp               gives the tools to an MCP client

Exit codes: 0 fine, 1 what was asked about failed, 2 wrong usage, 3 the host could not start.";

/// The heading of the options that every command has.
const EVERYWHERE: &str = "Everywhere";

#[derive(Parser)]
#[command(name = "lapidary", version, about = ABOUT, after_help = AFTER, max_term_width = 100)]
struct Cli {
    /// The root folder [default: $LAPIDARY_ROOT, the workshop around here, or this user's data folder]
    #[arg(long, global = true, value_name = "DIR", help_heading = EVERYWHERE)]
    root: Option<PathBuf>,
    /// Print one JSON value on stdout, for programs
    #[arg(long, global = true, help_heading = EVERYWHERE)]
    json: bool,
    /// Log to stderr: error, warn, info, debug or trace; with `,json` as JSON lines [default: $LAPIDARY_LOG]
    #[arg(long, global = true, value_name = "LEVEL", help_heading = EVERYWHERE)]
    log: Option<String>,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Serve(serve::Serve),
    Dev(dev::Dev),
    New(new::New),
    Check(check::Check),
    Test(test::Test),
    Tools(tools::Tools),
    Call(call::Call),
    Journal(journal::JournalCommand),
    Replay(replay::Replay),
    Preview(preview::Preview),
    Settings(settings::Settings),
    Info(info::Info),
    Enable(switch::Enable),
    Disable(switch::Disable),
    Reload(switch::Reload),
    Grant(grant::Grant),
    Revoke(grant::Revoke),
    Credentials(credentials::Credentials),
    SignIn(sign_in::SignIn),
    Tokens(tokens::Tokens),
    Password(password::Password),
    History(history::History),
    Rollback(rollback::Rollback),
    Install(install::Install),
    Uninstall(install::Uninstall),
    Mcp(mcp::Mcp),
    Docs(docs::Docs),
    Definitions(definitions::Definitions),
    Doctor(doctor::Doctor),
}

impl Default for Command {
    fn default() -> Self {
        Command::Serve(serve::Serve::default())
    }
}

impl Command {
    fn run(&self, cx: &Context) -> Done {
        match self {
            Command::Serve(c) => c.run(cx),
            Command::Dev(c) => c.run(cx),
            Command::New(c) => c.run(cx),
            Command::Check(c) => c.run(cx),
            Command::Test(c) => c.run(cx),
            Command::Tools(c) => c.run(cx),
            Command::Call(c) => c.run(cx),
            Command::Journal(c) => c.run(cx),
            Command::Replay(c) => c.run(cx),
            Command::Preview(c) => c.run(cx),
            Command::Settings(c) => c.run(cx),
            Command::Info(c) => c.run(cx),
            Command::Enable(c) => c.run(cx),
            Command::Disable(c) => c.run(cx),
            Command::Reload(c) => c.run(cx),
            Command::Grant(c) => c.run(cx),
            Command::Revoke(c) => c.run(cx),
            Command::Credentials(c) => c.run(cx),
            Command::SignIn(c) => c.run(cx),
            Command::Tokens(c) => c.run(cx),
            Command::Password(c) => c.run(cx),
            Command::History(c) => c.run(cx),
            Command::Rollback(c) => c.run(cx),
            Command::Install(c) => c.run(cx),
            Command::Uninstall(c) => c.run(cx),
            Command::Mcp(c) => c.run(cx),
            Command::Docs(c) => c.run(cx),
            Command::Definitions(c) => c.run(cx),
            Command::Doctor(c) => c.run(cx),
        }
    }
}

/// Runs the command line of this process.
#[must_use]
pub fn main() -> ExitCode {
    // Nothing is built before the words are read: `--version` and a usage error cost no host.
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) => return refuse(&e),
    };
    let cx = Context { root: cli.root, json: cli.json };
    let done = log::start(cli.log.as_deref()).and_then(|()| cli.command.unwrap_or_default().run(&cx));
    match done {
        Ok(Verdict::Good) => ExitCode::SUCCESS,
        Ok(Verdict::Bad) => ExitCode::from(1),
        Err(stop) => {
            let (error, code) = stop.parts();
            if cx.json {
                print::json(&print::failure_json(error));
            }
            print::failure(error);
            ExitCode::from(code)
        }
    }
}

/// Help and version go out as they are; anything else is wrong usage.
fn refuse(e: &clap::Error) -> ExitCode {
    if !e.use_stderr() {
        let _ = e.print();
        return ExitCode::SUCCESS;
    }
    let is_json = std::env::args_os().any(|a| a == "--json");
    let later = match (e.kind(), e.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(word))) if LATER.contains(&word.as_str()) => Some(
            Error::invalid(format!("`lapidary {word}` is not built yet")).hint("lapidary --help lists what there is"),
        ),
        _ => None,
    };
    if is_json {
        let error = later.clone().unwrap_or_else(|| usage_error(&e.to_string()));
        print::json(&print::failure_json(&error));
    }
    match later {
        Some(error) => print::failure(&error),
        None => {
            let _ = e.print();
        }
    }
    ExitCode::from(2)
}

/// What the parser of the words prints for people, as one error: its first paragraph says what is wrong, its tips what to do.
fn usage_error(printed: &str) -> Error {
    let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut paragraphs = printed.split("\n\n");
    let message = one_line(paragraphs.next().unwrap_or_default().trim_start_matches("error: "));
    let tips: Vec<String> =
        paragraphs.flat_map(str::lines).filter_map(|l| l.trim().strip_prefix("tip: ")).map(one_line).collect();
    let hint = if tips.is_empty() { "lapidary --help".to_owned() } else { tips.join("; ") };
    Error::invalid(message).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_tree_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_and_option_says_what_it_does() {
        let mut silent = Vec::new();
        for command in Cli::command().get_subcommands() {
            if command.get_about().is_none() {
                silent.push(command.get_name().to_owned());
            }
            for arg in command.get_arguments().filter(|a| !a.is_hide_set() && a.get_help().is_none()) {
                silent.push(format!("{} {}", command.get_name(), arg.get_id()));
            }
        }
        assert_eq!(silent, Vec::<String>::new());
    }

    #[test]
    fn a_word_of_a_later_version_is_no_command_now() {
        let now: Vec<String> = Cli::command().get_subcommands().map(|c| c.get_name().to_owned()).collect();
        for word in LATER {
            assert!(!now.iter().any(|name| name == word), "{word} is built: take it off the list");
        }
    }
}
