//! What the cells of Yosys put out, for what their inputs can hold.

use super::netlist::{Bit, Cell, Nets};

/// What a bit can hold in all states so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Value {
    /// Nothing yet.
    #[default]
    None,
    /// 0 only.
    Zero,
    /// 1 only.
    One,
    /// 0 and 1.
    Any,
}

use Value::{Any, None, One, Zero};

impl Value {
    /// A value in the text of Yosys. The Verilog has no x: those of Yosys stand for what cannot occur, such as the input of a
    /// choice that an outer choice never takes.
    pub(super) fn of(text: &str) -> Self {
        match text {
            "0" => Zero,
            "1" => One,
            "x" => None,
            _ => Any,
        }
    }

    /// What either can hold.
    pub(super) fn join(self, other: Self) -> Self {
        match (self, other) {
            (None, value) | (value, None) => value,
            (a, b) if a == b => a,
            _ => Any,
        }
    }

    fn not(self) -> Self {
        match self {
            Zero => One,
            One => Zero,
            value => value,
        }
    }

    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Zero, _) | (_, Zero) => Zero,
            (None, _) | (_, None) => None,
            (One, One) => One,
            _ => Any,
        }
    }

    fn or(self, other: Self) -> Self {
        self.not().and(other.not()).not()
    }

    fn xor(self, other: Self) -> Self {
        match (self, other) {
            (None, _) | (_, None) => None,
            (Any, _) | (_, Any) => Any,
            (a, b) if a == b => Zero,
            _ => One,
        }
    }
}

/// Joins what a cell puts out to its nets.
pub(super) fn eval(cell: &Cell, nets: &mut Nets) {
    if flag(cell, "A_SIGNED") || flag(cell, "B_SIGNED") {
        return anything(cell, nets);
    }
    let port = |name: &str| cell.connections.get(name).map_or(&[][..], Vec::as_slice);
    let (a, b, s, y) = (port("A"), port("B"), port("S"), port("Y"));
    // What an outer choice never takes has no value; anywhere else an x can be both.
    let is_choice = matches!(cell.r#type.as_str(), "$mux" | "$pmux");
    let read = |bits: &[Bit], nets: &Nets| -> Vec<Value> {
        let value = |&bit: &Bit| match bit {
            Bit::Is(None) if !is_choice => Any,
            bit => nets.get(bit),
        };
        bits.iter().map(value).collect()
    };
    let (a, b, s) = (read(a, nets), read(b, nets), read(s, nets));
    let wide = |values: &[Value]| -> Vec<Value> {
        let values = values.iter().copied().chain(std::iter::repeat(Zero));
        values.take(y.len()).collect()
    };
    let (wide_a, wide_b) = (wide(&a), wide(&b));
    let each = |op: fn(Value, Value) -> Value| -> Vec<Value> {
        let pairs = wide_a.iter().zip(&wide_b);
        pairs.map(|(&a, &b)| op(a, b)).collect()
    };
    let any = |values: &[Value]| values.iter().copied().fold(Zero, Value::or);
    let all = |values: &[Value]| values.iter().copied().fold(One, Value::and);
    let out = match cell.r#type.as_str() {
        "$pos" => wide_a,
        "$not" => wide_a.into_iter().map(Value::not).collect(),
        "$and" => each(Value::and),
        "$or" => each(Value::or),
        "$xor" => each(Value::xor),
        "$mux" => a
            .iter()
            .zip(&b)
            .map(|(&a, &b)| chosen(s[0], a, b))
            .collect(),
        "$pmux" => (0..a.len())
            .map(|i| {
                let cases = s.iter().zip(b.chunks(a.len()));
                let cases = cases.filter(|(s, _)| matches!(s, One | Any));
                let default = if s.contains(&One) { None } else { a[i] };
                cases.fold(default, |value, (_, case)| value.join(case[i]))
            })
            .collect(),
        "$logic_not" => truth(any(&a).not(), y),
        "$logic_and" => truth(any(&a).and(any(&b)), y),
        "$logic_or" => truth(any(&a).or(any(&b)), y),
        "$reduce_or" | "$reduce_bool" => truth(any(&a), y),
        "$reduce_and" => truth(all(&a), y),
        "$eq" => truth(any(&differences(&a, &b)).not(), y),
        "$ne" => truth(any(&differences(&a, &b)), y),
        "$add" => sum(&wide_a, &wide_b, Zero),
        "$sub" => {
            let b: Vec<_> = wide_b.into_iter().map(Value::not).collect();
            sum(&wide_a, &b, One)
        }
        "$shl" => joined(y.len(), |i| wide_a[..=i].to_vec()),
        "$shr" => joined(y.len(), |i| a.iter().skip(i).copied().collect()),
        "$dff" | "$dffe" | "$sdff" | "$sdffe" | "$sdffce" => return register(cell, nets),
        "$mem_v2" => return memory(cell, nets),
        _ => return anything(cell, nets),
    };
    for (&bit, value) in y.iter().zip(out) {
        nets.join(bit, value);
    }
}

fn flag(cell: &Cell, name: &str) -> bool {
    let value = cell.parameters.get(name);
    value.is_some_and(|value| value.ends_with('1'))
}

/// The value of a choice that is 1 for `b`.
fn chosen(s: Value, a: Value, b: Value) -> Value {
    match s {
        None => None,
        Zero => a,
        One => b,
        Any => a.join(b),
    }
}

/// A truth value in the lowest bit.
fn truth(value: Value, y: &[Bit]) -> Vec<Value> {
    let mut out = vec![Zero; y.len()];
    out[0] = value;
    out
}

/// Where two numbers without sign differ.
fn differences(a: &[Value], b: &[Value]) -> Vec<Value> {
    let at = |values: &[Value], i: usize| values.get(i).copied().unwrap_or(Zero);
    let places = 0..a.len().max(b.len());
    places.map(|i| at(a, i).xor(at(b, i))).collect()
}

/// A shift by any number of places: of each bit what can come there, or a 0.
fn joined(len: usize, from: impl Fn(usize) -> Vec<Value>) -> Vec<Value> {
    let bits = (0..len).map(from);
    bits.map(|bits| bits.into_iter().fold(Zero, Value::join))
        .collect()
}

fn sum(a: &[Value], b: &[Value], mut carry: Value) -> Vec<Value> {
    let mut out = Vec::new();
    for (&a, &b) in a.iter().zip(b) {
        out.push(a.xor(b).xor(carry));
        carry = a.and(b).or(carry.and(a.or(b)));
    }
    out
}

/// Values of a parameter, the lowest bit first.
fn parameter<'a>(cell: &'a Cell, name: &str) -> impl Iterator<Item = Value> + 'a {
    let bits = cell.parameters.get(name).map_or("", String::as_str);
    bits.bytes().rev().map(|bit| match bit {
        b'0' => Zero,
        b'1' => One,
        _ => None,
    })
}

/// A register begins at 0, the default of the simulation and of the device, and holds what it is given and
/// the value of its reset.
fn register(cell: &Cell, nets: &mut Nets) {
    let (d, q) = (&cell.connections["D"], &cell.connections["Q"]);
    for (&d, &q) in d.iter().zip(q) {
        let value = nets.get(d);
        nets.join(q, value.join(Zero));
    }
    for (&q, value) in q.iter().zip(parameter(cell, "SRST_VALUE")) {
        nets.join(q, value);
    }
}

/// A bit of a memory begins as a register does, and holds what any port writes into that bit of any word: a queue of LUT RAM
/// shows a word before it is written.
fn memory(cell: &Cell, nets: &mut Nets) {
    let (written, read) = (&cell.connections["WR_DATA"], &cell.connections["RD_DATA"]);
    let width = cell.parameters.get("WIDTH");
    let width = width.and_then(|width| usize::from_str_radix(width, 2).ok());
    let width = width.unwrap_or(1);
    let mut word = vec![Zero; width];
    for (i, &bit) in written.iter().enumerate() {
        word[i % width] = word[i % width].join(nets.get(bit));
    }
    for name in ["INIT", "RD_INIT_VALUE", "RD_ARST_VALUE", "RD_SRST_VALUE"] {
        for (i, value) in parameter(cell, name).enumerate() {
            word[i % width] = word[i % width].join(value);
        }
    }
    for (i, &bit) in read.iter().enumerate() {
        nets.join(bit, word[i % width]);
    }
}

/// What is not known of a cell: all that it puts out can be anything.
fn anything(cell: &Cell, nets: &mut Nets) {
    for (name, bits) in &cell.connections {
        if cell.port_directions.get(name).is_none_or(|d| d != "input") {
            for &bit in bits {
                nets.join(bit, Any);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_more_states_are_never_fewer() {
        let all = [Zero, One, Any];
        for op in [Value::and, Value::or, Value::xor, Value::join] {
            for a in all {
                for b in all {
                    let value = op(a, b);
                    assert_eq!(value, op(b, a));
                    for more in all {
                        let wider = op(a.join(more), b);
                        assert_eq!(wider.join(value), wider, "{a:?} {b:?} and {more:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_sum_of_short_numbers_has_one_bit_more() {
        let short = [Any, Any, Zero, Zero, Zero];
        assert_eq!(sum(&short, &short, Zero), [Any, Any, Any, Zero, Zero]);
        assert_eq!(sum(&[One, Zero], &[Zero, One], One), [Zero, Zero]);
    }
}
