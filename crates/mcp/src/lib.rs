//! The tools of Cofferdam by the Model Context Protocol.
