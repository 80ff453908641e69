/* Which rank is on which GPU. */

function coordsOf(rank, d) {
    const within = Math.floor(rank / d.tp), replica = Math.floor(within / d.cp);
    return {tp: rank % d.tp, cp: within % d.cp, dp: replica % d.dp, pp: Math.floor(replica / d.dp),
        ep: Math.floor(rank % (d.tp * d.cp * d.dp) / d.etp) % d.ep};
}

function rankWords(rank, at, node, gpu, rates) {
    const d = data.plan.degrees;
    const axes = ["tp", "cp", "ep"].filter(k => d[k] > 1).map(k => `${k} ${at[k]}`);
    const links = Object.keys(rates).map(k => `${k} ${number(rates[k][rank])}`);
    return `Rank ${rank}: ${node} GPU ${gpu}, stage ${at.pp}, replica ${letters(at.dp)} (dp ${at.dp})` +
        (axes.length > 0 ? ", " + axes.join(", ") : "") +
        (links.length > 0 ? `; GB/s to the next rank of its group: ${links.join(", ")}` : "");
}

const READABLE = 20; /* pixels of a cell whose text can be read */
const LABEL_COLS = 4;

/* Nodes in blocks beside each other: names of `label` cells' width, then a cell for each GPU.  On a
 * narrow screen fewer are beside each other, but for maps that can be zoomed. */
function placementLayout(nodes, gpus, zoom) {
    const label = LABEL_COLS, width = label + gpus;
    const room = zoom ? nodes : Math.floor(innerWidth / READABLE / width);
    const blocks = Math.max(1, Math.min(nodes, room, Math.round(Math.sqrt(1.7 * nodes / width))));
    const rows = Math.ceil(nodes / blocks);
    return {rows, cols: Math.ceil(nodes / rows) * width,
        where: (i, j) => {
            const node = Math.floor(j / width) * rows + i, gpu = j % width - label;
            return {node: node < nodes ? node : -1, gpu};
        }};
}

function placementSection() {
    const d = data.plan.degrees, nodes = data.cluster.nodes, ranks = data.ranks;
    const gpus = nodes.reduce((most, n) => Math.max(most, n.gpus), 1 + ranks.gpu.reduce((a, b) => Math.max(a, b)));
    const rankAt = new Map(ranks.node.map((node, r) => [node * gpus + ranks.gpu[r], r]));
    const rates = Object.fromEntries(Object.entries(ranks.links).map(([group, list]) => [group, ratesOf(list)]));
    const zoom = nodes.length > 64, layout = placementLayout(nodes.length, gpus, zoom);
    const used = new Set(ranks.node), left = nodes.length - used.size;
    const rankOf = (i, j) => {
        const {node, gpu} = layout.where(i, j);
        return node >= 0 && gpu >= 0 ? rankAt.get(node * gpus + gpu) : undefined;
    };
    const map = cellMap({rows: layout.rows, cols: layout.cols, least: 26, zoom, captionCols: LABEL_COLS,
        label: "GPUs of every node, with the pipeline stage and the replica that each serves. The table below has the same.",
        caption: (i, j) => {
            const {node, gpu} = layout.where(i, j);
            return node >= 0 && gpu === -1 ? nodes[node].name : null;
        },
        color: (i, j) => {
            const {node, gpu} = layout.where(i, j), rank = rankOf(i, j);
            if (node < 0 || gpu < 0 || gpu >= Math.max(nodes[node].gpus, rank === undefined ? 0 : gpu + 1))
                return null;
            return rank === undefined ? "hatch" : stageColor(coordsOf(rank, d).pp, d.pp);
        },
        text: (i, j) => {
            const rank = rankOf(i, j), at = rank === undefined ? null : coordsOf(rank, d);
            return at ? `${at.pp}${letters(at.dp)}` : "";
        },
        read: (i, j) => {
            const {node, gpu} = layout.where(i, j), rank = rankOf(i, j);
            return rank === undefined ? `${nodes[node].name} GPU ${gpu}: not used${nodes[node].state ? ", " + nodes[node].state : ""}`
                : rankWords(rank, coordsOf(rank, d), nodes[node].name, gpu, rates);
        }});
    const stages = Array.from({length: d.pp}, (_, k) => [css(stageColor(k, d.pp)), `${k}`]);
    return section("placement", "Placement",
        `${plural(ranks.node.length, "rank")} ${ranks.node.length === 1 ? "is" : "are"} on ${plural(used.size, "node")}` +
            (left > 0 ? `; ${plural(left, "node")} ${left === 1 ? "is" : "are"} not used` : "") +
            ". A cell is a GPU: the number and colour are its pipeline stage, the letter its replica.",
        d.pp <= 32 ? legend(...stages, ["repeating-linear-gradient(45deg, var(--line) 0 1px, transparent 1px 4px)", "not used"]) : null, map,
        details("Ranks, as a table", [["rank", false], ["node", true], ["GPU", false], ["stage", false], ["replica", true],
            ["tp", false], ["cp", false], ["ep", false],
            ...Object.keys(rates).map(k => [`${k} link GB/s`, false])], ranks.node.length, r => {
            const at = coordsOf(r, d);
            return [r, nodes[ranks.node[r]].name, ranks.gpu[r], at.pp, letters(at.dp), at.tp, at.cp, at.ep,
                ...Object.values(rates).map(list => number(list[r]))];
        }));
}
