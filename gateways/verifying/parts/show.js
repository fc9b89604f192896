// What the page does: takes a file, a drop or a paste, walks it, and shows each row with its steps. Everything that it
// holds is written as text, never as markup.

const PAGE_ROWS = 100;
const MAX_FILE = 256 * 1024 * 1024;
const MAX_SESSION = 16 * 1024 * 1024;
const STEP_WORDS = {
  form: ["Read strictly", "JSON without ambiguity, the eight members, nothing else"],
  signature: ["Signature", "Ed25519 by `from`, over the canonical bytes"],
  place: ["Number", "this conversation, and the number that is due"],
  link: ["Link", "prev_sig is the signature before it"],
  turn: ["Turn", "parties, turn and type are in their place"],
  line: ["Chain", "what stands beside the envelope agrees: chain, n, conv"],
};
const SAID = { good: "holds", bad: "does not hold", open: "not reached" };
const MARK = { good: "✓", bad: "✗", open: "–" };
const WHO = { caller: "the caller", called: "the one called", wire: "the wire" };
// What turns letters round or can't be seen is written as JSON writes it.
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\u2028\u2029]/gu;
const $ = (id) => document.getElementById(id);
const ask = { bytes: null, name: "", run: 0 };

function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children);
  return element;
}

function escaped(text) {
  const unit = (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return text.replace(HIDDEN, (each) => (each === "\n" ? each : each.split("").map(unit).join("")));
}

/** A body for people: indented, names in canonical order. */
function pretty(value, indent = "") {
  const inner = `${indent}  `;
  if (value instanceof Map && value.size) {
    const rows = [...value.keys()].sort().map((name) => `${inner}${JSON.stringify(name)}: ${pretty(value.get(name), inner)}`);
    return `{\n${rows.join(",\n")}\n${indent}}`;
  }
  if (Array.isArray(value) && value.length) {
    return `[\n${value.map((each) => inner + pretty(each, inner)).join(",\n")}\n${indent}]`;
  }
  return canonicalText(value);
}

function timeOf(ms, digits = 3) {
  const at = new Date(ms);
  if (Number.isNaN(at.getTime())) return String(ms);
  return `${at.toISOString().replace("T", " ").slice(0, digits ? 23 : 19)} UTC`;
}

function facts(pairs) {
  const list = make("dl", "");
  for (const [name, value, kind] of pairs) {
    list.append(make("dt", "", name), make("dd", "", make(kind ?? "span", "", value)));
  }
  return list;
}

/** Steps as [state, word, hint, what is said of it]. */
function stepList(steps) {
  const list = make("ul", "steps");
  for (const [state, word, hint, said] of steps) {
    const item = make("li", state, make("span", "mark", MARK[state]), ` ${word} `, make("span", "sr", said));
    item.firstChild.setAttribute("aria-hidden", "true");
    item.title = `${hint}: ${said}`;
    list.append(item);
  }
  return list;
}

function stepsOf(row, broken, step) {
  const at = step ? STEPS.indexOf(step) : STEPS.length;
  const list = stepList(STEPS.map((name, index) => {
    const state = index < at ? "good" : index === at ? "bad" : "open";
    return [state, ...STEP_WORDS[name], SAID[state]];
  }));
  if (!broken) {
    const proven = row.received !== null;
    const item = make("li", proven ? "good" : "open", make("span", "mark", proven ? "✓" : "–"));
    item.append(proven ? ` Receipt: received ${timeOf(row.received)}` : " Receipt: none, the time is unproven");
    item.firstChild.setAttribute("aria-hidden", "true");
    list.append(item);
  }
  return list;
}

function codeOf(row, codes) {
  const code = row.by === "caller" ? codes.from : row.by === "called" ? codes.to : "";
  return code ? `${code}, ${WHO[row.by]}` : WHO[row.by] || "nobody of this conversation";
}

function detailsOf({ envelope, sig, chain, told }) {
  const at = told.get("accepted_at");
  const details = make("details", "", make("summary", "", "All of it"));
  const rows = [["from", envelope.from, "code"], ["to", envelope.to, "code"], ["ts", `${envelope.ts} (${timeOf(envelope.ts * 1000, 0)})`]];
  if (isCount(at)) rows.push(["accepted_at", `${at} (${timeOf(at)}), as the line says`]);
  rows.push(["sig", typeof sig === "string" ? escaped(sig) : "none", "code"]);
  if (chain) rows.push(["chain", chain, "code"]);
  rows.push(["canonical text", escaped(envelope.canonical), "code"]);
  details.append(facts(rows));
  return details;
}

/** One row of the list. */
function rowOf(row, codes, broken, step) {
  const item = make("li", broken ? "row broken" : "row");
  const title = make("h3", "");
  if (row) {
    const { envelope } = row;
    title.append(`${envelope.n} `, make("b", "", envelope.type), broken ? "" : ` by ${codeOf(row, codes)}`);
    item.append(title);
    if (envelope.body.size) item.append(make("pre", "", make("bdi", "", escaped(pretty(envelope.body)))));
  } else {
    title.append(`Line ${broken.line}`);
    item.append(title);
  }
  if (broken) item.append(make("p", "error", `${broken.code}: ${escaped(broken.message)}`));
  if (row?.warning) item.append(make("p", "warning", row.warning));
  item.append(stepsOf(row, broken, step));
  if (row) item.append(detailsOf(row));
  return item;
}

function headline(verdict) {
  const { broken, rows, conv } = verdict;
  const many = `${rows} envelope${rows === 1 ? "" : "s"}`;
  if (!broken) return `Holds: ${many} of conversation ${conv}`;
  if (broken.code === "not_found") return "There is no envelope in this text";
  return `Breaks at n = ${broken.n} (line ${broken.line}): ${broken.code}`;
}

function summaryOf(verdict, codes) {
  const { broken, rows, parties, received, warnings } = verdict;
  const box = make("div", "");
  if (broken) {
    const why = escaped(broken.message);
    const before = `${rows} envelope${rows === 1 ? "" : "s"} before it hold${rows === 1 ? "s" : ""}`;
    box.append(make("p", "", `${why[0].toUpperCase()}${why.slice(1)}. ${before}; nothing after it was looked at.`));
  }
  if (!rows) return box;
  const proven = received.filter((at) => at !== null);
  const times = proven.length ? `${proven.length} of ${rows} by receipts of the wire, the last ${timeOf(proven.reduce((last, at) => Math.max(last, at)))}` : "unproven: no receipts of a known wire";
  const by = verdict.ended_by_wire ? "by the wire" : "by a party";
  const ending = verdict.ended === null ? "open: no END yet" : `ended ${by}${verdict.ended ? `: ${verdict.ended}` : ""}`;
  box.append(facts([
    ["Caller", `${codes.from ? `${codes.from} ` : ""}${parties[0]}`, "code"],
    ["Called", `${codes.to ? `${codes.to} ` : ""}${parties[1]}`, "code"],
    ["State", ending],
    ["Times", times],
    ["Chain", verdict.chain, "code"],
    ...(warnings.length ? [["Warnings", String(warnings.length)]] : []),
  ]));
  box.append(make("p", "hint", "The desks' codes are what the caller wrote into its CALL; the keys are who signed."));
  return box;
}

/** Show rows a page at a time, each made when it is shown: a long transcript must not stall who reads it. */
function fill(list, rows) {
  const more = $("more");
  const next = () => {
    const from = list.childElementCount;
    for (const row of rows.slice(from, from + PAGE_ROWS)) list.append(row());
    const left = rows.length - list.childElementCount;
    more.hidden = left <= 0;
    more.textContent = `Show ${Math.min(left, PAGE_ROWS)} more of ${left}`;
    if (from) list.children[from]?.querySelector("summary")?.focus();
  };
  list.replaceChildren();
  more.onclick = next;
  next();
}

function say(words, kind) {
  $("status").textContent = words;
  $("status").className = kind;
}

/** Something else is to be judged: from now on no verdict stands here, nor comes, that is of what was judged before. */
function clear(name) {
  ask.run += 1;
  Object.assign(ask, { bytes: null, name: escaped(name) });
  $("result").hidden = false;
  $("report").hidden = true;
  say(`Reading ${ask.name} …`, "busy");
  return ask.run;
}

/** The key or the ref in a field, "" where it is empty, null where it is none: then the field says so. */
function hexIn(id) {
  const text = $(id).value.trim().replace("kestrel://artifact/", "");
  const wrong = text !== "" && !PK.test(text);
  $(`${id}-error`).hidden = !wrong;
  $(id).setAttribute("aria-invalid", String(wrong));
  return wrong ? null : text;
}

async function run() {
  const [wire, ref] = [hexIn("wire"), hexIn("ref")];
  if (!ask.bytes) return;
  const session = isSession(ask.bytes);
  if ((session ? ref : wire) === null) {
    say(`Nothing is verified yet: the ${session ? "ref" : "wire’s key"} that you name is none`, "bad");
    return;
  }
  say(`Verifying ${ask.name} …`, "busy");
  await (session ? runSession(ref) : runTranscript(wire));
}

/** Show a verdict with what it is of: a list of rows, or a table. */
function present(verdict, command, title, summary, table) {
  $("summary").replaceChildren(summary);
  $("rows-title").textContent = title;
  $("rows").hidden = Boolean(table);
  $("events").hidden = !table;
  $("events").replaceChildren(...(table ? [table] : []));
  $("command").textContent = command;
  $("json").textContent = escaped(JSON.stringify(verdict, null, 2));
  $("report").hidden = false;
}

async function runSession(ref) {
  const turn = ask.run;
  let check;
  const verdict = await verifySession(ask.bytes, ref || null, (each) => (check = each));
  if (turn !== ask.run) return;
  const found = eventTable(check, verdict.fault);
  $("rows-title").hidden = !found;
  present(verdict, "turret arena verify", "What happened", sessionSummary(verdict, check), found?.table ?? make("div", ""));
  fill(found?.body ?? make("tbody", ""), found?.rows ?? []);
  say(sessionHeadline(verdict, check), verdict.ok ? "good" : isStrange(verdict, check) ? "open" : "bad");
}

async function runTranscript(wire) {
  const turn = ask.run;
  const seen = [];
  const verdict = await verifyTranscript(ask.bytes, wire ? [wire] : [], (row, step, broken) => {
    seen.push([row, step, broken]);
    if (turn !== ask.run) throw new Error("another run has begun");
  });
  const body = seen.find(([row, , broken]) => row && !broken)?.[0].envelope.body;
  const code = (name) => (/^[A-Z]{4}$/.test(body?.get(name) ?? "") ? body.get(name) : "");
  const codes = { from: code("code_from"), to: code("code_to") };
  $("rows-title").hidden = false;
  present(verdict, "turret verify", "Who said what", summaryOf(verdict, codes), null);
  fill($("rows"), seen.map(([row, step, broken]) => () => rowOf(row, codes, broken, step)));
  say(headline(verdict), verdict.ok ? "good" : "bad");
}

async function start(bytes, name) {
  const turn = clear(name);
  ask.bytes = bytes;
  try {
    await run();
  } catch (fault) {
    if (turn === ask.run) say(`This page has a fault: ${fault.message}`, "bad");
  }
}

async function takeFile(file) {
  if (!file) return;
  const turn = clear(file.name);
  const large = (command) => say(`This file is too large for a browser. Run: ${command} FILE`, "bad");
  if (file.size > MAX_FILE) {
    large("turret verify");
    return;
  }
  const read = await file.arrayBuffer().catch(() => null);
  if (turn !== ask.run) return;
  const bytes = read && new Uint8Array(read);
  if (bytes === null) say("The browser can’t read this file", "bad");
  else if (bytes.length > MAX_SESSION && isSession(bytes)) large("turret arena verify");
  else await start(bytes, file.name);
}

/** A text's bytes; of an artifact without the white space that a paste puts around it. */
function pasted(text) {
  const bytes = encoder.encode(text);
  return isSession(bytes) ? encoder.encode(text.trim()) : bytes;
}

async function begin() {
  const why = await whyUnable();
  $("unable").hidden = !why;
  $("unable").textContent = why;
  $("ask").hidden = Boolean(why);
  if (why) return;
  $("file").addEventListener("change", () => takeFile($("file").files[0]));
  $("paste").addEventListener("click", () => start(pasted($("text").value), "the text"));
  for (const id of ["wire", "ref"]) $(id).addEventListener("change", () => (ask.bytes ? start(ask.bytes, ask.name) : run()));
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    takeFile(event.dataTransfer?.files[0]);
  });
}

globalThis.turret = { verifyTranscript, verifySession, verifySignature, Draws, JsonReader, canonicalText };
begin();
