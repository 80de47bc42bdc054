//! given_up
