//! One module for all sizes of a block.
//!
//! The modules of one block of which the texts differ in numbers only become one with parameters. Every number that
//! differs is an expression of the sizes of the block (`explain`), or a parameter of its own where it is a `localparam`
//! or the parameter of a sub-block; where neither is so the modules stay as they are. The net below it: a module with the
//! values of an instance put in must be the module of that size, word by word, at every emission.
mod explain;
mod token;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::str::FromStr;

use super::design::Module;
use super::name;
use explain::{Explained, Parameters};
use token::{Num, Token};

/// The block a module was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kind {
    /// Its name without sizes: `fifo`.
    pub block: String,
    /// Name and value of each size.
    pub sizes: Vec<(String, u64)>,
}

/// `fifo WIDTH=64 LOG_DEPTH=5`
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.block)?;
        self.sizes
            .iter()
            .try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let block = words.next().unwrap_or_default().into();
        let size = |word: &str| {
            let (name, value) = word.split_once('=')?;
            Some((name.into(), value.parse().ok()?))
        };
        let sizes = words.map(|word| size(word).ok_or_else(|| format!("{word}: not NAME=NUMBER")));
        Ok(Self {
            block,
            sizes: sizes.collect::<Result<_, _>>()?,
        })
    }
}

/// A module that stands for several.
struct Group {
    name: String,
    parameters: Parameters,
    pieces: Vec<Piece>,
}

/// Part of its text.
enum Piece {
    Text(String),
    /// The name of the module.
    Own,
    Num(Explained),
    /// A sub-block that has parameters: their names and values.
    Child(String, Vec<(String, Explained)>),
}

/// What stands for a module: the name of a group, and name and value of each parameter.
type Instance = (String, Vec<(String, Num)>);

/// `modules`, children before parents, with one for all sizes of a block where that can be.
///
/// # Panics
/// If a module with its parameters put in is not the one it stands for.
#[must_use]
pub fn parametric(modules: &[Module]) -> Vec<Module> {
    let mut blocks: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, module) in modules.iter().enumerate() {
        blocks.entry(&module.kind.block).or_default().push(index);
    }
    let mut work = Work {
        modules,
        found: (0..modules.len())
            .map(|i| (modules[i].name.as_str(), i))
            .collect(),
        blocks,
        done: HashMap::new(),
        recursive: HashSet::new(),
        instances: HashMap::new(),
        groups: BTreeMap::new(),
    };
    (0..modules.len()).for_each(|index| work.block(index));
    work.check();
    work.text()
}

struct Work<'a> {
    modules: &'a [Module],
    /// The modules by name.
    found: HashMap<&'a str, usize>,
    /// The modules of each block.
    blocks: BTreeMap<&'a str, Vec<usize>>,
    /// Blocks begun, and whether they are done.
    done: HashMap<&'a str, bool>,
    /// Blocks with blocks of their own kind below them: these stay as they are.
    recursive: HashSet<&'a str>,
    /// What stands for a module.
    instances: HashMap<&'a str, Instance>,
    /// By the first module they stand for.
    groups: BTreeMap<usize, Group>,
}

impl<'a> Work<'a> {
    /// Groups the modules of the block that the module `index` is of, behind those of its sub-blocks.
    fn block(&mut self, index: usize) {
        let modules = self.modules;
        let block = modules[index].kind.block.as_str();
        // a text of no block has no sizes
        if block.is_empty() || self.done.contains_key(block) {
            return;
        }
        self.done.insert(block, false);
        let members = self.blocks[block].clone();
        let mut children = vec![];
        for parent in &members {
            let names = token::names(&modules[*parent].text);
            let found = names.filter_map(|name| self.found.get(name).copied());
            children.extend(found.filter(|child| child != parent));
        }
        for child in children {
            self.block(child);
            let below = modules[child].kind.block.as_str();
            if self.done.get(below) == Some(&false) {
                self.recursive.insert(below);
            }
        }
        if self.recursive.contains(block) {
            self.done.insert(block, true);
            return;
        }
        let mut alike: BTreeMap<String, Vec<(usize, Vec<Token>)>> = BTreeMap::new();
        for index in members {
            let tokens = self.tokens(&modules[index]);
            let key = token::skeleton(&tokens);
            alike.entry(key).or_default().push((index, tokens));
        }
        let mut alike: Vec<_> = alike.into_values().filter(|v| v.len() > 1).collect();
        // the name goes to the one that stands for most
        alike.sort_by_key(|v| (std::cmp::Reverse(v.len()), v[0].0));
        for members in alike {
            self.group(&members);
        }
        self.done.insert(block, true);
    }

    fn tokens(&self, module: &Module) -> Vec<Token> {
        let child = |name: &str| self.instances.get(name).cloned();
        token::tokens(&module.text, &module.name, &child)
    }

    /// One module for `members`, if their numbers can be explained.
    fn group(&mut self, members: &[(usize, Vec<Token>)]) {
        let first = &self.modules[members[0].0];
        let kinds = members.iter().map(|(i, _)| &self.modules[*i].kind);
        let is_free = |name: &String| {
            !self.found.contains_key(name.as_str())
                && !self.groups.values().any(|g| g.name == *name)
        };
        let Some(name) = names(first, kinds.clone()).into_iter().find(is_free) else {
            return;
        };
        let Some(mut parameters) = Parameters::of(kinds, &first.text) else {
            return;
        };
        let mut pieces = vec![];
        for (at, token) in members[0].1.iter().enumerate() {
            let piece = match token {
                Token::Text(text) => Piece::Text(text.clone()),
                Token::Own => Piece::Own,
                Token::Num(_, place) => {
                    let nums = members.iter().map(|(_, t)| t[at].num().clone()).collect();
                    match parameters.explain(nums, place) {
                        Some(explained) => Piece::Num(explained),
                        None => return,
                    }
                }
                Token::Child(group, pins) => {
                    let explained = pins.iter().enumerate().map(|(pin, (name, _))| {
                        let nums = members.iter().map(|(_, t)| t[at].pin(pin).clone());
                        let place = token::Place::named(name);
                        Some((name.clone(), parameters.explain(nums.collect(), &place)?))
                    });
                    match explained.collect() {
                        Some(pins) => Piece::Child(group.clone(), pins),
                        None => return,
                    }
                }
            };
            pieces.push(piece);
        }
        for (nth, (index, _)) in members.iter().enumerate() {
            let instance = (name.clone(), parameters.values(nth));
            self.instances.insert(&self.modules[*index].name, instance);
        }
        let group = Group {
            name,
            parameters,
            pieces,
        };
        self.groups.insert(members[0].0, group);
    }

    /// Puts the values of every module into what stands for it and compares.
    fn check(&self) {
        let by_name: HashMap<&str, &Group> =
            self.groups.values().map(|g| (g.name.as_str(), g)).collect();
        for module in self.modules {
            let Some((group, values)) = self.instances.get(module.name.as_str()) else {
                continue;
            };
            let put_in = by_name[group.as_str()].with(values);
            assert!(
                put_in == Some(self.tokens(module)),
                "{group} with {values:?} is not {}",
                module.name
            );
        }
    }

    /// The modules that are left.
    fn text(&self) -> Vec<Module> {
        let mut out = vec![];
        for (index, module) in self.modules.iter().enumerate() {
            let kind = Kind {
                block: module.kind.block.clone(),
                sizes: vec![],
            };
            if let Some(group) = self.groups.get(&index) {
                out.push(Module {
                    name: group.name.clone(),
                    text: token::without_single_bits(&group.text()),
                    kind,
                });
            } else if !self.instances.contains_key(module.name.as_str()) {
                let text =
                    token::instances(&module.text, &|name| self.instances.get(name).cloned());
                out.push(Module {
                    name: module.name.clone(),
                    text,
                    kind: module.kind.clone(),
                });
            }
        }
        out
    }
}

impl Group {
    fn text(&self) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out += text,
                Piece::Own => out += &format!("{}{}", self.name, self.parameters.list()),
                Piece::Num(num) => out += &self.parameters.text(num),
                Piece::Child(group, pins) => {
                    let pins = pins.iter();
                    let pins = pins.map(|(name, e)| (name.as_str(), self.parameters.text(e)));
                    out += &token::child(group, pins);
                }
            }
        }
        out
    }

    /// Its words with the values of an instance.
    fn with(&self, values: &[(String, Num)]) -> Option<Vec<Token>> {
        let value = |e: &Explained| self.parameters.value(&e.expr, values);
        let word = |piece: &Piece| {
            Some(match piece {
                Piece::Text(text) => Token::Text(text.clone()),
                Piece::Own => Token::Own,
                Piece::Num(e) => Token::Num(value(e)?, e.place.clone()),
                Piece::Child(group, pins) => {
                    let pins = pins.iter();
                    let pins = pins.map(|(name, e)| Some((name.clone(), value(e)?)));
                    Token::Child(group.clone(), pins.collect::<Option<_>>()?)
                }
            })
        };
        self.pieces.iter().map(word).collect()
    }
}

/// Names for all sizes, the best first: that of one module without the words that have digits, and that with the sizes
/// which all have.
fn names<'a>(module: &Module, mut kinds: impl Iterator<Item = &'a Kind>) -> [String; 2] {
    let mut common = module.kind.sizes.clone();
    kinds
        .by_ref()
        .for_each(|kind| common.retain(|size| kind.sizes.contains(size)));
    let block = name::block_of(&module.name);
    let suffix = block.strip_prefix(&module.kind.block).unwrap_or_default();
    let words = suffix.split('_').filter(|w| !w.is_empty());
    let words = words.filter(|w| !w.bytes().any(|b| b.is_ascii_digit()));
    let name: Vec<_> = [module.kind.block.as_str()]
        .into_iter()
        .chain(words)
        .collect();
    let name = name::module(&name.join("_"));
    let sizes = common
        .iter()
        .map(|(size, value)| format!("_{}{value}", size.to_lowercase()));
    let with_sizes = name.clone() + &sizes.collect::<String>();
    [name, with_sizes]
}
