// Tests of commands that find, query and change running clients over their sockets. A socket is named after a pid, so clients that share
// a folder, hang or are killed run as separate processes.
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { eventually, startEchoServer } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Harness, it } from './in-process.fixture.ts';
import type { Stack } from './stack.fixture.ts';
import type { TunnelProgram, TunnelRun } from './tunnel-program.fixture.ts';

const shared = new Harness();
let stack: Stack;
beforeAll(async () => {
  stack = await shared.stack();
});
afterAll(() => shared.close());

type Where = Pick<TunnelRun, 'home'> & Partial<Pick<TunnelRun, 'env'>>;

/** Runs a command until it exits, and returns the exit code and output. */
const ask = async (harness: Harness, where: Where, ...args: string[]) => {
  const program = await harness.run(args, where);
  const code = await program.exitCode();
  return { code, out: program.stdout.join('\n'), err: program.stderr.join('\n') };
};

interface Status {
  readonly pid: number;
  readonly config: string | null;
  readonly state: string;
  readonly tunnels: {
    readonly name: string;
    readonly state: string;
    readonly public_url: string;
    readonly source: string;
  }[];
}

const statuses = async (harness: Harness, where: Where): Promise<Status[]> =>
  JSON.parse((await ask(harness, where, 'status', '--json')).out) as Status[];

/** Returns the pid that a client reports. A client inside the test process reports the pid of the test process. */
const pidOf = (program: TunnelProgram): number => (program.isInProcess ? process.pid : program.pid);

/** Runs `tunnel start` with a config file of the given tunnels, and waits until `tunnel ready` succeeds. */
const start = async (harness: Harness, home: string, tunnels: string, programs = false): Promise<TunnelProgram> => {
  const file = join(home, '.tunnel', 'config.yml');
  mkdirSync(join(home, '.tunnel'), { recursive: true });
  writeFileSync(file, `server: ${stack.control}\nauth_token_file: ${stack.tokenFile}\ntunnels:\n${tunnels}`);
  const program = await harness.run(['start', '--config', file, '--json'], { home, programs });
  const ready = await ask(harness, { home }, 'ready', '--timeout', '20', '--client', String(pidOf(program)));
  expect(ready).toMatchObject({ code: 0 });
  return program;
};

const socketOf = (home: string, program: TunnelProgram): string =>
  join(home, '.tunnel', 'run', `${pidOf(program)}.sock`);

const echoed = (url: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ port: Number(url.split(':').at(-1)), host: '127.0.0.1' }, () => socket.write('hello'));
    socket.on('data', (data) => {
      resolve(String(data));
      socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => resolve('nothing'));
  });

describe.concurrent('client control sockets', () => {
  it('a running client can be listed, changed, reloaded and stopped by commands', async ({ harness }) => {
    const echo = harness.use(await startEchoServer());
    const home = await harness.folder();
    const program = await start(harness, home, `  # mine\n  a: { proto: tcp, local_port: ${echo.port} }\n`);
    expect(statSync(socketOf(home, program)).mode & 0o777).toBe(0o600);
    expect(await statuses(harness, { home })).toMatchObject([
      {
        pid: pidOf(program),
        config: join(home, '.tunnel', 'config.yml'),
        state: 'connected',
        tunnels: [{ source: 'file' }],
      },
    ]);

    const added = await ask(harness, { home }, 'add', 'tcp', String(echo.port), '--name', 'b', '--save');
    expect(added).toMatchObject({ code: 0, err: '' });
    expect(await echoed(added.out.trim())).toBe('hello');
    expect(readFileSync(join(home, '.tunnel', 'config.yml'), 'utf8')).toContain('# mine');
    const reloaded = await ask(harness, { home }, 'reload', '--json');
    expect(JSON.parse(reloaded.out)).toEqual({
      added: [],
      removed: [],
      changed: [],
      unchanged: 2,
      restart_required: [],
    });
    expect((await statuses(harness, { home }))[0]?.tunnels).toMatchObject([
      { name: 'a' },
      { name: 'b', source: 'file' },
    ]);

    expect(await ask(harness, { home }, 'remove', 'b')).toMatchObject({ code: 0 });
    expect(await ask(harness, { home }, 'reload')).toMatchObject({
      code: 0,
      out: 'added 1, removed 0, changed 0, unchanged 1\n  added: b',
    });
    writeFileSync(join(home, '.tunnel', 'config.yml'), 'tunnels: [');
    expect(await ask(harness, { home }, 'reload')).toMatchObject({
      code: 2,
      err: expect.stringContaining('config.yml:'),
    });
    expect((await statuses(harness, { home }))[0]?.tunnels).toHaveLength(2);

    expect(await ask(harness, { home }, 'stop')).toMatchObject({ code: 0 });
    expect(await program.exitCode()).toBe(0);
    expect(existsSync(socketOf(home, program))).toBe(false);
  });

  it('the socket of a killed client is removed by the next command', async ({ harness }) => {
    const home = await harness.folder();
    const program = await start(harness, home, '  a: { proto: tcp, local_port: 1 }\n', true);
    await program.kill();
    expect(existsSync(socketOf(home, program))).toBe(true);
    expect(await ask(harness, { home }, 'status')).toEqual({ code: 0, out: 'no client is running', err: '' });
    expect(existsSync(socketOf(home, program))).toBe(false);
  });

  it('a dead socket named after the pid of another process is ignored and not deleted', async ({ harness }) => {
    const home = await harness.folder();
    const program = await start(harness, home, '  a: { proto: tcp, local_port: 1 }\n', true);
    const other = join(home, '.tunnel', 'run', `${process.pid}.sock`);
    // Kills the client, so that its socket has no listener, and renames the socket after a live process.
    await program.kill();
    renameSync(socketOf(home, program), other);
    expect(await ask(harness, { home }, 'status')).toEqual({ code: 0, out: 'no client is running', err: '' });
    expect(existsSync(other)).toBe(true);
  });

  it('a client that hangs is reported by pid, and the other clients still answer', async ({ harness }) => {
    const home = await harness.folder();
    const hanging = await start(harness, home, '  a: { proto: tcp, local_port: 1 }\n', true);
    hanging.signal('SIGSTOP');
    const second = await harness.tcp(stack, 1, { home });
    await second.ready();
    const { out, err } = await ask(harness, { home }, 'status', '--json');
    hanging.signal('SIGCONT');
    expect((JSON.parse(out) as Status[]).map(({ pid }) => pid)).toEqual([pidOf(second)]);
    expect(err).toBe(`tunnel: client ${pidOf(hanging)} does not answer`);
  });

  it('with two clients running, a command must select a client by pid or config file', async ({ harness }) => {
    const home = await harness.folder();
    const first = await start(harness, home, '  a: { proto: tcp, local_port: 1 }\n', true);
    const second = await harness.tcp(stack, 1, { home, flags: ['--name', 'x'], programs: true });
    await second.ready();
    const which = await ask(harness, { home }, 'remove', 'a');
    expect(which.code).toBe(2);
    expect(which.err).toContain(`2 clients are running: ${pidOf(first)} (`);
    expect(which.err).toContain(String(pidOf(second)));
    expect(await ask(harness, { home }, 'remove', 'x', '--client', String(pidOf(second)))).toMatchObject({ code: 0 });
    // Both clients have read config.yml, but only the first was started with --config, so the path selects the first. After the third
    // start the path is ambiguous.
    expect(await ask(harness, { home }, 'reload', '--client', '.tunnel/config.yml')).toMatchObject({ code: 0 });
    const third = await start(harness, home, '  a: { proto: tcp, local_port: 1 }\n', true);
    expect(await ask(harness, { home }, 'reload', '--client', '.tunnel/config.yml')).toMatchObject({ code: 2 });
    expect(await ask(harness, { home }, 'stop', '--client', String(pidOf(third)))).toMatchObject({ code: 0 });
    expect(await third.exitCode()).toBe(0);
    expect(await ask(harness, { home }, 'reload', '--client', '99999999')).toMatchObject({ code: 1 });
  });

  it('the socket is in the runtime folder if the home folder is not writable', async ({ harness }) => {
    const folder = await harness.folder();
    const runtime = await harness.folder();
    // Not even root can create a folder below a file.
    const home = join(folder, 'home');
    mkdirSync(home);
    writeFileSync(join(home, '.tunnel'), '');
    const env = { XDG_RUNTIME_DIR: runtime };
    const program = await harness.tcp(stack, 1, { home, env });
    await program.ready();
    expect(existsSync(join(runtime, 'tunnel', `${pidOf(program)}.sock`))).toBe(true);
    expect(await statuses(harness, { home, env })).toMatchObject([{ pid: pidOf(program) }]);
  });

  it('the socket is in the temporary folder if the path of the home folder is too long', async ({ harness }) => {
    const temporary = await harness.folder();
    const home = join(await harness.folder(), 'x'.repeat(100));
    mkdirSync(home);
    const env = { TMPDIR: temporary };
    const program = await harness.tcp(stack, 1, { home, env });
    await program.ready();
    const folder = join(temporary, `tunnel-${process.getuid?.()}`);
    expect(existsSync(join(folder, `${pidOf(program)}.sock`))).toBe(true);
    expect(statSync(folder).mode & 0o777).toBe(0o700);
    expect(await statuses(harness, { home, env })).toMatchObject([{ pid: pidOf(program) }]);
  });

  it('`tunnel logs -f` follows a client and exits with 0 when the client stops', async ({ harness }) => {
    const home = await harness.folder();
    const program = await start(harness, home, '  a: { proto: tcp, local_port: 1 }\n');
    const logs = await harness.run(['logs', '-f'], { home });
    await eventually(() => expect(logs.stdout.join('\n')).toContain('a: tcp://'));
    expect(await ask(harness, { home }, 'remove', 'a')).toMatchObject({ code: 0 });
    await eventually(() => expect(logs.stdout.at(-1)).toContain('a: removed'));
    program.signal('SIGTERM');
    expect(await logs.exitCode()).toBe(0);
  });
});
