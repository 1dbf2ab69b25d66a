//! Text as roff, for the man(7) macros.

use crate::manual::Manual;

/// Builds a page in roff's man macros, line by line.
#[derive(Debug)]
pub(crate) struct Roff {
    text: String,
    /// The section that references to functions name.
    functions: &'static str,
}

impl Roff {
    /// Begins a part of a page.
    pub(crate) fn part(manual: &Manual) -> Self {
        Self {
            text: String::new(),
            functions: manual.functions,
        }
    }

    /// Begins a page of a manual: its name, section, and the version of the package.
    pub(crate) fn page(manual: &Manual, name: &str, section: &str, version: &str) -> Self {
        let Manual {
            interface, family, ..
        } = manual;
        let mut roff = Self::part(manual);
        roff.raw(".\\\" Made from the headers' comments by lintel-mangen. Edit those.");
        roff.raw(&format!(
            ".TH {name} {section} \"{interface}\" \"Lintel {version}\" \
             \"{family} Programmer\\(aqs Manual\""
        ));
        // Names are many and long: neither hyphenated nor spread out.
        roff.raw(".nh");
        roff.raw(".ad l");
        roff
    }

    /// Adds a line of roff as it is.
    pub(crate) fn raw(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Begins a section with `.SH`, in capitals.
    pub(crate) fn section(&mut self, title: &str) {
        self.raw(&format!(".SH {}", title.to_uppercase()));
    }

    /// Adds running text. Names in `` ` `` that are among `args` are set as arguments.
    pub(crate) fn text(&mut self, text: &str, args: &[&str]) {
        let line = inline(text, args, self.functions);
        if line.starts_with(['.', '\'']) {
            self.text.push_str("\\&");
        }
        self.raw(&line);
    }

    /// Adds a paragraph that begins with a label, in bold or as given.
    pub(crate) fn labelled(&mut self, label: &str, text: &str, args: &[&str]) {
        self.raw(".TP");
        self.raw(label);
        self.text(text, args);
    }

    /// Adds lines of code, as they are.
    pub(crate) fn code<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) {
        self.raw(".PP");
        self.raw(".RS 4");
        self.raw(".nf");
        for line in lines {
            self.raw(&escape(line));
        }
        self.raw(".fi");
        self.raw(".RE");
    }

    /// The page's text, macros included.
    pub(crate) fn finish(self) -> String {
        self.text
    }
}

/// A name in bold.
pub(crate) fn bold(name: &str) -> String {
    format!("\\fB{}\\fR", escape(name))
}

/// A name in italics.
pub(crate) fn italic(name: &str) -> String {
    format!("\\fI{}\\fR", escape(name))
}

/// Code with roff's special characters escaped.
pub(crate) fn escape(code: &str) -> String {
    code.replace('\\', "\\e").replace('-', "\\-")
}

fn inline(text: &str, args: &[&str], functions: &str) -> String {
    let mut out = String::new();
    for (i, part) in text.split('`').enumerate() {
        match i % 2 {
            0 => prose(part, functions, &mut out),
            _ if args.contains(&part) => out.push_str(&italic(part)),
            _ => out.push_str(&bold(part)),
        }
    }
    out
}

/// Sets the interface's own names in bold, and leaves the rest.
fn prose(text: &str, functions: &str, out: &mut String) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = text;
    while let Some(start) = rest.find(is_name) {
        out.push_str(&plain(&rest[..start]));
        let end = rest[start..]
            .find(|c| !is_name(c))
            .map_or(rest.len(), |n| start + n);
        let word = &rest[start..end];
        if is_function(word) {
            out.push_str(&format!("{}({functions})", bold(word)));
        } else if [
            "PTL_", "ptl_", "PTLCOLL_", "ptlcoll_", "PTLJOB_", "CNOS_", "cnos_", "CCI_", "cci_",
        ]
        .iter()
        .any(|start| word.starts_with(start))
        {
            out.push_str(&bold(word));
        } else {
            out.push_str(word);
        }
        rest = &rest[end..];
    }
    out.push_str(&plain(rest));
}

fn plain(text: &str) -> String {
    text.replace('\\', "\\e").replace('\'', "\\(aq")
}

fn is_function(word: &str) -> bool {
    let portals = word
        .strip_prefix("Ptl")
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()));
    let beside = ["ptlcoll_", "ptljob_", "cnos_", "cci_"]
        .iter()
        .any(|prefix| word.starts_with(prefix));
    portals || (beside && !word.ends_with("_t") && !word.ends_with("_retvals"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_set_by_kind() {
        assert_eq!(
            inline("`a` is PTL_OK, see PtlPut and `b`", &["a"], "3"),
            "\\fIa\\fR is \\fBPTL_OK\\fR, see \\fBPtlPut\\fR(3) and \\fBb\\fR"
        );
    }

    #[test]
    fn text_never_becomes_a_request() {
        let mut roff = Roff::part(&crate::manual::PORTALS4);
        roff.text(".so x\\y isn't", &[]);
        assert_eq!(roff.finish(), "\\&.so x\\ey isn\\(aqt\n");
    }
}
