// Damaged folders of backups: verify and restore name the bad file, and a restore leaves nothing behind.
import { cpSync, existsSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { BackupTrial, namesIn, runServer } from './trial.mjs';
import { Writer } from './writer.mjs';

/** Changes a copy of a file, because the files of the trial are links. */
const change = (path, act) => {
  const bytes = readFileSync(path);
  unlinkSync(path);
  writeFileSync(path, act(bytes));
};

const flip = (bytes) => {
  // Near the start, because the rest of a compressed segment is empty, and some bits of it make no difference.
  bytes[Math.min(2000, Math.floor(bytes.length / 2))] ^= 1;
  return bytes;
};

export async function tryTorn({ check }) {
  const trial = await BackupTrial.open();
  try {
    const writer = new Writer(() => trial.url);
    const name = await trial.nextBackup();
    for (let count = 0; count < 3; count += 1) {
      await pause(500);
      await trial.archiveAll();
    }
    await writer.stop();
    await trial.stack.stop();
    const base = join('base', name);
    const { files, wal_end } = JSON.parse(readFileSync(join(trial.backups, base, 'backup_manifest.json'), 'utf8'));
    const largest = files
      .filter(({ path }) => path.startsWith('cluster/base/'))
      .sort((a, b) => b.bytes - a.bytes)[0].path;
    const small = files.find(({ path }) => path === 'keys/master-key').path;
    const ownLog = files.find(({ path }) => path.startsWith('wal/')).path;
    const archived = namesIn(join(trial.backups, 'wal')).filter(
      (each) => /^[0-9A-F]{24}\.gz$/.test(each) && each.slice(0, 24) > wal_end.segment,
    );
    const middle = join('wal', archived[Math.floor(archived.length / 2) - (archived.length > 2 ? 0 : 1)]);
    const faults = [
      ['a byte of a table is flipped', join(base, largest), (path) => change(path, flip)],
      ['a byte of a key is flipped', join(base, small), (path) => change(path, flip)],
      ['a file is missing', join(base, largest), unlinkSync],
      ['a segment of the backup is missing', join(base, ownLog), unlinkSync],
      [
        'a segment of the backup is cut',
        join(base, ownLog),
        (path) => change(path, (bytes) => bytes.subarray(0, bytes.length / 2)),
      ],
      ['a segment of the archive is missing', middle, unlinkSync],
      [
        'a segment of the archive is cut',
        middle,
        (path) => change(path, (bytes) => bytes.subarray(0, bytes.length / 2)),
      ],
      ['a byte of a segment of the archive is flipped', middle, (path) => change(path, flip)],
      [
        'the manifest is cut',
        join(base, 'backup_manifest.json'),
        (path) => change(path, (bytes) => bytes.subarray(0, 500)),
      ],
    ];
    for (const [what, file, act] of faults) await tryFault({ trial, check }, { what, file, act });
  } finally {
    await trial.close();
  }
}

async function tryFault({ trial, check }, { what, file, act }) {
  const folder = join(await trial.folder(), 'backups');
  cpSync(trial.backups, folder, { recursive: true });
  act(join(folder, file));
  const env = ['--config', join(folder, 'server.toml'), '--data-dir', trial.dataDir];
  writeFileSync(join(folder, 'server.toml'), `[backup]\ndir = "${folder}"\n`);
  const verify = await runServer(trial.stack, ['backup', 'verify', ...env]);
  const bad = join(folder, file);
  check(
    verify.code === 1 && verify.stderr.includes(bad),
    `${what}: verify names the file: ${verify.code} ${verify.stderr.trim()}`,
  );
  const target = join(folder, '../restored');
  const restore = await runServer(trial.stack, ['backup', 'restore', '--from', folder, '--to', target, ...env]);
  const isGap = what === 'a segment of the archive is missing';
  // The part before a gap can be restored, and list and verify say that it ends there.
  const isRight = isGap ? restore.code === 0 : restore.code > 0 && restore.stderr.includes(file.split('/').at(-1));
  check(isRight, `${what}: restore: ${restore.code} ${restore.stderr.trim() || restore.stdout.split('\n')[0]}`);
  check(isGap || !existsSync(target) || namesIn(target).length === 0, `${what}: restore leaves nothing behind`);
  rmSync(folder, { recursive: true, force: true });
  rmSync(target, { recursive: true, force: true });
}
