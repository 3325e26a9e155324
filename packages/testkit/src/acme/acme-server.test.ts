// The ACME test server accepts nothing less than RFC 8555 requires.
import { request } from 'node:https';
import { exportJWK, FlattenedSign, generateKeyPair, type JWK } from 'jose';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { AcmeServer } from './acme-server.ts';

let server: AcmeServer;

beforeEach(async () => {
  server = await AcmeServer.start({ addressOf: () => null });
});

afterEach(() => server.close());

interface Answer {
  readonly status: number;
  readonly nonce: string;
  readonly type: string;
}

const call = (path: string, body: string | null, contentType = 'application/jose+json'): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const options = {
      method: body === null ? 'GET' : 'POST',
      ca: server.ca,
      agent: false,
      headers: { 'content-type': contentType },
    };
    const sent = request(`${server.url}${path}`, options, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => {
        text += chunk.toString();
      });
      response.on('end', () => {
        const { type = '' } = (text === '' ? {} : JSON.parse(text)) as { type?: string };
        const nonce = String(response.headers['replay-nonce']);
        resolve({ status: response.statusCode ?? 0, nonce, type: type.replace('urn:ietf:params:acme:error:', '') });
      });
    });
    sent.on('error', reject);
    sent.end(body ?? undefined);
  });

const signed = async (
  header: { readonly alg?: string; readonly [key: string]: unknown },
  withJwk = true,
): Promise<string> => {
  const alg = header.alg ?? 'ES256';
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const jwk: JWK = await exportJWK(publicKey);
  const { nonce } = await call('/new-nonce', null);
  const url = `${server.url}/new-account`;
  const jws = await new FlattenedSign(Buffer.from('{"termsOfServiceAgreed":true}'))
    .setProtectedHeader({ nonce, url, ...(withJwk && { jwk }), ...header, alg })
    .sign(privateKey);
  return JSON.stringify(jws);
};

it('the ACME test server accepts a valid request, and each nonce once', async () => {
  const body = await signed({});
  expect(await call('/new-account', body)).toMatchObject({ status: 201 });
  expect(await call('/new-account', body)).toMatchObject({ status: 400, type: 'badNonce' });
});

it.each([
  ['another url', { url: 'https://localhost/other' }, 401, 'unauthorized'],
  ['an unknown nonce', { nonce: 'bm90aGluZw' }, 400, 'badNonce'],
  ['both kid and jwk', { kid: 'x' }, 400, 'malformed'],
  ['another algorithm', { alg: 'ES384' }, 400, 'badSignatureAlgorithm'],
])('the ACME test server refuses %s', async (_title, header, status, type) => {
  expect(await call('/new-account', await signed(header))).toMatchObject({ status, type });
});

it('the ACME test server refuses an unknown kid, an altered body and another content type', async () => {
  const unknown = await signed({ kid: `${server.url}/account/none` }, false);
  expect(await call('/new-account', unknown)).toMatchObject({ type: 'accountDoesNotExist' });
  const changed = { ...(JSON.parse(await signed({})) as object), payload: Buffer.from('{}').toString('base64url') };
  expect(await call('/new-account', JSON.stringify(changed))).toMatchObject({ status: 400, type: 'malformed' });
  expect(await call('/new-account', await signed({}), 'application/json')).toMatchObject({ status: 415 });
});
