// Shows that a long step is running: at a terminal one line that counts the seconds, elsewhere a line every ten seconds.

const TERMINAL_EVERY_MS = 1_000;
const ELSEWHERE_EVERY_MS = 10_000;
const CLEAR_LINE = '\r\u001b[K';

/** Shows `label` on `stream` while `work` runs, and gives what `work` gives. At a terminal nothing of it is left behind. */
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
