// `tunnel-server stack` as a process: its output, files, errors and exit.
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { eventually, type Program, spawnProgram } from '@tunnel/testkit';
import { afterEach, expect, it } from 'vitest';
import { runServerInProcess } from '../system/server-in-process.fixture.ts';
import { node, SERVER_BIN } from './checkout.fixture.ts';
import { makeServerDir, readRunJson, type ServerDir, startServer, waitUntilReady } from './server-program.fixture.ts';

const cleanUps: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const serverDir = async (server?: string, rest?: string): Promise<ServerDir> => {
  const made = await makeServerDir(server, rest);
  cleanUps.push(() => made.dir.close());
  return made;
};

const start = async (
  at: ServerDir,
  env?: Record<string, string>,
  options?: Parameters<typeof startServer>[2],
): Promise<Program> => {
  const program = await startServer(at, env, options);
  cleanUps.push(() => program.close());
  return program;
};

it('a ready server has written run.json and printed its addresses and the next command', async () => {
  const at = await serverDir();
  const program = await start(at, {}, { isFirst: true });
  const pid = await waitUntilReady(program);
  const run = readRunJson(at);
  expect(run).toEqual({
    pid,
    platform_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    api_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    control: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
    http_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    https_url: null,
    metrics_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/metrics$/),
    simulator_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
    dns: null,
    udp_ports: expect.any(Array),
    admin_token_file: join(at.dataDir, 'admin-token'),
  });
  await program.waitForLine(/(?:npx hatchway|tunnel) http 3000 --token-file data\/admin-token --server localhost:\d+/);
  expect((await fetch(run.metrics_url)).status).toBe(200);
  await program.waitForLine(/payments +http:\/\/localhost:\d+ \(test mode/);
  expect((await fetch(run.simulator_url)).status).toBe(200);
  const token = readFileSync(run.admin_token_file, 'utf8').trim();
  const status = await fetch(`${run.api_url}/api/status`, { headers: { authorization: `Bearer ${token}` } });
  expect(status.status).toBe(200);
  expect(statSync(at.dataDir).mode & 0o777).toBe(0o700);
  expect([...program.stdout, ...program.stderr].join('\n')).not.toContain(token);
});

// Starts take seconds, so three starts cover what a server leaves to the next server, and also the log format.
it('a data directory admits one server at a time, is free again after a kill, and keeps its token after a clean stop', async () => {
  const at = await serverDir();
  const first = await start(at);
  const pid = await waitUntilReady(first);
  const tokenFile = readRunJson(at).admin_token_file;
  const token = readFileSync(tokenFile, 'utf8');
  const second = await start(at);
  expect(await second.waitForExit()).toMatchObject({ code: 2 });
  expect(second.stderr).toHaveLength(1);
  expect(second.stderr[0]).toMatch(new RegExp(`^tunnel-server: data directory .* is in use .*pid ${pid}.*--data-dir`));
  expect(readRunJson(at).pid).toBe(pid);

  first.signal('SIGKILL');
  await first.waitForExit();
  expect(existsSync(join(at.dataDir, 'run.json'))).toBe(true);
  expect(first.stderr).not.toEqual([]);
  // Without a terminal, each log line is JSON.
  for (const line of first.stderr) expect(() => JSON.parse(line) as unknown, line).not.toThrow();

  const forPeople = await start(at, { TUNNEL_LOG: 'human' });
  const next = await waitUntilReady(forPeople);
  await eventually(() => expect(readRunJson(at).pid).toBe(next));
  expect(readFileSync(tokenFile, 'utf8')).toBe(token);
  forPeople.signal('SIGTERM');
  expect(await forPeople.waitForExit()).toEqual({ code: 0, signal: null });
  expect(existsSync(join(at.dataDir, 'run.json'))).toBe(false);
  expect(readFileSync(tokenFile, 'utf8')).toBe(token);
  expect(forPeople.stderr.some((line) => /^\d\d:\d\d:\d\d INFO/.test(line))).toBe(true);
});

const PORTS = ['control_port', 'api_port', 'metrics_port'];

/** Starts a server that cannot bind the port: as a stack process, or as an edge in the test process. */
const startWithout = async (key: string, port: number, isProgram: boolean): Promise<[ServerDir, Program]> => {
  const others = PORTS.filter((other) => other !== key).map((other) => `${other} = 0`);
  const at = await serverDir([`${key} = ${port}`, ...others].join('\n'));
  if (isProgram) return [at, await start(at)];
  const where = { config: at.flags[1] ?? '', dataDir: at.dataDir, workingDir: at.dir.path };
  return [at, runServerInProcess({ command: 'edge', ...where, env: {} })];
};

it.each([
  ['control_port', true],
  ['api_port', false],
  ['metrics_port', false],
])('a %s that is in use stops the start with exit code 2 and the port in the error', async (key, isProgram) => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
  cleanUps.push(() => new Promise((resolve) => taken.close(resolve)));
  const { port } = taken.address() as { port: number };
  const [at, program] = await startWithout(key, port, isProgram);
  expect(await program.waitForExit()).toMatchObject({ code: 2 });
  const line = program.stderr.find((text) => text.startsWith('tunnel-server: '));
  expect(line).toContain(`port ${port} `);
  expect(line).toContain(key);
  expect(program.stdout.join('')).not.toContain('is ready');
  expect(existsSync(join(at.dataDir, 'run.json'))).toBe(false);
});

it('an unknown key stops the start with its path and a suggestion', async () => {
  const program = await start(await serverDir('', '[region]\nnmae = "x"'));
  expect(await program.waitForExit()).toMatchObject({ code: 2 });
  expect(program.stderr).toHaveLength(1);
  expect(program.stderr[0]).toMatch(/^tunnel-server: .*unknown key `region\.nmae`.*name/);
});

it('a data directory that is a file stops the start with exit code 2', async () => {
  const at = await serverDir();
  writeFileSync(at.dataDir, 'a file');
  const program = await start(at);
  expect(await program.waitForExit()).toMatchObject({ code: 2 });
  expect(program.stderr[0]).toMatch(/^tunnel-server: data directory .* not a directory/);
});

it('a closed standard output does not stop the server', async () => {
  const at = await serverDir();
  const command = `"${process.execPath}" "${SERVER_BIN}" stack ${at.flags.map((flag) => `'${flag}'`).join(' ')} 2>&1 | true`;
  const program = await spawnProgram({ command: 'sh', args: ['-c', command], cwd: at.dir.path });
  cleanUps.push(() => program.close());
  const { api_url } = await eventually(() => readRunJson(at), { timeoutMs: 30_000 });
  for (let asked = 0; asked < 20; asked += 1) expect((await fetch(`${api_url}/api/status`)).status).toBe(200);
});

it('an unknown flag exits with 2, and --help with 0 and an example', async () => {
  expect(await node([SERVER_BIN, 'stack', '--nonsense'])).toMatchObject({ code: 2 });
  const { code, stdout } = await node([SERVER_BIN, 'stack', '--help']);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/Examples?:\n {2}\$ tunnel-server stack/)]);
});

it('check-config prints ok for a valid file, and the error code of an invalid file', async () => {
  const good = await serverDir();
  expect(await node([SERVER_BIN, 'check-config', ...good.flags])).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^ok: /),
  });
  const bad = await serverDir('', 'surprise = 1');
  const refused = await node([SERVER_BIN, 'check-config', ...bad.flags, '--json']);
  expect(refused.code).toBe(2);
  expect(JSON.parse(refused.stdout)).toMatchObject({ ok: false, code: 'CONFIG_UNKNOWN_KEY' });
});
