//! Plugins: which there are, what their manifests say, how they load, what changed, what they were before.
//! Only `load` compiles scripts; to all others a script is text.

pub mod change;
pub mod consent;
pub mod discover;
pub mod edit;
pub mod install;
pub mod load;
pub mod manifest;
pub mod package;
mod place;
pub mod preview;
pub mod read;
pub mod removal;
pub mod scaffold;
pub mod set;
pub mod source;
pub mod status;
pub mod stock;
mod swap;
pub mod switches;
pub mod tune;
pub mod watch;
