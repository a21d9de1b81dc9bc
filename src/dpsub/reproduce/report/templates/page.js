const root = document.documentElement;
const theme = document.getElementById("theme");
const search = document.getElementById("search");
const found = document.getElementById("found");
const run = JSON.parse(document.getElementById("run").textContent);

function paint(name) {
  root.dataset.theme = name;
  theme.textContent = name === "dark" ? "Light colours" : "Dark colours";
}

const system = matchMedia("(prefers-color-scheme: dark)");
paint(system.matches ? "dark" : "light");
system.addEventListener("change", (event) => paint(event.matches ? "dark" : "light"));
theme.addEventListener("click", () => paint(root.dataset.theme === "dark" ? "light" : "dark"));

// Search: what has the most of the asked words in its heading, then in its text, comes first, before that what is asked
// for by its number ("Table 8"); the last word may be a beginning. The summary knows the places of all pages, any other
// page its own, and leads to the summary for the rest.
const symbols = { "ε": "epsilon", "δ": "delta", "η": "eta", "σ": "sigma" };
const split = (text) => text.toLowerCase().replace(/[εδησ]/g, (sign) => symbols[sign]).match(/[\p{L}\p{N}]+/gu) ?? [];
const elsewhere = document.querySelector("nav [aria-current]").getAttribute("href") !== "index.html";
const places = JSON.parse(document.getElementById("places").textContent).map(([title, link, paper, text]) => (
  { title, link, paper, heading: split(title), text: new Set(split(`${paper} ${text}`)) }));

function worth(place, asked) {
  let sum = 0;
  asked.forEach((word, position) => {
    const last = position === asked.length - 1 && word.length > 1;
    if (place.heading.includes(word)) sum += 4;
    else if (last && place.heading.some((one) => one.startsWith(word))) sum += 2;
    else if (place.text.has(word)) sum += 1;
  });
  const number = place.heading.findIndex((word) => /\d/.test(word)) + 1;
  return number && ` ${asked.join(" ")} `.includes(` ${place.heading.slice(0, number).join(" ")} `) ? sum + 9 : sum;
}

// "Zhao and Liu 2023, Table 8": a table's own heading says which it is, a statement or erratum does not.
function where(place) {
  const part = place.link.split("#")[1].split("/");
  const artefact = part.length > 2 && places.find((one) => one.link.endsWith(`#${part.slice(0, 2).join("/")}`));
  const kind = artefact ? artefact.title : /^[A-Z]+\d+$/.test(part[0]) ? "erratum" : part.length === 1 ? "conclusion" : "";
  return [run.papers[place.paper], kind].filter(Boolean).join(", ");
}

function answer(address, title, about) {
  const item = document.createElement("li");
  const link = item.appendChild(document.createElement("a"));
  link.href = address;
  link.textContent = title;
  link.append(Object.assign(document.createElement("span"), { className: "quiet", textContent: ` ${about}` }));
  return item;
}

function lookUp() {
  const asked = split(search.value);
  const best = places.map((place) => [worth(place, asked), place]).filter(([sum]) => sum > 0)
    .sort((one, other) => other[0] - one[0]).slice(0, 12);
  found.replaceChildren(...best.map(([, place]) => answer(place.link, place.title, where(place))));
  if (elsewhere && asked.length > 0) {
    found.append(answer(`index.html#find=${encodeURIComponent(search.value)}`, `Search all pages for “${search.value}”`, ""));
  }
  found.hidden = found.children.length === 0;
  document.getElementById("count").textContent = asked.length === 0 ? "" : `${best.length} places found`;
}

search.addEventListener("input", lookUp);
search.addEventListener("focus", lookUp);
addEventListener("click", (event) => { if (!event.target.closest("[role=search]") || event.target.closest("a")) found.hidden = true; });
addEventListener("keydown", (event) => {
  const links = [...found.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "/" && !document.activeElement.matches("input, select, textarea")) {
    event.preventDefault();
    search.focus();
  } else if (found.hidden || !event.target.closest("[role=search]")) return;
  else if (event.key === "Escape") found.hidden = true;
  else if (event.key === "Enter" && at < 0) links[0].click();
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    (links[at + (event.key === "ArrowDown" ? 1 : -1)] ?? search).focus();
  }
});
document.getElementById("tools").hidden = false;

function ask() {
  if (!location.hash.startsWith("#find=")) return;
  search.value = decodeURIComponent(location.hash.slice(6));
  search.focus();
  lookUp();
}

addEventListener("hashchange", ask);
ask();

function show(element) {
  for (const old of document.querySelectorAll(".found")) old.classList.remove("found");
  for (let part = element.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  element.querySelector(":scope > details.cells")?.setAttribute("open", "");
  const cell = element.matches("td, tr");
  if (cell) {
    element.classList.add("found");
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
  }
  element.scrollIntoView({ block: cell ? "center" : "start", inline: "center" });
}

// An address without a place of its own, such as a number of a figure, leads to what it is part of.
function go() {
  for (let address = location.hash.slice(1); address; address = address.slice(0, Math.max(address.lastIndexOf("/"), 0))) {
    const element = document.getElementById(address);
    if (element) return show(element);
  }
}

addEventListener("hashchange", go);
go();

// Next to each privacy number that an attack or a proof gives stands how it is cited, made of what is around it.
const kinds = { lower: "lower bound, attained by an attack", upper: "upper bound, proved", exact: "exact up to numerical error" };
const dialog = document.createElement("dialog");

function add(parent, tag, text, properties = {}) {
  return parent.appendChild(Object.assign(document.createElement(tag), { textContent: text, ...properties }));
}

// Where a variant is a row it stands there, next to the label of its group; else it is the head of a column.
function said(cell) {
  const row = cell.parentElement;
  const table = row.closest("table");
  const heads = table.tHead.rows[0].cells;
  // counted from the right, as the label of a group of rows stands on the left
  const head = heads[heads.length - (row.cells.length - cell.cellIndex)].textContent.trim();
  if (table.id === "list") return { variant: head, words: [row.cells[1].textContent, row.cells[2].textContent] };
  const group = row.parentElement.querySelector("th[scope=rowgroup]");
  const own = row.querySelector("th[scope=row]").textContent;
  const caption = table.caption?.textContent ?? "";
  return group ? { variant: own, words: [caption, group.textContent, head] } : { variant: head, words: [caption, own] };
}

const value = (cell) => cell.firstChild.textContent.trim();
const quantity = (cell) => said(cell).words.map((part) => part.trim()).filter(Boolean).join("; ");
const sideless = (text) => text.replace(/\b(lower|upper|attack|proved|refuted|by)\b|[(),]/g, "").replace(/\s+/g, " ");
const side = (cell) => cell.querySelector(":scope > i").className;

// Every delta is at most 1, and every loss at least 0: such bounds say nothing, and are not cited.
const trivial = (cell) => (side(cell) === "lower" ? Number(value(cell)) === 0 :
  side(cell) === "upper" && /δ|delta/.test(quantity(cell) + said(cell).variant) && Number(value(cell)) === 1);

// The interval that a number has itself, or that two columns, one of each side, give together.
function interval(cell) {
  const own = cell.textContent.match(/\[[^\]]*\]/);
  if (own) return own[0];
  const other = { lower: "upper", upper: "lower" }[side(cell)];
  const about = (one) => `${said(one).variant}: ${sideless(quantity(one))}`;
  const rest = other ? [...cell.closest("table").querySelectorAll(`td > i.${other}`)].map((sign) => sign.parentElement) : [];
  const partner = rest.find((one) => about(one) === about(cell));
  if (!partner || trivial(partner)) return "";
  const [low, high] = other === "upper" ? [cell, partner] : [partner, cell];
  return `[${value(low)}, ${value(high)}]`;
}

function citation(cell) {
  const article = cell.closest("article");
  const row = cell.parentElement;
  const place = article ? [article.querySelector("h3").textContent, run.papers[article.id.split("/")[0]]] : [row.cells[0].textContent];
  const about = quantity(cell);
  // what is asked for is no condition
  const fixed = ((article ?? row).dataset.conditions ?? "").split("; ").filter((part) => !/^[εδ]/.test(part) || !about.includes(part[0]));
  const relation = cell.dataset.relation ?? row.cells[row.cells.length - 1].textContent.match(/substitute|add_remove|zero_out/)?.[0];
  const conditions = [...fixed, relation && `relation ${relation}`].filter(Boolean).join(", ");
  return [
    `${value(cell)} (${kinds[side(cell)]})`,
    interval(cell) && `Interval: ${interval(cell)}`,
    `Quantity: ${quantity(cell)} (${said(cell).variant})`,
    `Table: ${place.join("; ")}`,
    conditions && `Conditions: ${conditions}`,
    `Run: ${[`dpsub ${run.version}`, `commit ${run.commit}`, run.date].filter(Boolean).join(", ")}`,
    run.bibtex && `\n${run.bibtex}`,
  ].filter(Boolean).join("\n");
}

add(dialog, "h2", "Cite this number", { id: "citing" });
dialog.setAttribute("aria-labelledby", "citing");
const cited = add(dialog, "pre", "", { tabIndex: 0 });
const copy = add(dialog, "button", "Copy", { type: "button" });
add(dialog, "button", "Close", { type: "button" }).addEventListener("click", () => dialog.close());
document.body.append(dialog);
copy.addEventListener("click", async () => {
  getSelection().selectAllChildren(cited);  // for browsers that do not let a file write to the clipboard
  await navigator.clipboard?.writeText(cited.textContent);
  copy.textContent = "Copied";
});

for (const sign of document.querySelectorAll("td > i.lower, td > i.upper, td > i.exact")) {
  const cell = sign.parentElement;
  if (trivial(cell)) continue;
  const button = add(cell, "button", "cite", { type: "button", className: "cite" });
  button.setAttribute("aria-label", `Cite ${value(cell)}`);
  button.addEventListener("click", () => {
    cited.textContent = citation(cell);
    copy.textContent = "Copy";
    dialog.showModal();
  });
}

// For browsers that cannot print what is folded by style alone.
const folded = [];
addEventListener("beforeprint", () => {
  folded.push(...document.querySelectorAll("details:not([open], .screen)"));
  for (const one of folded) one.open = true;
});
addEventListener("afterprint", () => { for (const one of folded.splice(0)) one.open = false; });
