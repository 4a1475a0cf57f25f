"use strict";
// Comforts only: every page also works without this script, by forms that post and links that lead on.
(function () {
  // The fields of the method that is chosen, without loading the page again.
  var method = document.querySelector("select[data-fields]");
  if (method) {
    var show = document.querySelector("[data-show-fields]");
    show.hidden = true;
    var change = function () {
      var wanted = method.value;
      if (wanted === method.dataset.shown) return;
      fetch(method.dataset.fields + "?method=" + encodeURIComponent(wanted))
        .then(function (answer) { return answer.ok ? answer.text() : Promise.reject(answer.status); })
        .then(function (html) {
          if (method.value !== wanted) return;
          document.getElementById("step-fields").innerHTML = html;
          method.dataset.shown = wanted;
        })
        .catch(function () { show.hidden = false; });
    };
    method.addEventListener("change", change);
    // A browser that goes back, or somebody quick, may have chosen before this script was there.
    window.addEventListener("pageshow", change);
  }

  // A file that is too large is told before it is sent.
  var upload = document.querySelector("form[data-limit]");
  if (upload) {
    upload.addEventListener("submit", function (event) {
      var file = upload.querySelector("input[name=file]").files[0];
      var told = upload.querySelector("[data-told]");
      if (file && file.size > Number(upload.dataset.limit)) {
        event.preventDefault();
        told.textContent = "The file is larger than " + upload.dataset.limitWords +
          ", which is the limit for an upload; put it into the inbox folder named below instead.";
        told.hidden = false;
      } else if (file) {
        told.textContent = "Reading the file…";
        told.className = "soft";
        told.hidden = false;
      }
    });
  }

  // A click on a point of the map takes its plan, as its button does.
  function followClicks(place) {
    if (place.dataset.followed || typeof place.on !== "function") return;
    place.dataset.followed = "yes";
    place.on("plotly_click", function (event) {
      var point = event.points[0];
      document.querySelectorAll("form[data-series]").forEach(function (form) {
        if (form.dataset.series === point.data.name && Number(form.dataset.point) === point.pointIndex) {
          form.requestSubmit();
        }
      });
    });
  }
  if (document.querySelector("form[data-series], [data-map]")) {
    window.setInterval(function () {
      document.querySelectorAll('figure[data-kind="risk_utility_map"] .rv-live').forEach(followClicks);
    }, 300);
  }

  // What is still under way about a release comes into its page when it is there.
  function refresh() {
    var verdicts = document.querySelector("#verdicts[data-refresh]");
    if (!verdicts) return;
    fetch(verdicts.dataset.refresh)
      .then(function (answer) { return answer.ok ? answer.text() : Promise.reject(answer.status); })
      .then(function (html) {
        var fresh = new DOMParser().parseFromString(html, "text/html");
        ["verdicts", "public-files", "private-files", "about"].forEach(function (id) {
          var old = document.getElementById(id);
          var made = fresh.getElementById(id);
          if (made && old.innerHTML !== made.innerHTML) old.innerHTML = made.innerHTML;
        });
        if (!fresh.querySelector("#verdicts[data-refresh]")) verdicts.removeAttribute("data-refresh");
      })
      .catch(function () { return null; })
      .then(function () { window.setTimeout(refresh, 1500); });
  }
  refresh();

  // How far the work is; at its end the page is loaded again.
  var work = document.querySelector("[data-run]");
  if (!work) return;
  var bar = work.querySelector("progress");
  var words = work.querySelector("[data-words]");
  var live = document.querySelector("[data-map]");
  var known = -1;

  function drawMap(map) {
    if (map.places === known || !window.Plotly) return;
    known = map.places;
    document.getElementById("places").innerHTML = map.rows;
    if (!map.spec) return;
    live.hidden = false;
    live.querySelector("figcaption").textContent = map.title;
    live.querySelector(".rv-note").textContent = map.note;
    window.Plotly.react(live.querySelector(".rv-live"), map.spec.data, map.spec.layout,
      { responsive: true, displaylogo: false });
  }

  function look() {
    fetch(work.dataset.run + "/state")
      .then(function (answer) { return answer.ok ? answer.json() : Promise.reject(answer.status); })
      .then(function (state) {
        if (state.status !== "queued" && state.status !== "running") {
          window.location.reload();
          return null;
        }
        var badge = document.querySelector("main > p [data-status]");
        if (badge) badge.textContent = state.status;
        if (state.total > 0) {
          bar.max = state.total;
          bar.value = state.done;
        } else {
          bar.removeAttribute("value");
        }
        var told = state.status === "queued" ? "waiting for its turn" : state.stage || "starting";
        if (state.total > 0) told += " (" + state.done + " of " + state.total + ")";
        if (words.textContent !== told) words.textContent = told;
        window.setTimeout(look, 400);
        return live ? fetch(work.dataset.run + "/map") : null;
      })
      .then(function (answer) { return answer && answer.ok ? answer.json() : null; })
      .then(function (map) { if (map) drawMap(map); })
      .catch(function () {
        words.textContent = "The workbench does not answer. Start rankveil serve again and open the address it prints.";
        window.setTimeout(look, 3000);
      });
  }
  look();
})();
