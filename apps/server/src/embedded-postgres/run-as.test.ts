import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { chooseRunAs, giveTo } from './run-as.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tunnel-run-as-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const asRoot = process.getuid?.() === 0;

it.runIf(!asRoot)('without root PostgreSQL runs as the current user, without a prefix command', () => {
  expect(chooseRunAs(dir, [dir])).toEqual({
    uid: process.getuid?.(),
    gid: process.getgid?.(),
    prefix: [],
    spawnIds: {},
  });
});

describe.runIf(asRoot)('the user of PostgreSQL under root', () => {
  it('is an unprivileged user, with one capability for folders closed to it', () => {
    chmodSync(dir, 0o700);
    const { uid, prefix, spawnIds } = chooseRunAs(dir, [dir]);
    expect(uid).toBeGreaterThan(0);
    expect(spawnIds).toEqual({});
    expect(prefix).toContain(`--reuid=${uid}`);
    expect(prefix.filter((word) => word.startsWith('--ambient-caps='))).toHaveLength(1);
  });

  it('has no capability when every folder is accessible', () => {
    const { uid, gid, prefix, spawnIds } = chooseRunAs(dir, ['/', '/usr']);
    expect(prefix).toEqual([]);
    expect(spawnIds).toEqual({ uid, gid });
  });

  it('is the owner of the files, unless the system does not know this user', () => {
    chownSync(dir, 1, 1);
    expect(chooseRunAs(dir, ['/']).uid).toBe(1);
    chownSync(dir, 424_242, 424_242);
    expect(chooseRunAs(dir, ['/']).uid).not.toBe(424_242);
  });

  it('becomes the owner of all files in a folder, except targets of symbolic links', () => {
    const outside = join(dir, 'outside');
    const inside = join(dir, 'inside');
    writeFileSync(outside, '');
    mkdirSync(join(inside, 'deep'), { recursive: true });
    writeFileSync(join(inside, 'deep/file'), '');
    symlinkSync(outside, join(inside, 'link'));
    giveTo(inside, { uid: 1, gid: 1, prefix: [], spawnIds: {} });
    const owners = [inside, join(inside, 'deep'), join(inside, 'deep/file'), outside].map((path) => statSync(path).uid);
    expect(owners).toEqual([1, 1, 1, 0]);
  });
});
