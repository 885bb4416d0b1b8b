// Finds the pages that have all words, those with a word in their title first.
"use strict";

const root = document.currentScript.dataset.root;

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

document.getElementById("search").addEventListener("input", (event) => {
  const words = event.target.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
  if (words.length === 0) {
    document.getElementById("found").replaceChildren();
    return;
  }
  show(find(words));
});
