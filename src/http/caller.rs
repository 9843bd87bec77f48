//! Who was let in, as handlers see it. It decides nothing: that is the gate's.

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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum By {
    /// A token in `Authorization`: a program.
    Token,
}

impl Caller {
    /// The caller as the dispatcher and the journal know it, in no chat.
    pub(super) fn who(&self) -> Who {
        Who { caller: self.name.clone(), ..Who::owner("http") }
    }
}
