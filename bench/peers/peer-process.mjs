// Helpers to start a peer: its files, its processes, and the check that visitors reach the origin.
import { createSocket } from 'node:dgram';
import { writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { get as getByTls } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { failAtExit, startChild } from '../lib/children.mjs';
import { cleanEnvironment } from '../lib/server.mjs';
import { HTTP_HOST } from '../lib/wrk.mjs';
import { DATAGRAM, DATAGRAM_BYTES } from '../load/datagram-service.mjs';
import { patternPiece } from '../load/pattern.mjs';
import { encodeRequest, SERVICE } from '../load/request.mjs';
import { programFile } from './programs.mjs';

const START_TIMEOUT_MS = 20_000;
const PATIENCE_MS = 2000;
const DATAGRAM_PATIENCE_MS = 200;
/** Short, because a row measures how long a start takes. */
const EVERY_MS = 5;
const PROBE_BYTES = 100;

export const HOST = '127.0.0.1';

export function writeFileIn(folder, name, text) {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** Starts a peer. `program` is a program in .cache/peers, and `command` a program of the system. */
export function startPeer({ folder, program, command = programFile(program), args, env }) {
  const name = program ?? command;
  const environment = { ...cleanEnvironment(folder), ...env };
  return startChild({ name, command, args, cwd: folder, env: environment });
}

/** Retries until the attempt succeeds. After the time limit the error contains the last failure. */
async function until(attempt, children) {
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      const said = children.map((child) => `${child.name}: ${child.output.trim().slice(-300)}`).join('; ');
      if (Date.now() > deadline) throw new Error(`not up: ${error.message}; ${said}`);
    }
    await Promise.race([delay(EVERY_MS), ...children.map(failAtExit)]);
  }
}

export const untilListening = (port, child) => until(() => once(port, (socket, done) => done()), [child]);

const PROBES = {
  tcp: ({ port }) => echo(port),
  udp: ({ port }) => echoDatagram(port),
  http: (address) => ask(address),
};

/** Waits until a visitor reaches the origin. A path with another protocol has no visitors yet. */
export const untilThrough = ({ address, processes }, protocol) =>
  protocol in PROBES ? until(() => PROBES[protocol](address), Object.values(processes)) : undefined;

/** Waits until the hosts respond, one after another. */
export async function untilAnswered(address, hosts, processes) {
  for (const host of hosts) await until(() => ask(address, host), Object.values(processes));
}

function once(port, talk) {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: HOST, port });
    const settle = (then) => (value) => {
      socket.destroy();
      then(value);
    };
    socket.setTimeout(PATIENCE_MS, () => settle(reject)(new Error(`port ${port} does not answer`)));
    socket.once('error', settle(reject));
    socket.once('end', () => settle(reject)(new Error(`port ${port} ends connections`)));
    socket.once('connect', () => talk(socket, settle(resolve)));
  });
}

const echo = (port) =>
  once(port, (socket, done) => {
    let got = 0;
    socket.on('data', (bytes) => {
      got += bytes.length;
      if (got === PROBE_BYTES) done();
    });
    socket.write(Buffer.concat([encodeRequest(SERVICE.echo), patternPiece(0, PROBE_BYTES)]));
  });

function echoDatagram(port) {
  const question = Buffer.alloc(DATAGRAM_BYTES, DATAGRAM.echo);
  return new Promise((resolve, reject) => {
    const socket = createSocket('udp4');
    const settle = (then, value) => {
      clearTimeout(timer);
      socket
        .removeAllListeners()
        .on('error', () => {})
        .close();
      then(value);
    };
    const timer = setTimeout(() => settle(reject, new Error('no datagram came back')), DATAGRAM_PATIENCE_MS);
    socket.once('error', (error) => settle(reject, error));
    socket.on('message', (bytes) => bytes.equals(question) && settle(resolve));
    socket.send(question, port, HOST);
  });
}

const ask = ({ host, port, tls }, name = HTTP_HOST) =>
  new Promise((resolve, reject) => {
    const options = { host, port, path: `/0/${PROBE_BYTES}`, agent: false, timeout: PATIENCE_MS };
    const named = { ...options, headers: { host: name }, servername: name, rejectUnauthorized: false };
    const request = (tls ? getByTls : get)(named, (answer) => {
      answer.resume();
      answer.once('end', () =>
        answer.statusCode === 200 ? resolve() : reject(new Error(`it answers ${answer.statusCode}`)),
      );
    });
    request.once('timeout', () => request.destroy(new Error(`port ${port} does not answer`)));
    request.once('error', reject);
  });
