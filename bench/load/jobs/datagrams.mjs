// Visitors of a udp service: requests with responses, one in flight per visitor, and a one-way flood at a given rate.
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { percentile } from '../../lib/statistics.mjs';
import { COUNT_AT, DATAGRAM, DATAGRAM_BYTES, RUN_AT } from '../datagram-service.mjs';

/** Time without an answer after which a visitor sends the next request. */
const LOST_AFTER_MS = 500;
/** Waits shorter than this are skipped, and due datagrams are sent at once. */
const TICK_MS = 1;

async function openSocket(address) {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 });
  socket.connect(address.port, address.host);
  await once(socket, 'connect');
  socket.on('error', () => {});
  return socket;
}

class Asker {
  times = [];
  lost = 0;
  #socket;
  #question;
  #number = 0;
  #sentAt = 0;
  #isAsking = false;

  static async open(address, index, size) {
    const asker = new Asker();
    asker.#question = Buffer.alloc(size, 7);
    asker.#socket = await openSocket(address);
    asker.#question[0] = DATAGRAM.echo;
    asker.#question.writeUInt32BE(index, 8);
    asker.#socket.on('message', (bytes) => asker.#heard(bytes));
    return asker;
  }

  start() {
    this.times = [];
    this.lost = 0;
    this.#isAsking = true;
    this.#ask();
  }

  /** Gives up a request that has waited too long. To be called periodically. */
  look(now) {
    if (!this.#isAsking || now - this.#sentAt < LOST_AFTER_MS) return;
    this.lost += 1;
    this.#ask();
  }

  stop() {
    this.#isAsking = false;
  }

  close() {
    this.#socket.close();
  }

  #ask() {
    this.#number += 1;
    this.#question.writeUInt32BE(this.#number, 4);
    this.#sentAt = performance.now();
    this.#socket.send(this.#question);
  }

  #heard(bytes) {
    // The answer belongs to a request that was given up.
    if (!this.#isAsking || bytes.readUInt32BE(4) !== this.#number) return;
    if (!bytes.equals(this.#question)) throw new Error('an answer is not what was sent');
    this.times.push(performance.now() - this.#sentAt);
    this.#ask();
  }
}

/** @param {{ visitors: number, bytes: number, warmUpMs: number, measureMs: number }} parameters */
export async function datagramEcho(address, { visitors, bytes, warmUpMs, measureMs }, ready) {
  const opening = Array.from({ length: visitors }, (_, index) => Asker.open(address, index, bytes));
  const askers = await Promise.all(opening);
  await askFor(askers, warmUpMs);
  await ready();
  const result = await askFor(askers, measureMs);
  for (const asker of askers) asker.close();
  return result;
}

async function askFor(askers, durationMs) {
  const begin = performance.now();
  for (const asker of askers) asker.start();
  while (performance.now() - begin < durationMs) {
    await delay(50);
    for (const asker of askers) asker.look(performance.now());
  }
  for (const asker of askers) asker.stop();
  const seconds = (performance.now() - begin) / 1000;
  const times = Float64Array.from(askers.flatMap((asker) => asker.times)).sort();
  const lost = askers.reduce((sum, asker) => sum + asker.lost, 0);
  return { seconds, roundTrips: times.length, lost, p50Ms: percentile(times, 0.5), p99Ms: percentile(times, 0.99) };
}

/** @param {{ bytes: number, perSecond: number, measureMs: number, run: number }} parameters `run` is a different number for each call */
export async function datagramFlood(address, { bytes, perSecond, measureMs, run }, ready) {
  const socket = await openSocket(address);
  const datagram = Buffer.alloc(bytes, 7);
  datagram[0] = DATAGRAM.sink;
  datagram.writeUInt32BE(run, RUN_AT);
  // Opens the flow, and shows that the service is reachable.
  await arrivedOf(socket, run);
  await ready();
  const begin = performance.now();
  let sent = 0;
  while (performance.now() - begin < measureMs) {
    const due = Math.floor(((performance.now() - begin) * perSecond) / 1000) - sent;
    for (let n = 0; n < due; n += 1) socket.send(datagram);
    sent += due;
    await delay(TICK_MS);
  }
  const seconds = (performance.now() - begin) / 1000;
  await delay(300);
  const arrived = await arrivedOf(socket, run);
  socket.close();
  return { seconds, sent, arrived };
}

async function arrivedOf(socket, run) {
  const question = Buffer.alloc(DATAGRAM_BYTES);
  question[0] = DATAGRAM.count;
  question.writeUInt32BE(run, RUN_AT);
  for (let tried = 0; tried < 20; tried += 1) {
    socket.send(question);
    const answer = await Promise.race([once(socket, 'message'), delay(250)]);
    if (answer) return answer[0].readUInt32BE(COUNT_AT);
  }
  throw new Error('nobody answers');
}
