/* The page of decisions: what is shown is a study as the server last told it; each key is one request. */
"use strict";

const VIEW_KEYS = {1: "sax", 2: "2ch", 3: "3ch", 4: "4ch"};
const TRANSFORMS = [false, true].flatMap(transpose => [false, true].flatMap(flip_rows =>
  [false, true].map(flip_cols => ({transpose, flip_rows, flip_cols})))).reverse();
const MS_PER_CYCLE = 1100, MS_PER_SLICE = 350;

const byId = id => document.getElementById(id);
const at = {study: 0, series: 0, slice: null, phase: null, picking: false};
let studies = [], legal = {}, waiting = Promise.resolve(), drawn = [];

const study = () => studies[at.study];
const shown = () => study().shown[at.series];

function element(name, text = "", attributes = {}, ...children) {
  const made = document.createElement(name);
  made.textContent = text;
  made.append(...children);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/* What is known of a stack: a person's choice, else the proposal. */
function standing(own, one) {
  const choice = own.choices[one.stack];
  if (choice && choice.status === "confirmed") return choice;
  const entry = one.entry;
  return {
    sequence: one.sequence, view: one.view, along_normal: one.along_normal,
    display: entry.display_transform,
    ed_phase: entry.ed_phase ?? null, es_phase: entry.es_phase ?? null,
    spacing: null, base_first: one.view === "sax" ? entry.spatial_order === "base_to_apex" : null,
    mask: one.masked ? Boolean(entry.mask) : null,
    t_on: entry.t_on ?? null, t_peak: entry.t_peak ?? null,
  };
}

const volumeOf = now => legal[now.sequence]?.views.includes(now.view)
  ? `${legal[now.sequence].prefix}_${now.view}` : "";

function stateOf(own, one) {
  return own.choices[one.stack]?.status || one.status;
}

function confirmedAs(own, volume, except) {
  return own.shown.find(one => one !== except && own.choices[one.stack]?.status === "confirmed"
    && volumeOf(own.choices[one.stack]) === volume);
}

/* Proposals that a person has still to look at: those that are taken or wait, and have no rival confirmed. */
function open(own) {
  return own.shown.filter(one => one.status !== "left_out" && !own.choices[one.stack]
    && !confirmedAs(own, volumeOf(standing(own, one)), one));
}

/* ---- decisions ---- */

function confirmed(own, one, change = () => ({})) {
  const before = standing(own, one), now = {...before, ...change(before)};
  const over = legal[now.sequence]?.over_time, cycle = over === "cycle", pass = over === "first_pass";
  return {
    status: "confirmed", sequence: now.sequence, view: now.view, display: now.display,
    along_normal: now.along_normal, ed_phase: cycle ? now.ed_phase : null, es_phase: cycle ? now.es_phase : null,
    spacing: now.spacing ?? null, base_first: now.base_first ?? null, mask: now.mask ?? null,
    t_on: pass ? now.t_on ?? null : null, t_peak: pass ? now.t_peak ?? null : null,
  };
}

/* Requests go one after another, each of what the last one left: `make` is called when it has been answered. */
function send(make) {
  const own = study();
  waiting = waiting.then(async () => {
    const asked = make(own);
    if (!asked) return true;
    const reply = await fetch("decide", {
      method: "POST", headers: {"Content-Type": "application/json"},
      body: JSON.stringify({study_id: own.study_id, revision: own.revision, ...asked}),
    });
    const told = await reply.json().catch(() => ({error: "the server failed; load the page again"}));
    if (told.choices) Object.assign(own, {choices: told.choices, revision: told.revision});
    for (const other of studies) if (told.others?.[other.study_id]) Object.assign(other, told.others[other.study_id]);
    const others = Object.keys(told.others || {}).length;
    say(told.error ? `Not done: ${told.error}` : others ? `Confirmed in ${others} other studies.` : "");
    return !told.error;
  }).catch(() => say("Not done: the server does not answer; is it still running?")).then(done => { show(); return done; });
  return waiting;
}

const say = text => { byId("message").textContent = text; };
const change = what => { const one = shown(); send(own => ({stacks: {[one.stack]: confirmed(own, one, what)}})); };

function acceptStudy() {
  const own = study();
  send(() => {
    const stacks = Object.fromEntries(open(own).map(one => [one.stack, confirmed(own, one)]));
    return Object.keys(stacks).length ? {stacks} : null;
  }).then(done => { if (done && own === study() && !open(own).length) nextOpen(); });
}

/* The same for that volume of all studies in which nothing is decided: display, direction, order, place of spacing. */
function everywhere() {
  const one = shown();
  send(own => ({stacks: {[one.stack]: confirmed(own, one)}, everywhere: true}));
}

function flip(name) {
  change(({display}) => ({display: {...display, [name]: !display[name]}}));
}

function cycleSpacing() {
  const names = Object.keys(shown().places_mm);
  if (!names.length) say("Not done: the header says nothing of spacing; state it in the file of decisions.");
  else change(({spacing}) => ({spacing: names[(names.indexOf(spacing) + 1) % names.length]}));
}

function takeInstead() {
  const one = shown();
  send(own => {
    const choice = confirmed(own, one), rival = confirmedAs(own, volumeOf(choice), one);
    return {stacks: {...(rival ? {[rival.stack]: null} : {}), [one.stack]: choice}};
  });
}

function mark(name, other) {
  const phase = phaseShown();
  if (standing(study(), shown())[other] === phase) say("Not done: ED and ES would be the same phase; move the other first.");
  else change(() => ({[name]: phase}));
}

/* Onset and peak of a first pass are one decision: the onset waits for its peak. */
function markOnset() {
  const one = shown();
  if (legal[standing(study(), one).sequence]?.over_time !== "first_pass") { say("Not done: only a first pass has an onset."); return; }
  at.onset = {stack: one.stack, phase: phaseShown()};
  say(`Onset at ${at.onset.phase + 1}: now show the peak of the left ventricle and press L.`);
}

function markPeak() {
  const one = shown(), phase = phaseShown();
  const onset = at.onset?.stack === one.stack ? at.onset.phase : standing(study(), one).t_on ?? null;
  if (onset === null) say("Not done: show where contrast reaches the left ventricle and press I first.");
  else if (onset > phase) say("Not done: the peak would be before the onset.");
  else change(() => ({t_on: onset, t_peak: phase}));
}

function cycleSequence() {
  const names = Object.keys(legal);
  change(({sequence}) => ({sequence: names[(names.indexOf(sequence) + 1) % names.length]}));
}

/* ---- moving ---- */

function go(number) {
  Object.assign(at, {study: (number + studies.length) % studies.length, series: 0, slice: null, phase: null,
    picking: false});
  const first = study().shown.indexOf(open(study())[0]);
  at.series = Math.max(first, 0);
  show();
}

function nextOpen() {
  const order = studies.map((_, k) => (at.study + 1 + k) % studies.length);
  const next = order.find(k => open(studies[k]).length);
  if (next === undefined) { say("Every study is decided."); show(); } else go(next);
}

function focus(number) {
  Object.assign(at, {series: (number + study().shown.length) % study().shown.length, slice: null, phase: null,
    picking: false});
  show();
}

function step(name, by, count) {
  const from = at[name] ?? (name === "slice" ? Math.floor(count / 2) : phaseNow(count));
  at[name] = (from + by + count) % count;
}

const phaseNow = phases => Math.floor(performance.now() / MS_PER_CYCLE * phases) % phases;
const phaseShown = () => at.phase ?? phaseNow(shown().phases);

const ACTIONS = [
  ["Enter", "accept all of this study, go on", acceptStudy],
  ["a", "accept this series", () => change()],
  ["c", "take this one instead of its rival", takeInstead],
  ["x", "exclude", () => { const {stack} = shown(); send(() => ({stacks: {[stack]: {status: "excluded"}}})); }],
  ["u", "undo", () => send(() => ({undo: true}))],
  ["1", "short axis", null], ["2", "two-chamber", null], ["3", "three-chamber", null], ["4", "four-chamber", null],
  ["g", "next sequence", cycleSequence],
  ["t", "turn: eight pictures", () => { at.picking = !at.picking; show(); }],
  ["h", "flip left and right", () => flip("flip_cols")],
  ["v", "flip up and down", () => flip("flip_rows")],
  ["o", "the first slice is the base", () => change(now => ({base_first: !now.base_first}))],
  ["p", "spacing: as sform or pixdim says", cycleSpacing],
  ["m", "the mask is of this volume", () => change(now => ({mask: !now.mask}))],
  ["e", "the same in all studies", everywhere],
  ["r", "reverse the slices", () => change(now => ({along_normal: !now.along_normal}))],
  ["d", "this phase is end-diastole", () => mark("ed_phase", "es_phase")],
  ["s", "this phase is end-systole", () => mark("es_phase", "ed_phase")],
  ["i", "contrast reaches the left ventricle now", markOnset],
  ["l", "contrast peaks there now", markPeak],
  [" ", "hold, play", () => { at.phase = at.phase === null ? phaseShown() : null; }],
  [",", "phase before", () => step("phase", -1, shown().phases)],
  [".", "phase after", () => step("phase", 1, shown().phases)],
  ["[", "slice before", () => step("slice", -1, shown().slices)],
  ["]", "slice after", () => step("slice", 1, shown().slices)],
  ["j", "next series", () => focus(at.series + 1)],
  ["k", "series before", () => focus(at.series - 1)],
  ["ArrowRight", "next study", () => go(at.study + 1)],
  ["ArrowLeft", "study before", () => go(at.study - 1)],
  ["n", "next study that waits", nextOpen],
  ["?", "keys", () => { byId("help").hidden = !byId("help").hidden; }],
];
const NAMES = {" ": "Space", ArrowRight: "→", ArrowLeft: "←"};
const ALIASES = {ArrowDown: "j", ArrowUp: "k", PageDown: "j", PageUp: "k", f: "]", b: "["};

function press(key) {
  if (!studies.length) return false;
  if (key === "Escape") { at.picking = false; byId("help").hidden = true; show(); return true; }
  if (at.picking && /^[1-8]$/.test(key)) { turn(TRANSFORMS[key - 1]); return true; }
  if (VIEW_KEYS[key]) { change(() => ({view: VIEW_KEYS[key]})); return true; }
  const found = ACTIONS.find(([name]) => name === (ALIASES[key] || key));
  if (found?.[2]) found[2]();
  return Boolean(found?.[2]);
}

function turn(display) { at.picking = false; change(() => ({display})); }

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat && event.key === "Enter") return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.target.closest?.("button") && (key === " " || key === "Enter")) return; // it is pressed
  if (press(key)) event.preventDefault();
});

/* ---- pictures ---- */

/* Draw one frame of a sheet as displayed: transpose, then the flips. */
function draw(canvas, one, now, slice, phase) {
  const sheet = one.sheet, width = sheet.naturalWidth / one.phases, height = sheet.naturalHeight / one.slices;
  if (!sheet.complete || !width) return;
  const [across, down] = now.display.transpose ? [width, height] : [height, width];
  const side = Math.max(across, down), pen = canvas.getContext("2d");
  if (canvas.width !== side) canvas.width = canvas.height = side;
  const stored = now.along_normal === one.along_normal ? slice : one.slices - 1 - slice;
  const turned = now.display.transpose ? [1, 0, 0, 1] : [0, 1, 1, 0];
  const [right, lower] = [now.display.flip_cols ? -1 : 1, now.display.flip_rows ? -1 : 1];
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.clearRect(0, 0, side, side);
  pen.setTransform(right * turned[0], lower * turned[1], right * turned[2], lower * turned[3],
    (side - right * across) / 2, (side - lower * down) / 2);
  pen.drawImage(sheet, phase * width, stored * height, width, height, 0, 0, width, height);
}

function tick(time) {
  for (const picture of drawn) {
    const {one, now} = picture, still = one.phases === 1;
    const slice = picture.slice ?? (still ? Math.floor(time / MS_PER_SLICE) % one.slices : Math.floor(one.slices / 2));
    const phase = picture.phase ?? (still ? 0 : phaseNow(one.phases));
    const key = [slice, phase, one.sheet.complete].join();
    if (key !== picture.last) { picture.last = key; draw(picture.canvas, one, now, slice, phase); }
  }
  requestAnimationFrame(tick);
}

function picture(one, now, label, fixed = {}) {
  const canvas = element("canvas", "", {role: "img", "aria-label": label});
  drawn.push({canvas, one, now, ...fixed});
  return canvas;
}

/* ---- what stands on the page ---- */

function show() {
  const own = study(), left = studies.filter(each => open(each).length).length;
  byId("study").textContent = own.study_id;
  byId("progress").textContent = `study ${at.study + 1} of ${studies.length}, ${left} wait`;
  document.body.dataset.study = own.study_id;
  document.body.dataset.revision = own.revision;
  drawn = [];
  byId("cards").replaceChildren(...own.shown.map(card));
  byId("cards").children[at.series]?.scrollIntoView({block: "nearest"});
  byId("detail").replaceChildren(...(own.shown.length ? detail(own, shown()) : []));
}

function card(one, number) {
  const own = study(), now = standing(own, one), state = stateOf(own, one);
  const made = element("div", "", {role: "listitem", "data-stack": one.stack, "data-state": state});
  made.className = `card ${state}${number === at.series ? " focused" : ""}`;
  made.append(picture(one, now, `${now.sequence} ${now.view}`), element("h2", `${now.sequence} ${now.view}`),
    element("p", `series ${one.series.join(", ")} · ${one.slices} × ${one.phases}`),
    Object.assign(element("p", words(state, one)), {className: "state"}));
  made.addEventListener("click", () => focus(number));
  return made;
}

function words(state, one) {
  const blind = one.sheet.unreadable ? "; its picture cannot be read" : "";
  if (state === "left_out") return `left out: ${one.reason}${blind}`;
  return (state === "taken" || state === "waits" ? `${state}, ${Math.round(100 * one.confidence)} %` : state) + blind;
}

function detail(own, one) {
  const now = standing(own, one), many = one.slices > 1;
  const parts = [element("h2", `${volumeOf(now) || `${now.sequence} ${now.view}`}: ${words(stateOf(own, one), one)}`)];
  const large = picture(one, now, "loop");
  Object.defineProperties(drawn.at(-1), {
    slice: {get: () => at.slice}, phase: {get: () => at.phase},
  });
  parts.push(large);
  if (at.picking) parts.push(group(TRANSFORMS.map((display, k) => {
    const made = figure(picture(one, {...now, display}, `turn ${k + 1}`), `${k + 1}`);
    made.addEventListener("click", () => turn(display));
    return made;
  })));
  const marks = [];
  if (many) marks.push([now.base_first ? "first: base" : "first", {slice: 0}],
    [now.base_first ? "last: apex" : "last", {slice: one.slices - 1}]);
  if (now.ed_phase !== null) marks.push([`ED: ${now.ed_phase + 1}`, {phase: now.ed_phase}]);
  if (now.es_phase !== null) marks.push([`ES: ${now.es_phase + 1}`, {phase: now.es_phase}]);
  if ((now.t_peak ?? null) !== null) marks.push([`onset: ${now.t_on + 1}`, {phase: now.t_on}], [`peak: ${now.t_peak + 1}`, {phase: now.t_peak}]);
  parts.push(group(marks.map(([label, fixed]) => figure(picture(one, now, label, fixed), label))));
  const list = element("ul", "", {}, ...one.witnesses.map(each =>
    element("li", `${each.about}: ${each.source} says ${each.says} (${each.evidence}; right ${Math.round(100 * each.reliability)} %)`)));
  const others = Object.entries(one.alternatives).sort((a, b) => b[1] - a[1]);
  parts.push(list, element("p", `alternatives: ${others.map(([name, p]) => `${name} ${Math.round(100 * p)} %`).join(", ")}`));
  const places = Object.entries(one.places_mm).map(([name, mm]) => `${name} ${mm.map(v => v.toFixed(2)).join(" × ")} mm`);
  if (places.length) parts.push(element("p", `spacing: ${now.spacing ?? "as found"} (${places.join(", ")})`));
  if (now.view === "sax") parts.push(element("p", now.base_first ? "the first slice is the base" : "slice order not known"));
  if (one.masked) parts.push(element("p", now.mask ? "with its mask" : "without its mask"));
  if (one.component) parts.push(element("p", `image: ${one.component}`));
  if (one.flags.length) parts.push(element("p", `look at: ${one.flags.join(", ")}`));
  if (legal[now.sequence]?.over_time === "first_pass" && (now.t_peak ?? null) === null)
    parts.push(element("p", "The first pass was not found: show its onset in the left ventricle and press I, its peak and press L."));
  return parts;
}

const figure = (canvas, label) => element("figure", "", {}, canvas, element("figcaption", label));
const group = children => element("div", "", {}, ...children);

function keysAndTools() {
  const list = element("dl");
  for (const [key, label] of ACTIONS) {
    const name = NAMES[key] || (key.length === 1 ? key.toUpperCase() : key);
    const button = element("button", "", {type: "button", "data-key": key});
    button.append(element("kbd", name), label);
    button.addEventListener("click", () => { button.blur(); press(key); });
    byId("tools").append(button);
    list.append(element("dt", name), element("dd", label));
  }
  byId("help").append(element("h2", "Keys"), list, element("p", "1 to 8 choose a picture while turning; Esc closes."));
}

async function start() {
  const told = await (await fetch("studies.json")).json();
  legal = told.legal;
  const rank = {taken: 0, waits: 0, left_out: 1};
  studies = told.studies.map(own => {
    own.proposals.forEach(one => {
      one.sheet = new Image();
      one.sheet.onerror = () => { one.sheet.unreadable = true; show(); };
      one.load = () => { one.sheet.src ||= `sheets/${own.study_id}/${one.stack}.png`; };
    });
    return {...own, shown: own.proposals.sort((a, b) => rank[a.status] - rank[b.status])};
  });
  const first = studies.findIndex(own => open(own).length);
  keysAndTools();
  go(Math.max(first, 0));
  requestAnimationFrame(tick);
  document.body.dataset.ready = "yes";
}

/* Sheets of a study are fetched when it is shown, and those of the next one after it. */
new MutationObserver(() => {
  for (const number of [at.study, (at.study + 1) % studies.length])
    for (const one of studies[number]?.shown ?? []) one.load();
}).observe(document.body, {attributes: true, attributeFilter: ["data-study"]});

start().catch(() => say("The studies cannot be read: the server does not answer, or failed; load the page again."));
