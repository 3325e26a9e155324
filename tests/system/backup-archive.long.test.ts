// The archive of the log when log has to be given up: too much of it waits, or the disk of the spool is full.
import { chownSync, readdirSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseSegment } from '../../apps/server/src/backup/wal-names.rules.ts';
import { SWITCHED_OFF, SWITCHED_ON } from '../../apps/server/src/embedded-postgres/log-mode.ts';
import {
  archived,
  backups,
  closeArchive,
  isContiguous,
  MB,
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

beforeEach(openArchive);
afterEach(closeArchive);

describe('the archive of the log', () => {
  it('ends loudly at too much waiting log, resumes behind a gap, and a new backup follows the gap', async () => {
    const { url, figures } = await start({ wal_max_bytes: 40 * MB });
    await eventually(() => expect(backups()).toHaveLength(1), PATIENT);
    renameSync(wal(), `${wal()}.away`);
    await eventually(async () => {
      await writeSegment(url);
      expect(readdirSync(spool())).toContain(SWITCHED_OFF);
    }, PATIENT);
    await writeSegment(url);
    expect(figures()?.archiveFailures).toBeGreaterThan(0);
    const waiting = readdirSync(spool()).filter((name) => parseSegment(name) !== null).length;
    expect(waiting).toBeLessThanOrEqual(6);
    renameSync(`${wal()}.away`, wal());
    await eventually(() => expect(readdirSync(spool())).toContain(SWITCHED_ON), PATIENT);
    await writeSegment(url);
    await eventually(() => expect(isContiguous(archived())).toBe(false), PATIENT);
    await eventually(() => expect(backups()).toHaveLength(2), PATIENT);
  });
});

describe.runIf(mountable)('a full disk', () => {
  it('of the spool: the database keeps working, archiving is switched off on the full disk, and resumes', async () => {
    const settings = { wal_max_bytes: 64 * MB };
    const first = await start(settings);
    await eventually(() => expect(readdirSync(spool())).toContain(SWITCHED_ON), PATIENT);
    await eventually(() => expect(backups()).toHaveLength(1), PATIENT);
    await first.stop();
    const { uid, gid } = statSync(spool());
    mount(spool(), 24);
    writeFileSync(join(spool(), SWITCHED_ON), '');
    for (const path of [spool(), join(spool(), SWITCHED_ON)]) chownSync(path, uid, gid);
    const { url } = await start(settings);
    renameSync(wal(), `${wal()}.away`);
    await eventually(
      async () => {
        await writeSegment(url);
        expect(readdirSync(spool())).toContain(SWITCHED_OFF);
      },
      { timeoutMs: 100_000 },
    );
    expect(await ask(url, 'select count(*) > 0 from filler')).toBe(true);
    renameSync(`${wal()}.away`, wal());
    await eventually(() => expect(readdirSync(spool())).toContain(SWITCHED_ON), { timeoutMs: 100_000 });
    const before = archived().length;
    await writeSegment(url);
    await eventually(() => expect(archived().length).toBeGreaterThan(before), PATIENT);
  });
});
