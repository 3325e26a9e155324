import { type Clock, systemClock } from '@tunnel/runtime';
import { eventually } from '@tunnel/testkit';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { run } from '../all-commands.ts';
import { DOMAIN, type LoggedIn, logIn, type ScriptedPlatform } from '../api/scripted-platform.fixture.ts';
import { makeTestIo, type TestIo, type TestIoOptions, typing } from '../io/io.fixture.ts';
import { DOMAIN_LOOK_EVERY_MS } from './domains.ts';

let login: LoggedIn;
let platform: ScriptedPlatform;

beforeEach(async () => {
  login = await logIn();
  platform = login.platform;
});
afterEach(() => login.close());

const UNTIL = '2030-04-01T00:00:00.000Z';
const VALID = { ...DOMAIN.certificate, state: 'valid', issuer: 'Test CA', not_after: UNTIL };
const [CNAME] = DOMAIN.records;
const VERIFIED = { ...DOMAIN, state: 'verified', certificate: VALID, records: [{ ...CNAME, found: true }] };

/** The system clock with pauses shortened to 1 ms, so that waiting for the next check takes no time. */
const quick: Clock = {
  now: () => systemClock.now(),
  monotonic: () => systemClock.monotonic(),
  setTimeout: (callback) => systemClock.setTimeout(callback, 1),
  setInterval: (callback, ms) => systemClock.setInterval(callback, ms),
};

const start = (args: string[], options: Partial<TestIoOptions> = {}): { io: TestIo; code: Promise<number> } => {
  const io = makeTestIo({ home: login.home.path, clock: quick, ...options });
  return { io, code: run(['domains', ...args], io) };
};

const domains = async (args: string[], options: Partial<TestIoOptions> = {}): Promise<{ code: number; io: TestIo }> => {
  const { io, code } = start(args, options);
  return { io, code: await code };
};

const refusal = (code: string, error: string): string => JSON.stringify({ error, code, request_id: 'r' });

describe('`tunnel domains`', () => {
  it('lists each domain with state, use, and certificate or missing records', async () => {
    platform.domains = [
      { ...VERIFIED, active_tunnels: 2 },
      { ...DOMAIN, id: 'dom-2', name: '*.b\u001b[2Jg.example', wildcard: true },
      { ...VERIFIED, id: 'dom-3', name: 'plain.example.com', certificate: null },
      { ...VERIFIED, id: 'dom-4', name: 'old.example.com', certificate: { ...VALID, state: 'failing' } },
    ];
    for (const args of [[], ['list']]) {
      const { code, io } = await domains(args);
      expect(code).toBe(0);
      expect(io.out().split('\n')).toEqual([
        expect.stringMatching(
          /^shop\.example\.com +verified {2}certificate valid until 2030-0\S+ \S+ +in use by 2 tunnels$/,
        ),
        expect.stringMatching(/^\*\.b \[2Jg\.example +pending +0 of 1 record found$/),
        expect.stringMatching(/^plain\.example\.com +verified +certificate off$/),
        expect.stringMatching(
          /^old\.example\.com +verified +certificate failing; the current certificate is valid until 2030-0/,
        ),
        '4 of 3 domains',
        "  Show the DNS records: tunnel domains show '*.b [2Jg.example'",
        '',
      ]);
    }
  });

  it("prints the platform's list unchanged with --json, after a single request", async () => {
    platform.domains = [{ ...DOMAIN, of_a_later_version: 1 }];
    const { io } = await domains(['--json']);
    expect(JSON.parse(io.out())).toEqual(platform.domains);
    expect(platform.paths()).toEqual(['GET /domains']);
  });

  it('says how to add a domain when the account has none', async () => {
    expect((await domains([])).io.out()).toBe('no domains\n  Add a domain: tunnel domains add shop.example.com\n');
  });

  it('requires a login for every subcommand', async () => {
    await run(['logout'], makeTestIo({ home: login.home.path }));
    for (const args of [[], ['add', 'a.b'], ['check', 'a.b'], ['show', 'a.b'], ['remove', 'a.b', '--yes']]) {
      const { code, io } = await domains(args);
      expect([code, io.err()]).toEqual([3, expect.stringContaining('not signed in.')]);
    }
  });
});

describe('`tunnel domains add`', () => {
  it('prints the DNS records to create in columns, and the next command', async () => {
    const { code, io } = await domains(['add', 'shop.example.com']);
    expect([code, io.out().split('\n')]).toEqual([
      0,
      [
        'shop.example.com: pending',
        '',
        'Create these records at your DNS provider:',
        '  TYPE   NAME              VALUE                                     FOR',
        '  CNAME  shop.example.com  k3v7q2m5x4n6p7r2t3wa.tunnels.example.net  proof and route  missing',
        '',
        'The server checks automatically. New records can take a few minutes to appear.',
        '  Check now: tunnel domains check shop.example.com',
        '',
      ],
    ]);
  });

  it.each([
    ['Shop.Example.COM.', { name: 'shop.example.com' }],
    ['bücher.example', { name: 'xn--bcher-kva.example' }],
    ['*.Bücher.example', { name: '*.xn--bcher-kva.example' }],
  ])('normalizes the name %s before sending it', async (typed, body) => {
    await domains(['add', typed]);
    expect(JSON.parse(platform.asks[0]?.body ?? '')).toEqual(body);
  });

  it("sends --no-certificate, and --json prints the platform's answer", async () => {
    const { io } = await domains(['add', 'shop.example.com', '--no-certificate', '--json']);
    expect(JSON.parse(platform.asks[0]?.body ?? '')).toEqual({ name: 'shop.example.com', certificate: false });
    expect(JSON.parse(io.out())).toEqual({ ...DOMAIN, certificate: null });
  });

  it('also shows an international name in Unicode', async () => {
    expect((await domains(['add', 'bücher.example'])).io.out()).toContain('xn--bcher-kva.example (bücher.example): ');
  });

  it.each([
    [400, 'DOMAIN_INVALID', "domain 'localhost' is not valid: it has one label", 'Use a host name that you own'],
    [403, 'DOMAIN_LIMIT', 'domain limit of 3 reached', 'Remove an unused domain (`tunnel domains remove'],
  ])("exits with 2 on %i %s, with the platform's message and the next step", async (status, code, error, next) => {
    platform.trap('/domains', status, refusal(code, error));
    const ran = await domains(['add', 'shop.example.com']);
    expect([ran.code, ran.io.err()]).toEqual([2, expect.stringContaining(error)]);
    expect(ran.io.err()).toContain(next);
  });
});

describe('`tunnel domains add --wait`', () => {
  /** Sets the result of each check of the domain. The last result repeats. */
  const looks = (...found: object[]): void => {
    let at = 0;
    platform.onDomainLook = (domain) => {
      Object.assign(domain, found[Math.min(at, found.length - 1)]);
      at += 1;
    };
  };

  it('reports each step once, and exits with 0 when the certificate is valid', async () => {
    const ordering = { ...DOMAIN.certificate, state: 'ordering' };
    looks(
      { last_error: 'no record with the token was found' },
      { last_error: null, state: 'verified', records: VERIFIED.records, certificate: ordering },
      { certificate: VALID },
    );
    const { code, io } = await domains(['add', 'shop.example.com', '--wait']);
    expect(code).toBe(0);
    expect(io.out().split('\n').slice(8)).toEqual([
      '',
      'Waiting for shop.example.com. Press Ctrl-C to stop waiting; the domain stays added.',
      '  pending: no record with the token was found',
      '  found: CNAME shop.example.com',
      '  verified',
      '  issuing certificate',
      expect.stringMatching(/^ {2}certificate valid until 2030-0/),
      '  Use it: tunnel http 3000 --domain shop.example.com',
      '',
    ]);
    // The first check is requested at once, because the user is waiting.
    expect(platform.paths().slice(0, 3)).toEqual(['POST /domains', 'POST /domains/dom-1/check', 'GET /domains/dom-1']);
  });

  it('waits for no certificate with --no-certificate', async () => {
    looks({ state: 'verified', records: VERIFIED.records });
    const { code, io } = await domains(['add', 'shop.example.com', '--no-certificate', '--wait', '--json']);
    expect([code, JSON.parse(io.out())]).toEqual([0, { ...VERIFIED, certificate: null }]);
  });

  it('exits with 1 when the check fails, and checks again a domain that had failed before', async () => {
    platform.domains = [{ ...DOMAIN, state: 'failed' }];
    looks({ state: 'pending' }, { state: 'failed', last_error: 'no record with the token was found' });
    const { code, io } = await domains(['add', 'shop.example.com', '--wait']);
    expect([code, io.out()]).toEqual([1, expect.stringContaining('  failed: no record with the token was found\n')]);
  });

  it('keeps waiting when the platform is briefly away or has checked a moment ago', async () => {
    looks({}, VERIFIED);
    platform.trap('/domains/dom-1/check', 429, refusal('DOMAIN_CHECK_TOO_SOON', 'too soon'));
    platform.trap('/domains/dom-1', 503, refusal('DATABASE_AWAY', 'the database is away'));
    const { code } = await domains(['add', 'shop.example.com', '--wait']);
    expect(code).toBe(0);
  });

  it('exits with 130 on Ctrl-C, and the domain stays added', async () => {
    const { io, code } = start(['add', 'shop.example.com', '--wait']);
    await eventually(() => expect(platform.paths()).toContain('GET /domains/dom-1'));
    io.signal('SIGINT');
    expect([await code, io.err(), platform.domains.length]).toEqual([130, '', 1]);
  });

  it('stops on Ctrl-C between two checks without checking again', async () => {
    const clock: Clock = {
      ...quick,
      setTimeout: (callback, ms) => {
        if (ms !== DOMAIN_LOOK_EVERY_MS) return systemClock.setTimeout(callback, ms);
        queueMicrotask(() => io.signal('SIGINT'));
        return { cancel: () => {} };
      },
    };
    const { io, code } = start(['add', 'shop.example.com', '--wait'], { clock });
    expect(await code).toBe(130);
    expect(platform.paths()).not.toContain('GET /domains/dom-1');
  });
});

describe('`tunnel domains show` and `check`', () => {
  beforeEach(() => {
    platform.domains = [
      {
        ...VERIFIED,
        checked_at: '2030-01-02T00:00:00.000Z',
        certificate: { ...VALID, state: 'failing', last_error: 'the CA said no' },
      },
      {
        ...DOMAIN,
        id: 'dom-2',
        name: 'example.com',
        last_error: 'no record with the token was found',
        records: [
          { type: 'A', name: 'example.com', value: '203.0.113.7', purpose: 'route', found: true },
          { type: 'TXT', name: '_tunnel.example.com', value: 'tunnel-verify=k3v7', purpose: 'proof', found: false },
        ],
      },
      { ...DOMAIN, id: 'dom-3', name: '*.shop.example.com', wildcard: true, state: 'lapsed' },
    ];
  });

  it('show the certificate of a verified domain and its last error', async () => {
    const { io } = await domains(['show', 'SHOP.example.com.']);
    expect(io.out()).toMatch(/^shop\.example\.com: verified, checked 2030-01-0/);
    expect(io.out()).toMatch(
      / proof and route {2}✓ found\n\nCertificate: .*failing; .*\n {2}the CA said no\n {2}Use it: /,
    );
  });

  it('show the missing DNS records of a pending domain', async () => {
    const { io } = await domains(['show', 'example.com']);
    expect(io.out().split('\n')).toEqual(
      expect.arrayContaining([
        '  no record with the token was found',
        '  A     example.com          203.0.113.7         route  ✓ found',
        '  TXT   _tunnel.example.com  tunnel-verify=k3v7  proof  missing',
      ]),
    );
  });

  it('show how to recover a lapsed domain', async () => {
    const { io } = await domains(['show', '*.shop.example.com']);
    expect(io.out()).toContain("  Once the records exist: tunnel domains check '*.shop.example.com'\n");
  });

  it('check at once with `check`, and show the result', async () => {
    platform.onDomainLook = (domain) => Object.assign(domain, VERIFIED, { id: 'dom-2', name: 'example.com' });
    const { code, io } = await domains(['check', 'example.com']);
    expect([code, platform.paths()]).toEqual([0, ['GET /domains', 'POST /domains/dom-2/check']]);
    expect(io.out()).toContain('example.com: verified');
    expect((await domains(['check', 'example.com', '--json'])).io.out()).toBe(
      `${JSON.stringify(platform.domains[1])}\n`,
    );
  });

  it('retry a check that came too soon, and give up after a few attempts', async () => {
    const soon = refusal('DOMAIN_CHECK_TOO_SOON', 'looked at a moment ago: try again in 5 s');
    for (let times = 0; times < 2; times += 1) platform.trap('/domains/dom-2/check', 429, soon);
    const { code, io } = await domains(['check', 'example.com']);
    expect([code, io.err()]).toEqual([0, 'The domain was checked a moment ago. Checking again in a few seconds.\n']);
    for (let times = 0; times < 4; times += 1) platform.trap('/domains/dom-2/check', 429, soon);
    const given = await domains(['check', 'example.com']);
    expect([given.code, given.io.err()]).toEqual([2, expect.stringContaining('try again in 5 s')]);
  });

  it.each([
    ['shpo.example.com', "you have no domain 'shpo.example.com'. Did you mean shop.example.com?"],
    ['Elsewhere.test', "you have no domain 'elsewhere.test'. Add it: `tunnel domains add elsewhere.test`."],
  ])('refuse the unknown domain %s with a suggestion', async (typed, words) => {
    for (const args of [
      ['show', typed],
      ['check', typed],
      ['remove', typed, '--yes'],
    ]) {
      const { code, io } = await domains(args);
      expect([code, io.err()]).toEqual([2, `tunnel: ${words}\n`]);
    }
  });
});

describe('`tunnel domains remove`', () => {
  beforeEach(() => {
    platform.domains = [
      { ...VERIFIED, active_tunnels: 1 },
      { ...DOMAIN, id: 'dom-2', name: 'xn--bcher-kva.example' },
    ];
  });
  const left = (): unknown[] => platform.domains.map(({ id }) => id);

  it.each([
    ['shop.example.com', 'shop.example.com\r', 'Removed shop.example.com. Also delete its DNS records', ['dom-2']],
    ['Shop.Example.com', ' SHOP.example.com. \r', 'Removed shop.example.com.', ['dom-2']],
    ['bücher.example', 'Bücher.example\r', 'Removed xn--bcher-kva.example.', ['dom-1']],
    ['shop.example.com', 'y\r', 'Nothing removed.\n', ['dom-1', 'dom-2']],
  ])('%s asks to type the name at a terminal: %j', async (typed, answer, out, ids) => {
    const { code, io } = await domains(['remove', typed], { stdin: typing(answer) });
    expect([code, io.out(), left()]).toEqual([0, expect.stringContaining(out), ids]);
    expect(io.err()).toMatch(
      /^Remove \S+\? (1 open tunnel closes\. )?The certificate and its private key are destroyed\.\n/,
    );
  });

  it('requires --yes without a terminal', async () => {
    const { code, io } = await domains(['remove', 'shop.example.com']);
    expect([code, io.err(), platform.asks]).toEqual([
      2,
      'tunnel: this command needs a terminal. Add --yes to confirm.\n',
      [],
    ]);
    expect((await domains(['remove', 'shop.example.com', '--yes'])).code).toBe(0);
    expect(left()).toEqual(['dom-2']);
  });
});
