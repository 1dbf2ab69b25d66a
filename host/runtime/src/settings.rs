//! The environment variables that a user meets.

use crate::log::Level;
use std::fmt;
use std::net::Ipv4Addr;

/// An environment variable: name, default, values, meaning.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name.
    pub name: &'static str,
    /// What holds where it isn't set.
    pub default: &'static str,
    /// The values it takes.
    pub values: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

/// Every variable that the library reads.
pub const SETTINGS: [Setting; 5] = [
    Setting {
        name: "PTL_NAL",
        default: "shm",
        values: "shm",
        meaning: "the network that carries messages",
    },
    Setting {
        name: "PTL_MODE",
        default: "accelerated",
        values: "accelerated",
        meaning: "where the engine lives",
    },
    Setting {
        name: "PTL_IFACE",
        default: "127.0.0.1",
        values: "an IPv4 address",
        meaning: "the node's address, whose number is the nid",
    },
    Setting {
        name: "PTL_LOG",
        default: "warn",
        values: "off, warn, info, trace",
        meaning: "how much is told on standard error",
    },
    Setting {
        name: "LINTEL_JOB",
        default: "0",
        values: "letters, digits, - and _",
        meaning: "processes of different jobs don't see each other; yod sets it",
    },
];

/// What the variables say.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Node identifier.
    pub nid: u32,
    /// Job.
    pub job: String,
    /// Level of the log.
    pub level: Level,
}

/// A variable has a value that isn't understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    name: &'static str,
    value: String,
}

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values = SETTINGS
            .iter()
            .find(|s| s.name == self.name)
            .map_or("", |s| s.values);
        write!(
            f,
            "{}={} isn't understood; it takes {values}",
            self.name, self.value
        )
    }
}

impl std::error::Error for SettingError {}

impl Settings {
    /// Reads the environment.
    ///
    /// # Errors
    /// The first variable that isn't understood.
    pub fn from_env() -> Result<Settings, SettingError> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Settings, SettingError> {
        let read = |name: &'static str| {
            let setting = SETTINGS.iter().find(|setting| setting.name == name);
            let default = setting.map_or("", |setting| setting.default).to_owned();
            (
                name,
                lookup(name)
                    .filter(|value| !value.is_empty())
                    .unwrap_or(default),
            )
        };
        only(read("PTL_NAL"), "shm")?;
        only(read("PTL_MODE"), "accelerated")?;
        Ok(Settings {
            nid: nid(read("PTL_IFACE"))?,
            job: job(read("LINTEL_JOB"))?,
            level: level(read("PTL_LOG"))?,
        })
    }
}

fn only((name, value): (&'static str, String), known: &str) -> Result<(), SettingError> {
    if value == known {
        Ok(())
    } else {
        Err(SettingError { name, value })
    }
}

fn nid((name, value): (&'static str, String)) -> Result<u32, SettingError> {
    match value.parse::<Ipv4Addr>().map(u32::from) {
        // 0 is no address, and 0xffff is PTL_NID_ANY.
        Ok(nid) if nid != 0 && nid != 0xffff => Ok(nid),
        _ => Err(SettingError { name, value }),
    }
}

fn job((name, value): (&'static str, String)) -> Result<String, SettingError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if value.len() <= 64 && value.chars().all(plain) {
        Ok(value)
    } else {
        Err(SettingError { name, value })
    }
}

fn level((name, value): (&'static str, String)) -> Result<Level, SettingError> {
    match value.as_str() {
        "off" => Ok(Level::Off),
        "warn" => Ok(Level::Warn),
        "info" => Ok(Level::Info),
        "trace" => Ok(Level::Trace),
        _ => Err(SettingError { name, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> Result<Settings, SettingError> {
        Settings::from_lookup(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn an_empty_environment_gives_the_defaults() {
        let settings = Settings::from_lookup(|_| None).expect("defaults are understood");
        assert_eq!(settings.nid, 0x7f00_0001);
        assert_eq!(settings.job, "0");
    }

    #[test]
    fn a_value_that_isnt_understood_names_its_variable_and_what_it_takes() {
        let error = with("PTL_NAL", "myrinet").expect_err("there is no such NAL");
        assert_eq!(
            error.to_string(),
            "PTL_NAL=myrinet isn't understood; it takes shm"
        );
        assert!(with("LINTEL_JOB", "../etc").is_err());
        assert!(
            with("PTL_IFACE", "0.0.255.255").is_err(),
            "that is PTL_NID_ANY"
        );
    }
}
