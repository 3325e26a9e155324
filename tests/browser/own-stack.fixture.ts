// Starts a real stack in a separate folder, with groups enabled and high rate limits for sign-ins, and finds the stack from other
// processes of the run.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { claimPortBlock, temporaryDirectory } from '@tunnel/testkit';
import { Stack, type StackOptions } from '../system/stack.fixture.ts';

/** High limits, because all visitors of the tests come from the same network. */
const TABLES = `
[platform.limits]
network_calls_at_once = 100
network_calls_per_second = 1000
auth_per_minute = 10000
auth_per_account_per_minute = 1000
[platform.plans.free]
tunnel_limit = 100
[load_balancing]
enabled = true
`;

/** The data that a test needs about a stack, regardless of the process that started it. */
export type StackAddress = Pick<Stack, 'run' | 'control' | 'dataDir' | 'flags'>;

export interface OwnStack {
  readonly stack: Stack;
  close(): Promise<void>;
}

export const startOwnStack = async (options: StackOptions = {}): Promise<OwnStack> => {
  const folder = await temporaryDirectory();
  const ports = await claimPortBlock();
  const stack = new Stack(folder.path, ports, { command: 'stack', tables: TABLES, ...options });
  const close = async (): Promise<void> => {
    await stack.close();
    await ports.close();
    await folder.close();
  };
  try {
    await stack.start();
  } catch (error) {
    await close();
    throw error;
  }
  return { stack, close };
};

/** Returns the address of a stack that a different process has started. */
export const stackAt = (dataDir: string, flags: readonly string[]): StackAddress => {
  const run = (): Stack['run'] => JSON.parse(readFileSync(join(dataDir, 'run.json'), 'utf8')) as Stack['run'];
  return {
    dataDir,
    flags,
    get run() {
      return run();
    },
    get control() {
      return run().control;
    },
  };
};
