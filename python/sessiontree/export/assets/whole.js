"use strict";
// The source of an exported page: everything is in it, the entries as JSON strings of HTML, in chunks.
(() => {
  // nodes: [parent row, kind, first words, label, id] by row; order: row of each line; depth: by row.
  const { nodes, order, depth, leaf: last } = JSON.parse(document.getElementById("data").textContent);
  const chunks = Array.from(document.querySelectorAll("script.entries"));
  const firstOf = chunks.map((chunk) => Number(chunk.dataset.first));
  const line = new Int32Array(nodes.length);
  order.forEach((row, at) => { line[row] = at; });
  const newestChild = new Int32Array(nodes.length).fill(-1);
  nodes.forEach(([parent], row) => { if (parent >= 0 && parent !== row) newestChild[parent] = row; });

  // ---- branches: the last one that was asked for is kept
  let branch = { leaf: -1, rows: [], index: new Map() };
  const branchOf = (leaf) => {
    if (branch.leaf !== leaf) {
      const seen = new Set();
      for (let at = leaf; at >= 0 && !seen.has(at); at = nodes[at][0]) seen.add(at);
      const rows = Array.from(seen).reverse();
      branch = { leaf, rows, index: new Map(rows.map((row, at) => [row, at])) };
    }
    return branch;
  };
  const deepest = (row) => {
    const met = new Set();
    while (newestChild[row] >= 0 && !met.has(row)) {
      met.add(row);
      row = newestChild[row];
    }
    return row;
  };
  const rowOf = (name) => {
    if (name === "") return last >= 0 ? last : nodes.length - 1;
    // Rows come first: an id may look like one.
    const row = /^e(?:0|[1-9]\d*)$/.test(name) ? Number(name.slice(1)) : Infinity;
    return row < nodes.length ? row : nodes.findLastIndex((node) => node[4] === name);
  };

  // ---- entries: a few chunks are kept as they are read
  const kept = new Map();
  const chunkOf = (number) => {
    let texts = kept.get(number);
    if (texts === undefined) {
      texts = JSON.parse(chunks[number].textContent);
      if (kept.size > 20) kept.delete(kept.keys().next().value);
    }
    kept.delete(number);
    kept.set(number, texts);
    return texts;
  };
  const textOf = (row) => {
    let [low, high] = [0, firstOf.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (firstOf[middle] <= row) low = middle;
      else high = middle - 1;
    }
    return chunkOf(low)[row - firstOf[low]];
  };
  const SIGNS = { amp: "&", lt: "<", gt: ">", quot: '"', "#x27": "'", "#39": "'" };
  const plain = (text) => text.slice(text.indexOf("</h2>")).replace(/<[^>]*>/g, "").replace(/&(amp|lt|gt|quot|#x27|#39);/g, (_, sign) => SIGNS[sign]);
  const pause = () => new Promise((go) => { setTimeout(go); });

  startPage({
    atOnce: 200,
    count: () => nodes.length,
    place: async (name, leaf) => {
      const row = rowOf(name);
      if (row < 0) return { row };
      let found = branchOf(leaf);
      if (!found.index.has(row)) found = branchOf(name === "" ? row : deepest(row));
      return { row, leaf: found.leaf, length: found.rows.length, index: found.index.get(row) ?? 0, line: line[row] };
    },
    rowAt: async (leaf, index) => branchOf(leaf).rows[index] ?? -1,
    lines: async (leaf, from, count) => {
      const { index } = branchOf(leaf);
      return order.slice(from, from + count).map((row) => [row, depth[row], index.has(row), ...nodes[row].slice(1, 4)]);
    },
    entries: async (leaf, from, count) => {
      const texts = [];
      let size = 0;
      for (const row of branchOf(leaf).rows.slice(from, from + count)) {
        texts.push(textOf(row));
        size += texts.at(-1).length;
        if (size > 500_000) break;
      }
      return texts;
    },
    entry: async (row) => textOf(row),
    find: async (words, tell) => {
      const rows = [];
      let since = performance.now();
      for (let number = 0; number < chunks.length; number++) {
        const texts = JSON.parse(chunks[number].textContent);
        for (let at = 0; at < texts.length; at++) {
          const row = firstOf[number] + at;
          if (nodes[row][3].toLowerCase().includes(words) || plain(texts[at]).toLowerCase().includes(words)) rows.push(row);
          if (performance.now() - since > 25) {
            if (!tell(rows, false)) return;
            await pause();
            since = performance.now();
          }
        }
      }
      tell(rows, true);
    },
    labels: async () => nodes.flatMap(([, , , label], row) => (label ? [[row, label]] : [])),
  });
})();
