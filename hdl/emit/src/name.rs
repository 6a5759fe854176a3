//! Names: from the paths of Rust fields to Verilog identifiers.
use std::collections::HashSet;
use std::sync::LazyLock;

use super::error::Reason;

/// What the names of modules begin with: beside other libraries in one project no two modules may have one name.
const PREFIX: &str = "ferroce_";
/// The block that has the project's name itself.
const WHOLE: &str = "ferroce";

/// The name of the module of a block.
pub(crate) fn module(block: &str) -> String {
    match block {
        WHOLE => WHOLE.into(),
        _ => format!("{PREFIX}{block}"),
    }
}

/// The name of the block of a module, for tables in which the prefix says nothing.
pub fn block_of(module: &str) -> &str {
    module.strip_prefix(PREFIX).unwrap_or(module)
}

/// Separates the segments of a path inside rust-hdl: `s$payload`, `stage$0$clock$clk`.
pub(crate) const SEPARATOR: char = '$';

/// The Verilog name of a signal with path `key`.
///
/// Segments are joined by `_`. The clock interface does not show: `clock$clk` is `clk`, `rx_clock$rst` is `rx_rst`.
pub(crate) fn verilog(key: &str) -> String {
    let mut segments: Vec<&str> = key.split(SEPARATOR).collect();
    let count = segments.len();
    if count > 1 && matches!(segments[count - 1], "clk" | "rst") {
        let interface = segments[count - 2];
        if let Some(rest) = interface.strip_suffix("clock") {
            segments[count - 2] = rest.trim_end_matches('_');
        }
    }
    segments.retain(|s| !s.is_empty());
    segments.join("_")
}

/// The name of the instance of a child with path `key`. The prefix keeps it apart from the ports of its module.
pub(crate) fn instance(key: &str) -> String {
    format!("u_{}", verilog(key))
}

/// The path as it is written in Rust: `stage$0$clock` is `stage[0].clock`.
pub(crate) fn rust(key: &str) -> String {
    let mut text = String::new();
    for segment in key.split(SEPARATOR) {
        if !text.is_empty() && segment.bytes().all(|b| b.is_ascii_digit()) {
            text.push_str(&format!("[{segment}]"));
        } else {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(segment);
        }
    }
    text
}

/// Refuses what is no identifier of Verilog and SystemVerilog.
pub(crate) fn check(name: &str) -> Result<(), Reason> {
    let head = name
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !head || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(Reason::BadName(name.into(), "letters, digits and _ only"));
    }
    if KEYWORDS.contains(name) {
        return Err(Reason::BadName(name.into(), "a keyword"));
    }
    Ok(())
}

/// Keywords of IEEE 1800-2017 (annex B), which include those of Verilog-2001.
static KEYWORDS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| KEYWORD_LIST.split_whitespace().collect());

const KEYWORD_LIST: &str = "\
    accept_on alias always always_comb always_ff always_latch and assert assign assume automatic before begin bind \
    bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class clocking cmos config \
    const constraint context continue cover covergroup coverpoint cross deassign default defparam design disable \
    dist do edge else end endcase endchecker endclass endclocking endconfig endfunction endgenerate endgroup \
    endinterface endmodule endpackage endprimitive endprogram endproperty endsequence endspecify endtable endtask \
    enum event eventually expect export extends extern final first_match for force foreach forever fork forkjoin \
    function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies import \
    incdir include initial inout input inside instance int integer interconnect interface intersect join join_any \
    join_none large let liblist library local localparam logic longint macromodule matches medium modport module \
    nand negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed \
    parameter pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup \
    pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg \
    reject_on release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually s_nexttime \
    s_until s_until_with scalared sequence shortint shortreal showcancelled signed small soft solve specify \
    specparam static string strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on table \
    tagged task this throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg \
    type typedef union unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait \
    wait_order wand weak weak0 weak1 while wildcard wire with within wor xnor xor";

/// The value of a loop variable or constant.
pub(crate) type Known<'a> = &'a dyn Fn(&str) -> Option<usize>;

/// Replaces every `[..]` of a path by its value: `u[i*2+1]$d` with i = 3 is `u$7$d`.
pub(crate) fn resolve_indices(path: &str, known: Known) -> Result<String, Reason> {
    let mut out = String::new();
    let mut rest = path;
    while let Some(open) = rest.find('[') {
        let close = open
            + rest[open..]
                .find(']')
                .ok_or_else(|| Reason::DynamicIndex(rest[open..].into()))?;
        let text = &rest[open + 1..close];
        let value = Index {
            text,
            rest: text,
            known,
        }
        .value()
        .ok_or_else(|| Reason::DynamicIndex(text.replace(SEPARATOR, ".")))?;
        out.push_str(&rest[..open]);
        out.push(SEPARATOR);
        out.push_str(&value.to_string());
        rest = &rest[close + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// The arithmetic of an array index: integers, loop variables, `+ - * / %` and brackets.
struct Index<'a> {
    text: &'a str,
    rest: &'a str,
    known: Known<'a>,
}

impl Index<'_> {
    fn value(mut self) -> Option<usize> {
        let value = self.sum()?;
        debug_assert!(self.text.ends_with(self.rest));
        self.rest.is_empty().then_some(value)
    }

    fn take(&mut self, any_of: &[char]) -> Option<char> {
        let next = self.rest.chars().next().filter(|c| any_of.contains(c))?;
        self.rest = &self.rest[1..];
        Some(next)
    }

    fn sum(&mut self) -> Option<usize> {
        let mut value = self.product()?;
        while let Some(op) = self.take(&['+', '-']) {
            let right = self.product()?;
            value = if op == '+' {
                value.checked_add(right)?
            } else {
                value.checked_sub(right)?
            };
        }
        Some(value)
    }

    fn product(&mut self) -> Option<usize> {
        let mut value = self.atom()?;
        while let Some(op) = self.take(&['*', '/', '%']) {
            let right = self.atom()?;
            value = match op {
                '*' => value.checked_mul(right)?,
                '/' => value.checked_div(right)?,
                _ => value.checked_rem(right)?,
            };
        }
        Some(value)
    }

    fn atom(&mut self) -> Option<usize> {
        if self.take(&['(']).is_some() {
            let value = self.sum()?;
            self.take(&[')'])?;
            return Some(value);
        }
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && !"_$".contains(c));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (self.known)(word).or_else(|| super::value::parse_integer(word)?.try_into().ok())
    }
}
