// Groups and health checks: from the command line and config.yml to the client, and back to text and JSON output.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client, ClientSpec, ConnectOptions, StatusEvent, Tunnel } from '@tunnel/client';
import type { Fault } from '@tunnel/errors';
import { Secret } from '@tunnel/runtime';
import { eventually, FakeClock, type TemporaryDirectory, temporaryDirectory } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { makeTestIo, type TestIo } from '../io/io.fixture.ts';

let home: TemporaryDirectory;
let specs: ClientSpec[];
let emit: (event: StatusEvent) => void;
let stateKey: string | undefined;

beforeEach(async () => {
  home = await temporaryDirectory();
  specs = [];
  write('.tunnel/group-key', 'from the file\n');
});
afterEach(() => home.close());

const write = (name: string, text: string): void => {
  const file = join(home.path, name);
  mkdirSync(join(file, '..'), { recursive: true });
  writeFileSync(file, text);
};

/** A client that opens no connection: records the requested tunnels, and emits the events of the test. */
const connectNowhere = async ({ onStatus, stateKey: key }: ConnectOptions): Promise<Client> => {
  let end: (fault: Fault | undefined) => void = () => {};
  emit = onStatus ?? emit;
  stateKey = key;
  return {
    state: 'connected',
    tunnels: [],
    session: null,
    openConnections: 0,
    peerConnections: [],
    connectPeer: () => Promise.reject(new Error('nobody connects here')),
    find: () => undefined,
    open: async (spec) => {
      specs.push(spec as ClientSpec);
      return {} as Tunnel;
    },
    onStatus: () => () => {},
    onRequest: () => () => {},
    openInspector: async () => null,
    close: async () => end(undefined),
    closed: new Promise((resolve) => {
      end = resolve;
    }),
  };
};

const makeIo = (options: { isTTY?: boolean; clock?: FakeClock } = {}): TestIo =>
  makeTestIo({
    home: home.path,
    env: { GROUP_KEY: 'from the variable', NO_COLOR: '1' },
    connect: connectNowhere,
    ...options,
  });

/** Runs a command and returns the tunnel specs that the command passed to the client. */
const specsOf = async (args: string[]): Promise<ClientSpec[]> => {
  const io = makeIo();
  const code = run([...args, '--token', 't'], io);
  await Promise.race([eventually(() => expect(specs.length).toBeGreaterThan(0)), code]);
  io.signal('SIGTERM');
  expect([await code, io.err()]).toEqual([0, '']);
  return specs;
};

const keyOf = (spec: ClientSpec | undefined): string | undefined =>
  spec?.group_key instanceof Secret ? spec.group_key.reveal() : undefined;

describe('group and health flags', () => {
  it('set group, key, probe and alert webhook of an http tunnel', async () => {
    const [spec] = await specsOf([
      ...[
        'http',
        '3000',
        '--group',
        'web',
        '--group-key-file',
        '.tunnel/group-key',
        '--health',
        'http:/healthz?full=1',
      ],
      ...['--health-interval', '0.5', '--health-timeout', '2', '--health-max-failed', '5', '--health-any-status'],
      ...['--alert-webhook', 'https://hooks.example.com/x'],
    ]);
    expect(spec).toMatchObject({
      group: 'web',
      health_check: {
        type: 'http',
        path: '/healthz?full=1',
        interval_secs: 0.5,
        timeout_secs: 2,
        max_failed: 5,
        expect_2xx: false,
        alert_webhook: 'https://hooks.example.com/x',
      },
    });
    expect(keyOf(spec)).toBe('from the file');
    expect(stateKey).toContain('web');
  });

  it('read the group key of a tcp tunnel from a variable or from a file below the home', async () => {
    const [first] = await specsOf(['tcp', '1', '--group', 'db', '--group-key-env', 'GROUP_KEY', '--health', 'tcp']);
    expect(first).toMatchObject({ proto: 'tcp', group: 'db', health_check: { type: 'tcp' } });
    expect(keyOf(first)).toBe('from the variable');
    specs = [];
    const [second] = await specsOf(['tcp', '1', '--group', 'db', '--group-key-file', '~/.tunnel/group-key']);
    expect(keyOf(second)).toBe('from the file');
    expect(second?.health_check).toBeUndefined();
  });

  it('allow an alert webhook without a probe', async () => {
    const [spec] = await specsOf(['http', '1', '--alert-webhook', 'https://hooks.example.com/x']);
    expect(spec?.health_check).toMatchObject({ alert_webhook: 'https://hooks.example.com/x' });
    expect(spec?.health_check?.type).toBeUndefined();
  });

  it.each([
    [['--group', 'web'], 'tunnel: --group needs --group-key-file or --group-key-env.\n'],
    [['--group-key-env', 'GROUP_KEY'], 'tunnel: a group key needs --group.\n'],
    [
      ['--group', 'web', '--group-key-env', 'A', '--group-key-file', 'b'],
      'tunnel: use --group-key-file or --group-key-env, not both.\n',
    ],
    [['--group', 'web', '--group-key-env', 'NO_SUCH'], 'tunnel: the variable NO_SUCH is not set (--group-key-env).\n'],
    [['--group', 'web', '--group-key-file', 'no'], 'tunnel: cannot read the group key from no: no such file.\n'],
    [['--group', 'a@b', '--group-key-env', 'GROUP_KEY'], 'tunnel: group name `a@b` is not valid: @ is not allowed\n'],
    [['--group-key', 'secret'], "tunnel: unknown option '--group-key'."],
    [['--health', 'https'], 'Use tcp or http:/path.'],
    [['--health', 'http:healthz'], 'Use tcp or http:/path.'],
    [['--health', 'http:/a b'], 'contain no spaces or control characters\n'],
    [['--health', 'tcp', '--health-interval', '0'], 'Use a number of seconds above 0, up to 86400.'],
    [['--health', 'tcp', '--health-timeout', '1h'], 'Use a number of seconds above 0, up to 3600.'],
    [['--health', 'tcp', '--health-max-failed', '0'], 'Use 1-1000.'],
    [['--health', 'tcp', '--health-any-status'], 'tunnel: --health-any-status needs --health http:/path.\n'],
    [['--health-interval', '5'], 'tunnel: --health-interval needs --health.\n'],
    [['--health-timeout', '5'], 'tunnel: --health-timeout needs --health.\n'],
    [['--health-max-failed', '5'], 'tunnel: --health-max-failed needs --health.\n'],
    [['--alert-webhook', 'hooks.example.com'], 'tunnel: the alert webhook must be an http or https URL\n'],
  ])('exit with 2 and an error for %j', async (args, words) => {
    for (const command of ['http', 'tcp']) {
      const io = makeIo();
      expect(await run([command, '3000', '--token', 't', ...args], io)).toBe(2);
      expect(io.err()).toContain(words);
      expect(io.out()).toBe('');
    }
    expect(specs).toEqual([]);
  });
});

describe('groups in config.yml', () => {
  it('have the same settings, and the path of the key file starts at the folder of config.yml', async () => {
    const check = 'type: http, path: /up, interval_secs: 5, timeout_secs: 0.5, max_failed: 2, expect_2xx: false';
    write(
      '.tunnel/config.yml',
      `tunnels:
  web: {proto: https, local_port: 1, group: web, group_key_file: group-key, health_check: {${check}, alert_webhook: "https://a.test/"}}
  db: {proto: tcp, local_port: 2, group: db, group_key_env: GROUP_KEY, health_check: {type: tcp}}
  alone: {proto: tcp, local_port: 3}
`,
    );
    const [web, db, alone] = await specsOf(['start']);
    expect(web).toMatchObject({
      group: 'web',
      health_check: {
        type: 'http',
        path: '/up',
        interval_secs: 5,
        timeout_secs: 0.5,
        max_failed: 2,
        expect_2xx: false,
        alert_webhook: 'https://a.test/',
      },
    });
    expect([keyOf(web), keyOf(db)]).toEqual(['from the file', 'from the variable']);
    expect(db?.health_check).toMatchObject({ type: 'tcp', interval_secs: 10, timeout_secs: 3, max_failed: 3 });
    expect([alone?.group, alone?.group_key, alone?.health_check]).toEqual([undefined, undefined, undefined]);
    const io = makeIo();
    expect(await run(['check'], io)).toBe(0);
    expect(io.out()).toContain('  web: https 127.0.0.1:1 in group web\n');
    expect(io.out()).toContain('  alone: tcp 127.0.0.1:3\n');
  });
});

describe('the output of groups and health', () => {
  const tunnel = (health: Tunnel['health'], warnings: string[] = []): Tunnel =>
    ({
      name: 'web',
      state: 'open',
      protocol: 'http',
      publicUrl: 'http://web.test/',
      local: '127.0.0.1:3000',
      tunnelId: 'tun_1',
      assignedPort: null,
      group: 'shop',
      health,
      warnings,
      guard: null,
      counts: { connections: 0, open: 0, requests: 0, edgeAnswered: 0, bytesIn: 0, bytesOut: 0 },
      dropped: {},
      datagrams: null,
      service: null,
      peers: [],
    }) as unknown as Tunnel;

  const down = (): StatusEvent => ({
    type: 'health',
    tunnel: tunnel('unhealthy'),
    healthy: false,
    reason: 'connection\u001b[2J refused',
    consecutiveFailures: 3,
  });
  const up = (): StatusEvent => ({
    type: 'health',
    tunnel: tunnel('healthy'),
    healthy: true,
    reason: '',
    consecutiveFailures: 0,
  });

  const show = async (io: TestIo, flags: string[], events: StatusEvent[]): Promise<void> => {
    const code = run(['tcp', '1', '--token', 't', ...flags], io);
    await eventually(() => expect(specs.length).toBeGreaterThan(0));
    for (const event of events) emit(event);
    io.signal('SIGTERM');
    expect(await code).toBe(0);
  };

  const opened = (): StatusEvent => ({ type: 'tunnel-opened', tunnel: tunnel('unknown', ['alert webhook refused']) });

  it('shows as text the group, warnings of the edge, and each health change with the reason', async () => {
    const io = makeIo();
    await show(io, [], [opened(), down(), up()]);
    expect(io.out()).toContain(
      'web: http://web.test/ -> 127.0.0.1:3000 (group shop)\n  warning: alert webhook refused\n',
    );
    expect(io.out()).toMatch(
      /^\d\d:\d\d:\d\d web: unhealthy: connection \[2J refused \(3 in a row\)\n\d\d:\d\d:\d\d web: healthy\n/m,
    );
  });

  it("shows as text the edge's warnings when a tunnel has moved", async () => {
    const io = makeIo();
    const moved = { type: 'tunnel-moved', tunnel: tunnel('none', ['odd']), previousUrl: 'http://old.test/' } as const;
    await show(io, [], [moved]);
    expect(io.out()).toContain('(was http://old.test/)\n  warning: odd\n');
  });

  it('contains in JSON group and health of a tunnel, and an event for each change', async () => {
    const io = makeIo();
    await show(io, ['--json'], [opened(), down(), up()]);
    expect(io.events()).toMatchObject([
      { event: 'ready', group: 'shop', health: 'unknown', warnings: ['alert webhook refused'] },
      { event: 'health', name: 'web', tunnel_id: 'tun_1', group: 'shop', healthy: false, consecutive_failures: 3 },
      { event: 'health', healthy: true, reason: '', consecutive_failures: 0 },
      { event: 'closed' },
    ]);
  });

  it('has on a terminal a health row that is updated, with warnings and reasons above', async () => {
    const clock = new FakeClock();
    const io = makeIo({ isTTY: true, clock });
    const shown = tunnel('unknown', ['alert webhook refused']) as { -readonly [K in keyof Tunnel]: Tunnel[K] };
    const code = run(['tcp', '1', '--token', 't'], io);
    await eventually(() => expect(specs.length).toBeGreaterThan(0));
    emit({ type: 'connected', sessionId: 's', resumed: false });
    emit({ type: 'tunnel-opened', tunnel: shown });
    await clock.advance(250);
    expect(io.out()).toContain('  warning: alert webhook refused\n');
    expect(io.out()).toContain(
      'Forwarding  http://web.test/ -> 127.0.0.1:3000 (group shop)\nHealth      not checked yet\nRequests    No requests yet',
    );
    shown.health = 'unhealthy';
    emit({ ...down(), tunnel: shown } as StatusEvent);
    await clock.advance(250);
    expect(io.out()).toMatch(/\d\d:\d\d:\d\d web: unhealthy: connection \[2J refused \(3 in a row\)\n/);
    expect(io.out()).toContain('Health      unhealthy\nRequests    No requests yet');
    shown.health = 'healthy';
    await clock.advance(250);
    expect(io.out()).toContain('Health      healthy');
    io.signal('SIGTERM');
    expect(await code).toBe(0);
  });
});
