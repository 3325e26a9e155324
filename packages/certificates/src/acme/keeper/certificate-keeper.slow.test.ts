// The certificate keeper with an authority that fails in every way, on a fake clock that the test advances.
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { createLogger } from '@tunnel/runtime';
import {
  AcmeServer,
  type AcmeServerOptions,
  eventually,
  FakeClock,
  type TemporaryDirectory,
  temporaryDirectory,
} from '@tunnel/testkit';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type AccountOptions, AcmeClient } from '../client/acme-client.ts';
import { CertificateKeeper, type OrderResult } from './certificate-keeper.ts';
import type { CertificateRecord } from './certificate-store.ts';
import { type ChallengeDoors, openChallengeDoors } from './challenge-doors.fixture.ts';
import { type ChallengeSolver, createStoredSolver } from './challenge-solver.ts';
import { FileCertificateStore } from './file-certificate-store.ts';
import { SealedKeys } from './sealed-keys.ts';

const MINUTE = 60_000;

let server: AcmeServer;
let doors: ChallengeDoors;
let folder: TemporaryDirectory;
let clock: FakeClock;
let store: FileCertificateStore;
let keepers: CertificateKeeper[];
let results: OrderResult[];
let lines: string[];

const begin = async (options: Partial<AcmeServerOptions> = {}): Promise<void> => {
  server = await AcmeServer.start({ addressOf: () => ({ host: '127.0.0.1', ...doors }), ...options });
  store = new FileCertificateStore(join(folder.path, 'certificates'), server.directory);
  doors.store = store;
};

beforeEach(async () => {
  folder = await temporaryDirectory();
  doors = await openChallengeDoors();
  clock = new FakeClock(Date.now());
  [keepers, results, lines] = [[], [], []];
});

afterEach(async () => {
  await Promise.all(keepers.map((keeper) => keeper.stop()));
  await server.close();
  await doors.close();
  await folder.close();
});

const http = (): ChallengeSolver => createStoredSolver('http-01', { store, clock });
const tls = (): ChallengeSolver => createStoredSolver('tls-alpn-01', { store, clock });

const output = (): Writable =>
  new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString());
      done();
    },
  });

const startKeeper = (
  solvers: readonly ChallengeSolver[],
  account: Partial<AccountOptions> = {},
  keyFile = 'certificate-key',
) => {
  const keeper = new CertificateKeeper({
    client: new AcmeClient({ directory: server.directory, ca: server.ca, clock }),
    store,
    keys: SealedKeys.open({ file: join(folder.path, keyFile), isGiven: false }),
    solvers,
    email: '',
    ...account,
    clock,
    random: () => 0,
    logger: createLogger({ format: 'json', stream: output() }),
    listener: { onIssued: () => {}, onOrder: (result) => results.push(result), onEnding: () => {} },
  });
  keepers.push(keeper);
  keeper.start();
  return keeper;
};

/** Advances the fake clock while a check is repeated: slower than calls on loopback, faster than real time. */
const inTime = <T>(check: () => T | Promise<T>): Promise<T> =>
  eventually(
    async () => {
      await clock.advance(200);
      return check();
    },
    { timeoutMs: 30_000, intervalMs: 1 },
  );

const record = async (id: string): Promise<CertificateRecord> => (await store.get(id)) as CertificateRecord;

const failedOnce = (id: string): Promise<CertificateRecord> =>
  inTime(async () => {
    const found = await record(id);
    expect(found.life.failures).toBe(1);
    return found;
  });

const issued = (id: string): Promise<void> => inTime(async () => expect((await record(id)).certificate).not.toBeNull());

it.each([
  { title: 'an error', answer: { kind: 'status', status: 500 } },
  { title: 'a cut connection', answer: { kind: 'cut' } },
  { title: 'silence', answer: { kind: 'silence' } },
  { title: 'refused nonces without end', answer: { kind: 'bad-nonce' } },
] as const)('after $title at the first order, the keeper retries after a minute, not earlier', async ({ answer }) => {
  await begin();
  server.fail({ on: ['new-order'], times: answer.kind === 'bad-nonce' ? 6 : 1, answer });
  const { id } = await store.want(['a.example.com']);
  startKeeper([http()]);
  const { life } = await failedOnce(id);
  const calls = server.calls.length;
  await clock.advance(life.tryAt - clock.now() - 1);
  expect([server.calls.length, results]).toEqual([calls, ['failed']]);
  await issued(id);
  expect(server.orders).toHaveLength(1);
});

it('after a rate limit, the keeper waits as long as the authority says', async () => {
  await begin();
  server.fail({ on: ['new-order'], times: 1, answer: { kind: 'rate-limited', retryAfter: '7200' } });
  const { id } = await store.want(['a.example.com']);
  startKeeper([http()]);
  const { life } = await failedOnce(id);
  expect(life.tryAt - clock.now()).toBeGreaterThan(119 * MINUTE);
  expect([results, life.lastError]).toEqual([
    ['rate_limited'],
    'rate limit of the certificate authority reached: too many orders',
  ]);
  await clock.advance(119 * MINUTE);
  expect(server.count('new-order')).toBe(1);
  await clock.advance(MINUTE);
  await issued(id);
});

it('an order that hangs is resumed later, without a second order', async () => {
  await begin();
  server.hangs = true;
  const { id } = await store.want(['a.example.com']);
  startKeeper([http()]);
  const { life } = await failedOnce(id);
  expect(life.lastError).toContain('did not finish the order within 90 s');
  server.hangs = false;
  await clock.advance(MINUTE);
  await issued(id);
  expect([server.orders.length, server.count('finalize')]).toEqual([1, 1]);
});

it('errors while an order is polled do not end the order', async () => {
  await begin();
  const { id } = await store.want(['a.example.com']);
  const solver = http();
  startKeeper([
    {
      ...solver,
      set: async (answer, signal) => {
        await solver.set(answer, signal);
        server.fail({ on: ['authorization'], times: 2, answer: { kind: 'status', status: 503 } });
      },
    },
  ]);
  await issued(id);
  expect([server.orders.length, results]).toEqual([1, ['issued']]);
});

it('after a failed validation, the keeper tries the next challenge type', async () => {
  await begin({ addressOf: () => ({ host: '127.0.0.1', httpPort: 1, tlsPort: doors.tlsPort }) });
  const { id } = await store.want(['a.example.com']);
  startKeeper([http(), tls()]);
  const { life } = await failedOnce(id);
  expect(life.lastError).toContain('could not validate a.example.com with http-01');
  await clock.advance(MINUTE);
  await issued(id);
  expect(server.orders).toHaveLength(2);
});

it('a challenge answer that cannot be published uses up no validation', async () => {
  await begin();
  const { id } = await store.want(['a.example.com']);
  startKeeper([{ ...http(), set: () => Promise.reject(new Error('the record is not seen')) }]);
  const { life } = await failedOnce(id);
  expect(life.lastError).toContain('the record is not seen');
  expect([server.count('challenge'), life.order?.url]).toEqual([0, expect.stringContaining('/order/') as string]);
});

it('two keepers order each name only once', async () => {
  await begin();
  const ids: string[] = [];
  for (let index = 0; index < 10; index += 1) ids.push((await store.want([`n${index}.example.com`])).id);
  startKeeper([http()]);
  startKeeper([http()]);
  for (const id of ids) await issued(id);
  expect([server.orders.length, server.accounts.size]).toEqual([10, 1]);
});

it('orders of one account that never finish do not delay the order of another account', async () => {
  await begin();
  for (let index = 0; index < 10; index += 1) await store.want([`crowd-${index}.example.com`], 'crowd');
  const solver = http();
  const started = new Set<string>();
  startKeeper([
    {
      ...solver,
      set: (answer, signal) => {
        if (!answer.name.startsWith('crowd')) return solver.set(answer, signal);
        started.add(answer.name);
        return new Promise(() => {});
      },
    },
  ]);
  await inTime(() => expect(started.size).toBe(3));
  const { id } = await store.want(['other.example.com'], 'other');
  await issued(id);
  expect(started.size).toBe(3);
});

it('a name claimed while its keeper stops is not ordered, and the next keeper can claim it', async () => {
  await begin();
  await store.want(['a.example.com']);
  const claim = store.claim.bind(store);
  let stopped: Promise<void> | undefined;
  store.claim = async (...given) => {
    const claimed = await claim(...given);
    stopped ??= keeper.stop();
    return claimed;
  };
  const keeper = startKeeper([http()]);
  await eventually(() => expect(stopped).toBeDefined());
  await stopped;
  expect(server.calls).toEqual([]);
  expect(await claim('another', clock.now(), MINUTE, { wildcards: true })).not.toBeNull();
});

it('an account that has used its quarter of the order budget waits, and another account gets its certificate', async () => {
  await begin();
  const rules = { max: 250, windowMs: 180 * MINUTE };
  for (let count = 0; count < 62; count += 1) await store.takeFromBudget('orders', rules, clock.now(), 'greedy');
  const { id: late } = await store.want(['a.example.com'], 'greedy');
  const { id } = await store.want(['b.example.com'], 'modest');
  startKeeper([http()]);
  await issued(id);
  await inTime(async () => expect((await record(late)).life.tryAt).toBeGreaterThan(clock.now() + 170 * MINUTE));
  expect(server.orders).toHaveLength(1);
});

it('when the order budget is used up, the keeper sends nothing to the authority', async () => {
  await begin();
  for (let count = 0; count < 250; count += 1) {
    const rules = { max: 250, windowMs: 180 * MINUTE };
    await store.takeFromBudget('orders', rules, clock.now(), `account ${count % 5}`);
  }
  const { id } = await store.want(['a.example.com'], 'one more');
  startKeeper([http()]);
  await inTime(async () => expect((await record(id)).life.tryAt).toBeGreaterThan(clock.now() + 170 * MINUTE));
  expect([server.calls, (await record(id)).life.failures]).toEqual([[], 0]);
});

it('with the wrong key file, the keeper orders nothing, logs the reason once, and keeps existing certificates', async () => {
  await begin();
  const { id } = await store.want(['a.example.com']);
  const first = startKeeper([http()]);
  await issued(id);
  await first.stop();
  const before = await record(id);
  const { id: other } = await store.want(['b.example.com']);
  startKeeper([http()], {}, 'another-key');
  await inTime(() => expect(lines.join('')).toContain('another-key cannot be used'));
  await clock.advance(30_000);
  expect(lines.filter((line) => line.includes('another-key'))).toHaveLength(1);
  expect([(await record(id)).certificate, (await record(other)).life.failures]).toEqual([before.certificate, 0]);
});

it('an authority that requires external account binding gets it', async () => {
  const eab = { kid: 'operator', hmacKey: Buffer.from('a shared secret of 32 characters').toString('base64url') };
  await begin({ eab });
  const { id } = await store.want(['a.example.com']);
  const without = startKeeper([http()]);
  expect((await failedOnce(id)).life.lastError).toContain('an account of ours is needed');
  await without.stop();
  startKeeper([http()], { eab });
  await clock.advance(MINUTE);
  await issued(id);
});

it('a renewal window in the past causes a renewal that names the replaced certificate', async () => {
  await begin();
  server.renewalRetryAfter = '60';
  const { id } = await store.want(['a.example.com']);
  startKeeper([http()]);
  await inTime(async () => expect((await record(id)).life.window).not.toBeNull());
  const first = (await record(id)).certificate;
  server.renewalWindow = { start: Date.now() - 2 * MINUTE, end: Date.now() - MINUTE };
  await clock.advance(MINUTE);
  await inTime(async () => expect((await record(id)).certificate?.serial).not.toBe(first?.serial));
  expect(server.orders[1]?.replaces).toBe(first?.renewalId);
});

it('a starting keeper asks for renewal information at once, even if the last answer is still valid', async () => {
  await begin();
  const { id } = await store.want(['a.example.com']);
  const first = startKeeper([http()]);
  await inTime(async () => expect((await record(id)).life.window).not.toBeNull());
  await first.stop();
  const { certificate } = await record(id);
  server.renewalWindow = { start: Date.now() - 2 * MINUTE, end: Date.now() - MINUTE };
  startKeeper([http()]);
  await inTime(async () => expect((await record(id)).certificate?.serial).not.toBe(certificate?.serial));
  expect(server.orders[1]?.replaces).toBe(certificate?.renewalId);
});

it('an authority that reports alreadyReplaced gets the order again at once, without `replaces`', async () => {
  await begin();
  const { id } = await store.want(['a.example.com']);
  const keeper = startKeeper([http()]);
  await issued(id);
  const first = (await record(id)).certificate;
  server.fail({ on: ['new-order'], times: 1, answer: { kind: 'already-replaced' } });
  await inTime(async () => expect(await keeper.renew(id)).toBe(true));
  await inTime(async () => expect((await record(id)).certificate?.serial).not.toBe(first?.serial));
  expect([server.orders[1]?.replaces, results]).toEqual([null, ['issued', 'issued']]);
});

it('a rate-limited ACME account is requested only once, even if many names need it', async () => {
  await begin();
  server.fail({ on: ['new-account'], times: 1, answer: { kind: 'rate-limited', retryAfter: '240' } });
  const ids: string[] = [];
  for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) ids.push((await store.want([`${name}.example.com`])).id);
  startKeeper([http()]);
  for (const id of ids) await failedOnce(id);
  expect([server.count('new-account'), new Set(results)]).toEqual([1, new Set(['rate_limited'])]);
  await clock.advance(5 * MINUTE);
  for (const id of ids) await issued(id);
  expect(server.accounts.size).toBe(1);
});

it('bad nonces during account creation do not prevent the next attempt', async () => {
  await begin();
  server.fail({ on: ['new-account'], times: 6, answer: { kind: 'bad-nonce' } });
  const { id } = await store.want(['a.example.com']);
  const keeper = startKeeper([http()]);
  const { life } = await failedOnce(id);
  expect(life.lastError).toContain('nonce');
  await inTime(async () => expect(await keeper.renew(id)).toBe(true));
  await eventually(async () => expect((await record(id)).certificate).not.toBeNull());
  expect(clock.now()).toBeLessThan(life.tryAt);
});
