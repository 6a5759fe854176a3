//! Replies of the responder as Verilog: acknowledgements, READ responses, atomics.
mod acks;
mod atomics;
mod classes;
mod failures;
mod hold;
mod host;
mod many;
mod paced;
mod random;
mod rates;
mod reads;
mod repeats;
mod request;
mod rig;
mod store;
mod wire;
