// What all measurements of a scenario stand on: a network, the origin and the load generator. Paths come and go between them.
import { loopback, smallBufferNetwork } from './network.mjs';
import { Worker } from './worker.mjs';

export class Ground {
  network;
  origin;
  /** The visitors who are measured. */
  generator;
  /** Visitors beside them, in a process of their own: the measured ones must not wait for their work. */
  crowd;
  originPort = 0;
  /** The same services over TLS. */
  originTlsPort = 0;

  constructor(network) {
    this.network = network;
    this.origin = new Worker('origin', network);
    this.generator = new Worker('generator', network);
    this.crowd = new Worker('generator', network);
  }

  async start() {
    const { port, tlsPort } = await this.origin.next();
    this.originPort = port;
    this.originTlsPort = tlsPort;
    return this;
  }

  /** What the origin's sources have handed to the kernel. */
  async bytesSent() {
    this.origin.send({ type: 'sent?' });
    return (await this.origin.next()).bytes;
  }

  async close() {
    await Promise.all([this.origin.close(), this.generator.close(), this.crowd.close()]);
    await this.network.close();
  }
}

/** `kind` is the scenario's wish; without the right to make a network, the machine's own has to do. */
export async function makeGround(kind) {
  const network = kind === 'small-buffers' ? await smallBufferNetwork() : null;
  return new Ground(network ?? loopback).start();
}
