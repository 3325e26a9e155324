// Opens a page in headless Chromium and waits until an expression is true. Further pairs run on the same page: a command, then an
// expression to wait for.
// Usage: browser.mjs CHROMIUM URL EXPRESSION [COMMAND EXPRESSION]…
// Prints the page's title. Exits with 1 if an expression is not true within 30 s.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { WebSocket } from 'ws';

const WAIT_MS = 30_000;
const [program = '', url = '', ...steps] = process.argv.slice(2);
const profile = mkdtempSync(join(tmpdir(), 'browser-'));
const flags = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-dev-shm-usage',
  '--no-first-run',
  '--ignore-certificate-errors',
  '--host-resolver-rules=MAP *.edge.test 127.0.0.1',
  '--remote-debugging-port=0',
  `--user-data-dir=${profile}`,
  'about:blank',
];
// The browser leads a separate process group, so that its helpers end with it and write no more files.
const browser = spawn(program, flags, { stdio: ['ignore', 'ignore', 'pipe'], detached: true });

const debuggerUrl = () =>
  new Promise((resolve, reject) => {
    let said = '';
    browser.stderr.on('data', (piece) => {
      said += piece;
      const found = /DevTools listening on (ws:\S+)/.exec(said);
      if (found) resolve(found[1]);
    });
    browser.on('exit', () => reject(new Error(`the browser ended: ${said}`)));
  });

const pageSocket = async () => {
  const { host } = new URL(await debuggerUrl());
  const pages = await (await fetch(`http://${host}/json`)).json();
  const socket = new WebSocket(pages.find(({ type }) => type === 'page').webSocketDebuggerUrl);
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject));
  return socket;
};

let asked = 0;
const ask = (socket, method, params = {}) =>
  new Promise((resolve) => {
    asked += 1;
    const id = asked;
    const onMessage = (text) => {
      const message = JSON.parse(String(text));
      if (message.id !== id) return;
      socket.off('message', onMessage);
      resolve(message.result ?? {});
    };
    socket.on('message', onMessage);
    socket.send(JSON.stringify({ id, method, params }));
  });

const valueOf = async (socket, expression) =>
  (await ask(socket, 'Runtime.evaluate', { expression, returnByValue: true })).result?.value;

const waitFor = async (socket, expression) => {
  const giveUpAt = performance.now() + WAIT_MS;
  while ((await valueOf(socket, expression)) !== true) {
    if (performance.now() > giveUpAt) {
      throw new Error(`never true: ${expression}; title: ${await valueOf(socket, 'document.title')}`);
    }
    await pause(50);
  }
};

try {
  const socket = await pageSocket();
  await ask(socket, 'Page.navigate', { url });
  await waitFor(socket, steps[0]);
  for (let at = 1; at + 1 < steps.length; at += 2) {
    execFileSync('sh', ['-c', steps[at]]);
    await waitFor(socket, steps[at + 1]);
  }
  console.log(await valueOf(socket, 'document.title'));
  socket.terminate();
} catch (error) {
  console.log(error.message);
  process.exitCode = 1;
} finally {
  const ended = new Promise((resolve) => browser.once('exit', resolve));
  // Without a pid the browser never started.
  if (browser.pid === undefined) process.exit(1);
  process.kill(-browser.pid, 'SIGKILL');
  await ended;
  rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}
