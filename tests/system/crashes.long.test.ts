// Tests of a part of a stack that hangs, or restarts where no file can be written. The load tests cover crash reports.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { startServer, waitUntilReady, withServerDir } from '../repo/server-program.fixture.ts';
import { partsOf, pidOfPart } from './kill-trial.fixture.ts';

const SOON = { timeoutMs: 30_000 };

it('a part of a stack restarts even if its files cannot be written', () =>
  withServerDir(async (at, use) => {
    const program = use(await startServer(at));
    await waitUntilReady(program);
    const edge = pidOfPart(at.dataDir, 'edge');
    // Simulates a full disk. Root can write to files of any mode, but not over a folder.
    for (const name of ['edge.lock', 'edge-endpoints.jsonl', 'edge-journal', 'crashes']) {
      const path = join(at.dataDir, name);
      rmSync(path, { recursive: true, force: true });
      if (name === 'edge-journal' || name === 'crashes') writeFileSync(path, '');
      else mkdirSync(path);
    }
    process.kill(edge, 'SIGKILL');
    await program.waitForLine(/"part":"edge","msg":"a process is running again"/, SOON);
    program.signal('SIGTERM');
    expect(await program.waitForExit()).toEqual({ code: 0, signal: null });
  }));

it('a hanging part of a killed stack is ended by the next start, which takes over its ports', () =>
  withServerDir(async (at, use) => {
    const killed = use(await startServer(at));
    await waitUntilReady(killed);
    const hung = pidOfPart(at.dataDir, 'edge');
    process.kill(hung, 'SIGSTOP');
    killed.signal('SIGKILL');
    await killed.waitForExit();
    try {
      const program = use(await startServer(at));
      await waitUntilReady(program);
      expect(partsOf(at.dataDir).map(({ pid }) => pid)).not.toContain(hung);
      program.signal('SIGTERM');
      expect(await program.waitForExit()).toEqual({ code: 0, signal: null });
    } finally {
      if (partsOf(at.dataDir).some(({ pid }) => pid === hung)) process.kill(hung, 'SIGKILL');
    }
  }));
