//! Who was let in, as handlers see it. It decides nothing: that is the gate's.

use super::seal;
use super::session::Session;
use super::tokens::Token;
use crate::base::error::{Error, Result};
use crate::tool::dispatch::Who;
use std::sync::Arc;

/// Who was let in. It is an extension of every request that reaches a closed route: `Extension<Caller>` in a handler.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// `owner` for a person and for a program with the owner's own token, else the name of the token.
    pub(super) name: Arc<str>,
    /// What let it in.
    pub(super) by: By,
}

/// What lets somebody in.
#[derive(Debug, Clone)]
pub(super) enum By {
    /// A person's session, by its cookie.
    Session(Arc<Live>),
    /// The owner's own token.
    Owner,
    /// A named token.
    Token(Arc<Token>),
}

/// A session with its secret.
pub(super) struct Live {
    pub(super) session: Session,
    /// What the cookie holds.
    pub(super) secret: String,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live").field("session", &self.session).finish_non_exhaustive()
    }
}

impl Live {
    /// What a page of this session sends with every write.
    pub(super) fn csrf(&self) -> String {
        seal::csrf(&self.secret)
    }

    /// Whether that was sent.
    pub(super) fn is_csrf(&self, given: &str) -> bool {
        seal::is_csrf(&self.secret, given)
    }
}

impl Caller {
    /// The caller as the dispatcher and the journal know it, in no chat.
    pub(super) fn who(&self) -> Who {
        Who { caller: self.name.clone(), ..Who::owner("http") }
    }

    /// The session of a person; none for a program.
    pub(super) fn session(&self) -> Option<&Live> {
        match &self.by {
            By::Session(live) => Some(live),
            By::Owner | By::Token(_) => None,
        }
    }

    /// Whether the caller may say who else is let in. A token that made others could not be revoked.
    ///
    /// # Errors
    /// `permission_denied`.
    pub(super) fn may_give_keys(&self) -> Result<()> {
        match self.by {
            By::Session(_) | By::Owner => Ok(()),
            By::Token(_) => Err(Error::denied("a named token may not make or revoke tokens, or set the password")
                .hint("sign in, or use the owner's own token")),
        }
    }
}
