// The life of the server image: start, sign-up, a tunnel by the client image, a request, stop, and start again on the same volume.
import { readFileSync } from 'node:fs';
import { until } from '../../lib/until.mjs';
import { ask, Person } from './people.mjs';
import { commandOf, descendantsOf, findProcess } from './processes.mjs';

/** Default of [server] drain_secs. */
const DRAIN_SECS = 30;
const START_MS = 180_000;
const APP_ANSWER = 'hello from the app';
const REQUESTS = 20;
const MEMORY_BYTES = 512 * 1024 * 1024;

const health = (engine, name) => engine.exec(name, ['tunnel-server', 'health', '--timeout', '3']);

export const isHealthy = (engine, name) =>
  until(`${name} is healthy`, () => health(engine, name).status === 0 || stopped(engine, name), {
    timeoutMs: START_MS,
  });

/** Throws an error with the last line if a container has ended. */
function stopped(engine, name) {
  if (engine.isRunning(name)) return false;
  throw new Error(`${name} has ended: ${engine.logs(name).trim().split('\n').slice(-3).join(' | ')}`);
}

export async function tryServer({ engine, images, say, check }) {
  const data = engine.volume('hatchway-data');
  const home = engine.volume('hatchway-client');
  const server = { image: images.server, volumes: { [data]: '/data' } };
  const began = performance.now();
  engine.start('server', server);
  await isHealthy(engine, 'server');
  say(`healthy after ${((performance.now() - began) / 1000).toFixed(1)} s`);
  checkRights({ engine, check });

  const person = new Person({ port: 8080, host: 'localhost:8080' });
  await person.signUp(engine.dataOf('server'));
  const client = { image: images.client, volumes: { [home]: '/data' } };
  const login = ['login', '--platform', 'http://localhost:8080', '--email', person.email, '--password-stdin'];
  const signedIn = engine.once({ ...client, args: login, input: person.password });
  check(
    signedIn.status === 0,
    `the client image signs in${signedIn.status === 0 ? '' : `: ${signedIn.stderr.trim()}`}`,
  );
  check(engine.once({ ...client, args: ['reserve', 'shop'] }).status === 0, 'the client image reserves a name');

  engine.start('client', { ...client, args: ['http', '3000', '--subdomain', 'shop'] });
  const isReady = () => engine.exec('client', ['tunnel', 'ready']).status === 0;
  await until('the tunnel is open', isReady, { timeoutMs: START_MS });
  const visit = () => ask({ port: 8000, host: 'shop.localhost' });
  const answers = [];
  for (let sent = 0; sent < REQUESTS; sent += 1) answers.push((await visit()).text);
  check(
    answers.every((text) => text === APP_ANSWER),
    `${REQUESTS} requests through the tunnel`,
  );

  await checkHealth({ engine, check });
  const before = await person.usageOf(REQUESTS);
  checkMemory({ engine, say, check });
  await checkStop({ engine, check });

  engine.start('server', server);
  await isHealthy(engine, 'server');
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

  await engine.kill('server');
  engine.start('server', server);
  await isHealthy(engine, 'server');
  await person.signIn();
  check((await person.reserved()).includes('shop'), 'after SIGKILL, the server starts on the same volume');
  const client2 = await engine.stop('client', DRAIN_SECS);
  check(client2.code === 0, `the client stops with exit code ${client2.code} in ${client2.seconds.toFixed(1)} s`);
  for (const name of ['client', 'server']) engine.remove(name);
}

function checkRights({ engine, check }) {
  const sh = (text) => engine.exec('server', ['sh', '-c', text]);
  check(sh('id -u').stdout.trim() === '10001', 'the server runs as user 10001');
  check(sh('touch /usr/x || touch /etc/x || touch /var/x').status !== 0, 'the root file system is read-only');
  check(/^CapEff:\s*0+$/m.test(sh('cat /proc/1/status').stdout), 'the server has no capabilities');
  check(commandOf(engine.pidOf('server'))[0].endsWith('tini'), 'tini is process 1');
  const limit = engine.memoryOf('server');
  if (limit !== null) check(limit === MEMORY_BYTES, 'the memory limit is 512 MB');
}

/** Health turns bad while a part is stopped, and recovers afterwards. */
async function checkHealth({ engine, check }) {
  for (const part of ['edge', 'platform']) {
    const pid = findProcess(engine.pidOf('server'), [part, '--supervised']);
    process.kill(pid, 'SIGSTOP');
    const stalled = health(engine, 'server');
    const isNamed = stalled.status === 1 && stalled.stderr.includes(`${part}: `);
    check(isNamed, `health fails while the ${part} is stopped: ${stalled.stderr.trim()}`);
    process.kill(pid, 'SIGCONT');
    const recovers = () => health(engine, 'server').status === 0;
    await until(`health is good again after the ${part} continues`, recovers, { timeoutMs: 10_000 });
    check(true, `health recovers when the ${part} continues`);
  }
}

/** Memory of processes, with shared memory counted once. */
const memoryMb = (pids) =>
  pids.reduce((sum, pid) => {
    const kb = Number(/^Pss:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0);
    return sum + kb / 1024;
  }, 0);

function checkMemory({ engine, say, check }) {
  const pids = descendantsOf(engine.pidOf('server'));
  const mb = memoryMb(pids);
  say(
    `server: ${pids.length} processes use ${mb.toFixed(0)} MB; client: ${memoryMb(descendantsOf(engine.pidOf('client'))).toFixed(0)} MB`,
  );
  check(mb > 0 && mb < MEMORY_BYTES / 1024 / 1024, 'the server uses less than 512 MB');
}

/** A request that takes seconds is answered during the stop. */
async function checkStop({ engine, check }) {
  const slow = ask({ port: 8000, host: 'shop.localhost', path: '/slow' });
  // The request must be at the app before the stop.
  await until(
    'the slow request is at the app',
    async () => (await ask({ port: 3000, path: '/slow-requests' })).text === '1',
  );
  const { code, seconds } = await engine.stop('server', DRAIN_SECS + 15);
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
