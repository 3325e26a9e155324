// The load of database-kill.sh: callers of the platform API and visitors of a tcp tunnel (an echo), until it is told to stop.
// usage: node database-load.mjs ACCOUNT_JSON PUBLIC_PORT [CALLERS]; at SIGTERM it prints its counts as JSON.
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

const { platform_url: url, access_token: token } = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const port = Number(process.argv[3]);
const callers = Number(process.argv[4] ?? 16);
const PATHS = ['/usage', '/keys', '/auth/me', '/usage/tunnels', '/usage/chart'];
const VISIT_BYTES = 3000;

const counts = { ok: 0, away: 0, wrong: [], visits: 0, broken_visits: 0, visit_bytes: 0, slowest_ms: 0 };
let isOver = false;
process.once('SIGTERM', () => {
  isOver = true;
});

async function callOnce(path) {
  const begun = performance.now();
  const answer = await fetch(url + path, { headers: { authorization: `Bearer ${token}` } });
  const text = await answer.text();
  counts.slowest_ms = Math.max(counts.slowest_ms, Math.round(performance.now() - begun));
  const isAway =
    answer.status === 503 && answer.headers.has('retry-after') && JSON.parse(text).code === 'DATABASE_AWAY';
  if (answer.status === 200) counts.ok += 1;
  else if (isAway) counts.away += 1;
  else counts.wrong.push(`${path}: ${answer.status} ${text.slice(0, 200)}`);
}

/** Sends, and hears the same number of bytes back. */
const visitOnce = () =>
  new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    let heard = 0;
    socket.on('data', (piece) => {
      heard += piece.length;
    });
    socket.on('error', () => {});
    socket.on('close', () => {
      if (heard === VISIT_BYTES) {
        counts.visits += 1;
        counts.visit_bytes += 2 * VISIT_BYTES;
      } else counts.broken_visits += 1;
      resolve();
    });
    socket.end(Buffer.alloc(VISIT_BYTES, 'v'));
  });

async function repeat(act) {
  while (!isOver) {
    try {
      await act();
    } catch (error) {
      counts.wrong.push(`${error.message} ${error.cause?.message ?? ''}`);
    }
  }
}

const calling = Array.from({ length: callers }, (_, number) => repeat(() => callOnce(PATHS[number % PATHS.length])));
await Promise.all([...calling, repeat(visitOnce), repeat(visitOnce)]);
process.stdout.write(
  `${JSON.stringify({ ...counts, wrong: counts.wrong.length, first_wrong: counts.wrong[0] ?? '' })}\n`,
);
process.exit();
