// Shows that a long step is running. At a terminal, one line counts the seconds; otherwise a line is printed every ten seconds.

const TERMINAL_EVERY_MS = 1_000;
const ELSEWHERE_EVERY_MS = 10_000;
const CLEAR_LINE = '\r\u001b[K';

/** Shows `label` on `stream` while `work` runs, and returns the result of `work`. At a terminal, the line is removed at the end. */
export async function withProgress(label, stream, work) {
  const began = Date.now();
  const text = () => `${label} ... ${Math.round((Date.now() - began) / 1000)} s`;
  const show = () => stream.write(stream.isTTY ? `${CLEAR_LINE}${text()}` : `${text()}\n`);
  if (stream.isTTY) show();
  const timer = setInterval(show, stream.isTTY ? TERMINAL_EVERY_MS : ELSEWHERE_EVERY_MS);
  try {
    return await work();
  } finally {
    clearInterval(timer);
    if (stream.isTTY) stream.write(CLEAR_LINE);
  }
}
