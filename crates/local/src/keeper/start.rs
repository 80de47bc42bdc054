//! A keeper's life, from its order to its end.

use super::end::{Left, first_paths, say_farewell};
use super::journal::Journal;
use super::keep::Keeper;
use super::order::{Answer, Order};
use super::place::Place;
use super::renew;
use crate::assemble::{Assembly, Stay, assemble_and_clone};
use crate::backend::LocalBackend;
use crate::backend::{keep_records_out, receive};
use crate::blank::{Blank, let_streams_lead_nowhere};
use crate::cow;
use crate::gate::{self, GateProgram, GatedSecrets, Gatehouse};
use crate::image;
use crate::launch::{Born, io_error, launch_from, not_set_up};
use crate::oneshot::await_hello;
use crate::state::{StateDirectory, retry};
use crate::sys::{self, Cloned};
use crate::verify::verify;
use cofferdam_core::secret::SecretValue;
use cofferdam_core::{Error, ErrorKind, ErrorReport, Happened, Result, SandboxRecord};
use cofferdam_guestd::line::Line;
use cofferdam_wire::message::{GENERATION, Hello};
use rustix::fd::OwnedFd;
use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::cell::RefCell;
use std::io::{Read, Write};
use std::process::ExitCode;
use std::time::Duration;

/// How many connections wait to be taken. Clients that find no place try again.
const BACKLOG: i32 = 1024;
/// How often, and with which pause, the last entries are tried where the disk is full.
const LAST_TRIES: u32 = 20;
const LAST_PAUSE: Duration = Duration::from_millis(100);
/// How much chance is in the name by which a client means a sandbox.
const SECRET_BYTES: usize = 16;

/// The keeper's own life. The order comes as standard input, the answer goes to standard output.
///
/// The process that was started ends at once; its copy, which nobody waits for, is the keeper.
pub fn serve() -> ExitCode {
    // A caller's program may have left descriptors open for everybody it starts.
    if sys::close_all_from(3).is_err() {
        return ExitCode::FAILURE;
    }
    match sys::clone_process(0, None) {
        Ok(Cloned::Child) => {}
        Ok(Cloned::Parent { .. }) => return ExitCode::SUCCESS,
        Err(_) => return ExitCode::FAILURE,
    }
    let _ = rustix::process::setsid();
    // ORDER: before the order is read, so that no memory of the sandbox ever held it; and before the mask
    // of the keeper's own files, as commands have the caller's.
    let Ok(blank) = Blank::start() else { return ExitCode::FAILURE };
    rustix::process::umask(Mode::from_raw_mode(0o077));
    // The caller's limit of a file's size is one of commands, and not of what all of them write out.
    raise_file_limit();
    crate::write_no_core();
    crate::launcher::allow_descriptors();
    match take_order() {
        Ok(taken) => {
            keep(taken, blank);
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

fn raise_file_limit() {
    sys::outlive_file_limit();
    let mut limit = getrlimit(Resource::Fsize);
    limit.current = limit.maximum;
    // Beyond one that cannot be raised, what finds no room is dropped and counted.
    let _ = setrlimit(Resource::Fsize, limit);
}

/// What a keeper is started with.
struct Taken {
    order: Order,
    /// Whom to answer.
    answer: std::fs::File,
    /// The program of the gate, if there is to be one.
    gate: Option<GateProgram>,
    /// What that gate puts in.
    secrets: Option<GatedSecrets>,
}

fn take_order() -> Result<Taken> {
    let failed = |errno| io_error("take the order", errno);
    let mut text = Vec::new();
    std::io::stdin()
        .read_to_end(&mut text)
        .map_err(|error| Error::new(ErrorKind::Io, "read the order").source(error))?;
    let mut order: Order = serde_json::from_slice(&text)
        .map_err(|error| Error::new(ErrorKind::Protocol, "understand the order").source(error))?;
    let answer = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3).map_err(failed)?;
    let gate = order.brings_gate.then(|| GateProgram::from_descriptor(rustix::stdio::stderr()));
    let gate = gate.transpose()?;
    let secrets = order.secrets.take().map(|(grants, trusted)| {
        Ok::<_, Error>(GatedSecrets::handed(grants, trusted, take_vault(&answer)?))
    });
    let secrets = secrets.transpose()?;
    let_streams_lead_nowhere().map_err(failed)?;
    rustix::process::chdir("/").map_err(failed)?;
    Ok(Taken { order, answer: answer.into(), gate, secrets })
}

/// The file with the values, which was sent before this process was there.
fn take_vault(socket: &OwnedFd) -> Result<OwnedFd> {
    let mut came = Vec::new();
    let mut byte = [0; 1];
    retry(|| receive(socket, &mut byte, &mut came))
        .map_err(|errno| io_error("take the secrets", errno))?;
    came.pop().ok_or_else(|| Error::new(ErrorKind::Protocol, "the secrets did not arrive"))
}

fn keep(taken: Taken, blank: Blank) {
    let Taken { order, mut answer, gate, secrets } = taken;
    let begun = StateDirectory::open(&order.state()).and_then(|state| {
        let (place, journal) = Place::make(&state, &order.id)?;
        Ok((state, place, Journal::open(journal)?))
    });
    let (state, place, mut journal) = match begun {
        Ok(begun) => begun,
        Err(error) => return tell(&mut answer, &Answer::NotMade(ErrorReport::from(&error).error)),
    };
    let made = make((&order, gate, secrets.as_ref()), &state, &place, blank);
    let (made, listener) = match made.and_then(|made| Ok((made, listen(&place)?))) {
        Ok(made) => made,
        Err(error) => {
            let body = ErrorReport::from(&error).error;
            // Whoever asked may be gone: what was written stays until it is forgotten.
            journal.add(Happened::NotProvisioned(body.clone()));
            if try_tell(&mut answer, &Answer::NotMade(body)) {
                let _ = place.forget(&state);
            }
            return;
        }
    };
    let deadlines = { order }.deadlines;
    let Made { assembly, born, line, record, gate, rules, values } = made;
    journal.add(Happened::Provisioned(Box::new(record.clone())));
    let kept = (&assembly, &born, line);
    let keeper =
        Keeper::new((&place, journal), kept, record.clone(), (listener, gate, rules), deadlines);
    let keeper = keeper.and_then(|mut keeper| keeper.mask_from_now(values).map(|()| keeper));
    let left = match keeper {
        Ok(mut keeper) => {
            tell(&mut answer, &Answer::Made(Box::new(record)));
            drop(answer);
            let reason = keeper.keep();
            (keeper.leave(reason), reason)
        }
        Err(error) => {
            drop(born);
            drop(assembly);
            tell(&mut answer, &Answer::NotMade(ErrorReport::from(&error).error));
            let _ = place.forget(&state);
            return;
        }
    };
    let (Left { mut journal, mut conns }, reason) = left;
    drop(born);
    let farewell = assembly.dissolve();
    for error in farewell.leftovers {
        journal.add(Happened::Leftover(error.chain()));
    }
    if !farewell.new_control_files.is_empty() {
        journal.add(Happened::ControlFiles(first_paths(farewell.new_control_files)));
    }
    journal.add(Happened::Destroyed(reason));
    place.remove_socket();
    finish(&mut journal);
    say_farewell(&mut conns);
}

/// Writes the last entries down, though the disk may be full for a while.
fn finish(journal: &mut Journal) {
    for _ in 0..LAST_TRIES {
        if journal.is_whole() {
            break;
        }
        std::thread::sleep(LAST_PAUSE);
        journal.flush();
    }
}

/// A sandbox that stands.
struct Made {
    assembly: Assembly,
    born: Born,
    line: Line,
    record: SandboxRecord,
    gate: Option<Gatehouse>,
    /// The rules of its commands, where they can come to be about another layer.
    rules: Option<OwnedFd>,
    /// What is masked from the beginning.
    values: Vec<SecretValue>,
}

/// Makes the sandbox, as any other is made but for whose copy its first process is, and confirms
/// that it is what was planned.
fn make(
    (order, program, secrets): (&Order, Option<GateProgram>, Option<&GatedSecrets>),
    state: &StateDirectory,
    place: &Place,
    blank: Blank,
) -> Result<Made> {
    let blank = RefCell::new(blank);
    let spec = order.spec()?;
    let (home, kept) = (order.home(), order.kept());
    keep_records_out(&spec, state.path())?;
    // ORDER: before the sandbox can see the workspace.
    cow::layer::ensure(&spec, kept.as_deref(), state)?;
    image::ensure(&spec, kept.as_deref())?;
    let clone = |assembly: &Assembly| {
        let mut blank = blank.borrow_mut();
        let born = launch_from(&mut blank, &assembly.planned.plan, assembly.groups()?)?;
        place.note_first(born.pid)?;
        Ok(born)
    };
    if secrets.is_none() {
        gate::refuse_secrets(&spec)?;
    }
    let trusted = secrets.map(GatedSecrets::trusted);
    let stay = Stay::Kept { home: home.as_deref(), kept: kept.as_deref(), trusted };
    let (mut assembly, mut born) = assemble_and_clone((&spec, stay), state, &order.id, clone)?;
    let lost = || Error::new(ErrorKind::SetupFailed, "the sandbox's line is lost: it has none");
    let mut line = Line::new(born.take_line().ok_or_else(lost)?);
    let (hello, mut came) = await_hello(&mut line)?.map_err(|failure| not_set_up(&failure))?;
    understands_us(&hello)?;
    verify(born.pid, &assembly.planned)?;
    assembly.confirm();
    let record = SandboxRecord {
        id: order.id.clone(),
        backend: LocalBackend::NAME.to_owned(),
        external_id: secret_id()?,
        workspace: assembly.planned.workspace.clone(),
        enforced: assembly.enforced.clone(),
        layer: assembly.layer.clone(),
    };
    // ORDER: the guest hands them over last.
    let rules = renew::has_rules(&assembly.planned.plan).then(|| came.pop()).flatten();
    let gate = gatehouse(order, (program, secrets), place, (&assembly, came))?;
    // ORDER: the sandbox stands, and has no copy of what is read here.
    let values = secrets.map_or(Ok(Vec::new()), GatedSecrets::values)?;
    Ok(Made { assembly, born, line, record, gate, rules, values })
}

/// Who holds the sockets of the way out, if there is one.
fn gatehouse(
    order: &Order,
    (program, secrets): (Option<GateProgram>, Option<&GatedSecrets>),
    place: &Place,
    (assembly, came): (&Assembly, Vec<OwnedFd>),
) -> Result<Option<Gatehouse>> {
    let Some(way_out) = &assembly.planned.way_out else { return Ok(None) };
    let sockets = gate::Sockets::new(&way_out.sockets(), came)?;
    let program = program.ok_or_else(gate::no_program)?;
    let (policy, log) = (way_out.policy.clone(), place.egress_log()?);
    let secrets = secrets.map(GatedSecrets::for_gate).transpose()?;
    Ok(Some(Gatehouse::new(&order.id, program, policy, sockets, log).with_secrets(secrets)))
}

/// Fails for a guest that is older than what a keeper asks of it. Both are one program, so that there
/// is one only where somebody mixed two.
fn understands_us(hello: &Hello) -> Result<()> {
    if hello.generation >= GENERATION {
        return Ok(());
    }
    let theirs = hello.generation;
    let what = format!("the sandbox speaks generation {theirs} of the line, not {GENERATION}");
    Err(Error::new(ErrorKind::SetupFailed, what))
}

/// A name of this very sandbox that nobody guesses.
///
/// Without a mount namespace commands can reach our socket, as the user that we are. They cannot
/// read the journal, so whoever names the sandbox is one who could.
fn secret_id() -> Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    let filled = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|errno| io_error("get random bytes", errno))?;
    if filled < SECRET_BYTES {
        return Err(Error::new(ErrorKind::Io, "get random bytes"));
    }
    Ok(format!("keeper-{:032x}", u128::from_le_bytes(bytes)))
}

fn listen(place: &Place) -> Result<OwnedFd> {
    let failed = |errno| io_error("listen for clients", errno);
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let listener = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
        .map_err(failed)?;
    let address = SocketAddrUnix::new(place.socket()).map_err(failed)?;
    rustix::net::bind(&listener, &address).map_err(failed)?;
    rustix::net::listen(&listener, BACKLOG).map_err(failed)?;
    Ok(listener)
}

fn tell(answer: &mut std::fs::File, what: &Answer) {
    // Nobody may be there to read it; the sandbox can be found all the same.
    let _ = try_tell(answer, what);
}

fn try_tell(answer: &mut std::fs::File, what: &Answer) -> bool {
    serde_json::to_vec(what).is_ok_and(|text| answer.write_all(&text).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_wire::message::Confirmed;

    #[test]
    fn a_guest_that_cannot_be_asked_for_all_that_a_keeper_asks_is_refused() {
        let hello = |generation| Hello {
            generation,
            version: "0".to_owned(),
            confirmed: Confirmed::default(),
        };
        assert!(understands_us(&hello(GENERATION)).is_ok());
        assert!(understands_us(&hello(GENERATION + 1)).is_ok());
        let refused = understands_us(&hello(1)).unwrap_err();
        assert_eq!(refused.kind, ErrorKind::SetupFailed);
    }
}
