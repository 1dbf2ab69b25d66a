//! What another user puts where a job's names are.

use crate::Options;
use crate::peer::{BITS, Peer, SECRET, command, job};
use crate::sandbox::{self, Outcome, home, in_shared_memory, not_ended_by_signal, program, run};
use lintel_fault::job::{Job, Worker};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const ATTACKER: u32 = 65_534;
/// An ordinary user, and root.
const VICTIMS: [u32; 2] = [1001, 0];
const PATIENCE: Duration = Duration::from_secs(10);

/// What lies at a name.
#[derive(Clone, Copy, Debug)]
enum Plant {
    /// A link to a file of the victim's.
    Link,
    /// A link to where the victim has no file.
    Dangling,
    Fifo,
    Folder,
    /// An empty file that everybody may write.
    Empty,
    /// As long as the real one, that everybody may write.
    File,
    /// The same file, locked by its owner.
    Locked,
}

const PLANTS: [Plant; 7] = [
    Plant::Link,
    Plant::Dangling,
    Plant::Fifo,
    Plant::Folder,
    Plant::Empty,
    Plant::File,
    Plant::Locked,
];

/// The victim's folder, and what lies in it.
struct Home {
    folder: PathBuf,
    precious: PathBuf,
    new: PathBuf,
}

const PRECIOUS: [u8; 8192] = [b'p'; 8192];

impl Home {
    fn of(user: u32) -> Result<Home, String> {
        let folder = home(&format!("home-{user}"), user)?;
        let precious = folder.join("precious");
        std::fs::write(&precious, PRECIOUS).map_err(|why| why.to_string())?;
        std::os::unix::fs::chown(&precious, Some(user), Some(user))
            .map_err(|why| why.to_string())?;
        let new = folder.join("new");
        Ok(Home {
            folder,
            precious,
            new,
        })
    }

    fn check(&self) -> Outcome {
        let now = std::fs::read(&self.precious).map_err(|why| why.to_string())?;
        if let Some(at) = (0..PRECIOUS.len()).find(|at| now.get(*at) != PRECIOUS.get(*at)) {
            return Err(format!("byte {at} of the victim's file was changed"));
        }
        if now.len() != PRECIOUS.len() {
            return Err("the victim's file has got longer".into());
        }
        match self.new.exists() {
            true => Err("a file was made in the victim's folder".into()),
            false => Ok(()),
        }
    }
}

/// Plants at a name, as the attacker; what it returns must live as long as that lies.
fn plant(plant: Plant, at: &Path, size: u64, home: &Home) -> Result<Option<Worker>, String> {
    let name = at.display();
    let (precious, new) = (home.precious.display(), home.new.display());
    let file = format!("umask 0; : > {name}; truncate -s {size} {name}");
    let words = match plant {
        Plant::Link => format!("ln -s {precious} {name}"),
        Plant::Dangling => format!("ln -s {new} {name}"),
        Plant::Fifo => format!("umask 0; mkfifo {name}"),
        Plant::Folder => format!("umask 0; mkdir {name}"),
        Plant::Empty => format!("umask 0; : > {name}"),
        Plant::File => file,
        Plant::Locked => format!("{file}; exec flock -x {name} sh -c 'echo held; exec sleep 1000'"),
    };
    let mut command = Command::new("sh");
    command.args(["-c", &words]).uid(ATTACKER).gid(ATTACKER);
    if let Plant::Locked = plant {
        let mut holder = Worker::start(command);
        holder.expect("held");
        return Ok(Some(holder));
    }
    run(&mut command)?;
    Ok(None)
}

fn clear() {
    for name in in_shared_memory() {
        let path = Path::new("/dev/shm").join(name);
        if std::fs::remove_file(&path).is_err() {
            // A folder.
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

fn as_user(mut command: Command, user: u32, home: &Home) -> Command {
    command.uid(user).gid(user).env("HOME", &home.folder);
    command
}

/// Names of a job, with the lengths of their files.
fn names() -> Vec<(PathBuf, u64)> {
    let paths = in_shared_memory().into_iter();
    let paths = paths.map(|name| Path::new("/dev/shm").join(name));
    paths
        .filter_map(|path| {
            let length = std::fs::metadata(&path).ok()?.len();
            Some((path, length))
        })
        .collect()
}

/// Starts processes with names, and returns the names.
type NamesOf = fn(&Job, u32, &Home) -> Result<Vec<(PathBuf, u64)>, String>;
/// What happens where something is planted.
type Attack = fn(&Job, u32, &Home) -> Outcome;

/// Goes through victims, names and plants.
fn everywhere(names_of: NamesOf, attack: Attack) -> Outcome {
    let mut wrong = Vec::new();
    let mut tried = 0;
    for user in VICTIMS {
        let (job, home) = (job(), Home::of(user)?);
        let names = names_of(&job, user, &home)?;
        if names.is_empty() {
            return Err("no name of the job was found".into());
        }
        for (name, size) in names {
            for kind in PLANTS {
                clear();
                let holder = plant(kind, &name, size, &home)?;
                let outcome = attack(&job, user, &home).and_then(|()| home.check());
                drop(holder);
                tried += 1;
                if let Err(why) = outcome {
                    wrong.push(format!("{kind:?} at {}, uid {user}: {why}", name.display()));
                }
                std::fs::write(&home.precious, PRECIOUS).map_err(|why| why.to_string())?;
                let _ = std::fs::remove_file(&home.new);
            }
        }
        clear();
    }
    println!("{tried} cases, {} of them harmful", wrong.len());
    match wrong.as_slice() {
        [] => Ok(()),
        wrong => Err(wrong.join("\n")),
    }
}

/// At the names that two processes have.
pub fn planted(_: &Options) -> Outcome {
    everywhere(
        |job, user, home| {
            let mut peer = Peer::from(job, 0, as_user(command(job, 0), user, home));
            peer.open_interface()?;
            Ok(names())
        },
        |job, user, home| {
            let mut owner = Peer::from(job, 0, as_user(command(job, 0), user, home));
            let mut other = Peer::from(job, 1, as_user(command(job, 1), user, home));
            let to = owner.process;
            // Who puts there before its owner begins, and after.
            other.open_interface()?;
            other.area(0, 4096, b'A')?;
            other.ok("bind 0")?;
            let words = format!("put 0 4096 {} {} 1", to.nid, to.pid);
            other.answers_or_ended_by_itself(&words)?;
            owner.answers_or_ended_by_itself(&format!("open {}", to.pid))?;
            other.answers_or_ended_by_itself(&words)?;
            other.answers_or_ended_by_itself("event 200")?;
            for peer in [&mut owner, &mut other] {
                peer.answers_or_ended_by_itself("close 0")?;
                peer.lives()?;
            }
            Ok(())
        },
    )
}

fn agent(job: &Job, user: u32, home: &Home) -> Worker {
    let mut command = Command::new(program("lintel-agent"));
    command.args(["--iface", "127.0.0.1"]);
    command.env("LINTEL_JOB", job.name());
    Worker::start(as_user(command, user, home))
}

/// At the names that an agent has.
pub fn planted_for_agent(_: &Options) -> Outcome {
    everywhere(
        |job, user, home| {
            let mut agent = agent(job, user, home);
            agent.expect("ready");
            Ok(names())
        },
        |job, user, home| {
            let mut agent = agent(job, user, home);
            let until = Instant::now() + PATIENCE;
            while agent.try_line().is_none() && agent.ended().is_none() {
                if Instant::now() > until {
                    return Err("lintel-agent neither begins nor ends".into());
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            not_ended_by_signal("lintel-agent", &mut agent)?;
            ends(agent)
        },
    )
}

/// The agent ends on SIGTERM alone.
fn ends(mut agent: Worker) -> Outcome {
    if agent.ended().is_some() {
        return Ok(());
    }
    let words = format!("kill -TERM {}", agent.id());
    sandbox::run(Command::new("sh").args(["-c", &words]))?;
    let until = Instant::now() + PATIENCE;
    while agent.ended().is_none() {
        if Instant::now() > until {
            return Err("SIGTERM doesn't end lintel-agent".into());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// With `PTL_CONN=node` processes of a node share a file, with a lock.
pub fn locked(_: &Options) -> Outcome {
    let start = |job: &Job, user: u32, home: &Home| {
        let mut command = as_user(command(job, 0), user, home);
        command.env("PTL_CONN", "node");
        Peer::from(job, 0, command)
    };
    for user in VICTIMS {
        let (job, home) = (job(), Home::of(user)?);
        let mut peer = start(&job, user, &home);
        peer.open_interface()?;
        let found = names();
        peer.end()?;
        clear();
        let (path, size) = found
            .iter()
            .find(|(name, _)| name.display().to_string().ends_with("-paths"))
            .ok_or(format!("no file of paths among {found:?}"))?;
        let holder = plant(Plant::Locked, path, *size, &home)?;
        let mut peer = start(&job, user, &home);
        peer.answers_or_ended_by_itself(&format!("open {}", peer.process.pid))
            .map_err(|why| format!("uid {user}: PtlNIInit hangs: {why}"))?;
        drop(holder);
        clear();
    }
    Ok(())
}

/// Another user joins the job, and lets everybody use its files.
pub fn squatter(_: &Options) -> Outcome {
    for user in VICTIMS {
        squat(user).map_err(|why| format!("uid {user}: {why}"))?;
        clear();
    }
    Ok(())
}

fn squat(user: u32) -> Outcome {
    let (job, home) = (job(), Home::of(user)?);
    let mut attacker = Peer::from(&job, 1, as_user(command(&job, 1), ATTACKER, &home));
    attacker.open_interface()?;
    attacker.area(0, 1 << 20, 0)?;
    attacker.ok(&format!("offer 0 {BITS}"))?;
    let mut open = Command::new("sh");
    open.args(["-c", "chmod 666 /dev/shm/lintel-*"])
        .uid(ATTACKER);
    run(&mut open)?;
    let mut victim = Peer::from(&job, 0, as_user(command(&job, 0), user, &home));
    victim.open_interface()?;
    victim.area(0, 1 << 20, SECRET)?;
    victim.ok("bind 0")?;
    let to = attacker.process;
    for bytes in [8, 4000, 1 << 20] {
        let words = format!("put 0 {bytes} {} {} {BITS}", to.nid, to.pid);
        victim.answers_or_ended_by_itself(&words)?;
        let event = victim.event(500);
        let seen = attacker.events(50);
        if !seen.is_empty() || attacker.like(0, SECRET)? > 0 {
            return Err(format!(
                "another user was sent the victim's bytes: {seen:?}"
            ));
        }
        if event.starts_with("ack 0") || event.starts_with("send 0") {
            return Err(format!("a put to another user succeeds: {event}"));
        }
    }
    let mut cut = Command::new("sh");
    cut.args(["-c", "truncate -s 0 $(find /dev/shm -type f -user 65534)"]);
    run(cut.uid(ATTACKER))?;
    let words = format!("put 0 4000 {} {} {BITS}", to.nid, to.pid);
    victim.answers_or_ended_by_itself(&words)?;
    victim.answers_or_ended_by_itself("event 500")?;
    victim.answers_or_ended_by_itself("close 0")?;
    victim.lives()
}
