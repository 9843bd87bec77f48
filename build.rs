//! Rebuilds the program when a shipped script or module comes, changes or goes: they are embedded as they are.

fn main() {
    println!("cargo::rerun-if-changed=scripts");
    println!("cargo::rerun-if-changed=stdlib");
}
