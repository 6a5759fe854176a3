//! The prefix form of `ferroce-kernel`, read: `(assign (p q3 psn) (p m2 psn))`.

/// A node of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sx {
    Atom(String),
    Text(String),
    List(Vec<Sx>),
}

impl Sx {
    pub(super) fn head(&self) -> &str {
        match self {
            Self::List(parts) => parts.first().map_or("", Self::atom),
            _ => "",
        }
    }

    pub(super) fn atom(&self) -> &str {
        match self {
            Self::Atom(text) | Self::Text(text) => text,
            Self::List(_) => "",
        }
    }

    pub(super) fn rest(&self) -> &[Sx] {
        match self {
            Self::List(parts) => &parts[1..],
            _ => &[],
        }
    }

    /// Reads the signal or local called `root`, or a part of it.
    pub(super) fn reads(&self, root: &str) -> bool {
        match (self.head(), self.rest()) {
            ("p" | "v", [first, ..]) => first.atom().split('[').next() == Some(root),
            (_, parts) => parts.iter().any(|p| p.reads(root)),
        }
    }
}

/// Reads the prefix form.
pub(super) fn parse(text: &str) -> Sx {
    let mut open: Vec<Vec<Sx>> = vec![vec![]];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let top = open.last_mut().expect("brackets match");
        match c {
            '(' => open.push(vec![]),
            ')' => {
                let list = open.pop().expect("brackets match");
                open.last_mut()
                    .expect("brackets match")
                    .push(Sx::List(list));
            }
            '"' => {
                let mut word = String::new();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    word.push(if c == '\\' {
                        chars.next().unwrap_or('\\')
                    } else {
                        c
                    });
                }
                top.push(Sx::Text(word));
            }
            c if c.is_whitespace() => {}
            c => {
                let mut word = String::from(c);
                // an index may hold brackets: `u[(i+1)*2]`
                let mut depth = usize::from(c == '[');
                while let Some(c) =
                    chars.next_if(|c| depth > 0 || !c.is_whitespace() && !"()".contains(*c))
                {
                    depth = depth + usize::from(c == '[') - usize::from(c == ']');
                    word.push(c);
                }
                top.push(Sx::Atom(word));
            }
        }
    }
    open.pop()
        .and_then(|mut all| all.pop())
        .expect("the text holds a list")
}
