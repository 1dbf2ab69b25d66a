//! The bodies of the fuzz targets over texts from seeds: examples with words of theirs
//! elsewhere, or other words there.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use lintel_sim_kernel::{Stream, Streams};

#[path = "../../../fuzz/bodies/goal_text.rs"]
mod goal_text;
#[path = "../../../fuzz/bodies/scenario_text.rs"]
mod scenario_text;

fn examples(ending: &str) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|file| file.extension().is_some_and(|e| e == ending))
        .collect();
    files.sort();
    let read = |file| fs::read_to_string(file).expect("text");
    files.into_iter().map(read).collect()
}

/// A text with a few of its words replaced by words of another one, or by `others`.
fn garbled(text: &str, other: &str, others: &[&str], stream: &mut Stream) -> String {
    let mut words: Vec<&str> = text.split_inclusive([' ', '\n']).collect();
    let known: Vec<&str> = other.split_inclusive([' ', '\n']).collect();
    for _ in 0..=stream.below(4) {
        let at = stream.below(words.len() as u64) as usize;
        words[at] = match stream.below(3) {
            0 => known[stream.below(known.len() as u64) as usize],
            _ => others[stream.below(others.len() as u64) as usize],
        };
    }
    words.concat()
}

fn each_garbled(texts: &[String], others: &[&str], seeds: u64, body: fn(&[u8])) {
    for seed in 0..seeds {
        println!("seed {seed}");
        let mut stream = Streams::new(seed).stream("garbled");
        let mut any = || &texts[stream.below(texts.len() as u64) as usize];
        let (text, other) = (any(), any());
        body(garbled(text, other, others, &mut stream).as_bytes());
    }
}

#[test]
fn any_text_is_a_scenario_or_a_error_in_one_of_its_lines() {
    let others = [
        "0",
        "-1\n",
        "\"\"\n",
        "[]\n",
        "9223372036854775807\n",
        "1e400\n",
        "true\n",
        "\"65535x65535x1\"\n",
        "[plot]\n",
        "= ",
        "é",
        "1979-05-27\n",
        "[1, \"2\"]\n",
        "\n",
        "\"1x1x1\"\n",
        "{}\n",
    ];
    each_garbled(&examples("toml"), &others, 3_000, scenario_text::body);
}

#[test]
fn any_text_is_a_schedule_or_a_error_in_one_of_its_lines() {
    let others = [
        "0\n",
        "-1 ",
        "18446744073709551615",
        "1099511627776b ",
        "requires ",
        "irequires ",
        "}\n",
        "{\n",
        "tag ",
        "cpu 255\n",
        "/*",
        "*/",
        "é",
        "num_ranks 3\n",
        "rank 0 {\n",
        "calc 1000000000000000\n",
    ];
    each_garbled(&examples("goal"), &others, 3_000, goal_text::body);
}
