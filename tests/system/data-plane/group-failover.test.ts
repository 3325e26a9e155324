// Test that visitors do not notice a member that dies. tests/tools/groups/failover.mjs is the long version.

import { writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { GroupLoad, sumOf, type Visit } from '../group-load.fixture.ts';
import { endpointOf, startWeb, type WebService, wholeBody } from '../http-tunnels.fixture.ts';
import { type Harness, it } from '../in-process.fixture.ts';
import type { Stack } from '../stack.fixture.ts';
import type { TunnelProgram } from '../tunnel-program.fixture.ts';

const MEMBERS = 3;
const ROUNDS = 2;
const GROUP = 'shop';
const HEALTH = [
  '--health',
  'http:/healthz',
  '--health-interval',
  '0.2',
  '--health-timeout',
  '15',
  '--health-max-failed',
  '2',
];

interface Received {
  readonly id: string;
  readonly service: number;
  /** Checksum of the request body, or null until the whole body has arrived. */
  sum: string | null;
}

/** Handles the requests of a service, and records every POST in the order in which the headers arrive. */
const serviceOf =
  (service: number, received: Received[]) => async (request: IncomingMessage, response: ServerResponse) => {
    switch (request.url) {
      case '/slow':
        await pause(5 + 20 * Math.random());
        return void response.end('slow');
      case '/drip':
        response.writeHead(200, { 'content-length': 2 });
        response.write('a');
        await pause(10);
        return void response.end('b');
      case '/take': {
        const entry: Received = { id: String(request.headers['x-id']), service, sum: null };
        received.push(entry);
        try {
          entry.sum = sumOf(await wholeBody(request));
        } catch {
          return void response.destroy();
        }
        return void response.end(String(service));
      }
      default:
        return void response.end('well');
    }
  };

class Member {
  readonly #harness: Harness;
  readonly #stack: Stack;
  readonly #home: string;
  readonly #answer: ReturnType<typeof serviceOf>;
  readonly #port: number;
  #service: WebService;
  #program: TunnelProgram | null = null;

  private constructor(
    harness: Harness,
    stack: Stack,
    home: string,
    answer: ReturnType<typeof serviceOf>,
    service: WebService,
  ) {
    this.#harness = harness;
    this.#stack = stack;
    this.#home = home;
    this.#answer = answer;
    this.#port = service.port;
    this.#service = service;
  }

  static async start(harness: Harness, stack: Stack, answer: ReturnType<typeof serviceOf>): Promise<Member> {
    const home = await harness.folder();
    writeFileSync(join(home, 'group-key'), 'a key that all members share', { mode: 0o600 });
    const member = new Member(harness, stack, home, answer, await startWeb(answer));
    harness.use({ close: () => member.#service.close() });
    await member.run();
    return member;
  }

  /** Starts the client, in the home folder of its predecessor. */
  async run(): Promise<string> {
    const group = ['--group', GROUP, '--group-key-file', join(this.#home, 'group-key'), ...HEALTH];
    const link = ['--server', this.#stack.control, '--token-file', this.#stack.tokenFile];
    const args = ['http', String(this.#port), '--json', '--quiet', '--no-inspect', ...group, ...link];
    this.#program = await this.#harness.run(args, { home: this.#home });
    return (await this.#program.ready()).public_url;
  }

  async kill(): Promise<void> {
    await this.#program?.kill();
  }

  /** Stops the service and cuts off running requests. */
  stopService(): Promise<void> {
    return this.#service.close();
  }

  async startService(): Promise<void> {
    this.#service = await startWeb(this.#answer, this.#port);
  }
}

const membersAre = (stack: Stack, counts: { readonly all: number; readonly healthy: number }): Promise<void> =>
  eventually(
    async () => {
      const [group] = (await (await stack.api('/api/groups')).json()) as {
        member_count: number;
        healthy_count: number;
      }[];
      expect([group?.member_count, group?.healthy_count]).toEqual([counts.all, counts.healthy]);
    },
    { timeoutMs: 30_000 },
  );

const shown = ({ id, outcome, status, error }: Visit) => ({ id, outcome, status, error });

it('a killed client and a stopped service of a group fail only responses in progress and POSTs that were already sent', async ({
  harness,
}) => {
  const stack = await harness.stack({ tables: '[load_balancing]\nenabled = true' });
  const received: Received[] = [];
  const members = await Promise.all(
    Array.from({ length: MEMBERS }, (_, index) => Member.start(harness, stack, serviceOf(index, received))),
  );
  const all = { all: MEMBERS, healthy: MEMBERS };
  await membersAre(stack, all);
  const [tunnel] = await stack.tunnels();
  const load = new GroupLoad(endpointOf(tunnel!.public_url));
  for (let round = 0; round < ROUNDS; round += 1) {
    const killed = members[round % MEMBERS]!;
    const stopped = members[(round + 1) % MEMBERS]!;
    const answered = load.visits.length;
    await eventually(() => expect(load.visits.length).toBeGreaterThan(answered + 100), { timeoutMs: 30_000 });
    await Promise.all([killed.kill(), stopped.stopService()]);
    await membersAre(stack, { all: MEMBERS - 1, healthy: MEMBERS - 2 });
    await Promise.all([killed.run(), stopped.startService()]);
    await membersAre(stack, all);
  }
  // Waits for enough visits for a meaningful result, even on a slow machine.
  const visitsBy = (method: Visit['method']) => load.visits.filter((visit) => visit.method === method);
  await eventually(
    () => {
      expect(visitsBy('GET').length).toBeGreaterThan(300);
      expect(visitsBy('POST').filter(({ status }) => status === 200).length).toBeGreaterThan(50);
    },
    { timeoutMs: 60_000 },
  );
  await load.stop();

  const gets = visitsBy('GET');
  const lost = gets.filter(({ outcome, status }) => outcome === 'none' || (outcome === 'answered' && status !== 200));
  expect(lost.map(shown)).toEqual([]);

  const posts = visitsBy('POST');
  const answered = posts.filter(({ status }) => status === 200);
  const isSentAndDead = ({ status, error }: Visit): boolean => status === 502 && error === 'LOCAL_CLOSED';
  const unexplained = posts.filter((post) => post.status !== 200 && post.outcome !== 'cut' && !isSentAndDead(post));
  expect(unexplained.map(shown)).toEqual([]);

  expect(new Set(received.map(({ id }) => id)).size).toBe(received.length);
  const whole = new Map(received.map((entry) => [entry.id, entry]));
  const proofs = answered.map(({ id, sum, text }) => ({ id, sum, service: Number(text) }));
  expect(proofs).toEqual(proofs.map(({ id }) => whole.get(id)));
}, 180_000);
