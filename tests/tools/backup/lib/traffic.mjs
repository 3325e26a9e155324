// A paying account with a tunnel, and a visitor that sends through it all the time, so that every byte of usage can be counted.
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { countedEcho } from '../../../system/counted-service.fixture.ts';
import { signUpPayer } from '../../../system/payer.fixture.ts';
import { until } from '../../lib/until.mjs';
import { ask, PATIENCE } from './trial.mjs';

const SIZE = 20_000;

export class Traffic {
  heard = 0;
  visits = 0;
  #isOver = false;

  static async open(trial) {
    const payer = await signUpPayer(trial.stack);
    const echo = trial.harness.use(await countedEcho());
    const { token } = await payer.client(trial.stack).createKey({ label: 'service' });
    const args = ['tcp', String(echo.port), '--json', '--server', trial.stack.control];
    const client = await trial.harness.run(args, { env: { TUNNEL_API_KEY: token } });
    const { assigned_port: port } = await client.ready();
    return new Traffic(trial, { payer, echo, client, port });
  }

  constructor(trial, more) {
    Object.assign(this, { trial, ...more });
    this.visiting = this.#visitAgain();
  }

  async #visitAgain() {
    while (!this.#isOver) {
      if (await this.#visit()) this.visits += 1;
      await pause(20);
    }
  }

  #visit() {
    const visitor = connect({ host: '127.0.0.1', port: this.port, allowHalfOpen: true });
    let heard = 0;
    visitor.on('data', (piece) => {
      heard += piece.length;
      this.heard += piece.length;
    });
    visitor.on('error', () => {});
    visitor.end(Buffer.alloc(SIZE, 'v'));
    return new Promise((resolve) => {
      visitor.on('end', () => resolve(heard === SIZE));
      visitor.on('close', () => resolve(false));
    });
  }

  /** Waits until visitors are served again. */
  async served() {
    const wanted = this.visits + 3;
    await until('visitors are served', () => this.visits >= wanted, PATIENCE);
  }

  /** Stops the visitor. No byte is on its way afterwards. */
  async pause() {
    this.#isOver = true;
    await this.visiting;
  }

  resume() {
    this.#isOver = false;
    this.visiting = this.#visitAgain();
  }

  /** Bytes that went through the tunnel in both directions. */
  get carried() {
    return this.echo.bytesRead + this.heard;
  }

  async charged() {
    return Number(await ask(this.trial.url, 'select coalesce(sum(bytes), 0) from usage_daily'));
  }

  /** Waits until all carried bytes are charged, and a moment longer, in case more are charged. */
  async settled() {
    await until('all usage is charged', async () => (await this.charged()) >= this.carried, {
      timeoutMs: 60_000,
      everyMs: 200,
    }).catch(() => {});
    await pause(3000);
    return this.charged();
  }
}
