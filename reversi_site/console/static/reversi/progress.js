// Follows a job while it lives: asks how far it is, shows it, and loads the report when it has ended.
"use strict";

(() => {
  const WAIT_MS = 700;
  const LONGEST_WAIT_MS = 10_000;
  const place = document.querySelector("[data-progress]");
  const part = (name) => place.querySelector(`[data-${name}]`);
  const bar = place.querySelector("progress");
  let wait = WAIT_MS;

  const show = (job) => {
    part("done").textContent = job.done;
    part("total").textContent = job.total;
    part("count").hidden = job.total === 0;
    bar.max = Math.max(job.total, 1);
    bar.value = job.done;
    // Said again only when it changed: it is read aloud.
    if (part("words").textContent !== job.words) {
      part("words").textContent = job.words;
    }
    part("worker").hidden = job.worker_alive;
  };

  const ask = async () => {
    try {
      const answer = await fetch(place.dataset.progress, { headers: { Accept: "application/json" } });
      if (answer.redirected || answer.status === 403) {
        window.location.reload();
        return;
      }
      if (answer.ok) {
        const job = await answer.json();
        if (job.ended) {
          window.location.reload();
          return;
        }
        show(job);
        wait = WAIT_MS;
      }
    } catch {
      // The server is being restarted, perhaps: the job goes on without this page.
      wait = Math.min(wait * 2, LONGEST_WAIT_MS);
    }
    window.setTimeout(ask, wait);
  };

  window.setTimeout(ask, wait);
})();
