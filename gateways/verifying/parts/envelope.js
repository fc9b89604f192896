// The envelope: eight members, read strictly (wire.md, Envelope). As broker/wire/envelope.py, in the same words.

const MAX_BODY = 8192;
const PK = /^[0-9a-f]{64}$/;
const SIG = /^[0-9a-f]{128}$/;
const TIMED = new Set(["HIT", "ACCEPT", "CONFIRM"]);

/** Ends a walk at a step, with a refusal's code. */
class Break extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const matches = (pattern) => (value) => typeof value === "string" && pattern.test(value);
const isCount = (value) => Number.isInteger(value) && value >= 0 && value <= Number.MAX_SAFE_INTEGER;
const MEMBERS = new Map([
  ["conv", [matches(/^[0-9a-f]{16}$/), "16 lowercase hex characters"]],
  ["n", [isCount, "an integer from 0"]],
  ["type", [matches(/^[A-Z][A-Z0-9_]{0,31}$/), "a capital letter, then at most 31 of A-Z, 0-9 and _"]],
  ["from", [matches(PK), "64 lowercase hex characters"]],
  ["to", [matches(PK), "64 lowercase hex characters"]],
  ["ts", [isCount, "whole Unix seconds"]],
  ["prev_sig", [matches(/^(?:[0-9a-f]{64}|[0-9a-f]{128})$/), "64 or 128 lowercase hex characters"]],
  ["body", [(value) => value instanceof Map, "a JSON object"]],
]);

/** The envelope in a JSON text: its members, its canonical text, and that in bytes. Throws Break. */
function readEnvelope(text) {
  const { value, fault } = new JsonReader(text).read();
  const bad = (path, message) => new Break("bad_envelope", path ? `${path}: ${message}` : message);
  if (fault) throw fault.path === null ? new Break("bad_request", fault.message) : bad(fault.path, fault.message);
  if (!(value instanceof Map)) throw bad("", "an envelope is a JSON object");
  for (const name of value.keys()) {
    if (!MEMBERS.has(name)) throw bad(shown(name), "no member of an envelope");
  }
  for (const [name, [holds, form]] of MEMBERS) {
    if (!value.has(name)) throw bad(name, "this member is missing");
    if (!holds(value.get(name))) throw bad(name, `must be ${form}`);
  }
  const envelope = Object.fromEntries(value);
  if (envelope.prev_sig.length !== (envelope.n ? 128 : 64)) {
    const form = envelope.n ? "the previous envelope's sig (128 characters)" : "the bootstrap (64 characters)";
    throw bad("prev_sig", `must be ${form}`);
  }
  if (encoder.encode(canonicalText(envelope.body)).length > MAX_BODY) {
    throw new Break("too_large", "the body is too large");
  }
  if (envelope.from === envelope.to) throw bad("to", "from and to are the same key");
  envelope.canonical = canonicalText(value);
  envelope.bytes = encoder.encode(envelope.canonical);
  return envelope;
}

/** The place of a type in a call's life; the sentence that says where it belongs, or "". */
function typeFault(n, type) {
  if (n === 0) return type === "CALL" ? "" : "n = 0 is CALL";
  if (n === 1) return type === "PICKUP" || type === "END" ? "" : "n = 1 is PICKUP or END";
  return type === "CALL" || type === "PICKUP" ? "CALL is n = 0 and PICKUP is n = 1, and only there" : "";
}

/** What a transcript's line says: the envelope's text, and the other members as values. Throws Break. */
function readLine(bytes) {
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new Break("bad_request", "this is not UTF-8");
  }
  const { slices, fault } = new JsonReader(text, { members: true }).read();
  if (fault) throw new Break("bad_request", fault.message);
  if (!slices.has("envelope")) throw new Break("bad_envelope", "the line has no envelope");
  const compared = ["sig", "n", "conv", "chain", "accepted_at", "canonical", "receipt"];
  const passedOver = ["envelope", "resubmitted", "replayed", "cursor", "own"];
  const names = [...slices.keys()].filter((name) => !passedOver.includes(name));
  for (const name of names) {
    if (!compared.includes(name)) throw new Break("bad_request", `${shown(name)}: no member of an export`);
  }
  const told = new Map();
  for (const name of names) {
    const read = new JsonReader(slices.get(name)).read();
    if (read.fault) throw new Break("bad_request", read.fault.message);
    told.set(name, read.value);
  }
  return { text: slices.get("envelope"), told };
}
