//! `Debug` of the objects: what tells one from another, in one line, without asking the card.

use std::fmt;

use crate::{
    Ah, AnyBackend, AsyncEvents, Backend, CompChannel, Context, Cq, ExceptionQueue, Mr, MrBuf,
    MrChange, Mw, MwBind, Neighbours, OwnedQueues, Pd, QpBuilder, Receives, Sends, SharedReceives,
    Srq,
};

/// `Object { field: value, .. }` of objects on a backend.
macro_rules! debug {
    ($($object:ident <$($lifetime:lifetime,)? B> $this:ident { $($field:ident: $value:expr),* })*) => {$(
        impl<B: Backend> fmt::Debug for $object<$($lifetime,)? B> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($object))
                    $(.field(stringify!($field), &$value))*
                    .finish_non_exhaustive()
            }
        }
    )*};
}

debug! {
    Context<B> this { mac: this.mac() }
    Pd<B> this { number: this.number() }
    Cq<B> this { cqn: this.cqn(), capacity: this.capacity() }
    Srq<B> this { srqn: this.srqn() }
    SharedReceives<'_, B> _this {}
    Mr<B> this { addr: this.addr(), len: this.len(), lkey: this.lkey(), access: this.access() }
    MrBuf<B> this { addr: this.addr(), len: this.len(), lkey: this.lkey(), access: this.access() }
    MrChange<'_, B> this { pd: this.pd, memory: this.memory, access: this.access }
    Mw<B> this { mw_type: this.mw_type(), rkey: this.rkey() }
    MwBind<'_, B> this { mr: this.mr, addr: this.addr, len: this.len, access: this.access }
    Ah<B> _this {}
    QpBuilder<'_, B> _this {}
    Sends<'_, B> this { qp: this.qp() }
    Receives<'_, B> _this {}
    CompChannel<B> _this {}
    AsyncEvents<B> _this {}
    OwnedQueues<B> this { cq: this.cq() }
    ExceptionQueue<B> this { max_frame: this.max_frame() }
    Neighbours<B> this { counters: this.counters() }
}

impl fmt::Debug for AnyBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_simulated() {
            "vfio-user"
        } else {
            "VFIO"
        };
        write!(f, "AnyBackend({kind})")
    }
}

#[cfg(feature = "vfio")]
impl fmt::Debug for crate::vfio::Vfio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vfio").finish_non_exhaustive()
    }
}

#[cfg(feature = "vfio-user")]
impl fmt::Debug for crate::vfio_user::VfioUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VfioUser").finish_non_exhaustive()
    }
}
