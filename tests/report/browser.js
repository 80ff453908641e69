/* Opens pages in headless Chromium over its debugging pipe and says what it saw, as JSON.
 * node browser.js CHROMIUM PROFILE-FOLDER JOB...; a job is "PAGE WIDTH SCHEME [PICTURE]". */
"use strict";
const {spawn} = require("child_process");
const fs = require("fs");

const [chromium, profile, ...jobs] = process.argv.slice(2);
const browser = spawn(chromium, ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-extensions", "--user-data-dir=" + profile, "--remote-debugging-pipe", "about:blank"],
    {stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"]});
const waiting = new Map(), listeners = [];
let id = 0, rest = "";

browser.stdio[4].on("data", bytes => {
    const parts = (rest + bytes).split("\0");
    rest = parts.pop();
    for (const message of parts.map(part => JSON.parse(part))) {
        if (waiting.has(message.id))
            waiting.get(message.id)(message);
        else
            listeners.forEach(hear => hear(message));
    }
});
browser.on("exit", () => process.exit(process.exitCode || 0));

function send(method, params, sessionId) {
    browser.stdio[3].write(JSON.stringify({id: ++id, method, params: params || {}, sessionId}) + "\0");
    return new Promise((done, fail) => waiting.set(id, answer =>
        answer.error ? fail(new Error(method + ": " + answer.error.message)) : done(answer.result)));
}

/* What the page is asked: texts and sizes, then the keyboard. */
function look() {
    const texts = [...document.querySelectorAll("h1, h2, .lead, .answer, .figures dd, .readout, .banner, .note, pre, td, .stack-value, section p")]
        .map(e => e.textContent);
    const maps = [...document.querySelectorAll("[tabindex='0'].cells, .line")], drawn = new Set();
    const paint = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...at) {
        drawn.add(String(text));
        return paint.call(this, text, ...at);
    };
    const read = maps.map(map => {
        map.focus();
        const before = map.parentElement.querySelector(".readout").textContent;
        for (const key of ["ArrowRight", "ArrowDown", "ArrowRight", "+"])
            map.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
        const after = map.parentElement.querySelector(".readout").textContent;
        map.dispatchEvent(new KeyboardEvent("keydown", {key: "0", bubbles: true, cancelable: true}));
        const box = map.getBoundingClientRect();
        map.dispatchEvent(new PointerEvent("pointermove", {clientX: box.right - 17, clientY: box.bottom - 3}));
        return {focused: document.activeElement === map, label: map.getAttribute("aria-label"), before, after,
            pointed: map.parentElement.querySelector(".readout").textContent};
    });
    document.querySelectorAll("details").forEach(d => { d.open = true; });
    const cut = [...document.querySelectorAll("nav a, td:has(code)")].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent);
    return {title: document.title, texts, read, cut, drawn: [...drawn],
        inCells: [...document.querySelectorAll("svg.cells .in")].map(e => e.textContent), width: document.documentElement.scrollWidth, window: innerWidth,
        sections: [...document.querySelectorAll("section")].map(s => s.id),
        elements: [...new Set([...document.querySelectorAll("body *")].map(e => e.localName))]};
}

async function visit(session, job) {
    const [page, width, scheme, picture] = job.split(" ");
    const seen = {page, faults: [], requests: []};
    const hear = message => {
        const p = message.params;
        if (message.method === "Runtime.exceptionThrown")
            seen.faults.push(p.exceptionDetails.exception ? p.exceptionDetails.exception.description : p.exceptionDetails.text);
        if (message.method === "Log.entryAdded" || message.method === "Runtime.consoleAPICalled")
            seen.faults.push(JSON.stringify(p.entry || p.args));
        if (message.method === "Network.requestWillBeSent" && !p.request.url.startsWith("data:"))
            seen.requests.push(p.request.url);
        if (message.method === "Page.loadEventFired" && seen.loaded)
            seen.loaded();
    };
    listeners.push(hear);
    await send("Emulation.setDeviceMetricsOverride", {width: Number(width), height: 1000, deviceScaleFactor: 1, mobile: false}, session);
    await send("Emulation.setEmulatedMedia", {features: [{name: "prefers-color-scheme", value: scheme}]}, session);
    const loaded = new Promise(done => { seen.loaded = done; });
    await send("Page.navigate", {url: "file://" + fs.realpathSync(page)}, session);
    await loaded;
    const wait = ms => send("Runtime.evaluate", {awaitPromise: true, expression: `new Promise(done => setTimeout(done, ${ms}))`}, session);
    await wait(250);
    if (picture) {
        const {cssContentSize} = await send("Page.getLayoutMetrics", {}, session);
        const shot = await send("Page.captureScreenshot", {captureBeyondViewport: true,
            clip: {x: 0, y: 0, width: cssContentSize.width, height: cssContentSize.height, scale: 1}}, session);
        fs.writeFileSync(picture, Buffer.from(shot.data, "base64"));
    }
    const answer = await send("Runtime.evaluate", {expression: `(${look})()`, returnByValue: true}, session);
    if (answer.exceptionDetails)
        seen.faults.push(JSON.stringify(answer.exceptionDetails));
    await wait(50);
    listeners.splice(listeners.indexOf(hear), 1);
    delete seen.loaded;
    return {...seen, width: Number(width), seen: answer.result.value};
}

async function main() {
    const {targetInfos} = await send("Target.getTargets");
    const {targetId} = targetInfos.find(t => t.type === "page");
    const {sessionId} = await send("Target.attachToTarget", {targetId, flatten: true});
    for (const domain of ["Page", "Runtime", "Log", "Network"])
        await send(domain + ".enable", {}, sessionId);
    await send("Emulation.setFocusEmulationEnabled", {enabled: true}, sessionId);
    const all = [];
    for (const job of jobs)
        all.push(await visit(sessionId, job));
    console.log(JSON.stringify(all));
    await send("Browser.close");
}

setTimeout(() => { process.exitCode = 1; browser.kill(); }, 60000 + 5000 * jobs.length).unref();
main().catch(fault => { console.error(fault); process.exitCode = 1; browser.kill(); });
