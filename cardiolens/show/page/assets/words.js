// Codes of the tables in words. A code without words here is shown as it is, so that none is lost.

const ENDING_WORDS = {
  ok: "the answer was read",
  asked_back: "the answer was read when the model was asked back",
  no_answer: "asked back, the model says that its reply gives no answer",
  inconsistent: "the answer combines options that exclude each other",
  contradicted: "the reply contradicts itself",
  parse_error: "no complete answer was found",
  refusal: "the model refused",
  truncated: "cut off by its token limit",
  illegal_selection: "asked for frames that there are not",
  judged: "judged",
  overflow: "not asked: too long for the model",
  engine_error: "the engine failed",
  missing: "no reply yet",
  planned: "sent",
};
const SKIPPED_WORDS = {
  sequence_missing: "the study lacks the sequence",
  view_missing: "the study lacks every view that shows it",
  slice_order_unknown: "base and apex cannot be told apart",
  frame_over_budget: "not one frame fits the budget",
};
const FLAG_WORDS = {
  short: "fewer frames than the budget",
  degraded: "a view of the rule is not in the study",
  no_temporal_evidence: "no slice at two phases, so no motion",
  estimated_tokens: "tokens estimated",
  levels_unknown: "slice order not declared",
  blank: "every frame shown black",
};
const RULE_WORDS = {
  answer_line: "an answer line",
  asked_back: "the second turn",
  json: "JSON",
  boxed: "a box",
  answer_tag: "an answer tag",
  answer_phrase: "a phrase such as \u201cthe answer is\u201d",
  letters: "letters",
  option_text: "words of an option",
  whole_reply: "the whole reply",
  none: "no rule",
};
const SEQUENCE_WORDS = { cine: "cine", lge: "late enhancement", perfusion: "first-pass perfusion", t2: "T2" };
const VIEW_WORDS = { sax: "short axis", "4ch": "four-chamber", "3ch": "three-chamber", "2ch": "two-chamber" };
const SHOWN_WORDS = {
  s: "All slices that show the answer were sent.",
  p: "Some of the slices that show the answer were sent.",
  n: "No slice that shows the answer was sent.",
  "?": "No slices are named that show the answer: whether they were sent is not known.",
};

// The ending of a request: a code, or why it was skipped.
function endingInWords(code) {
  const [kind, why] = code.split(": ");
  return kind === "skipped" ? `not asked: ${SKIPPED_WORDS[why] ?? why}` : (ENDING_WORDS[code] ?? code);
}

function flagInWords(code) {
  const [kind, view] = code.split(":");
  if (kind === "video") return view === "1" ? "1 video" : `${view} videos`;
  if (kind === "shots") return view === "1" ? "1 solved example" : `${view} solved examples`;
  if (kind !== "substituted") return FLAG_WORDS[code] ?? code;
  const [prefix, name] = view.split("_");
  return `shown on ${prefix} ${VIEW_WORDS[name] ?? name} in place of the rule's views`;
}

const volumeInWords = ({ id, sequence, view }) =>
  sequence in SEQUENCE_WORDS && view in VIEW_WORDS ? `${SEQUENCE_WORDS[sequence]}, ${VIEW_WORDS[view]}` : id;

// A field of a report in words: `lv_wall: Thinned` becomes LV wall: Thinned.
const CAPITALS = /\b(lv|rv|av|lge|t2)\b/g;
function fieldInWords(name) {
  return name.replaceAll("_", " ").replace(CAPITALS, (word) => word.toUpperCase());
}

// What was read from a reply: an option's key with its text, or a field with its value.
function answerInWords(code, options) {
  if (code in options) return `${code} ${options[code]}`;
  const [field, value] = code.split(/: (.*)/s);
  return value === undefined ? code : `${fieldInWords(field)}: ${value}`;
}

// Ranges of whole numbers: 4 to 6, 9.
function rangesInWords(numbers) {
  const sorted = [...new Set(numbers)].sort((one, other) => one - other);
  const runs = [];
  for (const number of sorted) {
    if (runs.length && runs.at(-1)[1] === number - 1) runs.at(-1)[1] = number;
    else runs.push([number, number]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : last === first + 1 ? `${first}, ${last}` : `${first} to ${last}`)).join(", ");
}
