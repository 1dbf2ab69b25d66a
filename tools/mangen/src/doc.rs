//! One documentation comment: a line, paragraphs, tags.

/// A parsed documentation comment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Doc {
    /// The first line: what the thing is or does.
    pub brief: String,
    /// What follows it, up to the first tag.
    pub body: Vec<Block>,
    /// The arguments, in the order of their tags.
    pub params: Vec<Param>,
    /// The results, in the order of their tags.
    pub returns: Vec<Return>,
    /// Whether the call may wait, and for what.
    pub blocks: Option<String>,
    /// Which threads may call it when.
    pub threads: Option<String>,
    /// Remarks for which there is no other tag.
    pub notes: Vec<String>,
    /// The functions that the page refers to, by name.
    pub see: Vec<String>,
}

/// A piece of running text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Running text up to a blank line.
    Paragraph(String),
    /// An item of a list.
    Item(String),
}

/// An argument, or several that one text explains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Param {
    /// The names of the parameters that the text describes.
    pub names: Vec<String>,
    /// Whether the call writes through them.
    pub output: bool,
    /// What the caller passes, or gets back.
    pub text: String,
}

/// A value that the function returns, and what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Return {
    /// The constant or number that is returned, or `None` if the text describes a value.
    pub code: Option<String>,
    /// When it is returned, or what it is.
    pub text: String,
}

impl Doc {
    /// Parses the lines of a comment, already without their stars.
    ///
    /// # Errors
    /// The message says which line is outside of the grammar.
    pub fn parse(lines: &[String]) -> Result<Self, String> {
        let mut doc = Self::default();
        let mut chunks = chunks(lines).into_iter();
        match chunks.next() {
            Some(brief) if !brief.starts_with('@') => doc.brief = brief,
            _ => return Err("the comment doesn't begin with a line that says what it is".into()),
        }
        for chunk in chunks {
            if chunk.starts_with('@') {
                doc.add_tag(&chunk)?;
            } else if let Some(item) = chunk.strip_prefix("- ") {
                doc.body.push(Block::Item(item.into()));
            } else {
                doc.body.push(Block::Paragraph(chunk));
            }
        }
        Ok(doc)
    }

    fn add_tag(&mut self, chunk: &str) -> Result<(), String> {
        let (tag, text) = chunk.split_once(' ').unwrap_or((chunk, ""));
        if text.is_empty() {
            return Err(format!("{tag} says nothing"));
        }
        match tag {
            "@param[in]" => self.params.push(param(text, false)?),
            "@param[out]" => self.params.push(param(text, true)?),
            "@return" => self.returns.push(result(text)),
            "@blocks" => self.blocks = Some(text.into()),
            "@threads" => self.threads = Some(text.into()),
            "@note" => self.notes.push(text.into()),
            "@see" => self.see.extend(text.split(", ").map(String::from)),
            _ => return Err(format!("{tag} isn't a tag")),
        }
        Ok(())
    }
}

/// Joins lines into paragraphs, items and tags.
fn chunks(lines: &[String]) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    let mut open = false;
    for line in lines {
        let line = line.trim();
        if line.is_empty() {
            open = false;
        } else if !open || line.starts_with('@') || line.starts_with("- ") {
            chunks.push(line.into());
            open = true;
        } else if let Some(last) = chunks.last_mut() {
            last.push(' ');
            last.push_str(line);
        }
    }
    chunks
}

/// `a, b, c text`: every word that ends with a comma is a name, and so is the one after them.
fn param(text: &str, output: bool) -> Result<Param, String> {
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let (word, tail) = rest
            .split_once(' ')
            .ok_or_else(|| format!("the argument in \"{text}\" isn't explained"))?;
        rest = tail.trim_start();
        match word.strip_suffix(',') {
            Some(name) => names.push(name.into()),
            None => {
                names.push(word.into());
                break;
            }
        }
    }
    Ok(Param {
        names,
        output,
        text: rest.into(),
    })
}

fn result(text: &str) -> Return {
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    let is_constant = word.starts_with("PTL") || word.starts_with("CCI_");
    let code = is_constant || word.parse::<i64>().is_ok();
    if code {
        Return {
            code: Some(word.into()),
            text: rest.trim_start().into(),
        }
    } else {
        Return {
            code: None,
            text: text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Doc, String> {
        Doc::parse(&text.lines().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn comment_becomes_brief_body_and_tags() {
        let doc = parse(
            "Sends\n\nOne\nparagraph.\n- an item\n\n@param[in] a, b  two\n    things\n\
             @return PTL_OK  sent\n@return the length\n@blocks never\n@see X, Y",
        )
        .unwrap();
        assert_eq!(doc.brief, "Sends");
        assert_eq!(
            doc.body,
            [
                Block::Paragraph("One paragraph.".into()),
                Block::Item("an item".into())
            ]
        );
        assert_eq!(doc.params[0].names, ["a", "b"]);
        assert_eq!(doc.params[0].text, "two things");
        assert_eq!(doc.returns[0].code.as_deref(), Some("PTL_OK"));
        assert_eq!(doc.returns[1].code, None);
        assert_eq!(doc.returns[1].text, "the length");
        assert_eq!(doc.see, ["X", "Y"]);
    }

    #[test]
    fn unknown_tag_is_refused() {
        assert_eq!(
            parse("Sends\n@retval 1 x").unwrap_err(),
            "@retval isn't a tag"
        );
    }

    #[test]
    fn comment_without_a_first_line_is_refused() {
        assert!(parse("@blocks never").is_err());
        assert!(parse("").is_err());
    }
}
