const form = document.getElementById("filters");
const list = document.getElementById("list");
const AT_ONCE = 50;  // lines of the list
const pagers = document.querySelectorAll(".pager");
let rows = [...list?.tBodies ?? []].flatMap((body) => [...body.rows]);
let part = 0;
const columns = [...list?.tHead.rows[0].cells ?? []].map((head) => head.dataset.source ?? head.textContent);
const texts = new Map();

// What a row can be filtered by, as lists: most of it stands in its cells.
function properties(row) {
  const cell = (name) => row.cells[columns.indexOf(name)];
  const { artefact } = row.parentElement.dataset;
  const [verdict, check] = cell("verdict").children;
  return {
    artefact: [artefact],
    paper: [artefact.split("/")[0]],
    verdict: [verdict.textContent.replace(" only ", " ").replaceAll(" ", "_"), ..."shown" in row.dataset ? ["shown"] : []],
    check: [check.textContent],
    variant: columns.filter((name) => cell(name).textContent !== ""),
    data: [row.dataset.data ?? "simulated"],
    erratum: cell("erratum").textContent.split(" "),
  };
}

for (const body of list?.tBodies ?? []) {
  const [first, ...others] = [...body.rows].map((row) => row.cells[0]);
  for (const cell of others) cell.prepend(first.firstChild.textContent);
  for (const row of body.rows) row.dataset.conditions = body.dataset.conditions ?? "";
}

// read before the rows are sorted, which takes them out of the parts of their artefacts
const known = new Map(rows.map((row) => [row, properties(row)]));

// A row is shown if it has one of the chosen values of every property of which any is chosen, and all words asked for.
function narrow() {
  const chosen = new FormData(form);
  const asked = chosen.get("search").toLowerCase().split(/\s+/);
  chosen.delete("search");
  const wanted = [...new Set(chosen.keys())].map((name) => [name, chosen.getAll(name).filter(Boolean)])
    .filter(([, values]) => values.length > 0);
  if (texts.size === 0 && asked.some(Boolean)) {
    for (const row of rows) texts.set(row, `${row.textContent} ${row.querySelector("a")?.hash ?? ""}`.toLowerCase());
  }
  const matching = rows.filter((row) => (
    wanted.every(([name, values]) => known.get(row)[name].some((value) => values.includes(value))) &&
    asked.every((word) => word === "" || texts.get(row).includes(word))));
  const count = matching.length;
  const last = Math.max(Math.ceil(count / AT_ONCE) - 1, 0);
  part = Math.min(part, last);
  const seen = new Set(matching.slice(part * AT_ONCE, (part + 1) * AT_ONCE));
  for (const row of rows) row.hidden = !seen.has(row);
  for (const pager of pagers) {
    pager.hidden = last === 0;
    pager.querySelector("span").textContent = `${part * AT_ONCE + 1} to ${part * AT_ONCE + seen.size} of ${count}`;
    pager.querySelector("[data-step='-1']").disabled = part === 0;
    pager.querySelector("[data-step='1']").disabled = part === last;
  }
  const more = wanted.filter(([name]) => name !== "verdict").flatMap(([, values]) => values).join(", ");
  document.getElementById("active").textContent = more && `: ${more.replaceAll("_", " ")}`;
  document.getElementById("shown").textContent = `${count} of ${rows.length}`;
}

function follow() {
  form.reset();
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    for (const field of form.querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
      if (field.type !== "checkbox") field.value = value;
      else if (field.value === value) field.checked = true;
    }
  }
  narrow();
}

function remember() {
  part = 0;
  narrow();
  const given = [...new FormData(form)].filter(([, value]) => value);
  history.replaceState(null, "", `#${new URLSearchParams(given)}`);
}

function sort(head, column) {
  const up = head.getAttribute("aria-sort") !== "ascending";
  for (const one of head.parentElement.cells) one.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
  const isNumber = "source" in head.dataset;
  const shown = (text) => isNumber && text !== "" && !Number.isNaN(parseFloat(text)) ? parseFloat(text) : text;
  const key = (row) => row.cells[column].dataset.order ?? shown(row.cells[column].textContent);
  const order = (one, other) => one - other || (Number.isNaN(one - other) ? `${one}`.localeCompare(other, "en", { numeric: true }) : 0);
  const empty = (text) => Number(text === "");
  rows = rows.toSorted((one, other) => (
    empty(key(one)) - empty(key(other)) || (up ? 1 : -1) * order(key(one), key(other))));
  list.tBodies[0].append(...rows);
  part = 0;
  narrow();
}

if (list) {
  form.hidden = false;
  form.addEventListener("input", remember);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", (event) => { if (event.isTrusted) setTimeout(remember); });
  [...list.tHead.rows[0].cells].forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sort(head, column));
    head.append(button);
  });
  for (const button of document.querySelectorAll(".pager button")) {
    button.addEventListener("click", () => {
      part += Number(button.dataset.step);
      narrow();
      list.scrollIntoView();
    });
  }
  addEventListener("hashchange", follow);
  follow();
}
