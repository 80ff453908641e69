/* What all parts of the page use: the data, elements, numbers as text, packed numbers. */

const data = JSON.parse(document.getElementById("data").textContent);
const svgNamespace = document.getElementById("pattern").namespaceURI;
const darkScheme = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function isDark() {
    return darkScheme.matches && !printing;
}

/* ---- elements ---- */

/** Names come from files: control characters and those that turn the direction are shown as one
 *  sign, all else as it is. */
function clean(text) {
    return String(text).replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
        "\ufffd");
}

function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes || {})) {
        if (name === "style")
            Object.assign(element.style, value);
        else if (typeof value === "function")
            element.addEventListener(name, value);
        else if (value !== null && value !== undefined)
            element.setAttribute(name, typeof value === "string" ? clean(value) : value);
    }
    for (const child of children)
        if (child !== null && child !== undefined)
            element.append(child instanceof Node ? child : clean(child));
    return element;
}

/** An HTML element.  Children are elements, or texts, which stay texts. */
function make(tag, attributes, ...children) {
    return fill(document.createElement(tag), attributes, children);
}

/** The same of SVG. */
function draw(tag, attributes, ...children) {
    return fill(document.createElementNS(svgNamespace, tag), attributes, children);
}

/** A table.  columns: [title, is it text?]; rows: lists of cells. */
function table(columns, rows, caption) {
    const cell = (tag, content, k) =>
        make(tag, {class: columns[k][1] ? "text" : "number", scope: tag === "th" ? "col" : null}, content);
    return make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": caption},
        make("table", null, make("caption", null, caption),
            make("thead", null, make("tr", null, ...columns.map((c, k) => cell("th", c[0], k)))),
            make("tbody", null, ...rows.map(row =>
                make("tr", null, ...row.map((content, k) => cell("td", content, k)))))));
}

const ROWS_MOST = 2048;

/** A table that is made when somebody opens it: rows(k) is its k-th row of n. */
function details(title, columns, n, row) {
    const box = make("details", {toggle: () => {
        if (!box.open || box.querySelector("table"))
            return;
        const shown = Math.min(n, ROWS_MOST);
        box.append(table(columns, Array.from({length: shown}, (_, k) => row(k)), title));
        if (shown < n)
            box.append(make("p", {class: "quiet"}, `The first ${shown} of ${n}; all are in this file's data.`));
    }}, make("summary", null, title));
    return box;
}

function section(id, title, sentence, ...children) {
    return make("section", {id, "aria-labelledby": id + "-title"},
        make("h2", {id: id + "-title"}, title), make("p", {class: "lead"}, sentence), ...children);
}

function legend(...items) {
    return make("ul", {class: "legend"}, ...items.map(([background, text]) =>
        make("li", null, make("i", {style: {background}, "aria-hidden": "true"}), text)));
}

/* ---- numbers as text ---- */

function isNumber(x) {
    return typeof x === "number" && isFinite(x);
}

/** Four digits, or as many as are asked for; a dash for what is not known. */
function number(x, digits = 4) {
    if (!isNumber(x))
        return "–";
    const places = x === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(x))));
    return x.toLocaleString("en", {minimumFractionDigits: Math.min(places, 6),
        maximumFractionDigits: Math.min(places, 6)});
}

function whole(x) {
    return isNumber(x) ? Math.round(x).toLocaleString("en") : "–";
}

function seconds(s) {
    return !isNumber(s) ? "–" : s >= 1 ? number(s) + " s" : s >= 1e-3 ? number(1e3 * s) + " ms"
        : number(1e6 * s) + " µs";
}

/** From, to: in the unit of what they are about. */
function secondsRange(low, high, of) {
    const [unit, name] = of >= 1 ? [1, "s"] : of >= 1e-3 ? [1e3, "ms"] : [1e6, "µs"];
    return `${number(unit * low, 3)} to ${number(unit * high, 3)} ${name}`;
}

function percent(x, places = 1) {
    return isNumber(x) ? (100 * x).toFixed(places) + " %" : "–";
}

/** A chance: never none and never all. */
function chance(p) {
    return !isNumber(p) ? "unknown" : p < 1e-5 ? "< 0.001 %" : p > 0.99999 ? "> 99.999 %"
        : number(100 * p, p > 0.99 ? 5 : 2) + " %";
}

const GIB = 2 ** 30;

function gib(bytes) {
    return isNumber(bytes) ? (bytes / GIB).toFixed(1) : "–";
}

/** A, B, ... Z, AA, ... */
function letters(k) {
    return (k >= 26 ? letters(Math.floor(k / 26) - 1) : "") + String.fromCharCode(65 + k % 26);
}

/** The end of a long name, where names of nodes differ. */
function short(name, most = 14) {
    return name.length > most ? "…" + name.slice(1 - most) : name;
}

function plural(n, what) {
    return `${whole(n)} ${what}${n === 1 ? "" : "s"}`;
}

/* ---- packed numbers ---- */

const digitOf = new Uint8Array(128);
for (const [k, c] of [..."ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"].entries())
    digitOf[c.charCodeAt(0)] = k;

/** A matrix of the data: n, at(i, j) in GB/s or NaN, and the nodes of a cell. */
function matrixOf(m, nodes) {
    const rate = ratesOf(m);
    const first = i => Math.ceil(i * nodes.length / m.n);
    const name = i => {
        const last = first(i + 1) - 1;
        return nodes[first(i)].name + (last > first(i) ? " to " + nodes[last].name : "");
    };
    return {n: m.n, rate, name, shared: m.n < nodes.length,
        rounded: m.gb_per_s ? 0 : Math.pow(m.high_gb_per_s / m.low_gb_per_s, 0.5 / (64 ** m.digits - 2)) - 1,
        at: (i, j) => rate[i * m.n + j], cellOf: node => Math.floor(node * m.n / nodes.length)};
}

/** Rates in GB/s, NaN where unmeasured: numbers, or codes on a logarithmic scale. */
function ratesOf({gb_per_s: list, code, digits, low_gb_per_s: low, high_gb_per_s: high}) {
    if (list)
        return Float64Array.from(list, x => x === null ? NaN : x);
    const top = 64 ** digits - 2;
    const known = Float32Array.from({length: top + 2}, (_, k) =>
        k === 0 ? NaN : low * Math.pow(high / low, (k - 1) / top));
    const rate = new Float32Array(code.length / digits);
    for (let k = 0; k < rate.length; k++)
        rate[k] = known[digits === 1 ? digitOf[code.charCodeAt(k)]
            : 64 * digitOf[code.charCodeAt(2 * k)] + digitOf[code.charCodeAt(2 * k + 1)]];
    return rate;
}

/* ---- colours ---- */

function between(stops, t) {
    const at = Math.max(0, Math.min(1, t)) * (stops.length - 1);
    const k = Math.min(stops.length - 2, Math.floor(at));
    return stops[k].map((c, i) => Math.round(c + (at - k) * (stops[k + 1][i] - c)));
}

const RATES = {
    light: [[150, 62, 0], [226, 132, 38], [252, 212, 158], [243, 243, 241], [190, 213, 234], [94, 147, 196], [22, 78, 140]],
    dark: [[255, 196, 110], [222, 128, 38], [128, 78, 36], [46, 50, 58], [44, 74, 106], [62, 124, 184], [150, 202, 250]]};

/** Orange below 1, plain at 1, blue above, as far as a third and threefold. */
function shareColor(share) {
    return between(isDark() ? RATES.dark : RATES.light, 0.5 + Math.log(share) / Math.log(3) / 2);
}

/** Stages in their order: light yellow to dark violet, which differ in lightness too. */
function stageColor(stage, stages) {
    return between([[253, 224, 94], [122, 198, 110], [42, 150, 138], [58, 90, 146], [84, 28, 104]],
        stages > 1 ? stage / (stages - 1) : 0.25);
}

function css(color) {
    return `rgb(${color.join(" ")})`;
}

/** What can be read on a colour. */
function inkOn([r, g, b]) {
    return 0.299 * r + 0.587 * g + 0.114 * b > 140 ? "#111" : "#fff";
}

function variable(name) {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
