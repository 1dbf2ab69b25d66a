//! The command line of `fault-soak`.

use lintel_fault::places::Places;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::str::FromStr;
use std::time::Duration;

/// The text of `--help`.
pub const HELP: &str = "\
fault-soak [--seconds S] [--kills N] [--ranks N] [--nodes N] [--seed N]
           [--largest BYTES] [--first ADDRESS] [--within NODE=COMMAND]

Random operations among ranks, the even ones on the first of two virtual nodes,
the odd ones on the second, while ranks are killed and started again.

  --seconds S             how long ranks start operations (60)
  --kills N               processes killed meanwhile, never ranks 0 and 1 (2)
  --ranks N               processes (8)
  --nodes N               virtual nodes (2)
  --seed N                repeats the choices of an earlier run
  --largest BYTES         the longest message (1048576)
  --first ADDRESS         the first node's address; without it, loopback addresses
                          that nobody else uses
  --within NODE=COMMAND   starts the ranks of that node, from 0, by this command

PTL_NAL, LINTEL_FAULT, PTL_PEER_TIMEOUT and the like reach the ranks; without the
first it is udp.
";

/// The values of all options.
#[derive(Debug)]
pub struct Options {
    /// `--seconds`: how long ranks start operations.
    pub length: Duration,
    /// `--kills`: processes killed meanwhile.
    pub kills: u32,
    /// `--ranks`: processes of the job.
    pub ranks: u32,
    /// `--nodes`: virtual nodes over which the processes are spread.
    pub nodes: u32,
    /// `--seed`: repeats the choices of an earlier run.
    pub seed: Option<u64>,
    /// `--largest`: the longest message, bytes.
    pub largest: u64,
    /// `--first`: the first node's address, if it isn't a loopback one.
    pub first: Option<Ipv4Addr>,
    /// `--within`: by node, the command that starts its ranks.
    pub within: BTreeMap<u32, Vec<String>>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            length: Duration::from_secs(60),
            kills: 2,
            ranks: 8,
            nodes: 2,
            seed: None,
            largest: 1 << 20,
            first: None,
            within: BTreeMap::new(),
        }
    }
}

impl Options {
    /// Parses the arguments; an error names the one that is wrong.
    pub fn read(words: &[&str]) -> Result<Options, String> {
        let mut options = Options::default();
        let mut words = words.iter();
        while let Some(name) = words.next() {
            let value = words.next().ok_or(format!("{name} wants a value"))?;
            options.set(name, value)?;
        }
        if options.ranks < 2 || options.nodes == 0 || options.ranks > 64 {
            return Err("a soak wants 2 to 64 ranks, and a node".into());
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "--seconds" => self.length = Duration::from_secs(number(name, value)?),
            "--kills" => self.kills = number(name, value)?,
            "--ranks" => self.ranks = number(name, value)?,
            "--nodes" => self.nodes = number(name, value)?,
            "--seed" => self.seed = Some(number(name, value)?),
            "--largest" => self.largest = number::<u64>(name, value)?.clamp(8, 1 << 20),
            "--first" => self.first = Some(number(name, value)?),
            "--within" => {
                let pair = value.split_once('=');
                let (node, command) = pair.ok_or(format!("{name} wants NODE=COMMAND"))?;
                let command: Vec<String> = command.split_whitespace().map(Into::into).collect();
                if command.is_empty() {
                    return Err(format!("{name} {value} names no command"));
                }
                self.within.insert(number(name, node)?, command);
            }
            _ => return Err(format!("no option {name}; --help lists them")),
        }
        Ok(())
    }

    /// Where the ranks are, on ports that are free now.
    pub fn places(&self) -> Result<Places, String> {
        let Some(first) = self.first else {
            return Ok(Places::unique(0, self.nodes));
        };
        Ok(Places::at(first, self.nodes, FIRST_PORT))
    }
}

/// Of ranks on addresses that a person names.
const FIRST_PORT: u32 = 21_000;

fn number<T: FromStr>(name: &str, value: &str) -> Result<T, String> {
    let wrong = |_| format!("{name} {value} isn't understood; --help says what it takes");
    value.parse().map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_wrong_ones_named() {
        let words = ["--seconds", "5", "--within", "1=ip netns exec b"];
        let options = Options::read(&words).expect("they are right");
        assert_eq!(options.length, Duration::from_secs(5));
        assert_eq!(options.within[&1], ["ip", "netns", "exec", "b"]);
        for wrong in [&["--what", "1"][..], &["--seed"], &["--ranks", "1"]] {
            assert!(Options::read(wrong).is_err(), "{wrong:?}");
        }
    }
}
