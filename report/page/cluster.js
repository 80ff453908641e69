/* A cluster: heat maps, the worst links, kinds of links, nodes. */

/** The heat map of a matrix.  share: of a rate, what its colour tells, a share `of` something. */
function heatMap(m, what, unit, of, share, worst) {
    const letterAt = new Map(worst.map(([i, j, letter]) => [i * m.n + j, letter]));
    const color = rate => isNaN(rate) ? "hatch" : shareColor(share(rate));
    const about = m.rounded > 0.0005 ? ` (rounded by up to ${percent(m.rounded)})` : "";
    return cellMap({rows: m.n, cols: m.n, rowName: m.name, colName: m.name, marks: worst,
        label: `${what} from the row's node to the column's, ${m.n} by ${m.n}. The table below has the same numbers.`,
        color: (i, j) => i === j && !m.shared ? null : color(m.at(i, j)),
        mark: (i, j) => letterAt.get(i * m.n + j),
        text: (i, j) => isNaN(m.at(i, j)) ? "" : number(m.at(i, j), 3),
        average: (i, j, rows, cols) => color(meanOf(m, i, j, rows, cols)),
        read: (i, j) => `${letterAt.has(i * m.n + j) ? letterAt.get(i * m.n + j) + ": " : ""}` +
            `${m.name(i)} → ${m.name(j)}: ` + (isNaN(m.at(i, j)) ? "not measured"
            : `${number(m.at(i, j))}${unit}${about}, ${percent(share(m.at(i, j)), 0)}${of}`)});
}

function meanOf(m, i0, j0, rows, cols) {
    let sum = 0, n = 0;
    for (let i = i0; i < i0 + rows; i++)
        for (let j = j0; j < j0 + cols; j++) {
            const rate = m.rate[i * m.n + j];
            if (rate === rate) {
                sum += rate;
                n++;
            }
        }
    return n > 0 ? sum / n : NaN;
}

function heatLegend(reference, words) {
    const stops = [1 / 3, 0.5, 0.8, 1, 1.25, 2, 3];
    const bar = make("div", {class: "ramp", "aria-hidden": "true", style: {background:
        `linear-gradient(90deg, ${Array.from({length: 13}, (_, k) => css(shareColor(3 ** (k / 6 - 1)))).join(", ")})`}});
    const ticks = stops.map(s => make("span", {style: {left: 50 + 50 * Math.log(s) / Math.log(3) + "%"}},
        reference ? number(reference * s, 3) : percent(s, 0)));
    return make("div", {class: "heat-legend"}, make("p", null, words), bar,
        make("div", {class: "ticks"}, ...ticks));
}

function matrixTable(m, title, unit) {
    const pairs = m.n * m.n;
    return details(title, [["from", true], ["to", true], [unit, false]], pairs - (m.shared ? 0 : m.n), k => {
        const i = m.shared ? Math.floor(k / m.n) : Math.floor(k / (m.n - 1));
        const rest = m.shared ? k % m.n : k % (m.n - 1), j = m.shared || rest < i ? rest : rest + 1;
        return [m.name(i), m.name(j), isNaN(m.at(i, j)) ? "not measured" : number(m.at(i, j))];
    });
}

const LETTERED = 10;

function letter(k) {
    return k < LETTERED ? make("b", {class: "letter"}, letters(k)) : "";
}

/** Cells of the first of a list of links with their letters; where they share one, the first is on top. */
function lettered(list, nodes, m) {
    const index = new Map(nodes.map((node, k) => [node.name, k]));
    const cell = end => m.cellOf(index.get(end.split(":")[0]));
    return list.slice(0, LETTERED).map((l, k) => [cell(l.from), cell(l.to), letters(k)]).reverse();
}

function worstTable(cluster) {
    return table([["", true], ["from", true], ["to", true], ["GB/s", false], ["back GB/s", false], ["of median", false]],
        cluster.worst.map((w, k) => [letter(k), w.from, w.to, number(w.gb_per_s),
            number(w.back_gb_per_s), percent(w.share_of_median, 0)]),
        "Worst links, by their share of the median of their kind");
}

const TIER_COLUMNS = [["links", true], ["number", false], ["unmeasured", false], ["lowest GB/s", false],
    ["5 %", false], ["median", false], ["95 %", false], ["highest", false], ["latency µs", false]];

function tierRow(t) {
    return [t.tier, whole(t.links), whole(t.unmeasured), number(t.min_gb_per_s), number(t.p5_gb_per_s),
        number(t.median_gb_per_s), number(t.p95_gb_per_s), number(t.max_gb_per_s), number(t.latency_us, 3)];
}

function clusterSentence(c) {
    const share = percent(c.slow_share, 0);
    const slow = c.slow_links === 0 ? `no link is under ${share} of the median of its kind`
        : `${plural(c.slow_links, "link")} ${c.slow_links === 1 ? "is" : "are"} under ${share} of the median of ${c.slow_links === 1 ? "its" : "their"} kind`;
    return `${c.name} has ${plural(c.n_nodes, "node")} with ${plural(c.n_gpus, "GPU")}; ${slow}` +
        (c.worst.length > 0 ? `; the worst, ${c.worst[0].from} → ${c.worst[0].to}, reaches ${number(c.worst[0].gb_per_s)} GB/s (${percent(c.worst[0].share_of_median, 0)}).` : ".");
}

function linksMap(cluster) {
    if (!cluster.links)
        return make("p", {class: "quiet"}, cluster.n_nodes < 2 ? "One node: there are no links between nodes."
            : "All pairs of nodes are given as alike, or none was measured: there is nothing to draw.");
    const m = matrixOf(cluster.links, cluster.nodes), median = cluster.median_gb_per_s;
    return make("div", null,
        heatLegend(median, `GB/s of one pair of GPUs, from the row's node to the column's; the median is ${number(median)}. ` +
            "Letters mark the worst links; hatched: not measured." + (m.shared ? " Neighbouring nodes share a cell, which shows their mean." : "")),
        heatMap(m, "GB/s", " GB/s", " of the median", rate => rate / median, lettered(cluster.worst, cluster.nodes, m)),
        matrixTable(m, "GB/s of every pair of nodes, as a table", "GB/s"));
}

function pairsMap(cluster) {
    const m = matrixOf(cluster.pairs, cluster.nodes), known = [...m.rate].filter(x => !isNaN(x)).sort((a, b) => a - b);
    const median = known[known.length >> 1];
    return make("div", {class: "pairs"}, make("h3", null, "What all GPUs of a pair of nodes reach together"),
        make("p", null, `From ${number(known[0])} to ${number(known[known.length - 1])} GB/s; the median is ${number(median)}.`),
        heatLegend(median, "GB/s from all GPUs of the row's node to those of the column's."),
        heatMap(m, "GB/s of all GPUs together", " GB/s", " of the median", rate => rate / median, []),
        matrixTable(m, "GB/s of all GPUs of every pair, as a table", "GB/s"));
}

function nodesTable(cluster, title = "Nodes") {
    return details(title, [["node", true], ["GPUs", false], ["type", true], ["state", true], ["rack", true],
        ["out GB/s", false], ["in GB/s", false], ["lowest out GB/s", false], ["to", true]], cluster.nodes.length, k => {
        const n = cluster.nodes[k];
        return [n.name, n.gpus, n.gpu_type || "–", n.state || "ok", n.rack || "–", number(n.out_gb_per_s), number(n.in_gb_per_s),
            number(n.lowest_gb_per_s), n.lowest_to || "–"];
    });
}

function clusterSection(cluster, id = "cluster", title = "Cluster") {
    return section(id, title, clusterSentence(cluster), linksMap(cluster),
        cluster.worst.length > 0 ? worstTable(cluster) : null,
        cluster.pairs ? pairsMap(cluster) : null,
        cluster.tiers.length > 0 ? table(TIER_COLUMNS, cluster.tiers.map(tierRow), "Links by kind") : null, nodesTable(cluster),
        cluster.source ? make("p", {class: "quiet"}, "Source: " + cluster.source) : null);
}
