// A backup of a large database under load: how long requests take beside it, the memory of the process that copies, and the rate.
import { readFileSync, rmSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../../lib/until.mjs';
import { Traffic } from './traffic.mjs';
import { ask, BackupTrial, PATIENCE } from './trial.mjs';
import { Writer } from './writer.mjs';

const MB = 1e6;
const MOST_REQUEST_MS = 1000;
const MOST_MEMORY_MB = 100;
const MOST_MB_PER_SECOND = 205;

export async function tryLarge({ quick, say, check }) {
  const size = quick ? 300 : 2000;
  const { bavail, bsize } = statfsSync('/tmp');
  if (bavail * bsize < 3 * size * MB) throw new Error(`the row needs ${(3 * size) / 1000} GB in /tmp`);
  const trial = await BackupTrial.open({ settings: 'keep = 1' });
  try {
    const first = await trial.nextBackup();
    for (let part = 0; part < size / 100; part += 1) await ask(trial.url, FILL);
    const bytes = Number(await ask(trial.url, 'select pg_database_size(current_database())'));
    say(`the database has ${Math.round(bytes / MB)} MB`);
    await trial.waitForArchive();
    const traffic = await Traffic.open(trial);
    const writer = new Writer(() => trial.url);
    await traffic.served();
    const without = await askDuring(trial, traffic, forMs(quick ? 10_000 : 30_000));
    // Without a finished backup, the schedule begins one inside the parent, whose memory counts.
    rmSync(join(trial.backups, 'base', first), { recursive: true });
    await until('a backup in progress', () => trial.unfinished[0], PATIENCE);
    const during = await askDuring(trial, traffic, () => trial.names.length === 0);
    const rate = during.bytes / during.seconds / MB;
    check(
      trial.names.length === 1,
      `a backup of ${Math.round(during.bytes / MB)} MB in ${Math.round(during.seconds)} s`,
    );
    const text = ({ median, longest, count }) => `${median} ms in the middle, ${longest} ms at most of ${count}`;
    const limit = Math.max(MOST_REQUEST_MS, 1.5 * without.longest);
    check(during.longest <= limit, `requests beside the backup: ${text(during)}; without: ${text(without)}`);
    check(
      during.memory < MOST_MEMORY_MB,
      `memory of the parent: ${during.memory} MB at most, ${without.memory} MB without a backup`,
    );
    check(rate <= MOST_MB_PER_SECOND, `${Math.round(rate)} MB/s`);
    await traffic.pause();
    await writer.stop();
  } finally {
    await trial.close();
  }
}

/** Adds about 100 MB of rows. */
const FILL =
  'create table if not exists large (n bigint, text text); insert into large select n, repeat(md5(n::text), 30) from generate_series(1, 98000) n';

const forMs = (ms) => {
  const until = Date.now() + ms;
  return () => Date.now() < until;
};

/** Asks the platform every 50 ms, with a request that reads and one that writes. */
async function askDuring(trial, traffic, isGoing) {
  const client = traffic.payer.client(trial.stack);
  const times = [];
  let memory = 0;
  const startedAt = Date.now();
  while (isGoing()) {
    for (const act of [
      () => client.me(),
      () => client.updateMe({ name: `n${times.length}` }).catch(() => client.keys()),
    ]) {
      const began = performance.now();
      await act();
      times.push(performance.now() - began);
    }
    memory = Math.max(memory, memoryOf(trial.pidOf('parent')));
    await pause(50);
  }
  const seconds = (Date.now() - startedAt) / 1000;
  times.sort((a, b) => a - b);
  return {
    seconds,
    memory,
    count: times.length,
    median: Math.round(times[Math.floor(times.length / 2)]),
    longest: Math.round(times.at(-1)),
    bytes: Number(await ask(trial.url, 'select sum(pg_database_size(oid)) from pg_database')),
  };
}

const memoryOf = (pid) =>
  Math.round(Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1000);
