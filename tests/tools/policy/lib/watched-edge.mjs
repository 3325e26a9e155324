// `tunnel-server` with a watch over its event loop: the CPU time that the longest turn took of its thread, written to the file that TURNS_FILE names.
// Wall time would count what other programs of the machine did meanwhile.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from '../../../../scripts/lib/paths.mjs';

const SERVER = join(ROOT, 'apps/server/bin/tunnel-server.mjs');
const SCHEDULE = '/proc/thread-self/schedstat';
/** Shorter turns are not looked at, and so old the last reading may be: a reading costs some microseconds. */
const LOOK_MS = 5;
const FRESH_MS = 1;

/** Of the main thread alone: collectors and the thread pool are others. */
const cpuMs = () => Number(readFileSync(SCHEDULE, 'latin1').split(' ', 1)[0]) / 1e6;

let worstMs = 0;
let begun = 0;
let turnAt = performance.now();
let readAt = turnAt;
let cpuAtRead = cpuMs();

/** How often it was begun, and the longest turn since. */
const tell = () => writeFileSync(process.env.TURNS_FILE, JSON.stringify({ begun, worstMs }));

const nextTurn = () => {
  const now = performance.now();
  if (now - turnAt > LOOK_MS) {
    const took = cpuMs() - cpuAtRead;
    if (took > worstMs) {
      worstMs = took;
      tell();
    }
  }
  if (now - readAt > FRESH_MS) {
    cpuAtRead = cpuMs();
    readAt = performance.now();
  }
  turnAt = performance.now();
  setImmediate(nextTurn).unref();
};

const begin = () => {
  worstMs = 0;
  begun += 1;
  tell();
};

// What the start took is nobody's waiting: whoever measures begins anew.
process.on('SIGUSR2', begin);
begin();
nextTurn();

process.argv[1] = SERVER;
await import(pathToFileURL(SERVER).href);
