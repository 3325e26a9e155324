// Restores that must not write a byte, and a restore that is killed: the folder is marked, and no server starts on it.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { processesOf } from '../../../system/embedded-database.fixture.ts';
import { until } from '../../lib/until.mjs';
import { ask, BackupTrial, namesIn, PATIENCE, runServer, withDatabase } from './trial.mjs';

export async function tryRefused({ say, check }) {
  const trial = await BackupTrial.open();
  try {
    await ask(trial.url, 'create table kept as select n from generate_series(1, 100000) n');
    const name = await trial.nextBackup();
    const folder = await trial.folder();
    const untouched = async (what, to, args, reason) => {
      const before = listOf(folder);
      const { code, stderr } = await runServer(trial.stack, [
        'backup',
        'restore',
        '--to',
        to,
        ...args,
        ...trial.stack.flags,
      ]);
      const isOneLine =
        stderr
          .trim()
          .split('\n')
          .filter((line) => !line.startsWith('See `')).length === 1;
      check(code === 2 && reason.test(stderr) && isOneLine, `${what}: exit code ${code}: ${stderr.trim()}`);
      check(listOf(folder) === before, `${what}: nothing is written`);
    };
    const from = ['--from', trial.backups];
    const fresh = join(folder, 'restored');

    const running = listOf(trial.dataDir, /run\.json|\.lock$|^restore/);
    await untouched('over a running server', trial.dataDir, from, /in use|is running|not empty/);
    check(
      listOf(trial.dataDir, /run\.json|\.lock$|^restore/) === running,
      'over a running server: its data directory is as before',
    );

    const used = join(folder, 'used');
    mkdirSync(used);
    writeFileSync(join(used, 'a-file'), '');
    await untouched('into a used folder', used, from, /not empty/);
    await untouched('from a folder without backups', fresh, ['--from', folder], /contains no backup/);

    await tryManifests({ trial, folder, fresh, name, untouched });

    const listed = JSON.parse(await trial.must('list', '--json'))[0];
    for (const time of ['2020-01-01T00:00:00Z', '2099-01-01T00:00:00Z']) {
      await untouched(`the time ${time}`, fresh, [...from, '--time', time], new RegExp(`Possible: ${listed.wal_from}`));
    }
    for (const time of ['2026-01-01T00:00:00', '2026-02-30T00:00:00Z']) {
      await untouched(`the time ${time}`, fresh, [...from, '--time', time], /Use a time with its zone/);
    }

    const small = join(folder, 'small');
    mkdirSync(small);
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=16m', 'tmpfs', small]).status === 0) {
      await untouched('without space', join(small, 'restored'), from, /MB are free/);
      spawnSync('umount', [small]);
    } else say('skipped: a full disk, because this user cannot mount a tmpfs');

    await tryKilled({ trial, check, fresh });
  } finally {
    await trial.close();
  }
}

/** Manifests of another version, and manifests that somebody has changed. */
async function tryManifests({ trial, folder, fresh, name, untouched }) {
  const other = join(folder, 'other-major');
  cpSync(trial.backups, other, { recursive: true });
  const manifest = join(other, 'base', name, 'backup_manifest.json');
  const text = readFileSync(manifest, 'utf8');
  writeFileSync(manifest, text.replace(/"postgres": \d+/, '"postgres": 17'));
  await untouched('from another major version', fresh, ['--from', other], /PostgreSQL 17/);
  const hostile = [
    ['a path that leaves the folder', text.replace('"cluster/PG_VERSION"', '"cluster/../../../escaped"')],
    ['an absolute path', text.replace('"cluster/PG_VERSION"', '"/tmp/escaped"')],
    ['an impossible size', text.replace(/"bytes":\d+/, '"bytes":1e300')],
    ['a huge size', text.replace(/"bytes":\d+/, '"bytes":9007199254740991')],
    ['files that are no list', text.replace(/"files": \[/, '"files": {}, "others": [')],
    ['a name of another type', text.replace(/"name": "[^"]+"/, '"name": 5')],
    ['another format', text.replace('"format": 1', '"format": 2')],
  ];
  for (const [what, changed] of hostile) {
    writeFileSync(manifest, changed);
    await untouched(`a manifest with ${what}`, fresh, ['--from', other], /backup_manifest\.json|bytes instead of/);
  }
  rmSync(manifest);
  spawnSync('mkfifo', [manifest]);
  await untouched('a pipe in place of the manifest', fresh, ['--from', other], /not a regular file/);
  rmSync(other, { recursive: true });
}

async function tryKilled({ trial, check, fresh }) {
  const stages = [
    ['while it copies', () => namesIn(join(fresh, 'postgres/base/1')).length > 20],
    ['while it replays the log', () => namesIn(join(fresh, 'postgres')).includes('recovery.signal')],
  ];
  for (const [what, isReached] of stages) {
    let child;
    const run = trial.command(['restore', '--from', trial.backups, '--to', fresh], {
      onSpawn: (spawned) => (child = spawned),
    });
    await until(what, isReached, { ...PATIENCE, everyMs: 2 });
    child.kill('SIGKILL');
    await run;
    const start = await runServer(trial.stack, ['stack', '--data-dir', fresh, '--config', '/dev/null']);
    const isSaid = start.stderr.includes(fresh) && /restore/.test(start.stderr);
    check(start.code === 2 && isSaid, `killed ${what}: a server refuses: ${start.code} ${start.stderr.trim()}`);
    const again = await trial.restore(fresh);
    check(
      again.code === 2 && again.stderr.includes(fresh),
      `killed ${what}: a restore refuses: ${again.stderr.trim()}`,
    );
    await until('no process is left', () => processesOf(fresh).length === 0, PATIENCE).catch(() => {});
    check(processesOf(fresh).length === 0, `killed ${what}: no process of it is left`);
    rmSync(fresh, { recursive: true, force: true });
    const next = await trial.restore(fresh);
    check(next.code === 0, `killed ${what}: after the folder was deleted, the restore works ${next.stderr}`);
    const rows = await withDatabase(fresh, (url) => ask(url, 'select count(*) from kept'));
    check(Number(rows) === 100000, `killed ${what}: with ${rows} rows`);
    rmSync(fresh, { recursive: true, force: true });
  }
}

/** Names, sizes and times of everything below a folder. */
const listOf = (folder, leftOut = /^$/) =>
  spawnSync('find', [folder, '-not', '-path', '*/postgres/*', '-not', '-path', '*-journal*', '-printf', '%P %s\n'], {
    encoding: 'utf8',
  })
    .stdout.split('\n')
    .filter((line) => !leftOut.test(line) && !/jsonl|known-keys|simulator|postgres |^ |connection/.test(line))
    .sort()
    .join('\n');
