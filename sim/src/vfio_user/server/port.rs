//! The port of a served card: frames between it, the wire and the capture.

use super::{Card, DatagramWire, ServeError, Server};
use crate::nic::NS_PER_CYCLE;
use crate::world::Direction;

/// Cycles until the last frame has left whose message was completed: it may still be in the engine's buffers.
const LEAVING: u32 = 1024;

impl<C: Card> Server<C> {
    /// Hands the card what has arrived.
    pub(super) fn frames_in(&mut self) -> Result<(), ServeError> {
        while let Some(wire) = &mut self.wire
            && let Some(frame) = wire.receive(self.cycle)
        {
            self.show(Direction::Receive, &frame)?;
            self.card.receive(&frame);
            self.watch.moved();
        }
        Ok(())
    }

    /// Takes from the card what the wire has room for.
    pub(super) fn frames_out(&mut self) -> Result<(), ServeError> {
        let mut has_room = self.wire.as_mut().is_none_or(DatagramWire::retry);
        while has_room && let Some(frame) = self.card.transmit() {
            self.show(Direction::Transmit, &frame)?;
            self.watch.moved();
            has_room = self.wire.as_mut().is_none_or(|wire| wire.send(frame));
        }
        Ok(())
    }

    fn show(&mut self, direction: Direction, frame: &[u8]) -> Result<(), ServeError> {
        let Some((writer, interface)) = &mut self.capture else {
            return Ok(());
        };
        let ns = self.cycle * NS_PER_CYCLE;
        let written = writer.packet(*interface, ns, direction, frame, "");
        written.map_err(ServeError::Capture)
    }

    /// The client is gone, and the frames that it posted still leave: programs end sooner than a slow card.
    pub(super) fn leave(&mut self) {
        for _ in 0..LEAVING {
            self.step();
            if let Err(error) = self.frames_out() {
                tracing::warn!("the last frames are lost: {error}");
                return;
            }
        }
    }
}
