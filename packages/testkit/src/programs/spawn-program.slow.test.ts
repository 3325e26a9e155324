import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { startTcpServer } from '../network/tcp-servers.ts';
import { eventually, waitForPort } from '../time/eventually.ts';
import type { Program } from './program.ts';
import { spawnProgram } from './spawn-program.ts';
import { temporaryDirectory } from './temporary-directory.ts';

const runScript = (script: string, env: Record<string, string | undefined> = {}): Promise<Program> =>
  spawnProgram({ command: process.execPath, args: ['-e', script], env });

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('spawnProgram', () => {
  it('keeps the lines of both streams and the exit code', async () => {
    const program = await runScript('console.log("port=" + process.env.P); console.error("bad"); process.exit(3)', {
      P: '77',
    });
    expect((await program.waitForLine(/port=(\d+)/))[1]).toBe('77');
    expect(await program.waitForExit()).toEqual({ code: 3, signal: null });
    expect([program.stdout, program.stderr]).toEqual([['port=77'], ['bad']]);
    await program.close();
  });

  it('finds a line that was printed before the wait, even after the exit', async () => {
    const program = await runScript('console.log("early")');
    await program.waitForExit();
    expect((await program.waitForLine(/early/))[0]).toBe('early');
    await expect(program.waitForLine(/never/)).rejects.toThrow(/ended with 0 before \/never\/:\n {2}\| early/);
  });

  it('ends all processes on close(), including grandchildren', async () => {
    const grandchild = 'setInterval(() => {}, 1000)';
    const program = await runScript(
      `const c = require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(grandchild)}], { stdio: 'ignore' });
       console.log('child ' + c.pid); process.on('SIGTERM', () => {}); setInterval(() => {}, 1000)`,
    );
    const pid = Number((await program.waitForLine(/child (\d+)/))[1]);
    expect(isAlive(pid)).toBe(true);
    await program.close();
    await eventually(() => expect([isAlive(pid), isAlive(program.pid)]).toEqual([false, false]));
    expect(program.exit).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('passes on signals and input', async () => {
    const program = await runScript(
      'process.on("SIGTERM", () => { console.log("term"); process.exit(0) }); process.stdin.on("data", (d) => console.log("got " + d))',
    );
    program.write('hello\n');
    await program.waitForLine(/got hello/);
    program.signal('SIGTERM');
    expect(await program.waitForExit()).toEqual({ code: 0, signal: null });
    expect(program.stdout).toContain('term');
  });

  it('rejects for a missing program', async () => {
    await expect(spawnProgram({ command: '/nowhere/at/all' })).rejects.toMatchObject({ code: 'ENOENT' });
  });
});

describe('helpers for processes', () => {
  it('waitForPort resolves when the port accepts connections, and rejects after its timeout', async () => {
    const server = await startTcpServer(() => {});
    await waitForPort(server.port);
    await server.close();
    await expect(waitForPort(server.port, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  it('temporaryDirectory is empty, writable, and removed on close()', async () => {
    const directory = await temporaryDirectory();
    await writeFile(join(directory.path, 'file'), 'x');
    await directory.close();
    await expect(access(directory.path)).rejects.toMatchObject({ code: 'ENOENT' });
  });
});
