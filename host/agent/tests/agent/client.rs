//! A process that the tests start: this same program, run as the one test here. It
//! executes commands, one a line.

use lintel_fault::memory::Memory;
use lintel_fault::random::Random;
use lintel_fault::rig::{self, Descriptor, PATIENCE};
use lintel_runtime::process;
use lintel_types::{Error, Event, EventKind, ProcessId, options};
use portals4_abi::{AckRequest, Counter, EntrySpec, Interface, Queue, Result as PtlResult, Sink};
use std::fmt::Debug;
use std::fs::OpenOptions;
use std::io::BufRead;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

/// Match bits of what is put to, got from, added to.
const PUT: u64 = 1;
const GET: u64 = 2;
const ADD: u64 = 3;
/// A window into the middle of other memory.
const WINDOW: u64 = 4;
const AREA: usize = 4 << 20;
const WINDOW_AT: usize = 512;
const WINDOW_BYTES: usize = 64;

struct Client {
    interface: Interface,
    queue: Queue,
    events: Queue,
    counter: Counter,
    pattern: Descriptor,
    got: Memory,
    sink: Descriptor,
    one: Descriptor,
    before: Memory,
    fetched: Descriptor,
    received: Memory,
    sum: Memory,
    around: Memory,
}

/// The arguments that make this program a client, beside its [`NUMBER`].
pub const ARGUMENTS: [&str; 6] = [
    "--exact",
    "client::executes_commands",
    "--ignored",
    "--nocapture",
    "--quiet",
    "--test-threads=1",
];
pub const NUMBER: &str = "LINTEL_CLIENT";

#[test]
#[ignore = "other tests start it as a process of its own"]
fn executes_commands() {
    let number = std::env::var(NUMBER)
        .ok()
        .and_then(|word| word.parse().ok());
    let number = number.expect("the test names the process number");
    let mut client = match rig::open(number).and_then(Client::new) {
        Ok(client) => client,
        Err(why) => {
            println!("refused {}", why.code);
            return;
        }
    };
    println!("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["quit"] => {
                println!("{}", shown(client.interface.close()));
                return;
            }
            ["exit"] => std::process::exit(0),
            ["again"] => client = client.again(number),
            words => println!("{}", client.obey(words)),
        }
    }
}

impl Client {
    fn new(interface: Interface) -> PtlResult<Client> {
        let (queue, events, counter) = (
            interface.queue(1024)?,
            interface.queue(1024)?,
            interface.counter()?,
        );
        let portal = rig::portal(&interface, Some(&events))?;
        let (received, sum, around) = (
            Memory::new(AREA),
            Memory::new(4096),
            Memory::patterned(4096),
        );
        let counting = EntrySpec {
            counter: Some(&counter),
            ..rig::entry(PUT, options::ME_EVENT_CT_COMM)
        };
        portal.append(received, &counting)?;
        let source = Memory::patterned(AREA);
        portal.append(source, &rig::entry(GET, options::ME_EVENT_COMM_DISABLE))?;
        portal.append(sum, &rig::entry(ADD, options::ME_EVENT_COMM_DISABLE))?;
        let window = EntrySpec {
            range: Some(WINDOW_AT..WINDOW_AT + WINDOW_BYTES),
            ..rig::entry(WINDOW, 0)
        };
        portal.append(around, &window)?;
        let (got, one, before) = (Memory::new(AREA), Memory::new(8), Memory::new(8));
        one.word(0).store(1, Ordering::Relaxed);
        let bind = |memory| rig::bind(&interface, memory, &queue);
        Ok(Client {
            pattern: bind(source)?,
            got,
            sink: bind(got)?,
            one: bind(one)?,
            before,
            fetched: bind(before)?,
            queue,
            events,
            counter,
            received,
            sum,
            around,
            interface,
        })
    }

    /// Ends the library, and starts it once more.
    fn again(self, number: u32) -> Client {
        self.interface.close().expect("it was open");
        let interface = rig::open(number).expect("nobody took its place");
        let client = Client::new(interface).expect("all is free");
        println!("stale {}", shown(self.queue.get()));
        client
    }

    fn obey(&self, words: &[&str]) -> String {
        let number = |at: usize| {
            let word = words.get(at).and_then(|word| word.parse::<u64>().ok());
            word.unwrap_or(0)
        };
        let peer = number(1) as u32;
        let word = rig::transfer(peer, ADD, 8);
        let window = rig::transfer_at(peer, WINDOW, number(3), number(2));
        let old = Sink {
            descriptor: &self.fetched,
            offset: 0,
        };
        let ack = AckRequest::Full;
        let started = match words.first().copied().unwrap_or("") {
            "put" => self.put(peer, number(2)),
            "get" => self.sink.get(&rig::transfer(peer, GET, number(2))),
            "get-window" => self.sink.get(&window),
            "put-window" => self.pattern.put(&window, ack),
            "add" => self.one.atomic(&word, rig::SUM, ack),
            "fetch-add" => self.one.fetch_atomic(&word, rig::SUM, old),
            _ => return self.report(words, number(1)),
        };
        match started {
            Ok(()) => self.end(),
            refused => shown(refused),
        }
    }

    fn put(&self, peer: u32, bytes: u64) -> PtlResult<()> {
        let transfer = rig::transfer(peer, PUT, bytes);
        self.pattern.put(&transfer, AckRequest::Full)
    }

    /// Puts again and again before it waits; returns how many were acknowledged.
    fn burst(&self, peer: u64, puts: u64) -> String {
        let started = (0..puts).try_for_each(|_| self.put(peer as u32, 8));
        if started.is_err() {
            return shown(started);
        }
        let ends: Vec<String> = (0..puts).map(|_| self.end()).collect();
        let good = ends.iter().filter(|end| *end == "Ok 8").count();
        format!("{good} of {puts}")
    }

    /// Waits for the end of one operation; returns how it ended and how many bytes moved.
    fn end(&self) -> String {
        loop {
            match rig::next_event(&self.queue, PATIENCE) {
                Ok(Some(event)) if event.kind == EventKind::Send => {}
                Ok(Some(event)) => return format!("{:?} {}", event.ni_fail, event.mlength),
                other => return shown(other),
            }
        }
    }

    fn report(&self, words: &[&str], number: u64) -> String {
        match words.first().copied().unwrap_or("") {
            "got" => unlike(self.got.first_mismatch(0..number as usize)),
            "received" => unlike(self.received.first_mismatch(0..number as usize)),
            "sum" => self.sum.word(0).load(Ordering::Relaxed).to_string(),
            "before" => self.before.word(0).load(Ordering::Relaxed).to_string(),
            "around" => {
                let end = WINDOW_AT + WINDOW_BYTES;
                let spoilt = self.around.first_mismatch(0..WINDOW_AT);
                unlike(spoilt.or(self.around.first_mismatch(end..self.around.bytes())))
            }
            "event" => match rig::next_event(&self.events, PATIENCE) {
                Ok(Some(event)) => format!("{:?} uid {}", event.initiator, event.uid),
                other => shown(other),
            },
            "count" => match self.counter.poll(number, PATIENCE) {
                Ok(Some(value)) => shown(Ok(value)),
                other => shown(other),
            },
            "wait-event" => {
                println!("waiting");
                shown(self.queue.wait().map(|event| Event::from(event).kind))
            }
            "spin-event" => loop {
                match self.queue.get() {
                    Ok(None) => {}
                    Ok(Some(event)) => break shown(Ok(Event::from(event).kind)),
                    Err(why) => break shown::<()>(Err(why)),
                }
            },
            "begin-put" => {
                let bytes = words[2].parse().expect("a number of bytes");
                match self.put(number as u32, bytes) {
                    Ok(()) => "begun".into(),
                    refused => shown(refused),
                }
            }
            "burst" => self.burst(number, words[2].parse().expect("a number of puts")),
            "release" => format!("{:?}", process().descriptor_release(self.pattern.handle())),
            "alloc" => shown(self.interface.queue(number).map(drop)),
            "longest" => {
                let kind = options::NI_NO_MATCHING | options::NI_PHYSICAL;
                let opened = process().open(u32::MAX, kind, ProcessId::PID_ANY, None);
                let (handle, limits) = opened.expect("another interface can be opened");
                process().close(handle).expect("it is open");
                limits.max_msg_size.to_string()
            }
            "garble" => garble(number),
            word => format!("no such word: {word}"),
        }
    }
}

/// What a call returned: the name of its code, or what it gave.
fn shown<T: Debug>(returned: PtlResult<T>) -> String {
    returned.map_or_else(
        |why| Error::from(why).name().into(),
        |value| format!("Ok({value:?})"),
    )
}

fn unlike(at: Option<usize>) -> String {
    at.map_or("right".into(), |at| format!("wrong at {at}"))
}

/// Writes nonsense all over the pages that this process shares with its agent.
fn garble(seed: u64) -> String {
    let mut random = Random::new(seed);
    let files = std::fs::read_dir("/proc/self/fd").expect("Linux has it");
    let shared = files.flatten().map(|file| file.path()).find(|path| {
        let target = std::fs::read_link(path).unwrap_or_default();
        target.to_string_lossy().contains("lintel-client")
    });
    let Some(path) = shared else {
        return "nothing is shared".into();
    };
    let file = OpenOptions::new().read(true).write(true).open(path);
    let file = file.expect("it is this process's");
    // The layout with its doorbells, ends and counters, and some of what follows.
    for _ in 0..20_000 {
        let at = random.number() % (4 << 20);
        let word = match random.number() % 4 {
            0 => u64::MAX,
            1 => random.number() % 4096,
            _ => random.number(),
        };
        let _ = file.write_at(&word.to_ne_bytes(), at);
    }
    "garbled".into()
}
