// Policies: what a rule costs to find out that it is about a request, or is not; a path and its readings; networks; the limiter.
import { compileMatch, limiterKeyOf, NetworkSet, RequestReadings, readingsOf } from '@tunnel/policy';
import { LimiterBudget, RequestLimiter } from '../../apps/edge/src/policy/request-limiter.rules.ts';
import { partFieldsOf } from '../../packages/http1/src/fields.ts';

const NOW = 1_800_000_000_000;
const NETWORKS = 1000;
const RATES = { requests: 100, perSecs: 60, burst: 100 };

const request = {
  method: 'GET',
  path: '/assets/app.3f9a.js?v=12',
  address: '203.0.113.7',
  headers: partFieldsOf([
    ['host', 'web.localhost:8000'],
    [
      'user-agent',
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36',
    ],
    ['accept', 'text/html,application/xhtml+xml,*/*;q=0.8'],
    ['accept-language', 'en-US,en;q=0.9'],
    ['cookie', 'sid=abcdef0123456789abcdef0123456789'],
  ]),
};

let kept;
const repeating = (operation) => (times) => {
  for (let done = 0; done < times; done++) kept = operation(done);
  if (kept === undefined) throw new Error('nothing was done');
};

const readings = new RequestReadings(request.path);
const matching = (match) => {
  const compiled = compileMatch(match, true);
  return repeating(() => compiled.matches(request, readings));
};

const networks = new NetworkSet(
  Array.from({ length: NETWORKS }, (_, index) => `10.${index >> 8}.${index & 255}.0/25`).concat(
    Array.from({ length: NETWORKS }, (_, index) => `2001:db8:${index.toString(16)}::/48`),
  ),
);

const addresses = Array.from({ length: 10_000 }, (_, index) => `198.51.${index >> 8}.${index & 255}`);
const v6Addresses = Array.from({ length: 10_000 }, (_, index) => `2001:db8:${index.toString(16)}:2::17`);
const known = new RequestLimiter(new LimiterBudget(), 'account 1');
const knownV6 = new RequestLimiter(new LimiterBudget(), 'account 1');
/** Full from the start, of keys that are never idle: each new one looks for room, and shares the bucket. */
const full = new RequestLimiter(new LimiterBudget(), 'account 1');
for (const address of addresses) full.take(address, { requests: 1, perSecs: 1e9, burst: 2 }, NOW);
const digests = { sha256Hex: () => '' };

export const policyMatch = [
  {
    name: 'policy: a match of method, path and header',
    run: matching({ method: ['GET'], path: ['/assets/**'], header: { 'user-agent': ['*Chrome*'] } }),
  },
  { name: 'policy: a path that does not match', run: matching({ path: ['/admin/**', '/api/*/users'] }) },
  { name: 'policy: the readings of an ordinary path', run: repeating(() => readingsOf(request.path)) },
  { name: 'policy: the readings of a path with %2F', run: repeating(() => readingsOf('/api/v4/projects/a%2Fb/raw')) },
  { name: 'policy: the readings of a hostile path', run: repeating(() => readingsOf('/x/..;/%2e%2e%2fadmin')) },
  {
    name: 'policy: an IPv4 address in 1,000 networks',
    run: repeating((done) => networks.has(addresses[done % 10_000])),
  },
  {
    name: 'policy: an IPv6 address in 1,000 networks',
    run: repeating((done) => networks.has(v6Addresses[done % 10_000])),
  },
  {
    name: 'policy: the limiter, one of 10,000 known keys',
    run: repeating((done) => {
      const visit = { address: addresses[done % 10_000], headers: request.headers };
      return known.take(limiterKeyOf('address', visit, null, digests), RATES, NOW + done);
    }),
  },
  {
    name: 'policy: the limiter, one of 10,000 known IPv6 addresses',
    run: repeating((done) => {
      const visit = { address: v6Addresses[done % 10_000], headers: request.headers };
      return knownV6.take(limiterKeyOf('address', visit, null, digests), RATES, NOW + done);
    }),
  },
  {
    name: 'policy: the limiter, a new key at a full table',
    run: repeating((done) => full.take(`new ${done}`, { requests: 1, perSecs: 1e9, burst: 2 }, NOW + 1)),
  },
];
