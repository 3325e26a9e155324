// Tests every spelling of /admin in the corpus (packages/policy/src/match/path-corpus.json) against deny, auth and allow rules, over
// HTTP/1.1 and HTTP/2, in front of services that interpret paths differently, including a real Express app. No spelling may reach the
// admin part, and forwarded paths must arrive unchanged.
import { readFileSync } from 'node:fs';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { join } from 'node:path';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { startEdge } from '../lib/edge.mjs';
import { inParallel } from '../lib/in-parallel.mjs';
import { runScript } from '../lib/script.mjs';
import { SERVICES, startService } from './lib/corpus-services.mjs';
import { startTunnels } from './lib/policy-client.mjs';

const USAGE = `usage: node tests/tools/policy/path-corpus.mjs [--at-once N]
Each spelling at each rule and service, 16 at a time (--at-once).`;

const CORPUS = JSON.parse(readFileSync(join(ROOT, 'packages/policy/src/match/path-corpus.json'), 'utf8'));
const CERT = join(ROOT, 'packages/testkit/fixtures/tls/cert.pem');
const KEY = join(ROOT, 'packages/testkit/fixtures/tls/key.pem');
const TOKEN = 'a-token-of-more-than-20-characters';
const TIMEOUT_MS = 20_000;
const WRONG_SHOWN = 10;

const auth = { tokens: [{ name: 'ci', token: TOKEN }] };
/** Policies by kind. `statusOf` is the expected status for each expectation of a spelling; 200 comes from the service. */
const POLICIES = {
  deny: {
    rules: [{ match: { path: ['/admin/**'] }, deny: true }],
    statusOf: { hide: 403, pass: 200, allow: 200, refuse: 400 },
  },
  auth: {
    rules: [{ match: { path: ['/admin/**'] }, auth }],
    statusOf: { hide: 401, pass: 200, allow: 200, refuse: 400 },
  },
  allow: {
    rules: [{ match: { path: ['/public/**'] }, allow: true }, { auth }],
    statusOf: { hide: 401, pass: 401, allow: 200, refuse: 400 },
  },
};

/** Sends a request by hand, because a library would normalize the target. Returns `{ status, body }`. */
const askHttp1 = (port, host, target, headers = {}, method = 'GET') =>
  new Promise((resolve, reject) => {
    const lines = Object.entries({ host, connection: 'close', ...headers }).map(([name, value]) => `${name}: ${value}`);
    const socket = connect(port, '127.0.0.1', () => {
      socket.write(`${method} ${target.replace('{host}', host)} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`, 'latin1');
    });
    let text = '';
    socket.setEncoding('latin1').on('data', (part) => {
      text += part;
    });
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`no answer to ${target}`)));
    socket.on('error', reject);
    socket.on('end', () => {
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0);
      resolve({ status, body: text.slice(text.indexOf('\r\n\r\n') + 4) });
      socket.destroy();
    });
  });

/** Sends an HTTP/2 request. A reset has status 0, because nothing was served. */
const askHttp2 = (session, host, target) =>
  new Promise((resolve) => {
    const stream = session.request({ ':path': target, ':authority': host });
    let status = 0;
    let body = '';
    stream.setEncoding('utf8');
    stream.on('response', (head) => {
      status = head[':status'];
    });
    stream.on('data', (part) => {
      body += part;
    });
    stream.setTimeout(TIMEOUT_MS, () => stream.close());
    stream.on('error', () => {});
    stream.on('close', () => resolve({ status, body }));
    stream.end();
  });

/** Returns why the response is wrong, or null. */
const wrongOf = ({ status, body }, { target, path, must }, policy, isHttp2) => {
  const wanted = policy.statusOf[must];
  if (isHttp2 && must === 'refuse') return status === 0 || status === 400 ? null : `${target}: ${status}`;
  if (status !== wanted) return `${target}: ${status} instead of ${wanted}`;
  if (wanted !== 200) return null;
  const got = JSON.parse(body).target;
  return got === path ? null : `${target} arrived as ${got}`;
};

/** Headers from which some services take a different path or method than from the request line. Rules must ignore these headers. */
const OTHER_WORDS = [
  ...['x-original-url', 'x-rewrite-url', 'x-original-uri', 'x-forwarded-uri', 'x-forwarded-path', 'x-forwarded-prefix'],
  ...['x-forwarded-host', 'x-http-method-override', 'x-http-method', 'x-method-override', 'referer', 'destination'],
];

/** Returns misleading requests as `[method, target, headers, status by policy]`. */
const tricksOf = (kind) => {
  const shut = POLICIES[kind].statusOf.hide;
  return [
    ...OTHER_WORDS.flatMap((name) => [
      ['GET', '/admin', { [name]: name.includes('method') ? 'OPTIONS' : '/public/a' }, shut],
      ['POST', '/admin/users', { [name]: name.includes('method') ? 'GET' : '/', 'content-length': '0' }, shut],
    ]),
    ...['get', 'HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'X'].map((method) => [method, '/admin', {}, shut]),
    ['CONNECT', '{host}', {}, 501],
    ['CONNECT', '/admin', {}, 501],
    ['OPTIONS', '/admin', { origin: 'https://x.example', 'access-control-request-method': 'GET' }, shut],
    ['GET', '/admin', { connection: 'close, x-tunnel-auth', 'x-tunnel-auth': 'token', 'x-tunnel-user': 'ci' }, shut],
    ['GET', '/admin', { x_tunnel_token: TOKEN, cookie: 'tunnel_login=x', authorization: `Bearer ${TOKEN}` }, shut],
  ];
};

async function tryTricks(edge, host, kind) {
  const wrong = [];
  for (const [method, target, headers, wanted] of tricksOf(kind)) {
    const { status } = await askHttp1(edge.httpPort, host, target, headers, method);
    if (status !== wanted) wrong.push(`${method} ${target} ${JSON.stringify(headers)}: ${status} instead of ${wanted}`);
  }
  return wrong;
}

/** Returns a tunnel per policy and service, and a tunnel without a policy per service, to show which spellings the rules must stop. */
const tunnelsOf = (services) =>
  Object.entries({ ...POLICIES, open: { rules: null } }).flatMap(([kind, { rules }]) =>
    services.map(({ name, port }) => ({ name: `${kind}-${name}`, port, policy: rules })),
  );

/** Returns how many spellings reach the admin part of a service without a policy. */
async function reachable(edge, host, service, atOnce) {
  const targets = CORPUS.filter(({ must }) => must !== 'refuse').map(({ target }) => target);
  await inParallel(targets.length, atOnce, (index) => askHttp1(edge.httpPort, host, targets[index]));
  const count = service.visits.filter(({ part }) => part === 'admin').length;
  service.visits.length = 0;
  return count;
}

async function tryTunnel({ edge, host, policy, atOnce }) {
  const wrong = [];
  await inParallel(CORPUS.length, atOnce, async (index) => {
    const spelling = CORPUS[index];
    const problem = wrongOf(await askHttp1(edge.httpPort, host, spelling.target), spelling, policy, false);
    if (problem !== null) wrong.push(problem);
  });
  const session = connectHttp2(`https://localhost:${new URL(edge.run.https_url).port}`, { ca: readFileSync(CERT) });
  session.on('error', () => {});
  // Spellings that are not valid requests go last, because they may end the connection.
  const ordered = CORPUS.filter(({ target }) => !target.includes('{host}')).toSorted(
    (a, b) => Number(a.must === 'refuse') - Number(b.must === 'refuse'),
  );
  for (const spelling of ordered) {
    if (session.destroyed) {
      if (spelling.must !== 'refuse') wrong.push(`HTTP/2 ${spelling.target}: the connection has ended`);
      continue;
    }
    const problem = wrongOf(await askHttp2(session, host, spelling.target), spelling, policy, true);
    if (problem !== null) wrong.push(`HTTP/2 ${problem}`);
  }
  session.destroy();
  return wrong;
}

await runScript(
  { name: 'path-corpus', usage: USAGE, options: { 'at-once': 16 }, limitSecs: () => 300 },
  async ({ values, say, check }) => {
    const tables = `[tls]\ncert_path = "${CERT}"\nkey_path = "${KEY}"`;
    const edge = await startEdge({ serverLines: 'plain_http = "proxy"', tables });
    const services = await Promise.all(SERVICES.map(startService));
    const tunnels = tunnelsOf(services);
    const client = await startTunnels(edge, tunnels, ['tls: true', `ca_file: ${CERT}`]);
    const hidden = CORPUS.filter(({ must }) => must === 'hide').length;
    say(`${CORPUS.length} spellings, ${hidden} of /admin, at ${tunnels.length} tunnels`);

    for (const service of services) {
      const host = client.hostOf(`auth-${service.name}`);
      const { status, body } = await askHttp1(edge.httpPort, host, '/admin', { 'x-tunnel-token': TOKEN });
      check(
        status === 200 && JSON.parse(body).part === 'admin',
        `${service.name} has an admin part, for those with the token`,
      );
      service.visits.length = 0;
      const count = await reachable(edge, client.hostOf(`open-${service.name}`), service, values['at-once']);
      check(count > 1, `${count} spellings are ${service.name}'s admin part when there is no policy`);
    }
    for (const [kind, policy] of Object.entries(POLICIES)) {
      for (const service of services) {
        const host = client.hostOf(`${kind}-${service.name}`);
        const wrong = await tryTunnel({ edge, host, policy, atOnce: values['at-once'] });
        wrong.push(...(await tryTricks(edge, host, kind)));
        for (const line of wrong.slice(0, WRONG_SHOWN)) say(`${kind}, ${service.name}: ${line}`);
        check(wrong.length === 0, `${kind} before ${service.name}: ${wrong.length} wrong answers`);
        const reached = service.visits.filter(({ part }) => part === 'admin');
        for (const { target } of reached.slice(0, WRONG_SHOWN)) say(`${kind}, ${service.name}: reached by ${target}`);
        check(reached.length === 0, `${kind} before ${service.name}: ${reached.length} reached the admin part`);
        service.visits.length = 0;
      }
    }
    await client.stop();
    await edge.close();
    return `none of ${hidden} spellings got through at ${tunnels.length} tunnels, over HTTP/1.1 and HTTP/2`;
  },
);
