/* The schedule as a time line that can be zoomed. */

const OPERATIONS = [["F", "forward", 0, 0.62], ["B", "backward", 0.38, 1], ["W", "weights' gradients", 0.7, 1]];

function operationColor(what) {
    return (isDark() ? [[106, 164, 220], [226, 148, 70], [150, 150, 156]] : [[74, 128, 184], [214, 126, 44], [140, 140, 146]])[what];
}

/** Events of a stage: start and end in units, what, chunk, micro-batch. */
function eventsOf(stage) {
    const text = stage.events, at = {k: 0}, micro = new Map(), list = [];
    const next = () => {
        let x = 0, shift = 1;
        for (;; shift *= 32) {
            const digit = digitOf[text.charCodeAt(at.k++)];
            x += (digit & 31) * shift;
            if (digit < 32)
                return x;
        }
    };
    for (let end = 0; at.k < text.length;) {
        const code = next(), kind = code >> 1;
        const m = code & 1 ? next() : (micro.has(kind) ? micro.get(kind) : -1) + 1;
        const start = end + next();
        end = start + stage.units[kind];
        micro.set(kind, m);
        list.push({start, end, what: kind % 3, chunk: Math.floor(kind / 3), micro: m});
    }
    return list;
}

/* The first event that ends after a time. */
function firstAfter(events, time) {
    let low = 0, high = events.length;
    while (low < high) {
        const middle = (low + high) >> 1;
        if (events[middle].end <= time)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

function eventName(e, chunks) {
    return OPERATIONS[e.what][0] + e.micro + (chunks > 1 ? "." + e.chunk : "");
}

function drawLane(fit, x, lane, events, tail, view, chunks) {
    const c = fit.context, scale = (fit.width - x.left) / view.length, y = x.top + lane * x.lane, tall = x.lane - 3;
    const place = time => x.left + (time - view.start) * scale;
    for (let k = firstAfter(events, view.start); k < events.length && events[k].start < view.start + view.length; k++) {
        const e = events[k], from = Math.max(x.left, place(e.start)), to = Math.min(fit.width, place(e.end));
        const [, , up, down] = OPERATIONS[e.what], color = operationColor(e.what);
        c.fillStyle = css(color);
        c.fillRect(from, y + up * tall, Math.max(0.5, to - from - (to - from > 3 ? 1 : 0)), (down - up) * tall);
        if (to - from > 30 && x.lane > 18) {
            c.fillStyle = inkOn(color);
            c.fillText(eventName(e, chunks), (from + to) / 2, y + (up + down) / 2 * tall + 0.5);
        }
    }
    c.fillStyle = variable("--quiet");
    for (const [start, end] of tail)
        if (end > start && end > view.start && start < view.start + view.length)
            c.fillRect(Math.max(x.left, place(start)), y + tall * 0.3, Math.max(1, Math.min(fit.width, place(end)) - Math.max(x.left, place(start))), tall * 0.4);
}

function drawAxis(fit, x, view, unit) {
    const c = fit.context, all = view.length * unit, rough = all / Math.max(3, (fit.width - x.left) / 110);
    const power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find(k => k * power >= rough) * power;
    c.fillStyle = c.strokeStyle = variable("--quiet");
    c.lineWidth = 0.5;
    const [scale, name] = all >= 2 ? [1, "s"] : all >= 2e-3 ? [1e3, "ms"] : [1e6, "µs"];
    for (let t = Math.ceil(view.start * unit / step) * step; t <= view.start * unit + all; t += step) {
        const at = x.left + (t / unit - view.start) / view.length * (fit.width - x.left);
        c.beginPath();
        c.moveTo(at, x.top - 5);
        c.lineTo(at, fit.height);
        c.stroke();
        if (at < fit.width - 24)
            c.fillText(t === 0 ? "0" : `${+(t * scale).toPrecision(5)} ${name}`, Math.max(at, x.left + 10), x.top - 12);
    }
}

function timeLine(s, label) {
    const events = s.stages.map(eventsOf), unit = s.unit_s, chunks = s.stages[0].units.length / 3;
    const tails = s.stages.map(t => [[t.end_s, t.end_s + t.sync_s], [t.end_s + t.sync_s, t.end_s + t.sync_s + t.optimizer_s]]
        .map(pair => pair.map(time => time / unit)));
    const all = Math.max(...tails.map(t => t[1][1])), view = range(all, all / 5e4);
    const canvas = make("canvas", {role: "img", tabindex: 0, "aria-label": label, class: "line"});
    const x = {left: 34, top: 24, lane: Math.max(5, Math.min(30, 560 / s.stages.length))};
    const readout = make("output", {class: "readout", "aria-live": "polite"},
        "Wheel or + and − zoom, drag or the arrow keys move, 0 shows all.");
    const redraw = () => {
        const fit = fitted(canvas, () => x.top + x.lane * s.stages.length + 2), c = fit.context;
        c.font = "11px system-ui, sans-serif";
        c.textAlign = "center";
        c.textBaseline = "middle";
        drawAxis(fit, x, view, unit);
        events.forEach((list, k) => drawLane(fit, x, k, list, tails[k], view, chunks));
        c.fillStyle = variable("--ink");
        for (let k = 0; k < events.length; k += Math.ceil(13 / x.lane))
            c.fillText(k, 14, x.top + (k + 0.5) * x.lane);
    };
    canvas.addEventListener("pointermove", event => {
        const [across, down] = shareAt(canvas, x, event);
        const stage = Math.floor(down * events.length), time = view.start + across * view.length;
        if (stage >= 0 && stage < events.length && across >= 0)
            readout.textContent = atTime(s.stages[stage], events[stage], tails[stage], stage, time, unit);
    });
    canvas.addEventListener("keydown", event => {
        const by = {ArrowLeft: -0.2, ArrowRight: 0.2, Home: -1e9, End: 1e9}[event.key];
        if (by) {
            event.preventDefault();
            view.move(by * view.length);
            redraw();
            readout.textContent = `${seconds(view.start * unit)} to ${seconds((view.start + view.length) * unit)}`;
        }
    });
    const buttons = zoomable(canvas, [view], x, redraw);
    whenSized(canvas, redraw);
    return make("div", {class: "map"}, canvas, buttons, readout);
}

function atTime(stage, events, tail, k, time, unit) {
    const e = events[firstAfter(events, time)], where = `Stage ${k} at ${seconds(time * unit)}: `;
    const left = stage.left_out;
    if (e && e.start <= time)
        return where + `${OPERATIONS[e.what][1]} of micro-batch ${e.micro}` + (stage.units.length > 3 ? `, chunk ${e.chunk}` : "") +
            `, ${seconds((e.end - e.start) * unit)}`;
    if (left && time >= left.start && time < left.end)
        return where + `${whole(left.n)} operations of the middle of the step are not drawn`;
    return where + (time >= tail[0][0] && time < tail[0][1] ? "data-parallel synchronisation"
        : time >= tail[1][0] && time < tail[1][1] ? "optimizer" : "waits");
}

function busyOf(stage, events, unit) {
    return stage.left_out ? null : events.reduce((sum, e) => sum + e.end - e.start, 0) * unit;
}

function scheduleSection() {
    const s = data.schedule, left = s.stages.reduce((n, t) => n + (t.left_out ? t.left_out.n : 0), 0);
    const operations = s.stages.reduce((n, t) => n + t.n, 0);
    const sentence = `${data.plan.schedule}, ${plural(data.plan.microbatches, "micro-batch").replace("batchs", "batches")} on ${plural(s.stages.length, "stage")}: ` +
        `${whole(operations)} operations of replica ${letters(s.replica)}, which ends last.`;
    const used = [...new Set(s.stages.flatMap(t => t.units.map((u, k) => u > 0 ? k % 3 : -1)))].filter(k => k >= 0).sort();
    return section("schedule", "Schedule", sentence,
        legend(...used.map(k => [css(operationColor(k)), `${OPERATIONS[k][0]} ${OPERATIONS[k][1]} (${["upper", "lower", "lowest"][k]} part of a lane)`]),
            ["var(--quiet)", "synchronisation and optimizer (thin)"]),
        timeLine(s, sentence + " The table below says when each stage is busy."),
        left > 0 ? make("p", {class: "quiet"}, `${whole(left)} operations of the middle of the step are left out of the drawing.`) : null,
        details("Stages, as a table", [["stage", false], ["operations", false], ["busy s", false], ["schedule ends s", false],
            ["synchronisation s", false], ["optimizer s", false]], s.stages.length, k => {
            const t = s.stages[k];
            return [k, whole(t.n), number(busyOf(t, eventsOf(t), s.unit_s)), number(t.end_s), number(t.sync_s), number(t.optimizer_s)];
        }));
}
