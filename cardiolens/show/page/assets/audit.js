/* The page of an audit: one reply at a time; keys are letters, 0 for no answer, Enter to keep, and the left arrow. */
"use strict";

const byId = id => document.getElementById(id);
let item = {}, chosen = new Set();

function show(state) {
  item = state;
  chosen = new Set(state.chosen || []);
  byId("progress").textContent = `${state.read} of ${state.of} read`;
  const done = state.question === undefined;
  byId("question").textContent = done ? "All replies are read. Thank you; the page can be closed." : state.question;
  byId("reply").textContent = done ? "" : state.reply;
  byId("cut").hidden = done || !state.cut;
  draw();
}

function draw() {
  byId("options").replaceChildren(...(item.options || []).map(([letter, text]) => {
    const button = document.createElement("button");
    button.textContent = `${letter}. ${text}`;
    button.setAttribute("aria-pressed", String(chosen.has(letter)));
    button.onclick = () => toggle(letter);
    return button;
  }));
}

function toggle(letter) {
  const had = chosen.has(letter);
  if (!item.several) chosen.clear();
  if (had) chosen.delete(letter); else chosen.add(letter);
  draw();
}

async function load(path) {
  const reply = await fetch(path);
  if (reply.ok) show(await reply.json()); else byId("message").textContent = "the server has ended";
}

async function keep(letters) {
  if (item.question === undefined) return;
  const body = JSON.stringify({number: item.number, letters});
  const reply = await fetch("read", {method: "POST", headers: {"Content-Type": "application/json"}, body});
  const state = await reply.json();
  byId("message").textContent = state.error || "";
  if (!state.error) show(state);
}

function next() {
  if (chosen.size) keep([...chosen].sort());
  else byId("message").textContent = "choose an option, or say that there is no answer (0)";
}

byId("back").onclick = () => item.number > 0 && load(`replies/${item.number - 1}`);
byId("none").onclick = () => keep([]);
byId("next").onclick = next;
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const letter = event.key.toUpperCase();
  if ((item.options || []).some(([known]) => known === letter)) toggle(letter);
  else if (event.key === "0") keep([]);
  else if (event.key === "ArrowLeft") byId("back").onclick();
  else if (event.key === "Enter" && event.target.tagName !== "BUTTON") next();
  else return;
  event.preventDefault();
});
load("next.json");
