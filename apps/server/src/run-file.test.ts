import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type RunFile, refuseSecondServer, removeRunFile, writeRunFile } from './run-file.ts';

let dir: string;
let other: ChildProcess | undefined;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'tunnel-server-'));
});
afterEach(() => {
  other?.kill('SIGKILL');
  rmSync(dir, { recursive: true, force: true });
});

const content = (pid: number): RunFile => ({
  pid,
  platform_url: null,
  api_url: 'http://127.0.0.1:4041',
  control: '127.0.0.1:4040',
  http_url: null,
  https_url: null,
  metrics_url: 'http://127.0.0.1:9090/metrics',
  simulator_url: null,
  admin_token_file: null,
});

const startOther = async (...args: string[]): Promise<number> => {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)', ...args]);
  other = child;
  await new Promise((resolve) => child.once('spawn', resolve));
  return child.pid as number;
};

it('holds what scripts need, and goes at a clean stop', () => {
  writeRunFile(dir, content(process.pid));
  expect(JSON.parse(readFileSync(join(dir, 'run.json'), 'utf8'))).toEqual(content(process.pid));
  removeRunFile(dir);
  expect(existsSync(join(dir, 'run.json'))).toBe(false);
});

it('of a server that came later is left alone', () => {
  writeRunFile(dir, content(1));
  removeRunFile(dir);
  expect(existsSync(join(dir, 'run.json'))).toBe(true);
});

it('keeps a second server out while the first lives', async () => {
  const pid = await startOther('tunnel-server');
  writeRunFile(dir, content(pid));
  expect(() => refuseSecondServer(dir)).toThrow(`is in use by a running server (pid ${pid})`);
});

it.runIf(existsSync('/proc/self/cmdline'))('of a killed server is no reason, though its pid lives again', async () => {
  writeRunFile(dir, content(await startOther()));
  refuseSecondServer(dir);
});

it.each(['', 'not json', '{}', '{"pid":"7"}', '{"pid":-1}', '{"pid":999999999}'])(
  'that says %j is no reason',
  (text) => {
    writeFileSync(join(dir, 'run.json'), text);
    refuseSecondServer(dir);
  },
);
