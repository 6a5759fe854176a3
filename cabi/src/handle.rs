//! Objects that C programs hold by pointer: a pointer is looked up before it is followed, so that one of an object that
//! is gone, or of another kind, is an error and no crash.

use std::cell::{RefCell, UnsafeCell};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::thread::LocalKey;

use crate::errno::Errno;

/// Takes a lock; what it guards is kept consistent, also when a thread panicked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The structure of an object that the program sees.
pub struct Shown<T>(UnsafeCell<T>);

// SAFETY: the library only makes and writes it through the raw pointer, under the rules of C that the program follows.
unsafe impl<T> Sync for Shown<T> {}
// SAFETY: its pointers are not followed by it.
unsafe impl<T> Send for Shown<T> {}

impl<T> Shown<T> {
    /// A structure that a pointer may be given to.
    pub fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    /// The pointer.
    pub fn get(&self) -> *mut T {
        self.0.get()
    }
}

/// What a program holds by a pointer to `Abi`.
pub trait Object: Send + Sync + Sized + 'static {
    /// The structure of the header.
    type Abi;

    /// All live objects of the kind.
    fn registry() -> &'static Registry<Self>;

    /// Those that this thread used last.
    fn recent() -> &'static LocalKey<Recent<Self>>;

    /// The pointer that the program holds.
    fn shown(&self) -> *mut Self::Abi;
}

/// The functions of [`Object`] that find the objects of `$handle`.
#[macro_export]
macro_rules! places {
    ($handle:ident) => {
        fn registry() -> &'static $crate::handle::Registry<Self> {
            static LIVE: $crate::handle::Registry<$handle> = $crate::handle::Registry::new();
            &LIVE
        }

        fn recent() -> &'static std::thread::LocalKey<$crate::handle::Recent<Self>> {
            std::thread_local! {
                static RECENT: $crate::handle::Recent<$handle> =
                    const { $crate::handle::Recent::new() };
            }
            &RECENT
        }
    };
}
pub use places;

/// Makes `$handle`, with a field `shown`, an object that the program holds by a pointer to `$abi`; with `used` and a field
/// `users` one that others use.
#[macro_export]
macro_rules! object {
    ($handle:ident, $abi:ident) => {
        impl $crate::handle::Object for $handle {
            type Abi = $abi;

            $crate::handle::places!($handle);

            fn shown(&self) -> *mut $abi {
                // The extended structure starts with the one that everybody knows.
                self.shown.get().cast()
            }
        }
    };
    ($handle:ident, $abi:ident, used) => {
        $crate::handle::object!($handle, $abi);

        impl $crate::handle::Used for $handle {
            fn users(&self) -> &$crate::handle::Users {
                &self.users
            }
        }
    };
}
pub use object;

/// Objects that a thread used last, by the addresses of what the program sees. What a thread does over and over takes no
/// lock of all threads then.
pub struct Recent<T>(RefCell<Vec<Option<Place<T>>>>);

/// An object as it was found.
struct Place<T> {
    addr: usize,
    /// Objects of the kind that were gone then: since one more is, the address may be of another.
    gone: u64,
    object: Weak<T>,
}

/// Places of [`Recent`], of which an address has one.
const PLACES: usize = 64;

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Recent<T> {
    /// One without objects.
    pub const fn new() -> Self {
        Self(RefCell::new(Vec::new()))
    }

    fn place(addr: usize) -> usize {
        // Objects lie some hundred bytes apart: the high bits of the product depend on all of them.
        (addr as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as usize >> (usize::BITS - PLACES.ilog2())
    }

    fn get(&self, addr: usize, gone: u64) -> Option<Arc<T>> {
        let places = self.0.borrow();
        let place = places.get(Self::place(addr))?.as_ref()?;
        let is_it = place.addr == addr && place.gone == gone;
        is_it.then(|| place.object.upgrade())?
    }

    fn put(&self, addr: usize, gone: u64, object: &Arc<T>) {
        let mut places = self.0.borrow_mut();
        if places.is_empty() {
            places.resize_with(PLACES, || None);
        }
        let object = Arc::downgrade(object);
        places[Self::place(addr)] = Some(Place { addr, gone, object });
    }
}

/// The live objects of a kind, by the address of what the program sees.
pub struct Registry<T> {
    objects: RwLock<BTreeMap<usize, Arc<T>>>,
    /// Objects that are gone.
    gone: AtomicU64,
}

impl<T: Object> Default for Registry<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Object> Registry<T> {
    /// One without objects.
    pub const fn new() -> Self {
        Self {
            objects: RwLock::new(BTreeMap::new()),
            gone: AtomicU64::new(0),
        }
    }

    /// The object behind `handle`; `EINVAL` if there is none.
    #[inline]
    pub fn get(&self, handle: *mut T::Abi) -> Result<Arc<T>, Errno> {
        let addr = handle.addr();
        let gone = self.gone.load(Ordering::Acquire);
        // A thread that ends has none any more.
        let recent = T::recent().try_with(|recent| recent.get(addr, gone));
        match recent.ok().flatten() {
            Some(object) => Ok(object),
            None => self.find(addr),
        }
    }

    fn find(&self, addr: usize) -> Result<Arc<T>, Errno> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        let object = objects.get(&addr).cloned().ok_or(Errno::INVAL)?;
        // Nothing goes while the lock is held.
        let gone = self.gone.load(Ordering::Acquire);
        let _ = T::recent().try_with(|recent| recent.put(addr, gone, &object));
        Ok(object)
    }

    /// Makes an object known; what the program gets.
    pub fn add(&self, object: Arc<T>) -> *mut T::Abi {
        let shown = object.shown();
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        objects.insert(shown.addr(), object);
        shown
    }

    /// Forgets an object.
    pub fn remove(&self, object: &T) {
        let mut objects = self.objects.write().unwrap_or_else(PoisonError::into_inner);
        let removed = objects.remove(&object.shown().addr());
        self.gone.fetch_add(1, Ordering::Release);
        // What it holds may take the lock again.
        drop(objects);
        drop(removed);
    }

    /// The objects that `is_meant` picks.
    pub fn all(&self, is_meant: impl Fn(&T) -> bool) -> Vec<Arc<T>> {
        let objects = self.objects.read().unwrap_or_else(PoisonError::into_inner);
        objects.values().filter(|o| is_meant(o)).cloned().collect()
    }
}

/// The object behind a handle.
pub fn get<T: Object>(handle: *mut T::Abi) -> Result<Arc<T>, Errno> {
    T::registry().get(handle)
}

/// How many objects use this one, which cannot be destroyed before them.
#[derive(Default)]
pub struct Users(AtomicU32);

/// An object with users.
pub trait Used: Object {
    /// Their number.
    fn users(&self) -> &Users;

    /// `EBUSY` while there are users.
    fn check_unused(&self) -> Result<(), Errno> {
        match self.users().0.load(Ordering::Acquire) {
            0 => Ok(()),
            _ => Err(Errno::BUSY),
        }
    }
}

/// An object that another one uses.
pub struct Held<T: Used>(Arc<T>);

impl<T: Used> Held<T> {
    /// The object, to be used.
    pub fn new(object: Arc<T>) -> Self {
        object.users().0.fetch_add(1, Ordering::AcqRel);
        Self(object)
    }

    /// The object behind a handle, to be used.
    pub fn get(handle: *mut T::Abi) -> Result<Self, Errno> {
        Ok(Self::new(get(handle)?))
    }

    /// Both are the same object.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T: Used> Clone for Held<T> {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl<T: Used> Deref for Held<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Used> Drop for Held<T> {
    fn drop(&mut self) {
        self.0.users().0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Part of an object that is taken out when it is destroyed: a later call finds nothing.
pub struct Core<T>(Mutex<Option<T>>);

impl<T> Core<T> {
    /// An object that has the part.
    pub fn new(value: T) -> Self {
        Self(Mutex::new(Some(value)))
    }

    /// Calls `then` with the part; `EINVAL` if the object was destroyed.
    pub fn with<R>(&self, then: impl FnOnce(&mut T) -> Result<R, Errno>) -> Result<R, Errno> {
        lock(&self.0).as_mut().ok_or(Errno::INVAL).and_then(then)
    }

    /// Drops the part; the card is done with it then. `EINVAL` if another thread was faster.
    pub fn destroy(&self) -> Result<(), Errno> {
        lock(&self.0).take().map(drop).ok_or(Errno::INVAL)
    }
}

/// Events of an object that the program took, and those it acknowledged.
#[derive(Default)]
pub struct Acks {
    open: Mutex<u64>,
    changed: Condvar,
    /// The object ends.
    is_over: AtomicBool,
}

impl Acks {
    /// The program has one more.
    pub fn taken(&self) {
        *lock(&self.open) += 1;
    }

    /// More than were taken count as all.
    pub fn acknowledge(&self, events: u64) {
        let mut open = lock(&self.open);
        *open = open.saturating_sub(events);
        self.changed.notify_all();
    }

    /// No event of the object is put any more; under the lock of the mailbox that they go to.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// The object ends or has ended; under the same lock.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Waits until all are acknowledged: so the manual wants it of the destruction of an object.
    pub fn wait(&self) {
        let mut open = lock(&self.open);
        while *open > 0 {
            open = self
                .changed
                .wait(open)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing {
        shown: Shown<u64>,
    }

    object!(Thing, u64);

    #[test]
    fn what_is_gone_is_not_found_again() {
        let make = || {
            Arc::new(Thing {
                shown: Shown::new(7),
            })
        };
        let (one, two) = (make(), make());
        let handles = [&one, &two].map(|thing| Thing::registry().add(thing.clone()));
        for _ in 0..2 {
            assert!(get::<Thing>(handles[0]).is_ok_and(|found| Arc::ptr_eq(&found, &one)));
        }
        Thing::registry().remove(&one);
        assert_eq!(get::<Thing>(handles[0]).err(), Some(Errno::INVAL));
        assert!(get::<Thing>(handles[1]).is_ok_and(|found| Arc::ptr_eq(&found, &two)));
        // An object is where another one was.
        let objects = &Thing::registry().objects;
        objects
            .write()
            .unwrap()
            .insert(handles[0].addr(), two.clone());
        assert!(get::<Thing>(handles[0]).is_ok_and(|found| Arc::ptr_eq(&found, &two)));
        // Only the holders keep it.
        drop(one);
        assert_eq!(Arc::strong_count(&two), 3);
    }
}
