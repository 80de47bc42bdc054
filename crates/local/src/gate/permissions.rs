//! What waits at the gate of a sandbox to be allowed, as far as its holder was told.

use cofferdam_core::{
    Error, ErrorKind, Happened, Permission, Result, SandboxId, Settlement, WaitingConnection,
};
use std::collections::VecDeque;

/// How many are remembered that wait no more.
const SETTLED: usize = 64;
/// How many may wait by what a gate says.
const WAITING: usize = 1024;
/// How many are written down of one sandbox. Further ones wait as well, and can be answered: what is
/// inside can make as many as it likes, and the journal is not for it to fill.
const WRITTEN: usize = 1000;

/// What waits, and what did so lately.
#[derive(Debug, Default)]
pub(super) struct Permissions {
    waiting: VecDeque<Kept>,
    settled: VecDeque<Permission>,
    last: u64,
    written: usize,
    news: Vec<Happened>,
}

#[derive(Debug)]
struct Kept {
    what: WaitingConnection,
    is_written: bool,
}

impl Permissions {
    /// The gate has ended, and with it all that waited.
    pub(super) fn end(&mut self) {
        let numbers: Vec<u64> = self.waiting.iter().map(|kept| kept.what.number).collect();
        numbers.into_iter().for_each(|number| self.settle(number, Settlement::Gone));
    }

    /// The last number that was given.
    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// What is new, to be written down.
    pub(super) fn news(&mut self) -> Vec<Happened> {
        std::mem::take(&mut self.news)
    }

    /// Those that wait, and those before them that did lately.
    pub(super) fn all(&self) -> Vec<Permission> {
        let waiting = self.waiting.iter();
        let waiting = waiting.map(|kept| Permission { waiting: kept.what.clone(), settled: None });
        let mut all: Vec<Permission> = self.settled.iter().cloned().chain(waiting).collect();
        all.sort_by_key(|one| one.waiting.number);
        all
    }

    /// Fails unless one of this number waits.
    pub(super) fn check_waits(&self, sandbox: &SandboxId, number: u64) -> Result<()> {
        if self.waiting.iter().any(|kept| kept.what.number == number) {
            return Ok(());
        }
        if number > self.last || number == 0 {
            let what = format!("nothing ever waited as {sandbox}.{number}");
            return Err(Error::new(ErrorKind::NotFound, what)
                .hint("List what waits with `cofferdam approve --list`."));
        }
        let settled = self.settled.iter().find(|one| one.waiting.number == number);
        let how = match settled.and_then(|one| one.settled) {
            Some(Settlement::Approved) => "was approved already",
            Some(Settlement::Allowed) => "is allowed already by a change of the rules",
            Some(Settlement::Denied) => "was denied already",
            Some(Settlement::TimedOut) => "was not answered in time",
            Some(Settlement::Gone) | None => "waits no more",
        };
        Err(Error::new(ErrorKind::Conflict, format!("{sandbox}.{number} {how}")).hint(
            "What comes next is ruled by `cofferdam network allow` and `cofferdam network deny`.",
        ))
    }

    /// One waits, by what a gate says. What cannot be is dropped: a person answers by what is told here.
    pub(super) fn begin(&mut self, what: WaitingConnection) {
        if let Err(error) = what.check(self.last) {
            if self.written < WRITTEN {
                self.written += 1;
                self.news.push(Happened::PermissionDropped(error.message));
            }
            return;
        }
        self.last = what.number;
        if self.waiting.len() >= WAITING {
            return;
        }
        let is_first = !self.waiting.iter().any(|kept| kept.what.is_like(&what));
        let is_written = is_first && self.written < WRITTEN;
        if is_written {
            self.written += 1;
            self.news.push(Happened::PermissionRequested(Box::new(what.clone())));
        }
        self.waiting.push_back(Kept { what, is_written });
    }

    pub(super) fn settle(&mut self, number: u64, settled: Settlement) {
        let at = self.waiting.iter().position(|kept| kept.what.number == number);
        let Some(Kept { what, is_written }) = at.and_then(|at| self.waiting.remove(at)) else {
            return;
        };
        if is_written {
            self.news.push(Happened::PermissionSettled { number, settled });
        }
        self.settled.push_back(Permission { waiting: what, settled: Some(settled) });
        while self.settled.len() > SETTLED {
            self.settled.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cofferdam_core::ConnectionHow;

    fn waits(number: u64, port: u16) -> WaitingConnection {
        WaitingConnection {
            number,
            at_ms: 1,
            until_ms: 2,
            how: ConnectionHow::Transparent,
            host: Some("a.test".to_owned()),
            address: None,
            port,
            reason: None,
            remedy: format!("--egress a.test:{port}"),
        }
    }

    fn sandbox() -> SandboxId {
        SandboxId::new("s.1").unwrap()
    }

    #[test]
    fn those_that_wait_for_the_same_are_written_down_once() {
        let mut all = Permissions::default();
        [waits(1, 443), waits(2, 443), waits(3, 80)].into_iter().for_each(|one| all.begin(one));
        let requested = |news: &[Happened]| {
            news.iter().filter(|one| matches!(one, Happened::PermissionRequested(_))).count()
        };
        assert_eq!(requested(&all.news()), 2);
        all.settle(2, Settlement::TimedOut);
        assert_eq!(all.news(), []);
        all.settle(1, Settlement::Approved);
        let settled = Happened::PermissionSettled { number: 1, settled: Settlement::Approved };
        assert_eq!(all.news(), [settled]);
        assert_eq!(all.all().len(), 3);
        assert_eq!(all.last(), 3);
    }

    #[test]
    fn what_waits_no_more_says_why_and_what_never_did_is_not_known() {
        let mut all = Permissions::default();
        let error = |all: &Permissions, number| all.check_waits(&sandbox(), number).unwrap_err();
        assert_eq!(error(&all, 1).kind, ErrorKind::NotFound);
        all.begin(waits(1, 443));
        assert!(all.check_waits(&sandbox(), 1).is_ok());
        assert_eq!(error(&all, 2).kind, ErrorKind::NotFound);
        all.settle(1, Settlement::TimedOut);
        let late = error(&all, 1);
        assert_eq!(
            (late.kind, late.message.as_str()),
            (ErrorKind::Conflict, "s.1.1 was not answered in time")
        );
        all.begin(waits(2, 443));
        all.end();
        assert_eq!(error(&all, 2).message, "s.1.2 waits no more");
    }

    #[test]
    fn what_a_gate_cannot_truly_say_is_dropped_and_written_down() {
        let mut all = Permissions::default();
        all.begin(waits(1, 443));
        let wide = WaitingConnection { remedy: "--egress *".to_owned(), ..waits(2, 443) };
        let turned = WaitingConnection { reason: Some("a\u{202e}b".to_owned()), ..waits(2, 443) };
        let before = all.news().len();
        for bad in [wide, turned, waits(1, 80), waits(u64::MAX, 443)] {
            all.begin(bad);
        }
        assert_eq!((before, all.all().len(), all.last()), (1, 1, 1));
        let news = all.news();
        assert_eq!(news.len(), 4);
        assert!(news.iter().all(|one| matches!(one, Happened::PermissionDropped(_))), "{news:?}");
        // The control: what can be is believed.
        all.begin(waits(2, 80));
        assert_eq!((all.all().len(), all.last()), (2, 2));
        // No gate fills the journal so.
        (0..WRITTEN).for_each(|_| all.begin(waits(1, 443)));
        assert!(all.news().len() < WRITTEN);
    }

    #[test]
    fn what_is_inside_does_not_fill_the_journal() {
        let mut all = Permissions::default();
        let many = u64::try_from(WRITTEN).unwrap() + 50;
        for number in 1..=many {
            all.begin(waits(number, u16::try_from(number).unwrap()));
            all.settle(number, Settlement::TimedOut);
        }
        assert_eq!(all.news().len(), 2 * WRITTEN);
        assert_eq!(all.all().len(), SETTLED);
        assert_eq!(all.last(), many);
    }
}
