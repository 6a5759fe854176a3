//! What the host sees.
