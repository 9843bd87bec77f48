//! `definitions`: what an editor needs to complete and check calls of host modules.

use super::context::{Context, Done, Verdict};
use super::print;
use crate::base::error::io;
use crate::base::file;
use crate::docs;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Write definition files of the host modules, for editors that know Rhai
#[derive(Args)]
pub struct Definitions {
    /// Where to [default: user/definitions of the root]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Definitions {
    pub(super) fn run(&self, cx: &Context) -> Done {
        let out = match &self.out {
            Some(out) => out.clone(),
            None => cx.workshop()?.user().join("definitions"),
        };
        std::fs::create_dir_all(&out).map_err(|e| io(format_args!("cannot make `{}`", out.display()), &e))?;
        let files = docs::definitions(&crate::host::all());
        for (name, text) in &files {
            file::write_atomic(&out.join(name), text.as_bytes())?;
        }
        if cx.json {
            print::json(&json!({ "folder": out, "files": files.iter().map(|(name, _)| name).collect::<Vec<_>>() }));
        } else {
            print::line(format_args!("{} in {}", print::count(files.len(), "definition file"), out.display()));
        }
        Ok(Verdict::Good)
    }
}
