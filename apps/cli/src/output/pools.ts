// How pools are shown: as JSON, as plain blocks, or on a terminal in a block that is drawn again in place.
import type { Fault } from '@tunnel/errors';
import type { Io } from '../io.ts';
import { problemLines } from '../problem-report.ts';
import type { ReadGroups } from '../read-groups.ts';
import { coloursOf } from './colours.ts';
import { cutVisible } from './cut-visible.ts';
import { poolLines } from './pool-block.ts';

type Screen = Pick<Io, 'stdout' | 'stderr' | 'env'>;

export interface PoolOutput {
  show(read: ReadGroups): void;
  /** The edge is not reached any more; it is tried again. */
  lost(fault: Fault): void;
  /** It is reached again. */
  back(): void;
}

export const choosePoolOutput = (
  io: Screen,
  options: { readonly json: boolean; readonly watch: boolean },
): PoolOutput => {
  if (options.json) return new JsonPools(io);
  return options.watch && io.stdout.isTTY === true ? new LivePools(io) : new PlainPools(io);
};

const lostText = (fault: Fault): string => `${problemLines(fault)[0]}; trying again`;
const BACK = 'tunnel: the edge is back';

/** One line for each list that differs from the one before. */
class JsonPools implements PoolOutput {
  readonly #io: Screen;
  #last = '';

  constructor(io: Screen) {
    this.#io = io;
  }

  show({ json }: ReadGroups): void {
    const text = JSON.stringify(json);
    if (text !== this.#last) this.#io.stdout.write(`${text}\n`);
    this.#last = text;
  }

  lost(fault: Fault): void {
    this.#io.stderr.write(`${lostText(fault)}\n`);
  }

  back(): void {
    this.#io.stderr.write(`${BACK}\n`);
  }
}

class PlainPools implements PoolOutput {
  readonly #io: Screen;
  #last = '';

  constructor(io: Screen) {
    this.#io = io;
  }

  show({ groups }: ReadGroups): void {
    const text = poolLines(groups, coloursOf(this.#io)).join('\n');
    if (text !== this.#last) this.#io.stdout.write(`${this.#last === '' ? '' : '\n'}${text}\n`);
    this.#last = text;
  }

  lost(fault: Fault): void {
    this.#io.stderr.write(`${lostText(fault)}\n`);
  }

  back(): void {
    this.#io.stderr.write(`${BACK}\n`);
  }
}

class LivePools implements PoolOutput {
  readonly #io: Screen;
  #block: readonly string[] = [];
  #drawn: readonly string[] = [];

  constructor(io: Screen) {
    this.#io = io;
  }

  show({ groups }: ReadGroups): void {
    this.#block = poolLines(groups, coloursOf(this.#io));
    this.#draw(this.#block);
  }

  /** The last that is known stays on the screen, below what happened. */
  lost(fault: Fault): void {
    this.#above(lostText(fault));
  }

  back(): void {
    this.#above(BACK);
  }

  #above(line: string): void {
    this.#erase();
    this.#io.stdout.write(`${line}\n`);
    this.#draw(this.#block);
  }

  #draw(block: readonly string[]): void {
    const lines = this.#fit(block);
    if (lines.length === this.#drawn.length && lines.every((line, at) => line === this.#drawn[at])) return;
    this.#erase();
    this.#drawn = lines;
    this.#io.stdout.write(`${lines.join('\n')}\n`);
  }

  /** Lines that wrap, or have left the screen, could not be erased by counting them. */
  #fit(block: readonly string[]): string[] {
    const width = Math.max(20, (this.#io.stdout.columns || 80) - 1);
    const height = Math.max(2, (this.#io.stdout.rows || 24) - 1);
    const lines = block.length > height ? block.slice(0, height - 1) : block;
    const rest = block.length - lines.length;
    return [...lines.map((line) => cutVisible(line, width)), ...(rest === 0 ? [] : [`… and ${rest} more lines`])];
  }

  #erase(): void {
    if (this.#drawn.length > 0) this.#io.stdout.write(`\u001b[${this.#drawn.length}A\u001b[J`);
    this.#drawn = [];
  }
}
