//! The launcher's side: one key-value store, one barrier, a connection per rank.
//!
//! Each rank chooses its protocol by its greeting: PMI-1 in lines, or PMI-2 in messages
//! with a length.
//!
//! No I/O and no clock: bytes go in by rank, bytes come out by rank, and what
//! the launcher must act on comes out as [`Event`]s.

mod pmi2;

use std::collections::{BTreeMap, VecDeque};

use crate::mapping::{MAPPING_KEY, process_mapping};
use crate::wire::{KEY_MAX, KVS_NAME_MAX, Lines, Message, ParseError, VALUE_MAX};
use crate::wire2::Messages;

/// What the launcher must act on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A rank requests the end of the job.
    Abort {
        /// The rank that asked to abort.
        rank: usize,
        /// The exit code that it requests for the job; 1 if it named none.
        code: i32,
        /// Its message, possibly empty.
        message: String,
    },
    /// A rank does not speak PMI; nothing more is read from it.
    Violation {
        /// The rank that broke the protocol.
        rank: usize,
        /// The rule of the protocol that the rank broke.
        error: Violation,
    },
}

/// How a rank broke the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A line is no message.
    Parse(ParseError),
    /// PMI has no such command.
    UnknownCommand(String),
    /// The rank entered the barrier while waiting in it.
    BarrierTwice,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Violation::Parse(error) => error.fmt(f),
            Violation::UnknownCommand(name) => write!(f, "the command {name:?} is not of PMI"),
            Violation::BarrierTwice => write!(f, "it entered the barrier while waiting in it"),
        }
    }
}

impl std::error::Error for Violation {}

/// A barrier that can't complete any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckBarrier {
    /// The ranks that wait, ascending.
    pub waiting: Vec<usize>,
    /// The ranks that left without entering, ascending.
    pub left: Vec<usize>,
}

/// The PMI server of one job.
///
/// Ranks are numbered from 0; a method given a rank beyond the job's size
/// panics, since only the launcher names ranks.
#[derive(Debug)]
pub struct Server {
    ranks: Vec<Rank>,
    kvs_name: String,
    store: BTreeMap<String, String>,
    published: BTreeMap<String, String>,
    nodes: pmi2::NodeAttributes,
    events: VecDeque<Event>,
}

#[derive(Debug, Default)]
struct Rank {
    input: Input,
    output: Vec<u8>,
    waiting: bool,
    left: bool,
    finalized: bool,
    /// The rank broke the protocol: the rest of the stream can't be parsed.
    deaf: bool,
    /// Inside an `mcmd=` block: what the block has defined so far.
    block: Option<Block>,
}

/// How a rank's bytes are cut into messages.
#[derive(Debug)]
enum Input {
    /// PMI-1, or a connection that hasn't chosen yet: lines of text.
    Lines(Lines),
    /// PMI-2: messages that begin with their length.
    Messages(Messages),
}

impl Default for Input {
    fn default() -> Input {
        Input::Lines(Lines::default())
    }
}

#[derive(Debug, Default)]
struct Block {
    command: String,
    total: Option<i64>,
    so_far: Option<i64>,
}

impl Server {
    /// A server for `size` ranks on one node.
    ///
    /// `kvs_name` names the store; blanks and what exceeds [`KVS_NAME_MAX`] are dropped.
    pub fn new(size: usize, kvs_name: &str) -> Server {
        Server::on_nodes(&vec![0; size], kvs_name)
    }

    /// A server for ranks on several nodes: `nodes` has the node of each rank.
    ///
    /// `kvs_name` as in [`Server::new`].
    pub fn on_nodes(nodes: &[usize], kvs_name: &str) -> Server {
        let name: String = kvs_name
            .chars()
            .filter(char::is_ascii_graphic)
            .take(KVS_NAME_MAX - 1)
            .collect();
        // MPICH reads from this key which ranks share a node. One that is too long
        // is left out: then it compares host names.
        let mapping = Some(process_mapping(nodes)).filter(|text| text.len() < VALUE_MAX);
        Server {
            ranks: nodes.iter().map(|_| Rank::default()).collect(),
            kvs_name: name,
            store: mapping
                .map(|text| (MAPPING_KEY.into(), text))
                .into_iter()
                .collect(),
            published: BTreeMap::new(),
            nodes: pmi2::NodeAttributes::new(nodes),
            events: VecDeque::new(),
        }
    }

    /// Takes bytes that `rank` wrote, cut anywhere.
    pub fn on_bytes(&mut self, rank: usize, bytes: &[u8]) {
        let mut rest = bytes;
        while !rest.is_empty() && !self.ranks[rank].deaf {
            if let Err(error) = self.on_front(rank, &mut rest) {
                self.ranks[rank].deaf = true;
                self.events.push_back(Event::Violation { rank, error });
            }
        }
    }

    /// Takes a line or message off the front of `bytes`, or the beginning of one.
    fn on_front(&mut self, rank: usize, bytes: &mut &[u8]) -> Result<(), Violation> {
        match &mut self.ranks[rank].input {
            Input::Lines(lines) => match lines.take_line(bytes).map_err(Violation::Parse)? {
                Some(line) => self.on_line(rank, &line),
                None => Ok(()),
            },
            Input::Messages(messages) => {
                match messages.take_message(bytes).map_err(Violation::Parse)? {
                    Some(message) => self.on_message(rank, &message),
                    None => Ok(()),
                }
            }
        }
    }

    /// The connection of `rank` is gone: it will enter no more barriers.
    pub fn on_closed(&mut self, rank: usize) {
        self.ranks[rank].left = true;
    }

    /// What to write to `rank`, once; `None` if there is nothing.
    pub fn poll_output(&mut self, rank: usize) -> Option<Vec<u8>> {
        let output = std::mem::take(&mut self.ranks[rank].output);
        (!output.is_empty()).then_some(output)
    }

    /// The next event, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether `rank` has finalized by `cmd=finalize`.
    pub fn is_finalized(&self, rank: usize) -> bool {
        self.ranks[rank].finalized
    }

    /// Ranks that wait for ranks that are gone; `None` while all may still enter.
    pub fn stuck_barrier(&self) -> Option<StuckBarrier> {
        let numbers = |test: fn(&Rank) -> bool| -> Vec<usize> {
            let each = self.ranks.iter().enumerate();
            each.filter(|(_, rank)| test(rank))
                .map(|(number, _)| number)
                .collect()
        };
        let waiting = numbers(|rank| rank.waiting && !rank.left);
        let left = numbers(|rank| !rank.waiting && rank.left);
        (!waiting.is_empty() && !left.is_empty()).then_some(StuckBarrier { waiting, left })
    }

    fn on_line(&mut self, rank: usize, line: &str) -> Result<(), Violation> {
        if self.ranks[rank].block.is_some() {
            self.on_block_line(rank, line);
            return Ok(());
        }
        if line.trim().is_empty() {
            return Ok(());
        }
        let message = Message::parse(line).map_err(Violation::Parse)?;
        if message.is_multi_line() {
            let block = Block {
                command: message.command().into(),
                ..Block::default()
            };
            self.ranks[rank].block = Some(block);
            return Ok(());
        }
        self.on_command(rank, &message)
    }

    fn on_command(&mut self, rank: usize, message: &Message) -> Result<(), Violation> {
        match message.command() {
            "init" => self.on_init(rank, message),
            "get_maxes" => {
                let text = format!(
                    "maxes kvsname_max={KVS_NAME_MAX} keylen_max={KEY_MAX} vallen_max={VALUE_MAX}"
                );
                self.reply(rank, &text);
            }
            "get_appnum" => self.reply(rank, "appnum appnum=0"),
            "get_my_kvsname" => {
                let text = format!("my_kvsname kvsname={}", self.kvs_name);
                self.reply(rank, &text);
            }
            "get_universe_size" => {
                let text = format!("universe_size size={}", self.ranks.len());
                self.reply(rank, &text);
            }
            "put" => self.on_put(rank, message),
            "get" => self.on_get(rank, message),
            "barrier_in" => return self.on_barrier_in(rank),
            "finalize" => {
                self.ranks[rank].finalized = true;
                self.reply(rank, "finalize_ack");
            }
            "abort" => self.on_abort(rank, message),
            "publish_name" => self.on_publish_name(rank, message),
            "unpublish_name" => self.on_unpublish_name(rank, message),
            "lookup_name" => self.on_lookup_name(rank, message),
            "spawn" => self.refuse_spawn(rank),
            other => return Err(Violation::UnknownCommand(other.into())),
        }
        Ok(())
    }

    fn on_init(&mut self, rank: usize, message: &Message) {
        let text = match message.number("pmi_version") {
            Some(1) => "pmi_version=1 pmi_subversion=1 rc=0",
            Some(2) => "pmi_version=2 pmi_subversion=0 rc=0",
            _ => "pmi_version=1 pmi_subversion=1 rc=-1",
        };
        self.reply(rank, &format!("response_to_init {text}"));
        if message.number("pmi_version") == Some(2) {
            self.ranks[rank].input = Input::Messages(Messages::default());
        }
    }

    fn on_put(&mut self, rank: usize, message: &Message) {
        let words = (message.get("key"), message.get("value"));
        let refusal = match (message.get("kvsname"), words) {
            (Some(name), _) if name != self.kvs_name => Some("kvsname_not_found"),
            (Some(_), (Some(key), Some(value))) => self.store(key, value).err(),
            _ => Some("kvsname_key_or_value_missing"),
        };
        match refusal {
            None => self.reply(rank, "put_result rc=0 msg=success"),
            Some(refusal) => self.reply(rank, &format!("put_result rc=-1 msg={refusal}")),
        }
    }

    /// A later put of the same key replaces the value. What a line of PMI-1 can't carry
    /// is refused from every rank, because any rank may ask for it in PMI-1.
    fn store(&mut self, key: &str, value: &str) -> Result<(), &'static str> {
        if key.is_empty() || key.len() >= KEY_MAX {
            return Err("invalid_key_length");
        }
        if value.len() >= VALUE_MAX {
            return Err("invalid_value_length");
        }
        if key.contains(' ') || value.contains(' ') {
            return Err("blank_in_key_or_value");
        }
        if key.contains(is_control) || value.contains(is_control) {
            return Err("control_character_in_key_or_value");
        }
        self.store.insert(key.into(), value.into());
        Ok(())
    }

    fn on_get(&mut self, rank: usize, message: &Message) {
        let known_name = message
            .get("kvsname")
            .is_none_or(|name| name == self.kvs_name);
        let value = message
            .get("key")
            .filter(|_| known_name)
            .and_then(|key| self.store.get(key));
        let text = match value {
            Some(value) => format!("get_result rc=0 msg=success value={value}"),
            None => "get_result rc=-1 msg=key_not_found value=unknown".into(),
        };
        self.reply(rank, &text);
    }

    fn on_barrier_in(&mut self, rank: usize) -> Result<(), Violation> {
        if self.ranks[rank].waiting {
            return Err(Violation::BarrierTwice);
        }
        self.ranks[rank].waiting = true;
        if self.ranks.iter().all(|rank| rank.waiting) {
            for rank in 0..self.ranks.len() {
                self.ranks[rank].waiting = false;
                match self.ranks[rank].input {
                    Input::Lines(_) => self.reply(rank, "barrier_out"),
                    Input::Messages(_) => self.answer_fence(rank),
                }
            }
        }
        Ok(())
    }

    fn on_abort(&mut self, rank: usize, message: &Message) {
        let code = message
            .number("exitcode")
            .and_then(|code| i32::try_from(code).ok());
        let words = ["message", "error_msg", "msg"]
            .into_iter()
            .find_map(|key| message.get(key));
        self.events.push_back(Event::Abort {
            rank,
            code: code.unwrap_or(1),
            message: words.unwrap_or_default().into(),
        });
    }

    fn on_publish_name(&mut self, rank: usize, message: &Message) {
        let (Some(service), Some(port)) = (message.get("service"), message.get("port")) else {
            return self.reply(rank, "publish_result rc=-1 info=service_or_port_missing");
        };
        self.published.insert(service.into(), port.into());
        self.reply(rank, "publish_result rc=0 info=ok");
    }

    fn on_unpublish_name(&mut self, rank: usize, message: &Message) {
        let known = message
            .get("service")
            .and_then(|service| self.published.remove(service));
        let text = match known {
            Some(_) => "unpublish_result rc=0 info=ok",
            None => "unpublish_result rc=-1 info=service_not_found",
        };
        self.reply(rank, text);
    }

    fn on_lookup_name(&mut self, rank: usize, message: &Message) {
        let port = message
            .get("service")
            .and_then(|service| self.published.get(service));
        let text = match port {
            Some(port) => format!("lookup_result rc=0 info=ok port={port}"),
            None => "lookup_result rc=-1 info=service_not_found".into(),
        };
        self.reply(rank, &text);
    }

    /// A spawn of several programs is several blocks with one reply, after the last.
    fn on_block_line(&mut self, rank: usize, line: &str) {
        let Some(block) = &mut self.ranks[rank].block else {
            return;
        };
        match line.split_once('=') {
            Some(("totspawns", number)) => block.total = number.trim().parse().ok(),
            Some(("spawnssofar", number)) => block.so_far = number.trim().parse().ok(),
            _ if line.trim() == "endcmd" => {
                let last = block.total == block.so_far;
                let spawn = block.command == "spawn";
                self.ranks[rank].block = None;
                if last && spawn {
                    self.refuse_spawn(rank);
                }
            }
            _ => {}
        }
    }

    fn refuse_spawn(&mut self, rank: usize) {
        self.reply(rank, "spawn_result rc=-1 status=spawn_is_not_offered");
    }

    fn reply(&mut self, rank: usize, text: &str) {
        let output = &mut self.ranks[rank].output;
        output.extend_from_slice(b"cmd=");
        output.extend_from_slice(text.as_bytes());
        output.push(b'\n');
    }
}

/// A newline would end the line of an answer and begin another; clients in C end a
/// string at a NUL.
fn is_control(character: char) -> bool {
    character.is_ascii_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(server: &mut Server, rank: usize, request: &str) -> String {
        server.on_bytes(rank, request.as_bytes());
        String::from_utf8(server.poll_output(rank).unwrap_or_default()).unwrap()
    }

    #[test]
    fn the_handshake_of_a_simple_client_is_answered() {
        let mut server = Server::new(4, "kvs_1");
        let init = answer(&mut server, 0, "cmd=init pmi_version=1 pmi_subversion=1\n");
        assert_eq!(
            init,
            "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
        );
        let maxes = answer(&mut server, 0, "cmd=get_maxes\n");
        assert_eq!(
            maxes,
            "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"
        );
        assert_eq!(
            answer(&mut server, 0, "cmd=get_appnum\n"),
            "cmd=appnum appnum=0\n"
        );
        let name = answer(&mut server, 0, "cmd=get_my_kvsname\n");
        assert_eq!(name, "cmd=my_kvsname kvsname=kvs_1\n");
        let universe = answer(&mut server, 0, "cmd=get_universe_size\n");
        assert_eq!(universe, "cmd=universe_size size=4\n");
        let mapping = answer(
            &mut server,
            0,
            "cmd=get kvsname=kvs_1 key=PMI_process_mapping\n",
        );
        assert_eq!(
            mapping,
            "cmd=get_result rc=0 msg=success value=(vector,(0,1,4))\n"
        );
    }

    #[test]
    fn another_version_is_refused() {
        let mut server = Server::new(1, "k");
        assert!(
            answer(&mut server, 0, "cmd=init pmi_version=3 pmi_subversion=0\n").contains("rc=-1")
        );
    }

    #[test]
    fn what_one_rank_puts_another_gets() {
        let mut server = Server::new(2, "k");
        let put = answer(&mut server, 0, "cmd=put kvsname=k key=a value=b=c\n");
        assert_eq!(put, "cmd=put_result rc=0 msg=success\n");
        let get = answer(&mut server, 1, "cmd=get kvsname=k key=a\n");
        assert_eq!(get, "cmd=get_result rc=0 msg=success value=b=c\n");
        assert!(answer(&mut server, 1, "cmd=get kvsname=k key=z\n").contains("rc=-1"));
        assert!(answer(&mut server, 1, "cmd=get kvsname=other key=a\n").contains("rc=-1"));
    }

    #[test]
    fn puts_beyond_the_limits_are_refused_and_store_nothing() {
        let mut server = Server::new(1, "k");
        let long_key = "x".repeat(KEY_MAX);
        let long_value = "x".repeat(VALUE_MAX);
        for put in [
            format!("cmd=put kvsname=k key={long_key} value=1\n"),
            format!("cmd=put kvsname=k key=a value={long_value}\n"),
            "cmd=put kvsname=k key= value=1\n".into(),
            "cmd=put kvsname=other key=a value=1\n".into(),
            "cmd=put kvsname=k key=a value=two words\n".into(),
            "cmd=put key=a value=1\n".into(),
        ] {
            assert!(answer(&mut server, 0, &put).contains("rc=-1"), "{put}");
        }
        assert!(answer(&mut server, 0, "cmd=get kvsname=k key=a\n").contains("rc=-1"));
    }

    #[test]
    fn the_barrier_opens_when_the_last_rank_enters() {
        let mut server = Server::new(3, "k");
        for round in 0..3 {
            assert_eq!(answer(&mut server, round, "cmd=barrier_in\n"), "");
            assert_eq!(answer(&mut server, (round + 1) % 3, "cmd=barrier_in\n"), "");
            server.on_bytes((round + 2) % 3, b"cmd=barrier_in\n");
            for rank in 0..3 {
                assert_eq!(server.poll_output(rank).unwrap(), b"cmd=barrier_out\n");
            }
        }
        assert_eq!(server.poll_event(), None);
    }

    #[test]
    fn a_barrier_that_lost_a_rank_is_reported() {
        let mut server = Server::new(3, "k");
        server.on_bytes(0, b"cmd=barrier_in\n");
        server.on_bytes(2, b"cmd=barrier_in\n");
        assert_eq!(server.stuck_barrier(), None);
        server.on_closed(1);
        let stuck = StuckBarrier {
            waiting: vec![0, 2],
            left: vec![1],
        };
        assert_eq!(server.stuck_barrier(), Some(stuck));
    }

    #[test]
    fn an_abort_carries_code_and_words() {
        let mut server = Server::new(1, "k");
        server.on_bytes(0, b"cmd=abort exitcode=7 message=no more fuel\n");
        let abort = Event::Abort {
            rank: 0,
            code: 7,
            message: "no more fuel".into(),
        };
        assert_eq!(server.poll_event(), Some(abort));
    }

    #[test]
    fn a_spawn_is_refused_once_after_its_last_block() {
        let mut server = Server::new(1, "k");
        let block = |n| {
            format!("mcmd=spawn\nnprocs=2\nexecname=a b\ntotspawns=2\nspawnssofar={n}\nendcmd\n")
        };
        assert_eq!(answer(&mut server, 0, &block(1)), "");
        assert!(answer(&mut server, 0, &block(2)).starts_with("cmd=spawn_result rc=-1 "));
        assert_eq!(
            answer(&mut server, 0, "cmd=finalize\n"),
            "cmd=finalize_ack\n"
        );
        assert!(server.is_finalized(0));
    }

    #[test]
    fn names_are_published_and_looked_up() {
        let mut server = Server::new(2, "k");
        let published = answer(&mut server, 0, "cmd=publish_name service=s port=p#1\n");
        assert!(published.contains("info=ok"));
        assert!(answer(&mut server, 1, "cmd=lookup_name service=s\n").contains("info=ok port=p#1"));
        assert!(answer(&mut server, 1, "cmd=unpublish_name service=s\n").contains("info=ok"));
        assert!(answer(&mut server, 1, "cmd=lookup_name service=s\n").contains("not_found"));
    }

    #[test]
    fn a_rank_that_breaks_the_protocol_is_reported_once_and_heard_no_more() {
        let mut server = Server::new(2, "k");
        server.on_bytes(0, b"hello\ncmd=finalize\n");
        let error = Violation::Parse(ParseError::NoKey);
        assert_eq!(
            server.poll_event(),
            Some(Event::Violation { rank: 0, error })
        );
        server.on_bytes(0, b"cmd=finalize\n");
        assert_eq!((server.poll_event(), server.poll_output(0)), (None, None));
        assert_eq!(
            answer(&mut server, 1, "cmd=finalize\n"),
            "cmd=finalize_ack\n"
        );
    }
}
