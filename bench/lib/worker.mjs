// A process of bench/load that is controlled with messages.
import { fileURLToPath } from 'node:url';
import { failAtExit, startChild, stopChild } from './children.mjs';

const fileOf = (name) => fileURLToPath(new URL(`../load/${name}.mjs`, import.meta.url));

export class Worker {
  #child;
  #inbox = [];
  #wake = () => {};

  /** @param {'origin' | 'generator'} name */
  constructor(name, network) {
    // The worker always uses the Node.js of the bench: `--node` changes the measured programs, not the load.
    const { command, args } = network.wrap(process.execPath, [fileOf(name)]);
    this.#child = startChild({ name, command, args, ipc: true });
    this.#child.process.on('message', (message) => {
      this.#inbox.push(message);
      this.#wake();
    });
  }

  send(message) {
    this.#child.process.send(message, () => {});
  }

  /** Returns the next message. Rejects after the timeout, if the process ends, or if the job fails. */
  async next(timeoutMs = 10_000) {
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`${this.#child.name}: no answer within ${timeoutMs / 1000} s`)),
        timeoutMs,
      );
    });
    const arrived = new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#inbox.length > 0) resolve();
    });
    try {
      await Promise.race([arrived, late, failAtExit(this.#child)]);
    } finally {
      clearTimeout(timer);
    }
    const message = this.#inbox.shift();
    if (message.type === 'failed') throw new Error(message.message);
    return message;
  }

  close() {
    return stopChild(this.#child);
  }
}
