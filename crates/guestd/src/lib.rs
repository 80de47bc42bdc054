//! The program inside every sandbox, as a library: carries out a plan, then starts and ends commands.

pub mod prove;
