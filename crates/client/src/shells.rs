//! Shells that keep directory and variables, by requests.

use crate::Sandbox;
use cofferdam_core::Result;
use cofferdam_session::ShellReport;
use cofferdam_session::objects::{ShellCheckWish, ShellList, ShellRan, ShellRunWish};
use reqwest::Method;

impl Sandbox {
    /// Its shells, the latest of each name.
    pub async fn shells(&self) -> Result<Vec<ShellReport>> {
        Ok(self.ask(Method::GET, &["shells"]).read::<ShellList>().await?.shells)
    }

    /// Opens the shell of this name, or finds it open.
    pub async fn open_shell(&self, shell: &str) -> Result<ShellReport> {
        self.ask(Method::PUT, &["shells", shell]).read().await
    }

    /// How a shell stands.
    pub async fn shell(&self, shell: &str) -> Result<ShellReport> {
        self.ask(Method::GET, &["shells", shell]).read().await
    }

    /// Runs a command in a shell.
    pub async fn run_in_shell(&self, shell: &str, wish: &ShellRunWish) -> Result<ShellRan> {
        self.ask(Method::POST, &["shells", shell, "run"]).object(wish).read().await
    }

    /// Asks again for a command of a shell that takes longer.
    pub async fn check_in_shell(&self, shell: &str, wish: &ShellCheckWish) -> Result<ShellRan> {
        self.ask(Method::POST, &["shells", shell, "check"]).object(wish).read().await
    }

    /// Interrupts what runs in a shell, as by Ctrl-C.
    pub async fn interrupt_shell(&self, shell: &str) -> Result<()> {
        self.ask(Method::POST, &["shells", shell, "interrupt"]).done().await
    }

    /// Kills a shell with all that it runs.
    pub async fn kill_shell(&self, shell: &str) -> Result<()> {
        self.ask(Method::DELETE, &["shells", shell]).done().await
    }
}
