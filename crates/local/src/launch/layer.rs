//! Another layer in the place of the one that a sandbox has mounted, by a process that joins it.

use super::{Born, Owners, Standing, join, not_cloned, not_prepared, outside_ids};
use crate::launch::io_error;
use crate::state::retry;
use crate::sys::{self, Cloned};
use crate::whose::Whose;
use cofferdam_core::{Error, ErrorKind, Result};
use cofferdam_guestd::apply::{open_layers, prepare_layer, renew_layer};
use cofferdam_wire::plan::{Access, Landlock, Overlay, Plan};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::pipe::PipeFlags;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::sync::PoisonError;

/// A layer that is mounted in a sandbox, and what goes with it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renewal<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) overlay: &'a Overlay,
    /// What is pinned above it.
    pub(crate) pins: &'a [(&'a str, Access)],
    /// Where else it is shown.
    pub(crate) shown_at: &'a [&'a str],
    /// The rules of its commands.
    pub(crate) rules: Option<(BorrowedFd<'a>, &'a Landlock)>,
}

impl Born {
    /// Mounts the layer anew as it is on disk now, where nobody uses the one that was. Answers the process
    /// in which that one ends meanwhile.
    ///
    /// The caller must have one thread only.
    pub(crate) fn renew_layer(&self, renewal: Renewal<'_>) -> Result<OwnedFd> {
        let namespaces = self.standing();
        let failed = || Error::new(ErrorKind::SetupFailed, "the layer could not be mounted anew");
        let namespaces = namespaces.as_ref().ok_or_else(failed)?;
        let opened = self.opened_by_us(renewal)?;
        let (done, told) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)
            .map_err(|errno| io_error("make a pipe", errno))?;
        match sys::clone_process(0, None).map_err(not_cloned)? {
            Cloned::Child => {
                if let Some(old) = renew(namespaces, renewal, opened) {
                    // ORDER: nothing else is kept, above all no lock, and before the word.
                    let _ = rustix::stdio::dup2_stdin(&old);
                    let _ = rustix::stdio::dup2_stdout(&told);
                    let _ = sys::close_all_from(3);
                    let _ = rustix::io::write(rustix::stdio::stdout(), b"1");
                }
                // What is kept ends here, which may take as long as the disk does.
                sys::exit_now(0)
            }
            Cloned::Parent { pidfd, .. } => {
                drop(told);
                let mut word = [0; 1];
                match retry(|| rustix::io::read(&done, &mut word)) {
                    Ok(1) => Ok(pidfd),
                    Ok(_) | Err(_) => {
                        reap(&pidfd);
                        Err(failed())
                    }
                }
            }
        }
    }

    /// The layers with ids mapped, which the host's root alone can have; `None` for anybody else.
    fn opened_by_us(&self, renewal: Renewal<'_>) -> Result<Option<Vec<OwnedFd>>> {
        if !rustix::process::geteuid().is_root() {
            return Ok(None);
        }
        let Renewal { plan, overlay, .. } = renewal;
        let mut kept = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        let namespaces = std::mem::take(&mut *kept);
        let mut owners = Owners { plan, user: outside_ids(plan), namespaces };
        let mut waiters = Vec::new();
        let opened = overlay.sources().map(|layer| {
            let whose = Whose::of_layer(plan, overlay, layer.owner);
            let owner = owners.namespace(whose, &mut waiters)?;
            prepare_layer(layer, owner).map_err(|failure| not_prepared(&failure))
        });
        let opened = opened.collect::<Result<_>>().map(Some);
        *kept = owners.namespaces;
        opened
    }
}

/// Waits for the end of such a process.
pub(crate) fn reap(process: &OwnedFd) {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    let _ = retry(|| waitid(WaitId::PidFd(process.as_fd()), WaitIdOptions::EXITED));
}

fn renew(
    namespaces: &Standing,
    renewal: Renewal<'_>,
    opened: Option<Vec<OwnedFd>>,
) -> Option<OwnedFd> {
    let opened = if let Some(opened) = opened {
        join(namespaces).ok()?;
        opened
    } else {
        let enter = |fd: &OwnedFd, kind| move_into_link_name_space(fd.as_fd(), Some(kind));
        enter(&namespaces.user, LinkNameSpaceType::User).ok()?;
        // ORDER: while the host's tree is still to be seen.
        let opened = open_layers(renewal.overlay).ok()?;
        enter(&namespaces.mount, LinkNameSpaceType::Mount).ok()?;
        opened
    };
    let Renewal { plan, overlay, pins, shown_at, rules } = renewal;
    renew_layer(plan, (overlay, &opened), (pins, shown_at), rules).ok()
}
