// A stack that is stopped while a visitor has an open connection through it.
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { connect as dial, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect } from '@tunnel/client';
import { isProcessAlive } from '@tunnel/runtime';
import { eventually, type Program, startEchoServer } from '@tunnel/testkit';
import { expect, it as plain } from 'vitest';
import { makeServerDir, readRunJson, type ServerDir, waitUntilReady } from './server-program.fixture.ts';

export class SignalTrial {
  readonly at: ServerDir;
  readonly #cleanUps: (() => unknown)[] = [];

  private constructor(at: ServerDir) {
    this.at = at;
  }

  static async prepare(): Promise<SignalTrial> {
    const at = await makeServerDir('drain_secs = 20');
    const trial = new SignalTrial(at);
    trial.#cleanUps.push(() => at.dir.close());
    return trial;
  }

  /** Waits for the server and returns its pid, which can differ from the pid of the program. */
  async ready(program: Program): Promise<number> {
    this.#cleanUps.push(() => program.close());
    const server = await waitUntilReady(program);
    this.#cleanUps.push(() => isProcessAlive(server) && process.kill(server, 'SIGKILL'));
    return server;
  }

  /** Opens a visitor's connection to an echo service through a tunnel of this server. */
  async visit(): Promise<Socket> {
    const run = readRunJson(this.at);
    const echo = await startEchoServer();
    this.#cleanUps.push(() => echo.close());
    const client = await connect({ server: run.control, token: readFileSync(run.admin_token_file, 'utf8').trim() });
    this.#cleanUps.push(() => client.close());
    const tunnel = await client.open({ protocol: 'tcp', localPort: echo.port });
    const visitor = dial({ host: '127.0.0.1', port: Number(new URL(tunnel.publicUrl).port) });
    this.#cleanUps.push(() => visitor.destroy());
    await echoes(visitor, 'before');
    return visitor;
  }

  /** Checks that the open connection continues during the drain, and that all processes end afterwards. */
  async expectDrained(program: Program, server: number, visitor: Socket): Promise<void> {
    await program.waitForLine(/stopping/);
    await echoes(visitor, 'while draining');
    expect(isProcessAlive(server)).toBe(true);
    visitor.end();
    expect(await program.waitForExit()).toEqual({ code: 0, signal: null });
    await eventually(() => expect(isProcessAlive(server)).toBe(false));
    expect(() => process.kill(-program.pid, 0)).toThrow('ESRCH');
    expect(existsSync(join(this.at.dataDir, 'run.json'))).toBe(false);
    // The database has a separate process group, and has stopped when its pid file is gone.
    expect(existsSync(join(this.at.dataDir, 'postgres/postmaster.pid'))).toBe(false);
  }

  async close(): Promise<void> {
    for (const cleanUp of this.#cleanUps.splice(0).reverse()) await cleanUp();
  }
}

const echoes = async (visitor: Socket, text: string): Promise<void> => {
  visitor.write(text);
  const [answer] = (await once(visitor, 'data')) as [Buffer];
  expect(answer.toString()).toBe(text);
};

export const it = plain.extend<{ trial: SignalTrial }>({
  trial: async ({ task: _ }, use) => {
    const trial = await SignalTrial.prepare();
    await use(trial);
    await trial.close();
  },
});
