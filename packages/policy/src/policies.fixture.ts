// Policies for tests: one rule per action, in the form of a file and in the form of the wire.

import type { Policy, Rule } from './policy.ts';
import type { FileRule } from './schema/file-policy.ts';

export const SCRYPT = `$scrypt$ln=14,r=8,p=1$${'s'.repeat(22)}$${'h'.repeat(43)}`;
export const SHA256 = 'ab'.repeat(32);

/** Rules as written by people, and their parsed form. */
export const RULES: readonly (readonly [written: FileRule, sent: Rule])[] = [
  [{ allow: true }, { allow: true }],
  [{ deny: true }, { deny: 403 }],
  [{ deny: 404 }, { deny: 404 }],
  [
    { name: 'office', allow_addresses: '10.0.0.0/8' },
    { name: 'office', allow_addresses: ['10.0.0.0/8'] },
  ],
  [
    { match: { path: '/admin/**' }, allow_addresses: ['192.0.2.7', '2001:db8::/32'] },
    { match: { path: ['/admin/**'] }, allow_addresses: ['192.0.2.7', '2001:db8::/32'] },
  ],
  [
    {
      match: {
        method: ['get', 'POST'],
        path: ['/a', '/b/*'],
        header: { 'User-Agent': '*curl*', 'x-env': true, dnt: false },
        address: '10.0.0.0/8',
        not: { path: '/a/public', not: { method: 'GET' } },
      },
      deny: 451,
    },
    {
      match: {
        method: ['GET', 'POST'],
        path: ['/a', '/b/*'],
        header: { 'user-agent': ['*curl*'], 'x-env': true, dnt: false },
        address: ['10.0.0.0/8'],
        not: { path: ['/a/public'], not: { method: ['GET'] } },
      },
      deny: 451,
    },
  ],
  [
    { auth: { basic: { users: { ann: SCRYPT } } } },
    { auth: { basic: { realm: 'tunnel', users: { ann: SCRYPT } }, token_header: 'x-tunnel-token' } },
  ],
  [
    { auth: { tokens: { name: 'ci', sha256: SHA256.toUpperCase() }, token_header: 'X-Api-Key' } },
    { auth: { tokens: [{ name: 'ci', sha256: SHA256 }], token_header: 'x-api-key' } },
  ],
  [
    {
      auth: { jwt: { issuer: 'https://id.example.com/', audience: 'api', claims: { admin: true, scope: ['a', 'b'] } } },
    },
    {
      auth: {
        jwt: { issuer: 'https://id.example.com/', audience: ['api'], claims: { admin: ['true'], scope: ['a', 'b'] } },
        token_header: 'x-tunnel-token',
      },
    },
  ],
  [
    { auth: { login: { emails: 'Ann@Example.com', domains: ['Example.org'], claims: { groups: 'staff' } } } },
    {
      auth: {
        login: { emails: ['ann@example.com'], domains: ['example.org'], claims: { groups: ['staff'] } },
        token_header: 'x-tunnel-token',
      },
    },
  ],
  [{ auth: { login: { anyone: true } } }, { auth: { login: { anyone: true }, token_header: 'x-tunnel-token' } }],
  [
    { verify_webhook: { provider: 'stripe', secrets: 'whsec_1' } },
    { verify_webhook: { provider: 'stripe', secrets: ['whsec_1'], max_bytes: 1_048_576 } },
  ],
  [
    { verify_webhook: { provider: 'hmac', secrets: ['s'], header: 'X-Sign', max_bytes: '4MiB' } },
    {
      verify_webhook: {
        provider: 'hmac',
        secrets: ['s'],
        max_bytes: 4_194_304,
        header: 'x-sign',
        algorithm: 'sha256',
        encoding: 'hex',
        prefix: '',
      },
    },
  ],
  [
    { rate_limit: { requests: 60, per_secs: 10 } },
    { rate_limit: { requests: 60, per_secs: 10, burst: 60, by: 'address' } },
  ],
  [
    { rate_limit: { requests: 1, per_secs: 1, burst: 5, by: 'header:X-Api-Key' } },
    { rate_limit: { requests: 1, per_secs: 1, burst: 5, by: 'header:x-api-key' } },
  ],
  [{ max_body: '10MiB' }, { max_body: 10_485_760 }],
  [{ max_body: 0 }, { max_body: 0 }],
  [
    { redirect: { to: 'https://{host}{path}{query}' } },
    { redirect: { to: 'https://{host}{path}{query}', status: 302 } },
  ],
  [{ redirect: { to: '/new?for={user}', status: 308 } }, { redirect: { to: '/new?for={user}', status: 308 } }],
  [
    { respond: { status: 503, body: 'back soon', headers: { 'Retry-After': '600' } } },
    { respond: { status: 503, body: 'back soon', content_type: 'text/plain', headers: { 'Retry-After': '600' } } },
  ],
  [{ rewrite: { strip_prefix: '/api' } }, { rewrite: { strip_prefix: '/api' } }],
  [{ rewrite: { add_prefix: '/v2' } }, { rewrite: { add_prefix: '/v2' } }],
  [{ route: 'api' }, { route: 'api' }],
  [
    { request_headers: { set: { 'X-Env': 'of {user} at {address}' }, remove: ['Cookie'] } },
    { request_headers: { set: { 'X-Env': 'of {user} at {address}' }, remove: ['cookie'] } },
  ],
  [
    { response_headers: { add: { 'X-Id': '{request_id}' }, remove: 'Server' } },
    { response_headers: { add: { 'X-Id': '{request_id}' }, remove: ['server'] } },
  ],
  [{ cors: { origins: '*' } }, { cors: { origins: ['*'], credentials: false, max_age_secs: 600 } }],
  [
    {
      cors: {
        origins: ['https://App.example.com:443', 'http://localhost:3000'],
        methods: 'put',
        headers: ['X-A'],
        expose: 'X-B',
        credentials: true,
        max_age_secs: 0,
      },
    },
    {
      cors: {
        origins: ['https://app.example.com', 'http://localhost:3000'],
        methods: ['PUT'],
        headers: ['x-a'],
        expose: ['x-b'],
        credentials: true,
        max_age_secs: 0,
      },
    },
  ],
  [{ error_page: { body: '<h1>away</h1>' } }, { error_page: { body: '<h1>away</h1>' } }],
];

export const policyOf = (...rules: readonly Rule[]): Policy => ({ login: null, rules });
