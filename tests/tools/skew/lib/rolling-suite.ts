// Platform, edge and clients are upgraded in turn while visitors use a group of two members: which requests fail, and which long
// connections are cut.
import { type ClientRequest, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '@tunnel/testkit';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ask } from '../../../system/embedded-database.fixture.ts';
import { Harness } from '../../../system/harness.fixture.ts';
import { endpointOf, type PublicEndpoint, startWeb } from '../../../system/http-tunnels.fixture.ts';
import { memberFlags, Person, startEdgeOf } from '../../../system/platform-test.fixture.ts';
import type { Stack } from '../../../system/stack.fixture.ts';
import type { TunnelProgram } from '../../../system/tunnel-program.fixture.ts';
import { BUILDS, type Build, ROOM, SOON } from './world.ts';

const { previous, current } = BUILDS;
const DRAIN_SECS = 3;
const LONG_CONNECTIONS = 4;
const EVERY_MS = 25;
const CALM_MS = 3000;
/** Maximum time without responses while an edge restarts, on a busy machine. */
const EDGE_AWAY_MS = 30_000;

type Phase = 'calm' | 'platform' | 'edge' | 'clients';

interface Visit {
  readonly phase: Phase;
  readonly at: number;
  outcome: string;
}

/** Visitors that each open a connection and send a request, at a steady rate, whether earlier requests have ended or not. */
class Visitors {
  readonly visits: Visit[] = [];
  phase: Phase = 'calm';
  readonly #to: PublicEndpoint;
  readonly #open = new Set<ClientRequest>();
  readonly #timer: NodeJS.Timeout;

  constructor(to: PublicEndpoint) {
    this.#to = to;
    this.#timer = setInterval(() => this.#visit(), EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await eventually(() => expect(this.#open.size).toBe(0), SOON);
  }

  /** Counts outcomes other than a whole response, by phase. */
  lost(phase: Phase): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const visit of this.visits.filter((one) => one.phase === phase && one.outcome !== 'served')) {
      counts[visit.outcome] = (counts[visit.outcome] ?? 0) + 1;
    }
    return counts;
  }

  served(phase: Phase): number {
    return this.visits.filter((visit) => visit.phase === phase && visit.outcome === 'served').length;
  }

  get awayMs(): number {
    const lost = this.visits.filter(({ phase, outcome }) => phase === 'edge' && outcome !== 'served');
    return lost.length === 0 ? 0 : (lost.at(-1)?.at ?? 0) - (lost[0]?.at ?? 0);
  }

  #visit(): void {
    const visit: Visit = { phase: this.phase, at: performance.now(), outcome: 'open' };
    this.visits.push(visit);
    const end = (outcome: string): void => {
      if (visit.outcome === 'open') visit.outcome = outcome;
    };
    const { host, port } = this.#to;
    const sent = request({ host: '127.0.0.1', port, headers: { host }, agent: false, timeout: 20_000 }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text: string) => (body += text));
      response.on('end', () =>
        end(
          response.statusCode === 200 && body === 'served'
            ? 'served'
            : `${response.statusCode} ${String(response.headers['x-tunnel-error'] ?? '')}`,
        ),
      );
      response.on('error', () => end('cut'));
    });
    this.#open.add(sent);
    sent.on('timeout', () => sent.destroy(new Error('timeout')));
    sent.on('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    sent.on('close', () => {
      end('closed');
      this.#open.delete(sent);
    });
    sent.end();
  }
}

/** A response that never ends. Resolves when the connection breaks. */
const longConnection = ({
  host,
  port,
}: PublicEndpoint): { readonly cut: Promise<void>; readonly begun: Promise<void> } => {
  let begin = (): void => {};
  const begun = new Promise<void>((resolve) => {
    begin = resolve;
  });
  const cut = new Promise<void>((resolve) => {
    const sent = request({ host: '127.0.0.1', port, path: '/long', headers: { host }, agent: false }, (response) => {
      response
        .on('data', begin)
        .on('error', () => {})
        .on('close', resolve);
    });
    sent.on('error', () => resolve()).end();
  });
  return { cut, begun };
};

describe(`an upgrade from version ${previous.version} to version ${current.version} under load`, () => {
  const harness = new Harness();
  let platform: Stack;
  let edge: Stack;
  let person: Person;
  let key: string;
  let visitors: Visitors;
  let endpoint: PublicEndpoint;
  let served = 0;
  const members: TunnelProgram[] = [];
  const ports: number[] = [];
  let flags: readonly string[];

  const upgrade = async (server: Stack): Promise<void> => {
    await server.stop();
    server.bin = current.server;
    await server.start();
  };

  const startMember = async (build: Build, at: number): Promise<void> => {
    const args = ['http', String(ports[at]), '--json', '--wait', '--server', edge.control, ...flags];
    const member = await harness.run(args, { bin: build.client, env: { TUNNEL_API_KEY: key } });
    members[at] = member;
    await member.ready();
  };

  beforeAll(async () => {
    platform = await harness.stack({ command: 'platform', bin: previous.server, fixedPorts: true, tables: ROOM });
    edge = await startEdgeOf(harness, platform, 'west', {
      bin: previous.server,
      fixedPorts: true,
      env: { TUNNEL_SERVER__DRAIN_SECS: `${DRAIN_SECS}` },
    });
    person = await Person.signUp(platform, 'ann');
    key = (await person.newKey()).token;
    flags = [...(await memberFlags(harness, 'roll')), '--health', 'http:/health', '--health-interval', '1'];
    for (const at of [0, 1]) {
      const web = harness.use(
        await startWeb((asked, response) => {
          if (asked.url === '/health') response.end();
          else if (asked.url === '/long') {
            const timer = setInterval(() => response.write('x'), 100);
            response.on('close', () => clearInterval(timer));
          } else {
            served += 1;
            // Long enough that requests are always on their way.
            setTimeout(() => response.end('served'), 50);
          }
        }),
      );
      ports[at] = web.port;
      await startMember(previous, at);
    }
    const { public_url: url } = await (members[0] as TunnelProgram).ready();
    endpoint = endpointOf(url);
    visitors = new Visitors(endpoint);
    await eventually(() => expect(visitors.served('calm')).toBeGreaterThan(20), SOON);
  }, 120_000);

  afterAll(async () => {
    await visitors?.stop();
    await harness.close();
  });

  const phase = async (name: Phase, act: () => Promise<void>): Promise<void> => {
    visitors.phase = name;
    await act();
    const since = performance.now();
    await eventually(() => {
      const after = visitors.visits.filter(({ at, outcome }) => at > since && outcome !== 'open');
      expect(after.length).toBeGreaterThan(40);
      expect(after.slice(-40).filter(({ outcome }) => outcome !== 'served')).toEqual([]);
    }, SOON);
    await pause(CALM_MS);
    visitors.phase = 'calm';
    await eventually(
      () => expect(visitors.visits.filter((visit) => visit.phase === name && visit.outcome === 'open')).toEqual([]),
      SOON,
    );
  };

  it('loses no request while the platform is upgraded', async () => {
    await phase('platform', () => upgrade(platform));
    expect(visitors.lost('platform')).toEqual({});
    expect(visitors.served('platform')).toBeGreaterThan(40);
  });

  it(`cuts ${LONG_CONNECTIONS} connections longer than the drain while the edge is upgraded, and is away for a limited time`, async () => {
    const long = Array.from({ length: LONG_CONNECTIONS }, () => longConnection(endpoint));
    await Promise.all(long.map(({ begun }) => begun));
    await phase('edge', () => upgrade(edge));
    await Promise.all(long.map(({ cut }) => cut));
    const lost = visitors.lost('edge');
    process.stderr.write(
      `edge: ${visitors.served('edge')} served, ${Math.round(visitors.awayMs)} ms away, not served: ${JSON.stringify(lost)}; ${long.length} long connections cut\n`,
    );
    // The port is closed for a while, which resets connections that the kernel had queued, and the clients return after the edge.
    const known = /^(?:ECONNREFUSED|ECONNRESET|502 TUNNEL_AWAY|502 GROUP_UNHEALTHY|404 .*|503 .*)$/;
    expect(Object.keys(lost).filter((outcome) => !known.test(outcome))).toEqual([]);
    expect(visitors.awayMs).toBeLessThan(EDGE_AWAY_MS);
  });

  it('loses no request while the clients of the group are upgraded in turn', async () => {
    await phase('clients', async () => {
      for (const at of [0, 1]) {
        const member = members[at] as TunnelProgram;
        member.signal('SIGTERM');
        expect(await member.exitCode()).toBe(0);
        await startMember(current, at);
        await pause(CALM_MS);
      }
    });
    expect(visitors.lost('clients')).toEqual({});
  });

  it('answers each request that has reached a member, and bills it exactly once', async () => {
    await visitors.stop();
    expect(visitors.lost('calm')).toEqual({});
    expect(visitors.visits.filter(({ outcome }) => outcome === 'served')).toHaveLength(served);
    const url = platform.databaseUrl;
    if (url === null) throw new Error('the platform does not run');
    const billed = async (): Promise<number> =>
      Number(await ask(url, 'select coalesce(sum(requests), 0)::int from usage_daily'));
    const expected = served + LONG_CONNECTIONS;
    await eventually(async () => expect(await billed()).toBe(expected), { timeoutMs: 60_000, intervalMs: 500 });
    await pause(12_000);
    expect(await billed()).toBe(expected);
  });
});
