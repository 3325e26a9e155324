// How much memory the peers of one session, and of the whole process, may fill at the worst: the sum of all windows given out.
// A commitment counts in the session and in the process; either of them can stop windows from growing.
import * as os from 'node:os';
import { MUX_LIMITS } from './limits.ts';

export class MemoryBudget {
  readonly limitBytes: number;
  readonly #parent: MemoryBudget | null;
  #committedBytes = 0;

  constructor(limitBytes: number, parent: MemoryBudget | null = null) {
    this.limitBytes = limitBytes;
    this.#parent = parent;
  }

  get committedBytes(): number {
    return this.#committedBytes;
  }

  /** True while more is promised than the budget allows: windows then shrink to their fair share as they are used. */
  get exceeded(): boolean {
    return this.#committedBytes > this.limitBytes || (this.#parent?.exceeded ?? false);
  }

  /** Room for a window that grows; nothing is promised when it would go over. */
  tryCommit(bytes: number): boolean {
    if (!this.hasRoomFor(bytes)) return false;
    this.commit(bytes);
    return true;
  }

  /** The least a stream needs to move at all is promised in any case. */
  commit(bytes: number): void {
    this.#committedBytes += bytes;
    this.#parent?.commit(bytes);
  }

  release(bytes: number): void {
    this.#committedBytes -= bytes;
    this.#parent?.release(bytes);
  }

  hasRoomFor(bytes: number): boolean {
    if (this.#committedBytes + bytes > this.limitBytes) return false;
    return this.#parent === null || this.#parent.hasRoomFor(bytes);
  }
}

let ofProcess: MemoryBudget | undefined;

/** One per process: a quarter of the memory it may use. */
export const processBudget = (): MemoryBudget => {
  if (ofProcess === undefined) {
    const constrained = process.constrainedMemory?.() ?? 0;
    const memory = constrained > 0 ? Math.min(constrained, os.totalmem()) : os.totalmem();
    ofProcess = new MemoryBudget(Math.floor(memory * MUX_LIMITS.PROCESS_BUDGET_MEMORY_SHARE));
  }
  return ofProcess;
};
