//! Starts the members, kills and restarts the last ones, and judges what they tell.

use crate::Done;
use crate::options::Options;
use lintel_fault::random::Random;
use lintel_fault::resident::Resident;
use lintel_fault::worker::Worker;
use std::process::Command;
use std::time::{Duration, Instant};

/// Members of each transport.
const MEMBERS: usize = 3;
/// The one that is killed.
const VICTIM: usize = MEMBERS - 1;
/// The longest time in which a member may end no operation.
const STALL: Duration = Duration::from_secs(90);
/// How long what is under way at the end may take.
const LAST: Duration = Duration::from_secs(100);

/// Runs the soak over all transports at once.
pub fn run(options: &Options) -> Done {
    println!("seed {}", options.seed);
    let worlds = std::thread::scope(|scope| {
        let run = |transport| scope.spawn(move || World::start(transport, options)?.run(options));
        let running: Vec<_> = options.transports.iter().map(|it| run(*it)).collect();
        let ends = running.into_iter().map(|it| match it.join() {
            Ok(done) => done,
            Err(_) => Err("a member doesn't do what it should".into()),
        });
        ends.collect::<Vec<Done>>()
    });
    worlds.into_iter().collect()
}

/// The members of one transport.
struct World {
    transport: &'static str,
    place: String,
    random: Random,
    members: Vec<Member>,
}

struct Member {
    worker: Worker,
    uri: String,
    incarnation: u32,
    /// Operations that have ended, messages that were received, and when that last changed.
    tally: (u64, u64),
    changed: Instant,
    is_quiet: bool,
    /// The most that its endpoint has held, bytes.
    held: u64,
    resident: Resident,
}

impl World {
    fn start(transport: &'static str, options: &Options) -> Result<World, String> {
        let place = match transport {
            "udp" => options.fault.clone(),
            _ => format!("/soak/{}", std::process::id()),
        };
        let mut world = World {
            transport,
            place,
            random: Random::new(options.seed),
            members: Vec::new(),
        };
        for rank in 0..MEMBERS {
            let member = world.member(rank, 0)?;
            world.members.push(member);
        }
        for (member, of) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            world.tell_of(member, of);
        }
        Ok(world)
    }

    /// Starts a member and learns its URI.
    fn member(&mut self, rank: usize, incarnation: u32) -> Result<Member, String> {
        let program = std::env::current_exe().map_err(|why| why.to_string())?;
        let mut command = Command::new(program);
        let seed = self.random.number();
        command.args(["member", self.transport, &self.place]).args([
            rank.to_string(),
            incarnation.to_string(),
            seed.to_string(),
        ]);
        let mut worker = Worker::start(command);
        let uri = worker.expect("uri ");
        Ok(Member {
            worker,
            uri,
            incarnation,
            tally: (0, 0),
            changed: Instant::now(),
            is_quiet: false,
            held: 0,
            resident: Resident::default(),
        })
    }

    /// Has a member connect to another one.
    fn tell_of(&mut self, member: usize, of: usize) {
        let Member {
            uri, incarnation, ..
        } = &self.members[of];
        let line = format!("peer {of} {incarnation} {uri}");
        self.members[member].worker.send(&line);
    }

    fn run(mut self, options: &Options) -> Done {
        let begun = Instant::now();
        let mut kills = 0;
        let mut sampled = begun;
        while begun.elapsed() < options.length {
            self.listen()?;
            // Kills lie evenly in the run, away from its ends.
            let due = options.length * (2 * kills + 1) / (2 * options.kills.max(1));
            if kills < options.kills && begun.elapsed() >= due {
                kills += 1;
                self.kill()?;
            }
            if sampled.elapsed() >= Duration::from_secs(1) {
                sampled = Instant::now();
                for member in &mut self.members {
                    member.resident.sample(member.worker.id(), member.held);
                }
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.end(kills)
    }

    /// Reads what the members tell.
    fn listen(&mut self) -> Done {
        for (rank, member) in self.members.iter_mut().enumerate() {
            while let Some(line) = member.worker.try_line() {
                member.on_line(&line)?;
            }
            if let Some(status) = member.worker.ended() {
                let said = member.worker.stderr();
                return Err(format!("{} {rank} ended, {status}: {said}", self.transport));
            }
            if !member.is_quiet && member.changed.elapsed() > STALL {
                return Err(format!("{} {rank} ends no operation", self.transport));
            }
        }
        Ok(())
    }

    /// Kills the last member, and starts it again.
    fn kill(&mut self) -> Done {
        for rank in 0..VICTIM {
            let member = &mut self.members[rank];
            member.worker.send(&format!("killing {VICTIM}"));
            loop {
                let line = member.worker.line();
                if line == "ready" {
                    break;
                }
                member.on_line(&line)?;
            }
        }
        self.members[VICTIM].worker.kill();
        let incarnation = self.members[VICTIM].incarnation + 1;
        self.members[VICTIM] = self.member(VICTIM, incarnation)?;
        for other in 0..VICTIM {
            self.tell_of(other, VICTIM);
            self.tell_of(VICTIM, other);
        }
        Ok(())
    }

    /// Has all operations end, and all members.
    fn end(mut self, kills: u32) -> Done {
        self.members
            .iter_mut()
            .for_each(|it| it.worker.send("stop"));
        let until = Instant::now() + LAST;
        while !self.members.iter().all(|it| it.is_quiet) {
            self.listen()?;
            if Instant::now() > until {
                return Err(format!("over {} operations don't end", self.transport));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        for member in &mut self.members {
            member.worker.send("exit");
        }
        for (rank, member) in self.members.iter_mut().enumerate() {
            let status = member.worker.wait();
            if !status.success() {
                let said = member.worker.stderr();
                return Err(format!("{} {rank} ended, {status}: {said}", self.transport));
            }
        }
        self.report(kills)
    }

    fn report(&self, kills: u32) -> Done {
        println!("{}: {kills} kills", self.transport);
        println!(
            "rank  operations  messages  held, MiB  resident beyond that, second and last quarter"
        );
        for (rank, member) in self.members.iter().enumerate() {
            let (ended, received) = member.tally;
            let held = member.held as f64 / f64::from(1 << 20);
            println!(
                "{rank:4}  {ended:10}  {received:8}  {held:9.1}  {}",
                member.resident
            );
        }
        let grows = |it: &Member| it.resident.has_grown();
        match self.members.iter().position(grows) {
            Some(rank) => Err(format!("the memory of {} {rank} grows", self.transport)),
            None => Ok(()),
        }
    }
}

impl Member {
    fn on_line(&mut self, line: &str) -> Done {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["tally", ended, received, held] => {
                let number = |word: &str| word.parse().map_err(|_| format!("'{line}'"));
                self.held = number(held)?;
                let tally = (number(ended)?, number(received)?);
                if tally.0 != self.tally.0 {
                    self.changed = Instant::now();
                }
                self.tally = tally;
            }
            ["quiet"] => self.is_quiet = true,
            _ => return Err(format!("a member says '{line}'")),
        }
        Ok(())
    }
}
