//! The C ABI against the header of the system.

use ferroce_cabi::abi::{NESTED, layouts, values};
use ferroce_system::or_skip;
use ferroce_system::packages::{CXX, IBVERBS_DEV, check_present};

use crate::header::{agrees, layout};

#[test]
fn the_header_agrees() {
    if or_skip(check_present(&[IBVERBS_DEV, CXX])).is_none() {
        return;
    }
    let mut expected: Vec<_> = layouts().into_iter().flat_map(layout).collect();
    expected.extend(NESTED.map(|(field, offset)| {
        let expression = format!("offsetof(struct ibv_send_wr, {field})");
        (expression, offset as i64)
    }));
    let names = values().iter();
    expected.extend(names.map(|(name, value)| ((*name).to_owned(), *value)));
    assert!(expected.len() > 300, "the tables are not empty");
    agrees("infiniband/verbs.h", &expected);
}
