// What is listed: arms, endings, flips and words, and the letters by which they are found.
// A letter per question stands in a script for each arm.

const RUN = JSON.parse(document.getElementById("run").textContent);
const INDEX = JSON.parse(document.getElementById("index").textContent);
const subtaskInWords = (id) => `${id} ${fieldInWords(INDEX.subtasks[id] ?? "")}`.trim();
const ENDED = { r: "right", w: "wrong", u: "not readable", o: "no answer" };
const NONE = -1;
const NO_ANSWER = "The server gave no answer. If it has ended, start python -m cardiolens.view again; else its terminal says why.";
const MOST_WORDS = 200; // characters of a search, as the server reads it
const promised = new Map();
const waiting = new Map();
const letters = new Map(); // of the arms that were asked for

window.cardiolens = {
  receive: (address, content) => waiting.get(address)?.resolve(content),
  refuse: (address, why) => waiting.get(address)?.reject(new Error(why)),
};

// The content of a script beside the page, by its address.
function content(address) {
  if (!promised.has(address)) {
    const coming = new Promise((resolve, reject) => {
      waiting.set(address, { resolve, reject });
      const script = element("script", { src: address });
      script.addEventListener("error", () => reject(new Error(RUN.served ? NO_ANSWER : `${address} is not beside this page.`)));
      document.head.append(script);
    });
    promised.set(address, coming);
    coming.catch(() => promised.delete(address));
  }
  return promised.get(address);
}

const armLabel = ([model, selector, budget, prompt, control]) => {
  const star = RUN.simulated.includes(model) ? "*" : "";
  return [`${model}${star}`, selector, `budget ${budget}`, prompt, control === "none" ? "" : control].filter(Boolean).join(" \u00b7 ");
};

const filter = { model: "", first: 0, second: NONE, subtask: "", ended: "", missed: "", flips: false, word: "", said: "" };

// A miss is a wrong answer. What was shown is a letter per question and arm, as what ended is.
const MISSED = {
  s: "missed although shown",
  p: "missed, shown in part",
  n: "missed, not shown",
  "?": "missed, not known whether shown",
  all: "all readers wrong",
};
const shownLetters = new Map(); // of the arms that were asked for

// An arm and those of the other readers under the same selector, budget, prompt and control; simulated readers count
// only where there are no others.
function peers(arm) {
  const setting = (at) => INDEX.arms[at].slice(1).join("\u0000");
  const same = INDEX.arms.map((_, at) => at).filter((at) => setting(at) === setting(arm));
  const real = same.filter((at) => !RUN.simulated.includes(INDEX.arms[at][0]));
  return [...new Set([arm, ...(real.length ? real : same)])];
}

function isMissed(question, arm) {
  if (!filter.missed) return true;
  if (filter.missed === "all") return peers(arm).length > 1 && peers(arm).every((at) => ending(question, at) === "w");
  return ending(question, arm) === "w" && (shownLetters.get(arm)[question] ?? "?") === filter.missed;
}

const chosen = () => [filter.first, filter.second].filter((arm) => arm !== NONE);

function ending(question, arm) {
  return letters.get(arm)[question] ?? " ";
}

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

// A search is made when a word is entered, not at each of its letters, where the server has to read replies.
function search(name, placeholder, event) {
  const made = element("input", { type: "search", "data-filter": name, placeholder, maxlength: MOST_WORDS, "aria-label": placeholder, value: filter[name] });
  made.addEventListener(event, () => ((filter[name] = made.value.toLowerCase().trim()), refresh()));
  return made;
}

const armsOf = (model) => INDEX.arms.map((arm, at) => [at, armLabel(arm)]).filter(([at]) => !model || INDEX.arms[at][0] === model);

function buildFilters() {
  const models = [...new Set(INDEX.arms.map(([model]) => model))];
  const subtasks = [...new Set(INDEX.questions.map(([, subtask]) => subtask))].sort();
  const flips = element("input", { type: "checkbox", "data-filter": "flips" });
  flips.checked = filter.flips;
  flips.addEventListener("change", () => ((filter.flips = flips.checked), refresh()));
  document.getElementById("filters").replaceChildren(
    select("model", "model", [["", "all"], ...models.map((name) => [name, name])]),
    select("first", "arm", armsOf(filter.model)),
    select("second", "beside", [[NONE, "no other"], ...armsOf("")]),
    select("subtask", "subtask", [["", "all"], ...subtasks.map((name) => [name, subtaskInWords(name)])]),
    select("ended", "verdict", [["", "all"], ...Object.entries(ENDED)]),
    select("missed", "missed", [["", "any or none"], ...Object.entries(MISSED)]),
    element("label", { class: "flips" }, flips, element("span", {}, "flips: right under one arm, not under the other")),
    search("word", "Study or question", "input"),
    RUN.served ? search("said", "Words of a reply, then Enter", "change") : "",
  );
}

function modelChosen() {
  const left = filter.model && INDEX.arms[filter.first][0] !== filter.model;
  if (left) filter.first = armsOf(filter.model)[0][0];
  buildFilters();
  document.querySelector("[data-filter='model']").focus();
}

// The arm before or after, among those of the chosen model.
function otherArm(name, by) {
  const beside = armsOf("").map(([at]) => at).filter((at) => at !== filter.first);
  const own = armsOf(filter.model).map(([at]) => at);
  const all = name === "second" ? [NONE, ...beside] : own;
  filter[name] = all[(all.indexOf(filter[name]) + by + all.length) % all.length];
  buildFilters();
  refresh();
}

// What every question is compared with; read before any is.
async function needed() {
  const arms = chosen();
  const read = (kind, kept, wanted) => Promise.all(wanted.map(async (arm) => kept.set(arm, await content(`${kind}/${arm}.js`))));
  await read("endings", letters, filter.missed === "all" ? arms.flatMap(peers) : arms);
  if (filter.missed && filter.missed !== "all") await read("shown", shownLetters, arms);
  const words = encodeURIComponent(filter.said);
  return filter.said ? new Set(await content(`said/${filter.first}.js?words=${words}`)) : null;
}

// A case is a question under one arm or two.
function matching(saying) {
  const fits = (question, arms) => {
    const [one, other] = arms.map((arm) => ending(question, arm));
    return one !== " " && isMissed(question, arms[0]) && (!filter.ended || one === filter.ended) && (!filter.flips || (other !== undefined && other !== " " && (one === "r") !== (other === "r")));
  };
  const found = ([study, subtask, qaId], at) =>
    (!filter.subtask || subtask === filter.subtask) &&
    (!saying || saying.has(at)) &&
    (!filter.word || `${INDEX.studies[study]} ${qaId}`.toLowerCase().includes(filter.word));
  const arms = chosen();
  return INDEX.questions.flatMap((question, at) => (found(question, at) && fits(at, arms) ? [{ question: at, arms }] : []));
}
