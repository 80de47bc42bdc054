//! The interface over a backend in memory: what it promises, and who may not have what.
#![cfg(test)]

mod bounds;
mod contract;
mod document;
mod listening;
mod stage;
mod streams;
mod tenants;
