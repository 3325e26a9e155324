// A complete billing story over HTTP and the command line: an account below the minimum charge, and an account above it. All tests of the
// folder share the end of the month, so the story continues afterwards.
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { eventually } from '@tunnel/testkit';
import { expect, it } from 'vitest';
import { runTunnel } from '../../system/computer.fixture.ts';
import { openWith } from '../../system/platform-test.fixture.ts';
import { fateOf, visit } from '../../system/visitor.fixture.ts';
import { newEmail, PASSWORD, type Person } from '../platform/platform-harness.fixture.ts';
import { type BillingHarness, CENT, SOON } from './billing-harness.fixture.ts';

/** Bytes that an edge reports at first: one byte less than a cent pays for. Bytes that reach the cap are still carried. */
const TOLD_BYTES = CENT - 1;
const VISIT_BYTES = 1_000_000;

export class Story {
  readonly #harness: BillingHarness;
  #people: { below: Person; above: Person } | undefined;

  constructor(harness: BillingHarness) {
    this.#harness = harness;
  }

  untilTheMonthEnds(): void {
    it(
      'an account signs up, subscribes, reaches its spend cap (the client exits with 6) and works again without the cap',
      () => this.#live(),
      180_000,
    );
  }

  /** The invoice is the larger of 300 cents and the usage, to the cent. */
  afterTheMonth(): void {
    it('the invoice is the larger of 300 cents and the usage', async () => {
      const harness = this.#harness;
      if (this.#people === undefined) throw new Error('the story has no beginning');
      const { below, above } = this.#people;
      const small = await harness.invoiceWhen(below, 'paid');
      const large = await harness.invoiceWhen(above, 'paid');
      expect([small.total, small.amount_paid]).toEqual([300, 300]);
      expect([large.total, large.amount_paid]).toEqual([456, 456]);
      expect(await reportedBytes(harness, below)).toBe(TOLD_BYTES + 2 * VISIT_BYTES);
      expect(await reportedBytes(harness, above)).toBe(45_678_901_234);
    });
  }

  async #live(): Promise<void> {
    const harness = this.#harness;
    // Step 1: the account registers, verifies its address and signs in.
    const email = newEmail('story');
    expect((await harness.post('/auth/register', { email, password: PASSWORD })).status).toBe(201);
    expect((await harness.get(`/auth/verify-email/${await harness.mailedToken(email)}`)).status).toBe(200);
    const person = await harness.enter(email);
    const home = await harness.folder();
    const tunnel = async (args: readonly string[], input = ''): Promise<string> => {
      const { code, out, err } = await runTunnel(home, args, input);
      expect([code, err]).toEqual([0, '']);
      return out;
    };
    await tunnel(['login', '--platform', harness.url, '--email', email, '--password-stdin', '--no-key'], PASSWORD);
    expect(await tunnel(['billing'])).toContain('plan free: free of charge');

    // Step 2: the account adds a payment method. The simulator stands in for the browser.
    expect((await harness.order('subscribe', person)).status).toBe(400);
    const intent = await harness.clientSecret(person);
    expect((await harness.sim(`setup_intents/${intent}/confirm`)).status).toBe(200);
    const started = await harness.subscribe(person);
    expect(started).toMatchObject({ status: 'active', plan: 'payg' });
    expect(await harness.subscribe(person)).toEqual(started);
    expect((await harness.billing(person)).estimated_mtd_cents).toBe(300);

    // Step 3: the account has traffic, and a different account has much more.
    const above = await harness.payer();
    await harness.reportUsage(above, 45_678_901_234);
    expect((await harness.billing(above)).estimated_mtd_cents).toBe(456);
    await harness.reportUsage(person, TOLD_BYTES);
    const service = harness.use(await startSource(Buffer.alloc(VISIT_BYTES, 'traffic ')));
    const key = await harness.newKey(person);
    const live = await openWith(harness, harness.server, key, ['tcp', service.port]);
    const { assigned_port: port } = await live.ready();
    expect(await readAll(port)).toBe(VISIT_BYTES);
    await meteredWhen(harness, person, TOLD_BYTES + VISIT_BYTES);
    expect((await harness.billing(person)).estimated_mtd_cents).toBe(300);

    // Step 4: a cap of one cent has been reached, so the live tunnel is closed and a new one rejected.
    expect(live.exit).toBeNull();
    expect(await tunnel(['billing', 'cap', '0.01'])).toBe('Spend cap: $0.01 a month.\n');
    expect(await live.exitCode()).toBe(6);
    expect(live.stdout.join('\n')).toContain('spend cap of $0.01 reached');
    expect(await fateOf(port)).toBe('ECONNREFUSED');
    const refused = await openWith(harness, harness.server, key, ['tcp', service.port]);
    expect(await refused.exitCode()).toBe(6);
    expect(said(refused)).toContain('spend cap of $0.01 reached');
    expect(refused.events('ready')).toEqual([]);

    // Step 5: the cap is removed, and a tunnel works at once.
    expect(await tunnel(['billing', 'cap', 'none'])).toBe('No spend cap.\n');
    const again = await openWith(harness, harness.server, key, ['tcp', service.port]);
    expect(await readAll((await again.ready()).assigned_port)).toBe(VISIT_BYTES);
    await meteredWhen(harness, person, TOLD_BYTES + 2 * VISIT_BYTES);

    this.#people = { below: person, above };
  }
}

const said = ({ stdout, stderr }: { stdout: readonly string[]; stderr: readonly string[] }): string =>
  [...stdout, ...stderr].join('\n');

/** Starts a service that sends the bytes and a FIN to every connection. */
const startSource = async (bytes: Buffer): Promise<{ port: number; close(): Promise<void> }> => {
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.end(bytes);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
};

const readAll = async (port: number): Promise<number> => {
  const socket = await visit(port);
  let bytes = 0;
  for await (const piece of socket as AsyncIterable<Buffer>) bytes += piece.length;
  return bytes;
};

const meteredWhen = (harness: BillingHarness, person: Person, bytes: number): Promise<void> =>
  eventually(async () => {
    const rows = await harness.db.selectFrom('metered_usage').selectAll().where('user_id', '=', person.id).execute();
    expect(rows.map((row) => row.bytes)).toEqual([bytes]);
  }, SOON);

const reportedBytes = async (harness: BillingHarness, person: Person): Promise<number> => {
  const events = await harness.db.selectFrom('meter_events').selectAll().where('user_id', '=', person.id).execute();
  expect(events.every(({ sent_at }) => sent_at !== null)).toBe(true);
  return events.reduce((sum, { bytes }) => sum + bytes, 0);
};
