// Platforms of different versions on one database: the notes about migrations decide which versions run beside a newer version.

import type { Secret } from '@tunnel/runtime';
import { eventually, spawnProgram } from '@tunnel/testkit';
import { describe, expect } from 'vitest';
import { ask } from '../../../system/embedded-database.fixture.ts';
import type { Harness } from '../../../system/harness.fixture.ts';
import { call, Person } from '../../../system/platform-test.fixture.ts';
import { type Stack, withoutOurEnvironment } from '../../../system/stack.fixture.ts';
import { it } from '../../../system/system-test.fixture.ts';
import { command, dump, mayStart, platformOf, startDatabase } from './servers.ts';
import { BUILDS, type Build, SOON } from './world.ts';

const { previous, current, allowing, excluding } = BUILDS;
const WARNING = 'a newer version has added migrations';
const NEWER = 'the database belongs to a newer version of the server';

const start = async (harness: Harness, build: Build, database: Secret, like?: Stack): Promise<Stack> => {
  const platform = await platformOf(harness, build, database, like);
  await platform.start();
  return platform;
};

const signIn = async (platform: Stack, { email }: Person): Promise<number> => {
  const body = { email, password: 'correct horse battery' };
  return (await call(platform, '/auth/login', { method: 'POST', body })).status;
};

const warnings = ({ program }: Stack): number =>
  [...program.stdout, ...program.stderr].filter((line) => line.includes(WARNING)).length;

/** Starts a server that refuses the database, and returns its error. Fails if the database has changed. */
const refusal = async (harness: Harness, build: Build, database: Secret, like: Stack): Promise<string> => {
  const platform = await platformOf(harness, build, database, like);
  const before = await dump(database);
  const { code, err } = await command(build, platform, 'platform');
  expect([code, await dump(database)]).toEqual([2, before]);
  return err;
};

describe(`version ${current.version} beside version ${allowing.version}, whose migrations allow it`, () => {
  it('keeps running, restarts with one warning, and both serve the accounts of the other', async ({ harness }) => {
    const database = await startDatabase(harness);
    const old = await start(harness, current, database);
    const ann = await Person.signUp(old, 'ann');
    const next = await start(harness, allowing, database, old);
    expect(warnings(old)).toBe(0);
    const bob = await Person.signUp(old, 'bob');
    const eve = await Person.signUp(next, 'eve');
    await old.stop();
    await old.start();
    expect([warnings(old), warnings(next)]).toEqual([1, 0]);
    for (const platform of [old, next]) {
      for (const person of [ann, bob, eve]) expect(await signIn(platform, person)).toBe(200);
    }
    expect((await Person.signUp(old, 'dan')).email).toContain('dan');
    expect(await command(current, old, 'migrate', '--check')).toMatchObject({
      code: 0,
      out: expect.stringContaining('9100-made-up'),
    });
    expect((await command(current, old, 'admin', 'invite', 'guest@example.com')).code).toBe(0);
  });
});

describe(`version ${current.version} beside version ${excluding.version}, whose migrations exclude it`, () => {
  it('keeps running, but no longer starts, checks or administers, and leaves the database unchanged', async ({
    harness,
  }) => {
    const database = await startDatabase(harness);
    const old = await start(harness, current, database);
    const ann = await Person.signUp(old, 'ann');
    const next = await start(harness, excluding, database, old);
    expect(await signIn(old, ann)).toBe(200);
    const text = `migration 9100-made-up is unknown to version ${current.version} and requires version ${excluding.version} or newer`;
    const check = await command(current, old, 'migrate', '--check');
    expect(check).toMatchObject({ code: 2, err: expect.stringContaining(text) });
    for (const args of [['migrate'], ['admin', 'invite', 'guest@example.com']]) {
      expect(await command(current, old, ...args)).toMatchObject({ code: 2, err: expect.stringContaining(text) });
    }
    await old.stop();
    await next.stop();
    const said = await refusal(harness, current, database, old);
    expect(said).toContain(NEWER);
    expect(said).toContain(text);
    expect(said).not.toMatch(/\n\s+at /);
  });
});

describe(`version ${previous.version} beside version ${current.version}`, () => {
  it('keeps running, and starts again only if the migrations allow it, else leaves the database unchanged', async ({
    harness,
  }) => {
    const database = await startDatabase(harness);
    const old = await start(harness, previous, database);
    const ann = await Person.signUp(old, 'ann');
    const next = await start(harness, current, database, old);
    const bob = await Person.signUp(old, 'bob');
    const eve = await Person.signUp(next, 'eve');
    for (const platform of [old, next]) {
      for (const person of [ann, bob, eve]) expect(await signIn(platform, person)).toBe(200);
    }
    await old.stop();
    if (await mayStart(previous, database)) await old.start();
    else {
      await next.stop();
      expect(await refusal(harness, previous, database, old)).toContain(NEWER);
    }
  });
});

describe('tunnel-server migrate', () => {
  it('--check ends with 1 and lists locks before the migrations, and with 0 afterwards', async ({ harness }) => {
    const database = await startDatabase(harness);
    const old = await start(harness, previous, database);
    await old.stop();
    const check = async (...flags: string[]) => command(current, old, 'migrate', '--check', ...flags);
    const { code, out } = await check('--json');
    expect(code).toBe(1);
    const { missing, pending } = JSON.parse(out) as { missing: string[]; pending: object[] };
    expect(missing[0]).toBe('0022-schema-notes');
    expect(pending[0]).toEqual({ name: '0022-schema-notes', long_locks: [], oldest_version: expect.any(String) });
    expect((await check()).out).toContain('0022-schema-notes');
    expect((await command(current, old, 'migrate')).code).toBe(0);
    expect(await check()).toMatchObject({ code: 0, out: 'ok: the database is up to date' });
  });

  it('killed at any moment leaves whole migrations, and the next run completes them', async ({ harness }) => {
    const database = await startDatabase(harness);
    const old = await start(harness, current, database);
    await old.stop();
    const history = async (): Promise<unknown> =>
      ask(database, `select string_agg(name, ' ') from kysely_migration where name like '9%'`);
    const notes = async (): Promise<unknown> =>
      ask(database, `select string_agg(migration, ' ') from schema_notes where migration like '9%'`);
    const slow = `select count(*)::int from pg_stat_activity where query like '%pg_sleep%' and state = 'active' and pid <> pg_backend_pid()`;
    const program = await spawnProgram({
      command: process.execPath,
      args: [allowing.server, 'migrate', ...old.flags],
      env: withoutOurEnvironment(),
      cwd: await harness.folder(),
    });
    await eventually(async () => expect(await ask(database, slow)).toBe(1), { ...SOON, intervalMs: 20 });
    program.signal('SIGKILL');
    await program.waitForExit();
    await program.close();
    expect([await history(), await notes()]).toEqual(['9100-made-up', '9100-made-up']);
    expect(await command(current, old, 'migrate', '--check')).toMatchObject({ code: 0 });
    const both = await Promise.all([command(allowing, old, 'migrate'), command(allowing, old, 'migrate')]);
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(both.map(({ out }) => out).toSorted()).toEqual([
      'applied: 9200-made-up',
      'ok: the database was already up to date',
    ]);
    expect([await history(), await notes()]).toEqual(['9100-made-up 9200-made-up', '9100-made-up 9200-made-up']);
  });
});
