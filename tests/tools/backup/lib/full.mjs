// Full disks: of the backups, and of the log that waits for the archive. The server goes on, says so, and catches up when there is room.
import { spawnSync } from 'node:child_process';
import { closeSync, cpSync, mkdirSync, openSync, rmSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../../lib/until.mjs';
import { ask, BackupTrial, namesIn, PATIENCE, withDatabase } from './trial.mjs';
import { Writer } from './writer.mjs';

const MB = 1024 * 1024;

/** The schedule takes no backup because of a gap within ten minutes of the last one. */
const AFTER_GAP = { timeoutMs: 780_000, everyMs: 500 };

class Disk {
  constructor(path, megabytes) {
    this.path = path;
    mkdirSync(path, { recursive: true });
    const { status, stderr } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path], {
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(`cannot mount a tmpfs: ${stderr}`);
  }

  /** Fills the disk completely. */
  fill() {
    const file = openSync(join(this.path, 'filler'), 'a');
    try {
      for (let piece = MB; piece >= 1; ) {
        try {
          writeSync(file, Buffer.alloc(piece));
        } catch {
          piece = Math.floor(piece / 16);
        }
      }
    } finally {
      closeSync(file);
    }
  }

  free() {
    rmSync(join(this.path, 'filler'), { force: true });
  }

  unmount() {
    spawnSync('umount', ['-l', this.path]);
  }
}

/** Log of about 16 MB per call. */
const writeLog = (url) =>
  ask(url, 'create table if not exists log_filler as select 1 as n, repeat(md5(random()::text), 9) as text')
    .then(() =>
      ask(
        url,
        'insert into log_filler select n, md5(random()::text) || repeat(md5(n::text), 3) from generate_series(1, 60000) n',
      ),
    )
    .then(() => ask(url, 'truncate log_filler'))
    .then(() => ask(url, 'select pg_switch_wal()'));

const logOf = (trial) => [...trial.stack.program.stderr, ...trial.stack.program.stdout].join('\n');

export async function tryFull({ say, check }) {
  if (process.getuid() !== 0) {
    say('skipped: full disks require root, to mount a tmpfs');
    return;
  }
  await tryFullBackups({ check });
  await tryFullSpool({ check });
}

async function tryFullBackups({ check }) {
  const mount = `/tmp/tunnel-full-${process.pid}`;
  const disk = new Disk(mount, 300);
  let trial;
  try {
    trial = await BackupTrial.open({ dir: join(mount, 'backups'), settings: 'wal_max_bytes = 100000000\nkeep = 2' });
    const first = await trial.nextBackup();
    const metric = (name) => trial.stack.metric(name);
    check(
      (await metric('tunnel_backup_last_success_timestamp_seconds')) > 0,
      'the time of the first backup is in the metrics',
    );
    const writer = new Writer(() => trial.url);
    disk.fill();
    await until(
      'a failure of the archive in the metrics',
      async () => {
        await writeLog(trial.url);
        return (await metric('tunnel_wal_archive_failures_total')) > 0;
      },
      PATIENCE,
    );
    check(/cannot archive the log/.test(logOf(trial)), 'the log has a warning about the full disk');
    const { code, stderr } = await trial.command(['create']);
    check(code === 1 && /disk is full/.test(stderr), `create on a full disk: ${code} ${stderr.trim()}`);
    check(trial.unfinished.length === 0, 'create on a full disk leaves nothing behind');
    const rows = writer.rows.length;
    await until('rows are still written', () => writer.rows.length > rows + 20, PATIENCE);

    await until(
      'archiving is switched off',
      async () => {
        if (/ARCHIVING IS SWITCHED OFF/.test(logOf(trial))) return true;
        await writeLog(trial.url);
        return false;
      },
      PATIENCE,
    );
    check(true, 'past wal_max_bytes, archiving is switched off loudly');
    for (let count = 0; count < 12; count += 1) await writeLog(trial.url);
    // PostgreSQL keeps up to max_wal_size, a gigabyte, between two checkpoints.
    check(segmentsIn(trial) <= 70, `${segmentsIn(trial)} segments are in the database`);
    const atOff = JSON.parse(await trial.must('list', '--json'))[0];
    await tryRoom({ trial, disk, writer, first, atOff, check });
  } finally {
    disk.free();
    await trial?.close();
    disk.unmount();
    rmSync(mount, { recursive: true, force: true });
  }
}

/** With room again, archiving is on again behind a gap, which every command knows. */
async function tryRoom({ trial, disk, writer, first, atOff, check }) {
  const lost = Date.now();
  await pause(1500);

  disk.free();
  const second = await until('a new backup', () => trial.names.find((name) => name !== first), AFTER_GAP);
  check(
    /archiving of the database log is on/.test(logOf(trial)),
    'with room, archiving is on again, and a new backup is taken',
  );
  await pause(1500);
  await trial.waitForArchive();
  await writer.stop();
  const listed = JSON.parse(await trial.must('list', '--json'));
  const [newest, oldest] = listed;
  check(
    listed.length === 2 && newest.name === second,
    `list: ${listed.map(({ name, wal_from, wal_to }) => `${name} ${wal_from} to ${wal_to}`).join(', ')}`,
  );
  check(
    Date.parse(oldest.wal_to) < lost,
    `the first backup ends before the gap (${oldest.wal_to}, before ${atOff.wal_to})`,
  );
  const target = join(await trial.folder(), 'restored');
  const gap = await trial.restore(target, '--time', new Date(lost).toISOString());
  check(gap.code === 2 && /Possible:/.test(gap.stderr), `a time in the gap: ${gap.code} ${gap.stderr.trim()}`);
  for (const { name, wal_to } of listed) {
    const at = Date.parse(wal_to) - 1;
    const { code: restored, stderr: why } = await trial.restore(target, '--time', new Date(at).toISOString());
    const wrong = restored === 0 ? await withDatabase(target, (url) => writer.compare(url, at)) : why;
    check(wrong === null, `${name}: its last moment is restored ${wrong ?? ''}`);
    rmSync(target, { recursive: true, force: true });
  }
  const verify = await trial.command(['verify']);
  check(
    verify.stderr.includes('.gz is missing') || verify.code === 0,
    `verify: ${verify.code} ${verify.stderr.trim()}`,
  );
}

async function tryFullSpool({ check }) {
  const trial = await BackupTrial.open({ settings: 'wal_max_bytes = 100000000' });
  let disk;
  try {
    await trial.nextBackup();
    await trial.stack.stop();
    const spool = join(trial.dataDir, 'postgres/tunnel-spool');
    const copy = join(await trial.folder(), 'spool');
    cpSync(spool, copy, { recursive: true });
    disk = new Disk(spool, 40);
    cpSync(copy, spool, { recursive: true });
    spawnSync('chown', ['-R', `--reference=${join(trial.dataDir, 'postgres')}`, spool]);
    spawnSync('chmod', ['0700', spool]);
    await trial.stack.start();
    await trial.waitForArchive();
    disk.fill();
    const writer = new Writer(() => trial.url);
    await until(
      'log piles up',
      async () => {
        await writeLog(trial.url);
        return (
          namesIn(join(trial.dataDir, 'postgres/pg_wal/archive_status')).filter((name) => name.endsWith('.ready'))
            .length > 1
        );
      },
      PATIENCE,
    );
    const rows = writer.rows.length;
    await until('rows are still written', () => writer.rows.length > rows + 20, PATIENCE);
    check(true, 'with a full spool, the server goes on');
    disk.free();
    await until(
      'the log is archived',
      () => namesIn(join(trial.dataDir, 'postgres/pg_wal/archive_status')).every((name) => !name.endsWith('.ready')),
      PATIENCE,
    );
    check(!/SWITCHED OFF/.test(logOf(trial)), 'with room, the log is archived without a gap');
    disk.fill();
    await until(
      'archiving is switched off',
      async () => {
        if (/ARCHIVING IS SWITCHED OFF/.test(logOf(trial))) return true;
        await writeLog(trial.url);
        return false;
      },
      PATIENCE,
    );
    const before = trial.names;
    disk.free();
    await until('a new backup', () => trial.names.some((name) => !before.includes(name)), AFTER_GAP);
    check(true, 'past wal_max_bytes, archiving is switched off, and on again with a new backup');
    await writer.stop();
  } finally {
    disk?.free();
    await trial.close();
    disk?.unmount();
  }
}

const segmentsIn = (trial) =>
  namesIn(join(trial.dataDir, 'postgres/pg_wal')).filter((name) => /^[0-9A-F]{24}$/.test(name)).length;
