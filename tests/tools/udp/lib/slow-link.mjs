// A TCP link between client and edge with limited bandwidth, a delay, and small buffers like a good modem. The link can be stalled.

import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const TICK_MS = 2;
/** Buffer per direction and connection. When it is full, the link stops reading from the sender. */
const BUFFER_MS = 30;

export class SlowLink {
  port = 0;
  isStalled = false;
  #server;
  #pipes = new Set();
  #timer;
  #sockets = new Set();

  static async start(target, { bytesPerSecond, delayMs }) {
    const link = new SlowLink();
    link.#server = createServer({ noDelay: true }, (near) => {
      const far = connect({ port: target, host: '127.0.0.1', noDelay: true });
      link.#join(near, far, { bytesPerSecond, delayMs });
      link.#join(far, near, { bytesPerSecond, delayMs });
    });
    link.#server.listen(0, '127.0.0.1');
    await once(link.#server, 'listening');
    link.port = link.#server.address().port;
    let last = performance.now();
    link.#timer = setInterval(() => {
      const now = performance.now();
      for (const pipe of link.#pipes) pipe(now, now - last);
      last = now;
    }, TICK_MS);
    return link;
  }

  /** Resets every connection. New connections are relayed. */
  cut() {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  close() {
    clearInterval(this.#timer);
    this.#server.close();
  }

  #join(from, to, { bytesPerSecond, delayMs }) {
    this.#sockets.add(from);
    from.once('close', () => this.#sockets.delete(from));
    const queue = [];
    let queued = 0;
    let budget = 0;
    const bufferBytes = (bytesPerSecond * (BUFFER_MS + delayMs)) / 1000;
    from.on('data', (bytes) => {
      queue.push({ bytes, at: performance.now() + delayMs });
      queued += bytes.length;
      if (queued > bufferBytes) from.pause();
    });
    const pipe = (now, elapsedMs) => {
      if (this.isStalled) return;
      budget = Math.min(
        budget + (elapsedMs * bytesPerSecond) / 1000,
        (bytesPerSecond * 4 * TICK_MS) / 1000 + (bytesPerSecond * elapsedMs) / 1000,
      );
      while (queue.length > 0 && queue[0].at <= now && budget > 0) {
        const [first] = queue;
        const size = Math.min(Math.ceil(budget), first.bytes.length);
        to.write(first.bytes.subarray(0, size));
        first.bytes = first.bytes.subarray(size);
        if (first.bytes.length === 0) queue.shift();
        queued -= size;
        budget -= size;
      }
      if (queued <= bufferBytes) from.resume();
    };
    this.#pipes.add(pipe);
    const end = () => {
      this.#pipes.delete(pipe);
      from.destroy();
      to.destroy();
    };
    from.on('error', end).on('close', end);
    to.on('error', end);
  }
}
