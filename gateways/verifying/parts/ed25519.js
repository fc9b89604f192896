// Ed25519 by WebCrypto, held to libsodium's strict profile (wire.md, Canonical form): small-order keys and R,
// non-canonical encodings and S ≥ L are refused, whatever the browser thinks of them.

const FIELD = 2n ** 255n - 19n;
const ORDER = 2n ** 252n + 27742317777372353535851937790883648493n;
const EIGHTH = 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n; // y of a point of order 8
const SMALL_ORDER = new Set([0n, 1n, FIELD - 1n, EIGHTH, FIELD - EIGHTH]); // y of all points of small order
const encoder = new TextEncoder();

function bytesOf(hex) {
  return Uint8Array.from({ length: hex.length / 2 }, (_, at) => parseInt(hex.slice(2 * at, 2 * at + 2), 16));
}

function hexOf(bytes) {
  return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
}

async function sha256(bytes) {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
}

function littleEndian(hex) {
  return BigInt(`0x${hex.match(/../g).reverse().join("")}`);
}

/** Whether 64 hex characters are the canonical encoding of something that is no point of small order. */
function isSoundPoint(hex) {
  const y = littleEndian(hex) & (2n ** 255n - 1n);
  return y < FIELD && !SMALL_ORDER.has(y);
}

/** Whether `sig` (128 lowercase hex) is the signature by `pk` (64) over these bytes. Never throws for what they hold. */
async function verifySignature(pk, message, sig) {
  if (!/^[0-9a-f]{64}$/.test(pk) || !/^[0-9a-f]{128}$/.test(sig)) return false;
  if (!isSoundPoint(pk) || !isSoundPoint(sig.slice(0, 64)) || littleEndian(sig.slice(64)) >= ORDER) return false;
  try {
    const key = await crypto.subtle.importKey("raw", bytesOf(pk), { name: "Ed25519" }, false, ["verify"]);
    return await crypto.subtle.verify({ name: "Ed25519" }, key, bytesOf(sig), message);
  } catch {
    return false; // no point of the curve
  }
}

// RFC 8032, test 2; and a signature with parts of small order that only lenient verifiers take (speccheck, case 4).
const GOOD = {
  pk: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
  message: "72",
  sig: "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
};
const LENIENT = {
  pk: "cdb267ce40c5cd45306fa5d2f29731459387dbf9eb933b7bd5aed9a765b88d4d",
  message: "e47d62c63f830dc7a6851a0b1f33ae4bb2f507fb6cffec4011eaccd55b53f56c",
  sig: "160a1cb0dc9c0258cd0a7d23e94d8fa878bcb1925f2c64246b2dee1796bed5125ec6bc982a269b723e0668e540911a9a6a58921d6925e434ab10aa7940551a09",
};

/** Why this browser can't verify, in words; "" where it can. */
async function whyUnable() {
  if (!globalThis.isSecureContext || !globalThis.crypto?.subtle) {
    return "Browsers check signatures only on pages that came safely: by https, from this very machine, or from a file. Save this page, open it from the file, and it will work.";
  }
  if (!String.prototype.isWellFormed || !Object.hasOwn) {
    return "This browser is too old for this page. Use a newer one, or run: turret verify FILE";
  }
  const judge = ({ pk, message, sig }) => verifySignature(pk, bytesOf(message), sig);
  if (!(await judge(GOOD))) {
    return "This browser has no Ed25519 signatures (WebCrypto). Use a newer one (Chrome 137, Firefox 129, Safari 17 or later), or run: turret verify FILE";
  }
  if (await judge(LENIENT)) {
    return "This browser takes signatures that the wire refuses. Use another one, or run: turret verify FILE";
  }
  return "";
}
