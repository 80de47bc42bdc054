//! Layers that a real overlay made.

mod attacks;
mod conflicts;
mod control;
mod crash;
mod discarding;
mod landing;
mod property;
mod reading;
mod stage;
mod staging;
mod workspace;
