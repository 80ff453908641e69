/* A map of cells that can be looked at by pointer and by arrow keys: SVG while it is small, a
 * canvas with zoom beyond. */

const SVG_MOST = 64 * 64;

/** A part of 0 to all that can be zoomed into, down to `least`. */
function range(all, least) {
    const r = {all, start: 0, length: all};
    const settle = () => {
        r.length = Math.max(Math.min(least, all), Math.min(all, r.length));
        r.start = Math.max(0, Math.min(all - r.length, r.start));
    };
    r.reset = () => Object.assign(r, {start: 0, length: all});
    r.move = by => { r.start += by; settle(); };
    r.zoom = (factor, at = 0.5) => { // at: which part of what is seen stays where it is
        const fixed = r.start + at * r.length;
        r.length /= factor;
        settle();
        r.start = fixed - at * r.length;
        settle();
    };
    return r;
}

/** Where in a canvas without its margins a pointer is: across and down, 0 to 1. */
function shareAt(canvas, margin, event) {
    const box = canvas.getBoundingClientRect();
    return [(event.clientX - box.left - margin.left) / (box.width - margin.left),
        (event.clientY - box.top - margin.top) / (box.height - margin.top)];
}

/** Zoom by wheel, drag, + - 0 and buttons.  @return the buttons */
function zoomable(canvas, ranges, margin, redraw) {
    const at = (event, k) => shareAt(canvas, margin, event)[k];
    const zoom = (factor, event) => {
        ranges.forEach((r, k) => r.zoom(factor, event ? at(event, k) : 0.5));
        redraw();
    };
    const reset = () => { ranges.forEach(r => r.reset()); redraw(); };
    let last = null;
    canvas.addEventListener("wheel", event => {
        if (event.deltaY > 0 && ranges.every(r => r.length >= r.all))
            return; // all is seen: the page scrolls
        event.preventDefault();
        zoom(Math.exp(-event.deltaY / 400), event);
    }, {passive: false});
    canvas.addEventListener("pointerdown", event => { last = event; });
    canvas.addEventListener("pointermove", event => {
        if (!last || event.buttons === 0)
            return;
        ranges.forEach((r, k) => r.move((at(last, k) - at(event, k)) * r.length));
        last = event;
        redraw();
    });
    canvas.addEventListener("pointerup", () => { last = null; });
    canvas.addEventListener("keydown", event => {
        const act = {"+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: reset}[event.key];
        if (act && !event.ctrlKey && !event.metaKey) {
            event.preventDefault();
            act();
        }
    });
    const button = (text, label, click) =>
        make("button", {type: "button", "aria-label": label, title: label, click}, text);
    return make("div", {class: "buttons"}, button("+", "Zoom in", () => zoom(1.5)),
        button("−", "Zoom out", () => zoom(1 / 1.5)), button("All", "Show all", reset));
}

/** Fit a canvas to its room, at the screen's resolution.  @return its context and size */
function fitted(canvas, height) {
    const width = canvas.clientWidth || 800, scale = window.devicePixelRatio || 1;
    const tall = height(width);
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(tall * scale);
    canvas.style.height = tall + "px";
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, tall);
    return {context, width, height: tall};
}

function whenSized(element, redraw) {
    new ResizeObserver(() => requestAnimationFrame(redraw)).observe(element);
}

/** The map.  o: rows, cols, label; color (i, j): [r, g, b], "hatch", or null where there is no cell;
 *  read (i, j): what it is, in words; may have text, mark and caption (of `captionCols` columns of
 *  labels) (i, j), rowName (i), colName (j), average (i, j, rows, cols): the colour of many cells,
 *  least: a cell's size, and zoom: is it a canvas? */
function cellMap(o) {
    const readout = make("output", {class: "readout", "aria-live": "polite"},
        "Point at a cell, or move through them with the arrow keys.");
    const cursor = {i: -1, j: -1};
    const parts = o.zoom ?? o.rows * o.cols > SVG_MOST ? canvasCells(o) : svgCells(o);
    const select = (i, j) => {
        if (i < 0 || j < 0 || i >= o.rows || j >= o.cols || o.color(i, j) === null)
            return false;
        Object.assign(cursor, {i, j});
        parts.show(i, j);
        readout.textContent = clean(o.read(i, j));
        return true;
    };
    parts.target.addEventListener("pointermove", event => {
        const [i, j] = parts.cellAt(event);
        select(i, j);
    });
    parts.target.addEventListener("keydown", event => {
        const step = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key];
        if (!step)
            return;
        event.preventDefault();
        let {i, j} = cursor;
        do { // over columns of names
            i += step[0];
            j += step[1];
        } while (i >= 0 && j >= 0 && i < o.rows && j < o.cols && !select(i, j));
    });
    parts.target.addEventListener("focus", () => {
        for (let k = 0; cursor.i < 0 && k < o.rows * o.cols; k++)
            select(Math.floor(k / o.cols), k % o.cols);
    });
    return make("div", {class: "map"}, ...parts.elements, readout);
}

function svgCells(o) {
    const size = Math.max(o.least || 12, Math.min(36, Math.floor(760 / o.cols)));
    const left = o.rowName ? 6 + 7 * longest(o.rows, o.rowName) : 1;
    const top = o.colName ? 8 + 7 * longest(o.cols, o.colName) : 1;
    const width = left + o.cols * size + 2, height = top + o.rows * size + 2;
    const svg = draw("svg", {viewBox: `0 0 ${width} ${height}`, role: "img", tabindex: 0,
        "aria-label": o.label, class: "cells"});
    svg.style.maxWidth = 1.25 * width + "px";
    for (let i = 0; i < o.rows; i++) {
        if (o.rowName)
            svg.append(draw("text", {x: left - 5, y: top + (i + 0.5) * size, class: "name end"}, short(o.rowName(i))));
        for (let j = 0; j < o.cols; j++)
            svgCell(svg, o, i, j, left + j * size, top + i * size, size);
    }
    for (let j = 0; o.colName && j < o.cols; j++)
        svg.append(draw("text", {transform: `translate(${left + (j + 0.5) * size} ${top - 5}) rotate(-90)`,
            class: "name"}, short(o.colName(j))));
    const box = draw("rect", {width: size, height: size, class: "cursor", visibility: "hidden"});
    svg.append(box);
    return {elements: [svg], target: svg,
        show: (i, j) => fill(box, {x: left + j * size, y: top + i * size, visibility: "visible"}, []),
        cellAt: event => {
            const on = svg.getBoundingClientRect(), scale = width / on.width;
            return [Math.floor(((event.clientY - on.top) * scale - top) / size),
                Math.floor(((event.clientX - on.left) * scale - left) / size)];
        }};
}

function longest(n, name) {
    let most = 0;
    for (let k = 0; k < n; k++)
        most = Math.max(most, short(name(k)).length);
    return most;
}

function svgCell(svg, o, i, j, x, y, size) {
    const color = o.color(i, j), caption = o.caption && o.caption(i, j), mark = o.mark && o.mark(i, j);
    if (caption)
        svg.append(draw("text", {x: x + size - 5, y: y + size / 2, class: "name end"}, short(caption)));
    if (color === null)
        return;
    svg.append(draw("rect", {x: x + 0.5, y: y + 0.5, width: size - 1, height: size - 1,
        fill: color === "hatch" ? "url(#hatch)" : css(color), class: mark ? "cell marked" : "cell"}));
    const text = mark || (o.text && size >= 24 ? o.text(i, j) : "");
    if (text)
        svg.append(draw("text", {x: x + size / 2, y: y + size / 2, class: mark ? "in mark" : "in",
            style: {fill: color === "hatch" ? "var(--ink)" : inkOn(color)}}, text));
}

function canvasCells(o) {
    const canvas = make("canvas", {role: "img", tabindex: 0, "aria-label": o.label, class: "cells"});
    const xs = range(o.cols, 6), ys = range(o.rows, 6 * o.rows / o.cols), at = {i: -1, j: -1};
    const margin = {left: 0, top: 0, letters: 0};
    const redraw = () => {
        const fit = fitted(canvas, width => {
            if (o.rowName) { // names that are long take a fifth of a narrow screen
                margin.letters = Math.min(longest(o.rows, o.rowName), Math.max(5, Math.floor(width / 34)));
                margin.left = margin.top = 8 + 6 * margin.letters;
            }
            return margin.top + Math.min((width - margin.left) * o.rows / o.cols, 1400);
        });
        const c = fit.context, inside = {context: c, width: fit.width - margin.left, height: fit.height - margin.top};
        if (o.rowName)
            drawNames(inside, o, xs, ys, margin);
        c.translate(margin.left, margin.top);
        c.beginPath();
        c.rect(0, 0, inside.width, inside.height);
        c.clip();
        drawBlocks(inside, o, xs, ys);
        drawMarks(inside, o, xs, ys);
        if (at.i >= 0)
            drawCursor(inside, xs, ys, at);
    };
    const buttons = zoomable(canvas, [xs, ys], margin, redraw);
    whenSized(canvas, redraw);
    return {elements: [canvas, buttons], target: canvas,
        show: (i, j) => {
            Object.assign(at, {i, j});
            if (i < ys.start || i + 1 > ys.start + ys.length)
                ys.move(i - ys.start - ys.length / 2);
            if (j < xs.start || j + 1 > xs.start + xs.length)
                xs.move(j - xs.start - xs.length / 2);
            requestAnimationFrame(redraw);
        },
        cellAt: event => {
            const [x, y] = shareAt(canvas, margin, event);
            return x < 0 || y < 0 ? [-1, -1] : [Math.floor(ys.start + ys.length * y), Math.floor(xs.start + xs.length * x)];
        }};
}

/* Names of rows and columns, as many as there is room for. */
function drawNames(fit, o, xs, ys, margin) {
    const c = fit.context;
    const along = (r, room, draw) => {
        const step = Math.max(1, Math.ceil(11 * r.length / room));
        for (let k = Math.ceil(r.start / step) * step; k + 0.5 < r.start + r.length; k += step)
            draw(k, (k + 0.5 - r.start) * room / r.length);
    };
    c.font = "10px system-ui, sans-serif";
    c.fillStyle = variable("--quiet");
    c.textBaseline = "middle";
    c.textAlign = "right";
    along(ys, fit.height, (i, at) => c.fillText(clean(short(o.rowName(i), margin.letters)), margin.left - 4, margin.top + at));
    c.textAlign = "left";
    along(xs, fit.width, (j, at) => {
        c.save();
        c.translate(margin.left + at, margin.top - 4);
        c.rotate(-Math.PI / 2);
        c.fillText(clean(short(o.colName(j), margin.letters)), 0, 0);
        c.restore();
    });
}

/* As many blocks as there are points, each of one cell or the mean of several. */
function drawBlocks(fit, o, xs, ys) {
    const i0 = Math.floor(ys.start), j0 = Math.floor(xs.start);
    const i1 = Math.min(o.rows, Math.ceil(ys.start + ys.length)), j1 = Math.min(o.cols, Math.ceil(xs.start + xs.length));
    const step = Math.max(1, Math.ceil((j1 - j0) / fit.width));
    const across = Math.ceil((j1 - j0) / step), down = Math.ceil((i1 - i0) / step);
    const image = new ImageData(across, down), hatch = isDark() ? [82, 86, 94] : [206, 206, 202];
    for (let y = 0; y < down; y++)
        for (let x = 0; x < across; x++) {
            const i = i0 + y * step, j = j0 + x * step;
            const color = step > 1 && o.average ? o.average(i, j, Math.min(step, i1 - i), Math.min(step, j1 - j))
                : o.color(i, j);
            const rgb = color === "hatch" ? hatch : color;
            if (rgb)
                image.data.set([rgb[0], rgb[1], rgb[2], 255], 4 * (y * across + x));
        }
    const small = make("canvas", {width: across, height: down});
    small.getContext("2d").putImageData(image, 0, 0);
    const wide = fit.width / xs.length, tall = fit.height / ys.length;
    fit.context.imageSmoothingEnabled = false;
    fit.context.drawImage(small, (j0 - xs.start) * wide, (i0 - ys.start) * tall,
        across * step * wide, down * step * tall);
}

/* Marks, and what cells say where there is room. */
function drawMarks(fit, o, xs, ys) {
    const wide = fit.width / xs.length, tall = fit.height / ys.length, c = fit.context;
    const middle = (i, j) => [(j + 0.5 - xs.start) * wide, (i + 0.5 - ys.start) * tall];
    c.textAlign = "center";
    c.textBaseline = "middle";
    c.font = `${Math.max(9, Math.min(13, wide * 0.38))}px system-ui, sans-serif`;
    for (let i = Math.floor(ys.start); wide >= (o.caption ? 9 : 22) && i < Math.min(o.rows, ys.start + ys.length); i++)
        for (let j = Math.floor(xs.start); j < Math.min(o.cols, xs.start + xs.length); j++) {
            const color = o.color(i, j), caption = !color && o.caption && o.caption(i, j);
            if (caption || color && wide >= 22) {
                c.fillStyle = color && color !== "hatch" ? inkOn(color) : variable("--ink");
                c.textAlign = color ? "center" : "right";
                c.fillText(color ? o.text(i, j) : clean(short(caption, Math.floor(o.captionCols * wide / 6))),
                    middle(i, j)[0] + (color ? 0 : wide / 2 - 4), middle(i, j)[1]);
            }
        }
    c.textAlign = "center";
    c.font = "600 12px system-ui, sans-serif";
    for (const [i, j, letter] of o.marks || []) {
        const [x, y] = middle(i, j), r = Math.max(9, wide / 2);
        c.beginPath();
        c.arc(x, y, r, 0, 2 * Math.PI);
        c.fillStyle = variable("--paper");
        c.strokeStyle = variable("--ink");
        c.lineWidth = 1.5;
        c.fill();
        c.stroke();
        c.fillStyle = variable("--ink");
        c.fillText(letter, x, y + 0.5);
    }
}

function drawCursor(fit, xs, ys, at) {
    const wide = fit.width / xs.length, tall = fit.height / ys.length, c = fit.context;
    const w = Math.max(wide, 6), h = Math.max(tall, 6);
    c.strokeStyle = variable("--accent");
    c.lineWidth = 2;
    c.strokeRect((at.j + 0.5 - xs.start) * wide - w / 2, (at.i + 0.5 - ys.start) * tall - h / 2, w, h);
}
