//! `--listen` and `--peer`: one process on each of two machines, without a launcher.
//!
//! ```text
//!   lintel perf --listen                 lintel perf put --peer HOST
//!        │ ───────── challenge ──────────▶ │
//!        │ ◀─ words of the command line ── │   authenticated with the job's secret
//!        │ ─────────── consent ──────────▶ │
//!     becomes rank 1                    becomes rank 0, which reports
//! ```
//!
//! Each then starts itself anew, with the address of the connection as its node's, and the
//! connection as standard input: over it the two meet between measurements.

use std::env;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;

use super::{Options, complete, take_part};
use crate::connection::Connection;
use crate::error::{During, Error, Result};
use crate::team::Team;

/// The hidden command by which each of the two starts itself.
pub const PEER: &str = "perf-peer";

/// The port at which `--listen` waits unless another is given.
pub const PORT: u16 = 18_477;

/// What [`PEER`] takes.
#[derive(Debug, clap::Args)]
pub struct PeerArgs {
    #[arg(long)]
    rank: usize,

    #[command(flatten)]
    options: Options,
}

/// Options as they come from another machine.
#[derive(Debug, Parser)]
struct Sent {
    #[command(flatten)]
    options: Options,
}

/// Waits for the other machine, or connects to it; then this process becomes a rank.
///
/// # Errors
/// Nobody listens there, the secrets differ, or what the system refused.
pub fn run(options: &Options) -> Result<ExitCode> {
    let secret = secret()?;
    let (stream, rank, words) = match &options.peer {
        Some(host) => {
            let words = own_words()?;
            (connect(host, options.port, &secret, &words)?, 0, words)
        }
        None => {
            let (stream, words) = listen(options.port, &secret)?;
            (stream, 1, words)
        }
    };
    Err(become_rank(stream, rank, words))
}

/// The words after `perf`.
fn own_words() -> Result<Vec<String>> {
    let words = env::args_os().skip(2).map(|word| word.into_string());
    let words: std::result::Result<Vec<String>, _> = words.collect();
    words.map_err(|word| Error::Usage(format!("{} is no text", word.to_string_lossy())))
}

/// The job's key, which both machines have from the same secret.
fn secret() -> Result<[u8; 32]> {
    let job = env::var("LINTEL_JOB").unwrap_or_default();
    let job = if job.is_empty() { "0" } else { &job };
    lintel_runtime::key_of(job).map_err(Error::Usage)
}

fn connect(host: &str, port: u16, secret: &[u8; 32], words: &[String]) -> Result<TcpStream> {
    let doing = || format!("connecting to {host}, port {port}");
    let mut addresses = (host, port).to_socket_addrs().during(doing())?;
    let address = addresses
        .find(|address| address.is_ipv4())
        .ok_or_else(|| Error::Usage(format!("{host} has no IPv4 address")))?;
    let mut stream =
        TcpStream::connect_timeout(&address, PATIENCE).map_err(|error| match error.kind() {
            ErrorKind::ConnectionRefused => Error::Usage(format!(
                "nobody listens on {host}, port {port}: start `lintel perf --listen` there"
            )),
            _ => Error::System {
                what: doing(),
                source: error,
            },
        })?;
    shake_hands(&mut stream, secret, words)
        .map_err(|why| Error::Usage(format!("{host}: {why}")))?;
    Ok(stream)
}

/// The connecting side of the conversation.
fn shake_hands(
    stream: &mut TcpStream,
    secret: &[u8; 32],
    words: &[String],
) -> std::result::Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    let challenge: [u8; 32] = read_array(stream).map_err(text)?;
    let own = random().map_err(text)?;
    let opening = Opening {
        version: VERSION.into(),
        words: words.into(),
    };
    let opening = serde_json::to_vec(&opening).map_err(|error| error.to_string())?;
    let seal = seal(secret, &[&challenge, &own, &opening]);
    let sent = [
        &own[..],
        seal.as_bytes(),
        &(opening.len() as u32).to_le_bytes(),
        &opening,
    ]
    .concat();
    stream.write_all(&sent).map_err(text)?;
    let answer = read_text(stream).map_err(text)?;
    let sealed: [u8; 32] = read_array(stream).map_err(text)?;
    if self::seal(secret, &[&own, answer.as_bytes()]) != sealed {
        return Err(
            "its secret is another one: both machines need the same secret file \
                    (PTL_SECRET_FILE)"
                .into(),
        );
    }
    match answer.as_str() {
        "" => Ok(()),
        refusal => Err(refusal.into()),
    }
}

fn listen(port: u16, secret: &[u8; 32]) -> Result<(TcpStream, Vec<String>)> {
    let doing = || format!("listening on port {port}");
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).during(doing())?;
    let port = listener.local_addr().during(doing())?.port();
    eprintln!("lintel: waiting for `lintel perf --peer` on port {port}");
    loop {
        let (mut stream, from) = listener.accept().during(doing())?;
        match answer(&mut stream, secret) {
            Ok(words) => return Ok((stream, words)),
            // Any process that reaches the port may try.
            Err(why) => eprintln!("lintel: {} was refused: {why}", from.ip()),
        }
    }
}

/// The listening side of the conversation; the words of the other's command line.
fn answer(stream: &mut TcpStream, secret: &[u8; 32]) -> std::result::Result<Vec<String>, String> {
    let text = |error: std::io::Error| error.to_string();
    stream.set_read_timeout(Some(PATIENCE)).map_err(text)?;
    let challenge = random().map_err(text)?;
    stream.write_all(&challenge).map_err(text)?;
    let others: [u8; 32] = read_array(stream).map_err(text)?;
    let sealed: [u8; 32] = read_array(stream).map_err(text)?;
    let opening = read_text(stream).map_err(text)?;
    let checked = match seal(secret, &[&challenge, &others, opening.as_bytes()]) == sealed {
        true => words_of(&opening),
        false => Err("its secret is another one".into()),
    };
    let said = checked.as_ref().err().map_or("", String::as_str);
    let seal = seal(secret, &[&others, said.as_bytes()]);
    let answer = [
        &(said.len() as u32).to_le_bytes(),
        said.as_bytes(),
        seal.as_bytes(),
    ]
    .concat();
    stream.write_all(&answer).map_err(text)?;
    checked
}

/// What the connecting side sends.
#[derive(serde::Serialize, serde::Deserialize)]
struct Opening {
    version: String,
    words: Vec<String>,
}

fn words_of(opening: &str) -> std::result::Result<Vec<String>, String> {
    let opening: Opening =
        serde_json::from_str(opening).map_err(|error| format!("no opening: {error}"))?;
    if opening.version != VERSION {
        let theirs = opening.version;
        return Err(format!(
            "one machine has Lintel {VERSION}, the other one {theirs}"
        ));
    }
    let words = std::iter::once("perf").chain(opening.words.iter().map(String::as_str));
    let sent = Sent::try_parse_from(words).map_err(|error| error.to_string())?;
    match sent.options.peer {
        Some(_) => Ok(opening.words),
        None => Err("its command line names no --peer".into()),
    }
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What only one who knows the secret can compute of these bytes. To compare it takes the same
/// time whatever differs.
fn seal(secret: &[u8; 32], parts: &[&[u8]]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(secret);
    hasher.update(b"lintel perf --peer");
    for part in parts {
        hasher
            .update(&(part.len() as u64).to_le_bytes())
            .update(part);
    }
    hasher.finalize()
}

fn random() -> std::io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_array<const N: usize>(stream: &mut TcpStream) -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn read_text(stream: &mut TcpStream) -> std::io::Result<String> {
    let length = u32::from_le_bytes(read_array(stream)?);
    if length > MOST_TEXT {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| ErrorKind::InvalidData.into())
}

/// Starts this program anew in this process: a rank, on the node of the connection's address.
fn become_rank(stream: TcpStream, rank: usize, words: Vec<String>) -> Error {
    let during = "starting a rank";
    let started = || -> Result<std::io::Error> {
        stream.set_read_timeout(None).during(during)?;
        let connection = Connection::new(stream.try_clone().during(during)?, rank == 0)?;
        let program = env::current_exe().during("finding this program")?;
        let parsed = Sent::try_parse_from(std::iter::once("perf".into()).chain(words.clone()));
        let parsed = parsed.map_err(|error| Error::Usage(error.to_string()))?;
        let mut command = Command::new(program);
        command
            .arg(PEER)
            .args(["--rank", &rank.to_string()])
            .args(&words);
        let is_set = |name: &str| env::var(name).is_ok_and(|value| !value.is_empty());
        if !is_set("PTL_IFACE") {
            command.env("PTL_IFACE", connection.addresses().0.to_string());
        }
        if !is_set("PTL_NAL") {
            command.env("PTL_NAL", "udp");
        }
        command.envs(parsed.options.network.given());
        Ok(command.stdin(OwnedFd::from(stream)).exec())
    };
    match started() {
        Ok(source) => Error::System {
            what: during.into(),
            source,
        },
        Err(error) => error,
    }
}

/// One of the two ranks; the connection is its standard input.
///
/// # Errors
/// What the system or Portals refused, or the other one has gone.
pub fn serve(args: PeerArgs) -> Result<()> {
    let PeerArgs { rank, mut options } = args;
    let stream = std::io::stdin().as_fd().try_clone_to_owned();
    let stream = TcpStream::from(stream.during("taking the connection")?);
    if rank != 0 {
        // They are the other machine's.
        options.cores.clear();
    }
    let options = complete(options)?;
    let connection = Connection::new(stream, rank == 0)?;
    take_part(options, rank, || {
        Ok(Team::over_connection(connection, rank))
    })
}

/// How long one side may be silent before the two are ranks.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a command line, or of a refusal.
const MOST_TEXT: u32 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(
        secrets: [[u8; 32]; 2],
        words: &[&str],
    ) -> (
        std::result::Result<(), String>,
        std::result::Result<Vec<String>, String>,
    ) {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it has one");
        let words: Vec<String> = words.iter().map(|word| (*word).into()).collect();
        let answers = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("one connects");
            answer(&mut stream, &secrets[0])
        });
        let mut stream = TcpStream::connect(address).expect("it listens");
        let agreed = shake_hands(&mut stream, &secrets[1], &words);
        (agreed, answers.join().expect("it ends"))
    }

    #[test]
    fn the_words_of_the_command_line_reach_the_one_that_listens() {
        let words = ["put", "--sizes", "8", "--peer", "there"];
        let (agreed, answered) = conversation([[1; 32], [1; 32]], &words);
        assert_eq!(agreed, Ok(()));
        assert_eq!(answered.expect("same secret"), words);
    }

    #[test]
    fn machines_with_different_secrets_find_out_before_they_measure() {
        let (agreed, answered) = conversation([[1; 32], [2; 32]], &["--peer", "there"]);
        let agreed = agreed.expect_err("another secret");
        assert!(agreed.contains("PTL_SECRET_FILE"), "{agreed}");
        assert_eq!(answered, Err("its secret is another one".into()));
    }

    #[test]
    fn words_that_are_no_command_line_are_refused_with_the_reason() {
        for (words, why) in [(&["--size"][..], "--size"), (&["put"], "--peer")] {
            let (agreed, answered) = conversation([[1; 32], [1; 32]], words);
            assert!(answered.is_err());
            let refusal = agreed.expect_err("no such option");
            assert!(refusal.contains(why), "{refusal}");
        }
    }
}
