//! Layer 2: the script API. One file is one Rhai module, thin over `service/`; [`all`] is THE list.
//! It knows the running call (`script::ctx`) and the services, never plugins, tools or doors.

pub mod argument;
pub mod attachments;
pub mod base64;
pub mod cache;
pub mod callback;
pub mod chat_state;
pub mod command;
pub mod credentials;
pub mod db;
pub mod files;
pub mod hash;
pub mod html;
pub mod images;
pub mod json;
pub mod log;
pub mod math;
pub mod net;
pub mod pdf;
pub mod progress;
pub mod random;
pub mod regex;
pub mod routes;
pub mod scopes;
pub mod settings;
pub mod state;
pub mod text;
pub mod time;
pub mod tools;
pub mod uuid;

use crate::script::module::HostModule;

/// Every host module, in alphabetical order.
#[must_use]
pub fn all() -> Vec<HostModule> {
    vec![
        attachments::module(),
        base64::module(),
        cache::module(),
        chat_state::module(),
        command::module(),
        credentials::module(),
        db::module(),
        files::module(),
        hash::module(),
        html::module(),
        images::module(),
        json::module(),
        log::module(),
        math::module(),
        net::module(),
        pdf::module(),
        progress::module(),
        random::module(),
        regex::module(),
        routes::module(),
        scopes::module(),
        settings::module(),
        state::module(),
        text::module(),
        time::module(),
        tools::module(),
        uuid::module(),
    ]
}
