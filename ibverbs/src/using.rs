//! What an object uses, as long as it is not destroyed.

use std::ops::{Deref, DerefMut};

/// The part of an object that goes when it is destroyed, with the objects that it uses: they are free then, also while
/// another thread still looks at the object.
pub(crate) struct Using<T, U> {
    // Goes first.
    part: T,
    pub(crate) used: U,
}

impl<T, U> Using<T, U> {
    pub(crate) fn new(part: T, used: U) -> Self {
        Self { part, used }
    }
}

impl<T, U> Deref for Using<T, U> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.part
    }
}

impl<T, U> DerefMut for Using<T, U> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.part
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::errno::Errno;
    use crate::handle::{Core, Held, Shown, Used, Users, object};

    struct Thing {
        shown: Shown<u64>,
        users: Users,
    }

    object!(Thing, u64, used);

    #[test]
    fn what_was_used_is_free_while_another_thread_holds_the_user() {
        let thing = Arc::new(Thing {
            shown: Shown::new(7),
            users: Users::default(),
        });
        let user = Arc::new(Core::new(Using::new(5, Held::new(thing.clone()))));
        let other = user.clone();
        assert_eq!(other.with(|part| Ok(**part)), Ok(5));
        assert_eq!(thing.check_unused(), Err(Errno::BUSY));
        assert_eq!(user.destroy(), Ok(()));
        assert_eq!(thing.check_unused(), Ok(()));
        assert_eq!(other.with(|_| Ok(())), Err(Errno::INVAL));
    }
}
