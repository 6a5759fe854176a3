//! What the peer sees.
