use super::*;

const AT: u64 = 0x7f29_9dca_3003;

#[test]
fn an_access_may_span_neighbours_but_not_a_gap() {
    let m = Ranges::new();
    m.map(AT, vec![1; 4]).unwrap();
    m.map(AT + 4, vec![2; 4]).unwrap();
    let mut b = [0; 6];
    m.read(AT + 1, &mut b).unwrap();
    assert_eq!(b, [1, 1, 1, 2, 2, 2]);
    assert_eq!(m.mapped(AT + 1, 6), 6);
    assert_eq!(m.mapped(AT + 6, 6), 2);
    assert_eq!(m.mapped(AT + 8, 6), 0);
    assert_eq!(m.mapped(AT - 1, 6), 0);
    assert!(m.faults().is_empty(), "asking is no access");

    let fault = Fault {
        addr: AT + 6,
        len: 3,
        kind: FaultKind::Write,
        gone: false,
    };
    assert_eq!(m.write(AT + 6, &[9; 3]), Err(fault));
    m.read(AT + 2, &mut b).unwrap();
    assert_eq!(b, [1, 1, 2, 2, 2, 2], "a refused write changes nothing");
    assert_eq!(m.faults(), [fault]);
}

#[test]
fn nothing_wraps_round_the_end_of_memory() {
    let m = Ranges::new();
    m.map(u64::MAX - 3, vec![0; 4]).unwrap();
    m.map(0, vec![0; 4]).unwrap();
    m.write(u64::MAX - 3, &[5; 4]).unwrap();
    assert!(m.write(u64::MAX - 3, &[5; 5]).is_err());
    assert_eq!(m.mapped(u64::MAX - 1, 9), 2);
    assert!(m.map(u64::MAX, vec![0; 2]).is_err());
}

#[test]
fn ranges_do_not_overlap() {
    let m = Ranges::new();
    m.map(100, vec![0; 10]).unwrap();
    for (addr, len) in [(100, 10), (99, 2), (109, 1), (95, 20), (105, 0)] {
        assert_eq!(m.map(addr, vec![0; len]), Err(BadRange { addr, len }));
    }
    m.map(110, vec![0; 1]).unwrap();
    assert_eq!(m.unmap(100), Some(vec![0; 10]));
    assert!(m.read(100, &mut [0]).is_err());
}

#[test]
fn zero_bytes_reach_everywhere() {
    let m = Ranges::new();
    m.read(7, &mut []).unwrap();
    m.write(7, &[]).unwrap();
    assert!(m.faults().is_empty());
}

#[test]
fn process_memory_is_the_memory_of_the_process() {
    let m = ProcessMemory::new();
    let mut buffer = vec![0u8; 64];
    let start = buffer.as_mut_ptr();
    let at = start.addr() as u64;
    // SAFETY: `buffer` is valid until the end of the test and is touched through `start` only.
    unsafe { m.map(start, 64, DmaAccess::ReadWrite) }.unwrap();
    m.write(at + 8, &[1, 2, 3]).unwrap();
    // SAFETY: inside `buffer`.
    assert_eq!(unsafe { start.add(9).read_volatile() }, 2);
    let mut b = [0; 2];
    m.read(at + 9, &mut b).unwrap();
    assert_eq!(b, [2, 3]);
    assert!(m.read(at + 63, &mut b).is_err());
    assert!(m.unmap(at));
    assert!(!m.unmap(at));
    assert!(m.read(at + 9, &mut b).is_err());
    assert_eq!(m.faults().len(), 2);
    // SAFETY: as above.
    unsafe { m.map(start, 32, DmaAccess::Read) }.unwrap();
    // SAFETY: as above.
    unsafe { m.map(start.wrapping_add(32), 32, DmaAccess::ReadWrite) }.unwrap();
    m.read(at + 31, &mut b).unwrap();
    assert!(m.write(at + 31, &b).is_err());
    m.write(at + 32, &b).unwrap();
    assert_eq!(m.mapped(at, 99), 64);
}
