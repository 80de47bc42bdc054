//! Chores: benchmarks, tidiness, snapshots.

fn main() {}
