// Starts, stops and restarts a service-program.mjs on the same port, and reads the requests it received.
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { failAtExit, startChild, stopChild } from '../../../../bench/lib/children.mjs';
import { freePort } from '../../../../bench/lib/free-ports.mjs';

const PROGRAM = fileURLToPath(new URL('service-program.mjs', import.meta.url));

export class LocalService {
  name;
  port;
  #logFile;
  #child = null;

  static async start(name, folder) {
    const service = new LocalService();
    service.name = name;
    service.port = await freePort();
    service.#logFile = join(folder, `${name}.log`);
    await service.start();
    return service;
  }

  async start() {
    const child = startChild({
      name: this.name,
      command: process.execPath,
      args: [PROGRAM, this.name, String(this.port), this.#logFile],
      ipc: true,
    });
    this.#child = child;
    await Promise.race([once(child.process, 'message'), failAtExit(child)]);
  }

  /** Stops the service at once, together with its running requests. */
  async stop() {
    await stopChild(this.#child, 'SIGKILL');
  }

  /** Returns the received POSTs of all runs as { word: 'begun' | 'whole', id, sum }. */
  received() {
    if (!existsSync(this.#logFile)) return [];
    const lines = readFileSync(this.#logFile, 'utf8').split('\n');
    return lines.filter((line) => line !== '').map(readLine);
  }
}

function readLine(line) {
  const [word, id, sum] = line.split(' ');
  return { word, id, sum };
}
