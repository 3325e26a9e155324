// Starts the containers of rendered manifests in the order of an installation, in a network namespace of their own, and sends a request
// through a tunnel. try.mjs calls this program with the manifests in a file.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, createServer as createTcpServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadBundled } from '../../lib/load-bundled.mjs';
import { runScript } from '../../lib/script.mjs';
import { until } from '../../lib/until.mjs';
import { certificateFor, must } from './certificates.mjs';
import { Cluster, probe } from './containers.mjs';

const NAMESPACE = 'hatchway';
const HOSTS = [
  ...['tunnels.test', 'web.tunnels.test', 'console.test'],
  ...['platform', 'edge-internal'].map((name) => `hatchway-${name}.${NAMESPACE}.svc`),
];
const READY_MS = 60_000;
const ACCOUNT = { email: 'ci@example.com', password: 'correct horse battery' };

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
async function openServices(objects) {
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

async function main({ check }) {
  // The user of the containers enters the folders.
  process.umask(0o022);
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
        const right = (isRight, what) => check(isRight, `${name}: ${what}`);
        await install({
          objects,
          folder,
          url: await database.makeUrl(`chart_${Object.keys(runs).indexOf(name)}`),
          check: right,
        });
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

/** The Secrets that an operator creates before an installation. */
function secretsOf(folder) {
  const edgeTls = certificateFor(folder, 'edge', ['tunnels.test', '*.tunnels.test']);
  const random = () => Buffer.from(must('openssl', ['rand', '-hex', '32']).trim(), 'hex').toString('base64url');
  return {
    'hatchway-database': { url: '' },
    'hatchway-keys': { 'master-key': `${random()}\n`, 'certificate-key': `${random()}\n` },
    'hatchway-tls': edgeTls,
    'hatchway-edge-ca': { 'ca.crt': edgeTls['ca.crt'] },
    'hatchway-platform-tls': certificateFor(folder, 'platform', ['console.test', `hatchway-platform.${NAMESPACE}.svc`]),
    'hatchway-mail': { 'smtp-url': 'smtp://127.0.0.1:2525' },
    'hatchway-stripe': { 'secret-key': 'sk_test_x', 'webhook-secret': 'whsec_x' },
    'hatchway-admin': { 'admin-token': 'an-admin-token-of-the-test' },
  };
}

const CONFIG = ['--config', '/etc/tunnel/server.toml'];
const HELLO = 'hello web.tunnels.test';
const ready = (text) => (text === null ? 'ok' : text);
const lastLine = (text) => text.trim().split('\n').at(-1);

/** An installation: starts and stops its containers, and calls their probes. */
class Installation {
  #cluster;
  #check;
  #running = [];

  constructor(cluster, check) {
    this.#cluster = cluster;
    this.#check = check;
  }

  /** Runs a container to its end. */
  async run(workload) {
    const { child } = this.#cluster.start(workload);
    return { exit: await child.exited, said: child.output };
  }

  async start(workload) {
    const began = performance.now();
    const started = this.#cluster.start(workload);
    this.#running.push(started);
    const { name, startupProbe, readinessProbe, livenessProbe } = started.container;
    let problem = 'no answer yet';
    while (problem !== null && started.child.exit === null && performance.now() - began < READY_MS) {
      await delay(200);
      problem = await probe(this.#cluster, workload, startupProbe ?? readinessProbe);
    }
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const output = problem === null ? '' : `: ${problem}\n${started.child.output}`;
    this.#check(problem === null, `${name} ready after ${seconds} s${output}`);
    for (const one of [livenessProbe, readinessProbe].filter(Boolean)) {
      const answer = await probe(this.#cluster, workload, one);
      this.#check(answer === null, `${name}: ${one.httpGet?.path ?? one.exec.command.join(' ')} (${ready(answer)})`);
    }
    return started;
  }

  /** Stops a container like Kubernetes: SIGTERM, and the grace period. */
  async stop({ child, pod, container }) {
    const began = performance.now();
    const graceSecs = pod.terminationGracePeriodSeconds;
    process.kill(insidePid(child.pid), 'SIGTERM');
    const exit = await Promise.race([child.exited, delay(graceSecs * 1000, 'still running')]);
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    this.#check(exit === 'exit code 0', `${container.name} after SIGTERM: ${exit} in ${seconds} s of ${graceSecs} s`);
  }

  exec(workload, args, input) {
    const { status, stdout, stderr } = this.#cluster.exec(workload, args, input);
    this.#check(status === 0, `${args.slice(0, 3).join(' ')}${status === 0 ? '' : `: ${stderr}`}`);
    return stdout.trim();
  }

  end() {
    for (const { child } of this.#running.filter((one) => one.child.exit === null)) process.kill(child.pid, 'SIGKILL');
  }
}

/** Installs a release like an operator: Secrets, migrate Job, platform, credential, edge, account, client. */
async function install({ objects, folder, url, check }) {
  const cluster = new Cluster(join(folder, 'cluster'), { hosts: HOSTS, bwrap: process.env.HELM_BWRAP });
  cluster.apply(objects);
  cluster.secrets = secretsOf(folder);
  const installation = new Installation(cluster, check);
  const job = cluster.get('Job', 'hatchway-migrate');
  const empty = await installation.run(job);
  check(empty.exit === 'exit code 2', `an empty URL of the database: ${empty.exit}: ${lastLine(empty.said)}`);
  cluster.secrets['hatchway-database'] = { url, 'direct-url': url };
  const migrated = await installation.run(job);
  check(migrated.exit === 'exit code 0', `migrate Job: ${migrated.exit}: ${lastLine(migrated.said)}`);

  const closeServices = await openServices(objects);
  try {
    await useTunnel({ cluster, installation, check });
  } finally {
    closeServices();
    installation.end();
  }
}

async function useTunnel({ cluster, installation, check }) {
  const platform = cluster.get('Deployment', 'hatchway-platform');
  const edge = cluster.get('StatefulSet', 'hatchway-edge');
  const client = cluster.get('Deployment', 'hatchway-client');
  const startedPlatform = await installation.start(platform);
  // The platform answers probes before it prints its addresses.
  const link = () => startedPlatform.child.output.includes('first account: http');
  await until('the link for the first account in the log of the platform', link);
  const credential = installation.exec(platform, ['tunnel-server', 'edge-credential', 'create', 'hatchway', ...CONFIG]);
  cluster.secrets['hatchway-edge-credential'] = { credential };
  const firstEdge = await installation.start(edge);

  const createUser = ['tunnel-server', 'admin', 'create-user', ACCOUNT.email, '--password-stdin', ...CONFIG];
  installation.exec(platform, createUser, `${ACCOUNT.password}\n`);
  const call = await signIn(cluster);
  const { token } = await call('/keys', { method: 'POST', body: { label: 'chart' } });
  cluster.secrets['hatchway-client'] = { 'api-key': token };
  const startedClient = await installation.start(client);

  const isSecure = edge.spec.template.spec.containers[0].livenessProbe.httpGet.scheme === 'HTTPS';
  const publicUrl = `${isSecure ? 'https' : 'http'}://web.tunnels.test`;
  const [status] = JSON.parse(installation.exec(client, ['tunnel', 'status', '--json']));
  check(status?.tunnels[0].public_url === publicUrl, `public URL ${status?.tunnels[0].public_url}`);
  const visit = () => ask({ url: `${publicUrl}/`, ca: cluster.secrets['hatchway-tls']['ca.crt'] });
  const { text } = await visit();
  check(text === HELLO, `a request through the tunnel: ${text.slice(0, 80)}`);
  const captured = JSON.stringify(await call(`/usage/tunnels/${status.tunnels[0].tunnel_id}/requests`));
  check(captured.includes('"method":"GET"'), `the platform calls the edge: ${captured.slice(0, 120)}`);

  // The same volume, a new pod.
  await installation.stop(firstEdge);
  const secondEdge = await installation.start(edge);
  const isBack = () =>
    visit().then(
      (answer) => answer.text === HELLO,
      () => false,
    );
  await until('the tunnel after a restart of the edge', isBack, { timeoutMs: 30_000, everyMs: 200 });
  for (const one of [startedClient, secondEdge, startedPlatform]) await installation.stop(one);
}

/** Signs in at the platform. Returns a function that calls its API. */
async function signIn(cluster) {
  const { data } = cluster.get('ConfigMap', 'hatchway-platform');
  const [, url] = /public_url = "(.*)"/.exec(data['server.toml']);
  const ca = url.startsWith('https:') ? cluster.secrets['hatchway-platform-tls']['ca.crt'] : undefined;
  const call = async (path, more) => {
    const { status, text } = await ask({ url: `${url.replace(/\/$/, '')}${path}`, ca, ...more });
    if (status >= 400) throw new Error(`${path}: ${status} ${text}`);
    return JSON.parse(text);
  };
  const { access_token: token } = await call('/auth/login', { method: 'POST', body: ACCOUNT });
  return (path, more) => call(path, { token, ...more });
}

await runScript({ name: 'containers', usage: '', options: {}, limitSecs: () => 400, needsBuild: false }, main);
