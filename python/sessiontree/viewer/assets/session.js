"use strict";
// The source of a session's page in the viewer: what comes into view is asked for, and what is added is told.
(() => {
  const live = document.getElementById("live");
  let state = null;

  const ask = async (what, values = {}) => {
    const query = new URLSearchParams({ ...values, ...(state === null ? {} : { stamp: state.stamp }) });
    const answer = await fetch(`${what}?${query}`);
    if (answer.status === 409) location.reload();
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.json();
  };
  let search = 0;
  const page = startPage({
    atOnce: 0,
    fromEnd: true,
    count: () => state?.count ?? 0,
    place: async (at, leaf) => {
      const place = await ask("place", { at, leaf });
      state ??= place.state;
      return place;
    },
    rowAt: (leaf, index) => ask("row", { leaf, index }),
    lines: (leaf, from, count) => ask("lines", { leaf, from, count }),
    entries: (leaf, from, count) => ask("entries", { leaf, from, count }),
    entry: (row) => ask("entry", { row }),
    find: async (words, tell) => {
      const mine = ++search;
      let rows = [];
      for (let from = 0; from !== null && mine === search; ) {
        const [some, next] = await ask("find", { q: words, from });
        rows = rows.concat(some);
        from = next;
        if (!tell(rows, next === null)) return;
      }
    },
    labels: () => ask("labels"),
  });

  // ---- what is added
  const { pane } = page;
  const follow = async (old) => {
    // Where the session goes on is where this page goes on, if it showed the end before.
    const shown = pane.shown();
    if (shown.leaf !== old.leaf) return;
    const place = await ask("place", { at: "", leaf: -1 });
    if (place.length <= shown.length) return;
    const last = shown.length === 0 ? shown.leaf : await ask("row", { leaf: place.leaf, index: shown.length - 1 });
    if (last === shown.leaf) pane.goesOn(place);
  };
  const grow = async (now) => {
    const old = state;
    if (old.stamp !== now.stamp) { location.reload(); return; }
    if (old.count === now.count) return;
    const tail = pane.atEnd();
    state = now;
    document.title = now.title;
    document.querySelector("h1").textContent = now.title;
    document.getElementById("facts").textContent = now.facts;
    await follow(old);
    if (old.labels !== now.labels) page.fillLabels();
    page.forgetLines();
    await pane.fill();
    if (tail) pane.toEnd();
  };
  let growing = page.done;
  let listening = null;
  const listen = () => {
    if (document.hidden || listening) return;
    listening = new EventSource("events");
    listening.onopen = () => { live.className = "on"; };
    listening.onmessage = (event) => { growing = growing.then(() => grow(JSON.parse(event.data))).catch((error) => page.notice(error.message)); };
    listening.onerror = () => { live.className = ""; };
    listening.addEventListener("lost", (event) => {
      page.notice(JSON.parse(event.data));
      live.className = "lost";
      listening.close();
    });
  };
  const unlisten = () => {
    // A browser has six connections to a server: pages that nobody sees give theirs back.
    listening?.close();
    listening = null;
    live.className = "";
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? unlisten() : listen()));
  addEventListener("pagehide", unlisten);
  addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
  page.done.then(listen);
})();
