// Certificates of a platform over real sockets: a certificate authority that validates challenges, a database, and the platform as
// started in production.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import { openChallengeDoors } from '../../../../../packages/certificates/src/acme/keeper/challenge-doors.fixture.ts';
import { type CertificatesFixture, DOMAIN, fastClock, openCertificates } from './platform-certificates.fixture.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

let fixture: CertificatesFixture;

afterEach(() => fixture.close());

const patience = { timeoutMs: 45_000 };

const namesOrdered = (): string[] => fixture.authority.orders.flatMap(({ names }) => names).sort();

/** Ends all leases of certificates, as if the lease time had passed. */
const endLeases = (): Promise<unknown> =>
  fixture.database.db.updateTable('certificates').set({ locked_until: null }).execute();

const tryNow = (): Promise<unknown> =>
  fixture.database.pool.query(
    `update certificates set life = jsonb_set(life, '{tryAt}', '0'), due_at = to_timestamp(0) where locked_until is null`,
  );

describe('certificate orders', () => {
  it("cover the server domain, the platform's host and verified domains, but no pending or lapsed domains", async () => {
    fixture = await openCertificates(await openChallengeDoors());
    const user = await fixture.addUser();
    await fixture.addDomain(user, 'shop.example');
    await fixture.addDomain(user, 'pending.example', 'pending');
    await fixture.addDomain(user, 'lapsed.example', 'lapsed');
    const certificates = fixture.start({ platform: { public_url: 'https://console.example', tls: true } });
    for (const name of [DOMAIN, 'console.example', 'shop.example']) await fixture.issued(name);
    expect(namesOrdered()).toEqual(['console.example', 'shop.example', DOMAIN]);
    expect(await certificates.kept?.store.findChallenge({ tlsName: DOMAIN }, 0)).toBeNull();
    expect((await fixture.of('shop.example'))?.accountId).toBe(user);
    const { rows } = await fixture.database.pool.query<{ user_id: string | null; names: string }>(
      `select user_id, details -> 'names' ->> 0 as names from audit_log where action = 'certificate.issued'`,
    );
    expect(rows.find(({ names }) => names === 'shop.example')?.user_id).toBe(user);
    expect(rows).toHaveLength(3);
  });

  it("follow within seconds for a newly verified domain; a removed domain's certificate is deleted and edges notified", async () => {
    fixture = await openCertificates(await openChallengeDoors());
    fixture.start();
    await fixture.issued(DOMAIN);
    const { db } = fixture.database;
    await fixture.addDomain(await fixture.addUser(), 'shop.example');
    await db.insertInto('edge_changes').values({ kind: 'domain-changed', domain: 'shop.example' }).execute();
    const { id } = await fixture.issued('shop.example');
    await db.deleteFrom('own_domains').execute();
    await db.insertInto('edge_changes').values({ kind: 'domain-changed', domain: 'shop.example' }).execute();
    await eventually(async () => expect(await fixture.of('shop.example')).toBeUndefined(), patience);
    const told = db.selectFrom('edge_changes').select('id').where('certificate_id', '=', id);
    expect((await told.execute()).length).toBeGreaterThan(1);
  });

  it("wait until the stack's own edge has opened its ports", async () => {
    fixture = await openCertificates(await openChallengeDoors());
    let url: string | null = null;
    let looks = 0;
    const edgeUrl = (): string | null => {
      looks += 1;
      return url;
    };
    await fixture.startPlatform({ edgeUrl });
    await eventually(() => expect(looks).toBeGreaterThan(5), patience);
    expect([fixture.authority.calls, await fixture.of(DOMAIN)]).toEqual([[], undefined]);
    url = 'http://127.0.0.1:1';
    await fixture.issued(DOMAIN);
  });

  it('are paused for a lapsed domain, which keeps its certificate, until it is verified again', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    await fixture.addDomain(await fixture.addUser(), 'shop.example');
    fixture.start();
    await fixture.issued('shop.example');
    const setState = async (state: 'lapsed' | 'verified'): Promise<void> => {
      await fixture.database.db.updateTable('own_domains').set({ state }).execute();
      await fixture.database.db.insertInto('edge_changes').values({ kind: 'domain-changed' }).execute();
    };
    const suspended = (is: boolean) =>
      eventually(async () => expect((await fixture.of('shop.example'))?.isSuspended).toBe(is), patience);
    await setState('lapsed');
    await suspended(true);
    expect((await fixture.of('shop.example'))?.certificate).not.toBeNull();
    await setState('verified');
    await suspended(false);
  });

  it('end for a removed domain that moved between accounts, although it lapsed for the other account', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    const before = await fixture.addUser();
    const after = await fixture.addUser();
    await fixture.addDomain(before, 'shop.example');
    fixture.start();
    await fixture.issued('shop.example');
    const { db } = fixture.database;
    await db.updateTable('own_domains').set({ state: 'lapsed' }).execute();
    await fixture.addDomain(after, 'shop.example');
    await db.insertInto('edge_changes').values({ kind: 'domain-changed' }).execute();
    await eventually(async () => expect((await fixture.of('shop.example'))?.accountId).toBe(after), patience);
    await db.deleteFrom('own_domains').where('user_id', '=', after).execute();
    await db.insertInto('edge_changes').values({ kind: 'domain-changed' }).execute();
    await eventually(async () => expect(await fixture.of('shop.example')).toBeUndefined(), patience);
  });

  it('cover reserved names without a wildcard, forty a week', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    const user = await fixture.addUser();
    const week = { max: 40, windowMs: 7 * 24 * HOUR };
    for (let index = 0; index < 37; index += 1) {
      await fixture.store.takeFromBudget('names below the domain', week, Date.now(), `another ${index % 5}`);
    }
    for (let index = 0; index < 5; index += 1) await fixture.reserve(user, `name-${index}`);
    await fixture.reserve(user, '*.name-0');
    fixture.start();
    await eventually(() => expect(namesOrdered()).toHaveLength(4), patience);
    const { rows } = await fixture.database.pool.query<{ count: number }>('select count(*) from certificates');
    expect(rows[0]?.count).toBe(4);
    expect(namesOrdered()).not.toContain(`*.name-0.${DOMAIN}`);
  });
});

describe('certificates of names that accounts reserve and release', () => {
  const week = { max: 40, windowMs: 7 * 24 * HOUR };
  const released = async (label: string): Promise<void> => {
    const { db } = fixture.database;
    await db.updateTable('names').set({ state: 'released' }).where('label', '=', label).execute();
    await db.insertInto('edge_changes').values({ kind: 'name-changed' }).execute();
  };

  it('are limited to a quarter of the weekly budget per account, so that another account gets one at once', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    const greedy = await fixture.addUser();
    const modest = await fixture.addUser();
    for (let index = 0; index < 8; index += 1) {
      await fixture.store.takeFromBudget('names below the domain', week, Date.now(), greedy);
    }
    for (let index = 0; index < 5; index += 1) await fixture.reserve(greedy, `greedy-${index}`);
    await fixture.reserve(modest, 'modest');
    fixture.start();
    await fixture.issued(`modest.${DOMAIN}`);
    await eventually(() => expect(namesOrdered()).toHaveLength(4), patience);
    expect(namesOrdered().filter((name) => name.startsWith('greedy'))).toHaveLength(2);
  });

  it('outlive the release of the name without renewal, and serve its next reservation without an order', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    const first = await fixture.addUser();
    const second = await fixture.addUser();
    await fixture.reserve(first, 'shop');
    await fixture.addDomain(first, 'shop.example');
    fixture.start();
    const { id } = await fixture.issued(`shop.${DOMAIN}`);
    await fixture.issued('shop.example');
    await released('shop');
    await eventually(async () => expect((await fixture.of(`shop.${DOMAIN}`))?.isSuspended).toBe(true), patience);
    // The certificate of a removed own domain is deleted.
    await fixture.database.db.deleteFrom('own_domains').execute();
    await fixture.database.db.insertInto('edge_changes').values({ kind: 'domain-changed' }).execute();
    await eventually(async () => expect(await fixture.of('shop.example')).toBeUndefined(), patience);
    await fixture.database.db.deleteFrom('names').execute();
    await fixture.reserve(second, 'shop');
    await fixture.database.db.insertInto('edge_changes').values({ kind: 'name-changed' }).execute();
    const kept = { id, accountId: second, isSuspended: false };
    await eventually(async () => expect(await fixture.of(`shop.${DOMAIN}`)).toMatchObject(kept), patience);
    expect(namesOrdered().filter((name) => name === `shop.${DOMAIN}`)).toHaveLength(1);
  });

  it("never delay the operator's own names", async () => {
    fixture = await openCertificates(await openChallengeDoors());
    const rules = { max: 250, windowMs: 3 * HOUR };
    for (let index = 0; index < 250; index += 1) {
      await fixture.store.takeFromBudget('orders', rules, Date.now(), `account ${index % 5}`);
    }
    fixture.start();
    await fixture.issued(DOMAIN);
  });
});

describe('several platform processes', () => {
  it('order each name once on a shared database', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    const user = await fixture.addUser();
    for (let index = 0; index < 8; index += 1) await fixture.addDomain(user, `d${index}.example`);
    fixture.start();
    fixture.start();
    for (let index = 0; index < 8; index += 1) await fixture.issued(`d${index}.example`);
    await fixture.issued(DOMAIN);
    expect([fixture.authority.orders.length, fixture.authority.accounts.size]).toEqual([9, 1]);
  });

  it("work with clocks an hour apart, because leases use the database's time", async () => {
    fixture = await openCertificates(await openChallengeDoors());
    const user = await fixture.addUser();
    for (let index = 0; index < 6; index += 1) await fixture.addDomain(user, `d${index}.example`);
    fixture.start({ clock: fastClock(HOUR) });
    fixture.start({ clock: fastClock(-HOUR) });
    for (let index = 0; index < 6; index += 1) await fixture.issued(`d${index}.example`);
    await fixture.issued(DOMAIN);
    expect(fixture.authority.orders).toHaveLength(7);
  });
});

describe('with a failing certificate authority', () => {
  it('rejected nonces cost only extra calls', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    fixture.authority.refuseNonceEvery = 2;
    fixture.start();
    await fixture.issued(DOMAIN);
    expect(fixture.authority.orders).toHaveLength(1);
  });

  it.each([
    { title: 'answers 500', answer: { kind: 'status', status: 500 }, why: 'an error on command' },
    { title: 'limits', answer: { kind: 'rate-limited', retryAfter: '3600' }, why: 'too many orders' },
  ] as const)(
    'if the authority $title, orders are retried at the usual pace and the old certificate stays',
    async ({ answer, why }) => {
      fixture = await openCertificates(await openChallengeDoors());
      const { authority } = fixture;
      const before = fixture.start();
      const first = await fixture.issued(DOMAIN);
      await before.stop();
      authority.fail({ on: ['new-order'], times: 1000, answer });
      authority.renewalWindow = { start: Date.now() - 2 * HOUR, end: Date.now() - HOUR };
      fixture.start();
      const failed = await eventually(async () => {
        const found = await fixture.of(DOMAIN);
        expect(found?.life.failures).toBe(1);
        return found;
      }, patience);
      expect(failed?.certificate).toEqual(first.certificate);
      expect(failed?.life.lastError).toContain(why);
      const waitMs = (failed?.life.tryAt ?? 0) - Date.now();
      expect(waitMs).toBeGreaterThan(answer.kind === 'rate-limited' ? 55 * MINUTE : 0.5 * MINUTE);
      expect(authority.count('new-order')).toBe(2);
      const audited = fixture.database.db
        .selectFrom('audit_log')
        .select('details')
        .where('action', '=', 'certificate.failed');
      expect((await audited.execute())[0]?.details).toMatchObject({ names: [DOMAIN], failures: 1 });
    },
  );

  it('a renewal window in the past triggers a renewal at startup, which names the replaced certificate', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    const first = fixture.start();
    const { certificate } = await fixture.issued(DOMAIN);
    await eventually(async () => expect((await fixture.of(DOMAIN))?.life.window).not.toBeNull(), patience);
    await first.stop();
    fixture.authority.renewalWindow = { start: Date.now() - 2 * HOUR, end: Date.now() - HOUR };
    fixture.start();
    await eventually(
      async () => expect((await fixture.of(DOMAIN))?.certificate?.serial).not.toBe(certificate?.serial),
      patience,
    );
    expect(fixture.authority.orders[1]?.replaces).toBe(certificate?.renewalId);
  });

  it('an order that hangs when a platform stops is finished by the next platform', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    fixture.authority.hangs = true;
    const first = fixture.start();
    await eventually(() => expect(fixture.authority.count('finalize')).toBe(1), patience);
    await first.stop();
    fixture.authority.hangs = false;
    await endLeases();
    await tryNow();
    fixture.start();
    await fixture.issued(DOMAIN);
    expect([fixture.authority.orders.length, fixture.authority.count('finalize')]).toEqual([1, 1]);
  });
});

describe('certificate storage and reports', () => {
  it('contain no readable private key in the data directory, the database or the log', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    fixture.start();
    await fixture.issued(DOMAIN);
    const { rows } = await fixture.database.pool.query<{ dump: string }>(
      `select string_agg(row::text, ' ') as dump from (
         select to_jsonb(c) as row from certificates c union all select to_jsonb(a) from acme_accounts a
         union all select to_jsonb(h) from acme_challenges h union all select to_jsonb(u) from audit_log u
       ) all_rows`,
    );
    const files = readdirSync(fixture.folder.path, { recursive: true, encoding: 'utf8' })
      .map((name) => join(fixture.folder.path, name))
      .filter((file) => statSync(file).isFile());
    const texts = [rows[0]?.dump ?? '', ...fixture.lines, ...files.map((file) => readFileSync(file, 'utf8'))];
    expect(texts[0]).toContain('BEGIN CERTIFICATE');
    for (const text of texts) expect(text).not.toMatch(/PRIVATE KEY|"d":/);
    expect(statSync(join(fixture.folder.path, 'certificate-key')).mode & 0o077).toBe(0);
  });

  it('report an unusable key file in one line, order nothing, and keep the platform running', async () => {
    fixture = await openCertificates(await openChallengeDoors());
    const storage_key_file = join(fixture.folder.path, 'short-key');
    writeFileSync(storage_key_file, 'abc', { mode: 0o600 });
    const platform = await fixture.startPlatform({ acme: { storage_key_file } });
    const said = (): string[] => fixture.lines.filter((line) => line.includes('certificates are not being ordered'));
    await eventually(() => expect(said()).toHaveLength(1), patience);
    expect(said()[0]).toContain('short-key cannot be used');
    expect((await fetch(`http://127.0.0.1:${platform.address.port}/health`)).status).toBe(200);
    expect(fixture.authority.calls).toEqual([]);
  });

  it('mail the owner once a day if an expiring certificate fails to renew', async () => {
    fixture = await openCertificates(await openChallengeDoors(), { lifeMs: 2000 });
    const { authority } = fixture;
    const user = await fixture.addUser('ada@example.com');
    await fixture.addDomain(user, 'shop.example');
    // A certificate with a lifetime of two seconds is in its last tenth almost at once.
    authority.renewalWindow = { start: Date.now() + HOUR, end: Date.now() + 2 * HOUR };
    await fixture.startPlatform({ clock: fastClock() });
    await fixture.issued('shop.example');
    authority.fail({ on: ['new-order'], times: 1000, answer: { kind: 'status', status: 500 } });
    const mails = () =>
      fixture.database.db.selectFrom('mail_outbox').select(['recipient', 'subject']).orderBy('created_at').execute();
    await eventually(async () => {
      expect(await mails()).toEqual([
        { recipient: 'ada@example.com', subject: 'The certificate for shop.example expires soon' },
      ]);
    }, patience);
    await eventually(async () => {
      // Skips leased certificates, so that the keeper's own result is stored last.
      await tryNow();
      expect((await fixture.of('shop.example'))?.life.failures).toBeGreaterThan(1);
    }, patience);
    expect(await mails()).toHaveLength(1);
  });
});

it('the metrics show order results, certificate states and the longest wait', async () => {
  fixture = await openCertificates(await openChallengeDoors());
  const platform = await fixture.startPlatform();
  await fixture.issued(DOMAIN);
  const url = `http://127.0.0.1:${platform.address.port}/metrics`;
  const headers = { authorization: 'Bearer the-token-of-the-operator' };
  await eventually(async () => {
    const text = await (await fetch(url, { headers })).text();
    expect(text).toContain('tunnel_acme_orders_total{result="issued"} 1');
    expect(text).toContain('tunnel_certificates{state="valid"} 1');
    expect(text).toMatch(/tunnel_certificate_due_seconds 0\n/);
  }, patience);
});
