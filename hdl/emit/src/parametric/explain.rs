//! Numbers of several modules as one expression of their parameters.
use std::collections::HashSet;

use num_bigint::BigUint;

use super::Kind;
use super::token::{Num, Place};
use crate::print::{indent, literal};
use crate::value;

/// A parameter, and its value in each module.
struct Parameter {
    name: String,
    width: Option<usize>,
    values: Vec<Num>,
    used: bool,
}

/// An expression, as it is written and as it is worked out.
#[derive(Clone, Debug)]
pub(super) enum Expr {
    Same(Num),
    /// A parameter of its own kind, with its bits.
    Of(usize),
    Shaped(Term, Shape),
    /// As many bits as that: all 0, all 1, or the number 1.
    Zeros(Box<Expr>),
    Ones(Box<Expr>),
    One(Box<Expr>),
}

/// A parameter, or a number if that is more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Term {
    of: usize,
    least: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Shape {
    Plus(i64),
    Times(u64),
    /// `(times << term) - less`, of so many bits.
    Shifted {
        times: u64,
        less: u64,
        width: Option<usize>,
    },
}

/// With where it stands.
#[derive(Clone, Debug)]
pub(super) struct Explained {
    pub(super) expr: Expr,
    pub(super) place: Place,
}

/// The parameters of a group, and the names that its text has for other things.
pub(super) struct Parameters(Vec<Parameter>, HashSet<String>);

/// Powers of two of an integer parameter.
const INTEGER_BITS: u64 = 31;

impl Parameters {
    /// The sizes of the modules of one block, of which `text` is one, if their names are free.
    pub(super) fn of<'a>(kinds: impl Iterator<Item = &'a Kind>, text: &str) -> Option<Self> {
        let taken: HashSet<String> = super::token::names(text).map(Into::into).collect();
        let kinds: Vec<_> = kinds.collect();
        let names = kinds[0].sizes.iter().map(|(name, _)| name);
        let parameters = names.enumerate().map(|(at, name)| Parameter {
            name: name.clone(),
            width: None,
            values: kinds.iter().map(|k| plain(k.sizes[at].1)).collect(),
            used: false,
        });
        let parameters: Vec<_> = parameters.collect();
        let free = parameters.iter().all(|p| !taken.contains(&p.name));
        free.then_some(Self(parameters, taken))
    }

    /// Values in the `nth` module of those that the text needs.
    pub(super) fn values(&self, nth: usize) -> Vec<(String, Num)> {
        let used = self.0.iter().filter(|p| p.used);
        used.map(|p| (p.name.clone(), p.values[nth].clone()))
            .collect()
    }

    /// The list behind the name of the module.
    pub(super) fn list(&self) -> String {
        let used = self.0.iter().filter(|p| p.used).map(|p| {
            let range = p
                .width
                .map(|w| format!("[{}:0] ", w - 1))
                .unwrap_or_default();
            let pad = indent(1);
            format!("{pad}parameter {range}{} = {}", p.name, p.values[0].text)
        });
        let lines: Vec<_> = used.collect();
        match lines.is_empty() {
            true => String::new(),
            false => format!(" #(\n{}\n)", lines.join(",\n")),
        }
    }

    /// One expression for the numbers that stand at one place of the modules.
    pub(super) fn explain(&mut self, nums: Vec<Num>, place: &Place) -> Option<Explained> {
        let expr = self.find(&nums, place)?;
        self.mark(&expr);
        let place = place.clone();
        Some(Explained { expr, place })
    }

    fn find(&mut self, nums: &[Num], place: &Place) -> Option<Expr> {
        let first = &nums[0];
        if nums.iter().all(|num| num == first) {
            return Some(Expr::Same(first.clone()));
        }
        let Some(width) = first.width else {
            let values: Option<Vec<u64>> =
                nums.iter().map(|n| u64::try_from(&n.value).ok()).collect();
            let found = self.plain(&values?);
            return found.or_else(|| self.own(nums, None, place));
        };
        if nums.iter().all(|n| n.width == first.width) {
            let found = self.sized(nums, width);
            return found.or_else(|| self.own(nums, Some(width), place));
        }
        let widths: Vec<u64> = nums.iter().filter_map(|n| Some(n.width? as u64)).collect();
        let all = |test: &dyn Fn(&Num) -> bool| nums.iter().all(test);
        let one = BigUint::from(1u8);
        let make: fn(Box<Expr>) -> Expr = if all(&|n| n.value == BigUint::ZERO) {
            Expr::Zeros
        } else if all(&|n| n.value == value::ones(n.width.unwrap_or(0))) {
            Expr::Ones
        } else if all(&|n| n.value == one && n.width > Some(1)) {
            Expr::One
        } else {
            return None;
        };
        Some(make(Box::new(self.plain(&widths)?)))
    }

    /// Of the sizes, each as it is, and as the more of it and a number.
    fn terms(&self) -> impl Iterator<Item = (Term, Vec<u64>, usize)> {
        let sizes = self.0.iter().enumerate().filter(|(_, p)| p.width.is_none());
        sizes.flat_map(|(of, p)| {
            let values: Vec<u64> = p
                .values
                .iter()
                .map(|n| u64::try_from(&n.value).unwrap_or(u64::MAX))
                .collect();
            let mut distinct = values.clone();
            distinct.sort_unstable();
            distinct.dedup();
            let count = distinct.len();
            let inner = if count > 2 {
                &distinct[1..count - 1]
            } else {
                &[]
            };
            let whole = std::iter::once(None);
            let least: Vec<_> = whole.chain(inner.iter().copied().map(Some)).collect();
            least.into_iter().map(move |least| {
                let values = values.iter().map(|v| least.map_or(*v, |l| l.max(*v)));
                (Term { of, least }, values.collect(), count)
            })
        })
    }

    fn plain(&self, wanted: &[u64]) -> Option<Expr> {
        self.terms().find_map(|(term, values, count)| {
            let more = wanted[0] as i64 - values[0] as i64;
            // two modules lie on a line by accident
            let sure = count > 2;
            let times = wanted[0].checked_div(values[0]).unwrap_or(0);
            let shift = |less| Shape::Shifted {
                times: 1,
                less,
                width: None,
            };
            let mut shapes = vec![Shape::Plus(0), Shape::Plus(-1), shift(0), shift(1)];
            if sure || more == 1 {
                shapes.push(Shape::Plus(more));
            }
            if sure && times > 1 {
                shapes.push(Shape::Times(times));
            }
            let fits = |shape: &Shape| {
                let pairs = values.iter().zip(wanted);
                pairs
                    .into_iter()
                    .all(|(v, w)| shape.value(*v) == Some((*w).into()))
            };
            Some(Expr::Shaped(term, shapes.into_iter().find(fits)?))
        })
    }

    fn sized(&self, wanted: &[Num], width: usize) -> Option<Expr> {
        self.terms().find_map(|(term, values, _)| {
            let shape = |times, less| Shape::Shifted {
                times,
                less,
                width: Some(width),
            };
            let shapes = [shape(1, 0), shape(1, 1), shape(2, 0), shape(2, 1)];
            let fits = |shape: &Shape| {
                let pairs = values.iter().zip(wanted);
                pairs
                    .into_iter()
                    .all(|(v, w)| shape.value(*v).as_ref() == Some(&w.value))
            };
            Some(Expr::Shaped(term, shapes.into_iter().find(fits)?))
        })
    }

    /// A parameter of its own for a number that has a name.
    fn own(&mut self, nums: &[Num], width: Option<usize>, place: &Place) -> Option<Expr> {
        let plain = place.name.as_ref()?.to_uppercase();
        let same = |p: &Parameter| p.width == width && p.values == nums;
        if let Some(known) = self.0.iter().position(same) {
            return Some(Expr::Of(known));
        }
        let is_free =
            |name: &String| !self.1.contains(name) && self.0.iter().all(|p| p.name != *name);
        let name = [plain.clone(), plain + "_VALUE"]
            .into_iter()
            .find(is_free)?;
        self.0.push(Parameter {
            name,
            width,
            values: nums.to_vec(),
            used: false,
        });
        Some(Expr::Of(self.0.len() - 1))
    }

    fn mark(&mut self, expr: &Expr) {
        match expr {
            Expr::Same(_) => {}
            Expr::Of(of) | Expr::Shaped(Term { of, .. }, _) => self.0[*of].used = true,
            Expr::Zeros(bits) | Expr::Ones(bits) | Expr::One(bits) => self.mark(bits),
        }
    }

    /// As it is written.
    pub(super) fn text(&self, explained: &Explained) -> String {
        let text = self.expr(&explained.expr);
        let single = match &explained.expr {
            Expr::Shaped(term, Shape::Plus(0)) => term.least.is_none(),
            Expr::Shaped(..) => false,
            _ => true,
        };
        match single || explained.place.alone {
            true => text,
            false => format!("({text})"),
        }
    }

    fn expr(&self, expr: &Expr) -> String {
        let brackets = |bits: &Expr| match bits {
            Expr::Shaped(Term { least: None, .. }, Shape::Plus(0)) | Expr::Of(_) => self.expr(bits),
            _ => format!("({})", self.expr(bits)),
        };
        match expr {
            Expr::Same(num) => num.text.clone(),
            Expr::Of(of) => self.0[*of].name.clone(),
            Expr::Zeros(bits) => format!("{{{}{{1'b0}}}}", brackets(bits)),
            Expr::Ones(bits) => format!("{{{}{{1'b1}}}}", brackets(bits)),
            Expr::One(bits) => format!("{{{{({}-1){{1'b0}}}}, 1'b1}}", brackets(bits)),
            Expr::Shaped(term, shape) => {
                let name = &self.0[term.of].name;
                let term = match term.least {
                    None => name.clone(),
                    Some(least) => format!("({name} > {least} ? {name} : {least})"),
                };
                shape.text(&term)
            }
        }
    }

    /// Worked out with these values.
    pub(super) fn value(&self, expr: &Expr, values: &[(String, Num)]) -> Option<Num> {
        let of = |of: usize| {
            let name = &self.0[of].name;
            values.iter().find(|(n, _)| n == name).map(|(_, num)| num)
        };
        let bits = |bits: &Expr| usize::try_from(&self.value(bits, values)?.value).ok();
        Some(match expr {
            Expr::Same(num) => num.clone(),
            Expr::Of(parameter) => of(*parameter)?.clone(),
            Expr::Zeros(width) => sized(bits(width)?, BigUint::ZERO),
            Expr::Ones(width) => sized(bits(width)?, value::ones(bits(width)?)),
            Expr::One(width) => sized(bits(width)?, 1u8.into()),
            Expr::Shaped(term, shape) => {
                let value = u64::try_from(&of(term.of)?.value).ok()?;
                let value = shape.value(value.max(term.least.unwrap_or(0)))?;
                match shape {
                    Shape::Shifted {
                        width: Some(width), ..
                    } => sized(*width, value),
                    _ => Num {
                        width: None,
                        text: value.to_string(),
                        value,
                    },
                }
            }
        })
    }
}

impl Shape {
    fn value(&self, term: u64) -> Option<BigUint> {
        match self {
            Self::Plus(more) => Some(term.checked_add_signed(*more)?.into()),
            Self::Times(times) => Some(term.checked_mul(*times)?.into()),
            Self::Shifted { width: None, .. } if term >= INTEGER_BITS => None,
            Self::Shifted {
                width: None,
                times,
                less,
            } => Some(((times << term) - less).into()),
            Self::Shifted {
                width: Some(width),
                times,
                less,
            } => {
                let wrap = BigUint::from(1u8) << *width;
                let shifted = BigUint::from(*times) << term;
                Some((shifted % &wrap + &wrap - *less) % &wrap)
            }
        }
    }

    fn text(&self, term: &str) -> String {
        let number = |width: &Option<usize>, value: u64| match width {
            Some(width) => literal(*width, &value.into()),
            None => value.to_string(),
        };
        match self {
            Self::Plus(0) => term.into(),
            Self::Plus(more) => format!("{term}{more:+}"),
            Self::Times(times) => format!("{times}*{term}"),
            Self::Shifted { times, less, width } => {
                let shifted = format!("{} << {term}", number(width, *times));
                match less {
                    0 => shifted,
                    less => format!("({shifted}) - {}", number(width, *less)),
                }
            }
        }
    }
}

fn plain(value: u64) -> Num {
    Num {
        width: None,
        value: value.into(),
        text: value.to_string(),
    }
}

fn sized(width: usize, value: BigUint) -> Num {
    Num {
        width: Some(width),
        text: literal(width, &value),
        value,
    }
}
