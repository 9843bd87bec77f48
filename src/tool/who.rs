//! Who a call runs for, and from where. It decides nothing: that is the gate's.

use super::gate;
use crate::service::scopes::ScopeValues;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who calls, and from where.
#[derive(Clone)]
pub struct Who {
    /// Name of the caller: `owner`, an MCP client's name, a tool.
    pub caller: Arc<str>,
    /// The door: `cli`, `mcp`, `http`, `library`, `tool`, `test`.
    pub door: &'static str,
    /// The chat the call belongs to.
    pub chat: Option<Arc<str>>,
    /// Whether that chat is private.
    pub private: bool,
    /// Values of its scopes; the registered defaults where there is no chat that sets them.
    pub scopes: Option<Arc<ScopeValues>>,
    /// The names that were offered, where only those may be called.
    pub allowed: Option<Arc<BTreeSet<String>>>,
}

impl Who {
    /// The owner of the installation, calling through `door`, in no chat.
    #[must_use]
    pub fn owner(door: &'static str) -> Who {
        Who { caller: "owner".into(), door, chat: None, private: false, scopes: None, allowed: None }
    }

    /// Whoever embeds the library: the owner, in no chat.
    #[must_use]
    pub fn anyone() -> Who {
        Who::owner("library")
    }

    /// Who reads what this caller is told: at the command line a person, elsewhere a model or a program.
    pub(super) fn reader(&self) -> gate::Reader {
        if self.door == "cli" { gate::Reader::Person } else { gate::Reader::Model }
    }

    /// The same caller, in a chat.
    #[must_use]
    pub fn in_chat(mut self, chat: &str) -> Who {
        self.chat = Some(chat.into());
        self
    }
}
