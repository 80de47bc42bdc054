//! Which system calls the commands of a sandbox may make, and process 1 with them.
//!
//! One table, a reason in every row: what is listed as allowed is allowed, what is known and
//! dangerous gets `EPERM`, all else `ENOSYS`, so that programs fall back to what they did on older
//! kernels. Foreign ABIs end the process. The table becomes a balanced tree of comparisons,
//! because the kernel walks a new filter once for every number that exists.
//!
//! The filter sees argument registers, never memory. So a call whose dangerous part lies behind a
//! pointer (`openat2`, `clone3`) is refused whole. And where the kernel reads an argument as a
//! 32-bit number, the filter compares the low half only: junk in the high half must not help.

mod allowed;
mod compile;
mod conditions;
mod gate;
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
mod native;
mod refused;
mod rule;
mod surface;
mod table;

#[cfg(test)]
mod coverage;
#[cfg(test)]
mod oracle;

pub use compile::{CompileError, Instruction, gate_program, program};
pub use gate::rules as gate_rules;
pub use rule::{Call, Clause, Decision, Errno, Rule, Scope, Test, Verdict};
pub use surface::{Surface, Tracing};
pub use table::rules;
