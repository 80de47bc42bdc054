//! Layers that a real overlay made.

mod landing;

mod reading;
mod stage;
