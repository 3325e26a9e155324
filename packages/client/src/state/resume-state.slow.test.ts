import { mkdirSync, readdirSync, readFileSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createLogger } from '@tunnel/runtime';
import { type Program, spawnProgram, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ResumeStore, type SavedSession, takeSlot } from './resume-state.ts';

const logger = createLogger({ level: 'silent', format: 'json' });
const session = (name: string): SavedSession => ({
  sessionId: `ses_${name}`,
  secret: `secret-${name}`,
  tunnels: [{ key: 'tcp|db|127.0.0.1:5432', tunnelId: `tun_${name}`, assignedPort: 20_001 }],
});

let root: TemporaryDirectory;
let dir: string;
const programs: Program[] = [];

beforeEach(async () => {
  root = await temporaryDirectory();
  dir = join(root.path, 'state');
});
afterEach(async () => {
  await Promise.all(programs.splice(0).map((program) => program.close()));
  await root.close();
});

const take = (key = 'edge:4040|a'): ResumeStore => {
  const store = takeSlot({ dir, key, logger });
  if (store === null) throw new Error('no slot');
  return store;
};

const bundleStore = async (): Promise<string> => {
  const bundle = join(root.path, 'resume-state.mjs');
  // A reduced runtime package with only the files needed by the store, without the logger and its dependencies.
  const runtime = join(root.path, 'runtime.ts');
  const parts = ['secret.ts', 'files/file-lock.ts', 'files/atomic-file.ts'].map(
    (name) => new URL(`../../../runtime/src/${name}`, import.meta.url),
  );
  writeFileSync(runtime, parts.map((part) => `export * from ${JSON.stringify(fileURLToPath(part))};\n`).join(''));
  await build({
    entryPoints: [fileURLToPath(new URL('resume-state.ts', import.meta.url))],
    bundle: true,
    platform: 'node',
    format: 'esm',
    conditions: ['source'],
    outfile: bundle,
    alias: { '@tunnel/runtime': runtime },
    nodePaths: [fileURLToPath(new URL('../../../../node_modules', import.meta.url))],
  });
  return bundle;
};

/** Starts a real process: the process takes a slot, saves a session, prints the state found in the slot, and keeps running. */
const holdInChild = async (name: string, given?: string): Promise<{ program: Program; found: string }> => {
  const bundle = given ?? (await bundleStore());
  const script = `
    import { takeSlot } from ${JSON.stringify(bundle)};
    const store = takeSlot({ dir: ${JSON.stringify(dir)}, key: 'edge:4040|a', logger: { warn: console.error } });
    console.log('found ' + (store.load()?.sessionId ?? 'nothing'));
    store.save(${JSON.stringify(session(name))});
    console.log('saved');
    setInterval(() => {}, 1000);`;
  const program = await spawnProgram({ command: process.execPath, args: ['--input-type=module', '-e', script] });
  programs.push(program);
  const [, found = ''] = await program.waitForLine(/^found (.*)$/);
  await program.waitForLine(/^saved$/);
  return { program, found };
};

describe('a resume slot', () => {
  it('passes the session of a killed process to the next process with the same key at once', async () => {
    const first = await holdInChild('first');
    expect(first.found).toBe('nothing');
    first.program.signal('SIGKILL');
    await first.program.waitForExit();
    expect(take().load()).toEqual(session('first'));
  });

  it('is not shared with a second running process, which starts its own session', async () => {
    await holdInChild('first');
    const second = await holdInChild('second');
    expect(second.found).toBe('nothing');
    second.program.signal('SIGKILL');
    await second.program.waitForExit();
    // The first process still runs, so only the slot of the second one is free.
    expect(take().load()).toEqual(session('second'));
  });

  it('of a killed process is preferred to an empty slot', async () => {
    const ended = take();
    const killed = await holdInChild('killed');
    ended.release({ forget: true });
    killed.program.signal('SIGKILL');
    await killed.program.waitForExit();
    expect(take().load()).toEqual(session('killed'));
  });

  it('goes to exactly one of several processes that start at once', async () => {
    const killed = await holdInChild('killed');
    killed.program.signal('SIGKILL');
    await killed.program.waitForExit();
    const bundle = await bundleStore();
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const holders = await Promise.all(names.map((name) => holdInChild(name, bundle)));
    expect(holders.filter(({ found }) => found !== 'nothing')).toHaveLength(1);
    const locks = readdirSync(dir).filter((file) => file.endsWith('.lock'));
    const pids = locks.map((file) => (JSON.parse(readFileSync(join(dir, file), 'utf8')) as { pid: number }).pid);
    expect(new Set(pids)).toEqual(new Set(holders.map(({ program }) => program.pid)));
  });

  it('is deleted after a clean end', () => {
    const store = take();
    store.save(session('x'));
    store.release({ forget: true });
    expect(readdirSync(dir)).toEqual([]);
  });

  it('keeps the session but not the lock after an end with an error', () => {
    const store = take();
    store.save(session('x'));
    store.release({ forget: false });
    expect(take().load()).toEqual(session('x'));
  });

  it('is not readable by other users', () => {
    mkdirSync(dir, { mode: 0o755 });
    take().save(session('x'));
    expect(statSync(dir).mode & 0o777).toBe(0o700);
    for (const file of readdirSync(dir)) expect(statSync(join(dir, file)).mode & 0o777).toBe(0o600);
  });

  it('is not shared between clients with different tunnels', () => {
    const one = take('edge:4040|a');
    one.save(session('a'));
    one.release({ forget: false });
    expect(take('edge:4040|b').load()).toBeNull();
  });

  it('with a truncated state file counts as empty', () => {
    const store = take();
    store.save(session('x'));
    writeFileSync(join(dir, readdirSync(dir).find((file) => file.endsWith('.json')) ?? ''), '{"version":1,"sess');
    expect(store.load()).toBeNull();
  });

  it('is taken over when the process id in its lock belongs to another process now', () => {
    const store = take();
    store.save(session('x'));
    const lock = join(dir, readdirSync(dir).find((file) => file.endsWith('.lock')) ?? '');
    writeFileSync(lock, JSON.stringify({ host: hostname(), pid: process.ppid, started: 'boot/1', nonce: 'old' }));
    expect(take().load()).toEqual(session('x'));
  });

  it('locked by another machine is left alone while the lock is touched', () => {
    const store = take();
    store.save(session('x'));
    const lock = join(dir, readdirSync(dir).find((file) => file.endsWith('.lock')) ?? '');
    writeFileSync(lock, JSON.stringify({ host: 'elsewhere', pid: 1, started: '', nonce: 'far' }));
    expect(take().load()).toBeNull();
  });

  it('is touched by its holder, so that other machines see a live lock', () => {
    const store = take();
    const lock = join(dir, readdirSync(dir).find((file) => file.endsWith('.lock')) ?? '');
    utimesSync(lock, new Date(0), new Date(0));
    store.touch();
    expect(Date.now() - statSync(lock).mtimeMs).toBeLessThan(60_000);
  });

  it('is refused beyond 16 slots', () => {
    for (let index = 0; index < 16; index += 1) take();
    expect(takeSlot({ dir, key: 'edge:4040|a', logger })).toBeNull();
  });

  it('is skipped when the folder cannot be used', () => {
    writeFileSync(dir, 'a file in the way');
    expect(takeSlot({ dir, key: 'k', logger })).toBeNull();
  });
});
