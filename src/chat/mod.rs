//! Layer 3: chats. What is said is kept in the store, what waits has its turn, a model answers and calls tools. It knows no door.

mod chats;
pub mod history;
pub mod inbox;
pub mod live;
pub mod pick;
pub mod prompt;
pub mod row;
pub mod settings;
pub mod turn;

pub use chats::{Chats, Context, Format, Found, History, Queued, Say, Sent, Summary, Upload};
pub use settings::Settings;
