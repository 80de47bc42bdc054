//! The interface over a backend in memory: what it promises, and who may not have what.
#![cfg(test)]

mod attacked;
mod bounds;
mod canceled;
mod contract;
mod document;
mod files;
mod hints;
mod limits;
mod listening;
mod once;
mod revoked;
mod secrets;
mod stage;
mod streams;
mod tenants;
mod tools;
mod wishes;
