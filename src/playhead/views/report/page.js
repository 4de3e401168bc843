// Check every line again where it is read: its own hash, the one before it, its number. Hashing is here, since
// browsers have none of their own for a page that is a file.
"use strict";
const K = (() => { const found = []; let candidate = 2;
  while (found.length < 64) { let prime = true;
    for (let d = 2; d * d <= candidate; d++) if (candidate % d === 0) { prime = false; break; }
    if (prime) { const root = Math.cbrt(candidate); found.push(Math.floor((root - Math.floor(root)) * 4294967296) | 0); }
    candidate++; }
  return found; })();
function utf8(text) { const out = []; for (const letter of text) { const c = letter.codePointAt(0);
  if (c < 0x80) out.push(c); else if (c < 0x800) out.push(0xc0 | c >> 6, 0x80 | c & 63);
  else if (c < 0x10000) out.push(0xe0 | c >> 12, 0x80 | c >> 6 & 63, 0x80 | c & 63);
  else out.push(0xf0 | c >> 18, 0x80 | c >> 12 & 63, 0x80 | c >> 6 & 63, 0x80 | c & 63); } return out; }
function sha256(bytes) {
  const h = [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19].map(x => x | 0);
  const length = bytes.length, total = ((length + 8 >> 6) + 1) * 64, padded = new Uint8Array(total);
  padded.set(bytes); padded[length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(total - 8, Math.floor(length / 536870912)); view.setUint32(total - 4, length << 3 >>> 0);
  const w = new Int32Array(64), turn = (x, n) => x >>> n | x << 32 - n;
  for (let at = 0; at < total; at += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i++) { const a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >>> 3) + w[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >>> 10) | 0; }
    let [a, b, c, d, e, f, g, k] = h;
    for (let i = 0; i < 64; i++) {
      const one = k + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + (e & f ^ ~e & g) + K[i] + w[i] | 0;
      const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + (a & b ^ a & c ^ b & c) | 0;
      k = g; g = f; f = e; e = d + one | 0; d = c; c = b; b = a; a = one + two | 0; }
    [a, b, c, d, e, f, g, k].forEach((x, i) => { h[i] = h[i] + x | 0; }); }
  return h.map(x => (x >>> 0).toString(16).padStart(8, "0")).join("");
}
function check(id, lines) {
  let before = sha256(utf8("playhead/run/v1\0" + id));
  for (let seq = 0; seq < lines.length; seq++) {
    const bytes = utf8(lines[seq]), end = String.fromCharCode(...bytes.slice(-75));
    const hash = end.slice(9, 73);
    if (!/^,"hash":"[0-9a-f]{64}"\}$/.test(end) || sha256(bytes.slice(0, -75)) !== hash) return { seq, why: "its content is not what was sealed" };
    const tail = String.fromCharCode(...bytes.slice(-149, -75));
    if (tail !== ',"prev":"' + before + '"') return { seq, why: "it does not follow the event before it" };
    if (!lines[seq].startsWith('{"v":1,"run":' + JSON.stringify(id) + ',"seq":' + seq + ',')) return { seq, why: "it is not event " + seq + " of this run" };
    before = hash;
  }
  return null;
}
function begin() {
  const data = JSON.parse(document.getElementById("data").textContent);
  data.runs.forEach((run, number) => {
    const place = document.getElementById("checked-" + number);
    const wrong = check(run.id, run.lines);
    if (wrong) {
      place.className = "bad";
      place.textContent = "broken, as this page finds: event " + wrong.seq + ": " + wrong.why;
      const event = document.getElementById("e" + number + "-" + wrong.seq);
      if (event) { event.open = true; event.querySelector("summary").className = "bad"; }
    } else {
      place.className = "ok";
      place.textContent = "this page has checked " + run.lines.length + " lines: each is as sealed, and follows the one before" +
        (run.lines_left_out ? "; " + run.lines_left_out + " more are not in it" : "");
    }
  });
  const filter = document.getElementById("filter");
  if (filter) filter.addEventListener("input", () => {
    const wanted = filter.value.toLowerCase();
    document.querySelectorAll(".event").forEach(one => one.classList.toggle("hidden", !one.textContent.toLowerCase().includes(wanted)));
  });
  const show = () => { const found = document.getElementById(location.hash.slice(1)); if (found && found.tagName === "DETAILS") found.open = true; };
  window.addEventListener("hashchange", show); show();
}
if (typeof document !== "undefined") begin();
