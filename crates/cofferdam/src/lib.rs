//! A sandbox runtime for AI agents.
