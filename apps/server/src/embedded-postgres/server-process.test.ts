import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, systemClock } from '@tunnel/runtime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { stopOrphan } from './server-process.ts';

let cluster: string;
beforeEach(() => {
  cluster = mkdtempSync(join(tmpdir(), 'tunnel-orphan-'));
});
afterEach(() => rmSync(cluster, { recursive: true, force: true }));

it.each([
  ['whose number belongs to another program by now', `${process.pid}\n`],
  ['whose number belongs to nobody by now', '999999999\n'],
  ['that is empty', ''],
])('a pid file %s is taken away, and nobody is stopped', async (_, text) => {
  writeFileSync(join(cluster, 'postmaster.pid'), text);
  await stopOrphan(cluster, createLogger({ format: 'human', level: 'silent' }), systemClock);
  expect(existsSync(join(cluster, 'postmaster.pid'))).toBe(false);
});
