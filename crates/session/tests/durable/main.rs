//! Sessions over a backend in memory: what they promise, and what they survive.
#![cfg(test)]

mod collected;
mod contract;
mod crowd;
mod faults;
mod filed;
mod files;
mod frozen;
mod given_up;
mod half_removed;
mod leases;
mod manifests;
mod owners;
mod real;
mod renewed;
mod runs;
mod shells;
mod stage;
mod stopped;
mod storage;
