//! Calls of functions in example programs.

/// An example program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The name of its file.
    pub name: String,
    /// Its source.
    pub text: String,
}

/// The first program that calls a function, and the lines of that call.
pub(crate) fn call_of<'a>(
    function: &str,
    programs: &'a [Program],
) -> Option<(&'a str, Vec<&'a str>)> {
    programs.iter().find_map(|program| {
        let lines = call_in(&program.text, function)?;
        Some((program.name.as_str(), lines))
    })
}

/// The lines of a call, without their common indentation.
fn call_in<'a>(text: &'a str, function: &str) -> Option<Vec<&'a str>> {
    let lines: Vec<&str> = text.lines().collect();
    let first = lines.iter().position(|line| calls(line, function))?;
    let mut depth = 0;
    let mut last = first;
    for (number, line) in lines.iter().enumerate().skip(first) {
        last = number;
        depth += line.matches('(').count() as i64 - line.matches(')').count() as i64;
        if depth <= 0 {
            break;
        }
    }
    let indentation = lines[first].len() - lines[first].trim_start().len();
    let cut = |line: &&'a str| line.get(indentation..).unwrap_or(line.trim_start());
    Some(lines[first..=last].iter().map(cut).collect())
}

/// Whether a line of code, not of a comment, calls the function.
fn calls(line: &str, function: &str) -> bool {
    let is_comment = line.trim_start().starts_with(['*', '/']);
    let call = format!("{function}(");
    !is_comment
        && line.match_indices(&call).any(|(at, _)| {
            let before = line[..at].chars().next_back();
            before.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
/* PtlPut(x) is in this comment. */
int main(void)
{
    PtlTriggeredPut(a);
    CHECK(PtlPut(from, 0,
                 length));
    next();
}
";

    #[test]
    fn a_call_is_shown_whole_and_without_indentation() {
        let lines = call_in(TEXT, "PtlPut");
        assert_eq!(
            lines,
            Some(vec!["CHECK(PtlPut(from, 0,", "             length));"])
        );
    }

    #[test]
    fn what_only_ends_with_the_name_or_is_a_comment_is_no_call() {
        assert_eq!(call_in("MyPtlPut(x);\n * PtlPut(x)\n", "PtlPut"), None);
    }
}
