"use strict";
// The middle of a page: a window of one branch. Entries come as HTML, some at a time, when they are nearly in view;
// what is far away goes again, so that a page stays light however long its session is.
const makePane = (source, main, notice) => {
  const CHUNK = 30;
  const MOST = Math.max(240, source.atOnce);
  const NEAR = 1200;
  let shown = { leaf: -1, length: 0, from: 0, to: 0 };

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
  const after = async (count = CHUNK) => {
    const mine = shown;
    const texts = await source.entries(mine.leaf, mine.to, count);
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
      const at = start + texts.length;
      const more = await source.entries(mine.leaf, at, mine.from - at);
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
    } catch (error) { notice(error.message); } finally { filling = null; }
  };
  const fill = () => (filling ??= fillUp());
  // A screen that is turned, or a side that is folded, changes all heights: what was at the top stays there.
  let atTop = null;
  const remember = () => {
    const top = main.getBoundingClientRect().top;
    const element = Array.from(main.children).find((a) => a.getBoundingClientRect().bottom > top);
    atTop = element ? { element, offset: element.getBoundingClientRect().top - top } : null;
  };
  main.addEventListener("scroll", () => { remember(); fill(); }, { passive: true });
  new ResizeObserver(() => {
    if (atTop?.element.isConnected) main.scrollTop += atTop.element.getBoundingClientRect().top - main.getBoundingClientRect().top - atTop.offset;
    fill();
  }).observe(main);

  const begin = async (place) => {
    const all = place.length <= source.atOnce;
    const mine = { leaf: place.leaf, length: place.length, from: all ? 0 : Math.max(0, place.index - 5), to: 0 };
    const texts = await source.entries(mine.leaf, mine.from, all ? place.length : CHUNK);
    mine.to = mine.from + texts.length;
    shown = mine;
    main.replaceChildren(...toElements(texts));
    while (shown === mine && shown.to <= (all ? place.length - 1 : place.index)) if (!(await after(all ? MOST : CHUNK))) return;
  };
  const open = async (place) => {
    const inside = place.leaf === shown.leaf && place.index >= shown.from && place.index < shown.to;
    if (!inside) await begin(place);
    shown.length = Math.max(shown.length, place.length);
    setTimeout(fill, 50);
    return document.getElementById(`e${place.row}`);
  };

  // ---- all of a long text
  main.addEventListener("click", async (event) => {
    const button = event.target.closest("button.more");
    if (!button) return;
    const old = button.closest("article");
    const [whole] = toElements([await source.entry(Number(old.id.slice(1)))]);
    whole.classList.toggle("here", old.classList.contains("here"));
    const opened = Array.from(old.querySelectorAll("details"), (d) => d.open);
    whole.querySelectorAll("details").forEach((d, i) => { d.open = opened[i]; });
    old.replaceWith(whole);
  });

  return {
    open,
    fill,
    shown: () => shown,
    // The branch goes on: its end is another one now.
    goesOn: ({ leaf, length }) => { Object.assign(shown, { leaf, length }); },
    atEnd: () => main.scrollHeight - main.scrollTop - main.clientHeight < 60 && shown.to >= shown.length,
    toEnd: () => { main.scrollTop = main.scrollHeight; },
  };
};
