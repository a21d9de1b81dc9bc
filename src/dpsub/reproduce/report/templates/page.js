import DataTable from "datatables";

const form = document.getElementById("filters");
const list = document.getElementById("list");

function paint(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.hidden = false;
  button.textContent = theme === "dark" ? "Light colours" : "Dark colours";
}

const system = matchMedia("(prefers-color-scheme: dark)");
paint(system.matches ? "dark" : "light");
system.addEventListener("change", (event) => paint(event.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => {
  paint(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
});

const table = list && new DataTable(list, {
  autoWidth: false,
  order: [],
  pageLength: 25,
  lengthMenu: [25, 100, { label: "all", value: -1 }],
  columnDefs: [{ targets: ".number", type: "num" }],
  layout: { topStart: "search", topEnd: "pageLength", bottomStart: "info", bottomEnd: "paging" },
  language: { search: "Search", lengthMenu: "_MENU_ a page", info: "_START_ to _END_ of _TOTAL_",
    infoFiltered: "(of _MAX_ in all)", infoEmpty: "none", emptyTable: "none", zeroRecords: "Nothing fits." },
});

const search = document.querySelector(".dt-search input");

// A row is shown if it has one of the chosen values of every property of which any is chosen.
function chosen() {
  const found = new Map();
  for (const [name, value] of new FormData(form)) {
    if (value) found.set(name, [...(found.get(name) ?? []), value]);
  }
  return found;
}

function draw() {
  const wanted = [...chosen()];
  const more = wanted.filter(([name]) => name !== "verdict");
  const names = more.flatMap(([, values]) => values).join(", ").replaceAll("_", " ");
  document.getElementById("active").textContent = names && `: ${names}`;
  table.search.fixed("filters", wanted.length === 0 ? null : (text, data, index) => {
    const has = table.row(index).node().dataset;
    return wanted.every(([name, values]) => has[name].split(" ").some((value) => values.includes(value)));
  }).draw();
}

function choose(parameters) {
  for (const field of form.elements) {
    if (field.type === "checkbox") field.checked = false;
    else if (field.matches("select")) field.value = "";
  }
  table.search(parameters.get("search") ?? "");
  for (const [name, value] of parameters) {
    for (const field of form.querySelectorAll(`[name="${CSS.escape(name)}"]`)) {
      if (field.type !== "checkbox") field.value = value;
      else if (field.value === value) field.checked = true;
    }
  }
  draw();
}

function remember() {
  const parameters = new URLSearchParams([...chosen()].flatMap(([name, values]) => values.map((value) => [name, value])));
  if (search.value) parameters.set("search", search.value);
  history.replaceState(null, "", `#numbers${parameters.size ? `?${parameters}` : ""}`);
}

function show(element) {
  for (const old of document.querySelectorAll(".found")) old.classList.remove("found");
  for (let part = element.closest("details"); part; part = part.parentElement.closest("details")) part.open = true;
  const cell = element.matches("td, tr");
  if (cell) {
    element.classList.add("found");
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
  }
  element.scrollIntoView({ block: cell ? "center" : "start", inline: "center" });
}

// The line of a printed number that stands in no table of the page, such as a figure's.
function showLine(address) {
  const row = table.rows().nodes().toArray().find((one) => one.dataset.cell === address);
  if (!row) return;
  choose(new URLSearchParams());
  const place = table.rows({ search: "applied" }).nodes().toArray().indexOf(row);
  const size = table.page.len();
  table.page(size > 0 ? Math.floor(place / size) : 0).draw("page");
  show(row);
}

function go() {
  const address = location.hash.slice(1);
  const [section, query] = address.split("?");
  const element = document.getElementById(address) ?? document.getElementById(section);
  if (element?.id === "numbers" && query !== undefined && table) choose(new URLSearchParams(query));
  if (element) show(element);
  else if (address && table) showLine(address);
}

if (table) {
  form.hidden = false;
  form.addEventListener("change", () => { draw(); remember(); });
  form.addEventListener("reset", () => setTimeout(() => { draw(); remember(); }));
  search.addEventListener("input", remember);
}
addEventListener("hashchange", go);
go();
