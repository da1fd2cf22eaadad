// The whole study of a case: volumes side by side, linked by level and by time, with reference lines, and marks at
// the frames that each selector sent at each budget.

const MOST_PORTS = 4;
const MOST_PIXELS = 64e6; // of pictures kept, at four bytes each
const PHASES_A_SECOND = 20;
const NOTCH = 50; // pixels that a touchpad moves for one step; a mouse's notch is more
let whole = false; // whether the whole study stands in the place of the frames that were sent
let linked = true;
let desk = null; // of the study that is open
const pictures = new Map(); // by address, the latest used last

const indexOf = ({ volume, slice, phase }) => slice * volume.n_phases + phase;
const frameName = (volume, idx) => `${volume} ${idx}`;

// A section that fills when the study has been read; what the other selectors sent follows. `sent` are the frames of
// the first arm.
function wholeStudy({ question, study, arms, evidence, sent }) {
  const holder = element("section", { class: "study", "aria-label": "Whole study" }, element("p", { class: "absent" }, "Reading the study\u2026"));
  const own = (desk = { holder, study, arm: arms[0], sent, names: namesOf(sent), lanes: [], ports: [], active: 0, evidence, redraw: 0 });
  for (const [address, kept] of pictures) if (kept.failed) pictures.delete(address);
  const failed = (error) => own === desk && holder.replaceChildren(element("p", { class: "absent" }, error.message));
  content(`studies/${study}.js`)
    .then((layout) => own === desk && openStudy(layout))
    .then(() => Promise.all(arms.map((arm) => content(`sent/${question}/${arm}.js`))))
    .then((lanes) => own === desk && openLanes(lanes.flat()))
    .catch(failed);
  return holder;
}

const namesOf = (frames) => new Set(frames.map((frame) => frameName(...frame)));

function openLanes(lanes) {
  const byArm = new Map(lanes.map((lane) => [lane.arm, { ...lane, names: namesOf(lane.frames) }]));
  Object.assign(desk, { lanes: [...byArm.values()], drawn: "" });
  redraw();
}

function openStudy(layout) {
  const volumes = new Map(layout.volumes.map((volume) => [volume.id, volume]));
  Object.assign(desk, { layout, volumes, hasEvidence: new Map() });
  for (const { volume_id: volume, slice, phases } of desk.evidence) desk.hasEvidence.set(frameName(volume, slice), phases);
  const first = desk.sent.find(([volume]) => volumes.has(volume));
  for (const volume of firstVolumes(first?.[0])) desk.ports.push(makePort(volume, desk.ports.length));
  desk.lanesBox = element("div", { class: "lanes" });
  desk.told = element("p", { class: "quiet", role: "status" });
  const ports = element("div", { class: "ports" }, ...desk.ports.map((port) => port.node));
  desk.holder.replaceChildren(studyBar(), element("div", { class: "spread" }, ports, element("div", {}, desk.told, desk.lanesBox, notes())));
  stages.push({ get at() { return along(desk.ports[desk.active])[0]; }, show: play });
  if (first) go(first[0], first[1]);
  else move(desk.ports[0], {});
}

// Volumes that were sent stand first, in the order sent, then others of their sequence, then the rest.
function firstVolumes(first) {
  const all = desk.layout.volumes;
  const sent = [...new Set(desk.sent.map(([volume]) => volume))].map((name) => desk.volumes.get(name)).filter(Boolean);
  const sequence = desk.volumes.get(first)?.sequence ?? all[0].sequence;
  return [...new Set([...sent, ...all.filter((volume) => volume.sequence === sequence), ...all])].slice(0, MOST_PORTS);
}

function makePort(volume, number) {
  const canvas = element("canvas", { class: "frame", tabindex: "0", role: "img" });
  const lines = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  lines.setAttribute("class", "lines");
  const caption = element("p", { class: "caption" });
  const list = element("select", { "aria-label": `Volume of view ${number + 1}` }, ...desk.layout.volumes.map((one) => element("option", { value: one.id }, volumeInWords(one))));
  list.value = volume.id; // until it is set, a list names the first volume of the study
  const port = { number, volume, slice: Math.floor(volume.n_slices / 2), phase: volume.ed_phase, canvas, lines, caption, list, wheel: 0 };
  const box = element("div", { class: "box" }, canvas, lines);
  port.node = element("figure", { class: "port", "data-port": number }, element("figcaption", {}, element("i", { class: `port-${number}` }), list), box, caption);
  list.addEventListener("change", () => (turn(port, desk.volumes.get(list.value)), list.blur(), canvas.focus()));
  for (const event of ["focus", "pointerdown"]) canvas.addEventListener(event, () => activate(number));
  box.addEventListener("wheel", (event) => wheeled(port, event), { passive: false });
  return port;
}

function turn(port, volume) {
  Object.assign(port, { volume, slice: Math.floor(volume.n_slices / 2), phase: volume.ed_phase });
  desk.active = port.number;
  move(port, {});
}

function activate(number) {
  if (desk.active === number || !desk.ports[number]) return;
  desk.active = number;
  redraw();
}

// A notch of the wheel is one slice; with Shift, or in a volume of one slice, one phase.
function wheeled(port, event) {
  event.preventDefault();
  desk.active = port.number;
  const turned = event.deltaY || event.deltaX;
  const notch = event.deltaMode !== 0 || Math.abs(turned) >= NOTCH;
  port.wheel = notch ? 0 : port.wheel + turned;
  const steps = notch ? Math.sign(turned) : Math.trunc(port.wheel / NOTCH);
  port.wheel -= notch ? 0 : steps * NOTCH;
  if (!steps) return;
  pause();
  if (event.shiftKey || port.volume.n_slices === 1) move(port, { phase: port.phase + steps });
  else move(port, { slice: port.slice + steps });
}

// Phases go round; slices end at base and apex.
function move(port, { slice = port.slice, phase = port.phase }) {
  const { n_slices, n_phases } = port.volume;
  port.slice = Math.min(Math.max(slice, 0), n_slices - 1);
  port.phase = (phase + n_phases) % n_phases;
  if (linked) desk.ports.filter((other) => other !== port).forEach((other) => follow(port, other));
  redraw();
}

// Slices follow where both volumes are parallel and their place in the patient is known, phases by their share of
// the cycle from end-diastole on. A volume that does not reach a level stays where it is.
function follow(port, other) {
  const level = other.volume === port.volume ? port.slice : desk.layout.levels[port.volume.id]?.[other.volume.id]?.[port.slice];
  other.slice = level ?? other.slice;
  const [mine, theirs] = [port.volume, other.volume];
  if (mine.over_time !== "cycle" || theirs.over_time !== "cycle") return;
  const share = ((port.phase - mine.ed_phase + mine.n_phases) % mine.n_phases) / mine.n_phases;
  other.phase = (Math.round(share * theirs.n_phases) + theirs.ed_phase) % theirs.n_phases;
}

// What plays and steps: the phases, or the slices of a volume without phases.
function along(port) {
  const { n_slices, n_phases } = port.volume;
  return n_phases > 1 ? [port.phase, n_phases, "phase"] : [port.slice, n_slices, "slice"];
}

function play(at) {
  const port = desk.ports[desk.active];
  const [, count, name] = along(port);
  move(port, { [name]: (at + count) % count });
}

// To a frame: in the view that has its volume, else in the active one.
function go(volume, idx) {
  const at = desk.ports.find((port) => port.volume.id === volume) ?? desk.ports[desk.active];
  at.volume = desk.volumes.get(volume);
  desk.active = at.number;
  move(at, { slice: Math.floor(idx / at.volume.n_phases), phase: idx % at.volume.n_phases });
}

// The next of some frames after the one that is shown, in the order of volumes, slices and phases; after the last, the first.
function goNext(frames, by, none) {
  const order = desk.layout.volumes.map(({ id }) => id);
  const rank = ([volume, idx]) => order.indexOf(volume) * 1e6 + idx;
  const port = desk.ports[desk.active];
  const here = rank([port.volume.id, indexOf(port)]);
  const sorted = frames.filter(([volume]) => order.includes(volume)).sort((one, other) => (rank(one) - rank(other)) * by);
  pause();
  const next = sorted.find((frame) => (rank(frame) - here) * by > 0) ?? sorted[0];
  if (next) go(...next);
  else desk.told.textContent = none;
}

const nextSent = (by) => goNext(desk.sent, by, "Nothing of this study was sent under this arm.");

function nextEvidence() {
  const frames = desk.evidence.map(({ volume_id: volume, slice, phases }) => {
    const { n_phases, es_phase } = desk.volumes.get(volume) ?? { n_phases: 1, es_phase: 0 };
    return [volume, slice * n_phases + (phases.length ? phases[0] : es_phase)];
  });
  goNext(frames, 1, SHOWN_WORDS["?"]);
}

const shows = (port) => desk.hasEvidence.get(frameName(port.volume.id, port.slice));
const isEvidence = (port) => shows(port) !== undefined && (!shows(port).length || shows(port).includes(port.phase));

// Moves of one picture of the screen are drawn once.
function redraw() {
  const own = desk;
  if (own.redraw) return;
  own.redraw = requestAnimationFrame(() => {
    own.redraw = 0;
    if (own !== desk) return;
    const first = desk.ports[desk.active];
    [first, ...desk.ports.filter((port) => port !== first)].forEach(drawPort);
    drawLanes();
  });
}

// The picture of a block of phases of a slice. It is read once, and the longest unused are forgotten; one that cannot
// be read is asked for again only when a study is opened.
function picture(volume, slice, block) {
  const kind = masks ? "masked-slices" : "slices";
  const address = `${kind}/${desk.study}/${encodeURIComponent(volume.id)}-${slice}-${block}.png`;
  const kept = pictures.get(address);
  if (kept) {
    pictures.delete(address);
    pictures.set(address, kept);
    return kept;
  }
  const made = { pixels: Math.min(volume.n_phases, volume.block) * volume.height * volume.width, bitmap: null, failed: false };
  made.coming = bitmapOf(address).then((bitmap) => (made.bitmap = bitmap), () => (made.failed = true));
  pictures.set(address, made);
  let sum = [...pictures.values()].reduce((total, { pixels }) => total + pixels, 0);
  for (const [name, old] of pictures) {
    if (sum <= MOST_PIXELS || old === made) break;
    pictures.delete(name);
    sum -= old.pixels;
  }
  return made;
}

async function bitmapOf(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  return createImageBitmap(image);
}

// A view says what it shows only when it shows it: until its picture is there, it is dimmed and says so.
function drawPort(port) {
  const { volume, slice, phase, canvas } = port;
  const found = picture(volume, slice, Math.floor(phase / volume.block));
  port.node.toggleAttribute("data-active", port.number === desk.active);
  port.node.toggleAttribute("data-waiting", !found.bitmap);
  if (port.list.value !== volume.id) port.list.value = volume.id;
  drawLines(port);
  if (!found.bitmap) {
    const own = desk;
    say(port, [`${placeInWords(port)}: ${found.failed ? "cannot be read" : "reading\u2026"}`]);
    if (!found.failed) found.coming.then(() => own === desk && redraw());
    return;
  }
  const tile = phase % volume.block;
  const [width, height] = tileOf(volume, phase - tile, found.bitmap);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  const [left, top] = [(tile % volume.columns) * width, Math.floor(tile / volume.columns) * height];
  canvas.getContext("2d").drawImage(found.bitmap, left, top, width, height, 0, 0, width, height);
  canvas.dataset.frame = frameName(volume.id, indexOf(port));
  describe(port);
  readAhead(port);
}

// Width and height of a frame in the picture of the block that begins at a phase: images of a case differ in size.
function tileOf({ columns, block, n_phases: count }, first, { width, height }) {
  return [width / columns, height / Math.ceil(Math.min(block, count - first) / columns)];
}

function placeInWords({ volume, slice, phase }) {
  const end = volume.ordered && volume.n_slices > 1 ? (slice === 0 ? " (base)" : slice === volume.n_slices - 1 ? " (apex)" : "") : "";
  const time = volume.over_time !== "cycle" ? "" : phase === volume.ed_phase ? " (end-diastole)" : phase === volume.es_phase ? " (end-systole)" : "";
  return `slice ${slice + 1} of ${volume.n_slices}${end}${volume.n_phases > 1 ? `, phase ${phase + 1} of ${volume.n_phases}${time}` : ""}`;
}

function describe(port) {
  const name = frameName(port.volume.id, indexOf(port));
  const senders = desk.lanes.filter(({ names }) => names.has(name)).map(laneName);
  const alone = desk.names.has(name) ? "sent under this arm" : "not sent under this arm"; // until the others are read
  const sent = !desk.lanes.length ? alone : senders.length ? `sent by ${senders.join(", ")}` : "not sent";
  const told = [placeInWords(port), sent, ...(isEvidence(port) ? ["shows the answer"] : [])];
  port.node.toggleAttribute("data-sent", desk.names.has(name));
  port.node.toggleAttribute("data-evidence", isEvidence(port));
  say(port, told);
}

// The same words below the picture and for those who hear it.
function say(port, told) {
  port.caption.textContent = told.join(" \u00b7 ");
  port.canvas.setAttribute("aria-label", `${volumeInWords(port.volume)}, ${told.join(", ")}`);
}

// Other slices of the volume that is shown, nearest first, one at a time, so that what is asked for next need not wait.
async function readAhead(port) {
  const { volume } = port;
  const own = desk;
  if (port.ahead === volume.id + masks) return;
  port.ahead = volume.id + masks;
  const blocks = Math.ceil(volume.n_phases / volume.block);
  const slices = Array.from({ length: volume.n_slices }, (_, at) => at).sort((one, other) => Math.abs(one - port.slice) - Math.abs(other - port.slice));
  for (const slice of slices) {
    for (let block = 0; block < blocks; block++) {
      if (own !== desk || port.volume !== volume) return;
      await picture(volume, slice, block).coming;
    }
  }
}

// Where the slices of the other views cut this one. Of the active view also the slices that were sent, in dashes.
function drawLines(port) {
  const { width, height, id } = port.volume;
  port.lines.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const drawn = [];
  for (const other of desk.ports) {
    const cuts = other === port ? null : desk.layout.lines[id]?.[other.volume.id]?.[port.slice];
    if (!cuts) continue;
    const marks = other.number === desk.active ? sentSlices(other.volume).map((slice) => [cuts[slice], "sent"]) : [];
    for (const [cut, kind] of [...marks, [cuts[other.slice], "here"]]) {
      if (!cut) continue;
      const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
      ["x1", "y1", "x2", "y2"].forEach((name, at) => line.setAttribute(name, cut[at] + 0.5));
      line.setAttribute("class", `port-${other.number} ${kind}`);
      drawn.push(line);
    }
  }
  port.lines.replaceChildren(...drawn);
}

const sentSlices = (volume) => [...new Set(desk.sent.filter(([name]) => name === volume.id).map(([, idx]) => Math.floor(idx / volume.n_phases)))];
const laneName = ({ selector, budget }) => `${selector} budget ${budget}`;

// Each selector at each budget: slices down from the base, phases across, full where a frame was sent.
function drawLanes() {
  const port = desk.ports[desk.active];
  const { volume } = port;
  if (desk.drawn !== volume.id) {
    desk.drawn = volume.id;
    const evidence = desk.evidence.filter(({ volume_id }) => volume_id === volume.id).map(({ slice }) => slice);
    desk.rowsMarked = new Set(evidence);
    desk.lanesBox.replaceChildren(...desk.lanes.map((lane) => laneOf(lane, volume)));
  }
  const style = getComputedStyle(document.body);
  const colour = (name) => style.getPropertyValue(name).trim();
  for (const lane of desk.lanes) paintLane(lane, port, colour);
}

function laneOf(lane, volume) {
  lane.canvas = element("canvas", { role: "img", "aria-label": laneInWords(lane, volume) });
  lane.canvas.addEventListener("click", (event) => {
    const box = lane.canvas.getBoundingClientRect();
    const at = (offset, size, count) => Math.min(count - 1, Math.max(0, Math.floor((offset / size) * count)));
    pause();
    go(volume.id, at(event.clientY - box.top, box.height, volume.n_slices) * volume.n_phases + at(event.clientX - box.left, box.width, volume.n_phases));
  });
  const own = lane.arm === desk.arm;
  return element("figure", { class: "lane", "data-own": own }, element("figcaption", {}, element("b", {}, laneName(lane)), ` ${laneCounts(lane, volume)}`), lane.canvas);
}

const here = (lane, volume) => lane.frames.filter(([name]) => name === volume.id).map(([, idx]) => idx);

function laneCounts(lane, volume) {
  if (!lane.frames.length) return lane.why || (lane.status === "planned" ? "without frames" : endingInWords(lane.status));
  return `${here(lane, volume).length} of ${(volume.n_slices * volume.n_phases).toLocaleString("en")} frames here, ${lane.frames.length} in all`;
}

function laneInWords(lane, volume) {
  const rows = new Map();
  for (const idx of here(lane, volume)) {
    const slice = Math.floor(idx / volume.n_phases);
    rows.set(slice, [...(rows.get(slice) ?? []), (idx % volume.n_phases) + 1]);
  }
  const words = [...rows].sort(([one], [other]) => one - other).map(([slice, phases]) => `slice ${slice + 1}${volume.n_phases > 1 ? `, phases ${rangesInWords(phases)}` : ""}`);
  return `${laneName(lane)}: ${words.join("; ") || "nothing of this volume"}`;
}

function paintLane(lane, { volume, slice, phase }, colour) {
  const { n_slices, n_phases } = volume;
  const wide = Math.max(3, Math.min(12, Math.floor(150 / n_phases)));
  const tall = Math.max(6, Math.min(12, Math.floor(120 / n_slices)));
  Object.assign(lane.canvas, { width: wide * n_phases, height: tall * n_slices });
  const pen = lane.canvas.getContext("2d");
  for (let row = 0; row < n_slices; row++) {
    for (let column = 0; column < n_phases; column++) {
      const sent = lane.names.has(frameName(volume.id, row * n_phases + column));
      pen.fillStyle = colour(sent ? "--accent" : desk.rowsMarked.has(row) ? "--line" : "--band");
      pen.fillRect(column * wide, row * tall, wide - 1, tall - 1);
    }
  }
  pen.strokeStyle = colour("--c-shown");
  pen.lineWidth = 2;
  pen.strokeRect(phase * wide, slice * tall, wide - 1, tall - 1);
}

function studyBar() {
  const link = element("input", { type: "checkbox", id: "linked", checked: linked, onchange: switchLinked });
  const act = (text, does) => element("button", { type: "button", onclick: does }, text);
  return element(
    "div",
    { class: "controls" },
    element("label", {}, link, element("span", {}, "linked")),
    act("Previous sent", () => nextSent(-1)),
    act("Next sent", () => nextSent(1)),
    desk.evidence.length ? act("Next that shows the answer", nextEvidence) : "",
    element("span", { class: "quiet" }, "wheel or \u2191 \u2193: slices \u00b7 Shift and wheel, or \u2190 \u2192: phases"),
  );
}

// What is not known of the study, and so not drawn.
function notes() {
  const { unplaced } = desk.layout;
  const names = Object.entries(unplaced).map(([name, why]) => element("li", {}, `${volumeInWords(desk.volumes.get(name) ?? { id: name })}: ${why}`));
  const evidence = desk.evidence.length ? "" : element("p", { class: "quiet" }, SHOWN_WORDS["?"]);
  if (!names.length) return element("div", {}, evidence);
  return element("div", {}, evidence, element("details", { class: "quiet" }, element("summary", {}, `No reference lines and no linked slices for ${names.length} of ${desk.layout.volumes.length} volumes`), element("ul", {}, ...names)));
}

function switchLinked() {
  linked = !linked;
  document.getElementById("linked").checked = linked;
  if (linked) move(desk.ports[desk.active], {});
}

function slideBy(by) {
  pause();
  const port = desk.ports[desk.active];
  move(port, { slice: port.slice + by });
}

const STUDY_KEYS = {
  ArrowUp: () => slideBy(-1),
  ArrowDown: () => slideBy(1),
  n: () => nextSent(1),
  p: () => nextSent(-1),
  g: nextEvidence,
  l: switchLinked,
  ...Object.fromEntries(Array.from({ length: MOST_PORTS }, (_, at) => [String(at + 1), () => activate(at)])),
};
