// SIGKILL in the middle of a backup, of each process that takes part in it: the next backup is good, and nothing is left behind.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../../lib/until.mjs';
import { ask, BackupTrial, namesIn, PATIENCE, readAll, withDatabase } from './trial.mjs';
import { Writer } from './writer.mjs';

/** Rows that make a backup long enough to be hit in the middle. */
const FILLER = 'create table filler as select n, repeat(md5(n::text), 30) as text from generate_series(1, 150000) n';
/** Log that may wait in the cluster, in segments. */
const MOST_SEGMENTS = 70;

export async function tryKills({ quick, say, check }) {
  const kills = quick ? 4 : 10;
  const trial = await BackupTrial.open({ settings: 'keep = 30' });
  try {
    const writer = new Writer(() => trial.url);
    await ask(trial.url, FILLER);
    await trial.nextBackup();
    const isUnfinished = () => until('a backup in progress', () => trial.unfinished[0], { ...PATIENCE, everyMs: 5 });
    const wrong = [];
    const kinds = ['command', 'server', 'parent', 'database'];
    for (let turn = 0; turn < kills; turn += 1) {
      const kind = kinds[turn % kinds.length];
      await hit({ kind, trial, isUnfinished });
      const before = trial.names;
      const next =
        kind === 'command' || kind === 'database' ? await trial.must('create') : await trial.nextBackup(before);
      const verified = await trial.command(['verify', next]);
      if (verified.code !== 0) wrong.push(`after a kill of the ${kind}: ${verified.stderr}`);
      if (trial.unfinished.length > 0) wrong.push(`after a kill of the ${kind}: ${trial.unfinished} is left`);
      const labels = namesIn(join(trial.dataDir, 'postgres')).filter((name) =>
        /^(backup_label|tablespace_map)$/.test(name),
      );
      if (labels.length > 0) wrong.push(`after a kill of the ${kind}: the cluster has ${labels}`);
      say(`killed the ${kind}, next backup ${next}`);
    }
    check(wrong.length === 0, `${kills} kills, each followed by a good backup ${wrong.join('; ')}`);
    await writer.stop();
    await trial.waitForArchive();
    await until('no log waits for the archive', () => waiting(trial) === 0, PATIENCE).catch(() => {});
    check(waiting(trial) === 0, `${waiting(trial)} segments wait for the archive`);
    const kept = namesIn(join(trial.dataDir, 'postgres/pg_wal')).filter((name) => /^[0-9A-F]{24}$/.test(name)).length;
    check(kept <= MOST_SEGMENTS, `${kept} segments of the log in the cluster`);
    const expected = await readAll(trial.url, (table) => table === 'written' || table === 'filler');
    await trial.stack.stop();
    const target = join(await trial.folder(), 'restored');
    const { code, stderr } = await trial.restore(target);
    check(code === 0, `the last backup is restored ${stderr}`);
    const found = await withDatabase(target, (url) => readAll(url, (table) => table in expected));
    check(JSON.stringify(found) === JSON.stringify(expected), `with every row: ${found.written}`);
  } finally {
    await trial.close();
  }
}

const waiting = (trial) =>
  namesIn(join(trial.dataDir, 'postgres/pg_wal/archive_status')).filter((name) => name.endsWith('.ready')).length +
  namesIn(join(trial.dataDir, 'postgres/tunnel-spool')).filter((name) => /^[0-9A-F]{24}$/.test(name)).length;

async function hit({ kind, trial, isUnfinished }) {
  if (kind === 'command' || kind === 'database') {
    let child;
    const running = trial.command(['create'], { onSpawn: (spawned) => (child = spawned) });
    await isUnfinished();
    if (kind === 'command') child.kill('SIGKILL');
    else process.kill(trial.pidOf('database'), 'SIGKILL');
    const { code, stderr } = await running;
    if (kind === 'database' && (code !== 1 || /\n.*at /.test(stderr)))
      throw new Error(`create beside a killed database: ${code} ${stderr}`);
    if (kind === 'database')
      await until('the database is back', () => ask(trial.url, 'select true').catch(() => false), PATIENCE);
    return;
  }
  // Without finished backups, the schedule begins one at the start.
  await trial.stack.stop();
  for (const name of trial.names) rmSync(join(trial.backups, 'base', name), { recursive: true });
  await trial.stack.start();
  await isUnfinished();
  if (kind === 'server') {
    for (const part of ['edge', 'platform', 'database']) process.kill(trial.pidOf(part), 'SIGKILL');
  }
  await trial.stack.kill();
  await trial.gone();
  await trial.stack.start();
}
