//! The system call filter before a real kernel: attacks that must fail, the same attacks without
//! the filter, and what must keep working.

#[cfg(test)]
mod attacks;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod sys;
#[cfg(test)]
mod use_cases;
