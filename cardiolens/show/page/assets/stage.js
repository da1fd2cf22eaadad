// Frames of one arm in order: a cine loop with play, pause and scrub, thumbnails with captions.
// Window, level and zoom are shared by all stages of a case.

const FRAMES_A_SECOND = 8;
const look = { window: 255, level: 127.5, zoom: 1 };
let masks = RUN.served; // over the frames, where the study has any
const stages = [];
let clock = 0;

// A line `Frame n: caption` stands before every frame of a prompt, and `Frames n to m, as a video: caption`
// before the frames of a video, whose marks stand side by side.
function captions(prompt) {
  const lines = prompt.matchAll(/^(?:Frame \d+|Frames \d+ to \d+, as a (video)):(.*)\n(\ufffc+)$/gm);
  return [...lines].flatMap(([, video, said, marks]) => Array(marks.length).fill([video, said.trim()].filter(Boolean).join(": ")));
}

// Under a control the frames are those that were chosen, shown black.
function makeStage(frames, study, prompt, images, label, black) {
  const said = captions(prompt).slice(-frames.length); // frames of solved examples come first
  if (!frames.length) return element("p", { class: "absent" }, "Asked without any frame.");
  const state = { at: 0, frames: frames.map(([volume, idx], at) => ({ volume, idx, caption: said[at] || "no caption" })) };
  const address = ({ volume, idx }, kind = "frames") => `${kind}/${study}/${encodeURIComponent(volume)}-${idx}.png`;
  const caption = element("p", { class: "caption" });
  const scrub = element("input", { type: "range", min: 0, max: state.frames.length - 1, value: 0, "aria-label": `Frame, ${label}` });
  const picture = images ? element("img", { class: "frame", alt: "", onerror: () => caption.append(" · cannot be read") }) : null;
  const strip = element("ol", { class: "strip", tabindex: "0", "aria-label": `Frames in order, ${label}` });
  state.show = (at) => {
    state.at = (at + state.frames.length) % state.frames.length;
    const frame = state.frames[state.at];
    caption.textContent = `${state.at + 1} of ${state.frames.length} · ${frame.caption} · ${frame.volume} ${frame.idx}`;
    scrub.value = state.at;
    if (picture) {
      picture.src = address(frame, masks ? "masks" : "frames");
      picture.alt = `Frame ${state.at + 1}: ${frame.caption}`;
    }
    [...strip.children].forEach((item, place) => item.toggleAttribute("data-here", place === state.at));
  };
  scrub.addEventListener("input", () => (pause(), state.show(Number(scrub.value))));
  state.frames.forEach((frame, at) => {
    const shown = images ? element("img", { src: address(frame), alt: "", loading: "lazy" }) : element("span", { class: "blank" }, `${frame.volume} ${frame.idx}`);
    const button = element("button", { type: "button", title: frame.caption, "aria-label": `Frame ${at + 1}: ${frame.caption}`, onclick: () => (pause(), state.show(at)) }, shown);
    strip.append(element("li", {}, button));
  });
  const box = picture ? element("div", { class: "box" }, picture) : element("p", { class: "absent" }, NO_IMAGES);
  stages.push(state);
  state.show(0);
  return element("div", { class: black ? "stage black" : "stage" }, box, caption, scrub, strip);
}

const NO_IMAGES =
  "Frames are not in this folder, as it may leave the hospital. Serve them on this machine with " +
  "python -m cardiolens.view run=\u2026, or make the page again with page.include_images=true.";

function controls() {
  const slider = (name, title, min, max, step) => {
    const input = element("input", { type: "range", min, max, step, value: look[name], "data-look": name });
    input.addEventListener("input", () => ((look[name] = Number(input.value)), applyLook()));
    return element("label", {}, element("span", {}, title), input);
  };
  const play = element("button", { type: "button", id: "play", onclick: () => (clock ? pause() : start()) }, "Play");
  const drawn = element("input", { type: "checkbox", id: "masks", checked: masks, onchange: switchMasks });
  const over = RUN.served ? element("label", {}, drawn, element("span", {}, "masks")) : "";
  const all = element("input", { type: "checkbox", id: "whole", checked: whole, onchange: switchWhole });
  const study = RUN.served ? element("label", {}, all, element("span", {}, "whole study")) : "";
  const reset = element("button", { type: "button", onclick: resetLook }, "Reset");
  return element("div", { class: "controls" }, play, slider("window", "window", 1, 510, 1), slider("level", "level", 0, 255, 0.5), slider("zoom", "zoom", 1, 6, 0.25), reset, over, study);
}

function switchMasks() {
  if (!RUN.served) return;
  masks = !masks;
  document.getElementById("masks").checked = masks;
  stages.forEach((stage) => stage.show(stage.at));
}

// The frames that were sent, or the whole study that they are of; served alone, as it is not in a folder to pass on.
function switchWhole() {
  if (!RUN.served) return;
  whole = !whole;
  open(current);
}

function resetLook() {
  Object.assign(look, { window: 255, level: 127.5, zoom: 1 });
  applyLook();
}

// A linear window: level minus half the width is black, plus half is white.
function applyLook() {
  const slope = 255 / look.window;
  const intercept = 0.5 - (slope * look.level) / 255;
  for (const channel of document.querySelectorAll("#window feComponentTransfer > *")) {
    channel.setAttribute("slope", slope);
    channel.setAttribute("intercept", intercept);
  }
  document.documentElement.style.setProperty("--zoom", look.zoom);
  document.querySelectorAll("[data-look]").forEach((input) => (input.value = look[input.dataset.look]));
}

function start() {
  if (clock || !stages.length) return;
  const rate = desk ? PHASES_A_SECOND : FRAMES_A_SECOND;
  clock = setInterval(() => stages.forEach((stage) => stage.show(stage.at + 1)), 1000 / rate);
  document.getElementById("play")?.replaceChildren("Pause");
}

function pause() {
  clearInterval(clock);
  clock = 0;
  document.getElementById("play")?.replaceChildren("Play");
}

function step(by) {
  pause();
  stages.forEach((stage) => stage.show(stage.at + by));
}
