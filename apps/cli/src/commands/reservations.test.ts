import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { type LoggedIn, logIn, RESERVATION, type ScriptedPlatform } from '../api/scripted-platform.fixture.ts';
import { makeTestIo, type TestIo, type TestIoOptions, typing } from '../io/io.fixture.ts';

let login: LoggedIn;
let platform: ScriptedPlatform;

beforeEach(async () => {
  login = await logIn();
  platform = login.platform;
});
afterEach(() => login.close());

const PORT = { ...RESERVATION, id: 'res-2', kind: 'tcp', label: '20042', region_id: 'fra' };
const LATER = '2030-02-01T00:00:00.000Z';

const tunnel = async (args: string[], options: Partial<TestIoOptions> = {}): Promise<{ code: number; io: TestIo }> => {
  const io = makeTestIo({ home: login.home.path, ...options });
  return { code: await run(args, io), io };
};

const asked = (): unknown[] =>
  platform.asks.filter(({ method }) => method === 'POST').map(({ path, body }) => [path, JSON.parse(body) as unknown]);

const refusal = (code: string, error: string): string => JSON.stringify({ error, code, request_id: 'r' });

describe('`tunnel reserve`', () => {
  it.each([
    [['shop'], { kind: 'subdomain', label: 'shop' }, '  Use it: tunnel http 3000 --subdomain shop'],
    [['--tcp'], { kind: 'tcp' }, '  Use it: tunnel tcp 22 --remote-port 20007'],
    [['--tcp', '20042'], { kind: 'tcp', label: '20042' }, '  Use it: tunnel tcp 22 --remote-port 20042'],
    [
      ['--udp', '20153', '--region', 'fra'],
      { kind: 'udp', label: '20153', region_id: 'fra' },
      '  Use it: tunnel udp 53 --remote-port 20153',
    ],
    [['*.shop'], { kind: 'subdomain', label: '*.shop' }, "  Use it: tunnel http 3000 --subdomain '*.shop'"],
  ])('reserves %j and prints how to use it', async (args, body, use) => {
    const { code, io } = await tunnel(['reserve', ...args]);
    expect([code, asked()]).toEqual([0, [['/reservations', body]]]);
    expect(io.out().split('\n')).toEqual([expect.stringMatching(/^Reserved http:\/\/shop\.localhost:8000/), use, '']);
  });

  it("prints the platform's reservation unchanged with --json", async () => {
    const { io } = await tunnel(['reserve', 'shop', '--json']);
    expect(JSON.parse(io.out())).toEqual({ ...RESERVATION, id: 'res-new' });
  });

  it.each([
    [[], 'give a name to reserve, or --tcp or --udp for a port.'],
    [['shop', '--tcp'], 'reserve one at a time: a name, --tcp or --udp.'],
    [['--tcp', '20042', '--udp', '20042'], 'reserve one at a time: a name, --tcp or --udp.'],
    [['--tcp', 'shop'], "invalid --tcp 'shop'. Use 1-65535."],
    [['tcp/20042'], "'tcp/20042' is a port. Use --tcp 20042."],
    [['shop', '--region', 'fra'], '--region is only for ports: names are reserved in every region.'],
  ])('refuses %j without a request', async (args, words) => {
    const { code, io } = await tunnel(['reserve', ...args]);
    expect([code, io.err(), platform.asks]).toEqual([2, expect.stringContaining(`tunnel: ${words}`), []]);
  });

  it.each([
    [409, 'TUNNEL_SUBDOMAIN_IN_USE', "subdomain 'shop' is already in use", 'Choose another name.'],
    [409, 'TUNNEL_PORT_IN_USE', 'port 20042 is already in use', 'Choose another port, or leave out'],
    [403, 'RESERVATION_LIMIT', 'reservation limit of 3 reached', 'Release an unused name or port'],
    [400, 'TUNNEL_SUBDOMAIN_INVALID', "subdomain 'www' is not valid: it is reserved", 'Use 1 to 63 lowercase letters'],
    [403, 'TUNNEL_CUSTOM_SUBDOMAIN', 'the plan `free` does not include custom subdomains', 'switch to a plan'],
  ])("exits with 2 on %i %s, with the platform's message and the next step", async (status, code, error, next) => {
    platform.trap('/reservations', status, refusal(code, error));
    const ran = await tunnel(['reserve', 'shop']);
    expect([ran.code, ran.io.err()]).toEqual([2, expect.stringContaining(error)]);
    expect(ran.io.err()).toContain(next);
  });

  it.each([
    [
      'region_id: is required because there are several regions (fra, nyc)',
      '--region is required because there are several',
    ],
    ["label: 'a.shop' needs no reservation", "'a.shop' needs no reservation\n  See `tunnel reserve --help`."],
  ])("names flags in place of the platform's field names: %s", async (error, words) => {
    platform.trap('/reservations', 400, refusal('API_BAD_REQUEST', error));
    const { code, io } = await tunnel(['reserve', '--tcp']);
    expect([code, io.err()]).toEqual([2, expect.stringContaining(`tunnel: ${words}`)]);
  });

  it('requires a login, and so do `reservations` and `release`', async () => {
    await tunnel(['logout']);
    for (const args of [['reserve', 'shop'], ['reservations'], ['release', 'shop', '--yes']]) {
      const { code, io } = await tunnel(args);
      expect([code, io.err()]).toEqual([3, expect.stringContaining('not signed in.')]);
    }
  });
});

describe('`tunnel reservations`', () => {
  it('shows each reservation with state, use and expiry, then the limit and how to keep a held name', async () => {
    platform.reservations = [
      { ...PORT, id: 'res-4', kind: 'udp', state: 'released', expires_at: LATER },
      { ...RESERVATION, id: 'res-3', label: 'b\u001b[2Jg', state: 'held', expires_at: LATER },
      { ...RESERVATION, active_tunnels: 2 },
      { ...PORT, public_address: 'tcp://fra.example.com:20042', last_used_at: '2030-01-02T00:00:00.000Z' },
    ];
    const { code, io } = await tunnel(['reservations']);
    expect(code).toBe(0);
    expect(io.out().split('\n')).toEqual([
      expect.stringMatching(/^shop +reserved {2}http:\/\/shop\.localhost:8000 +in use by 2 tunnels$/),
      expect.stringMatching(/^tcp\/20042 {2}reserved {2}tcp:\/\/fra\.example\.com:20042 +used 2030-01-0.* +fra$/),
      expect.stringMatching(/^b \[2Jg +held +http.* never used +yours until 2030-0/),
      expect.stringMatching(/^udp\/20042 +released .*yours until 2030-0.* {2}fra$/),
      '2 of 3 reserved',
      '  To reserve permanently: tunnel reserve b [2Jg',
      '',
    ]);
  });

  it('counts random names, and lists random names with --all', async () => {
    const held = {
      ...RESERVATION,
      id: 'res-5',
      label: 'brisk-otter',
      state: 'held',
      assigned: true,
      expires_at: LATER,
    };
    platform.reservations = [{ ...RESERVATION }, held, { ...held, id: 'res-6', label: 'calm-fox' }];
    expect((await tunnel(['reservations'])).io.out().split('\n')).toEqual([
      expect.stringMatching(/^shop +reserved /),
      '2 random names not shown (use --all)',
      '1 of 3 reserved',
      '',
    ]);
    expect((await tunnel(['reservations', '--all'])).io.out()).toMatch(/^shop .*\nbrisk-otter .*\ncalm-fox .*\n1 of 3/);
    platform.reservations = [held];
    expect((await tunnel(['reservations'])).io.out()).toBe(
      'no reservations\n1 random name not shown (use --all)\n  Reserve a name: tunnel reserve shop\n',
    );
  });

  it("prints the platform's list unchanged with --json, after a single request", async () => {
    platform.reservations = [{ ...PORT, of_a_later_version: 1 }];
    const { io } = await tunnel(['reservations', '--json']);
    expect(JSON.parse(io.out())).toEqual(platform.reservations);
    expect(platform.paths()).toEqual(['GET /reservations']);
  });

  it('says how to reserve a name when there is none', async () => {
    expect((await tunnel(['reservations'])).io.out()).toBe('no reservations\n  Reserve a name: tunnel reserve shop\n');
  });

  it('refuses a response of unexpected shape', async () => {
    platform.trap('/reservations', 200, '{}');
    const { code, io } = await tunnel(['reservations']);
    expect([code, io.err()]).toEqual([2, expect.stringContaining('unexpected response to GET /reservations')]);
  });
});

describe('`tunnel release`', () => {
  beforeEach(() => {
    platform.reservations = [{ ...RESERVATION }, { ...PORT }];
  });
  const states = (): unknown[] => platform.reservations.map(({ state }) => state);

  it.each([
    [['shop'], 'shop\r', 'Released shop. You can take it back until 2030-01-0', ['released', 'reserved']],
    [['Shop'], ' SHOP \r', 'Released shop.', ['released', 'reserved']],
    [['shop'], 'y\r', 'Nothing released.\n', ['reserved', 'reserved']],
    [['shop'], '\r', 'Nothing released.\n', ['reserved', 'reserved']],
    [['tcp/20042'], 'tcp/20042\r', 'Released tcp/20042.', ['reserved', 'released']],
  ])('with %j asks to type the name at a terminal: %j', async (args, typed, out, left) => {
    const { code, io } = await tunnel(['release', ...args], { stdin: typing(typed) });
    expect([code, io.out(), states()]).toEqual([0, expect.stringContaining(out), left]);
    expect(io.err()).toMatch(/^Release http:\/\/shop\.localhost:8000\? .*\n.*Type (shop|tcp\/20042) to confirm: /);
  });

  it('requires --yes without a terminal', async () => {
    const { code, io } = await tunnel(['release', 'shop']);
    expect([code, io.err(), states()]).toEqual([
      2,
      'tunnel: this command needs a terminal. Add --yes to confirm.\n',
      ['reserved', 'reserved'],
    ]);
    expect((await tunnel(['release', 'shop', '--yes'])).code).toBe(0);
    expect(states()).toEqual(['released', 'reserved']);
  });

  it('says how long a name stays yours while a tunnel uses it, and nothing for a name released at once', async () => {
    platform.reservations = [
      { ...RESERVATION, active_tunnels: 1, grace_seconds: 604_800 },
      { ...PORT, label: 'gone' },
    ];
    const out = async (name: string): Promise<string> => (await tunnel(['release', name, '--yes'])).io.out();
    expect(await out('shop')).toBe(
      'Released shop. The name stays yours until its open tunnels close, and 7 days after.\n',
    );
    expect(await out('tcp/gone')).toBe('Released tcp/gone.\n');
  });

  it('does not release a released name a second time, and says until when it can be taken back', async () => {
    await tunnel(['release', 'shop', '--yes']);
    platform.asks.length = 0;
    const { code, io } = await tunnel(['release', 'shop', '--yes']);
    expect([code, io.out()]).toEqual([0, expect.stringContaining('take it back until 2030-01-0')]);
    expect(platform.paths()).not.toContain('DELETE /reservations/res-1');
  });

  it.each([
    [['shpo'], "you have no reservation 'shpo'. Did you mean shop?"],
    [['20042'], "you have no reservation '20042'. Did you mean tcp/20042?"],
    [['udp/20042'], "you have no reservation 'udp/20042'. Did you mean tcp/20042?"],
    [['tcp/20043'], "you have no reservation 'tcp/20043'. List your reservations: `tunnel reservations`."],
    [['elsewhere'], "you have no reservation 'elsewhere'. List your reservations: `tunnel reservations`."],
    [['tcp/20042', '--region', 'nyc'], "you do not have tcp/20042 in the region 'nyc'. Use --region fra."],
    [['shop', '--region', 'nyc'], "you do not have shop in the region 'nyc'. Names are reserved in every region"],
  ])('refuses the unknown reservation %j with a suggestion', async (args, words) => {
    const { code, io } = await tunnel(['release', ...args, '--yes']);
    expect([code, io.err()]).toEqual([2, expect.stringContaining(`tunnel: ${words}`)]);
  });

  it('requires --region for a port that is reserved in two regions', async () => {
    platform.reservations.push({ ...PORT, id: 'res-5', region_id: 'nyc' });
    const { code, io } = await tunnel(['release', 'tcp/20042', '--yes']);
    expect([code, io.err()]).toEqual([2, expect.stringContaining('Use --region fra or --region nyc.')]);
    expect((await tunnel(['release', 'tcp/20042', '--region', 'nyc', '--yes'])).code).toBe(0);
    expect(states()).toEqual(['reserved', 'reserved', 'released']);
  });
});
