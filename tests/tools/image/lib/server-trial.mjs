// The life of the server image: start, sign-up, a tunnel by the client image, a request, stop, and start again on the same volume.
import { readFileSync } from 'node:fs';
import { until } from '../../lib/until.mjs';
import { ask, Person } from './people.mjs';
import { commandOf, descendantsOf, MEMORY_BYTES } from './podman.mjs';

/** Default of [server] drain_secs. */
const DRAIN_SECS = 30;
const START_MS = 60_000;
const APP_ANSWER = 'hello from the app';
const REQUESTS = 20;

const health = (podman, name) => podman.exec(name, ['tunnel-server', 'health', '--timeout', '3']);

export const isHealthy = (podman, name) =>
  until(`${name} is healthy`, () => health(podman, name).status === 0 || stopped(podman, name), {
    timeoutMs: START_MS,
  });

/** Throws an error with the last line if a container has ended. */
function stopped(podman, name) {
  if (podman.inspect(name, '.State.Running') === 'true') return false;
  throw new Error(`${name} has ended: ${podman.logs(name).trim().split('\n').slice(-3).join(' | ')}`);
}

export async function tryServer({ podman, images, say, check }) {
  const data = podman.volume('hatchway-data');
  const home = podman.volume('hatchway-client');
  const server = { image: images.server, volumes: { [data]: '/data' } };
  const began = performance.now();
  podman.start('server', server);
  await isHealthy(podman, 'server');
  say(`healthy after ${((performance.now() - began) / 1000).toFixed(1)} s`);
  checkRights({ podman, check });

  const person = new Person({ port: 8080, host: 'localhost:8080' });
  await person.signUp(podman.dataOf('server'));
  const client = { image: images.client, volumes: { [home]: '/data' } };
  const login = ['login', '--platform', 'http://localhost:8080', '--email', person.email, '--password-stdin'];
  const signedIn = podman.once({ ...client, args: login, input: person.password });
  check(
    signedIn.status === 0,
    `the client image signs in${signedIn.status === 0 ? '' : `: ${signedIn.stderr.trim()}`}`,
  );
  check(podman.once({ ...client, args: ['reserve', 'shop'] }).status === 0, 'the client image reserves a name');

  podman.start('client', { ...client, args: ['http', '3000', '--subdomain', 'shop'] });
  const isReady = () => podman.exec('client', ['tunnel', 'ready']).status === 0;
  await until('the tunnel is open', isReady, { timeoutMs: START_MS });
  const visit = () => ask({ port: 8000, host: 'shop.localhost' });
  const answers = [];
  for (let sent = 0; sent < REQUESTS; sent += 1) answers.push((await visit()).text);
  check(
    answers.every((text) => text === APP_ANSWER),
    `${REQUESTS} requests through the tunnel`,
  );

  await checkHealth({ podman, check });
  const before = await person.usageOf(REQUESTS);
  checkMemory({ podman, say, check });
  await checkStop({ podman, check });

  podman.start('server', server);
  await isHealthy(podman, 'server');
  await person.signIn();
  check(
    (await person.reserved()).includes('shop'),
    'after a new start on the volume, the account signs in and has its name',
  );
  const { total_requests_30d: requests, total_bytes_30d: bytes } = await person.usage();
  // The request during the stop is counted too.
  const isKept = requests === before.total_requests_30d + 1 && bytes > before.total_bytes_30d;
  check(
    isKept,
    `no usage is lost: ${requests} requests, ${before.total_requests_30d} before the stop and one during the stop`,
  );
  const isServed = async () => (await visit()).text === APP_ANSWER;
  await until('the client has reconnected', isServed, { timeoutMs: START_MS });
  check(true, 'the running client reconnects with its name');

  podman.must(['kill', '--signal', 'KILL', 'server']);
  podman.must(['wait', 'server']);
  podman.start('server', server);
  await isHealthy(podman, 'server');
  await person.signIn();
  check((await person.reserved()).includes('shop'), 'after SIGKILL, the server starts on the same volume');
  const client2 = await podman.stop('client', DRAIN_SECS);
  check(client2.code === 0, `the client stops with exit code ${client2.code} in ${client2.seconds.toFixed(1)} s`);
  for (const name of ['client', 'server']) podman.remove(name);
}

function checkRights({ podman, check }) {
  const sh = (text) => podman.exec('server', ['sh', '-c', text]);
  check(sh('id -u').stdout.trim() === '10001', 'the server runs as user 10001');
  check(sh('touch /usr/x || touch /etc/x || touch /var/x').status !== 0, 'the root file system is read-only');
  check(/^CapEff:\s*0+$/m.test(sh('cat /proc/1/status').stdout), 'the server has no capabilities');
  check(commandOf(Number(podman.inspect('server', '.State.Pid')))[0].endsWith('tini'), 'tini is process 1');
  check(podman.inspect('server', '.HostConfig.Memory') === String(MEMORY_BYTES), 'the memory limit is 512 MB');
}

/** Health turns bad while a part is stopped, and recovers afterwards. */
async function checkHealth({ podman, check }) {
  for (const part of ['edge', 'platform']) {
    const pid = await podman.processOf('server', [part, '--supervised']);
    process.kill(pid, 'SIGSTOP');
    const stalled = health(podman, 'server');
    const isNamed = stalled.status === 1 && stalled.stderr.includes(`${part}: `);
    check(isNamed, `health fails while the ${part} is stopped: ${stalled.stderr.trim()}`);
    process.kill(pid, 'SIGCONT');
    const recovers = () => health(podman, 'server').status === 0;
    await until(`health is good again after the ${part} continues`, recovers, { timeoutMs: 10_000 });
    check(true, `health recovers when the ${part} continues`);
  }
}

const rssMb = (pids) =>
  pids.reduce((sum, pid) => {
    const kb = Number(/^Pss:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    return sum + kb / 1024;
  }, 0);

function checkMemory({ podman, say, check }) {
  const pids = descendantsOf(Number(podman.inspect('server', '.State.Pid')));
  const mb = rssMb(pids);
  say(`${pids.length} processes use ${mb.toFixed(0)} MB`);
  check(mb > 0 && mb < MEMORY_BYTES / 1024 / 1024, 'the server uses less than 512 MB');
}

/** A request that takes seconds is answered during the stop. */
async function checkStop({ podman, check }) {
  const slow = ask({ port: 8000, host: 'shop.localhost', path: '/slow' });
  // The request must be at the app before the stop.
  await until(
    'the slow request is at the app',
    async () => (await ask({ port: 3000, path: '/slow-requests' })).text === '1',
  );
  const { code, seconds } = await podman.stop('server', DRAIN_SECS + 15);
  check((await slow).text === APP_ANSWER, 'an open request gets its response during the stop');
  check(code === 0 && seconds < DRAIN_SECS + 5, `the server stops with exit code ${code} in ${seconds.toFixed(1)} s`);
}

/** The local service of the tunnel: /slow takes 2 s. */
export function answerApp(request, response) {
  if (request.url === '/slow-requests') {
    response.end(String(slowRequests));
  } else if (request.url === '/slow') {
    slowRequests += 1;
    setTimeout(() => response.end(APP_ANSWER), 2000);
  } else response.end(APP_ANSWER);
}
let slowRequests = 0;
