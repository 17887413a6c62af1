// Live pages: the server sends the page again after each change, and what differs in elements with data-live is
// replaced in place. Nothing that the person is using is replaced. Rows of lists never appear or vanish: new ones wait
// behind a button.
(function () {
  "use strict";
  var doc = document, source = null, last = 0, lost = null, saidAt = 0;
  var mark = doc.querySelectorAll("[data-alive]");
  if (!doc.querySelector("[data-live]") || !window.EventSource) { return; }

  function clock(at) { return at.toLocaleTimeString(doc.documentElement.lang, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }); }
  function alive() {
    last = Date.now();
    lost = null;
    mark.forEach(function (m) { m.textContent = m.dataset.alive; m.classList.remove("lost"); });
  }
  setInterval(function () {
    if (doc.hidden || !last || Date.now() - last < 10000) { return; }
    lost = lost || new Date(last);
    mark.forEach(function (m) { m.textContent = m.dataset.lost.replace("%s", clock(lost)); m.classList.add("lost"); });
  }, 2000);

  function busy(e) {
    var chosen = getSelection();
    return e.contains(doc.activeElement) && doc.activeElement !== doc.body || e.matches(":active") ||
      !!e.querySelector(":popover-open, dialog[open], .htmx-request") ||
      !chosen.isCollapsed && chosen.rangeCount > 0 && chosen.getRangeAt(0).intersectsNode(e);
  }
  function fresh(e) {
    if (e.nodeType !== 1) { e = e.parentElement; }
    if (!e) { return; }
    e.classList.add("fresh");
    setTimeout(function () { e.classList.remove("fresh"); }, 1200);
  }
  function swap(a, b) {
    var now = doc.importNode(b, true);
    a.replaceWith(now);
    if (window.htmx && now.nodeType === 1) { window.htmx.process(now); }
    fresh(now);
  }
  function attributes(a, b) {
    [].slice.call(b.attributes).forEach(function (x) { if (a.getAttribute(x.name) !== x.value) { a.setAttribute(x.name, x.value); } });
    [].slice.call(a.attributes).forEach(function (x) { if (!b.hasAttribute(x.name) && x.name !== "open") { a.removeAttribute(x.name); } });
  }
  function rows(a, b) {
    var fewer = {}, more = 0;
    [].forEach.call(b.children, function (row) { fewer[row.id] = row; });
    [].forEach.call(a.children, function (row) {
      var now = fewer[row.id];
      row.classList.toggle("gone", !now);
      if (now) { morph(row, now); delete fewer[row.id]; }
    });
    more = Object.keys(fewer).length;
    var button = doc.getElementById(a.dataset.rows);
    if (button) {
      button.hidden = more === 0;
      button.textContent = button.dataset.more.replace("%d", more);
    }
  }
  function morph(a, b) {
    if (a.isEqualNode(b)) { return; }
    if (a.nodeType !== b.nodeType || a.nodeName !== b.nodeName) {
      if (a.nodeType !== 1 || !busy(a)) { swap(a, b); }
    } else if (a.nodeType !== 1) {
      a.data = b.data;
      fresh(a);
    } else if (a.dataset.rows && b.dataset.rows && a.children.length && b.children.length) {
      rows(a, b);
    } else if (a.childNodes.length && a.childNodes.length === b.childNodes.length) {
      if (!a.matches("input, select, textarea")) { attributes(a, b); }
      for (var i = 0, from = [].slice.call(a.childNodes), to = [].slice.call(b.childNodes); i < from.length; i++) { morph(from[i], to[i]); }
    } else if (!busy(a)) {
      swap(a, b);
    }
  }
  function show(text) {
    var page = new DOMParser().parseFromString(text, "text/html"), changed = false;
    doc.querySelectorAll("[data-live]").forEach(function (e) {
      var now = e.id && page.getElementById(e.id);
      if (now && !e.isEqualNode(now)) { morph(e, now); changed = true; }
    });
    var said = doc.getElementById("said");
    if (changed && said && Date.now() - saidAt > 10000) { saidAt = Date.now(); said.textContent = ""; said.textContent = said.dataset.text; }
  }

  function open() {
    if (source || doc.hidden) { return; }
    source = new EventSource("/live?at=" + encodeURIComponent(location.pathname + location.search));
    source.addEventListener("page", function (e) { alive(); show(JSON.parse(e.data)); });
    source.addEventListener("alive", alive);
    source.addEventListener("gone", close);
    last = last || Date.now();
  }
  function close() { if (source) { source.close(); source = null; } }
  doc.addEventListener("visibilitychange", function () { if (doc.hidden) { close(); } else { open(); } });
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  doc.addEventListener("htmx:pushedIntoHistory", function () { close(); open(); });
  open();
})();
