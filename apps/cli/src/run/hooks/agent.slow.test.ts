// The control socket of a real client at a real edge, and the commands that use it.
import { existsSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, startEchoServer } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../../all-commands.ts';
import { makeTestIo } from '../../io/io.fixture.ts';
import { AgentTrial } from './agent.fixture.ts';

let trial: AgentTrial;

beforeEach(async () => {
  trial = await AgentTrial.begin([31_900, 31_999]);
});
afterEach(() => trial.close());

describe('a running client', () => {
  it('has a control socket with mode 0600, and removes it at the end', async () => {
    const { io, code } = await trial.startTcp();
    expect(lstatSync(trial.socketPath).mode & 0o777).toBe(0o600);
    io.signal('SIGTERM');
    expect(await code).toBe(0);
    expect(existsSync(trial.socketPath)).toBe(false);
  });

  it('reports its status with the documented fields in order', async () => {
    const { io } = await trial.startTcp();
    const [status, ...others] = await trial.statuses();
    expect(others).toEqual([]);
    expect(Object.keys(status ?? {}).join(' ')).toBe(
      'pid version since config server state session_id region_id latency_ms carriers proxy log_file tunnels',
    );
    expect(status).toMatchObject({ pid: process.pid, state: 'connected', region_id: 'local', config: null });
    const [tunnel] = status?.tunnels ?? [];
    expect(Object.keys(tunnel ?? {}).join(' ')).toBe(
      'name tunnel_id protocol public_url local source state group healthy request_count bytes_proxied last_error',
    );
    const ready = io.events()[0];
    expect(tunnel).toMatchObject({
      name: 'echo',
      tunnel_id: ready?.['tunnel_id'],
      public_url: ready?.['public_url'],
      local: `127.0.0.1:${trial.echo.port}`,
      source: 'flags',
      state: 'open',
      healthy: null,
      last_error: null,
    });
  });

  it('shows the error of the local service until the service answers again', async () => {
    const { port } = await trial.startTcp();
    const lastError = async () => (await trial.statuses())[0]?.tunnels[0]?.last_error ?? null;
    await trial.echo.close();
    await trial.visit(port).catch(() => {});
    await eventually(async () => expect(await lastError()).toContain('cannot connect'));
    const service = await startEchoServer({ port: trial.echo.port });
    try {
      await trial.visit(port);
      await eventually(async () => expect(await lastError()).toBeNull());
    } finally {
      await service.close();
    }
  });

  it('can be listed and stopped while it is still connecting', async () => {
    await trial.echo.close();
    const server = `127.0.0.1:${trial.echo.port}`;
    const { code } = trial.run(['tcp', '80', '--server', server, '--token', 't', '--wait', '--json']);
    await eventually(async () => {
      const [status] = await trial.statuses();
      expect(status).toMatchObject({ state: 'connecting', session_id: null, carriers: 0 });
      expect(status?.tunnels).toMatchObject([{ name: 'tcp-80', state: 'opening', tunnel_id: null }]);
    });
    expect(await trial.ask('ready')).toMatchObject({ code: 1, err: 'tunnel: not ready: the client is connecting\n' });
    expect(await trial.ask('stop')).toMatchObject({ code: 0, err: '' });
    expect(await code).toBe(0);
  });

  it('runs without a control socket if there is no place for it, and prints one line', async () => {
    const env = { XDG_RUNTIME_DIR: join(trial.home.path, 'none'), TMPDIR: join(trial.home.path, 'none') };
    const nowhere = { home: join(trial.home.path, 'nowhere'), env };
    const { io } = trial.run(['tcp', String(trial.echo.port), ...trial.flags], nowhere);
    await eventually(() => expect(io.events()).toContainEqual(expect.objectContaining({ event: 'ready' })));
    expect(io.err()).toMatch(/^tunnel: `tunnel status` cannot show this client: .*no such file.*\n$/);
  });
});

describe('commands without a running client', () => {
  it('say that no client is running, and exit with 1 unless they only list clients', async () => {
    expect(await trial.ask('status')).toEqual({ code: 0, out: 'no client is running\n', err: '' });
    expect(await trial.ask('status', '--json')).toEqual({ code: 0, out: '[]\n', err: '' });
    expect(await trial.ask('ready')).toMatchObject({ code: 1, err: expect.stringContaining('no client is running') });
    for (const args of [['stop'], ['reload'], ['remove', 'x'], ['logs'], ['add', 'tcp', '22']]) {
      expect(await trial.ask(...args)).toMatchObject({
        code: 1,
        err: expect.stringMatching(/^tunnel: no client is running\n/),
      });
    }
  });
});

describe('`tunnel ready`', () => {
  it('waits up to --timeout until the client is ready', async () => {
    const waiting = trial.ask('ready', '--timeout', '20');
    await trial.startTcp();
    expect(await waiting).toEqual({ code: 0, out: '', err: '' });
  });

  it('names the refused tunnel, even after a second failed attempt to open it', async () => {
    writeFileSync(
      join(trial.home.path, 'c.yml'),
      `tunnels:\n  good: {proto: tcp, local_port: ${trial.echo.port}}\n  bad: {proto: tcp, local_port: 1, remote_port: 1}\n`,
    );
    const { io } = trial.run(['start', '--config', 'c.yml', ...trial.flags]);
    await eventually(() => expect(new Set(io.events().map(({ event }) => event))).toEqual(new Set(['error', 'ready'])));
    expect(await trial.ask('ready')).toMatchObject({ code: 1, err: 'tunnel: not ready: bad is refused\n' });
    // A second failed attempt to open the tunnel does not clear the first refusal.
    expect(await trial.ask('add', 'tcp', '1', '--name', 'bad', '--remote-port', '1')).toMatchObject({ code: 4 });
    expect(await trial.ask('ready')).toMatchObject({ code: 1, err: 'tunnel: not ready: bad is refused\n' });
    expect((await trial.statuses())[0]?.tunnels).toMatchObject([
      { name: 'good', source: 'file', state: 'open' },
      { name: 'bad', state: 'refused', last_error: expect.stringContaining('port 1 is not allowed') },
    ]);
  });
});

describe('`tunnel add` and `tunnel remove`', () => {
  it('open and close a second tunnel while the first one stays open', async () => {
    const { io } = await trial.startTcp();
    const added = await trial.ask('add', 'tcp', String(trial.echo.port), '--name', 'second');
    expect(added).toMatchObject({ code: 0, err: '' });
    const port = Number(/^tcp:\/\/localhost:(\d+)\n$/.exec(added.out)?.[1]);
    await trial.visit(port);
    expect((await trial.statuses())[0]?.tunnels).toMatchObject([
      { name: 'echo', source: 'flags' },
      { name: 'second', source: 'runtime', state: 'open' },
    ]);
    expect(io.events()).toContainEqual(expect.objectContaining({ event: 'ready', name: 'second' }));
    expect(await trial.ask('remove', 'second')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^second: removed/),
    });
    expect(io.events().at(-1)).toMatchObject({ event: 'tunnel_removed', name: 'second', reason: 'removed' });
    await expect(trial.visit(port)).rejects.toThrow();
  });

  it('print the ready event with --json', async () => {
    await trial.startTcp();
    const { out } = await trial.ask('add', 'http', '3000', '--json');
    expect(JSON.parse(out)).toMatchObject({
      event: 'ready',
      name: 'http-3000',
      protocol: 'http',
      public_url: expect.stringContaining('http://'),
      inspect_url: expect.stringContaining('http://127.0.0.1:'),
    });
  });

  it('exit with 2 for a used or unknown name, and with 4 without a leftover tunnel if the edge refuses', async () => {
    await trial.startTcp();
    expect(await trial.ask('add', 'tcp', '1', '--name', 'echo')).toMatchObject({
      code: 2,
      err: expect.stringContaining("already has a tunnel 'echo'"),
    });
    expect(await trial.ask('add', 'tcp', '1', '--remote-port', '1')).toMatchObject({
      code: 4,
      err: expect.stringContaining('port 1 is not allowed'),
    });
    expect(await trial.ask('remove', 'nobody')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Available: echo.\n'),
    });
    expect((await trial.statuses())[0]?.tunnels).toHaveLength(1);
  });

  it('keep the client running after its last tunnel is removed', async () => {
    await trial.startTcp();
    await trial.ask('remove', 'echo');
    expect(await trial.ask('ready')).toMatchObject({ code: 0 });
    const { out } = await trial.ask('add', 'tcp', String(trial.echo.port));
    await trial.visit(Number(out.trim().split(':').at(-1)));
    expect((await trial.ask('add', 'tcp', '1', '--remote-port', '1')).code).toBe(4);
    expect((await trial.statuses())[0]?.state).toBe('connected');
  });

  it('pass a group key to the client', async () => {
    await trial.startTcp();
    const keyFile = join(trial.home.path, 'group-key');
    writeFileSync(keyFile, 'what all members share\n');
    const grouped = ['--group', 'shop', '--group-key-file', keyFile, '--health', 'tcp'];
    expect(await trial.ask('add', 'tcp', String(trial.echo.port), ...grouped)).toMatchObject({ code: 0 });
    await eventually(async () =>
      expect((await trial.statuses())[0]?.tunnels[1]).toMatchObject({ group: 'shop', healthy: true }),
    );
  });
});

describe('`tunnel add --save`', () => {
  const saved = (): string => readFileSync(join(trial.home.path, '.tunnel', 'config.yml'), 'utf8');

  it('writes every kind of tunnel in a valid form, and refers to secrets without copying them', async () => {
    await trial.startTcp();
    const { path: home } = trial.home;
    writeFileSync(join(home, 'group-key'), 'what all members share\n');
    mkdirSync(join(home, 'dist'));
    const grouped = [
      '--group',
      'shop',
      '--group-key-file',
      'group-key',
      '--health',
      'http:/up',
      '--health-interval',
      '5',
    ];
    const kinds = [
      ['http', '3000', '--subdomain', 'shop', '--host-header', 'rewrite', '--no-capture', '--local-protocol', 'h2c'],
      ['http', '3001', '--https', '--local-tls-no-verify', '--local-host', 'localhost'],
      ['http', 'unix:app.sock', ...grouped],
      ['tcp', '22', '--name', 'ssh: 1'],
      ['udp', '53', '--idle', '60', '--proxy-protocol', 'v2'],
      ['files', 'dist', '--spa'],
    ];
    // Stderr contains only the edge's warning.
    const err = (kind: readonly string[]): string =>
      kind.includes('--group-key-file')
        ? 'warning: load balancing is off on this edge: this tunnel is served alone\n'
        : '';
    for (const kind of kinds) {
      expect(await trial.ask('add', ...kind, '--save')).toMatchObject({ code: 0, err: err(kind) });
    }
    expect(saved()).not.toContain('what all members share');
    const check = await trial.ask('check');
    expect(check).toMatchObject({ code: 0, out: expect.stringContaining('is valid (6 tunnels)') });
    // The file describes the tunnels that are running.
    expect(saved()).toContain(`local_socket: ${join(home, 'app.sock')}`);
    expect(saved()).toMatch(/files:\n {6}dir: .*dist\n {6}spa: true/);
  });

  it('does not write a tunnel that the edge refuses', async () => {
    await trial.startTcp();
    expect((await trial.ask('add', 'tcp', '1', '--remote-port', '1', '--save')).code).toBe(4);
    expect(existsSync(join(trial.home.path, '.tunnel', 'config.yml'))).toBe(false);
  });
});

describe('`tunnel logs`', () => {
  it('prints the latest lines, events with --json, and with -f new events until the client ends', async () => {
    const { io } = await trial.startTcp();
    const lines = (await trial.ask('logs')).out.trim().split('\n');
    expect(lines).toEqual([
      expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d {2}connected$/),
      expect.stringMatching(/echo: tcp:\/\/localhost:\d+ -> 127\.0\.0\.1:\d+$/),
    ]);
    expect((await trial.ask('logs', '-n', '1')).out.trim()).toBe(lines[1]);
    const { at: _, ...ready } = io.events()[0] ?? {};
    expect(JSON.parse((await trial.ask('logs', '--json')).out)).toMatchObject(ready);
    const following = trial.ask('logs', '-f', '-n', '0', '--json');
    await eventually(async () => {
      await trial.ask('add', 'tcp', '80', '--name', 'more');
      await trial.ask('remove', 'more');
      expect(io.events().length).toBeGreaterThan(4);
    });
    io.signal('SIGTERM');
    const { code, out, err } = await following;
    expect(err).toBe('');
    const seen = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { event: string });
    expect(code).toBe(0);
    expect(seen).toContainEqual(expect.objectContaining({ event: 'tunnel_removed' }));
    expect(seen.at(-1)).toMatchObject({ event: 'closed', exit_code: 0 });
  });
});

describe('`tunnel status`', () => {
  it('redraws in place with --watch, and exits with 0 on SIGINT', async () => {
    await trial.startTcp();
    const io = makeTestIo({ home: trial.home.path, isTTY: true, env: { NO_COLOR: '1' } });
    const code = run(['status', '--watch'], io);
    await eventually(() => expect(io.out()).toContain('echo  open  tcp://'));
    expect(io.out()).not.toContain('\u001b[J');
    await trial.ask('remove', 'echo');
    await eventually(() => expect(io.out()).toContain('no tunnels'), { timeoutMs: 5000 });
    expect(io.out()).toMatch(/\u001b\[\d+Aclient \d+ .*\u001b\[K\n {2}no tunnels\u001b\[K\n\u001b\[J$/);
    io.signal('SIGINT');
    expect(await code).toBe(0);
  });
});

describe('`tunnel` without arguments', () => {
  it('suggests the next step at a terminal: login, http, start or the status', async () => {
    const alone = async (): Promise<string> => {
      const io = makeTestIo({ home: trial.home.path, isTTY: true, env: { NO_COLOR: '1' } });
      expect(await run([], io)).toBe(0);
      return io.out();
    };
    expect(await alone()).toContain('tunnel login');
    await trial.startTcp();
    expect(await alone()).toContain('echo  open');
    await trial.ask('stop');
    await eventually(async () => expect(await trial.statuses()).toEqual([]));
    writeFileSync(join(trial.home.path, '.tunnel', 'config.yml'), 'tunnels: {}\n');
    expect(await alone()).toContain('tunnel http 3000');
    writeFileSync(join(trial.home.path, '.tunnel', 'config.yml'), 'tunnels: { a: { proto: tcp, local_port: 1 } }\n');
    expect(await alone()).toContain('tunnel start');
  });
});

describe('tunnel names', () => {
  it('can be path segments such as ".."', async () => {
    await trial.startTcp();
    expect(await trial.ask('remove', '..')).toMatchObject({ code: 2, err: expect.stringContaining("no tunnel '..'") });
    expect(await trial.ask('add', 'tcp', '1', '--name', '..')).toMatchObject({ code: 0 });
    expect(await trial.ask('remove', '..')).toMatchObject({ code: 0, out: '..: removed\n' });
  });
});
