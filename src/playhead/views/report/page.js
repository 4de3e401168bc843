// Check every line again where it is read: its own hash, the one before it, its number. Hashing is here, since
// browsers have none of their own for a page that is a file.
"use strict";
const K = (() => { const found = []; let candidate = 2;
  while (found.length < 64) { let prime = true;
    for (let d = 2; d * d <= candidate; d++) if (candidate % d === 0) { prime = false; break; }
    if (prime) { const root = Math.cbrt(candidate); found.push(Math.floor((root - Math.floor(root)) * 4294967296) | 0); }
    candidate++; }
  return found; })();
function utf8(text) { const out = new Uint8Array(3 * text.length); let n = 0;
  for (let i = 0; i < text.length; i++) { const c = text.codePointAt(i);
    if (c < 0x80) out[n++] = c;
    else if (c < 0x800) { out[n++] = 0xc0 | c >> 6; out[n++] = 0x80 | c & 63; }
    else if (c < 0x10000) { out[n++] = 0xe0 | c >> 12; out[n++] = 0x80 | c >> 6 & 63; out[n++] = 0x80 | c & 63; }
    else { i++; out[n++] = 0xf0 | c >> 18; out[n++] = 0x80 | c >> 12 & 63; out[n++] = 0x80 | c >> 6 & 63; out[n++] = 0x80 | c & 63; } }
  return out.subarray(0, n); }
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
function starting(id) { return { seq: 0, first: 0, before: sha256(utf8("playhead/run/v1\0" + id)) }; }
// Check lines, the first of which is event `state.first`, from where `state` stands, up to event `end`; what is wrong
// with the first that is, or null. What the first one follows is not known where those before it are left out.
function check(id, lines, state = starting(id), end = lines.length) {
  for (; state.seq < end; state.seq++) {
    const seq = state.seq, line = lines[seq - state.first], bytes = utf8(line), last = String.fromCharCode(...bytes.subarray(-75)), hash = last.slice(9, 73);
    if (!/^,"hash":"[0-9a-f]{64}"\}$/.test(last) || sha256(bytes.subarray(0, -75)) !== hash) return { seq, why: "its content is not what was sealed" };
    const tail = String.fromCharCode(...bytes.subarray(-149, -75));
    if (state.before !== null && tail !== ',"prev":"' + state.before + '"') return { seq, why: "it does not follow the event before it" };
    if (!line.startsWith('{"v":1,"run":' + JSON.stringify(id) + ',"seq":' + seq + ',')) return { seq, why: "it is not event " + seq + " of this run" };
    state.before = hash;
  }
  return null;
}
// What of a run is in the page, by the numbers of its events: the beginning, and the end where some are left out between.
function parts(run) {
  const end = run.lines.length + run.lines_left_out;
  return [{ lines: run.lines, state: starting(run.id) }, { lines: run.lines_at_end, state: { seq: end, first: end, before: null } }];
}
function lineOf(run, seq) { return seq < run.lines.length ? run.lines[seq] : run.lines_at_end[seq - run.lines.length - run.lines_left_out]; }
function seqsOf(run) { return parts(run).flatMap(part => part.lines.map((_, at) => part.state.first + at)); }
// Say what is missing of what was there when the page was made; nothing, where that is all there.
function missing(run) {
  const { events, head, integrity } = run.verify, count = run.lines.length + run.lines_left_out + run.lines_at_end.length;
  if (integrity.verdict !== "intact" || !events) return "";
  if (count < events) return count + " of " + events + " events are in this page: the last ones were taken out of it";
  const last = lineOf(run, events - 1);
  return last && last.slice(-66, -2) !== head ? "event " + (events - 1) + " is not the last one that was verified" : "";
}
// What large values say, which lines name by a digest alone: JSON may name others.
function contentsOf(run) { return new Map((run.contents || []).map(one => [one.digest, one])); }
function named(text, contents) {
  const found = new Set(), waiting = [text];
  for (let one = waiting.pop(); one !== undefined; one = waiting.pop())
    for (const [, digest] of one.matchAll(/"\$blob":"([0-9a-f]{64})"/g))
      if (!found.has(digest)) { found.add(digest); const held = contents.get(digest); if (held && held.as === "json") waiting.push(held.text); }
  return [...found];
}
function checkContent(one) { return sha256(utf8(one.text)) === one.digest ? null : "the large value " + one.digest.slice(0, 12) + "… is not what was sealed"; }
// A text as it is shown: what cannot be seen, or would turn the letters around, is written out.
function seen(text) { return text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e01ef}]/gu,
  letter => "\\u" + letter.codePointAt(0).toString(16).padStart(4, "0")); }
function entry(line) {
  let fields = null;
  try { fields = JSON.parse(line); } catch (error) { if (!(error instanceof SyntaxError)) throw error; }
  if (fields === null || typeof fields !== "object") return { kind: "unreadable", name: "" };
  const data = fields.data !== null && typeof fields.data === "object" ? fields.data : {};
  const name = [data.name, data.model, data.capability, data.what, data.source].find(one => typeof one === "string") || "";
  return { kind: seen(String(fields.kind)), name: seen(name.length > 80 ? name.slice(0, 79) + "…" : name) };
}
function having(run, text) {
  const wanted = text.toLowerCase(), contents = contentsOf(run), holds = one => one.toLowerCase().includes(wanted);
  const holding = new Set([...contents.values()].filter(one => holds(one.text)).map(one => one.digest));
  return seqsOf(run).filter(seq => holds(lineOf(run, seq)) || (holding.size > 0 && named(lineOf(run, seq), contents).some(one => holding.has(one))));
}
const AT_ONCE = 200, SHOWN_MAX = 20000, SLICE_MS = 40;
class Events {
  constructor(number, run) {
    this.number = number; this.run = run; this.contents = contentsOf(run); this.wanted = seqsOf(run); this.first = 0; this.wrong = -1;
    this.place("earlier").addEventListener("click", () => this.list(this.first - AT_ONCE));
    this.place("later").addEventListener("click", () => this.list(this.first + AT_ONCE));
    let waiting = 0;
    this.place("filter").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(() => this.filter(), 150); });
    this.list(0);
  }
  place(name) { return document.getElementById(name + "-" + this.number); }
  filter() { this.wanted = having(this.run, this.place("filter").value); this.list(0); }
  list(first) {
    const total = this.wanted.length;
    this.first = Math.max(0, Math.min(first, total - 1));
    const some = this.wanted.slice(this.first, this.first + AT_ONCE);
    this.place("list").replaceChildren(...some.map(seq => this.element(seq)));
    this.place("range").textContent = total ? (this.first + 1) + " to " + (this.first + some.length) + " of " + total : "none";
    this.place("earlier").disabled = this.first === 0; this.place("later").disabled = this.first + AT_ONCE >= total;
  }
  element(seq) {
    const one = document.createElement("details"), summary = document.createElement("summary"), told = entry(lineOf(this.run, seq));
    for (const [text, style] of [[seq, "dim"], [told.kind, ""], [told.name, "dim"]]) {
      const part = document.createElement("span"); part.className = style; part.textContent = text; summary.append(part, " "); }
    if (seq === this.wrong) summary.className = "bad";
    one.id = "e" + this.number + "-" + seq; one.append(summary);
    one.addEventListener("toggle", () => { if (one.children.length > 1) return;
      const line = lineOf(this.run, seq), text = document.createElement("pre");
      text.textContent = seen(line.length > SHOWN_MAX ? line.slice(0, SHOWN_MAX) + "…" : line); one.append(text);
      one.append(...named(line, this.contents).map(digest => this.value(digest))); });
    return one;
  }
  // A large value in full, below the line that names it.
  value(digest) {
    const held = this.contents.get(digest), name = "large value " + digest.slice(0, 12) + "…";
    if (!held) { const note = document.createElement("p"); note.className = "dim"; note.textContent = name + " is not in this page"; return note; }
    const one = document.createElement("details"), summary = document.createElement("summary"), text = document.createElement("pre");
    summary.textContent = name; text.textContent = seen(held.text); one.open = true; one.append(summary, text);
    return one;
  }
  show(seq) {
    const id = "e" + this.number + "-" + seq;
    if (lineOf(this.run, seq) === undefined) {
      this.place("range").textContent = "the line of event " + seq + " is not in this page";
      this.place("range").scrollIntoView();
      return;
    }
    if (!document.getElementById(id)) {
      if (!this.wanted.includes(seq)) { this.place("filter").value = ""; this.filter(); }
      this.list(this.wanted.indexOf(seq) - 10);
    }
    const found = document.getElementById(id); found.open = true; found.scrollIntoView();
  }
}
function unreadable(error) { return "broken, as this page finds: its data cannot be read (" + error.message + ")"; }
function begin() {
  try { read(JSON.parse(document.getElementById("data").textContent)); } catch (error) {
    document.querySelectorAll('[id^="checked-"]').forEach(place => { place.className = "bad";
      place.textContent = unreadable(error) + ", so nothing above is confirmed"; });
    document.querySelectorAll('[id^="integrity-"]').forEach(claim => { claim.className = "bad"; claim.textContent = "not confirmed"; });
  }
}
function read(data) {
  const all = data.runs.map((run, number) => new Events(number, run));
  // In slices: whoever reads need not wait until all is checked.
  data.runs.forEach((run, number) => {
    const place = document.getElementById("checked-" + number), waiting = parts(run).filter(part => part.lines.length);
    const count = run.lines.length + run.lines_at_end.length, values = [...(run.contents || [])];
    let done = 0;
    // What the page finds counts more than what was found when it was made.
    const say = (style, text) => { place.className = style; place.textContent = text;
      const claim = document.getElementById("integrity-" + number);
      if (claim && style === "bad") { claim.className = "bad"; claim.textContent = "broken"; } };
    const slice = () => {
      let wrong = null;
      for (const until = Date.now() + SLICE_MS; !wrong && waiting.length && Date.now() < until;) {
        const { lines, state } = waiting[0], before = state.seq, end = state.first + lines.length;
        wrong = check(run.id, lines, state, Math.min(end, before + 50));
        done += state.seq - before;
        if (state.seq === end) waiting.shift();
      }
      const bad = !wrong && !waiting.length && values.length ? checkContent(values.pop()) : null;
      if (bad) say("bad", "broken, as this page finds: " + bad);
      else if (wrong) {
        say("bad", "broken, as this page finds: event ");
        const link = document.createElement("a"); link.href = "#e" + number + "-" + wrong.seq; link.textContent = wrong.seq;
        place.append(link, ": " + wrong.why);
        all[number].wrong = wrong.seq; all[number].list(all[number].first);
      } else if (waiting.length || values.length) { say("dim", "checking: " + done + " of " + count + " lines"); setTimeout(go); }
      else if (missing(run)) say("bad", "broken, as this page finds: " + missing(run));
      else if (count === 0) say("warn", "there is no line to check");
      else say("ok", "this page has checked " + count + " lines: each is as sealed, and follows the one before" +
        (run.contents && run.contents.length ? "; as sealed is also what " + run.contents.length + " large values say" : "") +
        (run.lines_left_out ? "; " + run.lines_left_out + " more are not in it" : ""));
    };
    const go = () => { try { slice(); } catch (error) { say("bad", unreadable(error)); } };
    go();
  });
  const show = () => { const found = /^#e([01])-([0-9]+)$/.exec(location.hash); if (found && all[found[1]]) all[found[1]].show(Number(found[2])); };
  window.addEventListener("hashchange", show); show();
  // A link to where one is already changes nothing, and should still lead there.
  document.addEventListener("click", event => { const link = event.target.closest("a"); if (link && link.hash === location.hash) show(); });
}
if (typeof document !== "undefined") begin();
