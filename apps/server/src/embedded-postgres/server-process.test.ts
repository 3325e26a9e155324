import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger, systemClock } from '@tunnel/runtime';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { ServerProcess, stopOrphan } from './server-process.ts';

let cluster: string;
beforeEach(() => {
  cluster = mkdtempSync(join(tmpdir(), 'tunnel-orphan-'));
});
afterEach(() => rmSync(cluster, { recursive: true, force: true }));

it.each([
  ['whose number belongs to another program by now', `${process.pid}\n`],
  ['whose number belongs to nobody by now', '999999999\n'],
  ['that is empty', ''],
])('a pid file %s is deleted, and no process is stopped', async (_, text) => {
  writeFileSync(join(cluster, 'postmaster.pid'), text);
  await stopOrphan(cluster, createLogger({ format: 'human', level: 'silent' }), systemClock);
  expect(existsSync(join(cluster, 'postmaster.pid'))).toBe(false);
});

it.each([
  ['echo starting >&2; echo "FATAL: no room" >&2; echo "HINT: make some" >&2', 'FATAL: no room'],
  ['exit 1', 'PostgreSQL did not start and gave no reason'],
])('if PostgreSQL exits during startup, %j, the start fails with %j', async (script, problem) => {
  const user = { uid: 0, gid: 0, prefix: [], spawnIds: {} };
  const programs = { binaries: { initdb: '', postgres: '/bin/sh', env: {} }, user };
  const logger = createLogger({ format: 'human', level: 'silent' });
  const server = new ServerProcess({ programs, args: ['-c', script], logger, clock: systemClock });
  await expect(server.ready()).rejects.toThrow(problem);
});
