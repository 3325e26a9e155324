// A platform with its API under flood from an account and from strangers in separate networks, and a tenant that measures the service
// meanwhile.
import { fileURLToPath } from 'node:url';
import { type Client, connect } from '@tunnel/client';
import { type Program, spawnProgram } from '@tunnel/testkit';
import { Harness } from './harness.fixture.ts';
import { type Payer, signUpPayer } from './payer.fixture.ts';
import type { Stack } from './stack.fixture.ts';

const CALLER = fileURLToPath(new URL('../../tests/system/flood-caller.mjs', import.meta.url));

/** Loopback addresses of the floods. Each address counts as a separate network. */
const ACCOUNTS_NETWORK = '127.0.0.2';
const STRANGERS_NETWORK = '127.0.0.3';

/** Entries in the usage log that the flood requests: as many as a page of the log can have. */
const LOG_ENTRIES = 100;

export const MEASURED = [
  'GET /usage',
  'POST /keys',
  'registration',
  'first authentication',
  'GET /app/',
  'POST /oauth/token',
  'POST /mcp',
  'GET /health/db',
] as const;
export type Measured = (typeof MEASURED)[number];

export interface Sample {
  readonly what: Measured;
  readonly ms: number;
  /** True if the call got the expected response. */
  readonly isServed: boolean;
}

export interface FloodSizes {
  readonly account: number;
  readonly strangers: number;
}

export class ApiFlood {
  readonly stack: Stack;
  readonly #harness: Harness;
  readonly #attacker: Payer;
  readonly #tenant: Payer;
  readonly #client: Client;
  #programs: Program[] = [];

  private constructor(options: { harness: Harness; stack: Stack; attacker: Payer; tenant: Payer; client: Client }) {
    this.stack = options.stack;
    this.#harness = options.harness;
    this.#attacker = options.attacker;
    this.#tenant = options.tenant;
    this.#client = options.client;
  }

  static async open(): Promise<ApiFlood> {
    const harness = new Harness();
    // Raises the limits on tokens and /mcp calls, because the tenant of the test needs more than the defaults allow.
    const tables = '[platform.limits]\nauth_per_minute = 100000\n[platform.mcp]\ncalls_per_minute = 100000';
    const limits = 'connections_per_address = 4096';
    const stack = await harness.stack({ command: 'stack', fixedPorts: true, limits, tables });
    const attacker = await signUpPayer(stack);
    const tenant = await signUpPayer(stack);
    const flooding = await connectAs(stack, attacker);
    for (let count = 0; count < LOG_ENTRIES; count += 1) await flooding.open({ protocol: 'http', localPort: 9 });
    await flooding.close();
    const client = await connectAs(stack, tenant);
    return new ApiFlood({ harness, stack, attacker, tenant, client });
  }

  /** Starts the account's flood and the strangers' flood at once. Resolves when all connections are open. */
  async flood({ account, strangers }: FloodSizes): Promise<void> {
    const { platform_url: url } = this.stack.run;
    const calls = [
      [url, account, ACCOUNTS_NETWORK, `/usage/tunnels?limit=${LOG_ENTRIES}`, this.#attacker.accessToken],
      [url, strangers, STRANGERS_NETWORK, '/auth/verify-email/RANDOM'],
    ];
    this.#programs = await Promise.all(
      calls.map((args) => spawnProgram({ command: process.execPath, args: [CALLER, ...args.map(String)] })),
    );
    await Promise.all(this.#programs.map((program) => program.waitForLine(/flooding/, { timeoutMs: 60_000 })));
  }

  /** Stops the floods, and returns the number of responses per status, for the account and for the strangers. */
  async calm(): Promise<readonly Record<string, number>[]> {
    const ended = await Promise.all(
      this.#programs.map(async (program) => {
        program.signal('SIGTERM');
        await program.waitForExit();
        return JSON.parse(program.stdout.at(-1) ?? '{}') as Record<string, number>;
      }),
    );
    this.#programs = [];
    return ended;
  }

  /** Makes a call of every kind in turn, and measures the times. */
  async round(): Promise<Sample[]> {
    const samples: Sample[] = [];
    const time = async (what: Measured, work: () => Promise<unknown>, isServed = (_: unknown): boolean => true) => {
      const startedMs = performance.now();
      const answer = await work().catch(() => null);
      samples.push({ what, ms: performance.now() - startedMs, isServed: answer !== null && isServed(answer) });
    };
    const account = this.#tenant.client(this.stack);
    let token = '';
    await time('GET /usage', () => account.usage());
    await time('POST /keys', async () => {
      ({ token } = await account.createKey({ label: 'one of many' }));
    });
    await time('registration', async () => (await this.#client.open({ protocol: 'http', localPort: 9 })).close());
    let fresh: Client | null = null;
    await time('first authentication', async () => {
      fresh = await connect({ server: this.stack.control, token });
    });
    void (fresh as Client | null)?.close();
    await time(
      'GET /app/',
      () => this.#status('/app/'),
      (status) => status === 200,
    );
    const body = new URLSearchParams({
      grant_type: 'refresh_token',
      client_id: 'https://a.example/',
      refresh_token: 'x',
    });
    // The refresh token does not exist, so a served call looks up the token and rejects it with 400.
    await time(
      'POST /oauth/token',
      () => this.#status('/oauth/token', { method: 'POST', body }),
      (status) => status === 400,
    );
    await time(
      'POST /mcp',
      () => this.#askMcp(token),
      (status) => status === 200,
    );
    await time(
      'GET /health/db',
      () => this.#status('/health/db'),
      (status) => status === 200,
    );
    return samples;
  }

  async #status(path: string, init: RequestInit = {}): Promise<number> {
    const response = await fetch(`${this.stack.run.platform_url}${path}`, init);
    await response.arrayBuffer();
    return response.status;
  }

  #askMcp(token: string): Promise<number> {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} });
    return this.#status('/mcp', { method: 'POST', headers, body });
  }

  async metrics(): Promise<string> {
    return (await fetch(this.stack.run.metrics_url)).text();
  }

  async close(): Promise<void> {
    for (const program of this.#programs) await program.close();
    await this.#client.close();
    await this.#harness.close();
  }
}

const connectAs = async (stack: Stack, payer: Payer): Promise<Client> => {
  const { token } = await payer.client(stack).createKey({ label: 'tunnels' });
  return connect({ server: stack.control, token });
};

/** Returns the percentile of the times of a kind of call: `part` 0.5 is the median. */
export const percentile = (samples: readonly Sample[], what: Measured, part: number): number => {
  const sorted = samples
    .filter((sample) => sample.what === what)
    .map(({ ms }) => ms)
    .toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * part) - 1] ?? Number.NaN;
};
