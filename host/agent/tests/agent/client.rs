//! A process that the tests start: this same program, run as the one test here. It
//! does what it is told, line by line.

use lintel_fault::memory::Memory;
use lintel_fault::ptl::{self, ACK, Code, Entry, Interface, PATIENCE, PORTAL, Target};
use lintel_fault::random::Random;
use lintel_runtime::process;
use lintel_types::{EventKind, Handle, ProcessId, options};
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
    queue: Handle,
    told: Handle,
    counter: Handle,
    pattern: Handle,
    got: Memory,
    sink: Handle,
    one: Handle,
    before: Memory,
    fetched: Handle,
    received: Memory,
    sum: Memory,
    around: Memory,
}

/// The arguments that make this program a client, beside its [`NUMBER`].
pub const ARGUMENTS: [&str; 6] = [
    "--exact",
    "client::does_what_it_is_told",
    "--ignored",
    "--nocapture",
    "--quiet",
    "--test-threads=1",
];
pub const NUMBER: &str = "LINTEL_CLIENT";

#[test]
#[ignore = "other tests start it as a process of its own"]
fn does_what_it_is_told() {
    let number = std::env::var(NUMBER)
        .ok()
        .and_then(|word| word.parse().ok());
    let number = number.expect("whoever starts it says which");
    let mut client = match Interface::open(number).and_then(Client::new) {
        Ok(client) => client,
        Err(Code(code)) => {
            println!("refused {code}");
            return;
        }
    };
    println!("ready");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["quit"] => {
                println!("{:?}", client.interface.close());
                return;
            }
            ["exit"] => std::process::exit(0),
            ["again"] => client = client.again(number),
            words => println!("{}", client.obey(words)),
        }
    }
}

impl Client {
    fn new(interface: Interface) -> Result<Client, Code> {
        let (queue, told, counter) = (
            interface.queue(1024)?,
            interface.queue(1024)?,
            interface.counter()?,
        );
        interface.portal(told)?;
        let (received, sum, around) = (
            Memory::new(AREA),
            Memory::new(4096),
            Memory::patterned(4096),
        );
        let counting = options::ME_EVENT_CT_COMM;
        interface.expose_counted(received, PUT, counting, counter)?;
        let source = Memory::patterned(AREA);
        interface.expose(source, GET, options::ME_EVENT_COMM_DISABLE)?;
        interface.expose(sum, ADD, options::ME_EVENT_COMM_DISABLE)?;
        interface.append(&Entry {
            memory: around,
            range: WINDOW_AT..WINDOW_AT + WINDOW_BYTES,
            portal: PORTAL,
            bits: WINDOW,
            ignore: 0,
            options: 0,
            counter: Handle::CT_NONE,
        })?;
        let (got, one, before) = (Memory::new(AREA), Memory::new(8), Memory::new(8));
        one.word(0).store(1, Ordering::Relaxed);
        Ok(Client {
            queue,
            told,
            counter,
            pattern: interface.bind(source, queue)?,
            got,
            sink: interface.bind(got, queue)?,
            one: interface.bind(one, queue)?,
            before,
            fetched: interface.bind(before, queue)?,
            received,
            sum,
            around,
            interface,
        })
    }

    /// Ends the library, and starts it once more.
    fn again(self, number: u32) -> Client {
        let stale = self.queue;
        self.interface.close().expect("it was open");
        let interface = Interface::open(number).expect("nobody took its place");
        let client = Client::new(interface).expect("all is free");
        println!("stale {:?}", ptl::event(stale).map(|event| event.kind));
        client
    }

    fn obey(&self, words: &[&str]) -> String {
        let number = |at: usize| {
            let word = words.get(at).and_then(|word| word.parse::<u64>().ok());
            word.unwrap_or(0)
        };
        let peer = number(1) as u32;
        let to = |bits, offset| Target {
            process: ptl::process(peer),
            bits,
            offset,
        };
        let started = match words.first().copied().unwrap_or("") {
            "put" => ptl::put(self.pattern, number(2), ACK, to(PUT, 0), 1),
            "get" => ptl::get(self.sink, number(2), to(GET, 0), 1),
            "get-window" => ptl::get(self.sink, number(3), to(WINDOW, number(2)), 1),
            "put-window" => ptl::put(self.pattern, number(3), ACK, to(WINDOW, number(2)), 1),
            "add" => ptl::add(self.one, 8, to(ADD, 0), 1),
            "fetch-add" => ptl::fetch_add(self.fetched, self.one, 8, to(ADD, 0), 1),
            _ => return self.tell(words, number(1)),
        };
        match started {
            Ok(()) => self.end(),
            Err(code) => format!("{code:?}"),
        }
    }

    /// Puts again and again before it waits; tells how many were acknowledged.
    fn burst(&self, peer: u64, puts: u64) -> String {
        let to = Target {
            process: ptl::process(peer as u32),
            bits: PUT,
            offset: 0,
        };
        let started = (0..puts).map(|_| ptl::put(self.pattern, 8, ACK, to, 1));
        if let Some(Err(code)) = started.into_iter().find(Result::is_err) {
            return format!("{code:?}");
        }
        let ends: Vec<String> = (0..puts).map(|_| self.end()).collect();
        let good = ends.iter().filter(|end| *end == "Ok 8").count();
        format!("{good} of {puts}")
    }

    /// Waits for the end of one operation; tells how it ended and how many bytes moved.
    fn end(&self) -> String {
        loop {
            match ptl::event_within(self.queue, PATIENCE) {
                Ok(event) if event.kind == EventKind::Send => {}
                Ok(event) => return format!("{:?} {}", event.ni_fail, event.mlength),
                Err(code) => return format!("{code:?}"),
            }
        }
    }

    fn tell(&self, words: &[&str], number: u64) -> String {
        match words.first().copied().unwrap_or("") {
            "got" => unlike(self.got.unlike(0..number as usize)),
            "received" => unlike(self.received.unlike(0..number as usize)),
            "sum" => self.sum.word(0).load(Ordering::Relaxed).to_string(),
            "before" => self.before.word(0).load(Ordering::Relaxed).to_string(),
            "around" => {
                let end = WINDOW_AT + WINDOW_BYTES;
                let spoilt = self.around.unlike(0..WINDOW_AT);
                unlike(spoilt.or(self.around.unlike(end..self.around.bytes())))
            }
            "told" => match ptl::event_within(self.told, PATIENCE) {
                Ok(event) => format!("{:?} uid {}", event.initiator, event.uid),
                Err(code) => format!("{code:?}"),
            },
            "count" => format!("{:?}", ptl::count_within(self.counter, number, PATIENCE)),
            "wait-event" => {
                println!("waiting");
                format!("{:?}", ptl::wait_event(self.queue).map(|event| event.kind))
            }
            "spin-event" => loop {
                match ptl::event(self.queue) {
                    Err(ptl::EMPTY) => {}
                    other => break format!("{:?}", other.map(|event| event.kind)),
                }
            },
            "begin-put" => {
                let to = Target {
                    process: ptl::process(number as u32),
                    bits: PUT,
                    offset: 0,
                };
                let bytes = words[2].parse().expect("a number of bytes");
                let begun = ptl::put(self.pattern, bytes, ACK, to, 1);
                begun.map_or_else(|code| format!("{code:?}"), |()| "begun".into())
            }
            "burst" => self.burst(number, words[2].parse().expect("a number of puts")),
            "release" => format!("{:?}", process().descriptor_release(self.pattern)),
            "alloc" => format!("{:?}", self.interface.queue(number).map(drop)),
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
