// REST routes for the certificates of an edge: the operator sees every field of the contract, but never a private key.

import { FileCertificateStore } from '@tunnel/certificates/acme';
import { edgeCertificates } from '@tunnel/contract';
import { createMetrics } from '@tunnel/runtime';
import { temporaryDirectory, testCertificate } from '@tunnel/testkit';
import { afterEach, describe, expect, it } from 'vitest';
import type { EdgeCertificates, KnownCertificate } from '../backend/certificates/edge-certificates.ts';
import { addCertificateSeries } from './certificate-metrics.ts';
import { ADMIN_TOKEN, ALICE_KEY, type RestFixture, startRest } from './rest.fixture.ts';

const NOW = Date.UTC(2030, 0, 1);
const DAY = 86_400_000;

const some = (names: string[], more: Partial<KnownCertificate> = {}): KnownCertificate => ({
  id: names.join(),
  names,
  isOperators: false,
  state: 'valid',
  issuer: 'Test CA',
  notBefore: NOW - DAY,
  notAfter: NOW + DAY,
  renewAt: NOW,
  lastError: null,
  ...more,
});

const KNOWN = [
  some(['tunnels.test'], { isOperators: true }),
  some(['shop.example'], { notAfter: NOW + 2 * DAY }),
  some(['new.example'], {
    state: 'failing',
    issuer: null,
    notBefore: null,
    notAfter: null,
    renewAt: null,
    lastError: 'no such name',
  }),
];

const { cert, key } = testCertificate();
const files = () => ({ cert: Buffer.from(cert), key: Buffer.from(key) });
const acmeCertificates = (renew?: EdgeCertificates['renew']) => ({
  list: async () => KNOWN,
  orders: { issued: 2, failed: 1, rate_limited: 0 },
  ...(renew === undefined ? {} : { renew }),
});

let rest: RestFixture;
afterEach(() => rest?.stop());

const renewed = (name: string, token = ADMIN_TOKEN): Promise<Response> =>
  rest.request('/api/certificates/renew', {
    token,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name }),
  });

describe('GET /api/certificates', () => {
  it('200: lists certificates from files and from ACME, with the fields of the contract and without keys', async () => {
    rest = await startRest({ certificates: { acmeCertificates: acmeCertificates(), files } });
    const response = await rest.request('/api/certificates', { token: ADMIN_TOKEN });
    const text = await response.text();
    expect(text).not.toMatch(/PRIVATE KEY|BEGIN CERTIFICATE/);
    const [file, own, , failing] = edgeCertificates.parse(JSON.parse(text));
    expect(file).toMatchObject({ source: 'file', state: 'valid', renew_at: null });
    expect(own).toEqual({
      names: ['tunnels.test'],
      source: 'acme',
      state: 'valid',
      issuer: 'Test CA',
      not_before: '2029-12-31T00:00:00.000Z',
      not_after: '2030-01-02T00:00:00.000Z',
      renew_at: '2030-01-01T00:00:00.000Z',
      last_error: null,
    });
    expect(failing).toMatchObject({ state: 'failing', not_after: null, last_error: 'no such name' });
  });

  it('403: an API key cannot list or renew certificates', async () => {
    rest = await startRest();
    expect((await rest.request('/api/certificates', { token: ALICE_KEY })).status).toBe(403);
    expect((await renewed('shop.example', ALICE_KEY)).status).toBe(403);
  });
});

describe('POST /api/certificates/renew', () => {
  it('starts an order, or reports why no order starts', async () => {
    const asked: string[] = [];
    const renew: EdgeCertificates['renew'] = async (name) => {
      asked.push(name);
      if (name === 'busy.example') return 'busy';
      return name === 'shop.example' ? 'begun' : 'unknown';
    };
    rest = await startRest({ certificates: { acmeCertificates: acmeCertificates(renew), files: () => null } });
    expect((await renewed('Shop.Example')).status).toBe(202);
    expect(await (await renewed('busy.example')).json()).toMatchObject({ code: 'CERTIFICATE_BUSY' });
    expect(await (await renewed('nobody.example')).json()).toMatchObject({ code: 'CERTIFICATE_UNKNOWN' });
    expect(asked).toEqual(['shop.example', 'busy.example', 'nobody.example']);
  });

  it('503: an order is refused with the reason if the state cannot be saved, such as on a full disk', async () => {
    const folder = await temporaryDirectory();
    const store = new FileCertificateStore(folder.path, 'https://ca.example/directory');
    const { id } = await store.want(['shop.example']);
    // A deleted folder behaves like a full disk: the store can no longer write.
    await folder.close();
    const renew = async () => ((await store.change(id, NOW, (life) => life)) ? 'begun' : 'busy') as 'begun';
    rest = await startRest({ certificates: { acmeCertificates: acmeCertificates(renew), files: () => null } });
    const answer = await renewed('shop.example');
    expect([answer.status, await answer.json()]).toMatchObject([503, { code: 'CERTIFICATE_STORE_AWAY' }]);
  });

  it('400: a missing or invalid name is rejected with a readable reason, as the OpenAPI document says', async () => {
    rest = await startRest({ certificates: { acmeCertificates: acmeCertificates(), files: () => null } });
    const ask = async (body: string): Promise<unknown> => {
      const headers = { 'content-type': 'application/json' };
      const answer = await rest.request('/api/certificates/renew', {
        method: 'POST',
        token: ADMIN_TOKEN,
        headers,
        body,
      });
      return [answer.status, ((await answer.json()) as { error: string }).error.replace(/^.*?(name|body)/, '$1')];
    };
    expect(await ask('{}')).toEqual([400, 'name: is missing']);
    expect(await ask('{"name":7}')).toEqual([400, 'name: must be a string, not number']);
    expect(await ask('{"name":""}')).toEqual([400, 'name: must have at least 1 character']);
    expect(await ask('[]')).toEqual([400, 'body: must be an object, not array']);
    const document = (await (await rest.request('/api/openapi.json')).json()) as {
      paths: Record<string, { post?: { responses: object } }>;
    };
    expect(document.paths['/api/certificates/renew']?.post?.responses).toHaveProperty('400');
  });

  it('409: certificates ordered by the platform cannot be renewed at the edge', async () => {
    rest = await startRest({ certificates: { acmeCertificates: acmeCertificates(), files: () => null } });
    expect(await (await renewed('shop.example')).json()).toMatchObject({ code: 'CERTIFICATE_ORDERED_ELSEWHERE' });
  });
});

it('metrics count certificates by state, orders by result, and give only the soonest expiry of tenants’ domains', async () => {
  const metrics = createMetrics({});
  const read = addCertificateSeries(metrics, {
    acmeCertificates: acmeCertificates(),
    files: () => null,
    now: () => NOW,
  });
  await read();
  const text = await metrics.text();
  expect(text).toContain('tunnel_certificates{state="valid"} 2');
  expect(text).toContain('tunnel_certificates{state="failing"} 1');
  expect(text).toContain('tunnel_certificate_expires_seconds{name="tunnels.test"} 86400');
  expect(text).toContain('tunnel_certificate_expires_seconds{name="own-domains"} 172800');
  expect(text).toContain('tunnel_acme_orders_total{result="failed"} 1');
  expect(text).not.toContain('shop.example');
});
