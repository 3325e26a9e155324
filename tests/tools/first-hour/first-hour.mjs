// Follows the README like a new user and measures the time: a new clone, two terminals, a browser, and only input from the README.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { createConnection } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT } from '../../../scripts/lib/paths.mjs';
import { loadBundled } from '../lib/load-bundled.mjs';
import { runScript } from '../lib/script.mjs';
import { CTRL_C, hasTerminals, Terminal } from './lib/terminal.mjs';

const USAGE = `usage: node tests/tools/first-hour/first-hour.mjs [--keep]
Clones the last commit, installs, builds and starts it on its usual ports (8000, 8080, 4040 and others: nothing else may have them), and
follows the README. --keep leaves the clone behind. Two minutes, and some more on a busy machine.`;

const FIRST_REQUEST_SECS = 60;
const WITH_ACCOUNT_SECS = 120;
const PATIENCE_MS = 240_000;
const LEAVE_MS = 30_000;

/** Commands copied from the README. A repository test checks that they exist. */
const START = 'npm start';
const PUBLISH = 'npx hatchway http 3000 --token-file data/admin-token';
const SIGN_UP = 'http://localhost:8080/app/signup';
const LOG_IN = 'npx hatchway login';
const PUBLISH_AGAIN = 'npx hatchway http 3000';

const EMAIL = 'me@example.com';
const PASSWORD = 'correct horse battery';
const ANSWER = 'the app on port 3000\n';
const PUBLIC_URL = /https?:\/\/([\w-]+\.localhost:\d+)/;
/** The default prompt of bash for a user or root. */
const PROMPT = /bash-[\d.]+[$#] $/;

const isTaken = (port) =>
  new Promise((resolve) => {
    const socket = createConnection({ host: '127.0.0.1', port });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('close', () => socket.destroy());
  });

const listen = (port) =>
  new Promise((resolve, reject) => {
    const server = createServer((_, response) => response.end(ANSWER));
    server.once('error', reject).listen(port, '127.0.0.1', () => resolve(server));
  });

/** Visits a host name below `localhost`. All such names are this machine, regardless of the system's resolver. */
const visit = (host) =>
  new Promise((resolve, reject) => {
    const port = Number(host.split(':')[1]);
    const sent = request({ host: '127.0.0.1', port, headers: { host }, agent: false }, (response) => {
      let body = '';
      response.setEncoding('utf8').on('data', (text) => {
        body += text;
      });
      response.on('end', () => resolve(body));
    });
    sent.on('error', reject).end();
  });

/** Returns an environment with an empty home directory, but with the npm cache and npm settings of this machine. */
const newcomerEnv = (home) => {
  const own = Object.entries(process.env).filter(([name]) => !/^(npm_|TUNNEL_|XDG_)/i.test(name));
  const { stdout: cache } = spawnSync('npm', ['config', 'get', 'cache'], { encoding: 'utf8' });
  const npm = { npm_config_cache: cache.trim(), npm_config_userconfig: join(homedir(), '.npmrc') };
  return { ...Object.fromEntries(own), ...npm, HOME: home, TERM: 'xterm-256color' };
};

class Stopwatch {
  rows = [];
  #began = performance.now();
  #last = this.#began;

  lap(what) {
    const now = performance.now();
    this.rows.push([what, (now - this.#last) / 1000, (now - this.#began) / 1000]);
    this.#last = now;
    return (now - this.#began) / 1000;
  }
}

const tableOf = (rows) =>
  rows.map(([what, took, at]) => `${what.padEnd(52)} ${took.toFixed(1).padStart(7)} s ${at.toFixed(1).padStart(7)} s`);

/** Part one: starts the server and the client in two terminals, and ends when a visitor has received the app's response. */
const firstRequest = async ({ server, client }) => {
  const watch = new Stopwatch();
  await server.enter(START);
  await server.waitFor(/is ready \(pid \d+\)/, PATIENCE_MS);
  watch.lap(START);
  client.forget();
  await client.enter(PUBLISH);
  const [, host] = await client.waitFor(PUBLIC_URL, PATIENCE_MS);
  watch.lap(PUBLISH);
  const body = await visit(host);
  watch.lap(`open http://${host}`);
  client.type(CTRL_C);
  await client.waitFor(PROMPT, PATIENCE_MS);
  return { watch, body };
};

/** Part two: creates an account and a key, and opens a tunnel without typing an address or a key. */
const withAccount = async ({ server, client }, say) => {
  const { signUpInBrowser } = await loadBundled(
    new URL('../dashboard/lib/sign-up-in-browser.ts', import.meta.url),
    'sign-up-in-browser',
  );
  const link = async () => (await server.waitFor(/http:\/\/\S+\/verify-email\/\S+/, PATIENCE_MS))[0];
  const watch = new Stopwatch();
  server.forget();
  const isDone = await signUpInBrowser({ url: SIGN_UP, email: EMAIL, password: PASSWORD, link });
  if (!isDone) {
    say('no browser runs here: the sign-up is done by the API');
    await fetch('http://localhost:8080/auth/register', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: EMAIL, password: PASSWORD }),
    });
    await fetch(await link());
  }
  watch.lap('sign up, open the link of the mail');
  client.forget();
  await client.enter(LOG_IN);
  await client.waitFor(/e-?mail\S*:? *$/i, PATIENCE_MS);
  await client.enter(EMAIL);
  await client.waitFor(/password\S*:? *$/i, PATIENCE_MS);
  client.forget();
  await client.enter(PASSWORD);
  await client.waitFor(PROMPT, PATIENCE_MS);
  watch.lap(LOG_IN);
  client.forget();
  await client.enter(PUBLISH_AGAIN);
  const [, host] = await client.waitFor(PUBLIC_URL, PATIENCE_MS);
  watch.lap(PUBLISH_AGAIN);
  const body = await visit(host);
  watch.lap(`open http://${host}`);
  client.type(CTRL_C);
  await client.waitFor(PROMPT, PATIENCE_MS);
  return { watch, body };
};

const follow = async ({ clone, home }, { say, check }) => {
  const readme = readFileSync(join(clone, 'README.md'), 'utf8');
  const typed = [START, PUBLISH, SIGN_UP, LOG_IN, PUBLISH_AGAIN];
  check(
    typed.every((text) => readme.includes(text)),
    'whatever is typed stands in the README',
  );
  const open = () => new Terminal({ command: 'bash --norc --noprofile -i', cwd: clone, env: newcomerEnv(home) });
  const terminals = { server: open(), client: open() };
  try {
    const first = await firstRequest(terminals);
    const second = await withAccount(terminals, say);
    for (const { watch } of [first, second]) for (const line of tableOf(watch.rows)) say(line);
    const [firstSecs, secondSecs] = [first, second].map(({ watch }) => watch.rows.at(-1)[2]);
    check(first.body === ANSWER && second.body === ANSWER, 'both visitors read the answer of the app');
    check(
      firstSecs <= FIRST_REQUEST_SECS,
      `first public request ${firstSecs.toFixed(1)} s after \`npm start\` was begun, of ${FIRST_REQUEST_SECS} s`,
    );
    check(
      secondSecs <= WITH_ACCOUNT_SECS,
      `with an account of one's own ${secondSecs.toFixed(1)} s, of ${WITH_ACCOUNT_SECS} s`,
    );
    return `${firstSecs.toFixed(1)} s to the first public request, ${secondSecs.toFixed(1)} s with an account`;
  } finally {
    for (const terminal of [terminals.client, terminals.server]) await terminal.leave(LEAVE_MS);
  }
};

await runScript(
  { name: 'the first hour', usage: USAGE, options: { keep: false }, limitSecs: () => 900, needsBuild: false },
  async (tools) => {
    if (!hasTerminals()) throw new Error('`script` of util-linux is not installed');
    for (const port of [3000, 4040, 4041, 8000, 8080, 9090]) {
      if (await isTaken(port)) throw new Error(`port ${port} is in use; the README is followed on its usual ports`);
    }
    const folder = mkdtempSync(join(tmpdir(), 'first-hour-'));
    const clone = join(folder, 'tunnel');
    const home = join(folder, 'home');
    mkdirSync(home);
    const app = await listen(3000);
    try {
      const { status } = spawnSync('git', ['clone', '--quiet', ROOT, clone], { stdio: 'inherit' });
      if (status !== 0) throw new Error('the repository cannot be cloned');
      return await follow({ clone, home }, tools);
    } finally {
      app.close();
      if (!tools.values.keep) rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 250 });
    }
  },
);
