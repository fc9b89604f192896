// How a session's artifact is shown: the verdict, what was checked, and a row for each event. All of it as text.

const SESSION_WORDS = {
  form: ["Form", "canonical JSON, and events as the broker writes them"],
  rules: ["Game", "a game that this page knows, its config, and what the account opens with"],
  commit: ["Commit", "seed and salt make the commit that stood there before the client seed"],
  deal: ["Deal", "seed and client seed deal what the session opened with"],
  events: ["Events", "each action, what it showed and each balance, played again"],
  result: ["Result", "what the events come to"],
};
const OVER = {
  stopped: "the player stopped",
  expired: "nobody acted any more",
  actions: "no more actions are allowed",
  bust: "the points did not suffice any more",
  shoe_empty: "the last card was turned",
  tape_over: "the last request was answered",
};

/** Whether bytes are meant as an artifact: no line of a transcript has these members. */
function isSession(bytes) {
  return /^\s*\{\s*"(events|format|kind|result)"/.test(new TextDecoder().decode(bytes.subarray(0, 4096)));
}

/** Whether it may well be sound, but of a game or a kind that this page knows nothing of. */
const isStrange = ({ fault }, { kind }) => fault?.what === "game" || (fault?.what === "kind" && kind !== KIND);
const gameOf = ({ game, game_version }) => escaped(`${game} ${game_version}`);

function sessionHeadline(verdict, check) {
  const { ok, fault, unchecked } = verdict;
  if (ok) {
    const many = check.events.length - 1;
    const played = `${gameOf(verdict)}, ${many} event${many === 1 ? "" : "s"} after the opening`;
    return unchecked?.includes(NEVER) ? `Holds as far as it can be checked: ${played}` : `Holds: ${played}`;
  }
  if (fault.what === "game") return `Can’t be judged here: this page does not know the game ${gameOf(verdict)}`;
  if (isStrange(verdict, check)) return `Can’t be judged here: this page does not know artifacts of the kind ${escaped(shown(check.kind))}`;
  return fault.event === undefined ? `Breaks: ${fault.what}` : `Breaks at event ${fault.event}: ${fault.what}`;
}

/** What is said under the headline where it does not hold. */
function sessionFault({ fault }, { holding, kind }) {
  if (isStrange({ fault }, { kind })) {
    if (fault.what === "kind") return ["Its bytes are canonical JSON, and have the ref that stands here. Nothing else was looked at."];
    return ["Its form holds, and nothing else was looked at. Where this game is played, it can be judged: ", make("code", "", "turret arena verify FILE")];
  }
  const why = escaped(fault.message);
  const before = holding ? ` ${holding} event${holding === 1 ? "" : "s"} before it hold${holding === 1 ? "s" : ""}.` : "";
  return [`${why[0].toUpperCase()}${why.slice(1)}.${before} Nothing after it was looked at.`];
}

function sessionSteps(check, fault) {
  const hidden = check.unchecked.includes(NEVER) ? ["commit", "deal"] : [];
  const at = fault ? SESSION_STEPS.indexOf(check.step) : SESSION_STEPS.length;
  const strange = isStrange({ fault }, check);
  return stepList(SESSION_STEPS.map((name, index) => {
    const bad = index === at && !strange;
    const kept = index < at && hidden.includes(name);
    const state = bad ? "bad" : index >= at || kept ? "open" : "good";
    const [word, hint] = SESSION_WORDS[name];
    return [state, kept ? `${word} (kept)` : word, hint, kept ? "can’t be checked" : SAID[state]];
  }));
}

function sessionSummary(verdict, check) {
  const { ok, ref, unchecked, mode, agent_id, net, balance, over } = verdict;
  const box = make("div", "");
  if (!ok) box.append(make("p", "", ...sessionFault(verdict, check)));
  box.append(sessionSteps(check, verdict.fault));
  if (unchecked) {
    box.append(make("p", "", "Nobody can check by this file:"), make("ul", "", ...unchecked.map((each) => make("li", "", each))));
  }
  const rows = [["Ref", ref, "code"]];
  if (check.opened) rows.push(["Game", `${gameOf(verdict)}, ${mode}`], ["Agent", escaped(agent_id), "code"]);
  if (ok) {
    const why = Object.hasOwn(OVER, over) ? OVER[over] : escaped(over);
    rows.push(["Over", why], ["Points", `${signed(net)}, and ${balance} on the account at the end`]);
  }
  box.append(facts(rows));
  return box;
}

const signed = (points) => (points > 0 ? `+${points}` : String(points).replace("-", "−"));

/** The members of an object in one line. */
function inLine(value) {
  if (!isObject(value)) return value === null ? "" : escaped(canonicalText(value));
  const rows = [...value].filter(([name]) => name !== "type").map(([name, each]) => `${name} ${isText(each) ? each : canonicalText(each)}`);
  return escaped(rows.join(", "));
}

const cell = (tag, ...children) => make(tag, "", ...children);

/** An event as a row: its number, what was done, what it showed, the points it moved, the balance. */
function eventRow(event, n, wrong) {
  const type = event.get("type");
  const action = event.get("action") ?? new Map();
  const done = isText(action.get("type")) ? `${escaped(action.get("type"))} ${inLine(action)}` : type;
  const ended = event.get("ended");
  const shownFacts = [inLine(event.get("facts") ?? null), ended ? `over: ${escaped(ended.get("over"))}` : ""].filter(Boolean).join("; ");
  const row = make("tr", wrong ? "broken" : "", cell("th", String(n)), cell("td", done.trim()), cell("td", shownFacts));
  row.firstChild.scope = "row";
  row.append(cell("td", signed(playersOf(entriesOf(event)))), cell("td", String(event.get("balance") ?? "")));
  if (wrong) row.children[1].append(make("p", "error", `✗ ${wrong.what}`));
  return row;
}

/** A table for the events that hold and the one that does not; null where none can be shown. */
function eventTable(check, fault) {
  const count = fault?.event === undefined ? check.holding : Math.max(check.holding, fault.event + 1);
  const shown = check.opened ? check.events.slice(0, count) : [];
  if (!shown.length) return null;
  const names = ["Event", "What was done", "What it showed", "Points", "Balance"];
  const head = make("tr", "", ...names.map((each) => Object.assign(cell("th", each), { scope: "col" })));
  const body = make("tbody", "");
  const rows = shown.map((event, n) => () => eventRow(event, n, fault?.event === n && fault.what !== "game" ? fault : null));
  return { table: make("table", "", make("thead", "", head), body), body, rows };
}
