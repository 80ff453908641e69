/* Two clusters, or one at two times. */

function diffSentence(d) {
    if (!d)
        return "The files are of different clusters: each is shown by itself.";
    if (d.compared === 0)
        return "No link is measured in both files: there is nothing to compare.";
    const by = [d.with_intervals > 0 ? "their intervals" : "",
        d.with_intervals < d.compared ? percent(data.changed_share, 0) : ""].filter(Boolean).join(" or ");
    return (d.slower + d.faster === 0 ? `No link of the ${whole(d.compared)} measured in both files changed by more than ${by}; `
        : `Of ${plural(d.compared, "link")} measured in both files ${whole(d.slower)} got slower and ${whole(d.faster)} faster by more than ${by}; `) +
        `the median link has ${percent(d.median_ratio)} of its old rate.`;
}

function changesTable(d) {
    return table([["", true], ["from", true], ["to", true], ["before GB/s", false], ["after GB/s", false], ["change", false]],
        d.changes.map((c, k) => [letter(k), c.from, c.to, number(c.before_gb_per_s), number(c.after_gb_per_s),
            `${c.after_gb_per_s >= c.before_gb_per_s ? "▲ +" : "▼ −"}${percent(Math.abs(c.after_gb_per_s / c.before_gb_per_s - 1))}`]),
        "Changed links, the largest changes first");
}

/** After over before, where both files have the same nodes. */
function changeMap(a, b, changes) {
    const same = a.links && b.links && a.links.n === b.links.n &&
        a.nodes.every((node, k) => b.nodes[k] && node.name === b.nodes[k].name);
    if (!same)
        return null;
    const before = matrixOf(a.links, a.nodes), after = matrixOf(b.links, b.nodes);
    const m = {...before, rate: before.rate.map((rate, k) => after.rate[k] / rate), rounded: 2 * before.rounded};
    m.at = (i, j) => m.rate[i * m.n + j];
    return make("div", null, heatLegend(null, "Rate after over rate before: orange is slower, blue faster; hatched: not measured in both. Letters mark the largest changes."),
        heatMap(m, "Rate after over rate before", " times", " of the rate before", x => x, lettered(changes, a.nodes, m)),
        matrixTable(m, "After over before of every pair, as a table", "ratio"));
}

function diffSection(a, b, d) {
    const more = d && [[d.appeared, "measured only in the second file"], [d.vanished, "measured only in the first"]]
        .filter(([n]) => n > 0).map(([n, words]) => `${plural(n, "link")} ${words}`).join("; ");
    const nodes = d && d.nodes_gone + d.nodes_new > 0
        ? `${plural(d.nodes_gone, "node")} only in the first file, ${whole(d.nodes_new)} only in the second.` : "";
    return section("changes", "What changed", diffSentence(d), more ? make("p", null, more + ".") : null,
        nodes ? make("p", null, nodes) : null, d ? changeMap(a, b, d.changes) : null,
        d && d.changes.length > 0 ? changesTable(d) : null);
}

function sideBySide(a, b) {
    const names = [...new Set([...a.tiers, ...b.tiers].map(t => t.tier))];
    const of = (cluster, name, key) => (cluster.tiers.find(t => t.tier === name) || {})[key];
    const keys = [["links", "links", 12], ["lowest GB/s", "min_gb_per_s", 4], ["median GB/s", "median_gb_per_s", 4],
        ["highest GB/s", "max_gb_per_s", 4], ["latency µs", "latency_us", 3]];
    const rows = [["nodes", whole(a.n_nodes), whole(b.n_nodes)], ["GPUs", whole(a.n_gpus), whole(b.n_gpus)],
        ["links under 80 % of their median", whole(a.slow_links), whole(b.slow_links)],
        ...names.flatMap(name => keys.map(([title, key, digits]) => [`${name}: ${title}`,
            ...[a, b].map(c => key === "links" ? whole(of(c, name, key)) : number(of(c, name, key), digits))]))];
    return section("both", "Side by side", `${a.name} and ${b.name}.`,
        table([["", true], ["first", false], ["second", false]], rows, "Both clusters"));
}
