//! Byte diagrams and tables of structures.

use std::fmt::Write as _;

use ferroce_proto::abi::{Field, Structure};

use super::prose;

/// Bits of a row.
const ROW: usize = 32;
/// Characters of a bit, its border included.
const CELL: usize = 2;

/// A run of bits of one field in a row; `name` is empty where no field is.
struct Piece<'a> {
    low: usize,
    width: usize,
    name: &'a str,
    /// The lowest bit of the field that is here, and whether the field has others in another row.
    part: (usize, bool),
}

/// A diagram with a row for each four bytes and bit 31 on the left, then a table of the fields.
pub(super) fn describe(structure: &Structure) -> String {
    let mut text = String::from("```text\n");
    let ruler: String = (0..ROW)
        .rev()
        .map(|bit| match bit {
            31 | 24 | 16 | 8 | 0 => format!("{bit:>CELL$}"),
            _ => " ".repeat(CELL),
        })
        .collect();
    let _ = writeln!(text, "byte {ruler}");
    let used = structure.fields.last().map_or(0, |f| f.lsb + f.width);
    let rows = used.div_ceil(ROW);
    let mut letters = ('a'..='z').cycle();
    let mut legend = Vec::new();
    for row in 0..rows {
        let pieces = pieces(structure.fields, row * ROW);
        let _ = writeln!(text, "     {}", border(&pieces));
        let mut line = String::from("|");
        for piece in pieces.iter().rev() {
            let room = piece.width * CELL - 1;
            let name = label(piece, room, &mut letters, &mut legend);
            let _ = write!(line, "{name:^room$}|");
        }
        let _ = writeln!(text, "{:>4} {line}", row * ROW / 8);
    }
    let all = [Piece {
        low: 0,
        width: ROW,
        name: "",
        part: (0, false),
    }];
    let _ = writeln!(text, "     {}", border(&all));
    if rows * ROW / 8 < structure.bytes {
        let _ = writeln!(
            text,
            "     bytes {} to {}: 0",
            rows * ROW / 8,
            structure.bytes - 1
        );
    }
    for line in legend.chunks(4) {
        let _ = writeln!(text, "     {}", line.join(", "));
    }
    text += "```\n\n| field | byte.bit | bits | what |\n|---|---|---|---|\n";
    let named = structure
        .fields
        .iter()
        .filter(|f| !f.name.starts_with("rsv"));
    for field in named {
        let doc = prose(field.doc).replace('|', "\\|");
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {doc} |",
            field.name,
            place(field.lsb),
            field.width
        );
    }
    text
}

/// The byte of a bit, with the bit in it unless that is the first.
fn place(lsb: usize) -> String {
    match lsb % 8 {
        0 => (lsb / 8).to_string(),
        bit => format!("{}.{bit}", lsb / 8),
    }
}

/// What the 32 bits from `start` on hold, lowest first.
fn pieces(fields: &'static [Field], start: usize) -> Vec<Piece<'static>> {
    let end = start + ROW;
    let mut pieces = Vec::new();
    let mut at = start;
    for field in fields {
        let (low, high) = (field.lsb.max(start), (field.lsb + field.width).min(end));
        if low < high {
            pieces.push(Piece {
                low: low - start,
                width: high - low,
                name: field.name,
                part: (low - field.lsb, high - low < field.width),
            });
            at = high;
        }
    }
    if at < end {
        pieces.push(Piece {
            low: at - start,
            width: end - at,
            name: "rsv",
            part: (0, false),
        });
    }
    pieces
}

/// The line above a row.
fn border(pieces: &[Piece]) -> String {
    let mut line: Vec<u8> = vec![b'-'; ROW * CELL + 1];
    line[0] = b'+';
    for piece in pieces {
        line[(ROW - piece.low) * CELL] = b'+';
        line[(ROW - piece.low - piece.width) * CELL] = b'+';
    }
    String::from_utf8(line).expect("ASCII")
}

/// The name of a piece, or a letter that the legend explains.
fn label(
    piece: &Piece,
    room: usize,
    letters: &mut impl Iterator<Item = char>,
    legend: &mut Vec<String>,
) -> String {
    if piece.name.starts_with("rsv") {
        return "0".into();
    }
    let (low, partial) = piece.part;
    let name = match partial {
        true => format!("{}[{}:{low}]", piece.name, low + piece.width - 1),
        false => piece.name.into(),
    };
    if name.len() <= room {
        return name;
    }
    let letter = letters.next().expect("a cycle has no end");
    legend.push(format!("{letter} = {name}"));
    letter.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ferroce_proto::abi::{cq, wqe};

    #[test]
    fn the_first_row_of_a_send_wqe() {
        let text = describe(&wqe::SendWqe::STRUCTURE);
        let row = text.lines().find(|line| line.starts_with("   0 "));
        let row = row.expect("a row of bytes 0 to 3");
        assert!(
            row.starts_with("   0 |     slots     |    num_sge    |   0   |a|b|c|d|    opcode")
        );
        assert!(text.contains("a = inline_data, b = fence, c = solicited, d = signaled"));
        assert!(text.contains("| `fence` | 1.2 | 1 |"));
        assert!(text.contains(" remote_addr[31:0] "));
    }

    #[test]
    fn every_row_is_as_wide_as_the_others() {
        let text = describe(&cq::Cqe::STRUCTURE);
        let rows = text.lines().filter(|line| line.contains('+'));
        assert!(rows.map(str::len).all(|len| len == 5 + ROW * CELL + 1));
        assert_eq!(text.lines().filter(|l| l.contains("---+")).count(), 9);
    }
}
