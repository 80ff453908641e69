/* The page as a whole: what comes in which order. */

const WHERE = {intra: "inside", inter: "between"};

function nominalWords(c) {
    return `The links of ${c.name} ${c.nominal_links.map(l => WHERE[l]).join(" and ")} nodes are nominal, from data sheets: not measured.`;
}

function heading(title, sentence, figures) {
    document.title = clean(title);
    document.getElementById("head").replaceChildren(...[
        make("p", {class: "program"}, "linkwise report"), make("h1", null, title), make("p", {class: "answer"}, sentence),
        data.banner ? make("p", {class: "banner", role: "alert"}, make("b", null, "Forced. "), data.banner) : null,
        ...[data.cluster, data.other].filter(c => c && c.nominal_links.length > 0).map(c => make("p", {class: "banner"}, nominalWords(c))),
        make("dl", {class: "figures"}, ...figures.map(([name, value, note]) =>
            make("div", null, make("dt", null, name), make("dd", null, value), note ? make("dd", {class: "note"}, note) : null)))
    ].filter(Boolean));
}

function configText() {
    const p = data.plan, d = p.degrees;
    return Object.keys(d).filter(k => d[k] > 1 && k !== "etp").map(k => `${k} ${d[k]}`).join(" · ") || "one GPU";
}

/* What a larger chance of running out would gain, as `plan` prints it. */
function riskyFigure(search, step) {
    const risky = search.riskier, p = risky.oom_probability, hours = search.objective === "gpu-hours";
    const share = risky.step_s / step * (hours ? risky.tp * risky.pp * risky.dp * risky.cp / data.ranks.node.length : 1);
    return ["Risky", seconds(risky.step_s), `${percent(1 - share)} less${hours ? " GPU hours" : ""}; chance of running out ${chance(p)}: ` +
        `--oom-risk ${(Math.ceil(1000 * p) / 1000).toFixed(3)} takes it`];
}

function planHeading() {
    const p = data.plan, e = data.estimate, found = p.estimate || {}, factor = data.step_factor, search = p.search || {};
    const m = data.memory.reduce((a, b) => b.peak_bytes / b.gpu_bytes > a.peak_bytes / a.gpu_bytes ? b : a);
    const runs = isNumber(factor) ? `90 % of runs: ${secondsRange(e.step_s / factor, e.step_s * factor, e.step_s)}` : null;
    heading(`${p.model.name} on ${data.cluster.name}`,
        `${configText()}, micro-batch ${p.micro_batch}, zero ${p.zero}${p.shard ? `, shard ${p.shard}` : ""}, recompute ${p.recompute}${p.offload ? `, offload ${p.offload}` : ""}, ${p.schedule}; ` +
            `${whole(p.job.global_batch)} sequences of ${whole(p.job.seq)} tokens a step.`,
        [["Step", seconds(e.step_s), runs], ["Tokens per second", whole(e.tokens_per_s), `MFU ${percent(e.mfu)}`],
            ["GPUs", whole(data.ranks.node.length), `of ${whole(data.cluster.n_gpus)}`],
            ["Memory peak", gib(m.peak_bytes) + " GiB", `limit ${gib(m.limit_bytes)} GiB; chance of running out ${chance(m.oom_probability)}`],
            ...isNumber(found.gap) ? [["Gap to the bound", percent(found.gap, 2), `nothing below ${seconds(found.lower_bound_s)}`]] : [],
            ...search.riskier ? [riskyFigure(search, e.step_s)] : []]);
}

function clusterFigures(c) {
    const between = c.tiers.filter(t => t.tier !== "inside nodes" && isNumber(t.median_gb_per_s));
    return [["Nodes", whole(c.n_nodes)], ["GPUs", whole(c.n_gpus)],
        ...between.slice(0, 1).map(t => ["Median link", number(t.median_gb_per_s) + " GB/s", `${number(t.min_gb_per_s)} to ${number(t.max_gb_per_s)}`]),
        ["Slow links", whole(c.slow_links), "under 80 % of their median"]];
}

/* Runs on record that are not of this profile on this GPU type. */
function otherRecord(others, before, what, after) {
    const names = others.names, range = new Set([others.step_mape_least, others.step_mape_most].map(x => percent(x, 0)));
    return names.length === 0 ? "" : ` On record are ${whole(others.steps || others.peaks)} ${others.steps ? "steps" : "memory peaks"} ` +
        `${before} ${names.length} other ${what}${names.length > 1 ? "s" : ""}${after} (${names.join(", ")})` +
        (others.steps ? `, ${[...range].join(" to ")} off in the means.` : ".");
}

function recordTable(types) {
    return table([["GPU type", true], ["steps"], ["mean error"], ["median"], ["in interval"],
        ["memory peaks"], ["mean error"], ["in interval"], ["profile", true], ["sources", true]],
        types.flatMap(t => t.record.here.map(r => [t.name, whole(r.steps), percent(r.step_mape),
            percent(r.step_median), percent(r.step_in_interval, 0), whole(r.peaks), percent(r.peak_mape),
            percent(r.peak_in_interval, 0), r.fitted ? "made from these runs" : "not fitted to them", make("span", {class: "wrap"}, `${r.sources.length}: ${r.sources.join(", ")}`)])), "Runs on record");
}

function accuracySection() {
    const parts = data.parts, percentOf = factor => isNumber(factor) ? `from − ${percent(1 - 1 / factor, 0)} to + ${percent(factor - 1, 0)}` : "not known";
    const types = parts.gpu_types;
    return section("accuracy", "Accuracy on record",
        `With the profile ${parts.framework} (${parts.framework_kind}), 9 of 10 steps are ${percentOf(data.step_factor)} of the estimate, ` +
            `9 of 10 peaks ${percentOf(data.peak_factor)}. Published runs of it on GPUs of this cluster, and how far their estimates are off:`,
        types.some(t => t.record.here.length > 0) ? recordTable(types) : null,
        ...types.map(t => make("p", null, t.record.here.length > 0 ? "" : `No run of ${parts.framework} on ${t.name} is on record.`,
            otherRecord(t.record.other_gpus, `of ${parts.framework} on`, "GPU type", ""), otherRecord(t.record.other_profiles, "of", "profile", " on " + t.name))),
        make("p", null, "The profile: " + parts.framework_source),
        table([["GPU type", true], ["constants from", true], ["measured", true]],
            types.map(t => [t.name, t.from, t.measured ? Object.keys(t.measured).join(", ") || "yes" : "no"]), "GPU types"));
}

function originSection() {
    return section("origin", "Where this comes from", "The same command on inputs with these digests makes this file again.",
        make("pre", {tabindex: 0, "aria-label": "Command"}, data.command),
        table([["input", true], ["file", true], ["SHA-256", true]],
            data.inputs.map(i => [i.what, i.file, make("code", null, i.sha256)]), "Inputs"));
}

const PAGES = {
    plan() {
        planHeading();
        return [stepSection(), topSection(), placementSection(), scheduleSection(), memorySection(),
            clusterSection(data.cluster), accuracySection()];
    },
    cluster() {
        heading(data.cluster.name, clusterSentence(data.cluster), clusterFigures(data.cluster));
        return [clusterSection(data.cluster, "cluster", "Links and nodes")];
    },
    compare() {
        heading(`${data.cluster.name} and ${data.other.name}`, diffSentence(data.diff),
            data.diff ? [["Links compared", whole(data.diff.compared)], ["Slower", whole(data.diff.slower)], ["Faster", whole(data.diff.faster)]] : []);
        return [diffSection(data.cluster, data.other, data.diff), sideBySide(data.cluster, data.other),
            clusterSection(data.cluster, "first", "First: " + data.cluster.name),
            clusterSection(data.other, "second", "Second: " + data.other.name)];
    }};

function start() {
    const sections = [...PAGES[data.kind](), originSection()];
    document.getElementById("main").replaceChildren(...sections);
    document.getElementById("nav").replaceChildren(...sections.map(s =>
        make("a", {href: "#" + s.id}, s.querySelector("h2").textContent)));
    document.getElementById("foot").replaceChildren(make("p", null, `${data.program}. This file needs no network.`));
}

darkScheme.addEventListener("change", start);
addEventListener("beforeprint", () => { printing = true; start(); });
addEventListener("afterprint", () => { printing = false; start(); });
