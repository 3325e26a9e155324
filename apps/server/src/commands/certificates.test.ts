// The operator's commands for certificates: the table, unknown names, and the call to the local server.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Fault } from '@tunnel/errors';
import { expect, it } from 'vitest';
import { callRest, certificatesText, refuseUnknown } from './certificates.ts';

const NOW = Date.UTC(2030, 0, 1);
const HOUR = 3_600_000;
const iso = (ms: number): string => new Date(NOW + ms).toISOString();
const VALID = {
  names: ['tunnels.test', '*.tunnels.test'],
  source: 'acme' as const,
  state: 'valid' as const,
  issuer: 'Test CA',
  not_before: iso(-24 * HOUR),
  not_after: iso(89 * 24 * HOUR),
  renew_at: iso(30 * HOUR),
  last_error: null,
};
const FAILING = {
  ...VALID,
  names: ['shop.example'],
  state: 'failing' as const,
  last_error: 'shop.example was not validated',
  not_after: iso(90 * 60_000),
  renew_at: iso(-1),
};
const NONE = {
  names: ['new.example'],
  source: 'acme' as const,
  state: 'none' as const,
  issuer: null,
  last_error: null,
  not_before: null,
  not_after: null,
  renew_at: null,
};

it('the certificate table shows names, state, issuer, expiry, renewal and the last error', () => {
  expect(certificatesText([VALID, FAILING, NONE], NOW).split('\n')).toEqual([
    'NAMES                         STATE    ISSUER   EXPIRES IN  RENEWS       LAST ERROR',
    'tunnels.test, *.tunnels.test  valid    Test CA  89 days     in 30 hours  -',
    'shop.example                  failing  Test CA  90 minutes  now          shop.example was not validated',
    'new.example                   none     -        -           -            -',
  ]);
  expect(certificatesText([{ ...VALID, not_after: iso(-1) }], NOW)).toContain('expired');
  expect(certificatesText([], NOW)).toBe('no certificates; to issue certificates, set `[acme] enabled = true`');
});

const problem = (name: string): string => {
  try {
    refuseUnknown(name, [VALID, FAILING, NONE]);
    return 'known';
  } catch (error) {
    return error instanceof Fault ? `${error.code} ${error.message}` : String(error);
  }
};

it('an unknown certificate name is refused with similar names', () => {
  expect([problem('shop.example'), problem('*.tunnels.test')]).toEqual(['known', 'known']);
  expect(problem('shpo.example')).toBe(
    'CERTIFICATE_UNKNOWN there is no certificate for shpo.example; similar names: shop.example',
  );
  expect(problem('a.tunnels.test')).toMatch(/similar names: .*tunnels.test/);
  expect(problem('quite-another.org')).toBe('CERTIFICATE_UNKNOWN there is no certificate for quite-another.org');
});

it("the command prints the local server's answer, or reports that the server does not respond", async () => {
  const server = createServer((request, response) => {
    if (request.headers.authorization !== 'Bearer secret') response.writeHead(403).end('{"error":"no"}');
    else response.end(`${request.method} ${request.url}`);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/api/certificates`);
  const call = { method: 'GET', domain: 'localhost', body: undefined } as const;
  expect(await callRest(url, { ...call, token: 'secret' })).toEqual({ status: 200, text: 'GET /api/certificates' });
  expect((await callRest(url, { ...call, token: 'other' })).status).toBe(403);
  await new Promise((resolve) => server.close(resolve));
  await expect(callRest(url, { ...call, token: 'secret' })).rejects.toMatchObject({ code: 'SERVER_REFUSED' });
});
