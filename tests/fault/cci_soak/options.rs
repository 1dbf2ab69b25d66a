//! The command line of `fault-cci-soak`.

use std::time::Duration;

/// The text of `--help`.
pub const HELP: &str = "\
fault-cci-soak [--seconds S] [--kills N] [--seed N] [--nal sm|udp] [--fault WHAT]

Messages on RO, RU and UU connections and remote memory accesses among three
processes over each transport, the last of which is killed and started again.

  --seconds S     how long members start operations (60)
  --kills N       how often the last member of a transport is killed (2)
  --seed N        repeats the choices of an earlier run
  --nal sm|udp    over that transport alone
  --fault WHAT    what UDP does to datagrams (loss=0.01,seed=7)
";

/// The transports, as the command line names them.
pub const TRANSPORTS: [&str; 2] = ["sm", "udp"];

/// The values of all options.
#[derive(Debug)]
pub struct Options {
    /// `--seconds`: how long members start operations.
    pub length: Duration,
    /// `--kills`: processes killed meanwhile, over each transport.
    pub kills: u32,
    /// `--seed`: repeats the choices of an earlier run.
    pub seed: u64,
    /// `--nal`: the transports.
    pub transports: Vec<&'static str>,
    /// `--fault`: what UDP does to datagrams.
    pub fault: String,
}

impl Options {
    /// Reads the command line.
    pub fn read(words: &[&str]) -> Result<Options, String> {
        let mut options = Options {
            length: Duration::from_secs(60),
            kills: 2,
            seed: std::process::id().into(),
            transports: TRANSPORTS.to_vec(),
            fault: "loss=0.01,seed=7".into(),
        };
        for pair in words.chunks(2) {
            let &[name, value] = pair else {
                return Err(format!("{} takes a value", pair[0]));
            };
            let number = || {
                let number = value.parse::<u64>();
                number.map_err(|_| format!("{name} takes a number"))
            };
            match name {
                "--seconds" => options.length = Duration::from_secs(number()?),
                "--kills" => options.kills = u32::try_from(number()?).unwrap_or(u32::MAX),
                "--seed" => options.seed = number()?,
                "--fault" => options.fault = value.into(),
                "--nal" => {
                    let known = TRANSPORTS.into_iter().find(|known| *known == value);
                    options.transports = vec![known.ok_or("--nal takes sm or udp")?];
                }
                _ => return Err(format!("{name} is no option; see --help")),
            }
        }
        Ok(options)
    }
}
