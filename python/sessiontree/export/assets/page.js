"use strict";
(() => {
  // nodes: [row, parent row, kind, first words, label, id], in file order.
  const { nodes, leaf } = JSON.parse(document.getElementById("data").textContent);
  const main = document.getElementById("entries");
  const articles = Array.from(main.children);
  const tree = document.getElementById("tree");
  const LINE = 22;
  let path = new Set();
  let here = -1;

  // ---- the tree at the side: only the lines in view exist
  const children = nodes.map(() => []);
  const roots = [];
  nodes.forEach(([row, parent]) => (parent >= 0 && parent !== row ? children[parent] : roots).push(row));
  const lines = [];
  const seen = new Set();
  const lay = (start) => {
    const stack = [[start, 0]];
    while (stack.length > 0) {
      const [row, depth] = stack.pop();
      if (seen.has(row)) continue;
      seen.add(row);
      lines.push([row, depth]);
      const below = children[row];
      const deeper = below.length > 1 ? depth + 1 : depth;
      for (let i = below.length - 1; i >= 0; i--) stack.push([below[i], deeper]);
    }
  };
  roots.forEach(lay);
  nodes.forEach(([row]) => { if (!seen.has(row)) lay(row); });
  const lineOf = new Map(lines.map(([row], i) => [row, i]));
  const holder = document.createElement("div");
  holder.style.height = `${lines.length * LINE}px`;
  tree.append(holder);

  const drawTree = () => {
    const first = Math.max(0, Math.floor(tree.scrollTop / LINE) - 20);
    const last = Math.min(lines.length, first + Math.ceil(tree.clientHeight / LINE) + 40);
    const made = [];
    for (let i = first; i < last; i++) {
      const [row, depth] = lines[i];
      const [, , kind, words, label] = nodes[row];
      const a = document.createElement("a");
      a.href = `#e${row}`;
      a.style.top = `${i * LINE}px`;
      a.style.paddingLeft = `${6 + Math.min(depth, 20) * 12}px`;
      a.className = (path.has(row) ? "on" : "off") + (row === here ? " here" : "");
      a.textContent = `${kind}: ${words}`;
      if (label) {
        const tag = document.createElement("span");
        tag.className = "tag";
        tag.textContent = label;
        a.append(tag);
      }
      made.push(a);
    }
    holder.replaceChildren(...made);
  };
  tree.addEventListener("scroll", () => requestAnimationFrame(drawTree));
  addEventListener("resize", drawTree);

  // ---- one branch in the middle
  const upwards = (row) => {
    const set = new Set();
    for (let at = row; at >= 0 && !set.has(at); at = nodes[at][1]) set.add(at);
    return set;
  };
  const deepest = (row) => {
    // Follow the branch on: the newest child, until there is none.
    const met = new Set();
    for (let at = row; !met.has(at); ) {
      met.add(at);
      if (children[at].length === 0) return at;
      at = children[at][children[at].length - 1];
    }
    return row;
  };
  const showBranch = (row) => {
    path = upwards(row);
    articles.forEach((article, i) => article.classList.toggle("away", !path.has(i)));
    drawTree();
  };
  const go = (row, scroll) => {
    if (row < 0 || row >= nodes.length) return;
    if (!path.has(row)) showBranch(deepest(row));
    if (here >= 0) articles[here].classList.remove("here");
    here = row;
    articles[row].classList.add("here");
    if (scroll) articles[row].scrollIntoView({ block: "start" });
    const top = lineOf.get(row) * LINE;
    if (top < tree.scrollTop || top > tree.scrollTop + tree.clientHeight - LINE) tree.scrollTop = top - tree.clientHeight / 2;
    drawTree();
  };
  const fromHash = () => {
    const wanted = decodeURIComponent(location.hash.slice(1));
    const numbered = /^e(\d+)$/.exec(wanted);
    const row = numbered && Number(numbered[1]) < nodes.length ? Number(numbered[1]) : nodes.findIndex((n) => n[5] === wanted);
    if (row >= 0) go(row, true);
  };
  addEventListener("hashchange", fromHash);

  // ---- search: in all branches
  const search = document.getElementById("search");
  const found = document.getElementById("found");
  let texts = null;
  let hits = [];
  let at = -1;
  const run = () => {
    hits.forEach((row) => articles[row].classList.remove("hit"));
    const words = search.value.toLowerCase();
    texts = texts ?? articles.map((a) => a.textContent.toLowerCase());
    hits = words ? nodes.map((n) => n[0]).filter((row) => texts[row].includes(words)) : [];
    hits.forEach((row) => articles[row].classList.add("hit"));
    at = -1;
    found.textContent = words ? `${hits.length} found` : "";
  };
  const next = (step) => {
    if (hits.length === 0) return;
    at = (at + step + hits.length) % hits.length;
    found.textContent = `${at + 1} of ${hits.length}`;
    articles[hits[at]].querySelectorAll("details").forEach((d) => { d.open = d.open || d.textContent.toLowerCase().includes(search.value.toLowerCase()); });
    go(hits[at], true);
  };
  let timer;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(run, 150); });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); clearTimeout(timer); if (at < 0) run(); next(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") { search.value = ""; run(); search.blur(); }
  });

  // ---- keyboard and theme
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "dark" : "light";
  const toggle = () => { root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"; };
  document.getElementById("theme").addEventListener("click", toggle);
  const step = (by) => {
    const rows = nodes.map((n) => n[0]).filter((row) => path.has(row));
    go(rows[Math.max(0, Math.min(rows.length - 1, rows.indexOf(here) + by))], true);
  };
  addEventListener("keydown", (event) => {
    if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { "/": () => search.focus(), j: () => step(1), k: () => step(-1), t: toggle, n: () => next(1), N: () => next(-1), o: () => articles[here]?.querySelectorAll("details").forEach((d) => { d.open = !d.open; }) }[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  showBranch(leaf >= 0 ? leaf : nodes.length - 1);
  if (location.hash) fromHash();
  else drawTree();
  root.dataset.ready = "yes";
})();
