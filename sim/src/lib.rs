//! Cycle-accurate simulation of the engine.
