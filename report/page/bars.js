/* Bars: where the step goes, memory by stage, configurations with their intervals. */

function bar(share, color) {
    return make("span", {class: "bar", "aria-hidden": "true"},
        make("i", {style: {width: 100 * Math.max(0, Math.min(1, share)) + "%", background: color || "var(--accent)"}}));
}

function stepSection() {
    const e = data.estimate, parts = data.step_parts.filter(([key]) => e.breakdown_s[key] > 0);
    const most = parts.reduce((a, b) => e.breakdown_s[a[0]] >= e.breakdown_s[b[0]] ? a : b);
    const link = e.binding_link;
    return section("step", "Where the step goes",
        `Of ${seconds(e.step_s)}, ${most[1]} takes ${percent(e.breakdown_s[most[0]] / e.step_s)}; ` +
            `the path is that of stage ${e.binding_stage}, replica ${letters(e.binding_replica)}, which ends last.`,
        table([["part", true], ["s", false], ["of the step", false], ["", true]],
            [...parts.map(([key, name]) => [name, e.breakdown_s[key].toFixed(4), percent(e.breakdown_s[key] / e.step_s),
                bar(e.breakdown_s[key] / e.step_s)]),
            [make("b", null, "step"), make("b", null, e.step_s.toFixed(4)), "", ""]], "Parts of one step"),
        link ? make("p", null, `The link ${link.nodes[0]} – ${link.nodes[1]} (${link.use}, ${number(link.gb_per_s)} GB/s) delays the step most: ` +
            `at the median of ${number(link.median_gb_per_s)} GB/s it would take ${seconds(link.step_s_at_median)}.`) : null);
}

const KINDS = [["weights", "W", "#4477aa"], ["gradients", "G", "#66ccee"], ["optimizer", "O", "#228833"],
    ["activations", "A", "#ccbb44"], ["logits", "L", "#ee6677"], ["buffers", "B", "#aa3377"], ["overhead", "X", "#bbbbbb"]];

function memoryRow(m, stage, most) {
    const seen = KINDS.filter(([key]) => m[key + "_bytes"] > 0);
    return make("div", {class: "stack-row"}, make("span", {class: "stack-name"}, stage),
        make("div", {class: "stack", role: "img", "aria-label": `Stage ${stage}: ${gib(m.peak_bytes)} of ${gib(m.limit_bytes)} GiB`},
            ...seen.map(([key, letter, color]) => {
                const share = m[key + "_bytes"] / most;
                return make("i", {title: `${key}: ${gib(m[key + "_bytes"])} GiB`, style: {width: 100 * share + "%", background: color}},
                    share > 0.03 ? letter : "");
            }),
            make("b", {class: "limit", style: {left: 100 * m.limit_bytes / most + "%"}})),
        make("span", {class: "stack-value"}, `${gib(m.peak_bytes)} GiB, ${chance(m.oom_probability)}`));
}

function memorySection() {
    const stages = data.memory, most = Math.max(...stages.map(m => Math.max(m.gpu_bytes, m.peak_bytes)));
    const worst = stages.reduce((w, m, k) => m.peak_bytes / m.limit_bytes > stages[w].peak_bytes / stages[w].limit_bytes ? k : w, 0);
    const m = stages[worst], over = stages.filter(s => s.peak_bytes > s.limit_bytes).length;
    const factor = data.peak_factor;
    return section("memory", "Memory",
        `Stage ${worst} takes most: ${gib(m.peak_bytes)} GiB of a limit of ${gib(m.limit_bytes)} GiB` +
            (isNumber(factor) ? ` (90 % of runs: ${gib(m.peak_bytes / factor)} to ${gib(m.peak_bytes * factor)} GiB)` : "") +
            `; its chance of running out is ${chance(m.oom_probability)}.` +
            (over > 0 ? ` ${plural(over, "stage")} ${over === 1 ? "is" : "are"} over the limit.` : ""),
        legend(...KINDS.map(([key, letter, color]) => [color, `${letter} ${key === "overhead" ? "overhead (driver, communicators)" : key}`]),
            ["var(--ink)", "| limit"]),
        make("div", {class: "stacks"}, make("div", {class: "stack-row stack-head", "aria-hidden": "true"},
            make("span", {class: "stack-name"}, "stage"), make("span", null), make("span", {class: "stack-value"}, "peak, chance of running out")),
            ...stages.map((s, k) => memoryRow(s, k, most))),
        details("Memory of every stage, as a table", [["stage", false], ["layers", false],
            ...KINDS.map(([key]) => [key + " GiB", false]), ["peak GiB", false], ["limit GiB", false], ["GPU GiB", false], ["chance", false]],
        stages.length, k => [k, stages[k].layers, ...KINDS.map(([key]) => gib(stages[k][key + "_bytes"])), gib(stages[k].peak_bytes),
            gib(stages[k].limit_bytes), gib(stages[k].gpu_bytes), chance(stages[k].oom_probability)]));
}

/* A step as a point on its 90 % interval; all rows have one scale. */
function interval(step, factor, low, high) {
    const at = s => 100 * (s - low) / (high - low) + "%";
    return make("span", {class: "interval", "aria-hidden": "true"}, isNumber(factor) ? make("i", {style: {left: at(step / factor),
        width: 100 * (step * factor - step / factor) / (high - low) + "%"}}) : null, make("b", {style: {left: at(step)}}));
}

/* Is a configuration of the list the plan's own? */
function isOwn(t) {
    const p = data.plan;
    return Object.entries(p.degrees).every(([key, x]) => t[key] === x) &&
        ["micro_batch", "zero", "shard", "sequence_parallel", "recompute", "schedule"].every(key => t[key] === p[key]);
}

function topSection() {
    const search = data.plan.search;
    if (!search || !Array.isArray(search.top))
        return section("best", "Best configurations", "This file has no results of a search that are of this placement on this cluster.");
    const factor = data.step_factor, steps = search.top.map(t => t.step_s), wide = isNumber(factor) ? factor : 1.02;
    const low = Math.min(...steps) / wide, high = Math.max(...steps) * wide, e = data.plan.estimate;
    const range = s => isNumber(factor) ? `${number(s / factor, 3)} to ${number(s * factor, 3)}` : "–";
    return section("best", "Best configurations",
        (search.ties > 1 ? `${whole(search.ties)} placed configurations cannot be told apart: the model's error is ${percent(search.model_error)}. `
            : search.placed > 1 ? "The best one is ahead by more than the model's error. "
                : "No other configuration was placed. ") +
            (search.given_up > 5e-5 ? `This plan is simpler or leaves more memory free, and is ${percent(search.given_up, 2)} above the best. ` : "") +
            `No plan of the searched space takes less than ${seconds(e.lower_bound_s)} (gap ${percent(e.gap, 2)})` +
            (search.proven ? "." : "; the search was stopped before it settled all of them."),
        table([["", true], ["step s", false], ["90 % of runs, s", false], ["", true], ["bound s", false], ["tp", false], ["pp", false],
            ["dp", false], ["cp", false], ["ep", false], ["vpp", false], ["micro-batch", false], ["zero", false], ["recompute", true], ["schedule", true]],
        search.top.map(t => [isOwn(t) ? make("b", null, "this plan") : t.tie && search.ties > 1 ? "= tie" : "", number(t.step_s, 5),
            range(t.step_s), interval(t.step_s, factor, low, high), number(t.lower_bound_s, 5), t.tp, t.pp, t.dp, t.cp, t.ep, t.vpp,
            t.micro_batch, t.shard ? `${t.zero} over ${t.shard}` : t.zero, t.recompute, t.schedule]), "The best configurations after placement; = tie: within the model's error of the best"),
        make("p", {class: "quiet"}, `${plural(search.configurations, "configuration")}: ${whole(search.refused_memory)} refused for memory, ` +
            `${whole(search.placed)} placed; Megatron's rank order would take ${seconds(e.default_order_step_s)}.`));
}
