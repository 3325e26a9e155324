// Our clients at a hostile edge, which records all traffic and then joins two pairs crosswise. The edge learns nothing, no client reaches
// the wrong peer, and both ends report why.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { throwAwayFolder } from '../../../bench/lib/children.mjs';
import { CACHE_DIR, ROOT } from '../../../scripts/lib/paths.mjs';
import { runScript } from '../lib/script.mjs';
import { until } from '../lib/until.mjs';
import { P2pProgram, secretFile } from './lib/stage.mjs';

const USAGE = 'usage: node tests/tools/p2p/hostile-edge.mjs';
const PROOF = 'the peer could not prove the secret';

/** The lookup of a stream's join in the edge's source: the only line that the hostile edge replaces. */
const ASKS = 'joins.find(sessionId, peerId)';

async function loadEdge() {
  const outfile = join(CACHE_DIR, 'tools/swapping-edge.mjs');
  mkdirSync(join(CACHE_DIR, 'tools'), { recursive: true });
  const crosswise = {
    name: 'crosswise',
    setup: ({ onLoad }) => {
      onLoad({ filter: /ingress\/p2p\/peer-relays\.ts$/ }, ({ path }) => {
        const source = readFileSync(path, 'utf8');
        if (!source.includes(ASKS)) throw new Error(`${path} does not ask ${ASKS} any more`);
        return { contents: source.replace(ASKS, `globalThis.swap.pick(${ASKS})`), loader: 'ts' };
      });
    },
  };
  await build({
    absWorkingDir: ROOT,
    entryPoints: [join(ROOT, 'tests/tools/p2p/lib/swapping-edge.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20',
    conditions: ['source'],
    external: ['@node-rs/argon2', 'pg-native', 'udx-native'],
    define: { __TUNNEL_VERSION__: '"0"' },
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' },
    plugins: [crosswise],
    logLevel: 'warning',
  });
  return import(pathToFileURL(outfile).href);
}

/** Returns the payload length of a WebSocket frame, and the number of extra length bytes in its head. */
function sizeAt(bytes, at) {
  const short = bytes[at] & 127;
  if (short < 126) return { bytes: short, more: 0 };
  if (short === 126) return { bytes: bytes.readUInt16BE(at + 1), more: 2 };
  return { bytes: Number(bytes.readBigUInt64BE(at + 1)), more: 8 };
}

/** Returns the payloads of a client's WebSocket frames without their masks, which hide nothing. */
function unmasked(bytes) {
  const frames = [];
  let at = bytes.indexOf('\r\n\r\n') + 4;
  while (at + 6 <= bytes.length) {
    const size = sizeAt(bytes, at + 1);
    const maskAt = at + 2 + size.more;
    const masked = bytes.subarray(maskAt + 4, maskAt + 4 + size.bytes);
    frames.push(masked.map((byte, index) => byte ^ bytes[maskAt + (index % 4)]));
    at = maskAt + 4 + size.bytes;
  }
  return Buffer.concat(frames);
}

/** Records all bytes between clients and the edge in both directions, raw and unmasked. */
async function startRecorder(port) {
  const kept = [];
  const server = createServer((socket) => {
    const onward = connect({ host: '127.0.0.1', port });
    const connection = [];
    kept.push(connection);
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ]) {
      from.on('data', (chunk) => {
        connection.push({ isOfClient: from === socket, chunk });
        to.write(chunk);
      });
      from.on('error', () => {});
      from.on('close', () => to.destroy());
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const bytesOf = (connection) => {
    const ofClient = Buffer.concat(connection.filter(({ isOfClient }) => isOfClient).map(({ chunk }) => chunk));
    const isWebSocket = ofClient.toString('latin1').toLowerCase().includes('sec-websocket-key');
    return [...connection.map(({ chunk }) => chunk), ...(isWebSocket ? [unmasked(ofClient)] : [])];
  };
  return { port: server.address().port, bytes: () => Buffer.concat(kept.flatMap(bytesOf)) };
}

/** Starts a service that sends its name and then echoes. */
async function startService(name) {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    socket.write(name);
    socket.pipe(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server.address().port;
}

/** Returns the text of the service that answers at the port, or an empty text. */
async function ask(port, text = '') {
  const socket = connect({ host: '127.0.0.1', port });
  socket.setTimeout(5_000, () => socket.destroy());
  socket.end(text);
  let heard = '';
  try {
    for await (const chunk of socket) heard += chunk.toString('latin1');
  } catch {
    // A reset counts as an answer.
  }
  return heard;
}

async function openPair(edge, name, { secret, flags }) {
  const service = await startService(name);
  const publisher = new P2pProgram(edge, ['publish', name, String(service)], { secret, flags });
  await publisher.says({ event: 'ready' });
  const subscriber = new P2pProgram(edge, ['connect', name, '--listen', '0'], { secret, flags });
  await subscriber.says({ event: 'ready' });
  return { name, publisher, subscriber };
}

const saysProof = ({ events }) => events.some(({ message }) => message === PROOF);

async function tryCrosswise({ edge, swap, check }, what, secrets, flags) {
  swap.joins.clear();
  swap.swapped = 0;
  const prefix = randomBytes(3).toString('hex');
  const pairs = [];
  for (const [index, secret] of secrets.entries())
    pairs.push(await openPair(edge, `${prefix}-${index}`, { secret, flags }));
  for (const { name, subscriber } of pairs) check((await ask(subscriber.port)) === name, `${what}: ${name} answers`);
  if (flags.length === 0)
    for (const program of pairs.flatMap(({ publisher, subscriber }) => [publisher, subscriber]))
      await program.says({ event: 'path', path: 'direct' });
  swap.isOn = true;
  for (const joined of swap.joins.values()) joined.resetRelays({ code: 'cancelled', text: 'crosswise from here' });
  const programs = pairs.flatMap(({ publisher, subscriber }) => [publisher, subscriber]);
  await until('all four say so', () => programs.every(saysProof), { timeoutMs: 20_000 }).catch(() => {});
  check(programs.every(saysProof), `${what}: crossed ${swap.swapped} times, all four ends say "${PROOF}"`);
  const expected = flags.length === 0 ? (name) => name : () => '';
  for (const { name, subscriber } of pairs) {
    const answer = await ask(subscriber.port);
    check(answer === expected(name), `${what}: ${name} is asked while crossed: "${answer}", ${subscriber.path}`);
  }
  swap.isOn = false;
  const isBack = async ({ name, subscriber }) => (await ask(subscriber.port)) === name;
  for (const pair of pairs) {
    const back = await until('back', () => isBack(pair), { timeoutMs: 45_000, everyMs: 500 }).catch(() => false);
    check(back, `${what}: ${pair.name} is back once the edge is honest`);
  }
  for (const program of programs) await program.stop();
}

async function tryRecording({ edge, check }, way) {
  const recorder = await startRecorder(Number(edge.control.split(':').at(-1)));
  const server = `127.0.0.1:${recorder.port}`;
  const secretText = randomBytes(32).toString('base64url');
  const secret = secretFile(edge.folder, secretText);
  const flags = way === 'relay' ? ['--no-direct'] : [];
  const name = `kept-${way}`;
  const service = await startService(name);
  const publisher = new P2pProgram(edge, ['publish', name, String(service)], { secret, flags, server });
  await publisher.says({ event: 'ready' });
  const subscriber = new P2pProgram(edge, ['connect', name, '--listen', '0'], { secret, flags, server });
  await subscriber.says({ event: 'path', path: way });
  const marker = randomBytes(24).toString('hex');
  const said = await ask(subscriber.port, marker.repeat(1000));
  check(said === name + marker.repeat(1000), `${way}: ${said.length} bytes came back through the edge that records`);
  const kept = recorder.bytes();
  check(kept.includes(name), `${way}: it has kept ${kept.length} bytes, and knows the name`);
  check(
    kept.includes(createHash('sha256').update(secretText).digest('hex')),
    `${way}: it knows the hash of the secret`,
  );
  check(!kept.includes(marker) && !kept.includes(marker.slice(5, 20)), `${way}: it has not one word of what was said`);
  const forms = [
    secretText,
    Buffer.from(secretText).toString('hex'),
    Buffer.from(secretText).toString('base64').slice(0, 40),
  ];
  check(!forms.some((form) => kept.includes(form)), `${way}: nor the secret`);
  const candidate = /"candidates"|"to_publisher"|"connection":/;
  check(!candidate.test(kept.toString('latin1')), `${way}: nor an address or a key of the direct path`);
  const shown = [publisher, subscriber].map(({ events, child }) => JSON.stringify(events) + child.output).join('');
  check(!forms.some((form) => shown.includes(form)), `${way}: no event and no line shows the secret`);
  const arguments_ = [publisher, subscriber]
    .map(({ child }) => readFileSync(`/proc/${child.pid}/cmdline`, 'latin1'))
    .join('');
  check(!arguments_.includes(secretText), `${way}: nor does the list of processes`);
  await subscriber.stop();
  await publisher.stop();
}

await runScript({ name: 'hostile edge', usage: USAGE, options: {}, limitSecs: () => 400 }, async ({ check }) => {
  const folder = throwAwayFolder();
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, 'a token of the operator\n', { mode: 0o600 });
  const { begin } = await loadEdge();
  const { edge, swap } = await begin('a token of the operator');
  const stage = { edge: { control: `127.0.0.1:${edge.addresses.control.port}`, tokenFile, folder }, swap, check };
  for (const way of ['relay', 'direct']) await tryRecording(stage, way);
  const one = secretFile(folder);
  const two = secretFile(folder);
  await tryCrosswise(stage, 'two secrets, relay', [one, two], ['--no-direct']);
  await tryCrosswise(stage, 'one secret, relay', [one, one], ['--no-direct']);
  await tryCrosswise(stage, 'two secrets, direct', [one, two], []);
  await edge.stop({ drainMs: 0 });
  return 'it learned nothing, and nobody reached the wrong peer';
});
