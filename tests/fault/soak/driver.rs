//! Starts the ranks, kills and restarts some, and judges what they report.

use crate::Done;
use crate::options::Options;
use crate::verdict::Verdict;
use lintel_fault::job::{Job, Worker};
use lintel_fault::random::Random;
use lintel_fault::resident::Resident;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Silence after which the others declare a rank dead, milliseconds.
const PEER_TIMEOUT: u64 = 5000;
/// Seconds that an operation may take: long enough to detect a dead rank on a busy machine.
const LIMIT: u64 = 40;
/// The longest pause before a killed rank is restarted, milliseconds.
const AWAY: u64 = 3000;

/// Runs the soak test with these options.
pub fn run(options: &Options) -> Done {
    let seed = options.seed;
    let seed = seed.unwrap_or_else(|| Random::from_env().number() >> 16);
    println!("seed {seed}");
    let random = Random::new(seed);
    let mut soak = Soak::new(options, random)?;
    let done = soak.run();
    soak.report();
    if done.is_err() {
        soak.report_stderr();
    }
    done.and_then(|()| soak.check_memory())
        .and_then(|()| soak.check_shared_memory())
        .map_err(|why| format!("{why}\nrepeat the same choices with --seed {seed}"))
}

struct Soak<'a> {
    options: &'a Options,
    job: Job,
    random: Random,
    verdict: Verdict,
    ranks: Vec<Rank>,
    /// Pairs of incarnations that must still connect, with their deadlines.
    awaited: Vec<AwaitedConnection>,
    /// Pairs that have connected; a rank may report this before its peer reports that it is
    /// ready.
    connected: BTreeSet<(RankIncarnation, RankIncarnation)>,
    /// Times of the kills since the start, latest first.
    kills: Vec<Duration>,
    /// Lives that have ended, and how much memory they held.
    past: Vec<(u32, u32, Resident)>,
    failures: u64,
    began: Instant,
}

struct Rank {
    worker: Option<Worker>,
    incarnation: u32,
    ready: bool,
    /// When the rank is restarted, if it was killed.
    returns: Option<Instant>,
    resident: Resident,
    /// Of this incarnation: operations that succeeded, operations that failed, bytes.
    tally: [u64; 3],
    /// When the number of successes last changed.
    since: Instant,
    /// The same tally, of all earlier incarnations.
    before: [u64; 3],
    stopped: bool,
}

/// The number of a rank, and of one of its incarnations, from 1 on.
type RankIncarnation = (u32, u32);

struct AwaitedConnection {
    rank: RankIncarnation,
    peer: RankIncarnation,
    until: Instant,
}

impl<'a> Soak<'a> {
    fn new(options: &'a Options, mut random: Random) -> Result<Soak<'a>, String> {
        let program = std::env::current_exe().map_err(|why| why.to_string())?;
        let mut job = Job::new(&program.to_string_lossy());
        job.set_places(options.places()?);
        for (node, command) in &options.within {
            job.set_node_command(*node, command.clone());
        }
        let rank = || Rank {
            worker: None,
            incarnation: 0,
            ready: false,
            returns: Some(Instant::now()),
            resident: Resident::default(),
            tally: [0; 3],
            since: Instant::now(),
            before: [0; 3],
            stopped: false,
        };
        let mut kills: Vec<Duration> = (0..options.kills)
            .map(|kill| moment(options, kill, random.below(1000)))
            .collect();
        kills.reverse();
        Ok(Soak {
            verdict: Verdict::new(options.ranks, Duration::from_secs(LIMIT)),
            ranks: (0..options.ranks).map(|_| rank()).collect(),
            options,
            job,
            random,
            awaited: Vec::new(),
            connected: BTreeSet::new(),
            kills,
            past: Vec::new(),
            failures: 0,
            began: Instant::now(),
        })
    }

    fn run(&mut self) -> Done {
        let mut sampled = Instant::now();
        while self.began.elapsed() < self.options.length {
            self.restart_ranks();
            self.poll_ranks()?;
            self.kill_if_time();
            if sampled.elapsed() > Duration::from_secs(1) {
                sampled = Instant::now();
                self.sample();
                self.check_overdue()?;
            }
            std::thread::sleep(TICK);
        }
        self.stop()
    }

    /// Restarts the ranks whose pause is over.
    fn restart_ranks(&mut self) {
        for number in 0..self.options.ranks {
            let rank = &self.ranks[number as usize];
            if rank.returns.is_some_and(|at| at <= Instant::now()) {
                self.start(number);
            }
        }
    }

    fn start(&mut self, number: u32) {
        let rank = &mut self.ranks[number as usize];
        rank.incarnation += 1;
        rank.returns = None;
        rank.since = Instant::now();
        let Options { ranks, largest, .. } = self.options;
        let seed = self.random.number() >> 16;
        let numbers = [
            number.into(),
            rank.incarnation.into(),
            (*ranks).into(),
            seed,
            *largest,
            LIMIT,
        ];
        let numbers = numbers.map(|number: u64| number.to_string());
        let mut words = vec!["rank"];
        words.extend(numbers.iter().map(String::as_str));
        let mut command = self.job.command(&words);
        for (name, value) in [
            ("PTL_NAL", "udp"),
            ("PTL_PEER_TIMEOUT", &PEER_TIMEOUT.to_string()),
        ] {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        rank.worker = Some(Worker::start(command));
    }

    /// Reads what the ranks report; one that has ended by itself is an error.
    fn poll_ranks(&mut self) -> Done {
        for number in 0..self.options.ranks {
            while let Some(line) = self.line_of(number) {
                self.on_line(number, &line)?;
            }
            let Some(worker) = &mut self.ranks[number as usize].worker else {
                continue;
            };
            if let Some(status) = worker.ended() {
                std::thread::sleep(STDERR_DELAY);
                let stderr = worker.stderr();
                return Err(format!("rank {number} ended with {status}: {stderr}"));
            }
        }
        Ok(())
    }

    fn line_of(&mut self, number: u32) -> Option<String> {
        self.ranks[number as usize].worker.as_mut()?.try_line()
    }

    fn on_line(&mut self, number: u32, line: &str) -> Done {
        let words: Vec<&str> = line.split_whitespace().collect();
        let digits = |word: &str| word.parse::<u64>().ok();
        let numbers: Vec<u64> = words
            .iter()
            .skip(1)
            .map_while(|word| digits(word))
            .collect();
        match (words.first().copied(), numbers.as_slice()) {
            (Some("ready"), _) => self.on_ready(number),
            (Some("connected"), [peer, incarnation]) => {
                self.on_connected(number, (*peer as u32, *incarnation as u32))
            }
            (Some("failed"), [peer, incarnation]) => {
                self.failures += 1;
                if !self.verdict.may_fail(*peer as u32, *incarnation as u32) {
                    return Err(format!("rank {number}, though no rank was killed: {line}"));
                }
            }
            (Some(what @ ("count" | "stopped")), [succeeded, failed, bytes]) => {
                let rank = &mut self.ranks[number as usize];
                if rank.tally[0] != *succeeded {
                    rank.since = Instant::now();
                }
                rank.tally = [*succeeded, *failed, *bytes];
                rank.stopped = what == "stopped";
            }
            _ => return Err(format!("rank {number} reports {line:?}")),
        }
        Ok(())
    }

    /// From now on the rank and each other one must connect within the limit.
    fn on_ready(&mut self, number: u32) {
        self.verdict.on_ready(number);
        self.ranks[number as usize].ready = true;
        let me = (number, self.ranks[number as usize].incarnation);
        let until = Instant::now() + Duration::from_secs(LIMIT);
        for (other, rank) in (0..).zip(&self.ranks) {
            if other != number && rank.ready {
                let other = (other, rank.incarnation);
                for (rank, peer) in [(me, other), (other, me)] {
                    if !self.connected.contains(&(rank, peer)) {
                        self.awaited.push(AwaitedConnection { rank, peer, until });
                    }
                }
            }
        }
    }

    fn on_connected(&mut self, number: u32, peer: RankIncarnation) {
        let rank = (number, self.ranks[number as usize].incarnation);
        self.connected.insert((rank, peer));
        self.awaited.retain(|m| m.rank != rank || m.peer != peer);
    }

    fn kill_if_time(&mut self) {
        let due = self
            .kills
            .last()
            .is_some_and(|at| *at <= self.began.elapsed());
        // Ranks whose memory is watched for the whole run are spared.
        let able: Vec<u32> = (SPARED..self.options.ranks)
            .filter(|number| self.ranks[*number as usize].ready)
            .collect();
        if !due || able.is_empty() {
            return;
        }
        self.kills.pop();
        let victim = able[self.random.below(able.len() as u64) as usize];
        self.kill(victim);
        // It returns before the end: a killed rank's shared memory is its successor's to remove.
        let left = self.options.length.saturating_sub(self.began.elapsed());
        let away = Duration::from_millis(self.random.below(AWAY)).min(left / 2);
        let rank = &mut self.ranks[victim as usize];
        rank.returns = Some(Instant::now() + away);
        let (at, incarnation) = (self.began.elapsed().as_secs_f32(), rank.incarnation);
        println!(
            "{at:7.1} s: rank {victim} killed in its incarnation {incarnation}, restarted in {away:?}"
        );
    }

    fn kill(&mut self, victim: u32) {
        let rank = &mut self.ranks[victim as usize];
        self.verdict.on_kill(victim, rank.incarnation);
        if let Some(mut worker) = rank.worker.take() {
            worker.kill();
        }
        rank.ready = false;
        for (sum, part) in rank.before.iter_mut().zip(std::mem::take(&mut rank.tally)) {
            *sum += part;
        }
        let resident = std::mem::take(&mut rank.resident);
        self.past.push((victim, rank.incarnation, resident));
        self.awaited
            .retain(|m| m.rank.0 != victim && m.peer.0 != victim);
    }

    fn sample(&mut self) {
        for rank in &mut self.ranks {
            if let Some(worker) = rank.worker.as_mut().filter(|_| rank.ready) {
                worker.send("count");
                rank.resident.sample(worker.id(), 0);
            }
        }
    }

    fn check_overdue(&self) -> Done {
        if let Some(late) = self.awaited.iter().find(|m| m.until < Instant::now()) {
            let ((rank, _), (peer, incarnation)) = (late.rank, late.peer);
            return Err(format!(
                "rank {rank} doesn't connect to rank {peer} in its incarnation {incarnation}"
            ));
        }
        let limit = Duration::from_secs(LIMIT);
        let mut ranks = (0..).zip(&self.ranks);
        let stuck = ranks.find(|(_, rank)| rank.returns.is_none() && rank.since.elapsed() > limit);
        match stuck {
            Some((number, rank)) => {
                let stderr = rank.worker.as_ref().map(Worker::stderr);
                Err(format!(
                    "rank {number} completes nothing; stderr: {stderr:?}"
                ))
            }
            None => Ok(()),
        }
    }

    /// Waits until no rank has an operation in flight, then ends all.
    fn stop(&mut self) -> Done {
        self.for_each_worker(|worker| worker.send("stop"));
        let until = Instant::now() + 2 * Duration::from_secs(LIMIT);
        while !self.all_have_stopped() {
            self.poll_ranks()?;
            if Instant::now() > until {
                let busy = (0..).zip(&self.ranks).filter(|(_, rank)| !rank.stopped);
                let busy: Vec<u32> = busy.map(|(number, _)| number).collect();
                return Err(format!("ranks {busy:?} still have operations in flight"));
            }
            std::thread::sleep(TICK);
        }
        self.for_each_worker(|worker| worker.send("quit"));
        for (number, rank) in self.ranks.iter_mut().enumerate() {
            let Some(worker) = &mut rank.worker else {
                continue;
            };
            let status = worker.wait();
            if !status.success() {
                let stderr = worker.stderr();
                return Err(format!("rank {number} ended with {status}: {stderr}"));
            }
        }
        Ok(())
    }

    fn all_have_stopped(&self) -> bool {
        let mut running = self.ranks.iter().filter(|rank| rank.worker.is_some());
        running.all(|rank| rank.stopped)
    }

    fn for_each_worker(&mut self, f: impl FnMut(&mut Worker)) {
        let workers = self
            .ranks
            .iter_mut()
            .filter_map(|rank| rank.worker.as_mut());
        workers.for_each(f);
    }

    fn report(&self) {
        println!("rank  starts  succeeded   failed       GB  resident, second and last quarter");
        for (number, rank) in self.ranks.iter().enumerate() {
            let [succeeded, failed, bytes] =
                std::array::from_fn(|at| rank.before[at] + rank.tally[at]);
            let (incarnation, resident) = (rank.incarnation, &rank.resident);
            let giga = bytes as f64 / 1e9;
            println!(
                "{number:4}  {incarnation:6}  {succeeded:9}  {failed:7}  {giga:7.1}  {resident}"
            );
        }
        let seconds = self.began.elapsed().as_secs_f32();
        println!("{seconds:.0} s, {} failures reported", self.failures);
    }

    /// What each rank has logged, and how long ago it completed something.
    fn report_stderr(&self) {
        for (number, rank) in self.ranks.iter().enumerate() {
            let Some(worker) = &rank.worker else {
                println!("rank {number} is absent");
                continue;
            };
            let quiet = rank.since.elapsed().as_secs_f32();
            println!("rank {number}: its last success is {quiet:.1} s old");
            print!("{}", worker.stderr());
        }
    }

    fn check_memory(&self) -> Done {
        let present = (0..).zip(&self.ranks);
        let present = present.map(|(number, rank)| (number, rank.incarnation, &rank.resident));
        let past = self
            .past
            .iter()
            .map(|(number, incarnation, r)| (*number, *incarnation, r));
        match present
            .chain(past)
            .find(|(_, _, resident)| resident.has_grown())
        {
            Some((number, incarnation, resident)) => Err(format!(
                "the memory of rank {number} grows in its incarnation {incarnation}: {resident}"
            )),
            None => Ok(()),
        }
    }

    fn check_shared_memory(&self) -> Done {
        match self.job.shared_memory_names() {
            none if none.is_empty() => Ok(()),
            names => Err(format!("still in /dev/shm: {names:?}")),
        }
    }
}

/// The time of a kill: each falls at random into its share of the run, and none into the first
/// or last tenth.
fn moment(options: &Options, kill: u32, thousandths: u64) -> Duration {
    let share = (f64::from(kill) + thousandths as f64 / 1000.0) / f64::from(options.kills);
    options.length.mul_f64(0.1 + 0.8 * share)
}

const TICK: Duration = Duration::from_millis(10);
/// How long the last lines of a process may take through its pipe.
const STDERR_DELAY: Duration = Duration::from_millis(200);
/// Ranks 0 and 1 are never killed.
const SPARED: u32 = 2;
