// Finds the pages that have all words, those with a word in their title first, and lets the reader choose a version. ?q=WORDS searches at once.
"use strict";

const {root, version} = document.currentScript.dataset;

function find(words) {
  const found = [];
  for (const page of pages) {
    const title = page.title.toLowerCase(), text = page.text.toLowerCase();
    if (words.every((word) => title.includes(word) || text.includes(word))) {
      found.push({page, first: text.indexOf(words[0]), titled: words.some((word) => title.includes(word))});
    }
  }
  return found.sort((a, b) => b.titled - a.titled).slice(0, 20);
}

function show(found) {
  const list = document.createElement("ul");
  for (const {page, first} of found) {
    const entry = document.createElement("li"), link = document.createElement("a"), around = document.createElement("p");
    link.href = root + page.to;
    link.textContent = page.title;
    around.textContent = page.text.slice(Math.max(0, first - 60), first + 120);
    entry.append(link, around);
    list.append(entry);
  }
  const said = document.createElement("p");
  said.textContent = found.length === 0 ? "No page has these words." : found.length === 1 ? "One page:" : `${found.length} pages:`;
  document.getElementById("found").replaceChildren(said, list);
}

function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  if (words.length === 0) {
    document.getElementById("found").replaceChildren();
    return;
  }
  show(find(words));
}

function choose() {
  if (typeof versions === "undefined" || !Array.isArray(versions) || versions.length < 2) {
    return;
  }
  const label = document.createElement("label"), select = document.createElement("select");
  for (const other of versions) {
    select.add(new Option(other, other, other === version, other === version));
  }
  select.addEventListener("change", () => { location.href = `${root}../${select.value}/index.html`; });
  label.append("Version ", select);
  document.getElementById("version").replaceChildren(label);
}

const input = document.getElementById("search"), asked = new URLSearchParams(location.search).get("q");
input.addEventListener("input", () => search(input.value));
if (asked) {
  input.value = asked;
  search(asked);
}
choose();
