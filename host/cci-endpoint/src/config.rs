//! The file that `CCI_CONFIG` names: sections of devices with keys and values.
//!
//! ```text
//!   # comment
//!   [bob0]
//!   transport = sm
//!   priority = 50
//!   default = 1
//! ```

use std::fmt;

/// The most sections of a file, and keys of a section.
const MAX_DEVICES: usize = 32;
const MAX_KEYS: usize = 32;
/// A key is shorter than this, and so is a value, bytes.
const MAX_KEY: usize = 256;
const MAX_VALUE: usize = 512;

/// A section of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Section {
    pub(crate) name: String,
    /// In the file's order.
    pub(crate) keys: Vec<(String, String)>,
}

impl Section {
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        let mut found = self.keys.iter().filter(|(name, _)| name == key);
        found.next().map(|(_, value)| value.as_str())
    }
}

/// What is wrong with a file, and in which line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ConfigError {
    line: usize,
    what: &'static str,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

/// The sections of a file.
///
/// # Errors
/// [`ConfigError`]
pub(crate) fn parse(text: &str) -> Result<Vec<Section>, ConfigError> {
    let mut sections: Vec<Section> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let refuse = |what| ConfigError {
            line: index + 1,
            what,
        };
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.strip_suffix(']').ok_or(refuse("']' is missing"))?;
            sections.push(section(name, sections.len()).map_err(refuse)?);
            continue;
        }
        let (key, value) = line.split_once('=').ok_or(refuse("'=' is missing"))?;
        let last = sections
            .last_mut()
            .ok_or(refuse("a key without a device"))?;
        add(last, key.trim(), value.trim()).map_err(refuse)?;
    }
    Ok(sections)
}

fn section(name: &str, before: usize) -> Result<Section, &'static str> {
    if before == MAX_DEVICES {
        return Err("more than 32 devices");
    }
    Ok(Section {
        name: name.trim().to_owned(),
        keys: Vec::new(),
    })
}

fn add(section: &mut Section, key: &str, value: &str) -> Result<(), &'static str> {
    if key.is_empty() || key.len() >= MAX_KEY {
        return Err("a key has 1 to 255 characters");
    }
    if value.len() >= MAX_VALUE {
        return Err("a value has at most 511 characters");
    }
    if section.keys.len() == MAX_KEYS {
        return Err("a device has at most 32 keys");
    }
    if key == "transport" && section.get(key).is_some() {
        return Err("a second transport");
    }
    section.keys.push((key.to_owned(), value.to_owned()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_keep_their_keys_in_order() {
        let text = "# a file\n[a]\ntransport = sm # shared memory\n\n[b]\nip=1.2.3.4\nport =  7\n";
        let sections = parse(text).expect("nothing is wrong");
        assert_eq!(sections.len(), 2);
        assert_eq!(sections[0].name, "a");
        assert_eq!(sections[0].get("transport"), Some("sm"));
        let port = ("port".to_owned(), "7".to_owned());
        assert_eq!(sections[1].keys[1], port);
    }

    #[test]
    fn wrong_lines_are_named() {
        for (text, line) in [
            ("[a\n", 1),
            ("[a]\nkey\n", 2),
            ("key = 1\n", 1),
            ("[a]\ntransport = sm\ntransport = sm\n", 3),
            ("[a]\n = 3\n", 2),
        ] {
            assert_eq!(parse(text).map_err(|error| error.line), Err(line), "{text}");
        }
        let many = "[a]\n".repeat(33);
        assert_eq!(parse(&many).map_err(|error| error.line), Err(33));
        let long = format!("[a]\n{} = 1\n", "k".repeat(256));
        assert!(parse(&long).is_err());
    }
}
