//! One binary for all integration tests: linking is what costs. Each module is one subject.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, missing_docs)]

mod api;
mod api_client;
mod api_document;
mod api_events;
mod api_guide;
mod api_install;
mod api_journal;
mod api_models;
mod api_plugins;
mod api_source;
mod browser;
mod chat_model;
mod cli;
mod command;
mod contain;
mod crash;
mod credentials;
mod credentials_cli;
mod golden;
mod guide;
mod host_api;
mod host_rules;
mod house;
mod http;
mod install_cli;
mod journal;
#[path = "../../benches/kept.rs"]
mod kept;
#[cfg(all(feature = "keyring", target_os = "linux"))]
mod keyring;
mod lasting;
mod live;
mod mcp;
mod models;
mod net_lanes;
mod own;
mod pages;
mod pictures;
mod preview;
mod proxied;
mod recorded;
mod reference;
mod reload;
mod routes;
mod rows;
mod servers;
mod shell;
mod shown;
mod shut;
mod signed;
mod stock;
mod trial;
mod turns;
mod web;
mod workshop;
mod workshop_bench;
mod workshop_doors;
mod workshop_keys;
mod workshop_looks;
mod world;

#[global_allocator]
static ALLOC: lapidary::CountingAllocator = lapidary::CountingAllocator;
