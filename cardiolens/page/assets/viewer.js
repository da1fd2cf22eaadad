// The list of cases, its filters, and the keyboard.

const RUN = JSON.parse(document.getElementById("run").textContent);
const INDEX = JSON.parse(document.getElementById("index").textContent);
const SHOWN = 200; // cases in the list at once
const ENDED = { r: "right", w: "wrong", u: "not readable", o: "no answer" };
const promised = new Map();
const waiting = new Map();
const holder = document.getElementById("case");
const list = document.getElementById("list");

window.cardiolens = { receive: (number, study) => waiting.get(number)?.(study) };

function studyNumber(number) {
  if (!promised.has(number)) {
    const coming = new Promise((resolve, reject) => {
      waiting.set(number, resolve);
      const script = element("script", { src: `cases/${number}.js` });
      script.addEventListener("error", () => reject(new Error(`cases/${number}.js is not beside this page.`)));
      document.head.append(script);
    });
    promised.set(number, coming);
  }
  return promised.get(number);
}

const armLabel = ([model, selector, budget, prompt, control]) => {
  const star = RUN.simulated.includes(model) ? "*" : "";
  return [`${model}${star}`, selector, `K = ${budget}`, prompt, control === "none" ? "" : control].filter(Boolean).join(" \u00b7 ");
};

const filter = { model: "", first: 0, second: -1, subtask: "", ended: "", flips: false, word: "" };
let cases = [];
let current = -1;

function select(name, title, options) {
  const made = element("select", { "data-filter": name }, ...options.map(([value, text]) => element("option", { value }, text)));
  made.value = String(filter[name]);
  made.addEventListener("change", () => {
    filter[name] = typeof filter[name] === "number" ? Number(made.value) : made.value;
    if (name === "model") modelChosen();
    refresh();
  });
  return element("label", {}, element("span", {}, title), made);
}

function buildFilters() {
  const models = [...new Set(INDEX.arms.map(([model]) => model))];
  const subtasks = [...new Set(INDEX.questions.map(([, subtask]) => subtask))].sort();
  const arms = INDEX.arms.map((arm, at) => [at, armLabel(arm)]).filter(([at]) => !filter.model || INDEX.arms[at][0] === filter.model);
  const flips = element("input", { type: "checkbox", "data-filter": "flips" });
  flips.checked = filter.flips;
  flips.addEventListener("change", () => ((filter.flips = flips.checked), refresh()));
  const word = element("input", { type: "search", placeholder: "Study or question", "aria-label": "Search study or question", value: filter.word });
  word.addEventListener("input", () => ((filter.word = word.value.toLowerCase()), refresh()));
  document.getElementById("filters").replaceChildren(
    select("model", "model", [["", "all"], ...models.map((name) => [name, name])]),
    select("first", "arm", arms),
    select("second", "beside", [[-1, "no other"], ...arms]),
    select("subtask", "subtask", [["", "all"], ...subtasks.map((name) => [name, name])]),
    select("ended", "verdict", [["", "all"], ...Object.entries(ENDED)]),
    element("label", { class: "flips" }, flips, element("span", {}, "flips: right under one arm, wrong under the other")),
    word,
  );
}

function modelChosen() {
  const fits = (at) => at < 0 || !filter.model || INDEX.arms[at][0] === filter.model;
  if (!fits(filter.first)) filter.first = INDEX.arms.findIndex(([model]) => model === filter.model);
  if (!fits(filter.second)) filter.second = -1;
  buildFilters();
}

function matches([study, subtask, qaId, ended]) {
  const [one, other] = [ended[filter.first], filter.second < 0 ? null : ended[filter.second]];
  if (one === " " || (filter.subtask && subtask !== filter.subtask) || (filter.ended && one !== filter.ended)) return false;
  if (filter.flips && !(other && other !== " " && (one === "r") !== (other === "r"))) return false;
  return !filter.word || `${INDEX.studies[study]} ${qaId}`.toLowerCase().includes(filter.word);
}

function refresh() {
  cases = INDEX.questions.filter(matches);
  document.getElementById("count").textContent =
    cases.length > SHOWN ? `${SHOWN} of ${cases.length.toLocaleString("en")} cases` : `${cases.length} ${cases.length === 1 ? "case" : "cases"}`;
  list.replaceChildren(...cases.slice(0, SHOWN).map(entry));
  if (cases.length) open(0);
  else {
    current = -1;
    holder.replaceChildren(element("p", { class: "absent" }, filter.flips && filter.second < 0 ? "Choose an arm beside: a flip needs two." : "No case fits these filters."));
  }
}

function entry([study, subtask, , ended], at) {
  const words = [filter.first, filter.second].filter((arm) => arm >= 0).map((arm) => ENDED[ended[arm]] ?? "not asked");
  const dots = [filter.first, filter.second].filter((arm) => arm >= 0).map((arm) => element("i", { class: `dot-${ended[arm].trim() || "n"}` }));
  const button = element("button", { type: "button", "aria-label": `${subtask} \u00b7 ${INDEX.studies[study]}: ${words.join(", ")}`, onclick: () => open(at) }, ...dots, ` ${subtask} \u00b7 ${INDEX.studies[study]}`);
  return element("li", {}, button);
}

async function open(at) {
  current = at;
  const [number, , qaId] = cases[at];
  [...list.children].forEach((item, place) => item.toggleAttribute("data-here", place === at));
  list.children[at]?.scrollIntoView({ block: "nearest" });
  try {
    const study = await studyNumber(number);
    if (current !== at) return;
    const sides = [filter.first, filter.second].filter((arm) => arm >= 0);
    showCase(holder, study, qaId, study.questions[qaId], sides.map((arm) => ({ label: armLabel(INDEX.arms[arm]), asked: study.cases[qaId][arm] })));
    holder.dataset.opened = qaId;
  } catch (error) {
    holder.replaceChildren(element("p", { class: "absent" }, error.message));
  }
}

function bounded(name, by, low, high) {
  look[name] = Math.min(high, Math.max(low, look[name] + by));
  applyLook();
}

const KEYS = {
  j: () => current + 1 < Math.min(cases.length, SHOWN) && open(current + 1),
  k: () => current > 0 && open(current - 1),
  ArrowRight: () => step(1),
  ArrowLeft: () => step(-1),
  " ": () => (clock ? pause() : start()),
  "+": () => bounded("zoom", 0.25, 1, 6),
  "-": () => bounded("zoom", -0.25, 1, 6),
  w: () => bounded("window", 15, 1, 510),
  s: () => bounded("window", -15, 1, 510),
  e: () => bounded("level", 8, 0, 255),
  d: () => bounded("level", -8, 0, 255),
  0: resetLook,
  f: () => ((filter.flips = !filter.flips), buildFilters(), refresh()),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " " && event.target.closest("button, summary")) return;
  const act = KEYS[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

const help = document.getElementById("help");
const keys = document.getElementById("keys");
keys.addEventListener("click", () => {
  help.hidden = !help.hidden;
  keys.setAttribute("aria-expanded", String(!help.hidden));
});

buildFilters();
refresh();
