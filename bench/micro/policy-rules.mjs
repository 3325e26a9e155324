// Measures policies: a request through all rules, from the visitor's request to the head that the service gets, and the response on its
// way back.
import { createHash } from 'node:crypto';
import { parseRequestHead, parseResponseHead, requestHeadFor, responseHeadFor } from '@tunnel/http1';
import { applyRequestChanges, begin, compilePolicy, editedHead, resume } from '@tunnel/policy';
import { LimiterBudget, RequestLimiter } from '../../apps/edge/src/policy/request-limiter.rules.ts';

const NOW = 1_800_000_000_000;
const RATES = { requests: 1e6, perSecs: 1, burst: 1e6 };
const digests = {
  sha256Hex: (text) => createHash('sha256').update(text).digest('hex'),
  hmac: () => new Uint8Array(32),
  equal: () => false,
};
const compiled = (rules) => ({ operator: null, tunnel: compilePolicy({ login: null, rules }, digests) });

const parsed = (lines) => parseRequestHead(`${lines.join('\r\n')}\r\n\r\n`);
const lines = [
  'GET /assets/app.3f9a.js?v=12 HTTP/1.1',
  'Host: web.localhost:8000',
  'User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36',
  'Accept: text/html,application/xhtml+xml,*/*;q=0.8',
  'Accept-Language: en-US,en;q=0.9',
  'Accept-Encoding: gzip, br',
  'Origin: https://app.example',
  'Cookie: sid=abcdef0123456789abcdef0123456789',
];
const head = parsed(lines);
const withToken = parsed([...lines, 'X-Tunnel-Token: 0123456789abcdef0123456789abcdef']);
const requestOf = ({ method, path, headers, host, authority }) => ({
  method,
  path,
  headers,
  host,
  authority,
  scheme: 'https',
  address: '203.0.113.7',
  isUpgrade: false,
  bodyLength: 0,
  requestId: 'req_1',
});
const request = requestOf(head);

const response = parseResponseHead(
  'HTTP/1.1 200 OK\r\nDate: Tue, 17 Nov 2026 10:00:00 GMT\r\nServer: x\r\nContent-Type: text/html\r\nContent-Length: 12\r\nETag: "a"\r\nVary: Accept\r\n\r\n',
  { method: 'GET', upgrade: null },
);

const NETWORKS = Array.from({ length: 50 }, (_, index) => `10.${index}.0.0/16`);
/** The same rules as in the scenario `http-policy-10` of npm run bench. */
export const TEN_RULES = [
  { match: { address: NETWORKS }, deny: 403 },
  { allow_addresses: ['0.0.0.0/0', '::/0'] },
  { match: { path: ['/admin/**'] }, deny: 404 },
  { match: { path: ['/internal/**', '/debug/*'] }, deny: 404 },
  { match: { path: ['/old/**'] }, redirect: { to: '/new', status: 301 } },
  { match: { path: ['/api/**'] }, rewrite: { strip_prefix: '/api' } },
  { rate_limit: { requests: 1e6, per_secs: 1, burst: 1e6, by: 'address' } },
  { request_headers: { set: { 'X-Env': 'live', 'X-Visitor': '{address}' }, remove: ['x-debug'] } },
  { response_headers: { set: { 'X-Frame-Options': 'DENY' }, remove: ['server'] } },
  { cors: { origins: ['https://app.example'], credentials: false, max_age_secs: 600 } },
];
const TEN = compiled(TEN_RULES);
const OTHERS = compiled(
  Array.from({ length: 10 }, (_, index) => ({ match: { path: [`/part-${index}/**`] }, deny: 404 })),
);
const TOKEN = compiled([
  {
    auth: {
      token_header: 'x-tunnel-token',
      tokens: [{ name: 'ci', sha256: digests.sha256Hex('0123456789abcdef0123456789abcdef') }],
    },
  },
]);

const limiter = new RequestLimiter(new LimiterBudget(), 'account 1');
const decided = (lists, asked) => {
  let step = begin(lists, asked, NOW);
  while (step.kind === 'effect') {
    step = resume(step.state, { kind: 'token-taken', retryAfterSecs: limiter.take(step.effect.key, RATES, NOW) }, NOW);
  }
  return step;
};

let kept;
const repeating = (operation) => (times) => {
  for (let done = 0; done < times; done++) kept = operation();
  if (kept === undefined) throw new Error('nothing was done');
};

const OPTIONS = { visitorAddress: '203.0.113.7', proto: 'https', hostHeader: 'keep' };
const VISITOR = { visitorVersion: '1.1', keepAlive: true };
const passed = decided(TEN, request);

export const policyRules = [
  { name: 'policy: ten rules that are not about a request', run: repeating(() => decided(OTHERS, request)) },
  { name: 'policy: a request of ten rules', run: repeating(() => decided(TEN, request)) },
  { name: 'policy: a token that is known', run: repeating(() => decided(TOKEN, requestOf(withToken))) },
  { name: 'a request head for the service, as it came', run: repeating(() => requestHeadFor(head, OPTIONS)) },
  {
    name: 'policy: a request head for the service, changed',
    run: repeating(() => requestHeadFor(applyRequestChanges(head, passed.changes), OPTIONS)),
  },
  { name: 'a response head for the visitor, as it came', run: repeating(() => responseHeadFor(response, VISITOR)) },
  {
    name: 'policy: a response head for the visitor, noted',
    run: repeating(() => responseHeadFor(editedHead(response, passed.edits), VISITOR)),
  },
];
