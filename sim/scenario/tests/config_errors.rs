//! The errors of faulty scenarios: file, line, key, and what is allowed.
#![forbid(unsafe_code)]

use lintel_sim_scenario::Scenario;

const HEAD: &str = "[machine]\nmodel = \"packet\"\nsize = \"4x4x1\"\n[workload]\n";

const SEASTAR: &str = "[machine]\nmodel = \"seastar\"\nprofile = \"xt5-2009\"\n[workload]\n";

fn reported(text: &str) -> String {
    Scenario::parse("a.toml", text)
        .expect_err("faulty")
        .to_string()
}

#[test]
fn each_error_names_file_line_key_and_what_is_allowed() {
    let cases = [
        (
            "[machine]\nmodel = \"torus\"".into(),
            r#"a.toml:2: machine.model is "torus"; it takes "loggp", "free", "packet", "seastar", "triggered" or "verbs""#,
        ),
        (
            "about = \"nothing\"".into(),
            r#"a.toml: machine.model is missing; it takes "loggp", "free", "packet", "seastar", "triggered" or "verbs""#,
        ),
        (
            "[machine]\nmodel = 3".into(),
            "a.toml:2: machine.model is a whole number; it takes a text",
        ),
        (
            format!("{HEAD}kind = \"ping-pong\"\nbytes = \"8\""),
            "a.toml:6: workload.bytes is text; it takes a whole number, 0 to 1099511627776",
        ),
        (
            format!("{HEAD}kind = \"ping-pong\"\nbytes = [8, -1]"),
            "a.toml:6: workload.bytes is -1; it takes a whole number, 0 to 1099511627776",
        ),
        (
            format!("{HEAD}kind = \"ping-pong\"\nsize = 8"),
            "a.toml:6: workload.size is no setting here; workload takes bytes, kind, ranks or repeats",
        ),
        (
            format!("{HEAD}kind = \"ping-pong\"\nranks = 17"),
            "a.toml:6: workload.ranks is 17; it takes a whole number, 1 to 16",
        ),
        (
            format!("{HEAD}kind = \"ping-pong\"\n[host]\noverhead_ns = 5"),
            "a.toml:7: host.overhead_ns is no setting here: there is no table host",
        ),
        (
            format!("{HEAD}kind = \"ping-pong\"\n[machine.host]\noverhead = 5"),
            "a.toml:7: machine.host.overhead is no setting here; machine.host takes eager_bytes, \
             gap_ns, overhead_ns or overhead_ps_per_byte",
        ),
        (
            format!("sed = 1\n{HEAD}kind = \"ping-pong\""),
            "a.toml:1: sed is no setting; there are about, seed, machine, workload or plot",
        ),
        (
            "[machine]\nmodel = \"packet\"\nsize = \"4x4\"".into(),
            r#"a.toml:3: machine.size is "4x4"; it takes 3 sizes, such as "8x8x8""#,
        ),
        (
            "[machine]\nmodel = \"packet\"\nsize = []".into(),
            "a.toml:3: machine.size is an empty list; it takes a value or more",
        ),
        (
            "[machine]\nmodel = \"packet\"\nsize = [[4]]".into(),
            "a.toml:3: machine.size is a list of lists or tables; it takes single values",
        ),
        (
            format!("{HEAD}kind = \"barrier\"\nalgorithm = \"pipelined-chain\""),
            r#"a.toml:6: workload.algorithm is "pipelined-chain"; it takes "recursive-doubling", "dissemination", "binomial", "K-nomial", "binary" or "chain""#,
        ),
        (
            format!("{HEAD}kind = \"barrier\"\nalgorithm = \"1-nomial\""),
            r#"a.toml:6: workload.algorithm is "1-nomial"; K in K-nomial is 2 to 65536"#,
        ),
        (
            "[machine]\nmodel = \"triggered\"\ncarried_by = \"hosts\"\n[workload]\n\
             kind = \"all-reduce\"\nalgorithm = \"K-nomial\""
                .into(),
            r#"a.toml:6: workload.algorithm is "K-nomial"; K in K-nomial is 2 to 65536"#,
        ),
        (
            format!("{HEAD}kind = \"goal\""),
            "a.toml: workload.file is missing; it takes a path, from this file on",
        ),
        (
            format!("{HEAD}kind = \"incast\"\n[machine.noise]\nlength_ns = 9"),
            "a.toml:7: machine.noise.interval_ns is missing; noise of a length comes once in so long",
        ),
        (
            format!("{HEAD}kind = \"incast\"\n[plot]\nx = \"workload.bytes\"\ny = \"MB/s\""),
            r#"a.toml:7: plot.x is "workload.bytes"; it takes a setting that is a list of numbers"#,
        ),
        (
            "[machine]\nmodel = \"packet\"\nsize = [\"2x1x1\", \"4x1x1\"]\n[workload]\nkind = \"incast\"\n\
             [plot]\nx = \"machine.size\"\ny = \"MB/s\"".into(),
            r#"a.toml:7: plot.x is "machine.size"; it takes a setting that is a list of numbers"#,
        ),
        (
            "[machine]\nmodel = \"packet\"\nmodel = \"free\"".into(),
            "a.toml:3: model stands a second time",
        ),
        (
            "machine = \"packet\"".into(),
            "a.toml:1: machine is a value; it takes a table, [machine]",
        ),
        (
            "[machine]\nmodel = \"packet\"\nsize = \"100000x1x1\"".into(),
            "a.toml:3: machine.size has a side of 100000; it takes 1 to 16384",
        ),
        (
            "[machine]\nmodel = \"packet\"\nsize = \"400x400x400\"".into(),
            "a.toml:3: machine.size has 64000000 nodes; this model takes 1048576",
        ),
        (
            "[machine]\nmodel = \"loggp\"\n[workload]\nkind = \"all-to-all\"\nranks = 4000000".into(),
            "a.toml:4: workload has about 32000000000000 operations of ranks; this takes 268435456: \
             take fewer ranks, messages, repeats or operations",
        ),
        (
            format!("{HEAD}kind = \"incast\"\nbytes = [1, 2]\n[plot]\nx = \"workload.bytes\""),
            "a.toml: plot.y is missing; it takes a figure of the results, such as \"all, µs\"",
        ),
        (
            format!("{HEAD}kind = \"incast\"\nbytes = [1, 2]\n[plot]\nx = 3"),
            "a.toml:8: plot.x is something else; it takes a text",
        ),
        (
            format!("{SEASTAR}kind = \"cci\"\nbytes = 5000"),
            "a.toml:6: workload.bytes is 5000; it takes a whole number, 0 to 4096",
        ),
        (
            format!("{SEASTAR}kind = \"put\"\nentries_ahead = 3000"),
            "a.toml:6: workload.entries_ahead is 3000; it takes a whole number, 0 to 2047",
        ),
        (
            format!("{SEASTAR}kind = \"put\"\n[machine.constants]\nppc_clock = 0"),
            "a.toml:7: machine.constants.ppc_clock is 0; it takes a whole number, 1 to 1099511627776",
        ),
        (
            format!("{SEASTAR}kind = \"incast\""),
            "a.toml: machine.size is missing; it takes 3 sizes, such as \"4x4x4\"",
        ),
        (
            format!("{SEASTAR}kind = \"put\"\n[machine.noise]\nprofile = \"1khz\""),
            "a.toml:7: machine.noise.profile is no setting here: there is no table machine.noise",
        ),
        (
            "[machine]\nmodel = \"triggered\"\ncarried_by = \"hosts\"\n[machine.noise]\n\
             profile = \"1khz\"\nlength_ns = 5\n[workload]\nkind = \"all-reduce\"\nalgorithm = \"binomial\"".into(),
            "a.toml:6: machine.noise.length_ns is no setting here; machine.noise takes profile",
        ),
        (
            "[machine]\nmodel = \"seastar\"\nprofile = \"xt5-2009\"\n[machine.constants]\nhops = 3\n[workload]\nkind = \"put\"".into(),
            "a.toml:5: machine.constants.hops is no setting here; machine.constants takes",
        ),
    ];
    for (text, expected) in cases {
        let reported = reported(&text);
        match expected.ends_with("takes") {
            true => assert!(reported.starts_with(expected), "{reported}"),
            false => assert_eq!(reported, expected),
        }
    }
}

#[test]
fn a_text_that_is_no_toml_is_reported_with_its_line() {
    let reported = reported("[machine]\nmodel = packet\n");
    assert!(reported.starts_with("a.toml:2: "), "{reported}");
}
