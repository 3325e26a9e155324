import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, systemClock } from '@tunnel/runtime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { stopOrphan } from './orphan.ts';

let cluster: string;
beforeEach(() => {
  cluster = mkdtempSync(join(tmpdir(), 'tunnel-orphan-'));
});
afterEach(() => rmSync(cluster, { recursive: true, force: true }));

it.each([
  ['another program', process.pid],
  ['nobody', 999_999_999],
])('a pid file whose number belongs to %s by now is taken away, and nobody is stopped', async (_, pid) => {
  writeFileSync(join(cluster, 'postmaster.pid'), `${pid}\n${cluster}\n`);
  await stopOrphan(cluster, createLogger({ format: 'human', level: 'silent' }), systemClock);
  expect(existsSync(join(cluster, 'postmaster.pid'))).toBe(false);
});
