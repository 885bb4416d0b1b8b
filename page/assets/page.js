// Loads the page again when something has changed, and keeps what its reader has opened and where the focus is.
"use strict";

const live = document.getElementById("live");
const least = location.pathname === "/" ? 0 : 10000; // what a page of one node or plan is made of takes more to read
let loading = false, again = false, last = Date.now();

function local(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    time.textContent = new Date(time.dateTime).toLocaleString();
  }
}

async function load() {
  if (loading) {
    again = true;
    return;
  }
  loading = true;
  await new Promise((then) => setTimeout(then, Math.max(0, last + least - Date.now())));
  last = Date.now();
  try {
    const answer = await fetch(location.href, {cache: "no-store"});
    const main = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("main");
    if (!main) {
      throw new Error("no page: " + answer.status);
    }
    const old = document.getElementById("main");
    for (const details of old.querySelectorAll("details[open][id]")) {
      main.querySelector("#" + CSS.escape(details.id))?.setAttribute("open", "");
    }
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    local(main);
    old.replaceWith(main);
    if (focused) {
      main.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus({preventScroll: true});
    }
    say("");
  } catch (problem) {
    say("This page cannot be brought up to date: " + problem.message);
  }
  loading = false;
  if (again) {
    again = false;
    load();
  }
}

function say(text) {
  if (live.textContent !== text) {
    live.textContent = text;
  }
}

let known = "";
const events = new EventSource("/live");
events.onmessage = (event) => {
  if (known && known !== event.data) {
    load();
  }
  known = event.data;
};
events.onopen = () => say("");
events.onerror = () => say("There is no connection: this is what was known last.");
setInterval(load, 60000); // the ages
local(document);
