//! The closed list of permission words, what each means, and the host functions it guards.

use crate::base::error::{Error, Result, excerpt};
use std::fmt;

macro_rules! permissions {
    ($($variant:ident $word:literal $doc:literal,)*) => {
        /// A power that a script must declare before it can be granted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Permission {
            $(#[doc = $doc] $variant,)*
        }

        impl Permission {
            /// Every permission, in the order of the documentation.
            pub const ALL: &[Permission] = &[$(Permission::$variant,)*];

            /// The word, as scripts and manifests write it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Permission::$variant => $word,)*
                }
            }

            /// What it allows, in a few words.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Permission::$variant => $doc,)*
                }
            }
        }
    };
}

permissions! {
    ReadMessages "READ_MESSAGES" "Read the messages of the room.",
    SendMessages "SEND_MESSAGES" "Send messages to the room.",
    ReadMembers "READ_MEMBERS" "See who is in the room.",
    ReadNotes "READ_NOTES" "Read notes.",
    WriteNotes "WRITE_NOTES" "Create and change notes.",
    ReadTodos "READ_TODOS" "Read to-do items.",
    WriteTodos "WRITE_TODOS" "Create and change to-do items.",
    ReadFiles "READ_FILES" "Read the drive.",
    WriteFiles "WRITE_FILES" "Change the drive.",
    ReadRoomFiles "READ_ROOM_FILES" "Read the files attached in the room.",
    ReadKnowledge "READ_KNOWLEDGE" "Search the knowledge base.",
    WriteKnowledge "WRITE_KNOWLEDGE" "Add to the knowledge base.",
    ReadCalendar "READ_CALENDAR" "Read calendars.",
    WriteCalendar "WRITE_CALENDAR" "Change calendars.",
    ReadMemory "READ_MEMORY" "Search long-term memory.",
    WriteMemory "WRITE_MEMORY" "Save and forget memories.",
    ReadArtifacts "READ_ARTIFACTS" "Read artifacts.",
    WriteArtifacts "WRITE_ARTIFACTS" "Create and change artifacts.",
    ExternalHttp "EXTERNAL_HTTP" "Make HTTP requests.",
    WriteExternal "WRITE_EXTERNAL" "Change something in another service.",
    DelegateExternal "DELEGATE_EXTERNAL" "Hand work to tools of another service.",
    StartAgents "START_AGENTS" "Start agents.",
    RunCommands "RUN_COMMANDS" "Run programs on this machine.",
    UseSecrets "USE_SECRETS" "Use stored credentials.",
    Spend "SPEND" "Spend money.",
}

impl Permission {
    /// The permission for a word, exactly as written.
    #[must_use]
    pub fn parse(word: &str) -> Option<Permission> {
        Permission::ALL.iter().copied().find(|p| p.as_str() == word)
    }

    /// As [`Permission::parse`], with an error for a person.
    ///
    /// # Errors
    /// `invalid_arguments` naming the word and the nearest one that exists.
    pub fn read(word: &str) -> Result<Permission> {
        if let Some(found) = Permission::parse(word) {
            return Ok(found);
        }
        let upper = word.trim().to_ascii_uppercase().replace(['-', ' '], "_");
        let shown = excerpt(word, 60);
        let error = Error::invalid(format!("there is no permission `{shown}`"));
        let near = Permission::ALL.iter().find(|p| p.as_str() == upper).or_else(|| {
            let last = upper.rsplit('_').next().filter(|part| part.len() > 3)?;
            Permission::ALL.iter().find(|p| p.as_str().contains(last))
        });
        Err(match near {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!(
                "the words are {}",
                Permission::ALL.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(" ")
            )),
        })
    }

    /// What it allows, in words that go on from "it may"; `names` are the hosts or credentials it is limited to.
    #[must_use]
    pub fn says(self, names: &[String]) -> String {
        let list = match names {
            [] => String::new(),
            [one] => one.clone(),
            [most @ .., last] => format!("{} and {last}", most.join(", ")),
        };
        match self {
            Permission::ExternalHttp if names.is_empty() => "talk to any host on the internet".to_owned(),
            Permission::ExternalHttp => format!("talk to {list}"),
            Permission::UseSecrets if names.is_empty() => "use any stored credential".to_owned(),
            Permission::UseSecrets if names.len() == 1 => format!("use the credential {list}"),
            Permission::UseSecrets => format!("use the credentials {list}"),
            other => {
                let meaning = other.meaning().trim_end_matches('.');
                let mut letters = meaning.chars();
                letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
            }
        }
    }

    /// Whether declaring it is enough for a plugin that the owner put there: the dangerous ones need the owner's word.
    /// `EXTERNAL_HTTP` is harmless only for the hosts it lists, which [`Record::effective`] knows.
    #[must_use]
    pub const fn harmless(self) -> bool {
        !matches!(
            self,
            Permission::ExternalHttp
                | Permission::RunCommands
                | Permission::UseSecrets
                | Permission::WriteExternal
                | Permission::Spend
        )
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The host functions that each permission guards. One with no function of its own is checked where a tool declares it.
pub const GUARDED: &[(Permission, &[&str])] = &[
    (Permission::ReadMessages, &["room::messages"]),
    (Permission::SendMessages, &["room::send"]),
    (Permission::ReadMembers, &["room::members"]),
    (Permission::ReadNotes, &[]),
    (Permission::WriteNotes, &[]),
    (Permission::ReadTodos, &[]),
    (Permission::WriteTodos, &[]),
    (Permission::ReadFiles, &[]),
    (Permission::WriteFiles, &[]),
    (Permission::ReadRoomFiles, &["room::files", "room::file"]),
    (Permission::ReadKnowledge, &[]),
    (Permission::WriteKnowledge, &[]),
    (Permission::ReadCalendar, &[]),
    (Permission::WriteCalendar, &[]),
    (Permission::ReadMemory, &[]),
    (Permission::WriteMemory, &[]),
    (Permission::ReadArtifacts, &[]),
    (Permission::WriteArtifacts, &[]),
    (
        Permission::ExternalHttp,
        &[
            "net::get",
            "net::post",
            "net::put",
            "net::patch",
            "net::delete",
            "net::head",
            "net::request",
            "net::get_all",
            "net::session_for",
            "net::wan_session",
            "images::resolve",
        ],
    ),
    (Permission::WriteExternal, &[]),
    (Permission::DelegateExternal, &[]),
    (Permission::StartAgents, &["agents::start"]),
    (Permission::RunCommands, &["command::run"]),
    (Permission::UseSecrets, &["credentials::get", "credentials::accounts", "credentials::account"]),
    (Permission::Spend, &[]),
];

/// The host functions that need a granted folder instead of a permission.
pub const GUARDED_BY_FOLDER: &[&str] = &["files::root"];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn words_are_unique_and_read_back() {
        let words: BTreeSet<_> = Permission::ALL.iter().map(|p| p.as_str()).collect();
        assert_eq!(words.len(), Permission::ALL.len());
        assert_eq!(words.len(), 25);
        for p in Permission::ALL {
            assert_eq!(Permission::parse(p.as_str()), Some(*p));
        }
    }

    #[test]
    fn every_permission_stands_once_in_the_table_of_guarded_functions() {
        let keys: Vec<_> = GUARDED.iter().map(|(p, _)| *p).collect();
        assert_eq!(keys, Permission::ALL);
        let functions: Vec<_> = GUARDED.iter().flat_map(|(_, f)| f.iter()).chain(GUARDED_BY_FOLDER).collect();
        assert_eq!(functions.iter().collect::<BTreeSet<_>>().len(), functions.len(), "a function has one guard");
        assert!(functions.iter().all(|f| f.split_once("::").is_some()));
    }

    #[test]
    fn an_unknown_word_names_its_neighbour() {
        for (word, near) in [
            ("external_http", "EXTERNAL_HTTP"),
            ("READ-NOTES", "READ_NOTES"),
            ("HTTP", "EXTERNAL_HTTP"),
            ("RUN_COMMAND", "RUN_COMMANDS"),
        ] {
            let e = Permission::read(word).unwrap_err();
            assert!(e.hint_text().unwrap().contains(near), "{word}: {e}");
        }
        assert!(Permission::read("FLY").unwrap_err().hint_text().unwrap().contains("SPEND"));
    }
}
