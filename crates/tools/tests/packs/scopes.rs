//! scopes
