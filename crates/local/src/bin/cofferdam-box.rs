//! The static program that a library keeps beside it to make sandboxes from. Its one argument is
//! none: requests come as standard input, a socket. See `cofferdam_local::launcher`.

fn main() -> std::process::ExitCode {
    cofferdam_local::launcher::serve()
}
