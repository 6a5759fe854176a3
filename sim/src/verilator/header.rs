//! The ports of a verilated model, read from the class header that Verilator wrote.
//!
//! The port list of a [`Spec`] is checked against it, so that the addresses and widths the
//! harness works with are the model's own.

use super::Error;
use super::spec::{Direction, Spec};

/// A port as Verilator declares it.
#[derive(Debug, PartialEq, Eq)]
struct Declared<'a> {
    /// Name in the Verilog.
    name: String,
    /// Name of the C++ member.
    member: &'a str,
    width: usize,
    direction: Direction,
}

/// The C++ members of the ports of `spec`, in its order.
pub(super) fn members(spec: &Spec, header: &str) -> Result<Vec<String>, Error> {
    let mismatch = |what| spec.mismatch(what);
    let mut declared = header
        .lines()
        .filter_map(|line| declaration(line.trim()))
        .collect::<Result<Vec<_>, String>>()
        .map_err(mismatch)?;
    let mut members = Vec::with_capacity(spec.ports.len());
    for port in &spec.ports {
        let at = declared
            .iter()
            .position(|d| d.name == port.name)
            .ok_or_else(|| {
                mismatch(format!(
                    "`{}` is listed and the module has no such port",
                    port.name
                ))
            })?;
        let found = declared.swap_remove(at);
        if (found.width, found.direction) != (port.width, port.direction) {
            return Err(mismatch(format!(
                "`{}` is listed as {} of {} bits and is an {} of {} bits",
                port.name, port.direction, port.width, found.direction, found.width
            )));
        }
        members.push(found.member.to_owned());
    }
    if let Some(extra) = declared.first() {
        return Err(mismatch(format!(
            "{} `{}` of {} bits is not listed",
            extra.direction, extra.name, extra.width
        )));
    }
    Ok(members)
}

/// Parses `VL_IN8(&name,msb,lsb);`, `VL_OUTW(&name,msb,lsb,words);` and their like.
fn declaration(line: &str) -> Option<Result<Declared<'_>, String>> {
    let (kind, rest) = line.strip_prefix("VL_")?.split_once("(&")?;
    let direction = match kind.trim_end_matches(['8', '1', '6', '4', 'W']) {
        "IN" => Direction::Input,
        "OUT" => Direction::Output,
        "INOUT" => {
            let name = rest.split(',').next().unwrap_or_default();
            return Some(Err(format!(
                "`{name}` is an inout; only inputs and outputs can be driven from outside"
            )));
        }
        _ => return None,
    };
    let mut parts = rest.split([',', ')']);
    let member = parts.next()?;
    let msb: usize = parts.next()?.parse().ok()?;
    let lsb: usize = parts.next()?.parse().ok()?;
    Some(Ok(Declared {
        name: verilog_name(member),
        member,
        width: msb.abs_diff(lsb) + 1,
        direction,
    }))
}

/// Undoes Verilator's encoding of identifiers: `__0XX` is the character of hex code XX, `__SYM__`
/// marks a C++ keyword.
fn verilog_name(member: &str) -> String {
    let mut rest = member.strip_prefix("__SYM__").unwrap_or(member);
    let mut name = String::with_capacity(rest.len());
    while let Some(at) = rest.find("__0") {
        let code = rest
            .get(at + 3..at + 5)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        let (keep, skip) = match code {
            Some(_) => (at, at + 5),
            None => (at + 3, at + 3),
        };
        name.push_str(&rest[..keep]);
        name.extend(code.map(char::from));
        rest = &rest[skip..];
    }
    name + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_decoded() {
        for (member, name) in [
            ("s_valid", "s_valid"),
            ("s__024v___05Fx_", "s$v__x_"),
            ("__SYM__short", "short"),
            ("a__0zz", "a__0zz"),
        ] {
            assert_eq!(verilog_name(member), name);
        }
    }

    #[test]
    fn declarations_are_read() {
        let port = |line| declaration(line).unwrap().unwrap();
        let wide = port("VL_INW(&s_data,511,0,16);");
        assert_eq!((wide.width, wide.direction), (512, Direction::Input));
        let long = port("VL_OUT64(&m_z,39,0);");
        assert_eq!(
            (long.member, long.width, long.direction),
            ("m_z", 40, Direction::Output)
        );
        assert_eq!(port("VL_IN16(&a,15,0);").width, 16);
        assert_eq!(port("VL_IN(&a,31,0);").width, 32);
        assert!(declaration("VL_INOUT8(&pad,0,0);").unwrap().is_err());
        assert!(declaration("VL_UNCOPYABLE(Vmodel);").is_none());
    }
}
