// The list of cases, the case that is open, and the keyboard.

const SHOWN = 200; // cases in the list at once
const holder = document.getElementById("case");
const list = document.getElementById("list");
let cases = [];
let current = -1;
let asked = 0; // refreshes so far: what an earlier one hears of is no longer wanted

async function refresh() {
  const mine = ++asked;
  try {
    const saying = await needed();
    if (mine !== asked) return;
    cases = matching(saying);
  } catch (error) {
    if (mine === asked) showNone(error.message);
    return;
  }
  if (cases.length) open(0, true);
  else showNone(filter.flips && chosen().length === 1 ? "Choose an arm beside: a flip needs two." : filter.missed && filter.missed !== "all" && chosen().every((arm) => !/[spn]/.test(shownLetters.get(arm))) ? SHOWN_WORDS["?"] : "No case fits these filters.");
}

function closeCase() {
  pause();
  stages.length = 0;
  desk = null;
}

// Why there is nothing in the list.
function showNone(why) {
  cases = [];
  current = -1;
  listed(0);
  closeCase();
  holder.replaceChildren(element("p", { class: "absent" }, why));
}

// The stretch of the list that holds a case.
function listed(at) {
  const from = at - (at % SHOWN);
  const shown = cases.slice(from, from + SHOWN);
  const [first, last, all] = [from + 1, from + shown.length, cases.length].map((n) => n.toLocaleString("en"));
  document.getElementById("count").textContent =
    cases.length > SHOWN ? `${first} to ${last} of ${all} cases` : `${all} ${cases.length === 1 ? "case" : "cases"}`;
  list.replaceChildren(...shown.map((one, place) => entry(one, from + place)));
}

function entry({ question, arms }, at) {
  const [study, subtask] = INDEX.questions[question];
  const ended = arms.map((arm) => ending(question, arm));
  const dots = ended.map((letter) => element("i", { class: `dot-${letter.trim() || "n"}` }));
  const name = subtaskInWords(subtask);
  const label = `${name} \u00b7 ${INDEX.studies[study]}: ${ended.map((letter) => ENDED[letter] ?? "not asked").join(", ")}`;
  const button = element("button", { type: "button", "aria-label": label, onclick: () => open(at) }, ...dots, ` ${name} \u00b7 ${INDEX.studies[study]}`);
  return element("li", { "data-at": at }, button);
}

async function open(at, anew = false) {
  if (!cases[at]) return;
  const stretch = (place) => Math.floor(place / SHOWN);
  if (anew || stretch(at) !== stretch(current)) listed(at);
  current = at;
  const { question, arms } = cases[at];
  const [study, , qaId] = INDEX.questions[question];
  [...list.children].forEach((item) => item.toggleAttribute("data-here", Number(item.dataset.at) === at));
  list.children[at % SHOWN]?.scrollIntoView({ block: "nearest" });
  const mine = asked;
  const wanted = () => mine === asked && current === at;
  try {
    const found = await content(RUN.served ? `cases/${question}/${arms.join("-")}.js` : `cases/${question}.js`);
    if (!wanted()) return;
    showCase(holder, found, qaId, found.questions[qaId], arms.map((arm) => ({ label: armLabel(INDEX.arms[arm]), asked: found.cases[qaId]?.[arm] })), { question, study, arms });
    holder.dataset.opened = qaId;
  } catch (error) {
    if (!wanted()) return;
    closeCase();
    holder.replaceChildren(element("p", { class: "absent" }, error.message));
  }
}

function bounded(name, by, low, high) {
  look[name] = Math.min(high, Math.max(low, look[name] + by));
  applyLook();
}

const KEYS = {
  j: () => current + 1 < cases.length && open(current + 1),
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
  m: switchMasks,
  v: switchWhole,
  f: () => ((filter.flips = !filter.flips), buildFilters(), refresh()),
  "[": () => otherArm("first", -1),
  "]": () => otherArm("first", 1),
  "{": () => otherArm("second", -1),
  "}": () => otherArm("second", 1),
  "/": () => document.querySelector("input[type=search]").focus(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea");
  if (event.key === "Escape" && typing) typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === " " && event.target.closest("button, summary")) return;
  const scrolls = event.target.closest("#list") && event.key.startsWith("Arrow");
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const act = (!scrolls && desk?.layout && STUDY_KEYS[key]) || KEYS[key];
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
