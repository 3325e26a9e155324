// Rows about starting: client and server of each tunnel, and the commands that a person waits for.
import { setTimeout as delay } from 'node:timers/promises';
import { stopChild } from '../../lib/children.mjs';
import { residentBytes } from '../../lib/process-table.mjs';
import { median } from '../../lib/statistics.mjs';
import { untilThrough } from '../peer-process.mjs';
import { plainName } from './takes.mjs';

const STARTED = ['ours', 'bore', 'rathole', 'chisel', 'rustunnel', 'frp', 'ssh'];
/** V8 releases most memory of the start when a process has been idle for 8 to 10 seconds. */
const REST_MS = 12_000;
const QUICK_REST_MS = 300;
const TRIES = 5;

const start = {
  name: 'start',
  title: 'Start of server and client, and memory at rest',
  meaning:
    'from the start of the client process to the first answer through the tunnel, with an empty home folder and again after that; memory twelve seconds later',
  takes: (path) => STARTED.includes(plainName(path)),
  rank: 'clientStartMs',
  figures: ['clientStartMs', 'clientAgainMs', 'bareNodeMs', 'edgeStartMs', 'edgeRestMb', 'clientRestMb'],
  async measure(stage) {
    const { processes, throughAt } = stage.way;
    await delay(stage.quick ? QUICK_REST_MS : REST_MS);
    const memory = stage.memory();
    return {
      // The client starts as soon as the server listens.
      edgeStartMs: processes.client.startedAt - processes.edge.startedAt,
      clientStartMs: throughAt - processes.client.startedAt,
      edgeRestMb: memory.edge.now / 1e6,
      clientRestMb: memory.client.now / 1e6,
      clientAgainMs: await againMs(stage.way),
      bareNodeMs: stage.way.bareNode === undefined ? Number.NaN : await typical(TRIES, stage.way.bareNode),
    };
  },
};

/**
 * Our client keeps its compiled code at its first start, unless the build has put code for this Node.js beside it. Other clients keep
 * nothing, so a further start takes as long as the first.
 */
async function againMs({ address, processes, startMeasuredClient }) {
  if (startMeasuredClient === undefined) return Number.NaN;
  await stopChild(processes.client, 'SIGTERM');
  processes.client = await startMeasuredClient();
  await untilThrough({ address, processes }, 'tcp');
  return performance.now() - processes.client.startedAt;
}

const commands = {
  name: 'commands',
  title: 'Commands that a person waits for',
  meaning:
    '`npm start` until edge and platform run, `tunnel http` until it prints the URL, and the time of Node.js itself',
  takes: ({ protocol }) => protocol === 'commands',
  rank: 'httpUrlMs',
  figures: ['npmStartNewMs', 'npmStartAgainMs', 'httpUrlMs', 'helpMs', 'bareNodeMs', 'stackMb'],
  async measure(stage) {
    const { npmStart, untilUrl, help, bareNode } = stage.way;
    const tries = stage.quick ? 1 : TRIES;
    const npmStartNewMs = await npmStart();
    let stackMb;
    const npmStartAgainMs = await npmStart(async (pid) => {
      await delay(stage.quick ? QUICK_REST_MS : REST_MS);
      stackMb = residentBytes(pid).now / 1e6;
    });
    return {
      npmStartNewMs,
      npmStartAgainMs,
      httpUrlMs: await typical(tries, untilUrl),
      helpMs: await typical(tries, help),
      bareNodeMs: await typical(tries, bareNode),
      stackMb,
    };
  },
};

async function typical(tries, time) {
  const times = [];
  for (let tried = 0; tried < tries; tried += 1) times.push(await time());
  return median(times);
}

export const startRows = [start, commands];
