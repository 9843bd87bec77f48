//! The program: installs the allocator that counts what scripts hold, and hands over to the command line.

#[global_allocator]
static ALLOCATOR: lapidary::CountingAllocator = lapidary::CountingAllocator;

fn main() -> std::process::ExitCode {
    lapidary::cli::main()
}
