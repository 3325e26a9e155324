// Starts the containers of rendered manifests in the order of an installation, in a network namespace of their own, and sends a request
// through a tunnel. try.mjs calls this program with the manifests in a file.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadBundled } from '../../lib/load-bundled.mjs';
import { runScript } from '../../lib/script.mjs';
import { Cluster, probe } from './containers.mjs';

const NAMESPACE = 'hatchway';
const HOSTS = [
  ...['tunnels.test', 'web.tunnels.test', 'console.test'],
  ...['platform', 'edge-internal'].map((name) => `hatchway-${name}.${NAMESPACE}.svc`),
];
const READY_MS = 60_000;
const ACCOUNT = { email: 'ci@example.com', password: 'correct horse battery' };

const must = (command, args) => {
  const { status, stdout, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${command} ${args.slice(0, 3).join(' ')}: ${stderr.trim()}`);
  return stdout;
};

/** A certificate of a new authority for the names. */
function certificateFor(folder, name, names) {
  const file = (ending) => join(folder, `${name}.${ending}`);
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'];
  const ca = ['-keyout', file('ca.key'), '-out', file('ca.crt'), '-subj', '/CN=test CA'];
  must('openssl', ['req', '-x509', ...key, ...ca]);
  const signed = ['-CA', file('ca.crt'), '-CAkey', file('ca.key'), '-addext', 'basicConstraints=CA:FALSE'];
  const alternatives = ['-addext', `subjectAltName=${names.map((one) => `DNS:${one}`).join(',')}`];
  const own = ['-keyout', file('key'), '-out', file('crt'), '-subj', `/CN=${names[0]}`];
  must('openssl', ['req', '-x509', ...key, ...own, ...signed, ...alternatives]);
  const read = (ending) => readFileSync(file(ending), 'utf8');
  return { 'tls.crt': read('crt'), 'tls.key': read('key'), 'ca.crt': read('ca.crt') };
}

/** Sends a request to this machine for a host name. */
const ask = ({ url, method = 'GET', body, token, ca }) =>
  new Promise((resolve, reject) => {
    const { protocol, host, hostname, port, pathname } = new URL(url);
    const isSecure = protocol === 'https:';
    const headers = {
      host,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const options = { host: '127.0.0.1', port: port || (isSecure ? 443 : 80), path: pathname, method, headers, ca };
    const request = (isSecure ? httpsRequest : httpRequest)({ ...options, servername: hostname, timeout: 10_000 });
    request.on('error', reject).on('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => (text += chunk));
      response.on('end', () => resolve({ status: response.statusCode, text }));
    });
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });

/** Forwards the ports of Services to other ports of their pods. */
async function openServices(cluster, objects) {
  const workloads = objects.filter(({ kind }) => kind === 'Deployment' || kind === 'StatefulSet');
  const servers = [];
  for (const { spec } of objects.filter(({ kind }) => kind === 'Service')) {
    const component = spec.selector['app.kubernetes.io/component'];
    const { ports } = workloads.find(({ metadata }) => metadata.labels['app.kubernetes.io/component'] === component)
      .spec.template.spec.containers[0];
    for (const { port, targetPort, protocol = 'TCP' } of spec.ports) {
      const to = ports.find(({ name }) => name === targetPort)?.containerPort ?? targetPort;
      if (protocol !== 'TCP' || to === port) continue;
      const server = createTcpServer((socket) => {
        const other = connect(to, '127.0.0.1');
        socket.on('error', () => other.destroy()).pipe(other);
        other.on('error', () => socket.destroy()).pipe(socket);
      });
      await new Promise((resolve, reject) => server.on('error', reject).listen(port, '127.0.0.1', resolve));
      servers.push(server);
    }
  }
  return () => servers.forEach((server) => void server.close());
}

/** The program in a sandbox: bubblewrap passes no signal on. */
const insidePid = (pid) => Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);

async function main({ say, check }) {
  must('ip', ['link', 'set', 'lo', 'up']);
  const runs = JSON.parse(readFileSync(process.env.HELM_MANIFESTS, 'utf8'));
  const { startDatabase } = await loadBundled(new URL('external-database.mjs', import.meta.url), 'external-database');
  const database = await startDatabase();
  const web = createServer((request, response) => response.end(`hello ${request.headers.host}`)).listen(
    3000,
    '127.0.0.1',
  );
  try {
    for (const [name, objects] of Object.entries(runs)) {
      const folder = mkdtempSync(join(tmpdir(), 'tunnel-helm-'));
      try {
        await install({ name, objects, folder, url: await database.makeUrl(), say, check });
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    }
  } finally {
    web.close();
    await database.close();
  }
  return Object.keys(runs).join(', ');
}

/** Installs a release like an operator: Secrets, migrate Job, platform, credential, edge, account, client. */
async function install({ name, objects, folder, url, say, check }) {
  const cluster = new Cluster(join(folder, 'cluster'), { hosts: HOSTS, bwrap: process.env.HELM_BWRAP });
  cluster.apply(objects);
  const edgeTls = certificateFor(folder, 'edge', ['tunnels.test', '*.tunnels.test']);
  const platformTls = certificateFor(folder, 'platform', ['console.test', `hatchway-platform.${NAMESPACE}.svc`]);
  const random = () =>
    must('openssl', ['rand', '-base64', '32']).replaceAll('+', '-').replaceAll('/', '_').replace(/=*\n/, '\n');
  cluster.secrets = {
    'hatchway-database': { url: '' },
    'hatchway-keys': { 'master-key': random(), 'certificate-key': random() },
    'hatchway-tls': edgeTls,
    'hatchway-edge-ca': { 'ca.crt': edgeTls['ca.crt'] },
    'hatchway-platform-tls': platformTls,
    'hatchway-mail': { 'smtp-url': 'smtp://127.0.0.1:2525' },
    'hatchway-stripe': { 'secret-key': 'sk_test_x', 'webhook-secret': 'whsec_x' },
    'hatchway-admin': { 'admin-token': 'an-admin-token-of-the-test' },
  };
  const job = cluster.get('Job', 'hatchway-migrate');
  const platform = cluster.get('Deployment', 'hatchway-platform');
  const edge = cluster.get('StatefulSet', 'hatchway-edge');
  const client = cluster.get('Deployment', 'hatchway-client');
  const ofEdge = edge.spec.template.spec.containers[0];
  const isSecure = ofEdge.livenessProbe.httpGet.scheme === 'HTTPS';
  const platformUrl = /public_url = "(.*)"/.exec(cluster.get('ConfigMap', 'hatchway-platform').data['server.toml'])[1];
  const right = (isRight, what) => check(isRight, `${name}: ${what}`);

  const failed = cluster.start(job);
  const failure = await failed.exited;
  right(
    failure === 'exit code 1',
    `a Secret with an empty URL fails the migrate Job (${failure}: ${failed.child.output.trim().split('\n')[0]})`,
  );
  cluster.secrets['hatchway-database'] = { url, 'direct-url': url };

  const migrated = cluster.start(job);
  const exit = await migrated.exited;
  right(exit === 'exit code 0', `migrate Job (${exit}: ${migrated.child.output.trim().split('\n').at(-1)})`);

  const closeServices = await openServices(cluster, objects);
  const running = [];
  const start = async (workload) => {
    const began = performance.now();
    const started = cluster.start(workload);
    running.push(started);
    const { startupProbe, readinessProbe, livenessProbe } = started.container;
    let problem = 'not asked';
    while (problem !== null && started.child.exit === null && performance.now() - began < READY_MS) {
      await delay(200);
      problem = await probe(cluster, workload, startupProbe ?? readinessProbe);
    }
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    right(
      problem === null,
      `${started.container.name} ready after ${seconds} s${problem === null ? '' : `: ${problem}\n${started.child.output}`}`,
    );
    for (const one of [livenessProbe, readinessProbe].filter(Boolean)) {
      const answer = await probe(cluster, workload, one);
      right(
        answer === null,
        `${started.container.name}: ${one.httpGet?.path ?? one.exec.command.join(' ')} (${answer ?? 'ok'})`,
      );
    }
    return started;
  };
  const stop = async ({ child, pod, container }) => {
    const began = performance.now();
    process.kill(insidePid(child.pid), 'SIGTERM');
    const exitOf = await Promise.race([child.exited, delay(pod.terminationGracePeriodSeconds * 1000, 'still running')]);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    right(
      exitOf === 'exit code 0',
      `${container.name} after SIGTERM: ${exitOf} in ${seconds} s of ${pod.terminationGracePeriodSeconds} s`,
    );
  };
  try {
    const startedPlatform = await start(platform);
    const created = cluster.exec(platform, [
      'tunnel-server',
      'edge-credential',
      'create',
      'hatchway',
      '--config',
      '/etc/tunnel/server.toml',
    ]);
    right(created.status === 0, `edge-credential create ${created.status === 0 ? '' : created.stderr}`);
    cluster.secrets['hatchway-edge-credential'] = { credential: created.stdout.trim() };
    const firstEdge = await start(edge);

    const user = cluster.exec(
      platform,
      [
        'tunnel-server',
        'admin',
        'create-user',
        ACCOUNT.email,
        '--password-stdin',
        '--config',
        '/etc/tunnel/server.toml',
      ],
      `${ACCOUNT.password}\n`,
    );
    right(user.status === 0, `admin create-user ${user.status === 0 ? '' : user.stderr}`);
    const ca = isSecure ? platformTls['ca.crt'] : undefined;
    const call = async (path, more = {}) => JSON.parse((await ask({ url: `${platformUrl}${path}`, ca, ...more })).text);
    const { access_token: token } = await call('/auth/login', { method: 'POST', body: ACCOUNT });
    const { key } = await call('/keys', { method: 'POST', body: { name: 'chart' }, token });
    cluster.secrets['hatchway-client'] = { 'api-key': key };
    const startedClient = await start(client);

    const [status] = JSON.parse(cluster.exec(client, ['tunnel', 'status', '--json']).stdout);
    const publicUrl = `${isSecure ? 'https' : 'http'}://web.tunnels.test`;
    right(status?.tunnels[0].public_url === publicUrl, `public URL ${status?.tunnels[0].public_url}`);
    const visit = () => ask({ url: `${publicUrl}/`, ca: edgeTls['ca.crt'] });
    const visited = await visit();
    right(
      visited.text === 'hello web.tunnels.test',
      `a request through the tunnel: ${visited.status} ${visited.text.slice(0, 80)}`,
    );
    const pools = await call('/pools', { token });
    right(
      Array.isArray(pools.pools ?? pools) && !JSON.stringify(pools).includes('warning'),
      `the platform calls the edge: ${JSON.stringify(pools).slice(0, 120)}`,
    );

    // The same volume, a new pod.
    await stop(firstEdge);
    const secondEdge = await start(edge);
    let again = { status: 0, text: '' };
    for (let round = 0; round < 150 && again.text !== 'hello web.tunnels.test'; round += 1) {
      await delay(200);
      again = await visit().catch((error) => ({ status: 0, text: error.message }));
    }
    right(
      again.text === 'hello web.tunnels.test',
      `the tunnel works after a restart of the edge: ${again.text.slice(0, 80)}`,
    );

    for (const one of [startedClient, secondEdge, startedPlatform]) await stop(one);
    say(`${name}: done`);
  } finally {
    closeServices();
    for (const { child } of running.filter((one) => one.child.exit === null)) process.kill(child.pid, 'SIGKILL');
  }
}

await runScript({ name: 'containers', usage: '', options: {}, limitSecs: () => 400, needsBuild: false }, main);
