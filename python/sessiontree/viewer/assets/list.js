"use strict";
// The list of sessions: more of it is asked for as it is scrolled, and all of it when something has changed.
(() => {
  const $ = (id) => document.getElementById(id);
  const [search, sort, list, hits, said, state, facts] = ["search", "sort", "sessions", "hits", "said", "state", "facts"].map($);
  const PAGE = 100;
  const SORTS = { modified: "newest first", created: "begun last", cost: "most costly", messages: "most messages", size: "largest", name: "by name" };
  sort.append(...Object.entries(SORTS).map(([value, text]) => new Option(text, value)));
  let total = 0;
  let version = -1;
  let run = 0;

  const make = (tag, className, ...content) => {
    const element = document.createElement(tag);
    if (className) element.className = className;
    element.append(...content);
    return element;
  };
  const ask = async (what, values) => {
    const answer = await fetch(`${what}?${new URLSearchParams(values)}`);
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return answer.json();
  };
  const dates = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const when = (ms) => {
    try { return ms === null ? "" : dates.format(ms); } catch { return ""; }
  };
  const size = (bytes) => {
    const unit = bytes < 1e3 ? 0 : bytes < 1e6 ? 1 : bytes < 1e9 ? 2 : 3;
    return `${(bytes / 1e3 ** unit).toFixed(unit && bytes / 1e3 ** unit < 10 ? 1 : 0)} ${["B", "kB", "MB", "GB"][unit]}`;
  };
  const status = (row) => {
    if (Date.now() - row.written < 60_000) return make("span", "fresh", "● now");
    if (row.last_role === "assistant" && row.stop_reason === "error") return make("span", "failed", "failed");
    return "";
  };
  const sessionLine = (row) => {
    const a = make("a");
    a.href = `s/${row.key}/`;
    const cost = row.cost ? ` · $${row.cost.toFixed(2)}` : "";
    const facts = `${row.messages.toLocaleString()} messages · ${size(row.size)}${cost}`;
    a.append(
      make("span", "name", row.name || row.words || row.id),
      make("span", "when", when(row.modified), " ", status(row)),
      make("span", "about", [row.cwd, row.models.join(", "), row.name ? row.words : ""].filter(Boolean).join(" · ")),
      make("span", "when", facts),
    );
    const li = make("li", "", a);
    li.dataset.key = row.key;
    return li;
  };
  const marked = (hit) => {
    // Marks count characters as Python does.
    const text = Array.from(hit.snippet);
    const made = [];
    let at = 0;
    for (const [start, end] of hit.marks) {
      made.push(text.slice(at, start).join(""), make("mark", "", text.slice(start, end).join("")));
      at = end;
    }
    return [...made, text.slice(at).join("")];
  };
  const hitLine = (hit) => {
    const a = make("a");
    a.href = `s/${hit.key}/${hit.entry ? `#${encodeURIComponent(hit.entry)}` : ""}`;
    a.append(
      make("span", "name", hit.name), make("span", "when", when(hit.time)),
      make("span", "about", `${hit.role}: `, ...marked(hit)), make("span", "when", hit.cwd),
    );
    return make("li", "", a);
  };

  // ---- the list
  const query = () => ({ q: search.value.trim(), sort: sort.value });
  const tell = (answer) => {
    total = answer.total;
    version = answer.version;
    facts.textContent = `${total.toLocaleString()} ${total === 1 ? "session" : "sessions"}`;
    progress(answer);
  };
  const progress = ({ progress: done, trouble }) => {
    const reading = done && done[1] > 0 ? `reading for the search: ${Math.floor((100 * done[0]) / done[1])} %` : "";
    state.textContent = trouble || reading || (total === 0 && version > 0 ? "Nothing found." : "");
  };
  const show = async (count) => {
    const mine = ++run;
    const answer = await ask("sessions", { ...query(), from: 0, count });
    if (mine !== run) return;
    tell(answer);
    const focused = document.activeElement?.closest?.("#sessions li")?.dataset.key;
    list.replaceChildren(...answer.sessions.map(sessionLine));
    if (focused) list.querySelector(`[data-key="${focused}"] a`)?.focus();
  };
  let loading = false;
  const more = async () => {
    if (loading || list.children.length >= total) return;
    loading = true;
    const mine = run;
    try {
      const answer = await ask("sessions", { ...query(), from: list.children.length, count: PAGE });
      if (mine === run) list.append(...answer.sessions.map(sessionLine));
    } finally { loading = false; }
    if (near()) more();
  };
  const near = () => $("end").getBoundingClientRect().top < innerHeight + 600;
  document.querySelector("main").addEventListener("scroll", () => { if (near()) more(); }, { passive: true });

  // ---- what was said
  let asked = 0;
  const find = async () => {
    const mine = ++asked;
    const words = search.value.trim();
    const found = words.length > 1 ? await ask("search", { q: words, count: 50 }).catch(() => []) : [];
    if (mine !== asked) return;
    hits.replaceChildren(...found.map(hitLine));
    said.hidden = found.length === 0;
  };
  const both = async () => {
    history.replaceState(null, "", search.value || sort.value !== "modified" ? `#${new URLSearchParams(query())}` : location.pathname);
    await Promise.all([show(search.value.trim() ? 20 : PAGE), find()]);
    document.documentElement.dataset.shown = search.value.trim();
  };
  let timer;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(both, 120); });
  sort.addEventListener("change", both);

  // ---- keys, theme
  const root = document.documentElement;
  const stored = (value) => {
    try { return value === undefined ? localStorage.getItem("theme") : localStorage.setItem("theme", value); } catch { return null; }
  };
  const before = stored();
  root.dataset.theme = before === "dark" || before === "light" ? before : matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const toggle = () => { root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark"; stored(root.dataset.theme); };
  $("theme").addEventListener("click", toggle);
  const step = (by) => {
    const all = Array.from(document.querySelectorAll("main li a"));
    const at = all.indexOf(document.activeElement);
    all[Math.max(0, Math.min(all.length - 1, at + by))]?.focus();
  };
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && event.target === search) { search.value = ""; both(); search.blur(); return; }
    if (event.key === "ArrowDown" && event.target === search) { event.preventDefault(); search.blur(); step(1); return; }
    if (event.target === search || event.target === sort || event.ctrlKey || event.metaKey || event.altKey) return;
    const act = { "/": () => search.focus(), j: () => step(1), k: () => step(-1), t: toggle }[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  // ---- what changes
  let listening = null;
  const listen = () => {
    if (document.hidden || listening) return;
    listening = new EventSource("events");
    listening.onmessage = (event) => {
      const now = JSON.parse(event.data);
      progress(now);
      if (now.version !== version) show(Math.max(list.children.length, search.value.trim() ? 20 : PAGE)).then(() => (search.value.trim() ? find() : null));
    };
  };
  const unlisten = () => { listening?.close(); listening = null; };
  document.addEventListener("visibilitychange", () => (document.hidden ? unlisten() : listen()));
  addEventListener("pagehide", unlisten);
  addEventListener("pageshow", (event) => { if (event.persisted) listen(); });

  const given = new URLSearchParams(location.hash.slice(1));
  search.value = given.get("q") ?? "";
  if (given.get("sort") in SORTS) sort.value = given.get("sort");
  both().then(() => { root.dataset.ready = "yes"; listen(); });
})();
