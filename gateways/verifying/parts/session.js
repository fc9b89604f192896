// The artifact of a finished session (arena.md, Artifacts): the same checks in the same order, the same names of what does
// not hold and the same words, as broker/core/arenaverify.py; where that tells what msgspec says, we say it plainly.

const KIND = "turret.arena.session";
const MAX_ACTIONS = 2000;
const NEVER = "the commit, the deal, and what each action led to: seed and salt are kept (reveal: never)";
const PERSISTENT = "what else moved the agent's persistent account: only this session is here";
const UNWRITTEN = "it is not written as it is published";
const GAMES = new Map([["hilo 1", HILO], ["rfq 1", RFQ]]);
const SESSION_STEPS = ["form", "rules", "commit", "deal", "events", "result"];

/** Ends a check: what does not hold, and the number of its event (null: of none). */
class Wrong extends Error {
  constructor(what, message, event = null) {
    super(message);
    Object.assign(this, { what, event });
  }
}

const isEntry = (value) => Array.isArray(value) && value.length === 2 && ["player", "house", "mint"].includes(value[0]) && isWhole(value[1]);
const isEntries = (value) => Array.isArray(value) && value.every(isEntry);
const ENDED = form({ over: isText }, { seed: [isText, null], salt: [isText, null] });
const isEnded = (value) => isWritten(value, ENDED);
const EVENTS = {
  opened: form({
    type: isText, game: isText, game_version: isWhole, mode: oneOf("simulation", "persistent"), config: isObject, agent_id: isText,
    games: isWhole, commit: isText, client_seed: isText, facts: () => true, entries: isEntries, balance: isWhole,
  }),
  acted: form(
    { type: isText, action: isObject, balance: isWhole },
    { facts: [() => true, null], entries: [(value) => isEntries(value) && value.length > 0, null], ended: [isEnded, null] },
  ),
  closed: form({ type: isText, ended: isEnded }),
};
const COMMON = { client_seed: orNull(isText), commit: orNull(isText), points: isWhole, reveal: oneOf("on_end", "never") };

const isEvent = (value) => isObject(value) && isText(value.get("type")) && knows(EVENTS, value.get("type")) && isWritten(value, EVENTS[value.get("type")]);
const playersOf = (entries) => entries.reduce((sum, [account, points]) => sum + (account === "player" ? points : 0), 0);
const moved = (from, points) => (points ? [[from, -points], ["player", points]] : []);
const entriesOf = (event) => event.get("entries") ?? [];

/** One check, and how far it came. */
class SessionCheck {
  constructor() {
    Object.assign(this, { ref: "", kind: KIND, events: [], opened: null, live: null, holding: 0, unchecked: [], step: "form" });
  }

  /** Throws Wrong for the first thing that does not hold. */
  async whole(bytes, ref) {
    this.ref = hexOf(await sha256(bytes));
    if (ref !== null && this.ref !== ref) throw new Wrong("ref", `the hash of these bytes is ${this.ref}`);
    const made = this.read(bytes);
    made.get("events").forEach((each, n) => {
      if (!isEvent(each)) throw new Wrong("event", UNWRITTEN, n);
    });
    this.events = made.get("events");
    if (this.events[0]?.get("type") !== "opened") throw new Wrong("order", "the first event is that the session was opened", 0);
    this.opened = Object.fromEntries(this.events[0]);
    const config = this.rules();
    const secret = this.revealed(config);
    const kept = this.opened.mode === "persistent" ? [PERSISTENT] : [];
    this.unchecked = secret ? kept : [NEVER, ...kept];
    this.opening(config);
    const hidden = secret ? await this.dealAgain(config, secret) : null;
    this.begin(config);
    this.step = "events";
    for (let n = 1; n < this.events.length; n += 1) {
      this.follow(this.events[n], n, hidden, secret);
      this.holding = n + 1;
    }
    this.step = "result";
    if (!sameJson(made.get("result"), this.result())) throw new Wrong("result", "the result is not what the events come to");
    this.step = null;
  }

  read(bytes) {
    const { value, fault, text } = readJson(bytes);
    if (fault) throw new Wrong("form", fault);
    if (canonicalText(value) !== text) throw new Wrong("form", "these bytes are not the canonical form (RFC 8785) of their value");
    this.kind = isObject(value) && isText(value.get("kind")) ? value.get("kind") : KIND;
    const members = { kind: isText, format: isWhole, events: Array.isArray, result: () => true };
    if (!isWritten(value, form(members))) throw new Wrong("kind", "this is no artifact of a session: it has other members");
    if (value.get("kind") !== KIND || value.get("format") !== 1) throw new Wrong("kind", `${KIND}, format 1, is what is read here`);
    return value;
  }

  /** The game that is known here, and its config. */
  rules() {
    this.step = "rules";
    const { game, game_version, config, client_seed, commit } = this.opened;
    this.game = GAMES.get(`${game} ${game_version}`);
    if (!this.game) throw new Wrong("game", `${game} ${game_version} is not known here`, 0);
    if (!isWritten(config, form({ ...COMMON, ...this.game.config.members }))) throw new Wrong("config", UNWRITTEN, 0);
    const { points, client_seed: seed, commit: named } = Object.fromEntries(config);
    if (!within(1, 1_000_000)(points) || !(seed === null || within(1, 64)(Array.from(seed).length))) {
      throw new Wrong("config", "the points or the client seed are out of bounds", 0);
    }
    if (seed === null ? !isHex(client_seed) : client_seed !== seed) {
      throw new Wrong("config", "the client seed is not the config's, nor a sha256", 0);
    }
    if (named !== null && named !== commit) throw new Wrong("config", "the config names another commit", 0);
    return Object.fromEntries(config);
  }

  /** Seed and salt, where the config has them shown. */
  revealed({ reveal }) {
    const n = this.events.length - 1;
    const ended = this.events[n].get("ended");
    if (ended === undefined) throw new Wrong("end", "the last event does not end the session", n);
    if (reveal === "never") return null;
    const [seed, salt] = [ended.get("seed"), ended.get("salt")];
    if (!isHex(seed) || !isHex(salt)) throw new Wrong("reveal", "seed and salt are shown at the end, 64 hex characters each", n);
    return { seed, salt };
  }

  /** What the account opens with is the mint's, and in a simulation what the config says. */
  opening({ points }) {
    const { entries, balance, mode, games, commit } = this.opened;
    const change = playersOf(entries);
    if (!sameJson(entries, moved("mint", change))) throw new Wrong("points", "the entries are the mint's and the player's, and sum to 0", 0);
    if (balance <= 0 || !(change === balance || (mode === "persistent" && change === 0))) {
      throw new Wrong("points", "the account opens with what the mint gives it", 0);
    }
    if (mode !== "persistent" && balance !== points) throw new Wrong("points", `a simulation opens with config.points, ${points}`, 0);
    if (games < 0 || games >= Number.MAX_SAFE_INTEGER) throw new Wrong("commit", "an agent's sessions are numbered from 0", 0);
    if (!isHex(commit)) throw new Wrong("commit", "a commit is a sha256", 0);
  }

  async dealAgain(config, secret) {
    const { agent_id, games, commit, game, game_version, client_seed, facts } = this.opened;
    this.step = "commit";
    if ((await commitOf(secret, agent_id, games)) !== commit) {
      throw new Wrong("commit", "seed, salt, agent and number make another commit", 0);
    }
    this.step = "deal";
    const hidden = await this.game.deal(config, await Draws.of(secret.seed, game, game_version, client_seed));
    if (!sameJson(this.game.first(config, hidden), facts)) throw new Wrong("deal", "seed and client seed deal other facts", 0);
    return hidden;
  }

  begin(config) {
    const { facts, balance } = this.opened;
    this.step = "deal";
    const state = isWritten(facts, this.game.facts) ? this.game.begin(config, facts) : null;
    if (state === null) throw new Wrong("deal", "the game can't follow these facts", 0);
    this.live = { state, balance, net: 0n, ended: null };
    this.holding = 1;
  }

  /** The state after an event that holds. */
  follow(event, n, hidden, secret) {
    if (event.get("type") === "opened") throw new Wrong("order", "a session is opened once", n);
    if (this.live.ended) throw new Wrong("order", "nothing follows the end of a session", n);
    const ended = event.get("ended") ?? null;
    if (event.get("type") === "closed") {
      if (!sameJson(ended, endedOf("expired", secret))) {
        throw new Wrong("end", "a session that nobody ended has expired, with the secret as its config says", n);
      }
      this.live = { ...this.live, ended };
      return;
    }
    const before = this.pointsBefore(event, n);
    if (secret) this.compare(event, this.act(event, hidden, secret, before, n), n);
    else this.likely(event, n);
    const facts = event.get("facts") ?? null;
    const state = facts === null ? this.live.state : this.game.fold(this.live.state, facts);
    if (state === null) throw new Wrong("facts", "the game can't follow these facts", n);
    const net = this.live.net + BigInt(playersOf(entriesOf(event))); // of a hidden game it may be beyond a double
    this.live = { state, balance: event.get("balance"), net, ended };
  }

  /** The points with which an action was done, by its own entries; in a simulation those that there were. */
  pointsBefore(event, n) {
    const [entries, balance] = [entriesOf(event), event.get("balance")];
    const change = playersOf(entries);
    if (!sameJson(entries, moved("house", change))) throw new Wrong("points", "the entries are the house's and the player's, and sum to 0", n);
    const before = BigInt(balance) - BigInt(change); // of somebody else's account it may be beyond a double
    if (balance < 0 || before < 0n) throw new Wrong("points", "the account is below 0", n);
    if (this.opened.mode === "simulation" && before !== BigInt(this.live.balance)) {
      throw new Wrong("points", `the account had ${this.live.balance} points, and not ${before}`, n);
    }
    return before;
  }

  /** What an action leads to. */
  act(event, hidden, secret, points, n) {
    const action = event.get("action");
    if (isStop(action)) return { facts: null, change: 0, points, ended: endedOf("stopped", secret) };
    if (!this.game.action(action)) throw new Wrong("action", UNWRITTEN, n);
    const step = this.game.apply(this.live.state, hidden, action, Number(points));
    if (step.no) throw new Wrong("action", step.no, n);
    const change = Math.max(step.change, -Number(points));
    const over = step.over ?? (n >= MAX_ACTIONS ? "actions" : null);
    return { facts: step.facts, change, points: points + BigInt(change), ended: over === null ? null : endedOf(over, secret) };
  }

  /** An event is what its action leads to. */
  compare(event, made, n) {
    if (!sameJson(event.get("facts") ?? null, made.facts)) throw new Wrong("facts", "the action leads to other facts", n);
    if (!sameJson(entriesOf(event), moved("house", made.change))) { // the balance is what they make of it
      throw new Wrong("points", `the action leaves ${made.points} points`, n);
    }
    if (!sameJson(event.get("ended") ?? null, made.ended)) {
      throw new Wrong("end", "the session is over when the game says so, with the secret of all of it", n);
    }
  }

  /** What an event must be whatever was hidden. */
  likely(event, n) {
    const [ended, facts] = [event.get("ended") ?? null, event.get("facts") ?? null];
    if (ended?.has("seed") || ended?.has("salt")) throw new Wrong("reveal", "seed and salt are kept (reveal: never)", n);
    if (n >= MAX_ACTIONS && !ended) throw new Wrong("end", `a session is over after ${MAX_ACTIONS} actions`, n);
    if (isStop(event.get("action"))) {
      if (facts !== null || entriesOf(event).length || ended?.get("over") !== "stopped") {
        throw new Wrong("end", "to stop shows nothing, moves nothing, and ends the session", n);
      }
      return;
    }
    if (!this.game.action(event.get("action"))) throw new Wrong("action", UNWRITTEN, n);
    if (!isWritten(facts, this.game.facts)) throw new Wrong("facts", UNWRITTEN, n);
  }

  result() {
    const actions = this.events.filter((each) => each.get("type") === "acted").length;
    const { ended, net, balance } = this.live;
    return mapOf({ over: ended.get("over"), actions, net: Number(net), balance });
  }

  /** The verdict, as `turret arena verify --json` gives it. */
  verdict(wrong) {
    const fault = wrong && { what: wrong.what, message: wrong.message, ...(wrong.event === null ? {} : { event: wrong.event }) };
    const { game, game_version, agent_id, mode } = this.opened ?? {};
    const { ended, net, balance } = this.live ?? {};
    return {
      ok: !fault,
      ref: this.ref,
      ...(this.holding ? { events: this.holding } : {}),
      ...(fault ? { fault } : {}),
      ...(this.unchecked.length ? { unchecked: this.unchecked } : {}),
      ...(this.opened ? { game, game_version, agent_id, mode } : {}),
      ...(!fault ? { over: ended.get("over"), net: Number(net), balance } : {}),
    };
  }
}

const isStop = (action) => action.size === 1 && action.get("type") === "stop";

/** How a session ends: with its secret, where that is shown. */
function endedOf(over, secret) {
  return mapOf(secret ? { over, ...secret } : { over });
}

function readJson(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return { fault: "this is not UTF-8" };
  }
  const { value, fault } = new JsonReader(text).read();
  return fault ? { fault: fault.message } : { value, text };
}

/** Check an artifact; with `ref` also that it is the one of that name. `see(check)` gets what was looked at. */
async function verifySession(bytes, ref = null, see = () => {}) {
  const check = new SessionCheck();
  let wrong = null;
  try {
    await check.whole(bytes, ref);
  } catch (fault) {
    if (!(fault instanceof Wrong)) throw fault;
    wrong = fault;
  }
  see(check);
  return check.verdict(wrong);
}
