//! Images that requests may lie on.

use cofferdam_core::{Image, Result};
use std::any::Any;

/// When a registry is asked for an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pull {
    /// Where it was not pulled yet.
    Missing,
    /// Each time.
    Always,
    /// Not at all.
    Never,
}

/// Holds the layers of an image where they are until a sandbox has them.
pub type HeldImage = Box<dyn Any + Send>;

/// Where images come from. What it is asked for is one of the names that the operator gave, word for word.
pub trait Images: std::fmt::Debug + Send + Sync {
    /// Makes an image ready, which may take long and waits on its thread. `pull` is what the request says;
    /// without it as the operator decided.
    fn open(&self, named: &str, pull: Option<Pull>) -> Result<(Image, HeldImage)>;
}
