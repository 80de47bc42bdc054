//! The real program, from outside.

#[cfg(test)]
mod config;
#[cfg(test)]
mod errors;
#[cfg(test)]
mod harness;
#[cfg(test)]
mod help;
#[cfg(test)]
mod schemas;
#[cfg(test)]
mod wrap;
