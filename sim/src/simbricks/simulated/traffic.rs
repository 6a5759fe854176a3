//! Messages of both links, and a cycle of the card between them.

use super::*;

impl<C: Card> Run<'_, C> {
    /// Takes what has arrived; whether anything has.
    pub(super) fn receive(&mut self) -> Result<bool, SimbricksError> {
        let mut has_received = false;
        let bus = self.bus.clone();
        while let Some(message) = self
            .pci
            .receive(self.now, |kind, head| bus.bytes(kind, head))
        {
            has_received = true;
            let request = bus.take_message(message);
            if let Some(request) = request.map_err(SimbricksError::Malformed)? {
                self.request(request);
            }
        }
        let frame_len = |head: &[u8]| u16::from_le_bytes([head[0], head[1]]);
        while let Some(eth) = &mut self.eth
            && let Some(message) = eth.receive(self.now, |_, head| frame_len(head).into())
        {
            has_received = true;
            let len = usize::from(frame_len(&message.head));
            let mut frame = message.data;
            if message.kind != FRAME || len < HEADER || frame.len() < len {
                self.report.bad += 1;
                continue;
            }
            frame.resize(len.max(MIN_FRAME), 0);
            self.report.received += 1;
            self.frames.push_back(frame);
        }
        Ok(has_received)
    }

    pub(super) fn request(&mut self, request: Request) {
        let is_register = |bar, offset: u64, len: usize| {
            let end = offset.saturating_add(len as u64);
            bar == pci::REGISTER_BAR && end <= regs::BAR0_BYTES
        };
        match request {
            Request::Read {
                id,
                bar,
                offset,
                len,
            } => {
                if is_register(bar, offset, len.into()) {
                    self.registers.read(id, offset, len.into());
                } else {
                    self.send(ToHost::read_done(id, vec![0xff; len.into()]));
                }
            }
            Request::Write {
                id,
                bar,
                offset,
                data,
            } => {
                let fits = is_register(bar, offset, data.len());
                if !fits || !self.registers.write(offset, &data) {
                    tracing::warn!("no register at {offset:#x} of BAR {bar} was written");
                }
                if let Some(id) = id {
                    self.send(ToHost::write_done(id));
                }
            }
        }
    }

    pub(super) fn send(&mut self, message: ToHost) {
        let ToHost { kind, head, data } = message;
        self.pci.send(self.now, kind, &head, data);
    }

    /// A cycle of the card: what has come to it, and what comes of it.
    pub(super) fn step(&mut self) -> Result<(), SimbricksError> {
        while let Some(frame) = self.frames.pop_front() {
            self.show(Direction::Receive, &frame)?;
            self.card.receive(&frame);
        }
        self.hand_over();
        self.card.step();
        self.cycle += 1;
        self.now = self.now.max(self.cycle * CYCLE_PS);
        self.hand_over();
        while let Some(access) = self.bus.to_send() {
            self.send(access);
        }
        while let Some(vector) = self.card.interrupt() {
            self.raised.push_back((vector, self.bus.last()));
        }
        while let Some(&(vector, last)) = self.raised.front()
            && self.bus.has_written(last)
        {
            self.raised.pop_front();
            self.send(ToHost::interrupt(vector));
        }
        while let Some(frame) = self.card.transmit() {
            self.show(Direction::Transmit, &frame)?;
            match self.eth.as_mut().filter(|eth| !eth.is_over()) {
                Some(eth) => {
                    let [low, high] = (frame.len() as u16).to_le_bytes();
                    eth.send(self.now, FRAME, &[low, high], frame);
                    self.report.sent += 1;
                }
                None => self.report.unplugged += 1,
            }
        }
        Ok(())
    }

    /// Register accesses and their answers.
    pub(super) fn hand_over(&mut self) {
        while let Some((id, data)) = self.registers.step(&mut self.card) {
            self.send(ToHost::read_done(id, data));
        }
    }

    pub(super) fn show(
        &mut self,
        direction: Direction,
        frame: &[u8],
    ) -> Result<(), SimbricksError> {
        let Some((writer, interface)) = &mut self.capture else {
            return Ok(());
        };
        let ns = self.cycle * NS_PER_CYCLE;
        let written = writer.packet(*interface, ns, direction, frame, "");
        written.map_err(SimbricksError::Capture)
    }
}
