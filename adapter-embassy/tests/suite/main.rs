//! What the adapter does on embassy's clock, moved by hand.

mod bench;
mod calls;
mod cancelled;
mod line;
mod reconnect;
mod refused;
mod timer;
