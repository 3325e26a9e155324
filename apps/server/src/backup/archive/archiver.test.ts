import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { eventually, FastClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SWITCHED_OFF, SWITCHED_ON } from '../../embedded-postgres/log-mode.ts';
import { ArchiverTrial, seg } from './archiver.fixture.ts';

const MB = 1024 * 1024;

let directory: TemporaryDirectory;
let trial: ArchiverTrial;
beforeEach(async () => {
  directory = await temporaryDirectory();
  trial = new ArchiverTrial(directory.path);
});
afterEach(async () => {
  await trial.close();
  await directory.close();
});

describe('the archiver', () => {
  it('moves finished segments to the archive, readable only by its user, and ignores copies in progress', async () => {
    for (const number of [3, 4, 5]) trial.finish(number);
    writeFileSync(join(trial.spool, `${seg(6)}.part`), 'half');
    writeFileSync(join(trial.spool, '00000002.history'), '1\t0/3000000\t\n');
    await trial.archiver().start();
    await eventually(() => expect(trial.spooled).toEqual([]));
    expect(trial.archived).toEqual([3, 4, 5]);
    expect(trial.contentOf(4)).toBe('segment 4');
    const files = readdirSync(trial.walDir);
    expect(files).toContain('00000002.history.gz');
    expect(files.map((name) => statSync(join(trial.walDir, name)).mode & 0o777)).toEqual(files.map(() => 0o600));
    expect(readdirSync(trial.spool).sort()).toEqual([`${seg(6)}.part`, SWITCHED_ON]);
    expect(trial.failures).toBe(0);
  });

  it('accepts a segment that is archived already with the same content, and replaces an incomplete file of a killed server', async () => {
    writeFileSync(join(trial.walDir, `${seg(3)}.gz`), gzipSync('segment 3'));
    writeFileSync(join(trial.walDir, `${seg(4)}.gz.new`), 'half of a fi');
    trial.finish(3);
    trial.finish(4);
    await trial.archiver().start();
    await eventually(() => expect(trial.spooled).toEqual([]));
    expect([trial.contentOf(3), trial.contentOf(4)]).toEqual(['segment 3', 'segment 4']);
    expect(readdirSync(trial.walDir)).toHaveLength(2);
  });

  it.each([
    ['other content', gzipSync('another database')],
    ['a damaged file', gzipSync('segment 3').subarray(0, 12)],
  ])('never replaces %s in the archive, keeps the segment, and says what to do', async (_what, content) => {
    writeFileSync(join(trial.walDir, `${seg(3)}.gz`), content);
    trial.finish(3);
    trial.finish(4);
    await trial.archiver().start();
    await eventually(() => expect(trial.failures).toBeGreaterThanOrEqual(2));
    expect([trial.spooled, trial.archived]).toEqual([[3, 4], [3]]);
    expect(trial.warnings('cannot archive')).toBe(1);
    expect(trial.lines.find(({ level }) => level === 'warn')?.reason).toMatch(/other content.*another folder$/);
    rmSync(join(trial.walDir, `${seg(3)}.gz`));
    await eventually(() => expect(trial.archived).toEqual([3, 4]));
  });

  it('retries while the folder of the archive is missing, warns once, and catches up in order when the folder is back', async () => {
    renameSync(trial.walDir, `${trial.walDir}.away`);
    for (const number of [3, 4, 5]) trial.finish(number);
    await trial.archiver().start();
    await eventually(() => expect(trial.failures).toBeGreaterThanOrEqual(3));
    expect(trial.spooled).toEqual([3, 4, 5]);
    expect(trial.warnings('cannot archive')).toBe(1);
    renameSync(`${trial.walDir}.away`, trial.walDir);
    await eventually(() => expect(trial.archived).toEqual([3, 4, 5]));
    await eventually(() => expect(trial.lines.at(-1)?.msg).toBe('the log of the database is archived again'));
  });

  it('follows no link and waits for no pipe that the user of the database puts in place of a segment', async () => {
    const secret = join(directory.path, 'secret');
    writeFileSync(secret, 'secret');
    symlinkSync(secret, join(trial.spool, seg(3)));
    await trial.archiver().start();
    await eventually(() => expect(trial.failures).toBeGreaterThanOrEqual(1));
    rmSync(join(trial.spool, seg(3)));
    const before = trial.failures;
    execFileSync('mkfifo', [join(trial.spool, seg(3))]);
    await eventually(() => expect(trial.failures).toBeGreaterThan(before));
    expect(trial.archived).toEqual([]);
  });

  it('archives what the database hands over while stopping, and leaves the rest in the spool if the archive fails', async () => {
    const archiver = trial.archiver({}, new FastClock(1));
    await archiver.start();
    trial.finish(3);
    await archiver.stop(5000);
    expect(trial.archived).toEqual([3]);
    renameSync(trial.walDir, `${trial.walDir}.away`);
    trial.finish(4);
    const next = trial.archiver({}, new FastClock(1));
    await next.start();
    await next.stop(5000);
    expect(trial.spooled).toEqual([4]);
    expect(trial.warnings('not all log is archived')).toBe(1);
  });

  it('archives a whole segment of changing content, longer than the pieces that are read at once, without changing a byte', async () => {
    const content = Buffer.from(Uint32Array.from({ length: (16 * MB) / 4 }, (_, index) => index).buffer);
    writeFileSync(join(trial.spool, seg(3)), content);
    await trial.archiver().start();
    await eventually(() => expect(trial.archived).toEqual([3]));
    expect(gunzipSync(readFileSync(join(trial.walDir, `${seg(3)}.gz`))).equals(content)).toBe(true);
  });

  it('stays within its rate', async () => {
    const content = Buffer.alloc(16 * MB);
    writeFileSync(join(trial.spool, seg(3)), content);
    writeFileSync(join(trial.spool, seg(4)), content);
    const clock = new FastClock(1);
    const startedAt = clock.monotonic();
    await trial.archiver({}, clock).start();
    await eventually(() => expect(trial.archived).toEqual([3, 4]));
    // 33.5 MB at 50 MB/s, of which 5 MB are the burst.
    expect(clock.monotonic() - startedAt).toBeGreaterThan(500);
  });
});

describe('too much log that waits for the archive', () => {
  it('switches archiving off loudly, and on again behind a gap once the backlog is archived', async () => {
    renameSync(trial.walDir, `${trial.walDir}.away`);
    for (const number of [3, 4, 5]) trial.finish(number, 'x'.repeat(MB));
    await trial.archiver({ maxBytes: 2 * MB }).start();
    await eventually(() => expect(readdirSync(trial.spool)).toContain(SWITCHED_OFF));
    await eventually(() => expect(trial.warnings('ARCHIVING IS SWITCHED OFF')).toBe(1));
    trial.finish(6);
    trial.finish(7);
    renameSync(`${trial.walDir}.away`, trial.walDir);
    await eventually(() => expect(trial.archived).toEqual([3, 4, 5]));
    // The database is restarting at this moment, so the switch has to wait.
    await eventually(() => expect(trial.switches).toBeGreaterThanOrEqual(2));
    writeFileSync(join(trial.status, `${seg(8)}.ready`), '');
    trial.switchesAfter = { timeline: 1, number: 8 };
    const switches = trial.switches;
    await eventually(() => expect(trial.switches).toBe(switches + 1));
    expect(readdirSync(trial.spool)).toContain(SWITCHED_OFF);
    // PostgreSQL has passed over segment 8.
    rmSync(join(trial.status, `${seg(8)}.ready`));
    await eventually(() => expect(trial.switchedOn).toBe(1));
    expect(readdirSync(trial.spool)).toContain(SWITCHED_ON);
    expect(readdirSync(trial.walDir)).toContain(`${seg(8)}.gap`);
    // A segment from before the switch, which PostgreSQL finds at its next checkpoint, would fill the gap with a part of the log only.
    trial.finish(7);
    trial.finish(9);
    await eventually(() => expect(trial.spooled).toEqual([]));
    expect(trial.archived).toEqual([3, 4, 5, 9]);
  });

  it('includes segments that PostgreSQL cannot hand over, because the disk of the spool is full', async () => {
    for (const number of [3, 4, 5]) writeFileSync(join(trial.status, `${seg(number)}.ready`), '');
    await trial.archiver({ maxBytes: 48 * MB }).start();
    writeFileSync(join(trial.status, `${seg(6)}.ready`), '');
    await eventually(() => expect(readdirSync(trial.spool)).toEqual([SWITCHED_OFF]));
  });

  it('stays switched off over a restart of the server', async () => {
    renameSync(join(trial.spool, SWITCHED_ON), join(trial.spool, SWITCHED_OFF));
    trial.switchesAfter = { timeline: 1, number: 8 };
    const archiver = trial.archiver();
    await archiver.start();
    expect(archiver.isOn).toBe(false);
    await eventually(() => expect(archiver.isOn).toBe(true));
  });

  it('begins again behind a gap if the spool was deleted, so that the log cannot fill the disk of the database', async () => {
    trial.switchesAfter = { timeline: 1, number: 8 };
    const archiver = trial.archiver();
    await archiver.start();
    rmSync(trial.spool, { recursive: true });
    await eventually(() => expect(trial.switchedOn).toBe(1));
    expect(readdirSync(trial.spool).sort()).toEqual(['begins-after', SWITCHED_ON]);
    expect(statSync(trial.spool).mode & 0o777).toBe(0o700);
    trial.finish(9);
    await eventually(() => expect(trial.archived).toEqual([9]));
  });

  it('continues the archive of a restored cluster, whose spool is empty', async () => {
    rmSync(trial.spool, { recursive: true });
    mkdirSync(trial.spool);
    const archiver = trial.archiver();
    await archiver.start();
    expect(archiver.isOn).toBe(true);
    trial.finish(3);
    await eventually(() => expect(trial.archived).toEqual([3]));
  });
});
