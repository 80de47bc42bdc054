//! Runs a command in a sandbox on the current directory, as `cofferdam run` would.
//!
//! ```sh
//! cargo run -p cofferdam --example run -- python3 -c 'print(6 * 7)'
//! ```

use cofferdam::{Profile, Result, Sandbox, current_caller};
use std::process::ExitCode;
use std::time::Duration;

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let mut argv: Vec<_> = std::env::args_os().skip(1).collect();
    if argv.is_empty() {
        argv = ["sh", "-c", "id -un; pwd; ls -A ~"].map(Into::into).to_vec();
    }
    match run(argv).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("failed to {}", error.chain());
            error.hint.iter().for_each(|hint| eprintln!("{hint}"));
            ExitCode::from(125)
        }
    }
}

async fn run(argv: Vec<std::ffi::OsString>) -> Result<ExitCode> {
    let sandbox = Sandbox::builder()
        .workspace(".")
        .profile(Profile::NoNetwork)
        .caller(current_caller())
        .memory_bytes(512 << 20)
        .on_unavailable(cofferdam::OnUnavailable::Degrade)
        .create()
        .await?;
    for reason in &sandbox.enforced().reasons {
        eprintln!("not fully enforced: {reason}");
    }
    let output = sandbox.exec(argv).timeout(Duration::from_secs(60)).await?;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    sandbox.destroy().await?;
    Ok(ExitCode::from(u8::try_from(output.ending.exit_code()).unwrap_or(1)))
}
