//! Processes on a network that loses, repeats and delays packets as rng fall. Time is a
//! number; a run depends on its seed alone.
#![allow(dead_code)] // each test uses some of it

use lintel_reliable::{
    Class, Config, Counts, Endpoint, Header, Incarnation, Key, Kind, LostPeer, MAX_HEADER_BYTES,
    Message, Model, Nanos, PairId, Time, Verdict,
};
use lintel_types::ProcessId;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::time::Duration;

pub const PEER_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer than anything here takes, in the network's time.
const LIMIT: Time = Time(600_000_000_000);

pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }

    pub fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }
}

/// What the network does to packets, in percent; delays in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    pub loss: u64,
    pub repeated: u64,
    pub delayed: u64,
    pub delay: u64,
    /// Every packet takes five microseconds, and up to so many less one more.
    pub jitter: u64,
}

pub const CALM: Weather = Weather {
    loss: 0,
    repeated: 0,
    delayed: 0,
    delay: 20,
    jitter: 2,
};

/// A message as it was delivered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivered {
    pub from: ProcessId,
    pub class: Class,
    pub number: u64,
    pub bytes: Vec<u8>,
}

pub struct Process {
    pub endpoint: Endpoint<Vec<u8>>,
    pub delivered: Vec<Delivered>,
    pub losses: Vec<LostPeer>,
    pub finished: Vec<u64>,
    /// Messages of which only the beginning has come and will ever come.
    pub broken: Vec<u64>,
    /// It neither looks nor sends, and what comes is lost.
    pub is_stalled: bool,
    /// It neither looks nor sends; what comes waits in its socket.
    pub is_away: bool,
    socket: VecDeque<Vec<u8>>,
    early: HashMap<(PairId, u32), (Header, Vec<u8>)>,
    partial: HashMap<PairId, (u64, Vec<u8>)>,
    /// The rest of what comes from there in parts is for nothing.
    void: HashSet<PairId>,
}

pub struct Network {
    pub processes: Vec<Option<Process>>,
    pub now: Time,
    pub rng: Rng,
    pub weather: Weather,
    pub key: Key,
    pub sent: u64,
    /// The packets with these numbers, from 0 on, are lost.
    pub lost: Vec<u64>,
    /// Everything that was ever sent, if a recorder is set.
    pub recorded: Option<Vec<Vec<u8>>>,
    model: Model,
    datagram: u32,
    lives: u64,
    order: u64,
    air: BTreeMap<(Time, u64), Vec<u8>>,
}

/// The name of a process by its number: two to a node.
pub fn name(number: usize) -> ProcessId {
    ProcessId::new(1 + number as u32 / 2, 100 + number as u32 % 2)
}

impl Network {
    pub fn new(processes: usize, model: Model, weather: Weather, seed: u64) -> Network {
        let mut network = Network {
            processes: Vec::new(),
            now: Time(1000),
            rng: Rng::new(seed),
            weather,
            key: Key::new(&[3; 32]),
            sent: 0,
            lost: Vec::new(),
            recorded: None,
            model,
            datagram: 1000,
            lives: 0,
            order: 0,
            air: BTreeMap::new(),
        };
        for number in 0..processes {
            network.processes.push(None);
            network.start(number);
        }
        network
    }

    /// Starts a process, perhaps in the place of an earlier one, which isn't asked.
    pub fn start(&mut self, number: usize) {
        self.lives += 1000;
        self.start_as(number, self.lives);
    }

    /// As [`start`](Self::start), whatever its clock may say.
    pub fn start_as(&mut self, number: usize, incarnation: u64) {
        let endpoint = Endpoint::new(Config {
            me: name(number),
            uid: 7,
            incarnation: Incarnation::new(incarnation).expect("it isn't 0"),
            model: self.model,
            max_datagram: self.datagram,
            recv_window: 256 << 10,
            peer_timeout: PEER_TIMEOUT,
        });
        self.processes[number] = Some(Process {
            endpoint,
            delivered: Vec::new(),
            losses: Vec::new(),
            finished: Vec::new(),
            broken: Vec::new(),
            is_stalled: false,
            is_away: false,
            socket: VecDeque::new(),
            early: HashMap::new(),
            partial: HashMap::new(),
            void: HashSet::new(),
        });
    }

    /// Ends a process without a word.
    pub fn kill(&mut self, number: usize) {
        self.processes[number] = None;
    }

    pub fn process(&mut self, number: usize) -> &mut Process {
        self.processes[number].as_mut().expect("it lives")
    }

    pub fn send(&mut self, from: usize, to: usize, class: Class, number: u64, length: u64) {
        let message = Message {
            class,
            words: [0, 0, 0, 0, 0, number],
            length,
            memory: length,
            is_awaited: false,
            body: pattern(number, length),
        };
        let now = self.now;
        let sent = self
            .process(from)
            .endpoint
            .send(now, name(to), message, false);
        assert!(sent.is_ok(), "{length} bytes are too many for {class:?}");
    }

    /// Everybody sends what may be sent now.
    pub fn transmit(&mut self) {
        for number in 0..self.processes.len() {
            let Some(mut process) = self.processes[number].take() else {
                continue;
            };
            if process.is_awake() {
                while let Some(transmit) = process.endpoint.poll_transmit(self.now) {
                    let payload = transmit.payload.map_or(Vec::new(), |place| {
                        place.body[place.offset as usize..][..place.length as usize].to_vec()
                    });
                    let datagram = seal(transmit.header, &payload, &self.key);
                    self.launch(datagram);
                }
                process.collect();
            }
            self.processes[number] = Some(process);
        }
    }

    /// A datagram is at the mercy of the network.
    pub fn launch(&mut self, datagram: Vec<u8>) {
        self.sent += 1;
        if let Some(recorded) = &mut self.recorded {
            recorded.push(datagram.clone());
        }
        if self.lost.contains(&(self.sent - 1)) || self.rng.percent(self.weather.loss) {
            return;
        }
        let copies = 1 + u64::from(self.rng.percent(self.weather.repeated));
        for _ in 0..copies {
            let mut delay = 5 + self.rng.below(self.weather.jitter);
            if self.rng.percent(self.weather.delayed) {
                delay += self.rng.below(self.weather.delay);
            }
            self.order += 1;
            let at = self.now.after(Nanos::from_micros(delay));
            self.air.insert((at, self.order), datagram.clone());
        }
    }

    /// Goes on to when next something happens; false where nothing will.
    pub fn step(&mut self) -> bool {
        self.transmit();
        let awake = |process: &&Process| process.is_awake();
        let timers = self.processes.iter().flatten().filter(awake);
        let due = timers.map(|process| process.endpoint.due()).min();
        let arrives = self.air.first_key_value().map(|((at, _), _)| *at);
        let next = due.into_iter().chain(arrives).min().unwrap_or(Time::NEVER);
        if next == Time::NEVER {
            return false;
        }
        self.now = self.now.max(next);
        assert!(self.now < LIMIT, "it takes too long");
        while let Some(first) = self.air.first_entry() {
            if first.key().0 > self.now {
                break;
            }
            let datagram = first.remove();
            self.arrive(&datagram);
        }
        for process in self.processes.iter_mut().flatten() {
            if process.is_awake() {
                process.endpoint.on_timeout(self.now);
                process.collect();
            }
        }
        true
    }

    pub fn run_until(&mut self, mut done: impl FnMut(&mut Network) -> bool) {
        while !done(self) {
            assert!(self.step(), "nothing happens any more");
        }
    }

    pub fn settle(&mut self) {
        self.run_until(|network| {
            network
                .processes
                .iter()
                .flatten()
                .all(|p| p.endpoint.all_delivered())
        });
    }

    pub fn arrive(&mut self, datagram: &[u8]) {
        let beginning = &datagram[..datagram.len().min(MAX_HEADER_BYTES)];
        let Ok((header, ahead)) = Header::parse(beginning, datagram.len(), &self.key) else {
            return;
        };
        let now = self.now;
        let receiver = (0..self.processes.len()).find(|n| name(*n) == header.destination);
        let receiver = receiver.and_then(|number| self.processes[number].as_mut());
        if let Some(process) = receiver.filter(|process| !process.is_stalled) {
            match process.is_away {
                true => process.socket.push_back(datagram.to_vec()),
                false => process.receive(now, &header, &datagram[ahead..]),
            }
        }
    }

    /// A process that was away takes so many datagrams from its socket.
    pub fn look(&mut self, number: usize, datagrams: usize) {
        let process = self.process(number);
        process.is_away = false;
        let count = datagrams.min(process.socket.len());
        let taken: Vec<_> = process.socket.drain(..count).collect();
        for datagram in taken {
            self.arrive(&datagram);
        }
    }
}

impl Process {
    fn is_awake(&self) -> bool {
        !self.is_stalled && !self.is_away
    }

    pub fn receive(&mut self, now: Time, header: &Header, payload: &[u8]) {
        let before = refused(&self.endpoint.counts());
        let verdict = self
            .endpoint
            .on_packet(now, header, self.early.len() < 1000);
        let counted = refused(&self.endpoint.counts()) - before;
        let is_dropped = verdict == Verdict::Drop;
        assert!(counted <= u64::from(is_dropped), "{counted}: {header:?}");
        self.collect();
        match verdict {
            Verdict::Drop => {}
            Verdict::Keep(pair) => {
                let packet = (*header, payload.to_vec());
                let before = self.early.insert((pair, header.sequence), packet);
                assert!(before.is_none(), "a packet is kept once");
            }
            Verdict::Deliver(pair) => {
                self.deliver(pair, header, payload);
                self.deliver_early(pair);
            }
        }
    }

    fn deliver_early(&mut self, pair: PairId) {
        while let Some(early) = self.early.remove(&(pair, self.endpoint.expected(pair))) {
            let (header, payload) = early;
            let Kind::Data(fragment) = header.kind else {
                panic!("only data is kept");
            };
            assert_eq!(
                self.endpoint.on_early(pair, &fragment),
                Verdict::Deliver(pair)
            );
            self.deliver(pair, &header, &payload);
        }
    }

    fn deliver(&mut self, pair: PairId, header: &Header, payload: &[u8]) {
        let Kind::Data(fragment) = header.kind else {
            panic!("only data is delivered");
        };
        if fragment.is_void || self.void.contains(&pair) {
            return self.on_void(pair, fragment.last);
        }
        let (number, bytes) = match fragment.words {
            Some(words) => (words[5], payload.to_vec()),
            None => {
                let (number, mut bytes) = self.partial.remove(&pair).expect("it has begun");
                assert_eq!(bytes.len() as u64, fragment.offset);
                bytes.extend_from_slice(payload);
                (number, bytes)
            }
        };
        if !fragment.last {
            let before = self.partial.insert(pair, (number, bytes));
            assert!(before.is_none(), "one message at a time comes in parts");
            return;
        }
        self.delivered.push(Delivered {
            from: header.source,
            class: fragment.class,
            number,
            bytes,
        });
    }

    fn on_void(&mut self, pair: PairId, is_last: bool) {
        let begun = self.partial.remove(&pair);
        self.broken.extend(begun.map(|(number, _)| number));
        match is_last {
            true => self.void.remove(&pair),
            false => self.void.insert(pair),
        };
    }

    pub fn collect(&mut self) {
        while let Some(loss) = self.endpoint.poll_lost_peer() {
            self.void.remove(&loss.pair);
            self.early.retain(|(pair, _), _| *pair != loss.pair);
            self.partial.remove(&loss.pair);
            self.losses.push(loss);
        }
        let finished = self
            .endpoint
            .take_finished()
            .map(|message| message.words[5]);
        self.finished.extend(finished);
    }
}

/// Packets that something was wrong with.
fn refused(counts: &Counts) -> u64 {
    let Counts {
        misdirected,
        stale,
        contradictory,
        duplicates,
        beyond,
        ..
    } = counts;
    misdirected + stale + contradictory + duplicates + beyond
}

pub fn seal(header: Header, payload: &[u8], key: &Key) -> Vec<u8> {
    let mut bytes = [0; MAX_HEADER_BYTES];
    let ahead = header.seal(key, &mut bytes);
    [&bytes[..ahead], payload].concat()
}

pub fn pattern(number: u64, length: u64) -> Vec<u8> {
    (0..length)
        .map(|at| (number * 31 + at * 7 + at / 251) as u8)
        .collect()
}
