//! Rebuilds the program when a shipped script or module, or a file of the page, comes, changes or goes, for they are embedded
//! as they are; and asks the linker for a small table of relocations where the system can read one.

#![expect(
    clippy::disallowed_methods,
    reason = "what is to be built is told by the environment, and by the system itself"
)]

use std::process::Command;

fn main() {
    for path in ["build.rs", "scripts", "stdlib", "src/http/page"] {
        println!("cargo::rerun-if-changed={path}");
    }
    // Every start reads the whole table, and its 1.6 MiB stay resident.
    let var = |name: &str| std::env::var(name).unwrap_or_default();
    let is_here = var("HOST") == var("TARGET");
    if is_here && var("CARGO_CFG_TARGET_OS") == "linux" && var("CARGO_CFG_TARGET_ENV") == "gnu" && reads_small_form() {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Whether this system's glibc is new enough, which is 2.36; one that does not say is taken for old.
fn reads_small_form() -> bool {
    let Ok(said) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let said = String::from_utf8_lossy(&said.stdout);
    let mut numbers = said.split_whitespace().next_back().unwrap_or_default().split('.').map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (2, 36),
        _ => false,
    }
}
