// Agent inside a network namespace, because other namespaces cannot reach into it: serves an echo, starts our client, and tests
// connections as soon as the client reports ready.
// Reads commands as JSON lines on stdin, and writes results as JSON lines to stdout.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const clients = new Map();

/** Sends a text to an echo port. Returns the milliseconds until the first byte came back, or an error. */
async function echo(port, text, limitMs) {
  const begunAt = performance.now();
  const socket = connect({ host: '127.0.0.1', port });
  const late = setTimeout(() => socket.destroy(new Error('no answer')), limitMs);
  try {
    socket.end(text);
    let heard = '';
    let firstMs = null;
    for await (const chunk of socket.setEncoding('latin1')) {
      firstMs ??= performance.now() - begunAt;
      heard += chunk;
    }
    if (heard !== text) throw new Error(`${heard.length} bytes came back instead of ${text.length}`);
    return { ms: Math.round(firstMs * 10) / 10 };
  } catch (error) {
    return { error: error.message };
  } finally {
    clearTimeout(late);
    socket.destroy();
  }
}

const COMMANDS = {
  async serve() {
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {});
      socket.pipe(socket);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return { port: server.address().port };
  },

  /**
   * Starts a client and forwards its stdout lines as `event`. With `echoAtReady` the first connection is opened in the same event loop
   * turn as the ready event.
   */
  start({ client, program, args, env, echoAtReady }) {
    const child = spawn(process.execPath, [program, ...args], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    clients.set(client, child);
    createInterface({ input: child.stderr }).on('line', (text) => say({ client, stderr: text }));
    createInterface({ input: child.stdout }).on('line', (text) => {
      const event = JSON.parse(text);
      say({ client, event });
      if (event.event !== 'ready' || !echoAtReady) return;
      const port = Number(event.listen.split(':').at(-1));
      void echo(port, 'first', 5_000).then((first) => say({ client, first }));
    });
    child.on('exit', (code, signal) => say({ client, exit: signal ?? code }));
    return {};
  },

  kill({ client, signal }) {
    clients.get(client)?.kill(signal);
    return {};
  },

  async echo({ port, bytes, limitMs }) {
    return echo(port, 'x'.repeat(bytes), limitMs);
  },
};

process.stdin.on('close', () => process.exit(0));
process.on('exit', () => {
  for (const child of clients.values()) child.kill('SIGKILL');
});
for await (const line of createInterface({ input: process.stdin })) {
  const { id, command, ...given } = JSON.parse(line);
  void Promise.resolve(COMMANDS[command](given)).then((answer) => say({ id, ...answer }));
}
