// One question under one or two arms: frames, prompt, reply, what was read from it, what is true.

const THOUGHT = /<(think|thinking|seed:think)>([\s\S]*?)(?:<\/\1>|$)/g;

function showCase(holder, study, qaId, question, sides, place) {
  closeCase();
  const evidence = question.grounds?.slices ?? [];
  const panes = sides.map(({ label, asked }) => pane(label, asked, study, question));
  const options = Object.entries(question.options).map(([key, text]) => element("li", {}, element("b", {}, key), ` ${text}`));
  holder.replaceChildren(
    element("header", { class: "asked" }, element("h2", {}, `${subtaskInWords(question.subtask)} · ${qaId}`), element("p", { class: "question" }, question.question), element("ul", { class: "options" }, ...options), groundsOf(question.grounds)),
    controls(),
    whole ? wholeStudy({ ...place, evidence, sent: ownFrames(study, sides[0].asked, place.study) }) : "",
    element("div", { class: "panes" }, ...panes),
  );
  applyLook();
}

const isBlank = ({ flags }) => flags.includes("blank"); // a control: every frame was shown black

// The frames of a case that show its own patient: under a control they may be of another, or black.
function ownFrames(study, asked, number) {
  return asked && asked.frames_of === number && asked.status === "planned" && !isBlank(asked) ? study.frames[asked.frames] : [];
}

// What the true answer rests on: quotes of the report, and who verified it.
function groundsOf(grounds) {
  if (!grounds) return "";
  const { status, verdict, by, at, readers } = grounds.verification; // as a file has it: of any type
  const names = [by ?? []].flat().join(", ");
  const who = names ? `by ${names}` : readers ? `by ${readers} readers` : "";
  const told = [`from ${grounds.origin}`, status, verdict, who, String(at ?? "").slice(0, 10)].filter(Boolean).join(" \u00b7 ");
  const quotes = grounds.quotes.map(({ text, section }) => element("li", {}, element("q", {}, text), section ? ` (${section})` : ""));
  return element("details", { class: "grounds", open: grounds.quotes.length > 0 }, element("summary", {}, `Truth: ${told}`), element("ul", {}, ...quotes));
}

function pane(label, asked, study, question) {
  const texts = study.texts;
  if (!asked) return element("section", { class: "pane" }, element("h3", {}, label), element("p", { class: "absent" }, "Not asked under this arm."));
  const prompt = texts[asked.prompt] ?? "";
  const verdicts = (of) => asked.verdicts.filter(({ channel }) => of(channel)).map((verdict) => verdictOf(verdict, asked, question.options));
  return element(
    "section",
    { class: "pane" },
    element("h3", {}, label),
    element("div", {}, ...verdicts((channel) => channel === "answer"), element("p", { class: "quiet shown" }, SHOWN_WORDS[asked.shown])),
    whole ? "" : makeStage(study.frames[asked.frames], asked.frames_of, prompt, RUN.images, label, isBlank(asked)),
    element(
      "div",
      {},
      ...verdicts((channel) => channel !== "answer"),
      replyOf(asked.reply === null ? null : texts[asked.reply], asked),
      referenceOf(question, asked),
      folded("Prompt", `${texts[asked.system] ?? ""}\n\n${numbered(prompt, study.frames[asked.frames].length)}`, "prompt"),
    ),
  );
}

const SET_WORDS = { hit: "named, and true", extra: "named, and not true", lost: "true, and not named" };

function verdictOf(verdict, asked, options) {
  const ok = verdict.status !== "judged" ? "none" : verdict.correct ? "right" : "wrong";
  const word = { none: endingInWords(verdict.status), right: "right", wrong: "wrong" }[ok];
  const inWords = (code) => answerInWords(code, options);
  const parsed = verdict.parsed ?? [];
  const gold = verdict.gold ?? [];
  const sets = [
    ["hit", "TP", parsed.filter((one) => gold.includes(one))],
    ["extra", "FP", parsed.filter((one) => !gold.includes(one))],
    ["lost", "FN", gold.filter((one) => !parsed.includes(one))],
  ];
  const chips = sets.flatMap(([kind, short, all]) => all.map((one) => element("li", { class: kind }, element("abbr", { title: SET_WORDS[kind] }, short), ` ${inWords(one)}`)));
  const told = [
    ["channel", verdict.channel],
    ["read", parsed.map(inWords).join(", ") || "nothing"],
    ["true", gold.map(inWords).join(", ") || "nothing"],
    ["read from", RULE_WORDS[verdict.rule ?? "none"] ?? verdict.rule],
    ["status", endingInWords(verdict.parse_status ?? verdict.status)],
    ...(asked.flags.length ? [["frames", asked.flags.map(flagInWords).join(", ")]] : []),
  ];
  const short = verdict.channel === "answer" ? told : [told[0], ...told.slice(3)];
  return element(
    "div",
    { class: `verdict-box ${ok}`, "data-verdict": word },
    element("p", { class: "word" }, word),
    element("dl", {}, ...short.map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, text)))),
    element("ul", { class: "sets" }, ...chips),
  );
}

// Think blocks are folded; values of the verdicts are marked where the reply has them.
function replyOf(text, asked) {
  if (text === null) return element("p", { class: "absent" }, `No reply: ${endingInWords(asked.status)}.`);
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(THOUGHT)) {
    parts.push(marked(text.slice(from, found.index), asked), folded("Thought", found[2].trim(), "thought"));
    from = found.index + found[0].length;
  }
  parts.push(marked(text.slice(from), asked));
  return element("div", { class: "reply" }, element("h4", {}, "Reply"), ...parts);
}

function marked(text, asked) {
  const values = asked.verdicts
    .filter((verdict) => verdict.channel !== "answer")
    .flatMap((verdict) => (verdict.parsed ?? []).map((one) => [one.split(": ").at(-1), (verdict.gold ?? []).includes(one)]));
  const words = new Map(values.filter(([word]) => word.length > 3));
  const shown = element("pre", {});
  const escaped = [...words.keys()].map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pieces = escaped.length ? text.trim().split(new RegExp(`(${escaped.join("|")})`)) : [text.trim()];
  shown.append(...pieces.map((piece) => (words.has(piece) ? element("mark", { class: words.get(piece) ? "hit" : "extra" }, piece) : piece)));
  return shown;
}

function referenceOf(question, asked) {
  if (!question.reference) return "";
  const reference = JSON.parse(question.reference);
  const read = new Set(asked.verdicts.filter((verdict) => verdict.channel === "fields").flatMap((verdict) => verdict.parsed ?? []));
  const rows = Object.entries(reference.fields ?? {}).map(([name, value]) => {
    const values = [value].flat();
    const found = [...read].filter((one) => one.startsWith(`${name}: `)).map((one) => one.slice(name.length + 2));
    return element("tr", {}, element("th", { scope: "row" }, fieldInWords(name)), element("td", {}, values.join(", ") || "\u2013"), element("td", {}, found.join(", ") || "\u2013"));
  });
  const head = element("tr", {}, ...["field", "true", "read"].map((text) => element("th", { scope: "col" }, text)));
  const table = element("table", { class: "fields" }, element("thead", {}, head), element("tbody", {}, ...rows));
  const block = element("details", {}, element("summary", {}, "Fields and reference"), element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Fields" }, table));
  block.append(element("pre", {}, `${reference.findings ?? ""}\n\n${reference.impression ?? ""}`));
  return block;
}

function folded(title, text, kind) {
  return element("details", { class: kind }, element("summary", {}, title), element("pre", {}, text));
}

// The marks before those of the case's own frames are of solved examples.
function numbered(prompt, own) {
  let at = Math.min(0, own - prompt.split("\ufffc").length + 1);
  return prompt.replaceAll("\ufffc", () => (++at > 0 ? `[frame ${at}]` : "[frame of an example]"));
}
