//! The words in which the table is written.

use std::fmt;

/// One row: these calls, this decision, for this reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// Which calls it is about.
    pub scope: Scope,
    /// What happens to them.
    pub decision: Decision,
    /// Why, as a sentence for people without its period.
    pub why: &'static str,
}

/// What a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// These calls of the native ABI.
    Calls(&'static [Call]),
    /// Every number of the native ABI that no other rule names.
    Unlisted,
    /// Every call through another ABI: `int 0x80` and x32 on x86-64, 32-bit code on both.
    ForeignAbi,
}

/// A system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    /// Its name, as in its manual page.
    pub name: &'static str,
    /// Its number in the native ABI.
    pub number: i64,
}

/// What the filter says to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The same, whatever the arguments.
    Always(Verdict),
    /// What the first clause says that holds, and `otherwise` where none does.
    ByArguments {
        /// In order.
        clauses: &'static [Clause],
        /// When no clause holds.
        otherwise: Verdict,
    },
}

/// A verdict under conditions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clause {
    /// All of them must hold.
    pub tests: &'static [Test],
    /// The same in words, so that it can follow "if".
    pub when: &'static str,
    /// What is said then.
    pub verdict: Verdict,
}

/// A condition on one argument, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Test {
    /// The low 32 bits, of which only those of `mask` count, are one of `values`.
    OneOf {
        /// Which argument.
        argument: u8,
        /// The bits that count.
        mask: u32,
        /// What they may be.
        values: &'static [u32],
    },
    /// At least one of these bits, all among the low 32, is set.
    AnyBit {
        /// Which argument.
        argument: u8,
        /// Which bits.
        bits: u32,
    },
    /// The argument, a pointer of 64 bits, is not null.
    NotNull {
        /// Which argument.
        argument: u8,
    },
}

/// What happens to a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel carries it out.
    Allow,
    /// It fails with this error, and nothing else happens.
    Refuse(Errno),
    /// The whole process dies by SIGSYS.
    KillProcess,
}

/// The errors that the filter answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Errno {
    /// Not permitted: known, and refused.
    Eperm,
    /// Unknown call: programs fall back to an older one.
    Enosys,
    /// Unknown address family.
    Eafnosupport,
    /// Unknown protocol of a known family.
    Eprotonosupport,
    /// No such thing: what the kernel answers for a module that it does not have.
    Enoent,
}

impl Verdict {
    /// As the kernel takes it: an action and, in the low half, its data.
    pub(super) const fn action(self) -> u32 {
        match self {
            Self::Allow => 0x7fff_0000,
            Self::Refuse(errno) => 0x0005_0000 | errno.number(),
            Self::KillProcess => 0x8000_0000,
        }
    }
}

impl Errno {
    /// Its number, the same on all architectures that there are rules for.
    pub(super) const fn number(self) -> u32 {
        match self {
            Self::Eperm => 1,
            Self::Enosys => 38,
            Self::Eafnosupport => 97,
            Self::Eprotonosupport => 93,
            Self::Enoent => 2,
        }
    }

    /// Its name as in C.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eperm => "EPERM",
            Self::Enosys => "ENOSYS",
            Self::Eafnosupport => "EAFNOSUPPORT",
            Self::Eprotonosupport => "EPROTONOSUPPORT",
            Self::Enoent => "ENOENT",
        }
    }
}

/// As in "`chmod`: refused with EPERM if …, else allowed".
impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always(verdict) => verdict.fmt(f),
            Self::ByArguments { clauses, otherwise } => {
                for clause in *clauses {
                    write!(f, "{} if {}, ", clause.verdict, clause.when)?;
                }
                write!(f, "else {otherwise}")
            }
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("allowed"),
            Self::Refuse(errno) => write!(f, "refused with {}", errno.name()),
            Self::KillProcess => f.write_str("ends the process"),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlisted => f.write_str("every other call"),
            Self::ForeignAbi => f.write_str("calls through a foreign ABI"),
            Self::Calls(calls) => {
                for (index, call) in calls.iter().enumerate() {
                    let separator = if index == 0 { "" } else { ", " };
                    write!(f, "{separator}{}", call.name)?;
                }
                Ok(())
            }
        }
    }
}
