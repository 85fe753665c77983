// What a page cannot do without a script: be up to date without being loaded again, copy, go on by itself with bulk work.
// It draws nothing of its own: the server makes the same screen again, and what differs is exchanged.

const html = document.documentElement;
const live = document.getElementById("live");
const skew = Number(html.dataset.now || Date.now()) - Date.now();

/* Times ------------------------------------------------------------------------------------------------------------ */

function span(seconds) {
  const minutes = Math.floor(seconds / 60), hours = Math.floor(seconds / 3600), days = Math.floor(seconds / 86400);
  if (seconds < 60) return `${seconds}s`;
  if (seconds < 600) return `${minutes}m ${seconds % 60}s`;
  if (seconds < 3600) return `${minutes}m`;
  if (seconds < 86400) return `${hours}h ${minutes % 60}m`;
  return `${days}d ${hours % 24}h`;
}

function distance(at) {
  const millis = at - (Date.now() + skew), seconds = Math.floor(Math.abs(millis) / 1000);
  if (seconds === 0) return "now";
  return millis < 0 ? `${span(seconds)} ago` : `in ${span(seconds)}`;
}

function tellTimes() {
  for (const time of document.querySelectorAll("time[data-far]")) {
    const text = distance(Date.parse(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}

/* The same screen again -------------------------------------------------------------------------------------------- */

// Makes `old` equal to `fresh`, and leaves alone what somebody has typed, ticked, opened or focused.
function exchange(old, fresh) {
  if (old.nodeType !== fresh.nodeType || old.nodeName !== fresh.nodeName || (old.id || "") !== (fresh.id || "")) {
    old.replaceWith(fresh);
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) return;
  for (const { name, value } of [...fresh.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const own = old.nodeName === "DETAILS" ? ["open"] : ["tabindex"];
  for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name) && !own.includes(name)) old.removeAttribute(name);
  if (old.nodeName === "TIME" && old.dataset.far !== undefined) return;
  exchangeChildren(old, fresh);
}

function exchangeChildren(old, fresh) {
  const known = new Map([...old.children].filter((child) => child.id).map((child) => [child.id, child]));
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const same = next.id && known.get(next.id);
    if (same) {
      if (same !== at) old.insertBefore(same, at); else at = at.nextSibling;
      exchange(same, next);
    } else if (at && !(at.id && known.has(at.id)) && at.nodeName === next.nodeName && !next.id) {
      const after = at.nextSibling;
      exchange(at, next);
      at = after;
    } else {
      if (next.id && next.classList.contains("row")) next.classList.add("fresh");
      old.insertBefore(next, at);
    }
  }
  while (at) {
    const after = at.nextSibling;
    at.remove();
    at = after;
  }
}

let isLooking = false, looksAgain = false, failures = 0;

async function look() {
  if (isLooking) { looksAgain = true; return; }
  isLooking = true;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store" });
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = fresh.getElementById("main"), here = document.getElementById("main");
    // Another screen (signing in, trouble) is shown as what it is.
    if (answer.status === 401) location.reload();
    if (!answer.ok || !main || main.dataset.live === undefined) throw new Error(`answered ${answer.status}`);
    const notice = here.querySelector("#notice");
    exchangeChildren(here, main);
    if (notice && !here.contains(notice)) here.prepend(notice);
    const [bar, freshBar] = [document, fresh].map((page) => page.querySelector(".bar nav"));
    if (bar && freshBar) exchangeChildren(bar, freshBar);
    document.title = fresh.title;
    prepare();
    tellTimes();
    failures = 0;
    tellLive(true);
  } catch {
    failures += 1;
    tellLive(false);
  }
  isLooking = false;
  if (looksAgain) { looksAgain = false; soon(); }
}

function tellLive(isWell) {
  if (!live) return;
  live.hidden = false;
  live.classList.toggle("lost", !isWell);
  live.lastElementChild.textContent = isWell ? "Live" : "Connection lost, trying again";
}

let timer = 0;
function soon(ms = 150) {
  if (timer) return;
  timer = setTimeout(() => { timer = 0; look(); }, ms);
}

/* Keeping up ------------------------------------------------------------------------------------------------------- */

const KINDS = ["blocked", "held", "resumed", "gap", "gap_skipped", "dead_lettered", "redriven", "queue_deleted", "missed"];
const WATCHED_MS = 5 * 60 * 1000;
let source = null, seen = Date.now(), wait = 1000;

function listen() {
  if (source) return;
  source = new EventSource("events");
  source.onopen = () => { wait = 1000; tellLive(true); if (failures) soon(); };
  for (const kind of KINDS) source.addEventListener(kind, () => soon());
  source.onerror = () => {
    tellLive(false);
    source.close();
    source = null;
    failures += 1;
    setTimeout(() => { if (!document.hidden) { listen(); soon(); } }, wait);
    wait = Math.min(wait * 2, 30000);
  };
}

function follow() {
  listen();
  for (const kind of ["pointerdown", "pointermove", "keydown", "scroll"]) {
    addEventListener(kind, () => { seen = Date.now(); }, { passive: true });
  }
  // Messages that come and go make no event. While somebody is there, the screen is made again each second; a screen that
  // nobody watches only listens, and one that nobody sees does not even do that.
  setInterval(() => { if (!document.hidden && source && Date.now() - seen < WATCHED_MS) soon(0); }, 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { source?.close(); source = null; } else { seen = Date.now(); listen(); soon(0); }
  });
}

/* The live tail ---------------------------------------------------------------------------------------------------- */

const ROWS_MAX = 500;

function tail(body) {
  const state = document.getElementById("tail-state"), pause = document.querySelector("[data-pause]");
  let isPaused = false, count = 0, delay = 1000;
  pause.hidden = false;
  pause.addEventListener("click", () => {
    isPaused = !isPaused;
    pause.textContent = isPaused ? "Go on" : "Pause";
    pause.setAttribute("aria-pressed", String(isPaused));
  });
  const open = () => {
    const events = new EventSource(body.dataset.tail);
    events.onopen = () => { delay = 1000; tellLive(true); state.textContent = `Listening. ${count} so far.`; };
    events.onerror = () => {
      events.close();
      tellLive(false);
      setTimeout(open, delay);
      delay = Math.min(delay * 2, 30000);
    };
    for (const kind of KINDS) events.addEventListener(kind, (event) => {
      count += 1;
      state.textContent = `Listening. ${count} so far${isPaused ? ", not shown while paused" : ""}.`;
      if (isPaused) return;
      const told = JSON.parse(event.data), row = document.createElement("tr");
      row.className = "fresh";
      const cell = (text, place) => {
        const here = row.insertCell();
        if (text === undefined) return;
        if (!place) { here.textContent = text; return; }
        const link = document.createElement("a");
        link.href = `${place[0]}?${new URLSearchParams(place[1])}`;
        link.textContent = text;
        here.append(link);
      };
      cell((told.at || new Date().toISOString()).slice(11, 23));
      cell(kind === "missed" ? `${told.missed} missed` : kind.replaceAll("_", " "));
      cell(told.queue);
      cell(told.workflow_id, told.workflow_id && ["workflow", { queue: told.queue, id: told.workflow_id }]);
      // Of the text, since numbers of a cluster have more digits than a number of JavaScript keeps.
      const number = event.data.match(/"sequence_number":\s*(\d+)/)?.[1];
      cell(number, number && ["message", { queue: told.queue, number }]);
      cell(told.reason);
      body.prepend(row);
      while (body.rows.length > ROWS_MAX) body.lastElementChild.remove();
    });
  };
  open();
}

/* Small helps ------------------------------------------------------------------------------------------------------ */

function prepare() {
  for (const button of document.querySelectorAll("[data-copy-from]")) {
    button.hidden = !navigator.clipboard;
  }
  const picks = [...document.querySelectorAll("input[name=pick]")], picked = picks.filter((pick) => pick.checked).length;
  const all = document.querySelector("[data-all]"), told = document.querySelector("[data-picked]");
  if (told) told.textContent = `${picked} selected:`;
  if (all) {
    all.checked = picked > 0 && picked === picks.length;
    all.indeterminate = picked > 0 && picked < picks.length;
  }
  for (const button of document.querySelectorAll("#selection .bulk button[name=do]")) button.disabled = picked === 0;
}

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-all]")) {
    for (const pick of document.querySelectorAll("input[name=pick]")) pick.checked = event.target.checked;
  }
  prepare();
});

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy-from]");
  if (!button) return;
  await navigator.clipboard.writeText(document.querySelector(button.dataset.copyFrom).textContent);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  if (event.key === "/") {
    const field = document.querySelector("[data-key='/']");
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  }
});

// The form stays, with where to go on.
function interrupt(form, why) {
  document.querySelector("#progress progress")?.remove();
  form.querySelector("p").textContent = `${why} Look what is left before you go on.`;
  form.querySelector("button").disabled = false;
}

// Bulk work goes on by itself, slice by slice, until it is done or somebody stops it.
async function goOn() {
  let form = document.querySelector("form[data-go-on]"), isStopped = false;
  document.addEventListener("click", (event) => { if (event.target.closest("#stop")) isStopped = true; });
  while (form && !isStopped) {
    // Nobody goes on by hand from where this is at work.
    form.querySelector("button").disabled = true;
    let answer, text;
    try {
      answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      text = await answer.text();
    } catch {
      return interrupt(form, "There was no answer: the last part may be done.");
    }
    if (isStopped) { form.querySelector("button").disabled = false; return; }
    if (answer.status >= 500) return interrupt(form, "The daemon could not go on: the last part may be done.");
    const fresh = new DOMParser().parseFromString(text, "text/html");
    const here = document.getElementById("progress"), next = fresh.getElementById("progress");
    if (!next) { document.getElementById("main").replaceChildren(...fresh.getElementById("main").childNodes); return; }
    here.replaceWith(next);
    form = document.querySelector("form[data-go-on]");
  }
}

prepare();
tellTimes();
setInterval(() => { if (!document.hidden) tellTimes(); }, 1000);
const body = document.querySelector("[data-tail]");
if (body) tail(body);
else if (document.getElementById("main")?.dataset.live !== undefined) follow();
if (document.querySelector("form[data-go-on]")) goOn();
html.dataset.ready = "";
