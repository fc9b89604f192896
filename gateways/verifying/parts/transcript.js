// The walk over a whole transcript (wire.md, Chain). As broker/wire/chain.py: the same steps in the same order, the same
// codes and words. It stops at the first step that does not hold; after it nothing is believed.

const MAX_LINE = 1024 * 1024;
const STEPS = ["form", "signature", "place", "link", "turn", "line"];

/** What is checked at each row, in order: the walk's `step` says how far it came. */
class Walk {
  constructor(wires) {
    this.trusted = wires;
    this.due = 0;
    this.first = null;
    this.prevSig = "";
    this.chain = null;
    this.ended = null;
    this.endedByWire = false;
    this.warnings = [];
    this.received = [];
    this.spoken = new Map();
    this.step = "form";
  }

  get wires() {
    const named = this.first?.body.get("wire");
    return typeof named === "string" ? new Set([...this.trusted, named]) : this.trusted;
  }

  /** One line; the row where it holds. Throws Break. */
  async take(bytes) {
    this.step = "form";
    const { text, told } = readLine(bytes);
    const envelope = readEnvelope(text);
    const sig = told.get("sig");
    const row = { envelope, sig, told, by: "", received: null, warning: "" };
    this.reading = row;
    if (typeof sig !== "string" || !SIG.test(sig)) {
      throw new Break("bad_signature", "sig is not 128 lowercase hex characters");
    }
    this.step = "signature";
    if (!(await verifySignature(envelope.from, envelope.bytes, sig))) {
      throw new Break("bad_signature", "the signature does not verify over the canonical text");
    }
    const first = this.first ?? envelope;
    this.step = "place";
    this.checkPlace(envelope, first);
    this.step = "link";
    const start = await sha256(encoder.encode(`cdp:${envelope.conv}`));
    if (envelope.prev_sig !== (this.due ? this.prevSig : hexOf(start))) {
      throw new Break("bad_prev_sig", "prev_sig is not the previous envelope's signature");
    }
    const before = this.first;
    this.first = first; // what CALL names as its wire counts for CALL too
    try {
      this.step = "turn";
      row.by = this.checkParties(envelope, first);
      this.step = "line";
      const chain = this.due ? await sha256(new Uint8Array([...this.chain, ...bytesOf(sig)])) : start;
      this.compare(row, hexOf(chain));
      row.chain = hexOf(chain);
      await this.note(row);
      this.chain = chain;
    } catch (fault) {
      this.first = before;
      throw fault;
    }
    this.prevSig = sig;
    this.due += 1;
    if (envelope.type === "END") {
      const reason = envelope.body.get("reason");
      this.ended = typeof reason === "string" ? shown(reason) : "";
      this.endedByWire = row.by === "wire";
    }
    return row;
  }

  checkPlace(envelope, first) {
    if (this.ended !== null) throw new Break("conv_ended", "nothing stands after an END");
    if (envelope.conv !== first.conv) throw new Break("bad_envelope", "conv: another conversation's envelope");
    if (envelope.n !== this.due) throw new Break("conflict", `n is ${envelope.n} where ${this.due} is due`);
  }

  /** Who wrote it: "caller", "called", or "wire" for the wire's own END. */
  checkParties(envelope, first) {
    const parties = [first.from, first.to];
    const byWire = !parties.includes(envelope.from);
    if (byWire && envelope.type !== "END") throw new Break("not_a_party", "from is not a party of this conversation");
    if (byWire && !this.wires.has(envelope.from)) {
      throw new Break("unknown_wire_key", "an END by a key that no CALL and no caller names as the wire's");
    }
    if (!parties.includes(envelope.to)) {
      throw new Break("not_a_party", "to is not the other party of this conversation");
    }
    if (!byWire && envelope.type !== "END" && envelope.from !== parties[envelope.n % 2]) {
      throw new Break("out_of_turn", "the other party was to speak");
    }
    const fault = typeFault(this.due, envelope.type);
    if (fault) throw new Break("bad_envelope", `type: ${fault}`);
    return byWire ? "wire" : envelope.from === first.from ? "caller" : "called";
  }

  /** What the line says beside the envelope must agree with it. */
  compare({ envelope, told }, chain) {
    const differs = (name, value) => told.has(name) && told.get(name) !== value;
    if (differs("n", envelope.n)) throw new Break("bad_request", "the line's n is not the envelope's");
    if (differs("conv", envelope.conv)) throw new Break("bad_request", "the line's conv is not the envelope's");
    if (differs("chain", chain)) throw new Break("bad_chain", "chain is not the hash of this transcript");
    if (differs("canonical", envelope.canonical)) {
      throw new Break("bad_envelope", "the line's canonical text is not the envelope's");
    }
    if (told.has("accepted_at") && !isCount(told.get("accepted_at"))) {
      throw new Break("bad_request", "accepted_at is not in Unix milliseconds");
    }
  }

  /** Warnings and receipts of a row that holds. */
  async note(row) {
    const { envelope, told } = row;
    row.received = await this.receiptTime(row);
    this.received.push(row.received);
    const until = this.spoken.get(envelope.to)?.body.get("valid_until_ms");
    const at = told.has("accepted_at") ? told.get("accepted_at") : envelope.ts * 1000;
    if (TIMED.has(envelope.type) && Number.isInteger(until) && at > until) {
      row.warning = `${envelope.type} came ${at - until} ms after valid_until_ms`;
      this.warnings.push({ n: envelope.n, message: row.warning });
    }
    if (envelope.type !== "CHAT") this.spoken.set(envelope.from, envelope); // a chat renews nothing
  }

  /** When the wire says that it received this row, by a receipt that is exactly this row's; null: unproven. */
  async receiptTime({ envelope, sig, chain, told }) {
    const receipt = told.get("receipt");
    const said = receipt instanceof Map ? receipt.get("receipt") : undefined;
    if (!(said instanceof Map)) return null;
    const [wire, at, proof] = [said.get("wire"), said.get("accepted_at"), receipt.get("sig")];
    if (typeof wire !== "string" || !this.wires.has(wire) || typeof proof !== "string") return null;
    if (!Number.isInteger(at) || (told.has("accepted_at") && told.get("accepted_at") !== at)) return null;
    const due = { do: "receipt", wire, conv: envelope.conv, n: envelope.n, sig, chain, accepted_at: at };
    const text = canonicalText(new Map(Object.entries(due)));
    if (canonicalText(said) !== text) return null;
    return (await verifySignature(wire, encoder.encode(text), proof)) ? at : null;
  }

  /** The verdict, as `turret verify --json` gives it. */
  verdict(broken) {
    return {
      ok: broken === null,
      rows: this.due,
      conv: this.first?.conv ?? null,
      parties: this.first ? [this.first.from, this.first.to] : [],
      ended: this.ended,
      ended_by_wire: this.endedByWire,
      chain: this.chain ? hexOf(this.chain) : null,
      broken,
      warnings: this.warnings,
      received: this.received,
    };
  }
}

/** The lines of a file with their numbers from 1: cut after each line feed, and where one gets endless. */
function* linesOf(bytes) {
  for (let from = 0, number = 1; from < bytes.length; number += 1) {
    const feed = bytes.indexOf(10, from);
    const end = Math.min(feed < 0 ? bytes.length : feed + 1, from + MAX_LINE);
    yield [number, bytes.subarray(from, end)];
    from = end;
  }
}

const isEmpty = (line) => line.every((byte) => byte === 32 || (byte >= 9 && byte <= 13));

/** Walk an export. `see(row)` gets each row that holds, `see(row, step, broken)` the one that does not. */
async function verifyTranscript(bytes, wires = [], see = () => {}) {
  const walk = new Walk(new Set(wires));
  for (const [number, line] of linesOf(bytes)) {
    if (isEmpty(line)) continue;
    walk.reading = null;
    try {
      see(await walk.take(line));
    } catch (fault) {
      if (!(fault instanceof Break)) throw fault;
      const broken = { n: walk.due, line: number, code: fault.code, message: fault.message };
      see(walk.reading, walk.step, broken);
      return walk.verdict(broken);
    }
  }
  if (walk.due) return walk.verdict(null);
  return walk.verdict({ n: 0, line: 0, code: "not_found", message: "there is no envelope" });
}
