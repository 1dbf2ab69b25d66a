//! The tables of models and workloads against what a scenario accepts: descriptions name
//! settings that are read, and nothing can be chosen that isn't described.

use lintel_sim_scenario::{Scenario, models, workloads};

/// SeaStar's workloads that have more than two nodes.
const OF_MANY_NODES: [&str; 5] = [
    "incast",
    "many-to-many",
    "halo",
    "random-access",
    "random-access-hypercube",
];

/// What each model needs besides its name.
fn machine(model: &str) -> &'static str {
    match model {
        "loggp" => "",
        "seastar" => "profile = \"redstorm-2005\"\n",
        "triggered" => "carried_by = \"interfaces\"\n",
        "verbs" => "transport = \"rc\"\n",
        _ => "size = \"2x2x2\"\n",
    }
}

/// A sound value for each setting that some description names.
fn value(setting: &str, model: &str, kind: &str) -> &'static str {
    match setting {
        "file" => "\"a.goal\"",
        "places" => "\"2x2x2\"",
        "class" => "\"reliable\"",
        "pattern" => "\"streaming\"",
        "algorithm" if kind == "barrier" && model != "triggered" => "\"dissemination\"",
        "algorithm" => "\"binomial\"",
        "gap_ns" | "compute_ns" => "1000",
        "bytes" | "piece_bytes" => "8",
        "messages" | "repeats" | "operations" | "window" | "updates" | "processes" | "chunks"
        | "entries_ahead" => "2",
        other => panic!("{kind}'s description names {other:?}, which has no value here"),
    }
}

fn text(model: &str, kind: &str, about: &str) -> String {
    let settings = about.rsplit(':').next().unwrap_or_default();
    let mut text = format!("[machine]\nmodel = \"{model}\"\n{}", machine(model));
    if model == "seastar" && OF_MANY_NODES.contains(&kind) {
        text += "size = \"2x2x2\"\n";
    }
    text += &format!("[workload]\nkind = \"{kind}\"\n");
    if model == "loggp" && !["goal", "halo"].contains(&kind) {
        text += "ranks = 8\n";
    }
    for setting in settings.split(',').map(str::trim) {
        text += &format!("{setting} = {}\n", value(setting, model, kind));
    }
    text
}

#[test]
fn each_workload_reads_the_settings_that_its_description_names() {
    for family in workloads() {
        for model in family.models.split(", ") {
            for (kind, about) in &family.kinds {
                let text = text(model, kind, about);
                let scenario = Scenario::parse("table.toml", &text);
                assert!(scenario.is_ok(), "{}\n{text}", scenario.unwrap_err());
            }
        }
    }
}

#[test]
fn each_model_belongs_to_one_family_of_workloads() {
    let families = workloads();
    let of_families = families.iter().flat_map(|family| family.models.split(", "));
    assert!(of_families.eq(models().iter().map(|model| model.name)));
}

#[test]
fn an_unknown_model_or_workload_is_answered_with_the_whole_table() {
    let refusal = |text: &str| Scenario::parse("a.toml", text).unwrap_err().to_string();
    let models_refusal = refusal("[machine]\nmodel = \"none\"\n[workload]\nkind = \"goal\"\n");
    for model in models() {
        assert!(models_refusal.contains(model.name), "{models_refusal}");
    }
    for family in workloads() {
        let model = family.models.split(", ").next().unwrap_or_default();
        let known = machine(model);
        let text = format!("[machine]\nmodel = \"{model}\"\n{known}[workload]\nkind = \"none\"\n");
        let text = refusal(&text);
        for (kind, _) in &family.kinds {
            assert!(text.contains(&format!("{kind:?}")), "{text}");
        }
    }
}
