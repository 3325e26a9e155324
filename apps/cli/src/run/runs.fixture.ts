// Runs of `tunnel` inside the test process, and the events they print. All runs end with the test.
import { eventually } from '@tunnel/testkit';
import { expect } from 'vitest';
import { run } from '../all-commands.ts';
import type { TestIo } from '../io/io.fixture.ts';

export interface Started {
  readonly io: TestIo;
  readonly code: Promise<number>;
}

export class Runs {
  readonly #started: Started[] = [];

  start(args: readonly string[], io: TestIo): Started {
    const started = { io, code: run(args, io) };
    this.#started.push(started);
    return started;
  }

  /** Ends every run with SIGTERM, starting with the latest. */
  async end(): Promise<void> {
    for (const { io, code } of this.#started.splice(0).reverse()) {
      io.signal('SIGTERM');
      await code;
    }
  }
}

/** Waits for the first event named `name`. */
export const eventOf = (io: TestIo, name: string): Promise<Record<string, unknown>> =>
  eventually(() => {
    const found = io.events().find(({ event }) => event === name);
    expect(found).toBeDefined();
    return found as Record<string, unknown>;
  });
