//! What has its own number on 64-bit Arm and no constant in every C library.

use super::rule::Rule;
use super::table::{allow, call, refuse};

/// `AUDIT_ARCH_AARCH64`. Programs of 32 bits have another.
pub(super) const AUDIT_ARCH: u32 = 0xc000_00b7;

/// There is no second ABI below the same architecture.
pub(super) const FOREIGN_FROM: Option<u32> = None;

/// The rows.
pub(super) const ROWS: &[Rule] = &[
    allow(
        &[call("renameat", 38), call("sync_file_range", 84)],
        "works on files as the view and their permissions allow",
    ),
    allow(&[call("getrlimit", 163), call("setrlimit", 164)], "limits of the process itself"),
    allow(&[call("io_pgetevents", 292)], "waits for events, as every event loop does"),
    refuse(&[call("kexec_file_load", 294)], "belongs to the administrator of the host"),
];

/// What only a gate's own rows have here.
pub(super) const GATE: &[Rule] = &[];
