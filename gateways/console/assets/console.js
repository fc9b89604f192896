// The live tape: says whether it runs, and stops it where somebody wants to read. All else is htmx.
"use strict";

(() => {
  const state = (words) => {
    const place = document.getElementById("live-state");
    if (place && place.textContent !== words) place.textContent = words;
  };
  let paused = false;
  document.addEventListener("htmx:sseOpen", () => state(paused ? "Paused" : "Live"));
  document.addEventListener("htmx:sseError", () => state("Not connected; trying again"));
  document.addEventListener("htmx:sseClose", () => state("Ended"));
  document.addEventListener("htmx:sseBeforeMessage", (event) => {
    if (paused && event.detail?.type === "tape") event.preventDefault();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("#pause");
    if (!button) return;
    paused = !paused;
    button.textContent = paused ? "Go on" : "Pause";
    state(paused ? "Paused" : "Live");
  });
})();
