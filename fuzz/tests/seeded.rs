//! The body of `pmi_parse` over text from seeds.

#[path = "../bodies/pmi_parse.rs"]
mod pmi_parse;

const WORDS: [&str; 18] = [
    "cmd=init",
    "cmd=put",
    "cmd=get",
    "cmd=barrier_in",
    "cmd=finalize",
    "mcmd=spawn",
    "endcmd",
    "kvsname=job",
    "key=a",
    "value=b=c",
    "pmi_version=1",
    "pmi_subversion=1",
    "=",
    " ",
    "\n",
    "\n",
    "\r\n",
    "cmd=abort exitcode=3",
];

#[test]
fn any_stream_gives_lines_or_an_error() {
    for seed in 0..2000u64 {
        println!("seed {seed}");
        let mut state = seed;
        let mut data = Vec::new();
        for _ in 0..200 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            data.extend(WORDS[(state >> 33) as usize % WORDS.len()].as_bytes());
            data.push(if state >> 60 == 0 {
                (state >> 40) as u8
            } else {
                b' '
            });
        }
        pmi_parse::body(&data);
    }
}
