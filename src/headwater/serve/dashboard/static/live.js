// What is asked again and again: one request at a time, none while nobody looks at the page, slower while the server
// does not answer, and an end with the page that asked.

const SLOWER = 5;

/** Run a function now and every so many seconds until the signal; `failed` hears what it throws. */
export function poll(run, every, signal, failed = () => {}) {
  let timer = null;
  let failures = 0;
  let at_work = false;
  async function round() {
    if (signal.aborted || at_work) return;
    at_work = true;
    try {
      await run();
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      failed(error);
    } finally {
      at_work = false;
    }
    clearTimeout(timer);
    if (!signal.aborted && !document.hidden)
      timer = setTimeout(round, every * 1000 * Math.min(SLOWER, 1 + failures / 2));
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : round()), { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  round();
  return round;
}

/** A function that is called at most so often, with a last call for what came meanwhile. */
export function throttled(run, milliseconds, signal) {
  let timer = null;
  let last = 0;
  signal.addEventListener("abort", () => clearTimeout(timer));
  return () => {
    if (timer !== null || signal.aborted) return;
    timer = setTimeout(
      () => {
        timer = null;
        last = performance.now();
        run();
      },
      Math.max(0, last + milliseconds - performance.now()),
    );
  };
}
