//! The packs over real sandboxes of this machine: recorded calls, limits, scopes, what is given up.
#![cfg(test)]

mod advice;
mod apply;
mod dropped;
mod given_up;
mod hints;
mod limits;
mod long;
mod names;
mod recorded;
mod schemas;
mod scopes;
mod shape;
mod stage;
