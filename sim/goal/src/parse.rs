//! The textual form of GOAL.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: send 8b to 1 tag 3 cpu 0 nic 0
//!   l2: calc 100
//!   l2 requires l1
//! }
//! ```
//!
//! A statement ends with its line. `from -1` and `tag -1` stand for any; `tag`, `cpu`
//! and `nic` come in this order and are 0 if they are left out; `calc` takes no tag
//! and no interface. Comments are those of C++. A label is known from its line on.
//! (LogGOPSim's `txt2bin`, and the generators of ATLAHS.)

use std::collections::BTreeMap;
use std::fmt;

use crate::goal::{Act, Goal, Label, Operation, Order, Rank};

/// What is wrong with a schedule's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// In this line, from 1.
    pub line: usize,
    /// What stands there, and what may.
    pub what: String,
}

impl Goal {
    /// Reads a schedule.
    ///
    /// # Errors
    ///
    /// The first line that is outside of the format.
    pub fn parse(text: &str) -> Result<Goal, ParseError> {
        let text = without_comments(text)?;
        let mut reader = Reader::default();
        for (number, line) in text.lines().enumerate() {
            let mut words = Words { rest: line };
            reader.line(&mut words).map_err(|what| ParseError {
                line: number + 1,
                what,
            })?;
        }
        reader.finish(text.lines().count().max(1))
    }
}

/// What was wanted, and what stood there.
type Read<T> = Result<T, String>;

#[derive(Default)]
struct Reader<'a> {
    goal: Option<Goal>,
    /// The rank whose braces are open.
    rank: Option<Rank>,
    /// The labels of that rank.
    labels: BTreeMap<&'a str, Label>,
    /// Which ranks have had their braces.
    seen: Vec<bool>,
}

impl<'a> Reader<'a> {
    fn line(&mut self, words: &mut Words<'a>) -> Read<()> {
        while let Some(word) = words.next() {
            match (self.rank, word) {
                (None, "num_ranks") => self.num_ranks(words)?,
                (None, "rank") => self.open(words)?,
                (None, other) => return Err(instead("num_ranks or rank", other)),
                (Some(_), "}") => self.rank = None,
                (Some(rank), word) => {
                    self.statement(rank, word, words)?;
                    return words.end();
                }
            }
        }
        Ok(())
    }

    fn num_ranks(&mut self, words: &mut Words<'a>) -> Read<()> {
        let count: u32 = words.number("the number of ranks")?;
        if self.goal.is_some() {
            return Err("num_ranks stands a second time".into());
        }
        if !(1..=MOST_RANKS).contains(&count) {
            return Err(format!("num_ranks is {count}, it takes 1 to {MOST_RANKS}"));
        }
        self.seen = vec![false; count as usize];
        self.goal = Some(Goal::new(count));
        Ok(())
    }

    fn open(&mut self, words: &mut Words<'a>) -> Read<()> {
        let rank: u32 = words.number("a rank")?;
        let ranks = self.ranks()?;
        if rank >= ranks {
            return Err(no_such_rank(rank, ranks));
        }
        if std::mem::replace(&mut self.seen[rank as usize], true) {
            return Err(format!("rank {rank} stands a second time"));
        }
        words.expect("{")?;
        self.rank = Some(rank);
        self.labels.clear();
        Ok(())
    }

    /// An operation, with its label or without, or a dependency.
    fn statement(&mut self, rank: Rank, word: &'a str, words: &mut Words<'a>) -> Read<()> {
        if OPERATIONS.contains(&word) {
            self.operation(rank, word, words)?;
            return Ok(());
        }
        let name = label(word, "an operation, a label or }")?;
        match words.next().unwrap_or_default() {
            ":" => {
                let word = words.next().unwrap_or_default();
                let added = self.operation(rank, word, words)?;
                match self.labels.insert(name, added) {
                    None => Ok(()),
                    Some(_) => Err(format!("label {name} stands a second time in its rank")),
                }
            }
            "requires" => self.dependency(rank, name, Order::AfterEnd, words),
            "irequires" => self.dependency(rank, name, Order::AfterBegin, words),
            other => Err(instead(":, requires or irequires", other)),
        }
    }

    fn operation(&mut self, rank: Rank, word: &str, words: &mut Words<'a>) -> Read<Label> {
        let operation = match word {
            "send" => self.message(words, "to")?,
            "recv" => self.message(words, "from")?,
            "calc" => {
                let ns = words.number_up_to("nanoseconds", MOST_NS)?;
                let mut calc = Operation::calc(ns);
                words.option("cpu", &mut calc.cpu)?;
                calc
            }
            other => return Err(instead("send, recv or calc", other)),
        };
        Ok(self.goal()?.add(rank, operation))
    }

    /// `8b to 1 tag 2 cpu 3 nic 4`, of which the last three may be left out.
    fn message(&self, words: &mut Words<'a>, preposition: &str) -> Read<Operation> {
        let bytes = words.number_up_to("bytes", MOST_BYTES)?;
        words.expect("b")?;
        words.expect(preposition)?;
        let act = match (preposition, words.peek()) {
            ("from", "-1") => {
                words.next();
                Act::Recv(None)
            }
            ("from", _) => Act::Recv(Some(self.peer(words)?)),
            _ => Act::Send(self.peer(words)?),
        };
        let mut operation = Operation::new(act, bytes);
        if words.take("tag") {
            operation.tag = match words.take("-1") {
                true => None,
                false => Some(words.number("a tag")?),
            };
        }
        words.option("cpu", &mut operation.cpu)?;
        words.option("nic", &mut operation.nic)?;
        if operation.tag.is_none() && matches!(act, Act::Send(_)) {
            return Err("a message has a tag of its own; only a recv takes tag -1".into());
        }
        Ok(operation)
    }

    fn peer(&self, words: &mut Words<'a>) -> Read<Rank> {
        let rank: u32 = words.number("a rank")?;
        let ranks = self.ranks()?;
        match rank < ranks {
            true => Ok(rank),
            false => Err(no_such_rank(rank, ranks)),
        }
    }

    fn dependency(
        &mut self,
        rank: Rank,
        later: &str,
        order: Order,
        words: &mut Words<'a>,
    ) -> Read<()> {
        let earlier = label(words.next().unwrap_or_default(), "a label")?;
        let (later, earlier) = (self.known(later)?, self.known(earlier)?);
        self.goal()?.require(rank, later, earlier, order);
        Ok(())
    }

    fn known(&self, label: &str) -> Read<Label> {
        let found = self.labels.get(label).copied();
        found.ok_or_else(|| format!("label {label} doesn't stand above in its rank"))
    }

    fn goal(&mut self) -> Read<&mut Goal> {
        self.goal.as_mut().ok_or_else(|| NO_RANKS.into())
    }

    fn ranks(&self) -> Read<u32> {
        self.goal
            .as_ref()
            .map(Goal::ranks)
            .ok_or_else(|| NO_RANKS.into())
    }

    fn finish(self, last_line: usize) -> Result<Goal, ParseError> {
        let wrong = |what: String| ParseError {
            line: last_line,
            what,
        };
        if let Some(rank) = self.rank {
            return Err(wrong(format!("rank {rank} ends without its }}")));
        }
        self.goal.ok_or_else(|| wrong(NO_RANKS.into()))
    }
}

/// A line, word by word. A colon, a brace and the `b` behind a number need no space.
struct Words<'a> {
    rest: &'a str,
}

impl<'a> Words<'a> {
    fn next(&mut self) -> Option<&'a str> {
        let word = self.peek();
        self.rest = &self.rest.trim_start()[word.len()..];
        (!word.is_empty()).then_some(word)
    }

    /// The next word; empty at the end of the line.
    fn peek(&self) -> &'a str {
        let rest = self.rest.trim_start();
        let mut chars = rest.char_indices();
        let Some((_, first)) = chars.next() else {
            return "";
        };
        let same: fn(char) -> bool = match first {
            c if c.is_ascii_digit() || c == '-' => |c| c.is_ascii_digit(),
            c if is_of_label(c) => is_of_label,
            _ => |_| false,
        };
        let end = chars.find(|&(_, c)| !same(c)).map(|(at, _)| at);
        &rest[..end.unwrap_or(rest.len())]
    }

    fn take(&mut self, word: &str) -> bool {
        let is_it = self.peek() == word;
        if is_it {
            self.next();
        }
        is_it
    }

    fn expect(&mut self, word: &str) -> Read<()> {
        match self.take(word) {
            true => Ok(()),
            false => Err(instead(word, self.peek())),
        }
    }

    fn number<N: TryFrom<u64>>(&mut self, what: &str) -> Read<N> {
        let word = self.peek();
        if !word.starts_with(|c: char| c.is_ascii_digit()) {
            return Err(instead(&format!("{what}, a number"), word));
        }
        self.next();
        let number: Option<u64> = word.parse().ok();
        number
            .and_then(|number| N::try_from(number).ok())
            .ok_or_else(|| format!("{word} is more than {what} can be"))
    }

    fn number_up_to(&mut self, what: &str, most: u64) -> Read<u64> {
        let number = self.number(what)?;
        match number <= most {
            true => Ok(number),
            false => Err(format!("{number} is more than {what} can be, {most}")),
        }
    }

    fn option(&mut self, word: &str, value: &mut u8) -> Read<()> {
        if self.take(word) {
            *value = self.number(&format!("a {word}"))?;
        }
        Ok(())
    }

    fn end(&mut self) -> Read<()> {
        match self.next() {
            None => Ok(()),
            Some(word) => Err(instead("the end of the line", word)),
        }
    }
}

/// The text of a schedule with a blank, and its ends of lines, in place of each comment.
///
/// # Errors
/// A comment that never ends, with the line where it begins.
pub fn without_comments(text: &str) -> Result<String, ParseError> {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, comment) = rest.split_at(at);
        kept.push_str(before);
        let length = if comment.starts_with("//") {
            comment.find('\n').unwrap_or(comment.len())
        } else if let Some(inside) = comment.strip_prefix("/*") {
            let end = inside.find("*/").ok_or_else(|| ParseError {
                line: kept.matches('\n').count() + 1,
                what: "/* begins a comment that never ends".into(),
            })?;
            end + 4
        } else {
            kept.push('/');
            rest = &comment[1..];
            continue;
        };
        let (comment, after) = comment.split_at(length);
        kept.push(' ');
        kept.extend(comment.matches('\n'));
        rest = after;
    }
    kept.push_str(rest);
    Ok(kept)
}

fn label<'a>(word: &'a str, wanted: &str) -> Read<&'a str> {
    let is_label = word.starts_with(|c: char| c.is_ascii_alphabetic());
    match is_label && !WORDS.contains(&word) {
        true => Ok(word),
        false => Err(instead(wanted, word)),
    }
}

fn is_of_label(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn instead(wanted: &str, found: &str) -> String {
    match found {
        "" => format!("expected {wanted}, not the end of the line"),
        found => format!("expected {wanted}, not {found:?}"),
    }
}

fn no_such_rank(rank: Rank, ranks: u32) -> String {
    format!("there is no rank {rank}: num_ranks is {ranks}, and they count from 0")
}

const NO_RANKS: &str = "num_ranks N comes first";
const OPERATIONS: [&str; 3] = ["send", "recv", "calc"];
/// Words that are no labels.
const WORDS: [&str; 5] = ["send", "recv", "calc", "requires", "irequires"];
/// Eleven days: many of them fit into a simulation.
const MOST_NS: u64 = 1_000_000_000_000_000;
/// The longest message, 1 TiB: sums of times stay far below 2^64 ps.
const MOST_BYTES: u64 = 1 << 40;
/// What a run could hold in memory.
const MOST_RANKS: u32 = 1 << 24;

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for ParseError {}
