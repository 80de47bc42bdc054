//! Images from registries.
