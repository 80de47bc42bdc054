//! Reads a command's output as fast as the kernel gives it, from a pipe that passes through nobody.
//!
//! ```sh
//! cargo run --release -p cofferdam --example stream
//! ```

use cofferdam::{Result, Sandbox};
use std::fs::File;
use std::io::Read;
use std::time::Instant;

#[tokio::main]
async fn main() -> Result<()> {
    let sandbox = Sandbox::builder().private_workspace().create().await?;
    let begin = Instant::now();
    let mut command = sandbox.exec(["head", "-c", "1G", "/dev/zero"]).piped().await?;
    let stdout = command.stdout.take().map(File::from);
    let reading = tokio::task::spawn_blocking(move || {
        let (mut buffer, mut sum) = (vec![0; 1 << 20], 0);
        if let Some(mut stdout) = stdout {
            while let Ok(count @ 1..) = stdout.read(&mut buffer) {
                sum += count;
            }
        }
        sum
    });
    let sum = reading.await.unwrap_or_default();
    let ending = command.wait().await?;
    println!("{sum} bytes in {:?}, then {ending:?}", begin.elapsed());
    sandbox.destroy().await
}
