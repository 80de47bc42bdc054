//! A runner that spawns processes itself, with each command in a sandbox of its own.
//!
//! ```sh
//! cargo build && cargo run -p cofferdam --example wrap
//! ```

use cofferdam::process_sandbox::{
    CofferdamSandbox, ExecSandboxContext, OnUnavailable, SandboxPolicy, SandboxProfile, attach,
};
use cofferdam::{Error, ErrorKind, Result, current_caller};
use std::process::Command;
use std::sync::Arc;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut sandbox = CofferdamSandbox::new().caller(current_caller());
    // An example lies one directory below the command that the same build made.
    let beside =
        std::env::current_exe().ok().and_then(|own| Some(own.parent()?.parent()?.to_owned()));
    if let Some(program) = beside.map(|place| place.join("cofferdam")).filter(|path| path.exists())
    {
        sandbox = sandbox.program(program);
    }
    let workspace = std::env::temp_dir().join("cofferdam-example");
    let context = ExecSandboxContext {
        workspace_path: workspace,
        cwd: None,
        profile: SandboxProfile::NoNetwork,
        egress: Vec::new(),
    };
    let policy = SandboxPolicy {
        profile: SandboxProfile::NoNetwork,
        egress: Vec::new(),
        on_unavailable: OnUnavailable::Refuse,
    };
    let attached = attach(Arc::new(sandbox), &policy, &context).await?;
    println!("enforced: {:?}", attached.enforcement);
    let Some(sandbox) = attached.sandbox else { return Ok(()) };
    let wrapped =
        sandbox.wrap(&["sh", "-c", "id; date > when; cat when"].map(str::to_owned), &context)?;
    println!("{}", wrapped.argv.join(" "));
    if let Some((program, arguments)) = wrapped.argv.split_first() {
        let status = Command::new(program).args(arguments).env_clear().envs(&wrapped.env).status();
        let status = status.map_err(|e| Error::new(ErrorKind::Io, "spawn it").source(e))?;
        println!("{status}");
    }
    sandbox.shutdown().await
}
