// The common environment of all measurements of a scenario: a network, the origin and the load generator. Paths are started and stopped
// within it.
import { loopback, smallBufferNetwork } from './network.mjs';
import { Worker } from './worker.mjs';

export class Ground {
  network;
  origin;
  /** Worker for the measured visitors. */
  generator;
  /** Worker for additional visitors, in a separate process so that the measured visitors need not wait for them. */
  crowd;
  originPort = 0;
  /** Port with the origin's services over TLS. */
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

  /** Returns the number of bytes that the origin's sources have handed to the kernel. */
  async bytesSent() {
    this.origin.send({ type: 'sent?' });
    return (await this.origin.next()).bytes;
  }

  async close() {
    await Promise.all([this.origin.close(), this.generator.close(), this.crowd.close()]);
    await this.network.close();
  }
}

/**
 * Creates the environment. `kind` is the network that the scenario wants; without the right to create a network, the machine's loopback
 * interface is used.
 */
export async function makeGround(kind) {
  const network = kind === 'small-buffers' ? await smallBufferNetwork() : null;
  return new Ground(network ?? loopback).start();
}
