import type { ApiError, PublicKeys } from '@tunnel/contract';
import { eventually } from '@tunnel/testkit';
import {
  createLocalJWKSet,
  decodeProtectedHeader,
  generateKeyPair,
  importJWK,
  type JSONWebKeySet,
  type JWK,
  jwtVerify,
  SignJWT,
} from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  openPrivateKey,
  rotateSigningKeys,
  SIGNING_KEY_RETIRED_MS,
  signingKeyRows,
} from '../../../services/auth/signing-key-store.ts';
import { SIGNING_KEYS_KNOWN_MS } from '../../../services/auth/signing-keys.ts';
import { type AccountsFixture, MASTER_KEY, MASTER_KEY_SOURCE, openAccounts } from '../../auth/accounts.fixture.ts';

let fixture: AccountsFixture;
let bearer: Record<string, string>;
let userId: string;
const email = 'ann@example.com';

beforeAll(async () => {
  fixture = await openAccounts();
  await fixture.signUp(email);
  ({ bearer } = await fixture.logIn(email));
  userId = ((await (await me(bearer)).json()) as { id: string }).id;
});
afterAll(() => fixture.close());

const me = (headers: Record<string, string>, at: AccountsFixture = fixture) =>
  at.ask('GET', '/auth/me', undefined, headers);
const codeOf = async (answer: Response): Promise<[number, string]> => [
  answer.status,
  ((await answer.json()) as ApiError).code,
];
const tokenOf = (headers: Record<string, string>): string => headers['authorization']?.slice('Bearer '.length) ?? '';

const publishedKeys = async (): Promise<PublicKeys> =>
  (await (await fixture.ask('GET', '/.well-known/jwks.json')).json()) as PublicKeys;

/** Advances the clock until a response that waits for the clock has arrived. */
const overTime = async <T>(work: Promise<T>, { clock } = fixture): Promise<T> => {
  let isOver = false;
  void work.finally(() => {
    isOver = true;
  });
  await eventually(async () => {
    await clock.advance(100);
    expect(isOver).toBe(true);
  });
  return work;
};

/** Creates a token with a valid signature and claims chosen by the test. */
const forge = async (
  changes: Record<string, unknown>,
  header: Record<string, unknown> = {},
  key?: JWK,
): Promise<string> => {
  const [row] = await signingKeyRows(fixture.database.db, fixture.clock.now());
  const kid = row?.kid ?? '';
  const privateKey = await importJWK(key ?? openPrivateKey(MASTER_KEY, row!), 'EdDSA');
  const now = Math.floor(fixture.clock.now() / 1000);
  const claims = {
    iss: 'http://localhost:8080',
    aud: 'tunnel-platform',
    sub: userId,
    iat: now,
    exp: now + 900,
    jti: 'jwt_1',
    epoch: 0,
    ...changes,
  };
  return new SignJWT(claims).setProtectedHeader({ alg: 'EdDSA', kid, ...header }).sign(privateKey);
};

describe('access tokens', () => {
  it('verify against the published keys', async () => {
    const keys = await publishedKeys();
    expect(keys.keys).toEqual([
      { kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid: expect.any(String), alg: 'EdDSA', use: 'sig' },
    ]);
    const { payload } = await jwtVerify(tokenOf(bearer), createLocalJWKSet(keys as JSONWebKeySet), {
      issuer: 'http://localhost:8080',
      algorithms: ['EdDSA'],
      currentDate: new Date(fixture.clock.now()),
    });
    expect(payload.sub).toBe(userId);
  });

  it('are read according to RFC 6750, with the scheme in any case', async () => {
    expect((await me({ authorization: `bearer ${tokenOf(bearer)}` })).status).toBe(200);
    expect(await codeOf(await me({}))).toEqual([401, 'ACCESS_TOKEN_MISSING']);
    for (const authorization of [
      '',
      'Bearer',
      'Bearer ',
      'Basic YTpi',
      tokenOf(bearer),
      `Bearer ${'a'.repeat(9000)}`,
    ]) {
      expect((await me({ authorization })).status).toBe(401);
    }
  });

  it('are rejected if altered, and API keys are named as such in the error', async () => {
    expect((await me({ authorization: `Bearer ${await forge({})}` })).status).toBe(200);
    const [head = '', body = '', signature = ''] = tokenOf(bearer).split('.');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    const asHmac = Buffer.from('{"alg":"HS256"}').toString('base64url');
    const tampered = [
      `${head}.${body}.${signature.slice(0, -4)}AAAA`,
      `${head}.${Buffer.from(body, 'base64url').toString('base64url').slice(0, -3)}AAA.${signature}`,
      `${none}.${body}.`,
      `${asHmac}.${body}.${signature}`,
      `${head}.${body}`,
    ];
    for (const token of tampered) {
      expect(await codeOf(await me({ authorization: `Bearer ${token}` }))).toEqual([401, 'ACCESS_TOKEN_INVALID']);
    }
    // The error identifies an API key as such, whether the key is valid or not.
    const ofKey = await codeOf(await me({ authorization: 'Bearer tnl_never-made-here' }));
    expect(ofKey).toEqual([401, 'ACCESS_TOKEN_IS_API_KEY']);
  });

  it.each([
    ['another issuer', { iss: 'http://evil.example' }],
    ['another audience', { aud: 'other' }],
    ['no epoch', { epoch: undefined }],
    ['an epoch that is no number', { epoch: '0' }],
    ['another epoch', { epoch: 1 }],
    ['no end', { exp: undefined }],
    ['no id', { jti: undefined }],
    ['a user that is no id', { sub: 'x' }],
    ['a user that is not there', { sub: '00000000-0000-4000-8000-000000000000' }],
    ['an end in the past', { exp: 1 }],
  ])('are rejected with %s', async (_what, changes) => {
    expect((await me({ authorization: `Bearer ${await forge(changes)}` })).status).toBe(401);
  });

  it('are rejected if signed with an unknown key', async () => {
    const { privateKey } = await generateKeyPair('EdDSA', { extractable: true });
    const token = await new SignJWT({ epoch: 0, sub: userId })
      .setProtectedHeader({ alg: 'EdDSA', kid: 'mine' })
      .sign(privateKey);
    const answer = me({ authorization: `Bearer ${token}` });
    // The unknown key is looked up in the database, at most once a second.
    expect((await overTime(answer)).status).toBe(401);
  });

  it('expire after 15 minutes, even if cached', async () => {
    const session = await fixture.logIn(email);
    await fixture.clock.advance(899_000);
    expect((await me(session.bearer)).status).toBe(200);
    await fixture.clock.advance(1000);
    expect(await codeOf(await me(session.bearer))).toEqual([401, 'ACCESS_TOKEN_INVALID']);
  });

  it('are rejected with 403 within two seconds of a suspension, and work again after its end', async () => {
    const session = await fixture.logIn(email);
    expect((await me(session.bearer)).status).toBe(200);
    await fixture.setUser(email, { status: 'suspended' });
    await fixture.clock.advance(2000);
    expect(await codeOf(await me(session.bearer))).toEqual([403, 'ACCOUNT_SUSPENDED']);
    await fixture.setUser(email, { status: 'active' });
    await fixture.clock.advance(2000);
    expect((await me(session.bearer)).status).toBe(200);
  });

  it('query the database at most once in two seconds', async () => {
    const session = await fixture.logIn(email);
    await fixture.clock.advance(2000);
    let queries = 0;
    const query = fixture.database.pool.on('acquire', () => (queries += 1));
    await Promise.all(Array.from({ length: 20 }, () => me(session.bearer)));
    await me(session.bearer);
    expect(queries).toBe(1);
    query.removeAllListeners('acquire');
  });
});

describe('signing keys', () => {
  const rotate = (): Promise<string> => {
    const { database, clock } = fixture;
    const operator = { kind: 'operator', name: 'root' } as const;
    return rotateSigningKeys({ db: database.db, clock }, operator, MASTER_KEY_SOURCE, { discardOld: false });
  };
  const kidOf = (headers: Record<string, string>): string => decodeProtectedHeader(tokenOf(headers)).kid ?? '';

  it('are shared by concurrently started processes, so that tokens work at every process', async () => {
    const first = await openAccounts();
    const second = await openAccounts({ beside: first });
    await Promise.all([first.signingKeys.current(), second.signingKeys.current()]);
    expect(await first.database.db.selectFrom('signing_keys').select('kid').execute()).toHaveLength(1);
    await first.signUp('bob@example.com');
    expect((await me((await first.logIn('bob@example.com')).bearer, second)).status).toBe(200);
    await first.close();
  });

  it("rotate: the new key signs, the old key's tokens work for another hour, and other processes follow", async () => {
    const old = (await fixture.logIn(email)).bearer;
    const beside = await openAccounts({ beside: fixture });
    expect((await me(old, beside)).status).toBe(200);
    const [signing] = await signingKeyRows(fixture.database.db, fixture.clock.now());
    const keptKey = openPrivateKey(MASTER_KEY, signing!);
    const kid = await rotate();
    const fresh = await openAccounts({ beside: fixture });
    const signed = (await fresh.logIn(email)).bearer;
    expect(kidOf(signed)).toBe(kid);
    // This process has cached the old keys a moment ago.
    expect((await overTime(me(signed, beside))).status).toBe(200);
    expect((await me(old, beside)).status).toBe(200);
    await fixture.clock.advance(SIGNING_KEYS_KNOWN_MS);
    expect((await publishedKeys()).keys.map((key) => key.kid)).toEqual([kid, kidOf(old)]);
    expect(kidOf((await fixture.logIn(email)).bearer)).toBe(kid);
    const endless = await forge({ exp: 9_999_999_999 }, { kid: kidOf(old) }, keptKey);
    expect((await me({ authorization: `Bearer ${endless}` })).status).toBe(200);
    await fixture.clock.advance(SIGNING_KEY_RETIRED_MS);
    expect((await overTime(me({ authorization: `Bearer ${endless}` }))).status).toBe(401);
    expect((await publishedKeys()).keys.map((key) => key.kid)).toEqual([kid]);
  });

  it('can rotate repeatedly under load without any rejected token', async () => {
    const beside = await openAccounts({ beside: fixture });
    const refused: number[] = [];
    let over = false;
    const visitor = async (at: AccountsFixture, other: AccountsFixture): Promise<void> => {
      while (!over) {
        const { bearer: own } = await at.logIn(email);
        for (const server of [other, at]) {
          const { status } = await me(own, server);
          if (status !== 200) refused.push(status);
        }
      }
    };
    const visitors = Promise.all([visitor(fixture, beside), visitor(beside, fixture), visitor(fixture, beside)]);
    for (let n = 0; n < 10; n += 1) {
      await rotate();
      // Advances the clock in steps, so that the processes read the keys at various times after the rotation.
      for (let step = 0; step < 30; step += 1) {
        await fixture.clock.advance(100 + 17 * n);
        await new Promise((resolve) => setImmediate(resolve));
      }
    }
    over = true;
    await overTime(visitors);
    expect(refused).toEqual([]);
  });

  it('reject their tokens within a minute of removal, including cached tokens', async () => {
    const own = await openAccounts();
    await own.signUp('eve@example.com');
    const known = (await own.logIn('eve@example.com')).bearer;
    expect((await me(known, own)).status).toBe(200);
    await own.database.db.deleteFrom('signing_keys').execute();
    await own.clock.advance(60_000);
    expect(await codeOf(await overTime(me(known, own), own))).toEqual([401, 'ACCESS_TOKEN_INVALID']);
    expect((await me((await own.logIn('eve@example.com')).bearer, own)).status).toBe(200);
    await own.close();
  });
});
