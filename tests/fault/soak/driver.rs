//! Starts the ranks, kills some, starts them again, and judges what they say.

use crate::Done;
use crate::options::Options;
use crate::resident::Resident;
use crate::verdict::Verdict;
use lintel_fault::job::{Job, Worker};
use lintel_fault::random::Random;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// After so long a silent rank is dead to the others, milliseconds.
const PEER_TIMEOUT: u64 = 5000;
/// Seconds that an operation may take: a dead rank is noticed, on a busy machine.
const LIMIT: u64 = 40;
/// How long a killed rank is away, at most, milliseconds.
const AWAY: u64 = 3000;

/// Soaks as the options say.
pub fn run(options: &Options) -> Done {
    let seed = options.seed;
    let seed = seed.unwrap_or_else(|| Random::from_env().number() >> 16);
    println!("seed {seed}");
    let random = Random::new(seed);
    let mut soak = Soak::new(options, random)?;
    let done = soak.run();
    soak.report();
    done.and_then(|()| soak.check_memory())
        .and_then(|()| soak.check_shared_memory())
        .map_err(|why| format!("{why}\nthe same choices again: --seed {seed}"))
}

struct Soak<'a> {
    options: &'a Options,
    job: Job,
    random: Random,
    verdict: Verdict,
    ranks: Vec<Rank>,
    /// Who must still meet whom, in which lives, until when.
    meetings: Vec<Meeting>,
    /// Who has met whom; that may be heard of before the other is heard to be ready.
    met: BTreeSet<(Life, Life)>,
    /// When somebody is killed, latest first.
    kills: Vec<Duration>,
    /// Lives that have ended, and how much memory they held.
    past: Vec<(u32, u32, Resident)>,
    failures: u64,
    began: Instant,
}

struct Rank {
    worker: Option<Worker>,
    life: u32,
    ready: bool,
    /// When it is to be started again.
    returns: Option<Instant>,
    resident: Resident,
    /// Of this life: operations that succeeded, that failed, bytes; and since when
    /// the first hasn't changed.
    tally: [u64; 3],
    since: Instant,
    /// Of earlier lives.
    before: [u64; 3],
    stopped: bool,
}

/// A rank and one of its lives.
type Life = (u32, u32);

struct Meeting {
    who: Life,
    whom: Life,
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
            life: 0,
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
            meetings: Vec::new(),
            met: BTreeSet::new(),
            kills,
            past: Vec::new(),
            failures: 0,
            began: Instant::now(),
        })
    }

    fn run(&mut self) -> Done {
        let mut asked = Instant::now();
        while self.began.elapsed() < self.options.length {
            self.return_ranks();
            self.listen()?;
            self.kill_if_time();
            if asked.elapsed() > Duration::from_secs(1) {
                asked = Instant::now();
                self.ask();
                self.look_for_stuck_ones()?;
            }
            std::thread::sleep(TICK);
        }
        self.stop()
    }

    /// Starts ranks whose time has come.
    fn return_ranks(&mut self) {
        for number in 0..self.options.ranks {
            let rank = &self.ranks[number as usize];
            if rank.returns.is_some_and(|at| at <= Instant::now()) {
                self.start(number);
            }
        }
    }

    fn start(&mut self, number: u32) {
        let rank = &mut self.ranks[number as usize];
        rank.life += 1;
        rank.returns = None;
        rank.since = Instant::now();
        let Options { ranks, largest, .. } = self.options;
        let seed = self.random.number() >> 16;
        let numbers = [
            number.into(),
            rank.life.into(),
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

    /// Takes what the ranks say; notices those that end on their own.
    fn listen(&mut self) -> Done {
        for number in 0..self.options.ranks {
            while let Some(line) = self.line_of(number) {
                self.on_line(number, &line)?;
            }
            let Some(worker) = &mut self.ranks[number as usize].worker else {
                continue;
            };
            if let Some(status) = worker.ended() {
                std::thread::sleep(LAST_WORDS);
                let said = worker.stderr();
                return Err(format!("rank {number} ended with {status}: {said}"));
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
            (Some("met"), [whom, life]) => self.on_met(number, (*whom as u32, *life as u32)),
            (Some("failed"), [peer, life]) => {
                self.failures += 1;
                if !self.verdict.may_fail(*peer as u32, *life as u32) {
                    return Err(format!("rank {number}, though nobody was killed: {line}"));
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
            _ => return Err(format!("rank {number} says {line:?}")),
        }
        Ok(())
    }

    /// From now on it and each other one must find each other.
    fn on_ready(&mut self, number: u32) {
        self.verdict.on_ready(number);
        self.ranks[number as usize].ready = true;
        let me = (number, self.ranks[number as usize].life);
        let until = Instant::now() + Duration::from_secs(LIMIT);
        for (other, rank) in (0..).zip(&self.ranks) {
            if other != number && rank.ready {
                let other = (other, rank.life);
                for (who, whom) in [(me, other), (other, me)] {
                    if !self.met.contains(&(who, whom)) {
                        self.meetings.push(Meeting { who, whom, until });
                    }
                }
            }
        }
    }

    fn on_met(&mut self, number: u32, whom: Life) {
        let who = (number, self.ranks[number as usize].life);
        self.met.insert((who, whom));
        self.meetings.retain(|m| m.who != who || m.whom != whom);
    }

    fn kill_if_time(&mut self) {
        let due = self
            .kills
            .last()
            .is_some_and(|at| *at <= self.began.elapsed());
        // Those on which the memory of a whole run is watched are spared.
        let able: Vec<u32> = (SPARED..self.options.ranks)
            .filter(|number| self.ranks[*number as usize].ready)
            .collect();
        if !due || able.is_empty() {
            return;
        }
        self.kills.pop();
        let victim = able[self.random.below(able.len() as u64) as usize];
        self.kill(victim);
        let away = Duration::from_millis(self.random.below(AWAY));
        let rank = &mut self.ranks[victim as usize];
        rank.returns = Some(Instant::now() + away);
        let (at, life) = (self.began.elapsed().as_secs_f32(), rank.life);
        println!("{at:7.1} s: rank {victim} killed in its life {life}, back in {away:?}");
    }

    fn kill(&mut self, victim: u32) {
        let rank = &mut self.ranks[victim as usize];
        self.verdict.on_kill(victim, rank.life);
        if let Some(mut worker) = rank.worker.take() {
            worker.kill();
        }
        rank.ready = false;
        for (sum, part) in rank.before.iter_mut().zip(std::mem::take(&mut rank.tally)) {
            *sum += part;
        }
        let resident = std::mem::take(&mut rank.resident);
        self.past.push((victim, rank.life, resident));
        self.meetings
            .retain(|m| m.who.0 != victim && m.whom.0 != victim);
    }

    fn ask(&mut self) {
        for rank in &mut self.ranks {
            if let Some(worker) = rank.worker.as_mut().filter(|_| rank.ready) {
                worker.send("count");
                rank.resident.sample(worker.id());
            }
        }
    }

    fn look_for_stuck_ones(&self) -> Done {
        if let Some(late) = self.meetings.iter().find(|m| m.until < Instant::now()) {
            let ((who, _), (whom, life)) = (late.who, late.whom);
            return Err(format!(
                "rank {who} doesn't find rank {whom} in its life {life}"
            ));
        }
        let limit = Duration::from_secs(LIMIT);
        let mut ranks = (0..).zip(&self.ranks);
        let stuck = ranks.find(|(_, rank)| rank.returns.is_none() && rank.since.elapsed() > limit);
        match stuck {
            Some((number, rank)) => {
                let said = rank.worker.as_ref().map(Worker::stderr);
                Err(format!(
                    "rank {number} gets nothing done; it says: {said:?}"
                ))
            }
            None => Ok(()),
        }
    }

    /// Everybody ends what is under way, still answering; then all leave.
    fn stop(&mut self) -> Done {
        self.for_each_worker(|worker| worker.send("stop"));
        let until = Instant::now() + 2 * Duration::from_secs(LIMIT);
        while !self.all_have_stopped() {
            self.listen()?;
            if Instant::now() > until {
                let busy = (0..).zip(&self.ranks).filter(|(_, rank)| !rank.stopped);
                let busy: Vec<u32> = busy.map(|(number, _)| number).collect();
                return Err(format!("ranks {busy:?} don't come to an end"));
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
                let said = worker.stderr();
                return Err(format!("rank {number} ended with {status}: {said}"));
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
        println!("rank  lives  succeeded   failed       GB  resident, second and last quarter");
        for (number, rank) in self.ranks.iter().enumerate() {
            let [succeeded, failed, bytes] =
                std::array::from_fn(|at| rank.before[at] + rank.tally[at]);
            let (life, resident) = (rank.life, &rank.resident);
            let giga = bytes as f64 / 1e9;
            println!("{number:4}  {life:5}  {succeeded:9}  {failed:7}  {giga:7.1}  {resident}");
        }
        let seconds = self.began.elapsed().as_secs_f32();
        println!("{seconds:.0} s, {} failures told", self.failures);
    }

    fn check_memory(&self) -> Done {
        let present = (0..).zip(&self.ranks);
        let present = present.map(|(number, rank)| (number, rank.life, &rank.resident));
        let past = self
            .past
            .iter()
            .map(|(number, life, r)| (*number, *life, r));
        match present
            .chain(past)
            .find(|(_, _, resident)| resident.has_grown())
        {
            Some((number, life, resident)) => Err(format!(
                "the memory of rank {number} grows in its life {life}: {resident}"
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

/// When one of so many kills falls: each in its part of the time, the first and
/// last tenth of which are quiet.
fn moment(options: &Options, kill: u32, thousandths: u64) -> Duration {
    let share = (f64::from(kill) + thousandths as f64 / 1000.0) / f64::from(options.kills);
    options.length.mul_f64(0.1 + 0.8 * share)
}

const TICK: Duration = Duration::from_millis(10);
/// So long may the last words of a process be on their way.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Ranks 0 and 1 live all the time.
const SPARED: u32 = 2;
