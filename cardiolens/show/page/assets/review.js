/* The page of review: an item as the server last told it; each decision is one request, sent until it is heard. */
"use strict";

const MS_PER_CYCLE = 1100, MS_PER_SLICE = 350, MS_TO_TRY_AGAIN = 1000;
const REASONS = [
  ["not_in_images", "not to be seen in the images"], ["not_in_report", "the report does not say this"],
  ["bad_images", "the images are too bad"], ["other_study", "report and images are of different studies"],
  ["unclear_question", "the question cannot be answered as it is put"],
];

const byId = id => document.getElementById(id);
const view = {slice: null, phase: null, loop: 0, masks: true, correcting: false, rejecting: false, chosen: [], whole: false};
let told = null, loops = [], busy = false, since = 0, hiddenFor = 0, hiddenSince = 0;
const bitmaps = new Map();

function element(name, text = "", attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const say = text => { byId("message").textContent = text; };
const reading = () => told?.mode !== "verify";

/* ---- the server ---- */

async function ask(path, body) {
  const reply = await fetch(path, body ? {method: "POST", body: JSON.stringify(body),
    headers: {"Content-Type": "application/json"}} : {});
  if (reply.status === 404) throw new Error("refused: this is not known here; ask for your link anew");
  if (reply.status >= 500) throw new Error("refused: the server failed; inform the person who runs this review");
  return reply;
}

/* What the server answers: asked again while there is no connection, or while it cannot write. */
async function heard(path, body) {
  for (let tries = 0; ; tries++) {
    try {
      const reply = await ask(path, body), next = await reply.json();
      if (!reply.ok) throw new Error(`refused: ${next.error}`);
      if (tries && !next.again) say("");
      if (!next.again) return next;
      say(next.error);
    } catch (error) {
      if (error.message.startsWith("refused")) throw error;
      say("No connection to the server. What you pressed is kept and sent again.");
    }
    await new Promise(done => setTimeout(done, MS_TO_TRY_AGAIN));
  }
}

async function load() {
  try { show(await heard("state.json")); } catch (error) { say(error.message); }
}

/* A decision has an id of its own: sent twice, it counts once. */
function decide(what) {
  if (busy || !told?.item && !what.undo) return;
  busy = true;
  document.body.dataset.busy = "yes";
  deliver({id: crypto.randomUUID(), ...(told.item && !what.undo ? {qa_id: told.item.qa_id, item: told.item.item,
    seconds: seconds()} : {}), ...what});
}

async function deliver(what) {
  let next;
  try { next = await heard("decide", what); } catch (error) { next = {...told, error: error.message}; }
  show(next);
  say(next.error ? `Not done: ${next.error}` : "");
}

const seconds = () => Math.max(0, (performance.now() - since - hiddenFor) / 1000);

document.addEventListener("visibilitychange", () => {
  if (document.hidden) hiddenSince = performance.now();
  else if (hiddenSince) { hiddenFor += performance.now() - hiddenSince; hiddenSince = 0; }
});

/* ---- the item ---- */

function show(next) {
  const before = told?.item?.study;
  told = next;
  busy = false;
  delete document.body.dataset.busy;
  say("");
  Object.assign(view, {correcting: reading(), rejecting: false, chosen: []});
  since = performance.now();
  hiddenFor = 0;
  const {item} = told;
  document.body.dataset.item = item ? item.qa_id : "";
  document.body.dataset.done = told.done;
  byId("title").textContent = !item ? "Nothing waits for you"
    : item.reply === undefined ? `${item.study} · ${item.subtask}` : "What does this reply answer?";
  byId("progress").textContent = `${told.reader} (${told.role}, ${told.mode}): ${told.done} done, ${told.left} left`;
  byId("item").hidden = !item;
  tools();
  if (item) {
    byId("question").textContent = item.question;
    truth();
    options();
    if (item.study !== before) {
      bitmaps.clear();
      loops = [];
      byId("loops").replaceChildren();
    }
    if (item.reply === undefined) loadLoops(item); else reply(item);
  }
  document.body.dataset.ready = "yes";
}

function options() {
  const {item} = told;
  byId("options").replaceChildren(...item.options.map(option => {
    const line = element("li"), button = element("button", "", {type: "button", "data-option": option.key});
    button.append(element("kbd", option.key), option.text);
    button.addEventListener("click", () => { button.blur(); if (view.correcting) choose(option.key); });
    if (item.proposal?.includes(option.key)) line.classList.add("proposed");
    if (view.chosen.includes(option.key)) line.classList.add("chosen");
    line.append(button);
    return line;
  }));
  byId("choosing").textContent = view.rejecting ? "Why is it rejected? Press a number; Esc goes back."
    : !view.correcting ? "" : item.multi ? "Press letters, then Enter." : "Press a letter.";
  if (view.rejecting) byId("choosing").append(...REASONS.map(([reason, words], k) => {
    const button = element("button", "", {type: "button"});
    button.append(element("kbd", `${k + 1}`), words);
    button.addEventListener("click", () => decide({verdict: "reject", reason}));
    return button;
  }));
}

function choose(key) {
  const {item} = told;
  if (!item.multi) { decide({verdict: reading() ? "answer" : "correct", answer: [key]}); return; }
  const had = view.chosen.includes(key), alone = item.exclusive.includes(key);
  view.chosen = had ? view.chosen.filter(one => one !== key)
    : [...(alone ? [] : view.chosen.filter(one => !item.exclusive.includes(one))), key];
  options();
}

const WORDS = {accept: "accepts", correct: "corrects to", reject: "rejects", cannot_tell: "cannot tell"};

function truth() {
  const {item} = told, parts = [];
  if (item.firsts) {
    parts.push(element("h3", "The two readers"));
    for (const one of item.firsts) parts.push(element("p",
      `${WORDS[one.verdict]} ${one.answer.join(", ")}${REASONS.find(([name]) => name === one.reason)?.[1] ?? ""}`));
  }
  if (item.proposal) {
    const mark = item.drafted_by ? `, drafted by ${item.drafted_by}` : "";
    parts.push(element("h3", `Evidence (${item.origin}${mark})`));
    for (const quote of item.evidence) {
      parts.push(element("blockquote", quote.text));
    }
    if (!item.evidence.length) parts.push(element("p", "none is given"));
    if (item.report && view.whole) parts.push(element("h3", "Report"), report(item));
  }
  byId("truth").replaceChildren(...parts);
}

function report(item) {
  const made = element("div", "", {id: "report", tabindex: "0"});
  const signs = [...item.report]; // places count code points, a string UTF-16 units
  const part = (...ends) => signs.slice(...ends).join("");
  const spans = item.evidence.filter(quote => quote.start !== null).sort((a, b) => a.start - b.start);
  let from = 0;
  for (const {start, end} of spans) {
    if (start < from) continue;
    made.append(part(from, start), element("mark", part(start, end)));
    from = end;
  }
  made.append(part(from));
  return made;
}

function reply(item) {
  const text = element("pre", item.reply, {id: "reply", role: "group", tabindex: "0", "aria-label": "Reply"});
  byId("loops").replaceChildren(text, element("p", item.cut ? "The reply ends at its token limit." : ""));
}

/* ---- keys ---- */

const ACTIONS = [
  ["Enter", "accept; done with letters", () => {
    if (view.correcting && told.item.multi && view.chosen.length)
      decide({verdict: reading() ? "answer" : "correct", answer: view.chosen});
    else if (!view.correcting && !view.rejecting) decide({verdict: "accept", answer: []});
  }, "both"],
  ["+", "correct: choose another option", () => { Object.assign(view, {correcting: true, rejecting: false, chosen: []}); options(); }, "verify"],
  ["-", "reject: choose a reason", () => { Object.assign(view, {correcting: false, rejecting: true, chosen: []}); options(); }, "verify"],
  ["0", "cannot tell; no answer", () => decide({verdict: "cannot_tell"}), "both"],
  ["Backspace", "undo", () => decide({undo: true}), "both"],
  [" ", "hold, play", () => { view.phase = view.phase === null ? phaseNow(loops[view.loop]?.phases ?? 1) : null; }, "images"],
  ["ArrowLeft", "phase before", () => step("phase", -1), "images"],
  ["ArrowRight", "phase after", () => step("phase", 1), "images"],
  ["ArrowUp", "slice before", () => step("slice", -1), "images"],
  ["ArrowDown", "slice after", () => step("slice", 1), "images"],
  [".", "next view", () => focusLoop(view.loop + 1), "images"],
  ["/", "masks on, off", () => { view.masks = !view.masks; drawn.clear(); }, "verify"],
  ["*", "whole report", () => { view.whole = !view.whole; truth(); }, "verify"],
  ["?", "keys", () => { byId("help").hidden = !byId("help").hidden; }, "both"],
];
const NAMES = {" ": "Space", ArrowRight: "→", ArrowLeft: "←", ArrowUp: "↑", ArrowDown: "↓", Backspace: "⌫"};

const possible = when => when === "both" || when === "images" && told.mode !== "audit" || when === told.mode;

function press(key) {
  if (!told) return false;
  if (key === "Escape") {
    Object.assign(view, {correcting: reading(), rejecting: false, chosen: []});
    byId("help").hidden = true;
    if (told.item) options();
    return true;
  }
  if (told.item && view.rejecting && REASONS[key - 1]) { decide({verdict: "reject", reason: REASONS[key - 1][0]}); return true; }
  const letter = key.toUpperCase();
  if (told.item && view.correcting && told.item.options.some(option => option.key === letter)) { choose(letter); return true; }
  const found = ACTIONS.find(([name]) => name === key);
  if (!found || !possible(found[3])) return false;
  if (told.item || ["Backspace", "?"].includes(key)) found[2]();
  return true;
}

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input")) return;
  if (event.repeat && !event.key.startsWith("Arrow")) { event.preventDefault(); return; }
  if (event.target.closest?.("button") && (event.key === " " || event.key === "Enter")) return; // it is pressed
  if (press(event.key)) event.preventDefault();
});

function tools() {
  const own = ACTIONS.filter(([, , , when]) => possible(when));
  byId("tools").hidden = false;
  byId("tools").replaceChildren(...own.map(([key, label]) => {
    const button = element("button", "", {type: "button", "data-key": key});
    button.append(element("kbd", NAMES[key] || key), label);
    button.addEventListener("click", () => { button.blur(); press(key); });
    return button;
  }));
  const list = element("dl");
  for (const [key, label] of own) list.append(element("dt", NAMES[key] || key), element("dd", label));
  byId("help").replaceChildren(element("h2", "Keys"), list, element("p", "Letters choose options; Esc goes back."));
}

/* ---- pictures ---- */

const drawn = new Map();

async function loadLoops(item) {
  let found;
  try { found = await heard(`loops/${item.item}`); } catch (error) { found = {loops: [], remark: error.message}; }
  if (told.item !== item) return;
  if (found.remark) say(found.remark);
  loops = found.loops;
  Object.assign(view, {loop: Math.min(view.loop, Math.max(loops.length - 1, 0))});
  drawn.clear();
  byId("loops").replaceChildren(...loops.map((loop, number) => {
    const figure = element("figure"), canvas = element("canvas", "", {role: "img", "aria-label": loop.name});
    Object.assign(canvas, {width: loop.width, height: loop.height});
    const caption = element("figcaption", loop.name);
    figure.append(canvas, caption);
    figure.addEventListener("click", () => focusLoop(number));
    Object.assign(loop, {canvas, caption, figure});
    return figure;
  }));
  focusLoop(view.loop);
  document.body.dataset.loops = item.qa_id;
}

function focusLoop(number) {
  if (!loops.length) return;
  view.loop = number % loops.length;
  Object.assign(view, {slice: null, phase: null});
  loops.forEach((loop, k) => loop.figure.classList.toggle("focused", k === view.loop));
}

const phaseNow = phases => Math.floor(performance.now() / MS_PER_CYCLE * phases) % phases;

function step(name, by) {
  const loop = loops[view.loop];
  if (!loop) return;
  const count = name === "slice" ? loop.slices : loop.phases;
  const from = view[name] ?? (name === "slice" ? Math.floor(count / 2) : phaseNow(count));
  view[name] = (from + by + count) % count;
}

/* One slice of a volume as a bitmap; those of the study that is shown are kept. */
function sheet(loop, slice) {
  const masked = view.masks && loop.mask;
  const key = [told.item.study, loop.id, slice, masked].join("|");
  if (!bitmaps.has(key)) {
    bitmaps.set(key, null);
    const name = `${slice}${masked ? "-mask" : ""}.png`;
    ask(`sheets/${told.item.item}/${encodeURIComponent(loop.id)}/${name}`)
      .then(reply => reply.ok ? reply.blob() : Promise.reject(new Error("no picture"))).then(createImageBitmap)
      .then(bitmap => { bitmaps.set(key, bitmap); document.body.dataset.drawn = "yes"; })
      .catch(() => {
        loop.canvas.width = loop.width; // what stood there is of another slice
        loop.caption.textContent = `${loop.name} · slice ${slice + 1} cannot be read; it is asked for again`;
        drawn.clear();
        setTimeout(() => bitmaps.delete(key), MS_TO_TRY_AGAIN);
      });
  }
  return bitmaps.get(key);
}

function tick(time) {
  if (told?.item) loops.forEach((loop, number) => {
    const own = number === view.loop, still = loop.phases === 1;
    const slice = own && view.slice !== null ? view.slice
      : still ? Math.floor(time / MS_PER_SLICE) % loop.slices : Math.floor(loop.slices / 2);
    const phase = own && view.phase !== null ? view.phase : phaseNow(loop.phases);
    const bitmap = sheet(loop, slice), key = [slice, phase, Boolean(bitmap), view.masks].join();
    if (!bitmap || drawn.get(number) === key) return;
    drawn.set(number, key);
    const [x, y] = [phase % loop.columns * loop.width, Math.floor(phase / loop.columns) * loop.height];
    loop.canvas.getContext("2d").drawImage(bitmap, x, y, loop.width, loop.height, 0, 0, loop.width, loop.height);
    const mark = loop.phases === 1 ? "" : phase === loop.ed ? " · ED" : phase === loop.es ? " · ES" : "";
    loop.caption.textContent = `${loop.name} · slice ${slice + 1}/${loop.slices} · phase ${phase + 1}/${loop.phases}${mark}`;
  });
  requestAnimationFrame(tick);
}

requestAnimationFrame(tick);
load();
