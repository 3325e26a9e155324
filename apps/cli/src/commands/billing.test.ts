import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { type LoggedIn, logIn, type ScriptedPlatform } from '../api/scripted-platform.fixture.ts';
import { makeTestIo, type TestIo, type TestIoOptions } from '../io/io.fixture.ts';

let login: LoggedIn;
let platform: ScriptedPlatform;

beforeEach(async () => {
  login = await logIn();
  platform = login.platform;
});
afterEach(() => login.close());

const billing = async (
  args: string[] = [],
  options: Partial<TestIoOptions> = {},
): Promise<{ code: number; io: TestIo }> => {
  const io = makeTestIo({ home: login.home.path, ...options });
  return { code: await run(['billing', ...args], io), io };
};

const lastBody = (): unknown => JSON.parse(platform.asks.at(-1)?.body ?? '');

describe('the billing state', () => {
  it.each([[[]], [['status']]])('is printed by `tunnel billing` with arguments %j', async (args) => {
    const { code, io } = await billing(args);
    expect([code, io.err()]).toEqual([0, '']);
    expect(platform.paths()).toEqual(['GET /billing', 'GET /billing/usage']);
    expect(io.out()).toContain('plan payg: pay as you go\n');
    expect(io.out()).toContain('$12.40 so far, $3.00 at least');
  });

  it('shows the used share of a spend cap that is below the minimum charge', async () => {
    Object.assign(platform.billing, { estimated_mtd_cents: 300, spend_cap_cents: 100 });
    platform.usedCents = 123;
    expect((await billing()).io.out()).toContain('123 %: reached, tunnels are stopped\n');
  });

  it.each([[['--json']], [['status', '--json']]])("is printed as the platform's JSON with %j", async (args) => {
    const { io } = await billing(args, { isTTY: true });
    expect(JSON.parse(io.out())).toEqual(platform.billing);
  });

  it('is colored on a terminal unless NO_COLOR is set', async () => {
    expect((await billing([], { isTTY: true })).io.out()).toContain('\u001b[');
    expect((await billing([], { isTTY: true, env: { NO_COLOR: '1' } })).io.out()).not.toContain('\u001b[');
  });
});

describe('the spend cap', () => {
  it.each([
    ['20', 2000, 'Spend cap: $20.00 a month.\n'],
    ['20.50', 2050, 'Spend cap: $20.50 a month.\n'],
    ['20.5', 2050, 'Spend cap: $20.50 a month.\n'],
    ['$0.29', 29, 'Spend cap: $0.29 a month.\n'],
    ['0', 0, 'Spend cap: $0.00 a month.\n'],
    ['none', null, 'No spend cap.\n'],
    ['NONE', null, 'No spend cap.\n'],
  ])('is set to %s', async (amount, cents, text) => {
    const { code, io } = await billing(['cap', amount]);
    expect([code, io.err(), io.out()]).toEqual([0, '', text]);
    expect(platform.paths()).toEqual(['PATCH /billing/spend-cap']);
    expect(lastBody()).toEqual({ spend_cap_cents: cents });
  });

  it('is printed as JSON with --json', async () => {
    expect((await billing(['cap', 'none', '--json'])).io.out()).toBe('{"spend_cap_cents":null}\n');
  });

  it.each(['-1', '20.505', '1e3', '20,50', '', 'null', '99999999999999'])(
    'cannot be set to %j: exit 2 without a request',
    async (amount) => {
      const { code, io } = await billing(['cap', '--', amount]);
      expect([code, io.err()]).toEqual([2, expect.stringContaining('Use US dollars (20, 20.50), or none.')]);
      expect(platform.asks).toEqual([]);
    },
  );

  it('requires an amount', async () => {
    const { code, io } = await billing(['cap']);
    expect([code, io.err()]).toEqual([2, expect.stringContaining('missing argument: amount.')]);
  });

  it("is refused on a free plan with the platform's message and a hint", async () => {
    const error = 'spend caps are for pay-as-you-go plans; usage is free on the plan `free`';
    const body = { error, code: 'BILLING_CAP_NOT_PAYG', request_id: 'req-1' };
    platform.trap('/billing', 400, JSON.stringify(body), { 'content-type': 'application/json' });
    const { code, io } = await billing(['cap', '5']);
    expect([code, io.err()]).toEqual([2, `tunnel: ${error}\n  Subscribe first, in the dashboard.\n`]);
  });
});

describe('the billing portal', () => {
  it('is printed as a link and nothing else on stdout', async () => {
    const { code, io } = await billing(['portal']);
    expect([code, io.err(), io.out()]).toEqual([0, '', 'https://billing.example/p/1\n']);
    expect(platform.paths()).toEqual(['POST /billing/portal']);
    expect(lastBody()).toEqual({ return_url: `${platform.url}/app/` });
  });

  it('returns to the URL given with --return-url', async () => {
    await billing(['portal', '--return-url', 'https://app.example.com/x']);
    expect(lastBody()).toEqual({ return_url: 'https://app.example.com/x' });
  });

  it('exits with 5 while the payment processor is unreachable', async () => {
    const body = {
      error: 'the payment processor cannot be reached right now',
      code: 'BILLING_PROCESSOR_AWAY',
      request_id: 'r',
    };
    platform.trap('/billing', 503, JSON.stringify(body), { 'content-type': 'application/json', 'retry-after': '2' });
    const { code, io } = await billing(['portal']);
    expect([code, io.out()]).toEqual([5, '']);
    expect(io.err()).toContain('the payment processor cannot be reached right now\n  Try again in a moment.\n');
  });
});

it.each([[[]], [['cap']], [['portal']], [['status']]])(
  '`tunnel billing` with %j has help with an example',
  async (args) => {
    const { code, io } = await billing([...args, '--help']);
    expect([code, io.out()]).toEqual([0, expect.stringContaining('Examples:\n  $ tunnel billing')]);
  },
);

it('an unknown subcommand of `tunnel billing` is refused without a request', async () => {
  expect((await billing(['pay'])).code).toBe(2);
  expect(platform.asks).toEqual([]);
});
