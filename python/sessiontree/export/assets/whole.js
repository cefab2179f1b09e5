// The source of an exported page: every entry is in it. Rows count up in file order, as the articles do.
(() => {
  // nodes: [parent row, kind, first words, label, id] by row; order: row of each line; depth: by row.
  const { nodes, order, depth, leaf } = JSON.parse(document.getElementById("data").textContent);
  const articles = Array.from(document.getElementById("entries").children);
  const lineOf = new Int32Array(nodes.length);
  order.forEach((row, line) => { lineOf[row] = line; });
  const newestChild = new Int32Array(nodes.length).fill(-1);
  nodes.forEach(([parent], row) => { if (parent >= 0 && parent !== row) newestChild[parent] = row; });
  let path = [];
  let on = new Set();

  const showBranch = (row) => {
    const now = new Set();
    for (let at = row; at >= 0 && !now.has(at); at = nodes[at][0]) now.add(at);
    path = Array.from(now).reverse();
    // Only what changes is touched: all are away at first.
    on.forEach((at) => { if (!now.has(at)) articles[at].classList.add("away"); });
    now.forEach((at) => { if (!on.has(at)) articles[at].classList.remove("away"); });
    on = now;
  };
  const deepest = (row) => {
    const met = new Set();
    while (newestChild[row] >= 0 && !met.has(row)) {
      met.add(row);
      row = newestChild[row];
    }
    return row;
  };
  const pause = () => new Promise((go) => { setTimeout(go); });

  startPage({
    ready: async () => {
      articles.forEach((article) => article.classList.add("away"));
      if (nodes.length > 0) showBranch(leaf >= 0 ? leaf : nodes.length - 1);
    },
    count: () => nodes.length,
    line: (i) => {
      const row = order[i];
      const [, kind, words, label] = nodes[row];
      return { row, depth: depth[row], on: on.has(row), kind, words, label };
    },
    lineOf: (row) => (row >= 0 ? lineOf[row] : -1),
    show: async (row) => {
      if (!on.has(row)) showBranch(deepest(row));
      return articles[row];
    },
    step: async (row, by) => {
      const to = path.indexOf(row) + by;
      return path.length > 0 ? path[Math.max(0, Math.min(path.length - 1, to))] : -1;
    },
    resolve: async (name) => {
      const row = nodes.findIndex((node) => node[4] === name);
      const numbered = /^e(\d+)$/.exec(name);
      return row < 0 && numbered && Number(numbered[1]) < nodes.length ? Number(numbered[1]) : row;
    },
    find: async (words, tell) => {
      const rows = [];
      let since = performance.now();
      for (let row = 0; words && row < articles.length; row++) {
        if (articles[row].textContent.toLowerCase().includes(words)) rows.push(row);
        if (performance.now() - since > 25) {
          if (!tell(rows, false)) return;
          await pause();
          since = performance.now();
        }
      }
      tell(rows, true);
    },
    labels: async () => nodes.flatMap(([, , , label], row) => (label ? [[row, label]] : [])),
  });
})();
