//! A header's sections, and what each declares.

use crate::doc::Doc;
use std::fmt;

/// A header, as far as manual pages need it.
#[derive(Debug, Clone)]
pub struct Header {
    /// The name by which programs include it.
    pub file: String,
    /// Its sections, in order.
    pub sections: Vec<Section>,
}

/// The text between two `/* --- Title --- */` lines.
#[derive(Debug, Clone)]
pub struct Section {
    /// The text between the rows of dashes.
    pub title: String,
    /// What it declares, in order.
    pub items: Vec<Item>,
}

/// A declaration that a page documents.
#[derive(Debug, Clone)]
pub enum Item {
    /// A prototype, which gets a page of its own in section 3.
    Function(Function),
    /// A `#define` with its value.
    Constant(Entry),
    /// A `typedef` of one line, with the type that it renames.
    Typedef(Entry),
    /// A structure, union or enumeration.
    Composite(Composite),
}

/// A function's prototype, with the comment before it.
#[derive(Debug, Clone)]
pub struct Function {
    /// The C name, which is also the page's.
    pub name: String,
    /// Its result's type, with the star if it is a pointer.
    pub result: String,
    /// Its arguments: type, with the star if it is a pointer, and name.
    pub args: Vec<(String, String)>,
    /// The parsed comment before the prototype.
    pub doc: Doc,
}

/// A name, what it stands for, and its trailing comment.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The C name of the constant or member.
    pub name: String,
    /// Its value, or its type; empty if it has none.
    pub value: String,
    /// The trailing comment, as running text.
    pub text: String,
}

/// A structure, union or enumeration.
#[derive(Debug, Clone)]
pub struct Composite {
    /// Its name, with `enum` if C needs that to use it.
    pub name: String,
    /// The parsed comment before the declaration.
    pub doc: Doc,
    /// Its declaration without comments, line by line.
    pub code: Vec<String>,
    /// Its members or enumerators.
    pub members: Vec<Entry>,
}

/// A line that is outside of the grammar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The path of the header.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

impl Header {
    /// Parses the text of the header that programs include as `file`.
    ///
    /// # Errors
    /// The first line that is outside of the grammar, or the function whose comment leaves
    /// something out: an argument, the results, blocking or threads.
    pub fn parse(file: &str, text: &str) -> Result<Self, ParseError> {
        let mut parser = Parser {
            lines: text.lines().collect(),
            next: 0,
            sections: Vec::new(),
            doc: None,
        };
        parser.run().map_err(|message| ParseError {
            file: file.into(),
            line: parser.next,
            message,
        })?;
        Ok(Self {
            file: file.into(),
            sections: parser.sections,
        })
    }

    /// Its functions, in order.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.sections.iter().flat_map(Section::functions)
    }
}

impl Section {
    /// Its functions, in order.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.items.iter().filter_map(|item| match item {
            Item::Function(function) => Some(function),
            _ => None,
        })
    }
}

struct Parser<'a> {
    lines: Vec<&'a str>,
    next: usize,
    sections: Vec<Section>,
    doc: Option<Doc>,
}

impl Parser<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(line) = self.take_line() {
            if let Some(rest) = line.strip_prefix("/* --- ") {
                let title = rest.trim_end_matches("*/").trim().trim_end_matches('-');
                self.sections.push(Section {
                    title: title.trim().into(),
                    items: Vec::new(),
                });
            } else if line.trim() == "/**" {
                self.doc = Some(self.block_comment()?);
            } else if defines_constant(&line) {
                self.constant(&line)?;
            } else if opens_composite(&line) {
                self.composite(&line)?;
            } else if line.starts_with("typedef ") {
                self.typedef(&line)?;
            } else if declares_function(&line) {
                self.function(&line)?;
            }
        }
        Ok(())
    }

    fn take_line(&mut self) -> Option<String> {
        let line = self.lines.get(self.next)?;
        self.next += 1;
        Some((*line).into())
    }

    /// The lines of a comment up to its end, without their stars.
    fn block_comment(&mut self) -> Result<Doc, String> {
        let mut lines = Vec::new();
        loop {
            let line = self.take_line().ok_or("the comment doesn't end")?;
            let line = line.trim();
            if line == "*/" {
                return Doc::parse(&lines);
            }
            let text = line
                .strip_prefix('*')
                .ok_or("the line doesn't begin with *")?;
            lines.push(text.into());
        }
    }

    /// Splits a line into its code and its trailing comment, which may go on below.
    fn split_trailing(&mut self, line: &str) -> Result<(String, Option<String>), String> {
        let Some((code, comment)) = line.split_once("/**<") else {
            return Ok((line.trim_end().into(), None));
        };
        let mut text = comment.trim().to_string();
        while !text.ends_with("*/") {
            let more = self.take_line().ok_or("the comment doesn't end")?;
            text.push(' ');
            text.push_str(more.trim().trim_start_matches("* "));
        }
        let text = text.trim_end_matches("*/").trim().to_string();
        Ok((code.trim_end().into(), Some(text)))
    }

    fn constant(&mut self, line: &str) -> Result<(), String> {
        let (code, text) = self.split_trailing(line)?;
        let code = code.trim_start_matches("#define ");
        let (name, value) = code.split_once(' ').unwrap_or((code, ""));
        let entry = Entry {
            name: name.into(),
            value: value.trim().into(),
            text: text.ok_or_else(|| format!("{name} isn't explained"))?,
        };
        self.push(Item::Constant(entry))
    }

    fn typedef(&mut self, line: &str) -> Result<(), String> {
        let (code, text) = self.split_trailing(line)?;
        let code = code.trim_start_matches("typedef ").trim_end_matches(';');
        let (value, name) = split_declarator(code);
        let text = text.ok_or_else(|| format!("{name} isn't explained"))?;
        self.push(Item::Typedef(Entry { name, value, text }))
    }

    fn composite(&mut self, first: &str) -> Result<(), String> {
        let doc = self.doc.take().ok_or("the type isn't explained")?;
        let mut code = vec![first.to_string()];
        let mut members = Vec::new();
        loop {
            let line = self.take_line().ok_or("the type doesn't end")?;
            let (line, text) = self.split_trailing(&line)?;
            code.push(line.clone());
            if line.starts_with('}') {
                let name = line.trim_matches(['}', ';', ' ']);
                let name = if name.is_empty() {
                    first.trim_end_matches(['{', ' '])
                } else {
                    name
                };
                let name = name.into();
                return self.push(Item::Composite(Composite {
                    name,
                    doc,
                    code,
                    members,
                }));
            }
            match text {
                Some(text) => members.push(member(&line, text)),
                None if line.ends_with('{') => {}
                None => return Err(format!("\"{}\" isn't explained", line.trim())),
            }
        }
    }

    fn function(&mut self, first: &str) -> Result<(), String> {
        let mut code = first.to_string();
        while !code.ends_with([';', ')']) {
            let more = self.take_line().ok_or("the prototype doesn't end")?;
            code.push(' ');
            code.push_str(more.trim());
        }
        if code.ends_with(')') {
            self.skip_body()?;
        }
        let code = code.trim_start_matches("static inline ");
        let (head, args) = code
            .split_once('(')
            .ok_or("a prototype has no parenthesis")?;
        let (result, name) = split_declarator(head);
        let args = args.trim_end_matches([')', ';']);
        let args = if args == "void" {
            Vec::new()
        } else {
            args.split(", ").map(split_declarator).collect()
        };
        let doc = self
            .doc
            .take()
            .ok_or_else(|| format!("{name} isn't explained"))?;
        let function = Function {
            name,
            result,
            args,
            doc,
        };
        function.check()?;
        self.push(Item::Function(function))
    }

    /// Skips the body of a function that is defined in the header.
    fn skip_body(&mut self) -> Result<(), String> {
        while self.take_line().ok_or("the function doesn't end")? != "}" {}
        Ok(())
    }

    fn push(&mut self, item: Item) -> Result<(), String> {
        let section = self
            .sections
            .last_mut()
            .ok_or("a declaration stands before the first section")?;
        section.items.push(item);
        Ok(())
    }
}

impl Function {
    /// Compares the comment with the prototype.
    fn check(&self) -> Result<(), String> {
        let name = &self.name;
        let documented: Vec<&String> = self.doc.params.iter().flat_map(|p| &p.names).collect();
        for (_, arg) in &self.args {
            if !documented.contains(&arg) {
                return Err(format!("{name} doesn't explain its argument {arg}"));
            }
        }
        if documented.len() != self.args.len() {
            return Err(format!("{name} explains arguments that it doesn't have"));
        }
        if self.doc.returns.is_empty() && self.result != "void" {
            return Err(format!("{name} doesn't say what it returns"));
        }
        if self.doc.blocks.is_none() || self.doc.threads.is_none() {
            return Err(format!("{name} doesn't say @blocks or @threads"));
        }
        Ok(())
    }
}

fn defines_constant(line: &str) -> bool {
    let ours = ["#define PTL_", "#define CNOS_", "#define CCI_"];
    let is_guard = line.ends_with("_H");
    !is_guard && ours.iter().any(|prefix| line.starts_with(prefix))
}

fn opens_composite(line: &str) -> bool {
    line.ends_with('{')
        && [
            "typedef struct",
            "typedef const struct",
            "typedef union",
            "typedef enum",
            "enum ",
            "union ",
        ]
        .iter()
        .any(|start| line.starts_with(start))
}

fn declares_function(line: &str) -> bool {
    let ours = ["Ptl", "ptlcoll_", "ptljob_", "cnos_", "cci_"];
    let declared = line.split_once('(').map_or("", |(before, _)| before);
    let name = declared.rsplit([' ', '*']).next().unwrap_or_default();
    line.starts_with(|c: char| c.is_ascii_lowercase())
        && !line.starts_with("typedef")
        && ours.iter().any(|prefix| name.starts_with(prefix))
}

/// Splits `const char *name` into `const char *` and `name`.
fn split_declarator(code: &str) -> (String, String) {
    let code = code.trim();
    let at = code.rfind([' ', '*']).map_or(0, |i| i + 1);
    (code[..at].trim().into(), code[at..].into())
}

fn member(line: &str, text: String) -> Entry {
    let code = line.trim().trim_end_matches([',', ';']);
    if let Some((name, value)) = code.split_once(" = ") {
        return Entry {
            name: name.into(),
            value: value.into(),
            text,
        };
    }
    let (value, name) = split_declarator(code.trim_start_matches("} "));
    Entry { name, value, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDS: &str = "/* --- Data --- */\n/**\n * Sends\n *\n * @param[in] n  how much\n \
                         * @return PTL_OK  sent\n * @blocks never\n * @threads safe\n */\n";

    #[test]
    fn a_function_that_the_header_defines_has_a_page() {
        let text =
            format!("{SENDS}static inline int ptljob_send(const char *n)\n{{\n    return 0;\n}}\n");
        let header = Header::parse("a.h", &text).unwrap();
        let function = header.functions().next().unwrap();
        assert_eq!((&*function.name, &*function.result), ("ptljob_send", "int"));
    }

    #[test]
    fn prototype_and_comment_make_a_function() {
        let text = format!("{SENDS}int PtlSend(const char *n);\n");
        let header = Header::parse("x.h", &text).unwrap();
        let function = header.functions().next().unwrap();
        assert_eq!(function.name, "PtlSend");
        assert_eq!(function.args, [("const char *".into(), "n".into())]);
    }

    #[test]
    fn argument_without_a_tag_is_refused() {
        let text = format!("{SENDS}int PtlSend(int n, int m);\n");
        let error = Header::parse("x.h", &text).unwrap_err();
        assert_eq!(
            error.to_string(),
            "x.h:10: PtlSend doesn't explain its argument m"
        );
    }

    #[test]
    fn trailing_comment_goes_on_over_lines() {
        let text = "/* --- A --- */\n#define PTL_X 3 /**< One\n                 * two. */\n";
        let header = Header::parse("x.h", text).unwrap();
        let Item::Constant(entry) = &header.sections[0].items[0] else {
            panic!("not a constant")
        };
        assert_eq!(
            (entry.value.as_str(), entry.text.as_str()),
            ("3", "One two.")
        );
    }

    #[test]
    fn comment_without_an_end_is_refused() {
        assert!(Header::parse("x.h", "/* --- A --- */\n/**\n * B\n").is_err());
        assert!(Header::parse("x.h", "/* --- A --- */\n#define PTL_X 3 /**< B").is_err());
    }
}
