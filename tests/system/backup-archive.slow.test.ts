// Scheduled backups and the archive of the log, with a real database. Log that is given up is in backup-archive.long.test.ts.
import { execFileSync } from 'node:child_process';
import { readdirSync, renameSync, rmSync } from 'node:fs';
import { eventually, FastClock } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseSegment } from '../../apps/server/src/backup/wal-names.rules.ts';
import { SWITCHED_ON } from '../../apps/server/src/embedded-postgres/log-mode.ts';
import {
  archived,
  at,
  backups,
  closeArchive,
  configFile,
  isContiguous,
  mount,
  mountable,
  openArchive,
  PATIENT,
  spool,
  start,
  wal,
  writeSegment,
} from './backup-archive.fixture.ts';
import { ask } from './embedded-database.fixture.ts';
import { runServerCommand } from './server-command.fixture.ts';

beforeEach(openArchive);
afterEach(closeArchive);

describe('the archive of the log', () => {
  it('has every segment from the first backup to the stop, also of a parent that was killed', async () => {
    const first = await start();
    expect(first.backups.startLines[0]).toBe('backup: none yet, the first one begins now');
    await eventually(() => expect(backups()).toHaveLength(1), PATIENT);
    await writeSegment(first.url);
    await eventually(() => expect(archived().length).toBeGreaterThanOrEqual(2), PATIENT);
    // The archive stands still as after a kill: PostgreSQL hands segments over, and nothing takes them.
    renameSync(wal(), `${wal()}.away`);
    await writeSegment(first.url);
    await first.stop();
    expect(readdirSync(spool()).length).toBeGreaterThanOrEqual(3);
    renameSync(`${wal()}.away`, wal());

    const second = await start({}, new FastClock(1));
    expect(second.backups.startLines[0]).toBe('backup: last 0 min ago');
    await ask(second.url, 'insert into filler values (md5($$last$$))');
    await second.stop();
    expect(readdirSync(spool()).sort()).toEqual(['begins-after', SWITCHED_ON]);
    expect(isContiguous(archived()), archived().join(' ')).toBe(true);
    expect(backups()).toHaveLength(1);
    const { code, stdout } = await runServerCommand([
      ...['backup', 'list', '--json', '--data-dir', at('data'), '--config', configFile()],
    ]);
    expect([code, (JSON.parse(stdout.join('')) as { ok: boolean }[]).map(({ ok }) => ok)]).toEqual([0, [true]]);
  });

  it('is off and on again with the settings, and nothing in between is archived', async () => {
    const first = await start();
    await eventually(() => expect(backups()).toHaveLength(1), PATIENT);
    await first.stop();
    const before = archived();
    const off = await start({ dir: '' });
    expect(off.backups.startLines).toEqual(['backup: off, see docs/backup.md']);
    expect(await ask(off.url, 'show wal_level')).toBe('minimal');
    await ask(off.url, 'create table filler (text text)');
    await ask(off.url, 'insert into filler select repeat(md5(n::text), 30) from generate_series(1, 60000) n');
    await off.stop();
    expect(archived()).toEqual(before);
    const again = await start();
    await eventually(() => expect(backups()).toHaveLength(2), PATIENT);
    await ask(again.url, 'checkpoint').catch(() => {});
    await writeSegment(again.url);
    await again.stop();
    const after = archived().filter((number) => !before.includes(number));
    expect(isContiguous(after)).toBe(true);
    expect(after[0]).toBeGreaterThan((before.at(-1) ?? 0) + 1);
  });
});

describe.runIf(mountable)('a full disk', () => {
  it('of the backups: the database keeps working, and the archive catches up without a gap once there is room', async () => {
    mount(at('backups'), 80);
    const { url, figures } = await start();
    await eventually(() => expect(backups()).toHaveLength(1), PATIENT);
    const filler = at('backups', 'other-data');
    execFileSync('sh', ['-c', `cat /dev/zero > ${filler} 2>/dev/null || true`]);
    for (let round = 0; round < 3; round += 1) await writeSegment(url);
    await eventually(() => expect(figures()?.archiveFailures).toBeGreaterThan(1), PATIENT);
    expect(await ask(url, 'select count(*) > 0 from filler')).toBe(true);
    const failed = await runServerCommand(['backup', 'create', '--data-dir', at('data'), '--config', configFile()]);
    expect([failed.code, failed.stderr.join('\n')]).toEqual([1, expect.stringContaining('disk is full')]);
    expect(readdirSync(at('backups', 'base'))).toHaveLength(1);
    rmSync(filler);
    await eventually(
      () => expect(readdirSync(spool()).filter((name) => parseSegment(name) !== null)).toEqual([]),
      PATIENT,
    );
    expect(isContiguous(archived()), archived().join(' ')).toBe(true);
    expect(readdirSync(wal()).filter((name) => name.endsWith('.new'))).toEqual([]);
    await writeSegment(url);
    await eventually(() => expect(isContiguous(archived())).toBe(true));
  });
});
