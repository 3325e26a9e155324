// Tests our handshake and records against an independent implementation: `noiseprotocol` 0.3.1 from PyPI is the other end in both roles.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { CACHE_DIR, ROOT } from '../../../scripts/lib/paths.mjs';
import { runScript } from '../lib/script.mjs';

const USAGE = `usage: node tests/tools/p2p/noise-peer.mjs [--records N]
Needs python3 with venv, and PyPI.`;
const lib = (name) => fileURLToPath(new URL(`lib/${name}`, import.meta.url));

async function loadSource() {
  const outfile = join(CACHE_DIR, 'tools/noise-source.mjs');
  mkdirSync(join(CACHE_DIR, 'tools'), { recursive: true });
  const entryPoints = [lib('noise-source.ts')];
  await build({ absWorkingDir: ROOT, entryPoints, outfile, bundle: true, format: 'esm', platform: 'node' });
  return import(pathToFileURL(outfile).href);
}

function installPython(folder) {
  const run = (program, ...args) => spawnSync(program, args, { encoding: 'utf8' });
  const made = run('python3', '-m', 'venv', folder);
  const pip = join(folder, 'bin/pip');
  const installed = made.status === 0 && run(pip, 'install', '--quiet', 'noiseprotocol==0.3.1');
  if (!installed || installed.status !== 0) throw new Error(`noiseprotocol cannot be installed: ${installed?.stderr}`);
  return join(folder, 'bin/python');
}

/**
 * Starts the other end. `ask` sends a command with bytes, and resolves to the answer's bytes, or to null if the other end rejected them.
 */
function startPeer(python) {
  const child = spawn(python, [lib('noise-peer.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const ask = async (command, ...given) => {
    const answer = once(lines, 'line');
    child.stdin.write(`${[command, ...given.map((bytes) => Buffer.from(bytes).toString('hex'))].join(' ')}\n`);
    const [line] = await answer;
    if (line.startsWith('failed')) return null;
    return line === '-' ? Buffer.alloc(0) : Buffer.from(line, 'hex');
  };
  return { ask, stop: () => child.stdin.end() };
}

async function tryRole(ours, { source, peer, check, psk, records }) {
  const theirs = ours === 'initiator' ? 'responder' : 'initiator';
  const prologue = Buffer.from('tunnel-p2p/1office-db');
  await peer.ask(theirs, psk, prologue);
  const handshake = new source.NoiseHandshake({ role: ours, psk, prologue });
  const first = randomBytes(60);
  const second = randomBytes(61);
  let isRight = true;
  const takes = async (payload) => (await peer.ask('read', handshake.write(payload)))?.equals(payload);
  const gives = async (payload) => handshake.read(await peer.ask('write', payload)).equals(payload);
  if (ours === 'initiator') isRight = (await takes(first)) && (await gives(second));
  else isRight = (await gives(first)) && (await takes(second));
  check(isRight, `as ${ours}: both payloads are read`);
  const { sendKey, receiveKey, handshakeHash } = handshake.result();
  check(handshakeHash.equals(await peer.ask('hash')), `as ${ours}: the handshake hashes are equal`);
  const sealer = new source.RecordSealer(sendKey);
  const opener = new source.RecordOpener(receiveKey);
  const sizes = [0, 1, 1000, source.RECORD_PLAIN_MAX_BYTES];
  let wrong = 0;
  for (let i = 0; i < records; i += 1) {
    const plain = randomBytes(sizes[i % sizes.length]);
    const record = Buffer.alloc(plain.length + source.RECORD_OVERHEAD_BYTES);
    sealer.seal(Buffer.alloc(0), plain, 0, plain.length, record, 0);
    if (!(await peer.ask('open', record.subarray(source.LENGTH_BYTES)))?.equals(plain)) wrong += 1;
    const answer = await peer.ask('seal', plain);
    if (!opener.open(answer, 0, answer.length).equals(plain)) wrong += 1;
  }
  check(wrong === 0, `as ${ours}: ${2 * records} records of up to ${source.RECORD_PLAIN_MAX_BYTES} bytes open`);
}

async function tryWrongSecrets({ source, peer, check, psk }) {
  const prologue = Buffer.from('tunnel-p2p/1office-db');
  const other = source.derivePsk('another secret', 'office-db');
  await peer.ask('responder', psk, prologue);
  const ours = new source.NoiseHandshake({ role: 'initiator', psk: other, prologue });
  check(
    (await peer.ask('read', ours.write(Buffer.alloc(0)))) === null,
    'it refuses our first message of another secret',
  );
  await peer.ask('initiator', other, prologue);
  const message = await peer.ask('write', Buffer.alloc(0));
  let refused = false;
  try {
    new source.NoiseHandshake({ role: 'responder', psk, prologue }).read(message);
  } catch {
    refused = true;
  }
  check(refused, 'we refuse its first message of another secret');
}

await runScript(
  {
    name: 'Noise against noiseprotocol of PyPI',
    usage: USAGE,
    options: { records: 200 },
    limitSecs: () => 300,
    needsBuild: false,
  },
  async ({ values, check }) => {
    const folder = mkdtempSync(join(tmpdir(), 'tunnel-noise-'));
    try {
      const source = await loadSource();
      const peer = startPeer(installPython(join(folder, 'venv')));
      const psk = source.derivePsk('correct horse battery staple', 'office-db');
      const theirs = await peer.ask('psk', Buffer.from('correct horse battery staple'), Buffer.from('office-db'));
      check(psk.equals(theirs), 'both make the same key of a secret and a name');
      const tried = { source, peer, check, psk, records: values.records };
      await tryRole('initiator', tried);
      await tryRole('responder', tried);
      await tryWrongSecrets(tried);
      peer.stop();
      return 'both roles, payloads, hash, records, wrong secrets';
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
