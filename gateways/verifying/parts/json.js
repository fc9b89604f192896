// JSON as the wire reads it (wire.md, Canonical form): what is not JSON has a fault without a path; what is JSON but
// forbidden has the path of the first forbidden thing; the grammar is judged to the end before anything is forbidden.
// The same judge as broker/wire/grammar.py, in the same words. No recursion while reading.

const MAX_DEPTH = 32;
const MAX_SHOWN = 200;
const NOT_JSON = { message: "this is not JSON", path: null };
const UNPRINTABLE = /[\p{C}\p{Z}]/gu;
const ESCAPED = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

/** A text from outside, fit for one line: cut, and without controls or lone surrogates. */
function shown(text) {
  const cut = Array.from(text).slice(0, MAX_SHOWN).join("");
  return cut.replace(UNPRINTABLE, (each) => (each === " " ? each : "?"));
}

/** One pass over a text. `members`: only the names of the root object are judged, its values for grammar alone. */
class JsonReader {
  constructor(text, { members = false } = {}) {
    this.text = text;
    this.members = members;
    this.pos = 0;
    this.stack = [];
    this.fault = null;
    this.slices = new Map();
  }

  /** {value} or {fault}; with `members` {slices}: name → the text of its value. */
  read() {
    this.white();
    if (this.members && this.text[this.pos] !== "{") this.forbid("an object is expected here");
    const root = this.run();
    if (root === undefined) return { fault: NOT_JSON };
    if (this.fault) return { fault: this.fault };
    return this.members ? { slices: this.slices } : { value: root.value };
  }

  run() {
    for (;;) {
      const found = this.value();
      if (found === undefined) return undefined;
      if (found === null) continue; // a level was opened
      const root = this.close(found);
      if (root === undefined) return undefined;
      if (root === null) continue;
      this.white();
      return this.pos === this.text.length ? root : undefined;
    }
  }

  forbid(message) {
    this.fault ??= { message, path: this.path() };
  }

  path() {
    const parts = [];
    let size = 0;
    for (const level of this.stack) {
      const part = level.names ? level.name : `[${level.index}]`;
      parts.push(level.names && parts.length ? `.${part}` : part);
      size += part.length;
      if (size > 2 * MAX_SHOWN) break;
    }
    return shown(parts.join(""));
  }

  get judged() {
    return !this.members;
  }

  white() {
    while (" \t\n\r".includes(this.text[this.pos] || "x")) this.pos += 1;
  }

  /** {value} where one is complete; null where a level was opened; undefined: not JSON. */
  value() {
    this.white();
    if (this.members && this.stack.length === 1) this.stack[0].start = this.pos;
    const mark = this.text[this.pos];
    if (mark === "{" || mark === "[") return this.open(mark === "{");
    if (mark === '"') {
      const text = this.string();
      if (text !== undefined && this.judged && !text.isWellFormed()) this.forbid("a lone surrogate");
      return text === undefined ? undefined : { value: text };
    }
    return this.word() ?? this.number();
  }

  open(isObject) {
    if (this.judged && this.stack.length === MAX_DEPTH) this.forbid(`nested deeper than ${MAX_DEPTH}`);
    this.pos += 1;
    this.stack.push({ names: isObject, name: "", index: 0, start: 0, value: isObject ? new Map() : [] });
    this.white();
    if (this.text[this.pos] === (isObject ? "}" : "]")) {
      this.pos += 1;
      return { value: this.stack.pop().value };
    }
    return isObject ? this.name() : null;
  }

  /** A member's name and its colon: null; undefined: not JSON. */
  name() {
    this.white();
    const name = this.text[this.pos] === '"' ? this.string() : undefined;
    this.white();
    if (name === undefined || this.text[this.pos] !== ":") return undefined;
    this.pos += 1;
    const level = this.stack[this.stack.length - 1];
    if (this.judged || this.stack.length === 1) {
      level.name = name;
      if (!name.isWellFormed()) this.forbid("a lone surrogate in a name");
      else if (level.value.has(name)) this.forbid("a name used twice");
    }
    return null;
  }

  /** After a complete value: {value} of the root, null where another value is due, undefined: not JSON. */
  close(found) {
    while (this.stack.length) {
      const level = this.stack[this.stack.length - 1];
      if (this.members && this.stack.length === 1) {
        this.slices.set(level.name, this.text.slice(level.start, this.pos));
      }
      if (level.names) level.value.set(level.name, found.value);
      else level.value.push(found.value);
      this.white();
      const mark = this.text[this.pos];
      this.pos += 1;
      if (mark === ",") {
        level.index += 1;
        return level.names ? this.name() : null;
      }
      if (mark !== (level.names ? "}" : "]")) return undefined;
      found = { value: this.stack.pop().value };
    }
    return found;
  }

  word() {
    for (const [word, value] of [["true", true], ["false", false], ["null", null]]) {
      if (this.text.startsWith(word, this.pos)) {
        this.pos += word.length;
        return { value };
      }
    }
    return undefined;
  }

  number() {
    const pattern = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
    pattern.lastIndex = this.pos;
    const match = pattern.exec(this.text);
    if (match === null) return undefined;
    this.pos = pattern.lastIndex;
    const value = Number(match[0]);
    const beyond = Math.abs(value) > Number.MAX_SAFE_INTEGER;
    if (this.judged && beyond) this.forbid("a number beyond ±(2^53−1); write amounts as strings");
    return { value: value + 0 }; // −0 is 0, as RFC 8785 prints it
  }

  string() {
    const parts = [];
    let from = this.pos + 1;
    for (let at = from; ; at += 1) {
      const code = this.text.charCodeAt(at);
      if (!(code >= 0x20)) return undefined; // a control, or the text's end (NaN)
      if (code === 0x22) {
        parts.push(this.text.slice(from, at));
        this.pos = at + 1;
        return parts.join("");
      }
      if (code !== 0x5c) continue;
      parts.push(this.text.slice(from, at));
      const letter = this.text[at + 1];
      const hex = this.text.slice(at + 2, at + 6);
      if (letter === "u" && /^[0-9a-fA-F]{4}$/.test(hex)) {
        parts.push(String.fromCharCode(parseInt(hex, 16)));
        at += 5;
      } else if (letter !== undefined && Object.hasOwn(ESCAPED, letter)) {
        parts.push(ESCAPED[letter]);
        at += 1;
      } else {
        return undefined;
      }
      from = at + 1;
    }
  }
}

/** The RFC 8785 text of a value that JsonReader has read without a fault. */
function canonicalText(value) {
  if (value instanceof Map) {
    const names = [...value.keys()].sort(); // by UTF-16 code units
    return `{${names.map((name) => `${JSON.stringify(name)}:${canonicalText(value.get(name))}`).join(",")}}`;
  }
  if (Array.isArray(value)) return `[${value.map(canonicalText).join(",")}]`;
  return JSON.stringify(value);
}
