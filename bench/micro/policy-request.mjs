// Rules: what they take of the time of one request, from its view to pass or answer.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { parseRequestHead } from '@tunnel/core';
import { compilePolicy } from '../../packages/core/src/policy/compile.ts';
import { begin } from '../../packages/core/src/policy/evaluate.ts';

const digests = {
  sha256Hex: (text) => createHash('sha256').update(text).digest('hex'),
  hmac: (algorithm, key, parts) => {
    const hmac = createHmac(algorithm, key);
    for (const part of parts) hmac.update(part);
    return hmac.digest();
  },
  equal: (a, b) => a.length === b.length && timingSafeEqual(a, b),
};

/** Those of bench/paths/policies.mjs but the limit, which is taken from a table that the edge keeps: it has a row of its own. */
const TEN_RULES = {
  login: null,
  rules: [
    { match: { address: ['203.0.113.0/24', '198.51.100.0/24', '2001:db8::/32'] }, deny: 403 },
    { allow_addresses: ['127.0.0.0/8', '10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '::1'] },
    { match: { path: ['/admin/**'] }, deny: 404 },
    { match: { path: ['/internal/**', '/debug/**'] }, deny: 403 },
    { match: { path: ['/old/**'] }, redirect: { to: '/new{path}', status: 302 } },
    { match: { method: ['POST', 'PUT'], path: ['/upload/**'] }, max_body: 10_485_760 },
    { match: { header: { 'x-env': true } }, deny: 403 },
    { request_headers: { set: { 'X-Env': 'bench', 'X-Visitor': '{address}' } } },
    { response_headers: { set: { 'X-Frame-Options': 'DENY' }, remove: ['server'] } },
    { cors: { origins: ['https://app.example.com'], credentials: false, max_age_secs: 600 } },
  ],
};

const { headers } = parseRequestHead(
  [
    'GET /assets/app.3f9a.js?v=12 HTTP/1.1',
    'Host: web.localhost:8000',
    'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36',
    'Accept: text/html,application/xhtml+xml,*/*;q=0.8',
    'Accept-Encoding: gzip, deflate, br',
    'Cookie: sid=abcdef0123456789abcdef0123456789',
    '',
    '',
  ].join('\r\n'),
);
const visit = {
  method: 'GET',
  path: '/assets/app.3f9a.js?v=12',
  headers,
  ...{ host: 'web.localhost', authority: 'web.localhost:8000', scheme: 'http', address: '127.0.0.1' },
  ...{ isUpgrade: false, bodyLength: 0, requestId: 'req_bench' },
};

const only = (...indexes) => ({ ...TEN_RULES, rules: indexes.map((index) => TEN_RULES.rules[index]) });

const deciding = (policy, request) => {
  const lists = { operator: null, tunnel: compilePolicy(policy, digests) };
  return (times) => {
    for (let done = 0; done < times; done++) {
      if (begin(lists, request, 0).kind !== 'pass') throw new Error('a rule answered');
    }
  };
};

export const policyRequest = [
  { name: 'policy: a request of ten rules', run: deciding(TEN_RULES, visit) },
  { name: 'policy: a request of six rules that leave it as it is', run: deciding(only(0, 1, 2, 3, 4, 6), visit) },
  {
    name: 'policy: the same, its path with several readings',
    run: deciding(only(0, 1, 2, 3, 4, 6), { ...visit, path: '/Assets/%2e%2fapp;v=1/x.js?v=12' }),
  },
];
