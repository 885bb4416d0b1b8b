// Loads the page again when something has changed, and keeps what its reader has opened, scrolled to, and where the focus is.
"use strict";

const live = document.getElementById("live");
const pause = document.getElementById("pause");
// The least time between two loads, in milliseconds: what a page of one node or plan is made of takes more to read.
const least = location.pathname === "/" ? 5000 : 15000;
let last = Date.now(), timer = 0, loading = false, changed = false;
let known = document.getElementById("main").dataset.digest || "";

// What is wrong, by where; the reader is told of one.
const wrong = {page: "", connection: ""};

function tell(where, text) {
  wrong[where] = text;
  const now = wrong.connection || wrong.page;
  if (live.textContent !== now) {
    live.textContent = now;
  }
}

function isPaused() {
  return pause.getAttribute("aria-pressed") === "true" || document.hidden;
}

// soon loads the page when it may be loaded again.
function soon() {
  changed = true;
  if (timer || loading || isPaused()) {
    return;
  }
  const wait = Math.max(0, last + least - Date.now()) + Math.random() * 1000; // not all readers at once
  timer = setTimeout(() => {
    timer = 0;
    load();
  }, wait);
}

// stops are what the focus can be on, each with what tells it from the others of its kind.
function stops(root) {
  return [...root.querySelectorAll("a[href], summary, [tabindex]")].map((element) => [
    element, element.tagName + (element.getAttribute("href") || element.getAttribute("aria-label") || element.parentElement.id),
  ]);
}

// takeOver has a new content stand as the old one does.
function takeOver(old, main) {
  for (const details of old.querySelectorAll("details[open][id]")) {
    main.querySelector("#" + CSS.escape(details.id))?.setAttribute("open", "");
  }
  const all = stops(old);
  const at = all.findIndex(([element]) => element === document.activeElement);
  const whole = document.activeElement === old;
  const scrolled = [...old.querySelectorAll(".wide")].map((one) => [one.getAttribute("aria-label"), one.scrollLeft]);
  old.replaceWith(main);
  for (const [label, left] of scrolled) {
    const same = [...main.querySelectorAll(".wide")].find((one) => one.getAttribute("aria-label") === label);
    if (same) {
      same.scrollLeft = left;
    }
  }
  if (whole) {
    main.focus({preventScroll: true});
  }
  if (at >= 0) {
    const nth = all.slice(0, at).filter(([, key]) => key === all[at][1]).length;
    stops(main).filter(([, key]) => key === all[at][1])[nth]?.[0].focus({preventScroll: true});
  }
}

async function load() {
  loading = true;
  changed = false;
  try {
    const answer = await fetch(location.href, {cache: "no-store", signal: AbortSignal.timeout(30000)});
    if (answer.redirected || (!answer.ok && answer.status !== 404)) {
      throw new Error("the server answers " + answer.status);
    }
    const main = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
    if (!main) {
      throw new Error("the answer is another page");
    }
    known = main.dataset.digest || known;
    takeOver(document.getElementById("main"), main);
    tell("page", "");
  } catch (problem) {
    tell("page", "This is not up to date: " + problem.message);
  }
  last = Date.now();
  loading = false;
  if (changed) {
    soon();
  }
}

// The stream of changes. A server that refuses it is asked again, more and more rarely.
let events = null, again = 0, retry = 0, silent = 0;

function connect() {
  events?.close();
  events = new EventSource("/live");
  events.onmessage = (event) => {
    if (known !== event.data) {
      known = event.data;
      soon();
    }
  };
  events.onopen = () => {
    again = 0;
    clearTimeout(silent);
    silent = 0;
    tell("connection", "");
  };
  events.onerror = () => {
    // It connects again by itself, as after a while it always has to.
    silent = silent || setTimeout(() => tell("connection", "There is no connection: this is what was known last."), 10000);
    if (events.readyState === EventSource.CLOSED) {
      again = Math.min(again * 2 || 5000, 60000);
      retry = setTimeout(connect, again);
    }
  };
}

function disconnect() {
  clearTimeout(retry);
  clearTimeout(silent);
  silent = 0;
  events?.close();
}

// A page that nobody sees asks for nothing: browsers have few connections for one server.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    disconnect();
  } else {
    connect();
    soon();
  }
});

pause.hidden = false;
pause.addEventListener("click", () => {
  const paused = pause.getAttribute("aria-pressed") !== "true";
  pause.setAttribute("aria-pressed", String(paused));
  if (!paused) {
    soon();
  }
});

if (!document.hidden) {
  connect();
}
setInterval(soon, 60000); // the ages
