// A real process writes, numbers and sends records, and is killed with SIGKILL several times. Every record reported as written must reach
// the platform exactly once.
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { JournalRecord } from '@tunnel/contract';
import { eventually, spawnProgram, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CREDENTIAL, ScriptedPlatform, servePlatform } from '../scripted-platform.fixture.ts';

/** Number of records appended in one turn. The process reports these records once they are written. */
const TOGETHER = 5;

let root: TemporaryDirectory;
let program: string;

const SOURCE = `
  import { openSync, writeSync } from 'node:fs';
  import { Secret, systemClock } from '@tunnel/runtime';
  import { JournalDelivery } from '../journal-delivery.ts';
  import { PlatformLink } from '../platform-link.ts';
  import { Journal } from './journal.ts';
  const [folder, url, run, saidFile] = process.argv.slice(2);
  const logger = { debug() {}, info() {}, warn() {}, error: (fields, text) => console.error(text, fields) };
  const link = new PlatformLink({
    fetch: (request) => fetch(request), url, credential: new Secret('${CREDENTIAL}'), clock: systemClock,
  });
  let ids = 0;
  const newId = () => run + '-' + (ids += 1);
  const batch = { records: 3, bytes: 1 << 20 };
  const journal = new Journal({ folder, logger, newId, batch, tailBytes: 2000, queueBytes: 1 << 20, sentBytes: 1 << 20 });
  const delivery = new JournalDelivery({ clock: systemClock, logger, journal, link, runId: run, everyMs: 7 });
  const main = async () => {
    await journal.start();
    if (saidFile === '') {
      while (!(await delivery.deliver()));
      return console.log('delivered');
    }
    journal.append([{
      kind: 'opened', run_id: run, tunnel_id: run, session_id: 's', account_id: 'alice', key_id: 'k', name: 'n',
      protocol: 'tcp', label: 'l', at: 1,
    }]);
    delivery.start();
    const said = openSync(saidFile, 'w');
    for (let n = 1; ; n += 1) {
      journal.append([{ kind: 'usage', tunnel_id: run, requests: 1, bytes: 1000, at: n }]);
      if (n % ${TOGETHER} !== 0) continue;
      await journal.written();
      // One byte for each; a pipe would hold them back.
      writeSync(said, '.'.repeat(${TOGETHER}));
    }
  };
  void main();
`;

const isOpening = ({ kind }: JournalRecord): boolean => kind === 'opened';

beforeAll(async () => {
  root = await temporaryDirectory();
  program = join(root.path, 'writer.cjs');
  await build({
    stdin: { contents: SOURCE, resolveDir: fileURLToPath(new URL('.', import.meta.url)), loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'cjs',
    conditions: ['source'],
    outfile: program,
    logLevel: 'error',
    nodePaths: [fileURLToPath(new URL('../../../../../node_modules', import.meta.url))],
  });
}, 60_000);
afterAll(() => root.close());

/**
 * Runs the process until it has reported more than `killAfter` records, kills it, and returns the number of reported records. If
 * `killAfter` is 0, the process only delivers the journal.
 */
const runOnce = async (url: string, run: string, killAfter: number): Promise<number> => {
  const said = join(root.path, run);
  const args = [program, join(root.path, 'edge-journal'), url, run, killAfter === 0 ? '' : said];
  const child = await spawnProgram({ command: process.execPath, args });
  const sizeOfSaid = (): number => (existsSync(said) ? statSync(said).size : 0);
  try {
    if (killAfter === 0) await child.waitForLine(/^delivered$/, { timeoutMs: 60_000 });
    else await eventually(() => expect(sizeOfSaid()).toBeGreaterThan(killAfter), { timeoutMs: 60_000, intervalMs: 1 });
    child.signal('SIGKILL');
    await child.waitForExit();
    expect(child.stderr).toEqual([]);
    return sizeOfSaid();
  } finally {
    await child.close();
  }
};

it('a process killed while writing and sending the journal loses no record and counts no record twice', async () => {
  const platform = new ScriptedPlatform();
  const server = await servePlatform(platform);
  const written = new Map<string, number>();
  try {
    for (const [round, killAfter] of [40, 150, 7, 400, 90].entries()) {
      // Some responses are lost after the platform has stored the records.
      platform.lostAnswers = round;
      platform.state = round === 3 ? 'away' : 'here';
      written.set(`run_${round}`, await runOnce(server.url, `run_${round}`, killAfter));
    }
    platform.state = 'here';
    await runOnce(server.url, 'run_last', 0);
  } finally {
    await server.close();
  }
  for (const [run, said] of written) {
    const tunnel = platform.tunnels.get(run);
    const requests = tunnel?.requests ?? 0;
    // A few more records may have been written before the kill without being reported.
    expect({ run, said, requests, isRight: requests >= said && requests <= said + TOGETHER }).toMatchObject({
      isRight: true,
    });
    expect(tunnel).toMatchObject({ bytes: requests * 1000 });
    // If the run has told the platform of its tunnel, the platform learns of the tunnel’s end from the next run’s heartbeat. Otherwise
    // the journal closes the tunnel.
    const isTold = platform.batches.some((batch) => batch.run_id === run && batch.records.some(isOpening));
    if (!isTold) expect({ run, isOpen: tunnel?.isOpen }).toEqual({ run, isOpen: false });
  }
}, 120_000);
