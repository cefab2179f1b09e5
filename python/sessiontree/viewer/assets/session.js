"use strict";
// The source of a session's page in the viewer: what is in view is asked for, and a window of the branch is kept.
(() => {
  const main = document.getElementById("entries");
  const live = document.getElementById("live");
  const CHUNK = 40;
  const MOST = 240;
  const BLOCK = 100;
  const NEAR = 1200;
  let state = null;
  let shown = { leaf: -1, length: 0, from: 0, to: 0 };
  let places = new Map();
  let page = null;

  const notice = (text) => {
    let box = document.getElementById("notice");
    if (box === null) {
      box = document.createElement("p");
      box.id = "notice";
      box.setAttribute("role", "alert");
      main.before(box);
      document.body.classList.add("noticed");
    }
    box.textContent = text;
  };
  const ask = async (what, values = {}) => {
    const query = new URLSearchParams({ ...values, ...(state === null ? {} : { stamp: state.stamp }) });
    const answer = await fetch(`${what}?${query}`);
    if (answer.status === 409) location.reload();
    if (!answer.ok) {
      const text = (await answer.text()).trim();
      notice(text);
      throw new Error(text);
    }
    return answer.json();
  };

  // ---- lines of the tree, in blocks
  let blocks = new Map();
  const askBlock = async (number) => {
    blocks.set(number, []);
    const mine = blocks;
    if (blocks.size > 60) blocks.delete(blocks.keys().next().value);
    try {
      const lines = await ask("lines", { leaf: shown.leaf, from: number * BLOCK, count: BLOCK });
      if (mine !== blocks) return;
      blocks.set(number, lines.map(([row, depth, on, kind, words, label]) => ({ row, depth, on, kind, words, label })));
      page.redraw();
    } catch { blocks.delete(number); }
  };
  const line = (i) => {
    const number = Math.floor(i / BLOCK);
    if (!blocks.has(number)) askBlock(number);
    return blocks.get(number)[i % BLOCK] ?? null;
  };
  const forgetLines = () => {
    blocks = new Map();
    page?.redraw();
  };

  // ---- the window
  const toElements = (texts) => {
    const holder = document.createElement("template");
    holder.innerHTML = texts.join("");
    return Array.from(holder.content.children);
  };
  const keepPlace = (change) => {
    // Whatever comes or goes above: what is read stays where it is.
    const top = main.getBoundingClientRect().top;
    const fixed = Array.from(main.children).find((a) => a.getBoundingClientRect().bottom > top);
    const before = fixed?.getBoundingClientRect().top;
    change();
    if (fixed?.isConnected) main.scrollTop += fixed.getBoundingClientRect().top - before;
  };
  const after = async () => {
    const mine = shown;
    const texts = await ask("entries", { leaf: mine.leaf, from: mine.to, count: CHUNK });
    if (mine !== shown || texts.length === 0) return false;
    keepPlace(() => {
      main.append(...toElements(texts));
      shown.to += texts.length;
      while (main.children.length > MOST) { main.firstElementChild.remove(); shown.from++; }
    });
    return true;
  };
  const before = async () => {
    const mine = shown;
    const start = Math.max(0, mine.from - CHUNK);
    let texts = [];
    // A page of long entries is cut short: go on until it meets what is there.
    while (start + texts.length < mine.from) {
      const more = await ask("entries", { leaf: mine.leaf, from: start + texts.length, count: mine.from - start - texts.length });
      if (mine !== shown || more.length === 0) return false;
      texts = texts.concat(more);
    }
    keepPlace(() => {
      main.prepend(...toElements(texts));
      shown.from = start;
      while (main.children.length > MOST) { main.lastElementChild.remove(); shown.to--; }
    });
    return true;
  };
  let filling = null;
  const fillUp = async () => {
    await null; // so that this ends after it has been taken note of
    try {
      let more = true;
      while (more) {
        more = false;
        if (shown.to < shown.length && main.scrollHeight - main.scrollTop - main.clientHeight < NEAR) more = await after();
        else if (shown.from > 0 && main.scrollTop < NEAR) more = await before();
      }
    } catch { /* said already */ } finally { filling = null; }
  };
  const fill = () => (filling ??= fillUp());
  main.addEventListener("scroll", fill, { passive: true });
  addEventListener("resize", fill);

  const open = async (place) => {
    const changed = place.leaf !== shown.leaf;
    const inside = !changed && place.index >= shown.from && place.index < shown.to;
    if (!inside) {
      const mine = { leaf: place.leaf, length: place.length, from: Math.max(0, place.index - 5), to: 0 };
      const texts = await ask("entries", { leaf: mine.leaf, from: mine.from, count: CHUNK });
      mine.to = mine.from + texts.length;
      shown = mine;
      main.replaceChildren(...toElements(texts));
      while (shown.to <= place.index && await after());
    }
    shown.length = place.length;
    places = new Map([[place.row, place.line], ...Array.from(places).slice(-500)]);
    if (changed) forgetLines();
    setTimeout(fill, 50);
    return document.getElementById(`e${place.row}`);
  };

  // ---- all of a long text
  main.addEventListener("click", async (event) => {
    const button = event.target.closest("button.more");
    if (!button) return;
    const old = button.closest("article");
    const [whole] = toElements([await ask("entry", { row: old.id.slice(1) })]);
    whole.classList.toggle("here", old.classList.contains("here"));
    const opened = Array.from(old.querySelectorAll("details"), (d) => d.open);
    whole.querySelectorAll("details").forEach((d, i) => { d.open = opened[i]; });
    old.replaceWith(whole);
  });

  // ---- what is added
  let listening = null;
  const atEnd = () => main.scrollHeight - main.scrollTop - main.clientHeight < 60 && shown.to >= shown.length;
  const grow = async (now) => {
    const old = state;
    if (old.stamp !== now.stamp) { location.reload(); return; }
    if (old.count === now.count) return;
    const [followed, tail] = [shown.leaf === old.leaf, atEnd()];
    state = now;
    document.title = now.title;
    document.querySelector("h1").textContent = now.title;
    document.getElementById("facts").textContent = now.facts;
    if (old.labels !== now.labels) page.fillLabels();
    if (followed) {
      // Where the session goes on is where this page goes on, if it stood at the end before.
      const place = await ask("place", { at: "", leaf: -1 });
      const goesOn = place.length > shown.length && await sameBranch(place);
      if (goesOn) shown = Object.assign(shown, { leaf: place.leaf, length: place.length });
    }
    forgetLines();
    await fill();
    if (tail && followed) main.scrollTop = main.scrollHeight;
  };
  const sameBranch = async (place) => {
    const last = await ask("row", { leaf: place.leaf, index: shown.length - 1 });
    return last === shown.leaf;
  };
  let growing = Promise.resolve();
  const listen = () => {
    if (document.hidden || listening) return;
    listening = new EventSource("events");
    listening.onopen = () => live.classList.add("on");
    listening.onmessage = (event) => { growing = growing.then(() => grow(JSON.parse(event.data))).catch(() => {}); };
    listening.onerror = () => live.classList.remove("on");
    listening.addEventListener("lost", (event) => {
      notice(JSON.parse(event.data));
      live.className = "lost";
      listening.close();
    });
  };
  const unlisten = () => {
    // A browser has six connections to a server: pages that nobody sees give theirs back.
    listening?.close();
    listening = null;
    live.classList.remove("on");
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? unlisten() : listen()));
  addEventListener("pagehide", unlisten);
  addEventListener("pageshow", (event) => { if (event.persisted) listen(); });

  let search = 0;
  page = startPage({
    ready: async () => {
      const place = await ask("place", { at: "", leaf: -1 });
      state = place.state;
      if (place.row >= 0) {
        await open(place);
        if (!location.hash) main.scrollTop = main.scrollHeight;
      }
    },
    count: () => state?.count ?? 0,
    line,
    lineOf: (row) => places.get(row) ?? -1,
    show: async (row) => {
      const place = await ask("place", { at: `e${row}`, leaf: shown.leaf });
      return place.row < 0 ? null : open(place);
    },
    step: async (row, by) => {
      if (by === -Infinity || by === Infinity) return ask("row", { leaf: shown.leaf, index: by < 0 ? 0 : shown.length - 1 });
      const place = row < 0 ? null : await ask("place", { at: `e${row}`, leaf: shown.leaf });
      const index = place === null || place.leaf !== shown.leaf ? shown.from - (by > 0 ? 1 : 0) : place.index;
      return ask("row", { leaf: shown.leaf, index: Math.max(0, index + by) });
    },
    resolve: async (name) => (await ask("place", { at: name, leaf: shown.leaf })).row,
    find: async (words, tell) => {
      const mine = ++search;
      let rows = [];
      for (let from = 0; words && from !== null && mine === search; ) {
        const [some, next] = await ask("find", { q: words, from });
        rows = rows.concat(some);
        from = next;
        if (mine !== search || !tell(rows, next === null)) return;
      }
      if (!words) tell([], true);
    },
    labels: () => ask("labels"),
  });
  page.done.then(listen);
})();
