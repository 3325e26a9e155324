// Finds free ports above the ephemeral ports of Linux, so that no outgoing connection takes a port in between, and outside the ranges of
// tests/repo and tests/system, which may run at the same time.
import { createServer } from 'node:net';

const FIRST = 61_200;
const COUNT = 240;

let next = Math.floor(Math.random() * COUNT);

const isFree = (port) =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1' }, () => probe.close(() => resolve(true)));
  });

export async function freePort() {
  for (let tried = 0; tried < COUNT; tried++) {
    const port = FIRST + next;
    next = (next + 1) % COUNT;
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port from ${FIRST} to ${FIRST + COUNT - 1}`);
}
