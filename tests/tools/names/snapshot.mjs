// An edge whose platform has 100,000 reserved names: the list is taken in time and in short turns, again and again; one that is cut off, damaged or without
// end is not taken, and what was known stays.
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { throwAwayFolder } from '../../../bench/lib/children.mjs';
import { residentBytes } from '../../../bench/lib/process-table.mjs';
import { startEdge } from '../groups/lib/edge.mjs';
import { runScript } from '../groups/lib/script.mjs';
import { until } from '../groups/lib/until.mjs';

const USAGE = `usage: node tests/tools/names/snapshot.mjs [--names N] [--times N]
100,000 reserved names (--names), taken five times (--times). The platform is played by this script.`;

const TAKEN_WITHIN_MS = 10_000;
const TURN_MAX_MS = 50;
const MEMORY_MAX_MB = 300;

const line = (value) => `${JSON.stringify(value)}\n`;
const nameOf = (at) => ({
  ...{ kind: 'subdomain', label: `name-${at}` },
  ...{ account_id: `3f0c2b1e-0000-4000-8000-${String(at % 1000).padStart(12, '0')}`, group_key_hash: null },
});

/** As the platform sends it: pages of 1,000 rows. */
function* wholeList(names, at) {
  yield line({ at });
  for (let from = 0; from < names; from += 1000) {
    yield Array.from({ length: Math.min(1000, names - from) }, (_, row) => line(nameOf(from + row))).join('');
  }
  yield line({ end: true });
}

/** Lists that must not be taken; each begins as a good one. */
const BAD = {
  *['cut off']() {
    yield line({ at: 1 }) + line(nameOf(1));
  },
  *['cut in the middle of a line']() {
    yield `${line({ at: 1 })}{"kind":"subdo`;
  },
  *['no JSON']() {
    yield `${line({ at: 1 })}<html>\n${line({ end: true })}`;
  },
  *null() {
    yield `${line({ at: 1 })}null\n${line({ end: true })}`;
  },
  *['another kind of row']() {
    yield line({ at: 1 }) + line({ kind: 'domain', label: 'x', account_id: 'a' }) + line({ end: true });
  },
  *['without its number']() {
    yield line(nameOf(1)) + line({ end: true });
  },
  *['one line of 1 GB']() {
    yield line({ at: 1 });
    const piece = 'x'.repeat(1 << 20);
    for (let count = 0; count < 1024; count += 1) yield piece;
  },
};

class Platform {
  /** The body of the next list. */
  list = () => wholeList(0, 0);
  asked = 0;
  #change = 1;
  #streams = new Set();

  async start() {
    const server = createServer((request, response) => void this.#answer(request, response));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${server.address().port}`;
    setInterval(() => this.#tell({ kind: 'alive', id: this.#change }), 5000).unref();
    return this;
  }

  /** Changes were missed: the list is asked for again. */
  forget() {
    this.#change += 1;
    // A kind that no edge knows comes before it.
    this.#tell({ kind: 'moon-rose', id: this.#change });
    this.#tell({ kind: 'forget', id: this.#change });
  }

  #tell(change) {
    for (const stream of this.#streams) stream.write(line(change));
  }

  async #answer(request, response) {
    request.resume();
    const path = request.url.replace(/^\/internal\/edge/, '').replace(/\?.*/, '');
    if (path === '/heartbeat') response.end(JSON.stringify({ edge_id: 'edge', last_change: this.#change }));
    else if (path === '/changes') {
      this.#streams.add(response);
      response.on('close', () => this.#streams.delete(response));
      response.write(line({ kind: 'alive', id: this.#change }));
    } else if (path === '/names') await this.#send(this.list(), response);
    else response.writeHead(404).end();
  }

  async #send(pieces, response) {
    this.asked += 1;
    // An edge that has read enough goes.
    await pipeline(pieces, response).catch(() => {});
  }
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

const options = { names: 100_000, times: 5 };
const script = { name: 'names-snapshot', usage: USAGE, options, limitSecs: () => 240 };
await runScript(script, async ({ values: { names, times }, say, check }) => {
  const platform = await new Platform().start();
  const credential = join(throwAwayFolder(), 'credential');
  writeFileSync(credential, `edge_${'0'.repeat(43)}\n`, { mode: 0o600 });
  const serverLines = `platform_url = "${platform.url}"\nplatform_credential_file = "${credential}"`;
  const edge = await startEdge({ serverLines });
  const known = async () => (await edge.series('tunnel_reserved_names')).get('kind="subdomain"') ?? 0;
  await until('the first list', () => platform.asked > 0);

  const turns = [];
  for (let time = 1; time <= times; time += 1) {
    // One more each time, so that it can be told from the one before.
    platform.list = () => wholeList(names + time, time);
    const { totalMs: cpuBefore } = await edge.cpu();
    await edge.watchLoop();
    const begunAt = performance.now();
    platform.forget();
    await until('the list is known', async () => (await known()) === names + time, { timeoutMs: 60_000 });
    const tookMs = performance.now() - begunAt;
    const { maxMs, p99Ms, maxCpuMs } = await edge.loop();
    const cpuMs = (await edge.cpu()).totalMs - cpuBefore;
    turns.push({ tookMs, maxMs, maxCpuMs });
    const text = `longest turn ${maxMs.toFixed(0)} ms, of which CPU at most ${maxCpuMs.toFixed(0)} ms; p99 ${p99Ms.toFixed(0)} ms`;
    say(`${names + time} names in ${tookMs.toFixed(0)} ms, ${cpuMs.toFixed(0)} ms of CPU; ${text}`);
  }
  check(median(turns.map(({ tookMs }) => tookMs)) < TAKEN_WITHIN_MS, `taken within ${TAKEN_WITHIN_MS / 1000} s`);
  // By the clock or by what it used: the machine may have had others to serve meanwhile.
  const turnMs = median(turns.map(({ maxMs, maxCpuMs }) => Math.min(maxMs, maxCpuMs)));
  check(turnMs < TURN_MAX_MS, `no turn of the loop over ${TURN_MAX_MS} ms: ${turnMs.toFixed(0)} ms`);

  const residentMb = () => residentBytes(edge.child.process.pid).now / 1e6;
  const before = residentMb();
  for (const [what, pieces] of Object.entries(BAD)) {
    const { asked } = platform;
    platform.list = pieces;
    platform.forget();
    await until('it is asked for', () => platform.asked > asked);
    // And once more: the first one was read to its end, or given up.
    await until('it is asked for again', () => platform.asked > asked + 1, { timeoutMs: 20_000 });
    check((await known()) === names + times, `a list that is bad is not taken: ${what}`);
  }
  const grownMb = residentMb() - before;
  check(grownMb < MEMORY_MAX_MB, `memory grew by ${grownMb.toFixed(0)} MB at most`);
  platform.list = () => wholeList(3, 9);
  await until('a good one is taken', async () => (await known()) === 3, { timeoutMs: 20_000 });
  await edge.close();
  return `${names} names, ${times} times, longest turn ${turnMs.toFixed(0)} ms (median)`;
});
