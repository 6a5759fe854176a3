//! Memory regions of a [`Host`].

use ferroce_proto::abi::cmd::opcode;
use ferroce_proto::abi::mr::MrCtx;

use super::Host;

/// What a memory region permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// The card may write for local operations.
    pub local_write: bool,
    /// A peer may write.
    pub remote_write: bool,
    /// A peer may read.
    pub remote_read: bool,
    /// A peer may use atomics.
    pub remote_atomic: bool,
    /// A peer may invalidate it.
    pub invalidate: bool,
}

impl Rights {
    /// Everything.
    pub const ALL: Self = Self {
        local_write: true,
        remote_write: true,
        remote_read: true,
        remote_atomic: true,
        invalidate: true,
    };
    /// Local reads only.
    pub const NONE: Self = Self {
        local_write: false,
        remote_write: false,
        remote_read: false,
        remote_atomic: false,
        invalidate: false,
    };
}

/// A registered buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mr {
    /// First address.
    pub addr: u64,
    /// Bytes.
    pub len: u64,
    /// lkey and rkey.
    pub key: u32,
}

impl Host {
    /// The next region gets this number, those behind it the ones that follow. Numbers start at 1.
    pub fn number_regions(&mut self, next: u32) {
        self.regions = next - 1;
    }

    /// Registers `len` bytes at `addr`; the memory need not be there.
    pub fn register(&mut self, addr: u64, len: u64, rights: Rights) -> Mr {
        let mr = self.plan_region(addr, len);
        let ctx = self.region(&mr, rights);
        self.expect(opcode::WRITE_MR, mr.key >> 8, &ctx.emit());
        mr
    }

    /// A region to be registered with the card, see [`region`](Self::region).
    pub fn plan_region(&mut self, addr: u64, len: u64) -> Mr {
        self.regions += 1;
        let index = self.regions;
        // The low byte is a variant, so that a stale key of the same place differs.
        let key = index << 8 | ((0x11 * index) & 0xff);
        let mr = Mr { addr, len, key };
        self.reach.give(addr, len);
        self.live.push(mr);
        mr
    }

    /// The image of a region.
    #[must_use]
    pub fn region(&self, mr: &Mr, rights: Rights) -> MrCtx {
        MrCtx {
            base: mr.addr,
            last: mr.addr + (mr.len - 1),
            key: mr.key,
            pd: self.pd,
            valid: true,
            local_write: rights.local_write,
            remote_write: rights.remote_write,
            remote_read: rights.remote_read,
            remote_atomic: rights.remote_atomic,
            invalidate: rights.invalidate,
            ..MrCtx::default()
        }
    }

    /// Takes a region back. From the answer on the card must not reach its bytes, but for what other regions hold.
    pub fn deregister(&mut self, mr: &Mr) {
        self.expect(opcode::WRITE_MR, mr.key >> 8, &MrCtx::default().emit());
        self.took_back(mr);
    }

    /// Notes that the end of a region was answered.
    pub fn took_back(&mut self, mr: &Mr) {
        self.live.retain(|live| live.key != mr.key);
        self.reach.take_back(mr.addr, mr.len);
        for live in &self.live {
            self.reach.give(live.addr, live.len);
        }
    }

    /// A new registered buffer with `data` in it.
    pub fn create_mr(&mut self, data: &[u8], rights: Rights) -> Mr {
        let addr = self.alloc(data.len());
        self.write(addr, data);
        self.register(addr, data.len() as u64, rights)
    }

    /// The bytes of a buffer.
    #[must_use]
    pub fn contents(&self, mr: &Mr) -> Vec<u8> {
        self.read(mr.addr, mr.len as usize)
    }
}
