// Shows what the server sends and, of it, the card of whatever is chosen. Nothing here asks the server anything.

const TAGS = new Set(("div span p b strong mark br a ul li del ins table thead tbody tr th td details summary button"
  + " h2 h3 q").split(" "));
const ATTRIBUTES = new Set(("class data-show data-card data-text aria-label aria-describedby aria-hidden aria-valuenow"
  + " aria-valuemin aria-valuemax title tabindex role id type scope colspan style href target open").split(" "));

/** A copy of this HTML with nothing but the elements and attributes above; parsed where no script runs. */
function copied(html) {
  const into = document.createDocumentFragment();
  const copy = (from, to) => from.childNodes.forEach((node) => {
    if (node.nodeType === Node.TEXT_NODE) to.append(node.data);
    if (node.nodeType !== Node.ELEMENT_NODE) return;
    const name = node.localName;
    const made = TAGS.has(name) ? document.createElement(name) : to;
    if (made !== to) {
      for (const { name: key, value } of node.attributes) {
        if (!ATTRIBUTES.has(key) || value === "status") continue; // one live region is enough
        if (key !== "href" || /^(records|read|ask|check)\?/.test(value)) made.setAttribute(key, value);
      }
      to.append(made);
    }
    copy(node, made);
  });
  copy(new DOMParser().parseFromString(html, "text/html").body, into);
  return into;
}

const DRAWER = "stSidebarCollapsed"; // under which the browser keeps that it is open, also for the next visit
const NARROW = "(max-width: 900px)";
const SENTENCE = ".rq-left .rq-said";
const SAID = ".rq-left [data-show^='s']"; // a sentence or one of its citations
const ASK_TRIES = 150; // of 200 ms, for a box that a slow server draws after the panes

/** What one mounted pair of panes does; made once, fed with `update`. */
function panesIn(root) {
  const section = root.querySelector(".rq-panes");
  const evidence = root.querySelector(".rq-evidence");
  const body = root.querySelector(".rq-evidence-body");
  const paper = root.querySelector(".rq-print");
  const live = root.querySelector(".rq-live");
  const known = {};
  let data = {}, chosen = "", shown = "", origin = null, follows = false, quiet = false;

  const onPage = (key, id) => document.querySelector(`[data-${key}="${CSS.escape(id)}"]`);
  const escaped = (text) => text.replace(/[&<>]/g, (one) => `&#${one.charCodeAt(0)};`);

  /** The card of a row that decides something, with its decision and the reason on top. */
  function withLead(id, html) {
    const lead = html === undefined ? null : onPage("lead", id);
    return lead ? `<p class="rq-reason">${lead.innerHTML} ${escaped(lead.title)}</p>${html}` : html;
  }

  /** The HTML of a card; that of a pair is its number, the answer sentence and the card of its row. */
  function cardOf(id) {
    const pair = /^x(\d+)\.(\d+)$/.exec(id);
    if (!pair) return data.cards?.[id] ?? withLead(id, onPage("card", id)?.innerHTML);
    const cell = onPage("show", id);
    const said = section.querySelector(`[data-show="s${pair[2]}"] .rq-sentence`)?.textContent ?? "";
    return cell && `<p class="rq-card-head"><b>Sentence ${+pair[2] + 1} against source sentence ${+pair[1] + 1}</b></p>`
      + `<p class="rq-reason">${escaped(cell.title)}</p><p class="rq-quote">${escaped(said)}</p>`
      + onPage("card", `m${pair[1]}`)?.innerHTML;
  }

  function draw() {
    const html = chosen && (cardOf(chosen) || shown); // a card whose tab was left stays in sight
    evidence.hidden = !html;
    if (html && html !== shown) {
      shown = html;
      body.replaceChildren(copied(html));
      const mark = body.querySelector("mark");
      body.scrollTop = 0;
      if (mark) {
        const below = mark.getBoundingClientRect().bottom - body.getBoundingClientRect().bottom;
        if (below > 0) body.scrollTop = below + body.clientHeight / 3;
      }
    }
    document.querySelectorAll("[data-show]").forEach((each) => {
      each.classList.toggle("rq-chosen", each.dataset.show === chosen);
      if (each.matches(".rq-said, .rq-cite, .rq-pick")) each.setAttribute("aria-pressed", each.dataset.show === chosen);
    });
  }

  /** The words of a button onto the clipboard; a page that is not served safely has none, and selects them instead. */
  function copy(button) {
    const field = document.createElement("textarea");
    field.value = button.dataset.text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    button.focus();
    live.textContent = button.textContent = done ? "Copied" : "Copying is not allowed here";
  }

  /** Whether the focus is where a question was asked, or nowhere. */
  function isAsking() {
    const at = document.activeElement;
    return !at || at === document.body || Boolean(at.closest("[data-testid=stForm], .st-key-examples"));
  }

  /** Asking comes first: the box has the focus, also where it is drawn after the panes. */
  function askFirst(tries) {
    if (data.id || document.activeElement !== document.body || document.querySelector(".st-key-presenting")) return; // where arrows step
    const box = document.querySelector("[data-testid=stForm] textarea");
    if (box) box.focus({ preventScroll: true });
    else if (tries) setTimeout(() => askFirst(tries - 1), 200);
  }

  function close() {
    if (!evidence.classList.contains("rq-sheet")) return;
    evidence.classList.remove("rq-sheet");
    origin?.focus({ preventScroll: true });
  }

  /** Shows the card of this id; as a sheet over the page where its pane is not in sight. */
  function choose(id, from, asked) {
    if (cardOf(id) === undefined) return;
    chosen = id;
    draw();
    if (!asked) return;
    origin = from;
    const box = evidence.getBoundingClientRect();
    const inSight = box.top < innerHeight * 0.6 && box.bottom > 160;
    if (matchMedia(NARROW).matches || !inSight) evidence.classList.add("rq-sheet");
    else if (!from.closest(".rq-evidence")) evidence.classList.remove("rq-sheet");
  }

  const onClick = (event) => {
    if (event.target.closest("[data-testid=stExpandSidebarButton]")) { // the button vanishes, and the focus with it
      setTimeout(() => {
        document.querySelector("[data-testid=stSidebarUserContent] input")?.focus();
        Object.keys(localStorage).filter((key) => key.startsWith(DRAWER)).forEach((key) => localStorage.removeItem(key));
      }, 300);
    } else if (matchMedia(NARROW).matches && event.target.closest("a, .rq-act")) { // it would cover what comes next
      document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
    }
    const act = event.target.closest(".rq-act");
    if (act) copy(act);
    const from = event.target.closest("[data-show]");
    if (from) choose(from.dataset.show, from, true);
  };
  const onFocus = (event) => {
    const from = event.target.closest(SAID);
    if (from && from.dataset.show !== chosen) choose(from.dataset.show, from, false);
  };
  /** Brings the focus to a sentence that nobody chose: its reason would lie over the next ones, so it waits. */
  function rest(sentence) {
    quiet = true;
    sentence.classList.add("rq-quiet");
    sentence.focus({ preventScroll: true });
  }

  const onKey = (event) => {
    quiet = false;
    section.querySelector(".rq-quiet")?.classList.remove("rq-quiet");
    if (event.key === "Escape") return close();
    if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.isComposing && event.target.closest?.(".st-key-question textarea")) {
      event.preventDefault(); // Enter asks, Shift and Enter begin a line
      event.stopPropagation();
      event.target.blur(); // which is when Streamlit takes the words
      return event.target.closest("[data-testid=stForm]")?.querySelector("button").click();
    }
    const from = event.target.closest?.("[data-show]");
    if (!from) return undefined;
    if ((event.key === "Enter" || event.key === " ") && from.tagName !== "BUTTON") {
      event.preventDefault();
      return choose(from.dataset.show, from, true);
    }
    return walk(event, from);
  };
  /** Up and down among the sentences, and among the rows of a list; in the map of pairs in all directions. */
  function walk(event, from) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    let to = null;
    if (from.tagName === "TD") {
      const row = { ArrowDown: from.parentElement.nextElementSibling, ArrowUp: from.parentElement.previousElementSibling };
      to = { ArrowRight: from.nextElementSibling, ArrowLeft: from.previousElementSibling }[event.key]
        ?? row[event.key]?.cells[from.cellIndex];
    } else if (steps[event.key]) {
      const all = [...document.querySelectorAll(from.matches(SAID) ? SENTENCE : ".rq-pick")];
      const of = from.dataset.show.split(".")[0]; // a citation's sentence
      const here = all.indexOf(from) >= 0 ? all.indexOf(from) : all.findIndex((one) => one.dataset.show === of);
      to = all[here + steps[event.key]];
    }
    if (!to?.dataset?.show) return;
    event.preventDefault();
    if (to.tabIndex < 0) to.tabIndex = -1;
    to.focus();
    choose(to.dataset.show, to, from.tagName === "TD" || !to.matches(SAID));
  }

  const onPrint = () => { // made only then: nobody else reads it
    paper.replaceChildren(...Object.keys(data.cards ?? {}).filter((id) => /^s\d+$/.test(id)).map((id) => {
      const one = document.createElement("div");
      one.append(copied(data.cards[id]));
      return one;
    }));
  };

  const onInput = (event) => { // from then on the box tells another question than the answer's
    follows = false;
    if (event.target.closest?.("[data-testid=stForm]")) section.classList.add("rq-retyped");
  };

  window.addEventListener("beforeprint", onPrint);
  document.addEventListener("input", onInput);
  root.querySelector(".rq-close").addEventListener("click", close);
  document.addEventListener("click", onClick);
  document.addEventListener("focusin", onFocus);
  document.addEventListener("keydown", onKey, true);

  return {
    update(next) {
      const before = data;
      data = next;
      if (before.id !== next.id) {
        follows = isAsking();
        chosen = shown = ""; evidence.classList.remove("rq-sheet"); section.classList.remove("rq-retyped");
      }
      section.classList.toggle("rq-boxed", document.querySelector(".st-key-question, .st-key-text_question") !== null);
      section.hidden = !next.id;
      if (!next.id && matchMedia("(pointer: fine)").matches) askFirst(ASK_TRIES);
      const focused = document.activeElement?.closest?.(".rq-left [data-show]")?.dataset.show;
      root.querySelectorAll("[data-part]").forEach((part) => {
        const html = next[part.dataset.part] ?? "";
        if (known[part.dataset.part] === html) return;
        known[part.dataset.part] = html;
        part.replaceChildren(copied(html));
      });
      if (!cardOf(chosen) && !shown) chosen = "";
      if (!chosen && next.cards.s0) chosen = "s0";
      draw();
      if (focused && focused !== document.activeElement?.dataset?.show) {
        const again = section.querySelector(`[data-show="${CSS.escape(focused)}"]`);
        if (again && quiet) rest(again);
        else again?.focus({ preventScroll: true });
      }
      const first = follows && section.querySelector(SENTENCE);
      if (first) { // the arrows walk at once; who writes the next question by then goes on writing
        follows = false;
        if (isAsking()) rest(first);
      }
      if (next.status !== before.status) live.textContent = next.status;
    },
    remove() {
      document.removeEventListener("click", onClick);
      document.removeEventListener("focusin", onFocus);
      document.removeEventListener("keydown", onKey, true);
      document.removeEventListener("input", onInput);
      window.removeEventListener("beforeprint", onPrint);
    },
  };
}

const mounted = new WeakMap();

export default function ({ parentElement, data }) {
  const root = parentElement.querySelector(".rq-panes")?.parentElement;
  if (!root) return undefined;
  if (!mounted.has(root)) mounted.set(root, panesIn(root));
  const panes = mounted.get(root);
  panes.update(data);
  return () => { panes.remove(); mounted.delete(root); };
}
