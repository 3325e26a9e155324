// Invalid policies from a modified client. Each policy is refused with a single line that names the rule by number and repeats no
// possible secret. No tunnel opens, and the session continues.
import { CAPABILITY } from '@tunnel/protocol';
import { FakeClock } from '@tunnel/testkit';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ControlFixture, startControl } from './control.fixture.ts';
import { RawClient } from './raw-client.fixture.ts';

const PLANTED = 'pl4nted-s3cret';
const WEB = { protocol: 'http', subdomain: 'web' };

let fixture: ControlFixture;
let client: RawClient;
beforeAll(async () => {
  fixture = await startControl({ clock: new FakeClock(), ports: 3, tunnelsPerSession: 5 });
  ({ client } = await RawClient.enter(fixture.port, 'alice', undefined, [CAPABILITY.POLICY]));
});
afterAll(() => fixture.stop());

const deepNot = (depth: number): object => (depth === 0 ? { path: ['/a'] } : { not: deepNot(depth - 1) });
const rules = (...list: unknown[]): object => ({ login: null, rules: list });
const SECOND = /^policy rule 2 \(office\): /;
const office = (action: object): object => rules({ deny: 403 }, { name: 'office', ...action });
const set = (name: string, value: unknown): object => office({ request_headers: { set: { [name]: value } } });
const auth = (fields: object): object => office({ auth: { token_header: 'x-tunnel-token', ...fields } });

it.each<[what: string, policy: unknown, says: RegExp]>([
  ['a text', PLANTED, /^policy: it must be a table$/],
  ['a number', 7, /^policy: /],
  ['a bare list', [{ deny: 403 }], /^policy: it must be a table$/],
  [
    'an unknown key at the top',
    { ...rules(), rulez: PLANTED },
    /^policy: unknown key `rulez`; did you mean `rules`\?$/,
  ],
  ['an unknown key in the login', { ...rules(), login: { provder: PLANTED } }, /^policy login: unknown key `provder`/],
  [
    'an unknown key in a rule',
    office({ deny: 403, dny: PLANTED }),
    /^policy rule 2 \(office\): unknown key `dny`; did you/,
  ],
  ['an unknown key in a match', office({ deny: 403, match: { not: { pth: PLANTED } } }), /`path`\? in `match\.not`$/],
  [
    'a secret as a key',
    auth({ basic: { [`ann:${PLANTED}`]: '' } }),
    /unknown key `…`; known here: realm, users in `auth\.basic`$/,
  ],
  ['two actions', office({ deny: 403, allow: true }), /exactly one action, not `allow` and `deny`$/],
  ['no action', office({}), /exactly one action: allow, /],
  ['a wrong type', office({ deny: PLANTED }), /`deny` must be a status from 400 to 599$/],
  ['a number out of range', office({ deny: 600 }), SECOND],
  ['a rate of nothing', office({ rate_limit: { requests: 0, per_secs: 1 } }), SECOND],
  ['a network', office({ allow_addresses: ['10.0.0.0/33'] }), /\(the prefix of an IPv4 network is 0 to 32\)$/],
  ['a header that breaks lines', set('X-A', `a\r\n${PLANTED}: b`), /without line breaks$/],
  ['a name that breaks lines', set(`X-A: b\r\n${PLANTED}`, 'a'), /a name is invalid\)$/],
  ['a header that is ours', set('X-Tunnel-User', PLANTED), /a header that rules may change \(not Host/],
  ['the address that we write', set('x_real_ip', PLANTED), /a header that rules may change \(not Host/],
  ['the frame', set('Content-Length', '0'), /a header that rules may change \(not Host/],
  ['an unknown placeholder', set('X-A', `{usr} ${PLANTED}`), /did you mean \{user\}\?\)$/],
  [
    'a host of the visitor',
    office({ redirect: { to: 'https://{path}.example/', status: 302 } }),
    /host must be literal or exactly \{host\}/,
  ],
  ['a plain password', auth({ basic: { realm: 'r', users: { ann: PLANTED } } }), /must be a line \$scrypt\$/],
  ['a plain token', auth({ tokens: [{ name: 'ci', token: PLANTED }] }), /unknown key `token`/],
  ['a file', office({ respond: { status: 200, body_file: '/etc/passwd' } }), /unknown key `body_file`/],
  ['a body too large', office({ error_page: { body: 'x'.repeat(16_385) } }), /at most 16384 bytes$/],
  [
    'too much in all',
    rules(...Array.from({ length: 4 }, () => ({ error_page: { body: 'x'.repeat(14_000) } }))),
    /^policy: it has \d+ bytes when sent as JSON; the limit is 49152$/,
  ],
  ['rules too many', rules(...Array.from({ length: 101 }, () => ({ deny: 403 }))), /^policy rule 101: /],
  ['`not` in `not`', office({ deny: 403, match: deepNot(30) }), SECOND],
  ['values without end', rules({ allow_addresses: Array.from({ length: 8000 }, () => '::1') }), /at most 5000 values$/],
  [
    'names of objects',
    JSON.parse(`{"login":null,"rules":[{"deny":403,"match":{"header":{"__proto__":true}}}]}`),
    /this name is reserved$/,
  ],
  ['half of a character', office({ error_page: { body: '\ud800' } }), /half of a surrogate pair\)$/],
  [
    'a route to an unknown service',
    office({ route: 'api' }),
    /^policy rule 2 \(office\): `route` names 'api', which is not one of `services`/,
  ],
  [
    'auth by login without a login',
    auth({ login: { anyone: true } }),
    /^policy rule 2 \(office\): `auth\.login` needs a `login`/,
  ],
])('an invalid policy is refused without repeating secrets: %s', async (_what, policy, says) => {
  const refusal = await client.refused({ ...WEB, policy });
  expect(refusal).toMatchObject({ code: 'POLICY_INVALID', retryable: false });
  expect(refusal.message).toMatch(says);
  expect(refusal.message).not.toContain(PLANTED);
  expect(refusal.message).not.toContain('\n');
  expect([fixture.tunnels.at({ kind: 'name', name: 'web' }), fixture.policies.size]).toEqual([undefined, 0]);
});

it('a policy nested 30,000 lists deep is refused', async () => {
  const fields = JSON.stringify({ type: 'RegisterTunnel', request_id: 'r1', name: 'deep', ...WEB }).slice(1, -1);
  client.ws.send(`{${fields},"policy":{"rules":[${'['.repeat(30_000)}${']'.repeat(30_000)}]}}`);
  const { code, message } = await client.next('TunnelError');
  expect([code, message]).toEqual(['POLICY_INVALID', 'policy rule 1: it must be nested at most 40 deep']);
});

it('a client can register a valid policy after invalid policies', async () => {
  expect((await client.registered({ ...WEB, policy: rules({ deny: 403 }) })).policy_hash).toMatch(/^[0-9a-f]{64}$/);
});
