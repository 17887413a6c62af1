// Pages work without this script. It tells the server the time zone of the reader and keeps the scroll position.
(function () {
  "use strict";
  var zone = "";
  try { zone = Intl.DateTimeFormat().resolvedOptions().timeZone || ""; } catch (e) { zone = ""; }
  if (zone && document.cookie.indexOf("autopost-zone=" + encodeURIComponent(zone)) < 0) {
    document.cookie = "autopost-zone=" + encodeURIComponent(zone) + "; Path=/; Max-Age=31536000; SameSite=Lax" +
      (location.protocol === "https:" ? "; Secure" : "");
  }
  // A form is sent once. Its button says so until the answer comes.
  document.addEventListener("submit", function (e) {
    var form = e.target;
    if (form.method !== "post" || form.hasAttribute("hx-post")) { return; }
    if (form.dataset.sent) { e.preventDefault(); return; }
    form.dataset.sent = "1";
    var button = e.submitter;
    if (button && button.dataset.busy) { button.lastChild.textContent = button.dataset.busy; }
  });
  addEventListener("pageshow", function () {
    document.querySelectorAll("form[data-sent]").forEach(function (form) { delete form.dataset.sent; });
  });
  document.addEventListener("change", function (e) {
    var form = e.target.form;
    if (form && e.target.hasAttribute("data-at-once")) { form.requestSubmit(); }
  });
  // A choice that acts at once needs no button.
  document.querySelectorAll("form").forEach(function (form) {
    if (form.querySelector("[data-at-once]")) { form.querySelectorAll("button").forEach(function (b) { b.hidden = true; }); }
  });
  var first = document.querySelector("[data-focus], [aria-invalid=true]");
  if (first) { first.focus(); }
})();
