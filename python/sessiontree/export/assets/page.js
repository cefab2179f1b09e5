"use strict";
// What the exported page and the viewer share: the tree at the side, going from entry to entry, search, keys,
// theme. Entries are named by their rows. Where they come from is the source's business; all but the first two
// give promises:
//   atOnce                    how many entries of a branch are shown at once, without a window
//   count()                   how many lines the tree has
//   place(name, leaf)         where an entry (e and its row, or its id; "" for the last one) stands: { row, leaf, length,
//                             index, line }; row is -1 if there is none; leaf names the branch, the given one if it is on it
//   rowAt(leaf, index)        the row there, or at the nearer end
//   lines(leaf, from, count)  of the tree: [row, depth, whether on the branch, kind, words, label]
//   entries(leaf, from, count), entry(row)   as HTML; the first may give fewer, but one
//   find(words, tell)         tell(rows so far, whether that is all) gives false when nobody wants to know any more
//   labels()                  [row, label]
const startPage = (source) => {
  const $ = (id) => document.getElementById(id);
  const [tree, search, found, labels, help] = ["tree", "search", "found", "labels", "help"].map($);
  const root = document.documentElement;
  const LINE = 22;
  // Browsers cannot scroll further than some ten million pixels: beyond that, lines move faster than the bar.
  const HIGHEST = 8e6;
  const BLOCK = 100;
  let here = -1;

  const notice = (text) => {
    let box = $("notice");
    if (box === null) {
      box = document.createElement("p");
      box.id = "notice";
      box.setAttribute("role", "alert");
      document.body.append(box);
    }
    box.textContent = text;
  };
  const main = $("entries");
  const pane = makePane(source, main, notice);

  // ---- lines of the tree, in blocks
  let blocks = new Map();
  let lineOfHere = -1;
  const askBlock = async (number) => {
    const mine = blocks;
    mine.set(number, []);
    if (mine.size > 60) mine.delete(mine.keys().next().value);
    try {
      const lines = await source.lines(pane.shown().leaf, number * BLOCK, BLOCK);
      if (mine !== blocks) return;
      mine.set(number, lines.map(([row, depth, on, kind, words, label]) => ({ row, depth, on, kind, words, label })));
      redraw();
    } catch { mine.delete(number); }
  };
  const lineAt = (i) => {
    const number = Math.floor(i / BLOCK);
    if (!blocks.has(number)) askBlock(number);
    return blocks.get(number)?.[i % BLOCK] ?? null;
  };
  const forgetLines = () => {
    blocks = new Map();
    redraw();
  };

  // ---- the tree at the side: only the lines in view exist
  const holder = document.createElement("div");
  tree.append(holder);
  const room = () => {
    const height = Math.min(source.count() * LINE, HIGHEST);
    const span = Math.max(1, height - tree.clientHeight);
    return { height, factor: Math.max(1, (source.count() * LINE - tree.clientHeight) / span) };
  };
  const drawLine = (line, top) => {
    const a = document.createElement("a");
    a.style.top = `${top}px`;
    if (line === null) return a;
    a.href = `#e${line.row}`;
    a.style.paddingLeft = `${6 + Math.min(line.depth, 20) * 12}px`;
    a.className = (line.on ? "on" : "off") + (line.row === here ? " here" : "");
    const words = document.createElement("bdi");
    words.textContent = `${line.kind}: ${line.words}`;
    a.append(words);
    if (line.label) {
      const tag = document.createElement("span");
      tag.className = "tag";
      tag.textContent = line.label;
      a.prepend(tag);
    }
    return a;
  };
  const drawTree = () => {
    const { height, factor } = room();
    holder.style.height = `${height}px`;
    const hidden = tree.scrollTop * factor;
    const first = Math.max(0, Math.floor(hidden / LINE) - 10);
    const last = Math.min(source.count(), first + Math.ceil(tree.clientHeight / LINE) + 20);
    const made = [];
    for (let i = first; i < last; i++) made.push(drawLine(lineAt(i), tree.scrollTop + i * LINE - hidden));
    holder.replaceChildren(...made);
  };
  const bringLine = (i) => {
    if (i < 0 || tree.clientHeight === 0) return;
    const { factor } = room();
    const top = i * LINE - tree.scrollTop * factor;
    if (top < 0 || top > tree.clientHeight - LINE) tree.scrollTop = (i * LINE - tree.clientHeight / 2) / factor;
  };
  let asked = false;
  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; drawTree(); });
  }
  tree.addEventListener("scroll", redraw);
  addEventListener("resize", redraw);

  // ---- going to an entry
  let going = 0;
  const show = async (place) => {
    const branch = pane.shown().leaf;
    const element = await pane.open(place);
    if (branch !== pane.shown().leaf) forgetLines();
    return element;
  };
  const arrive = (element, place, open) => {
    here = place.row;
    lineOfHere = place.line;
    document.querySelectorAll("article.here").forEach((other) => other.classList.remove("here"));
    element.classList.add("here");
    if (open) unfold(element, open);
    element.scrollIntoView({ block: "start" });
    bringLine(lineOfHere);
    drawTree();
    paint();
  };
  const go = async (name, open = "") => {
    const mine = ++going;
    try {
      const place = await source.place(name, pane.shown().leaf);
      if (mine !== going || place.row < 0) return;
      const element = await show(place);
      if (mine === going && element !== null) arrive(element, place, open);
    } catch (error) { notice(error.message); }
  };
  const step = async (by) => {
    const { leaf, length, from } = pane.shown();
    let index = by === -Infinity ? 0 : by === Infinity ? length - 1 : from;
    if (Number.isFinite(by) && here >= 0) {
      const place = await source.place(`e${here}`, leaf);
      if (place.leaf === leaf) index = place.index + by;
    }
    const row = await source.rowAt(leaf, Math.max(0, Math.min(length - 1, index)));
    if (row >= 0) await go(`e${row}`);
  };
  const fromHash = async () => {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch { /* a stray % stands for itself */ }
    if (name) await go(name);
  };
  addEventListener("hashchange", fromHash);

  // ---- search: in all branches
  let hits = [];
  let at = -1;
  let complete = true;
  let run = 0;
  const wanted = () => search.value.trim().toLowerCase();
  const unfold = (element, words) => {
    element.querySelectorAll("details").forEach((d) => { d.open = d.open || d.textContent.toLowerCase().includes(words); });
  };
  const paint = () => {
    // What was looked for is set off in the entry at hand; elements stay as they are.
    if (!window.Highlight) return;
    const words = wanted();
    const ranges = [];
    const walk = document.createTreeWalker(document.querySelector("article.here") ?? document.createElement("i"), NodeFilter.SHOW_TEXT);
    while (words && ranges.length < 1000 && walk.nextNode()) {
      const text = walk.currentNode.data.toLowerCase();
      if (text.length !== walk.currentNode.data.length) continue;
      for (let i = text.indexOf(words); i >= 0; i = text.indexOf(words, i + words.length)) {
        const range = new Range();
        range.setStart(walk.currentNode, i);
        range.setEnd(walk.currentNode, i + words.length);
        ranges.push(range);
      }
    }
    CSS.highlights.set("found", new Highlight(...ranges));
  };
  const tellFound = () => {
    const more = complete ? "" : "+";
    found.textContent = wanted() === "" ? "" : at < 0 ? `${hits.length}${more} found` : `${at + 1} of ${hits.length}${more}`;
  };
  const look = async () => {
    const mine = ++run;
    [hits, at, complete] = [[], -1, wanted() === ""];
    tellFound();
    paint();
    if (complete) return;
    try {
      await source.find(wanted(), (rows, all) => {
        if (mine !== run) return false;
        [hits, complete] = [rows, all];
        tellFound();
        return true;
      });
    } catch (error) { notice(error.message); }
  };
  const next = (by) => {
    if (hits.length === 0) return;
    at = at < 0 && by < 0 ? hits.length - 1 : (at + by + hits.length) % hits.length;
    tellFound();
    go(`e${hits[at]}`, wanted());
  };
  let timer;
  let looked = null;
  const lookOnce = () => {
    clearTimeout(timer);
    if (looked?.words !== wanted()) looked = { words: wanted(), done: look() };
    return looked.done;
  };
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(lookOnce, 150); });
  search.addEventListener("keydown", async (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      const by = event.shiftKey ? -1 : 1;
      const done = lookOnce();
      if (hits.length === 0) await done;
      next(by);
    }
    if (event.key === "Escape") { search.value = ""; lookOnce(); search.blur(); }
  });

  // ---- labels
  const fillLabels = async () => {
    const all = await source.labels();
    const options = [new Option(`Labels (${all.length})`, ""), ...all.map(([row, label]) => new Option(label.slice(0, 80), row))];
    labels.replaceChildren(...options);
    labels.hidden = all.length === 0;
  };
  labels.addEventListener("change", () => {
    if (labels.value !== "") go(`e${labels.value}`);
    labels.selectedIndex = 0;
    labels.blur();
  });

  // ---- theme, side, help, keys
  const stored = (value) => {
    // A page from a file may have no storage.
    try { return value === undefined ? localStorage.getItem("theme") : localStorage.setItem("theme", value); } catch { return null; }
  };
  const theme = (name) => { root.dataset.theme = name; };
  const before = stored();
  theme(before === "dark" || before === "light" ? before : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  const toggleTheme = () => { theme(root.dataset.theme === "dark" ? "light" : "dark"); stored(root.dataset.theme); };
  const toggleSide = () => { document.body.classList.toggle("flip"); bringLine(lineOfHere); drawTree(); };
  const narrow = matchMedia("(max-width: 50rem)");
  tree.addEventListener("click", (event) => { if (narrow.matches && event.target.closest("a")) document.body.classList.remove("flip"); });
  $("theme").addEventListener("click", toggleTheme);
  $("side").addEventListener("click", toggleSide);
  $("keys").addEventListener("click", () => help.showModal());
  $("close").addEventListener("click", () => help.close());
  const fold = () => {
    const all = document.querySelectorAll("article.here details");
    const open = !Array.from(all).some((d) => d.open);
    all.forEach((d) => { d.open = open; });
  };
  const acts = {
    "/": () => search.focus(), j: () => step(1), k: () => step(-1), g: () => step(-Infinity), G: () => step(Infinity),
    n: () => next(1), N: () => next(-1), o: fold, b: toggleSide, t: toggleTheme, "?": () => help.showModal(),
  };
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("input, select, textarea, dialog");
    if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(acts, event.key)) return;
    event.preventDefault();
    acts[event.key]();
  });

  const begin = async () => {
    const place = await source.place("", -1);
    if (place.row >= 0) {
      await show(place);
      if (source.fromEnd) lineOfHere = place.line;
      if (source.fromEnd && !location.hash) pane.toEnd();
    }
    await fillLabels();
    drawTree();
    if (location.hash) await fromHash();
    bringLine(lineOfHere);
    drawTree();
    root.dataset.ready = "yes";
  };
  const done = begin().catch((error) => notice(error.message));
  return { pane, notice, forgetLines, fillLabels, done };
};
